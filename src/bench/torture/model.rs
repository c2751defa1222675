//! Whatever is done to a database, it answers as sorted maps would.
//!
//! A list of steps drawn from a seed runs against a database and against a map for each tree. A list that fails is made
//! shorter as long as it still fails, and printed with its seed.

mod content;
mod fuzz;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use content::Content;

use super::history::{close, open, tiny, verify};
use super::{Session, caught};
use crate::engine::disk::sim::{Random, SimDisk};
use crate::engine::{
    Batch, Compression, Database, Direction, Durability, KeyRange, Layout, Options, Snapshot, Stored, TreeId,
};

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
    Read {
        /// `None` for the newest state.
        snapshot: Option<usize>,
        tree: usize,
        read: Read,
    },
    Snapshot,
    DropSnapshot {
        snapshot: usize,
    },
    Flush,
    Settle,
    NewTree {
        layout: Layout,
    },
    /// The tree is made of something else from now on.
    Declare {
        tree: usize,
        layout: Layout,
    },
    Verify,
    Close,
    /// The process dies and the next one opens the directory. Not drawn while class `none` is in use.
    Kill,
}

/// What is read of a tree. At most `limit` entries are taken.
#[derive(Clone, Debug)]
enum Read {
    Get { key: Key },
    GetMany { keys: Vec<Key>, limit: usize },
    Count { range: KeyRange },
    Scan { range: KeyRange, direction: Direction, limit: usize },
    Visit { range: KeyRange, direction: Direction, limit: usize },
    VisitTails { range: KeyRange, direction: Direction, limit: usize, width: usize },
}

/// Draws steps.
struct Draw {
    random: Random,
    content: Content,
    classes: &'static [Durability],
    /// A tree is settled only while nobody holds a snapshot.
    snapshots_max: usize,
    /// Steps that read, because everything was just settled.
    reads_left: usize,
}

impl Draw {
    fn new(mut random: Random) -> Self {
        let classes: &[Durability] = match random.below(3) {
            0 => &[Durability::None, Durability::Process, Durability::Sync],
            1 => &[Durability::Process],
            _ => &[Durability::Process, Durability::Sync],
        };
        let snapshots_max = if random.once_in(2) { SNAPSHOTS_MAX } else { 0 };
        let content = Content::new(&mut random);
        Self { random, content, classes, snapshots_max, reads_left: 0 }
    }

    fn steps(&mut self) -> Vec<Step> {
        let first = Step::Declare { tree: 0, layout: self.content.layout(&mut self.random, 0) };
        std::iter::once(first).chain((1..STEPS).map(|_| self.step())).collect()
    }

    fn step(&mut self) -> Step {
        if self.reads_left > 0 {
            self.reads_left -= 1;
            return self.read();
        }
        match self.random.below(100) {
            0..45 => {
                let len = if self.random.once_in(5) { self.random.below(60) } else { 1 };
                let changes = (0..len).map(|_| self.change()).collect();
                Step::Write { changes, durability: *self.random.pick(self.classes) }
            }
            45..85 => self.read(),
            85..88 if self.snapshots_max > 0 => Step::Snapshot,
            85..89 => self.settle(),
            89 | 90 => self.declare(),
            91..94 => Step::DropSnapshot { snapshot: self.snapshot() },
            94 | 95 => Step::Flush,
            96 | 97 => Step::NewTree { layout: self.content.layout(&mut self.random, 0) },
            98 if self.random.once_in(2) => Step::Verify,
            98 => Step::Close,
            _ if self.classes.contains(&Durability::None) => Step::Close,
            _ => Step::Kill,
        }
    }

    fn settle(&mut self) -> Step {
        self.reads_left = 12;
        Step::Settle
    }

    fn declare(&mut self) -> Step {
        let tree = self.tree();
        Step::Declare { tree, layout: self.content.layout(&mut self.random, tree) }
    }

    /// A read of the newest state, or of a snapshot.
    fn read(&mut self) -> Step {
        let snapshot = self.random.once_in(3).then(|| self.snapshot());
        let tree = self.tree();
        let (range, direction, limit) = (self.range(tree), self.direction(), self.limit());
        let read = match self.random.below(7) {
            0 | 1 => Read::Get { key: self.key(tree) },
            2 => Read::GetMany { keys: (0..self.random.below(20)).map(|_| self.key(tree)).collect(), limit },
            3 => Read::Count { range },
            4 => Read::Visit { range, direction, limit },
            5 => Read::VisitTails { range, direction, limit, width: self.random.below(14) },
            _ => Read::Scan { range, direction, limit },
        };
        Step::Read { snapshot, tree, read }
    }

    fn change(&mut self) -> Change {
        let tree = self.tree();
        let value = (!self.random.once_in(4)).then(|| self.content.value(&mut self.random, tree));
        (tree, self.key(tree), value)
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

    fn limit(&mut self) -> usize {
        if self.random.once_in(2) { usize::MAX } else { self.random.below(10) }
    }

    /// A known key, or one beside it.
    fn key(&mut self, tree: usize) -> Key {
        let mut key = self.content.key(&mut self.random, tree);
        match self.random.below(24) {
            0 => key.push(0),
            1 => drop(key.pop()),
            _ => {}
        }
        key
    }

    /// A key that is only looked for: also cut short, or with another byte somewhere.
    fn probe(&mut self, tree: usize) -> Key {
        let mut key = self.key(tree);
        let at = self.random.below(key.len() + 1);
        match self.random.below(4) {
            0 => key.truncate(at),
            1 if at < key.len() => key[at] = *self.random.pick(&[0, b'0' - 1, b'9' + 1, 0xFF]),
            _ => {}
        }
        key
    }

    /// Any bounds, also reversed ones.
    fn range(&mut self, tree: usize) -> KeyRange {
        if self.random.once_in(3) {
            let mut prefix = self.probe(tree);
            prefix.truncate(self.random.below(12));
            return KeyRange::prefix(&prefix);
        }
        KeyRange { lower: self.bound(tree), upper: self.bound(tree) }
    }

    fn bound(&mut self, tree: usize) -> Bound<Key> {
        match self.random.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.probe(tree)),
            _ => Bound::Excluded(self.probe(tree)),
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
    match step {
        Step::Write { changes, durability } => return write(database, model, changes, *durability),
        Step::Read { snapshot: None, tree, read } => look(&database.snapshot(), model, *tree, read)?,
        Step::Read { snapshot: Some(snapshot), tree, read } => {
            let Some((snapshot, model)) = snapshots.get(*snapshot) else { return Ok(()) };
            look(snapshot, model, *tree, read)?;
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
        Step::Flush => database.flush().map_err(text)?,
        Step::Settle => database.settle().map_err(text)?,
        Step::Verify => verify(database)?,
        Step::NewTree { layout } => {
            if model.len() < TREES_MAX {
                declare(database, model.len(), layout)?;
                model.push(BTreeMap::new());
            }
        }
        Step::Declare { tree, layout } => declare(database, tree % model.len(), layout)?,
        Step::Close | Step::Kill => unreachable!("they end a session"),
    }
    Ok(())
}

fn declare(database: &Database, tree: usize, layout: &Layout) -> Result<(), String> {
    same(&database.tree_with(&format!("tree {tree}"), layout).map_err(text)?.0, &(tree as u32))
}

/// Reads, and compares with the model.
fn look(snapshot: &Snapshot<'_>, model: &Model, tree: usize, read: &Read) -> Result<(), String> {
    let tree = tree % model.len();
    let (id, entries) = (TreeId(tree as u32), &model[tree]);
    match read {
        Read::Get { key } => same(&snapshot.get(id, key).map_err(text)?, &entries.get(key).cloned()),
        Read::GetMany { keys, limit } => {
            let expected: Vec<_> = keys.iter().take((*limit).max(1)).map(|key| entries.get(key).cloned()).collect();
            same(&get_many(snapshot, id, keys, *limit).map_err(text)?, &expected)
        }
        Read::Count { range } => {
            let expected = entries.keys().filter(|key| range.contains(key)).count() as u64;
            same(&snapshot.count(id, range).map_err(text)?, &expected)
        }
        Read::Scan { range, direction, limit } => {
            let scan = snapshot.scan(id, range.clone(), *direction).map_err(text)?;
            same(&collect(scan, *limit)?, &expected_scan(entries, range, *direction, *limit))
        }
        Read::Visit { range, direction, limit } => {
            let mut found = Vec::new();
            let visit = |key: &[u8], value: Stored<'_>| {
                found.push((key.to_vec(), value.to_vec()));
                go_on(found.len() < *limit)
            };
            snapshot.visit(id, range, *direction, visit).map_err(text)?;
            same(&found, &expected_scan(entries, range, *direction, (*limit).max(1)))
        }
        Read::VisitTails { range, direction, limit, width } => {
            let mut found = Vec::new();
            let visit = |tail: &[u8]| {
                found.push(tail.to_vec());
                go_on(found.len() < *limit)
            };
            snapshot.visit_tails(id, range, *direction, *width, visit).map_err(text)?;
            let expected = expected_scan(entries, range, *direction, (*limit).max(1)).into_iter();
            let tail = |key: Key| key[key.len().saturating_sub(*width)..].to_vec();
            same(&found, &expected.map(|(key, _)| tail(key)).collect())
        }
    }
}

fn get_many(
    snapshot: &Snapshot<'_>,
    tree: TreeId,
    keys: &[Key],
    limit: usize,
) -> crate::engine::Result<Vec<Option<Vec<u8>>>> {
    let mut found = Vec::new();
    let write_key = |index: usize, out: &mut Vec<u8>| out.extend_from_slice(&keys[index]);
    snapshot.get_many(tree, keys.len(), write_key, |_, value| {
        found.push(value.map(|value| value.to_vec()));
        go_on(found.len() < limit)
    })?;
    Ok(found)
}

fn go_on(more: bool) -> ControlFlow<()> {
    if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
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
    run_on(&SimDisk::new(), options, steps).map_err(|(_, text)| text)
}

/// Runs steps on an empty disk; a failure comes with the number of its step.
fn run_on(disk: &SimDisk, options: &Options, steps: &[Step]) -> Result<(), (usize, String)> {
    let mut model = Model::from([BTreeMap::new()]);
    let mut at = 0;
    loop {
        let database = open(disk, options).map_err(|text| (at, text))?;
        compare(&database, &model).map_err(|text| (at, format!("at open before step {at}: {text}")))?;
        at += session(&database, &mut model, &steps[at..])
            .map_err(|(index, text)| (at + index, format!("step {}, {:?}: {text}", at + index, steps[at + index])))?;
        match steps.get(at) {
            Some(Step::Kill) => drop(database),
            _ => close(disk, &database).map_err(|text| (at, text))?,
        }
        if at == steps.len() {
            return Ok(());
        }
        at += 1;
    }
}

/// Whether every tree holds what its map does.
fn compare(database: &Database, model: &Model) -> Result<(), String> {
    database.tree("tree 0").map_err(text)?;
    for (tree, entries) in model.iter().enumerate() {
        let scan = database.scan(TreeId(tree as u32), KeyRange::all(), Direction::Forward).map_err(text)?;
        let expected = expected_scan(entries, &KeyRange::all(), Direction::Forward, usize::MAX);
        same(&collect(scan, usize::MAX)?, &expected)?;
    }
    Ok(())
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

pub(crate) use fuzz::{run as fuzz, seeds as fuzz_seeds};

/// One list of steps under one configuration.
pub(crate) fn round(session: &mut Session<'_>, seed: u64) {
    let configurations = configurations();
    let options = &configurations[(seed % configurations.len() as u64) as usize];
    let mut steps = Draw::new(Random::new(seed)).steps();
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

    /// A tool that never meets a row of columns proves nothing about them.
    #[test]
    fn most_trees_are_read_from_rows_of_columns_once_they_are_settled() {
        let (mut in_rows, mut trees) = (0, 0);
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let content = Content::new(&mut random);
            let database = open(&SimDisk::new(), &tiny()).expect("opens");
            for tree in 0..TREES_MAX {
                declare(&database, tree, &content.layout(&mut random, tree)).expect("a new tree");
                let put = |_| (tree, content.key(&mut random, tree), Some(content.value(&mut random, tree)));
                let changes: Vec<_> = (0..100).map(put).collect();
                write(&database, &mut vec![BTreeMap::new(); TREES_MAX], &changes, Durability::Process)
                    .expect("commits");
            }
            database.settle().expect("settles");
            for tree in 0..TREES_MAX {
                let (mut rows, id) = (0, TreeId(tree as u32));
                let visit = |_: &[u8], value: Stored<'_>| {
                    rows += usize::from(matches!(value, Stored::Row(_) | Stored::Bytes(&[])));
                    ControlFlow::Continue(())
                };
                database.snapshot().visit(id, &KeyRange::all(), Direction::Forward, visit).expect("reads");
                trees += 1;
                in_rows += usize::from(rows > 10);
            }
        }
        assert!(in_rows * 2 > trees, "only {in_rows} of {trees}");
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
