//! Whatever is done to a database, it answers as sorted maps would.
//!
//! A list of steps drawn from a seed runs against a database and against a map for each tree. A list that fails is made
//! shorter as long as it still fails, and printed with its seed.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::history::{close, open, tiny, verify};
use super::{Session, caught};
use crate::engine::disk::sim::{Random, SimDisk};
use crate::engine::{Batch, Compression, Database, Direction, Durability, KeyRange, Options, Snapshot, TreeId};

const STEPS: usize = 600;
const TREES_MAX: usize = 4;
const SNAPSHOTS_MAX: usize = 4;

type Key = Vec<u8>;
type Change = (usize, Key, Option<Vec<u8>>);
/// By tree.
type Model = Vec<BTreeMap<Key, Vec<u8>>>;

#[derive(Clone, Debug)]
enum Step {
    Write {
        changes: Vec<Change>,
        durability: Durability,
    },
    Get {
        tree: usize,
        key: Key,
    },
    Scan {
        tree: usize,
        range: KeyRange,
        direction: Direction,
        limit: usize,
    },
    Snapshot,
    GetAt {
        snapshot: usize,
        tree: usize,
        key: Key,
    },
    ScanAt {
        snapshot: usize,
        tree: usize,
        range: KeyRange,
        direction: Direction,
    },
    DropSnapshot {
        snapshot: usize,
    },
    Flush,
    Settle,
    NewTree,
    Verify,
    Close,
    /// The process dies and the next one opens the directory. Not drawn while class `none` is in use.
    Kill,
}

/// Draws steps. Keys are few, so that they meet, and awkward.
struct Draw {
    random: Random,
    keys: Vec<Key>,
    classes: &'static [Durability],
}

impl Draw {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut keys: Vec<Key> = vec![vec![], vec![0], vec![0, 0], vec![0xFF], vec![0xFF; 2], vec![0xFF; 9]];
        keys.extend((0..40).map(|number| format!("user/{number:03}").into_bytes()));
        keys.extend((0..6).map(|number| [vec![b'p'; 300], vec![number]].concat()));
        keys.extend((0..10).map(|number| vec![5, number * 25, 0xFF]));
        let classes: &[Durability] = match random.below(3) {
            0 => &[Durability::None, Durability::Process, Durability::Sync],
            1 => &[Durability::Process],
            _ => &[Durability::Process, Durability::Sync],
        };
        Self { random, keys, classes }
    }

    fn steps(&mut self) -> Vec<Step> {
        (0..STEPS).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        match self.random.below(100) {
            0..45 => {
                let len = if self.random.once_in(5) { self.random.below(30) } else { 1 };
                let changes = (0..len).map(|_| self.change()).collect();
                Step::Write { changes, durability: *self.random.pick(self.classes) }
            }
            45..65 => Step::Get { tree: self.tree(), key: self.key() },
            65..78 => Step::Scan {
                tree: self.tree(),
                range: self.range(),
                direction: self.direction(),
                limit: if self.random.once_in(2) { usize::MAX } else { self.random.below(10) },
            },
            78..81 => Step::Snapshot,
            81..86 => Step::GetAt { snapshot: self.snapshot(), tree: self.tree(), key: self.key() },
            86..91 => Step::ScanAt {
                snapshot: self.snapshot(),
                tree: self.tree(),
                range: self.range(),
                direction: self.direction(),
            },
            91..94 => Step::DropSnapshot { snapshot: self.snapshot() },
            94..96 => Step::Flush,
            96 => Step::Settle,
            97 => Step::NewTree,
            98 if self.random.once_in(2) => Step::Verify,
            98 => Step::Close,
            _ if self.classes.contains(&Durability::None) => Step::Close,
            _ => Step::Kill,
        }
    }

    fn change(&mut self) -> Change {
        let len = if self.random.once_in(20) { 700 } else { self.random.below(30) };
        let value = (!self.random.once_in(3)).then(|| self.random.bytes(len));
        (self.tree(), self.key(), value)
    }

    fn tree(&mut self) -> usize {
        self.random.below(TREES_MAX)
    }

    fn snapshot(&mut self) -> usize {
        self.random.below(SNAPSHOTS_MAX)
    }

    fn direction(&mut self) -> Direction {
        *self.random.pick(&[Direction::Forward, Direction::Reverse])
    }

    /// A known key, or one beside it.
    fn key(&mut self) -> Key {
        let mut key = self.random.pick(&self.keys).clone();
        match self.random.below(12) {
            0 => key.push(0),
            1 => drop(key.pop()),
            _ => {}
        }
        key
    }

    /// Any bounds, also reversed ones.
    fn range(&mut self) -> KeyRange {
        if self.random.once_in(3) {
            let mut prefix = self.key();
            prefix.truncate(self.random.below(7));
            return KeyRange::prefix(&prefix);
        }
        KeyRange { lower: self.bound(), upper: self.bound() }
    }

    fn bound(&mut self) -> Bound<Key> {
        match self.random.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}

fn expected_scan(
    tree: &BTreeMap<Key, Vec<u8>>,
    range: &KeyRange,
    direction: Direction,
    limit: usize,
) -> Vec<(Key, Vec<u8>)> {
    let inside = tree.iter().filter(|(key, _)| range.contains(key)).map(|(key, value)| (key.clone(), value.clone()));
    match direction {
        Direction::Forward => inside.take(limit).collect(),
        Direction::Reverse => inside.rev().take(limit).collect(),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Runs steps from one open to the next; answers how many it took, and whether to close.
fn session(database: &Database, model: &mut Model, steps: &[Step]) -> Result<usize, (usize, String)> {
    let mut snapshots: Vec<(Snapshot<'_>, Model)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if matches!(step, Step::Close | Step::Kill) {
            return Ok(index);
        }
        take(database, model, &mut snapshots, step).map_err(|text| (index, text))?;
    }
    Ok(steps.len())
}

fn take<'a>(
    database: &'a Database,
    model: &mut Model,
    snapshots: &mut Vec<(Snapshot<'a>, Model)>,
    step: &Step,
) -> Result<(), String> {
    let id = |tree: usize| TreeId((tree % model.len()) as u32);
    match step {
        Step::Write { changes, durability } => return write(database, model, changes, *durability),
        Step::Get { tree, key } => {
            let tree = id(*tree);
            same(&database.get(tree, key).map_err(text)?, &model[tree.0 as usize].get(key).cloned())?;
        }
        Step::Scan { tree, range, direction, limit } => {
            let tree = id(*tree);
            let scan = database.scan(tree, range.clone(), *direction).map_err(text)?;
            same(&collect(scan, *limit)?, &expected_scan(&model[tree.0 as usize], range, *direction, *limit))?;
        }
        Step::Snapshot => {
            if snapshots.len() < SNAPSHOTS_MAX {
                snapshots.push((database.snapshot(), model.clone()));
            }
        }
        Step::DropSnapshot { snapshot } => {
            if *snapshot < snapshots.len() {
                snapshots.swap_remove(*snapshot);
            }
        }
        Step::GetAt { snapshot, tree, key } => {
            let Some((snapshot, model)) = snapshots.get(*snapshot) else { return Ok(()) };
            let tree = tree % model.len();
            same(&snapshot.get(TreeId(tree as u32), key).map_err(text)?, &model[tree].get(key).cloned())?;
        }
        Step::ScanAt { snapshot, tree, range, direction } => {
            let Some((snapshot, model)) = snapshots.get(*snapshot) else { return Ok(()) };
            let tree = tree % model.len();
            let scan = snapshot.scan(TreeId(tree as u32), range.clone(), *direction).map_err(text)?;
            same(&collect(scan, usize::MAX)?, &expected_scan(&model[tree], range, *direction, usize::MAX))?;
        }
        Step::Flush => database.flush().map_err(text)?,
        Step::Settle => database.settle().map_err(text)?,
        Step::Verify => verify(database)?,
        Step::NewTree => {
            if model.len() < TREES_MAX {
                same(&database.tree(&format!("tree {}", model.len())).map_err(text)?.0, &(model.len() as u32))?;
                model.push(BTreeMap::new());
            }
        }
        Step::Close | Step::Kill => unreachable!("they end a session"),
    }
    Ok(())
}

fn write(database: &Database, model: &mut Model, changes: &[Change], durability: Durability) -> Result<(), String> {
    let mut batch = Batch::new();
    for (tree, key, value) in changes {
        let tree = tree % model.len();
        if let Some(value) = value {
            batch.put(TreeId(tree as u32), key, value);
            model[tree].insert(key.clone(), value.clone());
        } else {
            batch.delete(TreeId(tree as u32), key);
            model[tree].remove(key);
        }
    }
    database.commit_with(&batch, durability).map_err(text)
}

fn collect(mut scan: crate::engine::Scan<'_>, limit: usize) -> Result<Vec<(Key, Vec<u8>)>, String> {
    let mut found = Vec::new();
    while found.len() < limit {
        let Some((key, value)) = scan.next().map_err(text)? else { break };
        found.push((key.to_vec(), value.to_vec()));
    }
    Ok(found)
}

/// Runs steps on a new database.
fn run(options: &Options, steps: &[Step]) -> Result<(), String> {
    let disk = SimDisk::new();
    let mut model = Model::from([BTreeMap::new()]);
    let mut at = 0;
    loop {
        let database = open(&disk, options)?;
        database.tree("tree 0").map_err(text)?;
        for (tree, entries) in model.iter().enumerate() {
            let scan = database.scan(TreeId(tree as u32), KeyRange::all(), Direction::Forward).map_err(text)?;
            let expected = expected_scan(entries, &KeyRange::all(), Direction::Forward, usize::MAX);
            same(&collect(scan, usize::MAX)?, &expected).map_err(|text| format!("at open before step {at}: {text}"))?;
        }
        at += session(&database, &mut model, &steps[at..])
            .map_err(|(index, text)| format!("step {}, {:?}: {text}", at + index, steps[at + index]))?;
        match steps.get(at) {
            Some(Step::Kill) => drop(database),
            _ => close(&disk, &database)?,
        }
        if at == steps.len() {
            return Ok(());
        }
        at += 1;
    }
}

/// Leaves out parts of a failing list as long as the rest still fails.
fn shorten(options: &Options, mut steps: Vec<Step>) -> Vec<Step> {
    let mut part = steps.len() / 2;
    while part > 0 {
        let mut start = 0;
        while start < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(start..(start + part).min(steps.len()));
            if caught(|| run(options, &fewer)).is_err() {
                steps = fewer;
            } else {
                start += part;
            }
        }
        part /= 2;
    }
    steps
}

/// The configurations that take turns, from round to round.
fn configurations() -> [Options; 8] {
    let smallest =
        Options { memory_bytes: 0, block_bytes: 64, delta_bytes: 1 << 10, runs_max: 1, sealed_max: 1, ..tiny() };
    [
        tiny(),
        smallest,
        // Many runs, many sealed deltas.
        Options { runs_max: 16, sealed_max: 8, ..tiny() },
        Options { compression: Compression::Lz4, block_bytes: 512, ..tiny() },
        Options { compression: Compression::default(), block_bytes: 1 << 10, memory_bytes: 0, ..tiny() },
        // Large segments of small blocks.
        Options { segment_bytes: 1 << 20, delta_bytes: 16 << 10, ..tiny() },
        // A delta that is never full.
        Options { delta_bytes: 64 << 20, ..tiny() },
        Options::default(),
    ]
}

/// One list of steps under one configuration.
pub(crate) fn round(session: &mut Session<'_>, seed: u64) {
    let configurations = configurations();
    let options = &configurations[(seed % configurations.len() as u64) as usize];
    let mut steps = Draw::new(seed).steps();
    steps.truncate(usize::try_from(session.left()).unwrap_or(usize::MAX));
    session.try_cases(
        steps.len() as u64,
        || format!("with {options:?}"),
        || run(options, &steps).map_err(|text| describe(options, &steps, &text)),
    );
}

/// The failure, and a short list of steps that fails.
fn describe(options: &Options, steps: &[Step], text: &str) -> String {
    let short = shorten(options, steps.to_vec());
    let again = caught(|| run(options, &short)).err();
    let short: Vec<_> = short.iter().map(|step| format!("{step:?}")).collect();
    format!("{text}\nthese steps fail with {again:?}:\n{}", short.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::torture::sound_cases;

    /// 8 configurations of 45 lists of 600 steps: 216,000.
    const LISTS: u64 = 45;

    fn agrees_with_maps(configuration: u64) {
        let seeds = (0..LISTS).map(|list| list * 8 + configuration);
        let steps = sound_cases(|session| seeds.for_each(|seed| round(session, seed)));
        assert_eq!(steps, LISTS * STEPS as u64);
    }

    #[test]
    fn with_everything_tiny() {
        agrees_with_maps(0);
    }

    #[test]
    fn with_everything_at_its_smallest() {
        agrees_with_maps(1);
    }

    #[test]
    fn with_many_runs_and_many_sealed_deltas() {
        agrees_with_maps(2);
    }

    #[test]
    fn with_compressed_blocks() {
        agrees_with_maps(3);
    }

    #[test]
    fn with_the_default_compression_and_little_memory() {
        agrees_with_maps(4);
    }

    #[test]
    fn with_large_segments_of_small_blocks() {
        agrees_with_maps(5);
    }

    #[test]
    fn with_a_delta_that_is_never_full() {
        agrees_with_maps(6);
    }

    #[test]
    fn with_the_default_options() {
        agrees_with_maps(7);
    }
}
