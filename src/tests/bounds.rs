//! Where a scan begins and ends, and that nothing which happens beside it moves it.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use crate::engine::{Batch, Database, Direction, KeyRange, Options, Snapshot, TreeId};

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

/// Many blocks, many segments, and a flush every few dozen entries.
fn tiny() -> Options {
    Options { delta_bytes: 2 << 10, block_bytes: 128, segment_bytes: 1 << 10, ..Options::default() }
}

struct Bench {
    database: Database,
    tree: TreeId,
    _dir: tempfile::TempDir,
}

impl Bench {
    fn new(options: Options) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let database = Database::open(dir.path(), options).expect("opens");
        let tree = database.tree("tree").expect("a tree");
        Self { database, tree, _dir: dir }
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        let mut batch = Batch::new();
        batch.put(self.tree, key, value);
        self.database.commit(&batch).expect("commits");
    }

    fn delete(&self, key: &[u8]) {
        let mut batch = Batch::new();
        batch.delete(self.tree, key);
        self.database.commit(&batch).expect("commits");
    }

    fn found(&self, range: &KeyRange, direction: Direction) -> Vec<Vec<u8>> {
        keys_of(&self.database.snapshot(), self.tree, range, direction)
    }
}

/// What a scan and a visit find, which is the same, and as many as are counted.
fn keys_of(snapshot: &Snapshot<'_>, tree: TreeId, range: &KeyRange, direction: Direction) -> Vec<Vec<u8>> {
    let (mut scanned, mut visited) = (Vec::new(), Vec::new());
    let mut scan = snapshot.scan(tree, range.clone(), direction).expect("scans");
    while let Some((key, _)) = scan.next().expect("reads") {
        scanned.push(key.to_vec());
    }
    let visit = |key: &[u8], _: crate::engine::Stored<'_>| {
        visited.push(key.to_vec());
        ControlFlow::Continue(())
    };
    snapshot.visit(tree, range, direction, visit).expect("visits");
    assert_eq!(visited, scanned, "{range:?}");
    assert_eq!(snapshot.count(tree, range).expect("counts"), scanned.len() as u64, "{range:?}");
    scanned
}

fn numbered(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn between(lower: Bound<u32>, upper: Bound<u32>) -> KeyRange {
    let bound = |bound: Bound<u32>| bound.map(|number| numbered(number).to_vec());
    KeyRange { lower: bound(lower), upper: bound(upper) }
}

/// What a caller does to the tree at each entry that a scan gives.
#[derive(Clone, Copy, Debug)]
enum Beside {
    DeleteThis,
    DeleteNext,
    InsertBehind,
    InsertAhead,
}

impl Beside {
    fn act(self, bench: &Bench, key: u32, direction: Direction) {
        let ahead = match direction {
            Direction::Forward => key + 10,
            Direction::Reverse => key - 10,
        };
        match self {
            Self::DeleteThis => bench.delete(&numbered(key)),
            Self::DeleteNext => bench.delete(&numbered(ahead)),
            Self::InsertBehind => bench.put(&numbered(key - ahead / key.max(1)), &[1; 40]),
            Self::InsertAhead => bench.put(&numbered(u32::midpoint(key, ahead)), &[1; 40]),
        }
    }
}

#[test]
fn a_scan_sees_the_state_it_began_in_whatever_is_written_meanwhile() {
    for beside in [Beside::DeleteThis, Beside::DeleteNext, Beside::InsertBehind, Beside::InsertAhead] {
        for direction in BOTH {
            let bench = Bench::new(tiny());
            let mut expected: Vec<u32> = (1..=200).map(|number| number * 10).collect();
            for &key in &expected {
                bench.put(&numbered(key), &[7; 20]);
            }
            if direction == Direction::Reverse {
                expected.reverse();
            }
            let mut scan = bench.database.scan(bench.tree, KeyRange::all(), direction).expect("scans");
            for &key in &expected {
                let found = scan.next().expect("reads").map(|(key, value)| (key.to_vec(), value.to_vec()));
                assert_eq!(found, Some((numbered(key).to_vec(), vec![7; 20])), "{beside:?} {direction:?}");
                beside.act(&bench, key, direction);
            }
            assert_eq!(scan.next().expect("reads"), None, "{beside:?} {direction:?}");
            assert!(bench.database.stats().flushes > 0, "or little happened");
            if let Beside::DeleteThis = beside {
                drop(scan);
                assert_eq!(bench.found(&KeyRange::all(), direction), [[0; 0]; 0], "all of them were deleted");
            }
        }
    }
}

#[test]
fn a_prefix_finds_what_begins_with_it_and_nothing_else() {
    let bench = Bench::new(tiny());
    let keys: [&[u8]; 10] = [b"g", b"g-1", b"g-2", b"g-3", b"k-1", b"k-2", b"k-3", b"k\xFF", &[0xFF; 7], &[0xFF; 9]];
    for key in &keys {
        bench.put(key, b"value");
    }
    for _ in 0..2 {
        let prefixes: [(&[u8], usize); 8] = [
            (b"g", 4),
            (b"g-", 3),
            (b"k\xFF", 1),
            (b"", 10),
            (&[0xFF; 8], 1),
            (&[0xFF; 7], 2),
            (b"g-1 and a prefix that is longer than any key", 0),
            (b"h", 0),
        ];
        for (prefix, count) in prefixes {
            let expected: Vec<_> = keys.iter().filter(|key| key.starts_with(prefix)).map(|key| key.to_vec()).collect();
            assert_eq!(expected.len(), count);
            for direction in BOTH {
                let mut found = bench.found(&KeyRange::prefix(prefix), direction);
                found.sort();
                assert_eq!(found, expected, "{prefix:?} {direction:?}");
            }
        }
        bench.database.settle().expect("settles");
    }
}

/// Bounds the wrong way round were wrong elsewhere only if they lay in different blocks, and worst in what deletes.
#[test]
fn reversed_bounds_find_nothing_and_delete_nothing() {
    use Bound::{Excluded, Included, Unbounded};
    let bench = Bench::new(Options { delta_bytes: 32 << 10, ..tiny() });
    let mut batch = Batch::new();
    (0..10_000).for_each(|number| batch.put(bench.tree, &numbered(number), b"a value"));
    bench.database.commit(&batch).expect("commits");
    for settled in [false, true] {
        if settled {
            bench.database.settle().expect("settles");
            assert!(bench.database.stats().trees[0].segments > 10, "the bounds lie in different blocks");
        }
        let nothing = [
            (Included(9_000), Excluded(1_000)),
            (Included(9_000), Included(1_000)),
            (Excluded(9_000), Excluded(1_000)),
            (Excluded(5), Excluded(5)),
            (Included(5), Excluded(5)),
            (Excluded(5), Included(5)),
            (Excluded(5), Excluded(6)),
            (Included(10_000), Unbounded),
            (Unbounded, Excluded(0)),
        ];
        for (lower, upper) in nothing {
            for direction in BOTH {
                let range = between(lower, upper);
                let found = bench.found(&range, direction);
                for key in &found {
                    bench.delete(key);
                }
                assert_eq!(found.len(), 0, "{range:?} {direction:?}");
            }
        }
        assert_eq!(bench.found(&between(Included(5), Included(5)), Direction::Reverse), [numbered(5)]);
        assert_eq!(bench.database.snapshot().count(bench.tree, &KeyRange::all()).expect("counts"), 10_000);
    }
}

/// Every key is once the first and once the last of a range, so that every border of a block and of a segment is.
#[test]
fn bounds_on_the_borders_of_blocks_and_segments_count_right() {
    use Bound::{Excluded, Included};
    const KEYS: u32 = 400;
    let bench = Bench::new(tiny());
    (0..KEYS).for_each(|number| bench.put(&numbered(number), &[9; 20]));
    for _ in 0..2 {
        for first in 0..KEYS {
            let last = (first + 37).min(KEYS - 1);
            for (range, expected) in [
                (between(Included(first), Included(last)), first..last + 1),
                (between(Excluded(first), Excluded(last)), (first + 1).min(last)..last),
            ] {
                let expected: Vec<_> = expected.map(|number| numbered(number).to_vec()).collect();
                assert_eq!(bench.found(&range, Direction::Forward), expected, "{range:?}");
                let mut reversed = bench.found(&range, Direction::Reverse);
                reversed.reverse();
                assert_eq!(reversed, expected, "{range:?}");
            }
        }
        bench.database.settle().expect("settles");
    }
}

#[test]
fn a_deleted_key_stays_deleted_however_its_versions_are_merged() {
    let bench = Bench::new(Options { runs_max: 2, ..tiny() });
    let mut snapshots = Vec::new();
    for version in 0..50_u8 {
        bench.put(b"key", &[version; 60]);
        snapshots.push(bench.database.snapshot());
        bench.put(&[b'a', version], &[0; 60]);
        bench.put(&[b'z', version], &[0; 60]);
        if version % 3 == 0 {
            bench.database.flush().expect("flushes");
        }
    }
    bench.delete(b"key");
    for step in 0..4 {
        match step {
            1 => bench.database.flush().expect("flushes"),
            2 => bench.database.settle().expect("settles"),
            3 => snapshots.clear(),
            _ => {}
        }
        // Work around the key, so that runs that hold it meet those that do not.
        for number in 0..40 {
            bench.put(&[b'a', number], &[1; 60]);
            bench.put(&[b'z', number], &[1; 60]);
        }
        assert_eq!(bench.database.get(bench.tree, b"key").expect("reads"), None, "step {step}");
        assert_eq!(bench.found(&KeyRange::prefix(b"k"), Direction::Reverse), [[0; 0]; 0], "step {step}");
        for (version, snapshot) in snapshots.iter().enumerate() {
            let value = snapshot.get(bench.tree, b"key").expect("reads");
            assert_eq!(value, Some(vec![version as u8; 60]), "step {step}");
        }
    }
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn entries_of(snapshot: &Snapshot<'_>, tree: TreeId) -> Entries {
    let mut scan = snapshot.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
    let mut entries = Entries::new();
    while let Some((key, value)) = scan.next().expect("reads") {
        entries.insert(key.to_vec(), value.to_vec());
        assert_eq!(snapshot.get(tree, key).expect("reads").as_deref(), Some(value));
    }
    entries
}

/// A range is deleted between two snapshots, and merged away under both of them, a step at a time.
#[test]
fn every_snapshot_keeps_its_state_through_deletes_flushes_and_merges() {
    let bench = Bench::new(Options { segment_bytes: 1 << 10, block_bytes: 64, runs_max: 1, ..tiny() });
    let mut model = Entries::new();
    let mut states = Vec::new();
    let put = |model: &mut Entries, letter: u8| {
        bench.put(&[letter], &[letter; 900]);
        model.insert(vec![letter], vec![letter; 900]);
    };
    let delete = |model: &mut Entries, letter: u8| {
        bench.delete(&[letter]);
        model.remove(&[letter][..]);
    };
    (b'a'..=b'z').for_each(|letter| put(&mut model, letter));
    for step in 0..7 {
        match step {
            0 => (b'c'..b'x').for_each(|letter| delete(&mut model, letter)),
            1 => put(&mut model, b'm'),
            2 => bench.database.flush().expect("flushes"),
            3 => delete(&mut model, b'd'),
            4 | 6 => bench.database.settle().expect("settles"),
            _ => drop(states.remove(0)),
        }
        states.push((bench.database.snapshot(), model.clone()));
        for (snapshot, expected) in &states {
            assert!(entries_of(snapshot, bench.tree) == *expected, "step {step}");
        }
    }
    drop(states);
    bench.database.settle().expect("settles");
    let tree = &bench.database.stats().trees[0];
    assert_eq!((tree.entries, tree.tombstones), (model.len() as u64, 0));
}

#[test]
fn a_snapshot_over_two_trees_is_repeatable_while_both_are_emptied_and_filled_anew() {
    let bench = Bench::new(Options { delta_bytes: 32 << 10, ..tiny() });
    let other = bench.database.tree("other").expect("a tree");
    let trees = [bench.tree, other];
    let write = |numbers: std::ops::Range<u32>, value: Option<&[u8]>| {
        for number in numbers {
            let mut batch = Batch::new();
            for tree in trees {
                match value {
                    Some(value) => batch.put(tree, &numbered(number), value),
                    None => batch.delete(tree, &numbered(number)),
                }
            }
            bench.database.commit(&batch).expect("commits");
        }
    };
    write(0..300, Some(b"old"));
    let snapshot = bench.database.snapshot();
    let old = trees.map(|tree| entries_of(&snapshot, tree));
    write(0..300, None);
    bench.database.settle().expect("settles");
    assert_eq!(bench.database.stats().trees[0].segments, 0, "nothing is left in it");
    write(0..2_000, Some(b"new"));
    bench.database.flush().expect("flushes");
    assert!(trees.map(|tree| entries_of(&snapshot, tree)) == old);
    bench.database.settle().expect("settles");
    assert!(trees.map(|tree| entries_of(&snapshot, tree)) == old);
}
