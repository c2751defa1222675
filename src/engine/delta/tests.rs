//! The delta against a `BTreeMap` with the same versions, under keys made to confuse heads with keys.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Delta, DeltaCursor, Lookup};
use crate::engine::cursor::{Cursor, Entry, SEQUENCE_MAX};
use crate::engine::error::Result;

type VersionKey = (Vec<u8>, Reverse<u64>);
type Model = BTreeMap<VersionKey, Option<Vec<u8>>>;
type Version = (Vec<u8>, u64, Option<Vec<u8>>);

/// Readers of the cursor test see sequence numbers up to this one.
const VISIBLE_MAX: u64 = 100;

fn build(versions: &[Version]) -> (Arc<Delta>, Model) {
    let (delta, mut model) = (Delta::new(), Model::new());
    for (key, sequence, value) in versions {
        delta.insert(key, *sequence, value.as_deref());
        model.insert((key.clone(), Reverse(*sequence)), value.clone());
    }
    (Arc::new(delta), model)
}

fn owned(entry: Entry) -> Version {
    (entry.key.to_vec(), entry.sequence, entry.value.map(<[u8]>::to_vec))
}

fn model_versions(model: &Model) -> Vec<Version> {
    model.iter().map(|((key, sequence), value)| (key.clone(), sequence.0, value.clone())).collect()
}

fn forward(delta: &Arc<Delta>) -> Vec<Version> {
    let mut cursor = DeltaCursor::new(Arc::clone(delta));
    let mut met = Vec::new();
    cursor.first().expect("memory does not fail");
    while let Some(entry) = cursor.entry() {
        met.push(owned(entry));
        cursor.next().expect("memory does not fail");
    }
    met
}

fn backward(delta: &Arc<Delta>) -> Vec<Version> {
    let mut cursor = DeltaCursor::new(Arc::clone(delta));
    let mut met = Vec::new();
    cursor.last().expect("memory does not fail");
    while let Some(entry) = cursor.entry() {
        met.push(owned(entry));
        cursor.prev().expect("memory does not fail");
    }
    met
}

fn assert_holds(delta: &Arc<Delta>, model: &Model) {
    let mut expected = model_versions(model);
    assert_eq!(delta.len(), expected.len());
    assert_eq!(delta.is_empty(), expected.is_empty());
    assert_eq!(forward(delta), expected);
    expected.reverse();
    assert_eq!(backward(delta), expected);
}

fn assert_gets(delta: &Delta, model: &Model, key: &[u8], sequence: u64) {
    let found = model.range((key.to_vec(), Reverse(sequence))..).next().filter(|((found, _), _)| found == key);
    let mut out = b"kept".to_vec();
    let lookup = delta.get(key, sequence, &mut out);
    match found.map(|(_, value)| value) {
        None => assert_eq!((lookup, out.as_slice()), (Lookup::Absent, &b"kept"[..])),
        Some(None) => assert_eq!((lookup, out.as_slice()), (Lookup::Deleted, &b"kept"[..])),
        Some(Some(value)) => assert_eq!((lookup, out), (Lookup::Found, [b"kept", value.as_slice()].concat())),
    }
}

/// Keys that are equal, or close, once cut or padded to 16 bytes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = || prop_oneof![Just(0x00), Just(0x01), Just(b'a'), Just(0xFF)];
    prop_oneof![
        4 => vec(byte(), 0..4),
        2 => vec(byte(), 14..19),
        2 => (prop_oneof![Just(0x00), Just(b'a'), Just(0xFF)], 0..20_usize).prop_map(|(byte, len)| vec![byte; len]),
        4 => (14..40_usize, vec(byte(), 0..4)).prop_map(|(len, tail)| [vec![b'p'; len], tail].concat()),
        1 => vec(any::<u8>(), 0..300),
    ]
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        2 => Just(None),
        8 => vec(any::<u8>(), 0..8).prop_map(Some),
        1 => (any::<u8>(), 1000..9000_usize).prop_map(|(byte, len)| Some(vec![byte; len])),
    ]
}

fn sequence() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..6_u64, 1 => Just(VISIBLE_MAX)]
}

fn versions(count: usize) -> impl Strategy<Value = Vec<Version>> {
    vec((key(), sequence(), value()), 0..count)
}

#[derive(Clone, Debug)]
enum Step {
    First,
    Last,
    Seek(Vec<u8>, u64),
    SeekBefore(Vec<u8>, u64),
    Next(usize),
    Prev(usize),
    /// A version above what the reader may see.
    Insert(Vec<u8>, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let any_sequence = || prop_oneof![8 => sequence(), 1 => Just(SEQUENCE_MAX)];
    let step = prop_oneof![
        1 => Just(Step::First),
        1 => Just(Step::Last),
        2 => (key(), any_sequence()).prop_map(|(key, sequence)| Step::Seek(key, sequence)),
        2 => (key(), any_sequence()).prop_map(|(key, sequence)| Step::SeekBefore(key, sequence)),
        4 => (1..30_usize).prop_map(Step::Next),
        4 => (1..30_usize).prop_map(Step::Prev),
        4 => (key(), VISIBLE_MAX + 1..VISIBLE_MAX + 9).prop_map(|(key, sequence)| Step::Insert(key, sequence)),
    ];
    vec(step, 0..40)
}

/// A cursor and what it should be on, for a reader that passes over what it may not see.
struct Walk<'a> {
    delta: Arc<Delta>,
    cursor: DeltaCursor,
    model: &'a Model,
    expected: Option<&'a VersionKey>,
}

impl Walk<'_> {
    fn take(&mut self, step: &Step) {
        match step {
            Step::First => self.position_forward(Bound::Unbounded, DeltaCursor::first),
            Step::Last => self.position_back(Bound::Unbounded, DeltaCursor::last),
            Step::Seek(key, sequence) => {
                let from = Bound::Included((key.clone(), Reverse(*sequence)));
                self.position_forward(from, |cursor| cursor.seek(key, *sequence));
            }
            Step::SeekBefore(key, sequence) => {
                let to = Bound::Excluded((key.clone(), Reverse(*sequence)));
                self.position_back(to, |cursor| cursor.seek_before(key, *sequence));
            }
            Step::Next(count) => (0..*count).for_each(|_| self.next()),
            Step::Prev(count) => (0..*count).for_each(|_| self.prev()),
            Step::Insert(key, sequence) => self.delta.insert(key, *sequence, Some(b"unseen")),
        }
    }

    fn next(&mut self) {
        match self.expected {
            Some(here) => self.position_forward(Bound::Excluded(here.clone()), DeltaCursor::next),
            None => self.stays_on_no_entry(DeltaCursor::next),
        }
    }

    fn prev(&mut self) {
        match self.expected {
            Some(here) => self.position_back(Bound::Excluded(here.clone()), DeltaCursor::prev),
            None => self.stays_on_no_entry(DeltaCursor::prev),
        }
    }

    fn stays_on_no_entry(&mut self, call: impl FnOnce(&mut DeltaCursor) -> Result<()>) {
        call(&mut self.cursor).expect("memory does not fail");
        self.check();
    }

    fn position_forward(&mut self, from: Bound<VersionKey>, call: impl FnOnce(&mut DeltaCursor) -> Result<()>) {
        call(&mut self.cursor).expect("memory does not fail");
        while self.is_on_unseen() {
            self.cursor.next().expect("memory does not fail");
        }
        self.expected = self.model.range((from, Bound::Unbounded)).next().map(|(key, _)| key);
        self.check();
    }

    fn position_back(&mut self, to: Bound<VersionKey>, call: impl FnOnce(&mut DeltaCursor) -> Result<()>) {
        call(&mut self.cursor).expect("memory does not fail");
        while self.is_on_unseen() {
            self.cursor.prev().expect("memory does not fail");
        }
        self.expected = self.model.range((Bound::Unbounded, to)).next_back().map(|(key, _)| key);
        self.check();
    }

    fn is_on_unseen(&self) -> bool {
        self.cursor.entry().is_some_and(|entry| entry.sequence > VISIBLE_MAX)
    }

    fn check(&self) {
        let expected = self.expected.map(|key| (key.0.clone(), key.1.0, self.model[key].clone()));
        assert_eq!(self.cursor.entry().map(owned), expected);
    }
}

proptest! {
    #[test]
    fn it_holds_what_a_map_holds(versions in versions(700), probes in vec((key(), 0..8_u64), 0..50)) {
        let (delta, model) = build(&versions);
        assert_holds(&delta, &model);
        for (key, sequence, _) in &versions {
            for sequence in [sequence.saturating_sub(1), *sequence, sequence + 1, SEQUENCE_MAX] {
                assert_gets(&delta, &model, key, sequence);
            }
        }
        for (key, sequence) in &probes {
            assert_gets(&delta, &model, key, *sequence);
        }
    }

    #[test]
    fn a_cursor_moves_as_over_a_map_while_others_insert(versions in versions(400), steps in steps()) {
        let (delta, model) = build(&versions);
        let cursor = DeltaCursor::new(Arc::clone(&delta));
        let mut walk = Walk { delta, cursor, model: &model, expected: None };
        walk.check();
        for step in &steps {
            walk.take(step);
        }
    }
}

/// Spreads consecutive numbers, one to one.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32)
}

fn numbered(key_of: impl Fn(u64) -> Vec<u8>, count: u64) -> Vec<Version> {
    (0..count).map(|number| (key_of(number), number, Some(number.to_be_bytes().to_vec()))).collect()
}

#[test]
fn three_levels_of_nodes_hold_every_order_of_arrival() {
    let ascending = |number: u64| number.to_be_bytes().to_vec();
    let descending = |number: u64| (!number).to_be_bytes().to_vec();
    let random = |number: u64| scatter(number).to_be_bytes().to_vec();
    let one_head = |number: u64| [0, 0, scatter(number)].map(u64::to_be_bytes).concat();
    let one_key = |_: u64| b"hot".to_vec();
    let key_fns: [&dyn Fn(u64) -> Vec<u8>; 5] = [&ascending, &descending, &random, &one_head, &one_key];
    for key_of in key_fns {
        let (delta, model) = build(&numbered(key_of, 9000));
        assert_holds(&delta, &model);
        for number in (0..9000).step_by(7) {
            assert_gets(&delta, &model, &key_of(number), SEQUENCE_MAX);
            assert_gets(&delta, &model, &key_of(number), number);
        }
    }
}

#[test]
fn an_idle_tree_costs_nothing_and_a_small_one_little() {
    let delta = Delta::new();
    assert_eq!((delta.byte_size(), delta.len(), delta.is_empty()), (0, 0, true));
    assert_eq!(delta.get(b"key", SEQUENCE_MAX, &mut Vec::new()), Lookup::Absent);
    delta.insert(b"key", 1, Some(b"value"));
    assert!(delta.byte_size() < 2048, "{}", delta.byte_size());
}

#[test]
fn a_cursor_over_nothing_is_on_no_entry() {
    let mut cursor = DeltaCursor::new(Arc::new(Delta::new()));
    for call in [DeltaCursor::first, DeltaCursor::last, DeltaCursor::next, DeltaCursor::prev] {
        call(&mut cursor).expect("memory does not fail");
        assert_eq!(cursor.entry(), None);
    }
    cursor.seek(b"", 0).expect("memory does not fail");
    assert_eq!(cursor.entry(), None);
    cursor.seek_before(&[0xFF; 40], 0).expect("memory does not fail");
    assert_eq!(cursor.entry(), None);
}

#[test]
fn the_later_operation_of_a_batch_wins_wherever_the_entry_is() {
    let (delta, mut model) = build(&numbered(|number| number.to_be_bytes().to_vec(), 1000));
    for number in 0..1000_u64 {
        let (key, value) = (number.to_be_bytes(), (number % 3 > 0).then(|| vec![1; number as usize]));
        delta.insert(&key, number, value.as_deref());
        model.insert((key.to_vec(), Reverse(number)), value);
    }
    assert_holds(&delta, &model);
}

#[test]
fn values_larger_than_what_a_cursor_copies_come_whole() {
    let large = |number: u8| (vec![number], u64::from(number), Some(vec![number; 3 << 20]));
    let (delta, model) = build(&(0..4).map(large).collect::<Vec<_>>());
    assert_holds(&delta, &model);
    assert_gets(&delta, &model, &[2], SEQUENCE_MAX);
}

#[test]
fn readers_see_all_that_was_published_while_a_writer_goes_on() {
    const VERSIONS: u64 = 30_000;
    let key_of = |number: u64| scatter(number).to_be_bytes();
    let (delta, published, is_done) = (Arc::new(Delta::new()), AtomicU64::new(0), AtomicBool::new(false));
    let count_visible = |direction: fn(&mut DeltaCursor), step: fn(&mut DeltaCursor)| {
        let visible = published.load(Ordering::Acquire);
        let mut cursor = DeltaCursor::new(Arc::clone(&delta));
        let mut met = 0;
        direction(&mut cursor);
        while let Some(entry) = cursor.entry() {
            met += u64::from(entry.sequence <= visible);
            step(&mut cursor);
        }
        assert_eq!(met, visible);
        if visible > 0 {
            let mut out = Vec::new();
            assert_eq!(delta.get(&key_of(visible), visible, &mut out), Lookup::Found);
            assert_eq!(out, visible.to_be_bytes());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=VERSIONS {
                delta.insert(&key_of(number), number, Some(&number.to_be_bytes()));
                published.store(number, Ordering::Release);
            }
            is_done.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Acquire) {
                    count_visible(|cursor| cursor.first().unwrap(), |cursor| cursor.next().unwrap());
                    count_visible(|cursor| cursor.last().unwrap(), |cursor| cursor.prev().unwrap());
                }
            });
        }
    });
    count_visible(|cursor| cursor.first().unwrap(), |cursor| cursor.next().unwrap());
    assert_eq!(delta.len() as u64, VERSIONS);
}
