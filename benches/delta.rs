//! The delta against `BTreeMap` behind the same lock: `cargo bench --bench delta`.
//!
//! Both hold the same versions and hand out copies, as a reader that must let go of the lock needs them. The map gets
//! the better of it twice: its probe key is not allocated anew, and its scans copy everything under one lock.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;

use engine::cursor::{Cursor, SEQUENCE_MAX};
use engine::delta::{Delta, DeltaCursor};

/// The delta is private to the engine, so its room is compiled into the benchmark.
#[path = "../src/engine"]
#[allow(unused, unreachable_pub, reason = "a benchmark uses a few doors of the room, and none of its tests")]
mod engine {
    pub(crate) mod cursor;
    pub(crate) mod delta;
    pub(crate) mod error;
    pub(crate) mod range;
    pub(crate) mod sync;
}

const VERSIONS: u64 = 1_000_000;
const GETS: u64 = 500_000;
const SCANS: [usize; 2] = [10, 100];
/// Entries met by all scans of one length.
const SCANNED: usize = 2_000_000;
const GROUP: usize = 500;
const VALUE: [u8; 100] = [7; 100];

/// What is measured.
trait Sorted: Default {
    fn insert(&mut self, key: &[u8], sequence: u64);
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>);
    /// Copies `length` entries from `key` on and returns how many bytes those are.
    fn scan(&mut self, key: &[u8], length: usize) -> usize;
}

#[derive(Default)]
struct OurDelta(Arc<Delta>);

impl Sorted for OurDelta {
    fn insert(&mut self, key: &[u8], sequence: u64) {
        self.0.insert(key, sequence, Some(&VALUE));
    }

    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        self.0.get(key, SEQUENCE_MAX, out);
    }

    fn scan(&mut self, key: &[u8], length: usize) -> usize {
        let mut cursor = DeltaCursor::new(Arc::clone(&self.0));
        cursor.seek(key, SEQUENCE_MAX).expect("memory does not fail");
        let mut bytes = 0;
        for _ in 0..length {
            let Some(entry) = cursor.entry() else { break };
            bytes += entry.key.len() + entry.value.map_or(0, <[u8]>::len);
            cursor.next().expect("memory does not fail");
        }
        bytes
    }
}

type VersionKey = (Vec<u8>, Reverse<u64>);

#[derive(Default)]
struct Map {
    tree: RwLock<BTreeMap<VersionKey, Option<Vec<u8>>>>,
    probe: VersionKey,
    copied: Vec<u8>,
}

impl Map {
    fn set_probe(&mut self, key: &[u8]) {
        self.probe.0.clear();
        self.probe.0.extend_from_slice(key);
        self.probe.1 = Reverse(SEQUENCE_MAX);
    }
}

impl Sorted for Map {
    fn insert(&mut self, key: &[u8], sequence: u64) {
        self.tree.write().insert((key.to_vec(), Reverse(sequence)), Some(VALUE.to_vec()));
    }

    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        self.set_probe(key);
        let tree = self.tree.read();
        let found = tree.range(&self.probe..).next().filter(|((found, _), _)| found == key);
        if let Some((_, Some(value))) = found {
            out.extend_from_slice(value);
        }
    }

    fn scan(&mut self, key: &[u8], length: usize) -> usize {
        self.set_probe(key);
        self.copied.clear();
        for ((key, _), value) in self.tree.read().range(&self.probe..).take(length) {
            self.copied.extend_from_slice(key);
            self.copied.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        self.copied.len()
    }
}

/// Spreads consecutive numbers over all of u64, one to one.
fn scatter(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The key that is inserted as the `number`th.
type KeyOf = fn(u64) -> Vec<u8>;

const KEYS: [(&str, KeyOf); 4] = [
    ("ascending, 8 bytes", |number| number.to_be_bytes().to_vec()),
    ("random, 8 bytes", |number| scatter(number).to_be_bytes().to_vec()),
    ("random, 24 bytes", |number| [scatter(number), scatter(!number), number].map(u64::to_be_bytes).concat()),
    ("random, 24 bytes, one head", |number| [0, 0, scatter(number)].map(u64::to_be_bytes).concat()),
];

fn main() {
    println!("{VERSIONS} versions of {} bytes, median of groups of {GROUP} calls in turn", VALUE.len());
    for (name, key_of) in KEYS {
        println!("{name}");
        let inserted: Vec<_> = (0..VERSIONS).map(key_of).collect();
        let probes: Vec<_> = (0..GETS).map(|get| key_of(scatter(get) % VERSIONS)).collect();
        compare(&inserted, &probes);
    }
}

fn compare(inserted: &[Vec<u8>], probes: &[Vec<u8>]) {
    let (mut delta, mut map) = (OurDelta::default(), Map::default());
    let inserted: Vec<_> = inserted.iter().zip(0..).collect();
    race(
        "insert",
        &inserted,
        |(key, sequence)| delta.insert(key, *sequence),
        |(key, sequence)| map.insert(key, *sequence),
    );
    let (mut out, mut map_out) = (Vec::new(), Vec::new());
    race("get", probes, |key| get(&mut delta, key, &mut out), |key| get(&mut map, key, &mut map_out));
    for length in SCANS {
        let probes = &probes[..(SCANNED / length).min(probes.len())];
        let name = format!("scan of {length}");
        race(&name, probes, |key| scan(&mut delta, key, length), |key| scan(&mut map, key, length));
    }
    let everything = [(); 3];
    race("read all", &everything, |()| scan(&mut delta, &[], usize::MAX), |()| scan(&mut map, &[], usize::MAX));
}

fn get(sorted: &mut impl Sorted, key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    sorted.get(key, out);
    assert_eq!(out.len(), VALUE.len());
}

fn scan(sorted: &mut impl Sorted, key: &[u8], length: usize) {
    black_box(sorted.scan(key, length));
}

/// Times both in turn, so that other work on the machine disturbs them alike, and prints the median of each.
fn race<T>(name: &str, inputs: &[T], mut ours: impl FnMut(&T), mut theirs: impl FnMut(&T)) {
    let group_len = GROUP.min(inputs.len().div_ceil(3));
    let times: (Vec<_>, Vec<_>) =
        inputs.chunks(group_len).map(|group| (per_call(group, &mut ours), per_call(group, &mut theirs))).unzip();
    let (ours, theirs) = (median(times.0), median(times.1));
    println!("  {name:12} delta {ours:11.0} ns   BTreeMap {theirs:11.0} ns   {:.1} times as fast", theirs / ours);
}

fn per_call<T>(inputs: &[T], call: impl FnMut(&T)) -> f64 {
    let start = Instant::now();
    inputs.iter().for_each(call);
    start.elapsed().as_nanos() as f64 / inputs.len() as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
