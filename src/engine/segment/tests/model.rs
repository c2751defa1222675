//! Cursors and lookups, of segments and of runs, against a sorted list of versions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::engine::codec::put_length_prefixed;
use crate::engine::error::Error;
use crate::engine::range::Direction;
use crate::engine::run::Run;

#[test]
fn segments_that_overlap_are_no_run() {
    let bench = Bench::new(1 << 20);
    let write = |number, keys: [&[u8]; 2]| {
        bench.segment(number, &keys.map(|key| version(key, number, None)), &WriterParams::default())
    };
    let (first, second, shared) = (write(1, [b"a", b"c"]), write(2, [b"d", b"e"]), write(3, [b"e", b"f"]));
    assert!(Run::new(vec![Arc::clone(&first), Arc::clone(&second)]).is_ok());
    assert!(matches!(Run::new(vec![Arc::clone(&second), first]), Err(Error::Corruption { .. })));
    assert!(Run::new(vec![second, shared]).is_err(), "versions of one key are not split");
}

#[test]
fn an_empty_run_has_no_entry() {
    let run = Run::new(Vec::new()).expect("nothing overlaps");
    assert_eq!(run.get(b"key", SEQUENCE_MAX, |_| ()).expect("nothing to read"), None);
    let mut cursor = run.cursor(Reading::Again);
    for step in [Step::First, Step::Last, Step::Next, Step::Prev] {
        step.take(&mut cursor, &[]);
        assert_eq!(cursor.entry(), None);
    }
}

#[derive(Clone, Debug)]
enum Step {
    First,
    Last,
    Seek(Target),
    SeekBefore(Target),
    Next,
    Prev,
}

/// A version that is there or one near it.
#[derive(Clone, Debug)]
struct Target {
    near: Index,
    key: Option<Vec<u8>>,
    sequence: i64,
}

impl Target {
    fn resolve(&self, versions: &[Version]) -> (Vec<u8>, u64) {
        let (key, Reverse(sequence), _) = &versions[self.near.index(versions.len())];
        (self.key.as_ref().unwrap_or(key).clone(), sequence.saturating_add_signed(self.sequence))
    }
}

impl Step {
    fn take(&self, cursor: &mut impl Cursor, versions: &[Version]) {
        match self {
            Self::First => cursor.first(),
            Self::Last => cursor.last(),
            Self::Seek(target) => {
                let (key, sequence) = target.resolve(versions);
                cursor.seek(&key, sequence)
            }
            Self::SeekBefore(target) => {
                let (key, sequence) = target.resolve(versions);
                cursor.seek_before(&key, sequence)
            }
            Self::Next => cursor.next(),
            Self::Prev => cursor.prev(),
        }
        .expect("a sound file");
    }

    /// The same on the sorted list: where it leads from `position`.
    fn expected(&self, position: Option<usize>, versions: &[Version]) -> Option<usize> {
        let rank = |target: &Target| {
            let (key, sequence) = target.resolve(versions);
            versions.partition_point(|version| (&version.0, version.1) < (&key, Reverse(sequence)))
        };
        let position = match self {
            Self::First => Some(0),
            Self::Last => versions.len().checked_sub(1),
            Self::Seek(target) => Some(rank(target)),
            Self::SeekBefore(target) => rank(target).checked_sub(1),
            Self::Next => position.map(|position| position + 1),
            Self::Prev => position?.checked_sub(1),
        };
        position.filter(|position| *position < versions.len())
    }
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(prop_oneof![Just(0_u8), Just(0xFF), Just(b'a')], 0..6),
        "prefix/[ab]{0,12}".prop_map(String::into_bytes),
        any::<u16>().prop_map(|key| key.to_be_bytes().to_vec()),
    ]
}

fn version_lists() -> impl Strategy<Value = Vec<Version>> {
    let sequences = prop_oneof![4 => 0..6_u64, 1 => any::<u64>()];
    let values = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40));
    proptest::collection::btree_map((keys(), sequences.prop_map(Reverse)), values, 1..300)
        .prop_map(|versions| versions.into_iter().map(|((key, sequence), value)| (key, sequence, value)).collect())
}

/// None, one that everything follows, and some that some entries follow.
fn layouts() -> impl Strategy<Value = Layout> {
    let fields = || {
        let one = prop_oneof![Just(Field::Rest), Just(Field::BigEndian(2)), Just(Field::Terminated(b'a'))];
        proptest::collection::vec(one, 0..3)
    };
    let some = (fields(), fields()).prop_map(|(key, value)| Layout { key, value });
    prop_oneof![Just(Layout { key: vec![Field::Rest], value: vec![Field::Rest] }), some]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let target = || {
        let parts = (any::<Index>(), proptest::option::of(keys()), -1..=1_i64);
        parts.prop_map(|(near, key, sequence)| Target { near, key, sequence })
    };
    let step = prop_oneof![
        1 => Just(Step::First),
        1 => Just(Step::Last),
        3 => target().prop_map(Step::Seek),
        3 => target().prop_map(Step::SeekBefore),
        8 => Just(Step::Next),
        8 => Just(Step::Prev),
    ];
    proptest::collection::vec(step, 1..200)
}

fn assert_walk(cursor: &mut impl Cursor, steps: &[Step], versions: &[Version]) {
    let mut position = None;
    assert_eq!(cursor.entry(), None, "a new cursor is on no entry");
    for step in steps {
        step.take(cursor, versions);
        position = step.expected(position, versions);
        assert_eq!(cursor.entry(), position.map(|position| entry_of(&versions[position])), "after {step:?}");
    }
}

/// Cuts between keys near the given places.
fn segments_of(bench: &Bench, versions: &[Version], cuts: &[Index], params: &WriterParams) -> Vec<Arc<Segment>> {
    let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut.index(versions.len())).collect();
    bounds.retain(|cut| *cut > 0 && versions[*cut - 1].0 != versions[*cut].0);
    bounds.extend([0, versions.len()]);
    bounds.sort_unstable();
    bounds.dedup();
    let pieces = bounds.windows(2).map(|bound| &versions[bound[0]..bound[1]]);
    pieces.zip(1..).map(|(piece, number)| bench.segment(number, piece, params)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn cursors_and_gets_agree_with_a_sorted_list(
        versions in version_lists(),
        steps in steps(),
        cuts in proptest::collection::vec(any::<Index>(), 0..6),
        block_bytes in prop_oneof![Just(64_usize), Just(300), Just(4096), Just(64 << 10)],
        compression in proptest::sample::select(compressions()),
        filter in any::<bool>(),
        layout in layouts(),
        budget_bytes in prop_oneof![Just(0_u64), Just(2000), Just(1 << 20)],
    ) {
        let bench = Bench::new(budget_bytes);
        let params = WriterParams { block_bytes, compression, filter, layout: Arc::new(layout) };
        let whole = bench.segment(99, &versions, &params);
        whole.verify().expect("a sound file");
        assert_walk(&mut SegmentCursor::new(Arc::clone(&whole), Reading::Once), &steps, &versions);
        let run = Run::new(segments_of(&bench, &versions, &cuts, &params)).expect("pieces are disjoint");
        assert_walk(&mut run.cursor(Reading::Again), &steps, &versions);
        assert_eq!(scan(&mut run.cursor(Reading::Again)).expect("sound"), versions.clone());
        assert_eq!(scan_back(&mut run.cursor(Reading::Again)).expect("sound"), versions.clone());
        assert_gets(&versions, |key, sequence| whole.get(key, sequence, copy_of));
        assert_gets(&versions, |key, sequence| run.get(key, sequence, copy_of));
    }
}

type Settled = BTreeMap<Vec<u8>, Vec<u8>>;

fn record_layout() -> Layout {
    Layout { key: vec![Field::BigEndian(2), Field::Terminated(0)], value: vec![Field::Varint, Field::Prefixed] }
}

/// An entry that follows the layout of records, as far as `stray` does not say otherwise.
fn record(number: u16, stray: u8) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut value) = ([&number.to_be_bytes()[..], b"id\0"].concat(), vec![number as u8 & 0x7F]);
    let text = format!("text {} of {}", number / 7, number % 3);
    value.push(text.len() as u8);
    value.extend_from_slice(text.as_bytes());
    match stray {
        0 => {}
        1 => value.push(0),
        2 => value.clear(),
        3 => key.push(b'x'),
        4 => key.truncate(2),
        // The same number, written longer.
        _ => drop(value.splice(..1, [number as u8 | 0x80, 0])),
    }
    (key, value)
}

fn settled(strays: impl Fn(u16) -> u8) -> Settled {
    (0..600).map(|number| record(number, strays(number))).collect()
}

fn settled_segment(bench: &Bench, entries: &Settled, block_bytes: usize) -> Arc<Segment> {
    let versions: Vec<_> = entries.iter().map(|(key, value)| version(key, 0, Some(value))).collect();
    let params = WriterParams { layout: Arc::new(record_layout()), ..params(block_bytes, Compression::Lz4) };
    let segment = bench.segment(1, &versions, &params);
    segment.verify().expect("a sound file");
    segment
}

/// Keys that are there, and beside them.
fn probes(entries: &Settled) -> Vec<Vec<u8>> {
    let near = |key: &Vec<u8>| [key.clone(), [key.as_slice(), b"\0"].concat(), key[..key.len() - 1].to_vec()];
    entries.keys().flat_map(near).chain([vec![], vec![0xFF; 5]]).collect()
}

fn visited(segment: &Segment, from: &[u8], to: Option<&[u8]>, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut found, mut key) = (Vec::new(), Vec::new());
    let mut visit = |key: &[u8], value: Stored<'_>| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    assert!(segment.visit_settled((from, to), direction, None, &mut key, &mut visit).expect("sound").is_continue());
    found
}

fn assert_settled(segment: &Arc<Segment>, entries: &Settled) {
    let probes = probes(entries);
    let mut last = LastBlock::default();
    for probe in &probes {
        let found = segment.get_settled(probe, &mut last, copy_of).expect("sound");
        assert_eq!(found.as_ref(), entries.get(probe));
        assert_eq!(segment.rank_settled(probe).expect("sound"), entries.range(..probe.clone()).count() as u64);
    }
    for (from, to) in probes.iter().step_by(97).flat_map(|from| probes.iter().step_by(89).map(move |to| (from, to))) {
        let is_within = |key: &&Vec<u8>| *key >= from && *key < to;
        let mut expected: Vec<_> =
            entries.keys().filter(is_within).map(|key| (key.clone(), entries[key].clone())).collect();
        assert_eq!(visited(segment, from, Some(to), Direction::Forward), expected);
        expected.reverse();
        assert_eq!(visited(segment, from, Some(to), Direction::Reverse), expected);
    }
    assert_eq!(visited(segment, b"", None, Direction::Forward).len(), entries.len());
}

/// Entries in blocks of columns, and in all blocks, and the number of blocks.
fn packed_share(segment: &Segment) -> (usize, usize, usize) {
    let blocks = segment.contents.fence.len();
    let (mut packed, mut all) = (0, 0);
    for index in 0..blocks {
        let block = segment.block(index).expect("sound");
        all += block.len();
        packed += if let Block::Packed(_) = &**block { block.len() } else { 0 };
    }
    (packed, all, blocks)
}

#[test]
fn a_stray_entry_takes_no_other_with_it() {
    let share = |strays: &dyn Fn(u16) -> u8| {
        let (bench, entries) = (Bench::new(1 << 20), settled(strays));
        let segment = settled_segment(&bench, &entries, 16 << 10);
        assert_settled(&segment, &entries);
        packed_share(&segment)
    };
    assert_eq!(share(&|_| 0), (600, 600, 2));
    for kind in 1..6 {
        let one = |at: u16| move |number| if number == at { kind } else { 0 };
        assert_eq!(share(&one(0)), (599, 600, 3), "the first of all");
        assert_eq!(share(&one(599)), (599, 600, 3), "the last of all");
        assert_eq!(share(&one(511)), (599, 600, 3), "the last of a block");
        assert_eq!(share(&one(512)), (599, 600, 3), "the first of a block");
        assert_eq!(share(&one(100)), (599, 600, 4));
        assert_eq!(share(&|number| if (100..103).contains(&number) { kind } else { 0 }), (597, 600, 4));
        assert_eq!(share(&|number| if number % 2 == 0 { kind } else { 0 }).0, 0, "strays everywhere");
        assert_eq!(share(&|_| kind).0, 0, "nothing else");
    }
}

/// In a block of columns every row counts as the longest phrase that rows share, so one with such a text could not be read.
#[test]
fn a_very_long_text_takes_no_other_with_it() {
    for len in [1_000, 100 << 10, 140 << 10, 400 << 10] {
        let text = |number: u16| match number {
            100 => "a".repeat(len),
            _ => format!("{}{number}", "words that all of them share, ".repeat(40)),
        };
        let entry = |number| {
            let mut value = vec![7];
            put_length_prefixed(&mut value, text(number).as_bytes());
            (record(number, 0).0, value)
        };
        let (bench, entries) = (Bench::new(1 << 20), (0..600).map(entry).collect::<Settled>());
        let segment = settled_segment(&bench, &entries, 1 << 20);
        let expected: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert!(visited(&segment, b"", None, Direction::Forward) == expected, "{len} bytes");
        let (packed, all, _) = packed_share(&segment);
        assert!(packed >= 599 && all == 600, "{packed} of {all} entries are packed beside a text of {len} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn settled_reads_agree_with_an_ordered_map_whatever_is_stray(
        strays in proptest::collection::btree_map(0..600_u16, 1..6_u8, 0..40),
        block_bytes in prop_oneof![Just(64_usize), Just(700), Just(16 << 10)],
        budget_bytes in prop_oneof![Just(0_u64), Just(1 << 20)],
    ) {
        let bench = Bench::new(budget_bytes);
        let entries = settled(|number| strays.get(&number).copied().unwrap_or(0));
        assert_settled(&settled_segment(&bench, &entries, block_bytes), &entries);
    }
}
