//! What crashes, faults and flips have in common: numbered batches, the states they lead to, and the look at a database
//! that says which of those states it is in.
//!
//! Batch `n` writes `n` under [`COUNTER`] in every tree, so that a torn batch shows as trees that disagree, and changes
//! a few keys at random, so that a wrong version shows. Two trees of three have a layout that some of it follows, so that
//! settled entries lie in blocks of columns and of bytes, side by side.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::engine::disk::LOCK;
use crate::engine::disk::sim::{Call, PowerLoss, Random, SimDisk, State};
use crate::engine::{
    Batch, Compression, Database, Direction, Durability, Error, Field, KeyRange, Layout, Options, TreeId,
};

const COUNTER: &[u8] = b"counter";
/// Keys that batches draw from, for each tree.
const KEYS: usize = 24;

/// Every seal, flush, merge and change of logs happens every few batches.
pub(crate) fn tiny() -> Options {
    Options {
        delta_bytes: 2 << 10,
        memory_bytes: 4 << 10,
        block_bytes: 128,
        segment_bytes: 1 << 10,
        compression: Compression::None,
        runs_max: 2,
        sealed_max: 2,
        // One, so that a seed gives the same calls of the disk in the same order.
        settle_threads: 1,
        ..Options::default()
    }
}

/// The content of one tree.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The content of every tree that is not empty.
pub(crate) type Trees = BTreeMap<String, Entries>;

/// One change of a batch: tree, key, and the new value unless it is a delete.
type Change = (usize, Vec<u8>, Option<Vec<u8>>);

/// The states after each batch; state 0 is the empty database.
#[derive(Clone)]
pub(crate) struct History {
    states: Vec<Trees>,
    /// Changes every value, and nothing else.
    salt: u8,
}

impl History {
    pub(crate) fn new() -> Self {
        Self::with_salt(0)
    }

    /// The same batches for every salt, but for the values in them.
    pub(crate) fn with_salt(salt: u8) -> Self {
        Self { states: vec![Trees::new()], salt }
    }

    /// The number of the last batch.
    pub(crate) fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// The history of a database that lost what came after batch `number`.
    pub(crate) fn up_to(&self, number: u64) -> Self {
        Self { states: self.states[..=number as usize].to_vec(), salt: self.salt }
    }

    /// Draws the next batch, over trees that were made in the order of their names.
    pub(crate) fn draw(&mut self, random: &mut Random, trees: &[&str]) -> Batch {
        let number = self.last() + 1;
        let mut state = self.states[number as usize - 1].clone();
        let mut batch = Batch::new();
        for (tree, key, value) in draw_changes(random, number, trees.len(), self.salt) {
            let entries = state.entry(trees[tree].to_owned()).or_default();
            let tree = TreeId(tree as u32);
            if let Some(value) = value {
                batch.put(tree, &key, &value);
                entries.insert(key, value);
            } else {
                batch.delete(tree, &key);
                entries.remove(&key);
            }
        }
        self.states.push(state);
        batch
    }

    /// The content of a tree after batch `number`.
    pub(crate) fn entries(&self, number: u64, tree: &str) -> &Entries {
        const EMPTY: &Entries = &Entries::new();
        self.states[number as usize].get(tree).unwrap_or(EMPTY)
    }

    /// Which state `database` is in. Everything it holds must be that state exactly, and its number within `numbers`.
    pub(crate) fn locate(&self, database: &Database, numbers: RangeInclusive<u64>) -> Result<u64, String> {
        let found = dump(database).map_err(|error| format!("reading failed: {error}"))?;
        let number = self.identify(&found)?;
        if !numbers.contains(&number) {
            return Err(format!("state {number} is there, expected one of {numbers:?}"));
        }
        Ok(number)
    }

    /// The number of the state that is `found`, exactly.
    pub(crate) fn identify(&self, found: &Trees) -> Result<u64, String> {
        let number = number_of(found)?;
        let expected = self.states.get(number as usize).ok_or_else(|| format!("nobody wrote batch {number}"))?;
        if found != expected {
            return Err(format!("state {number} is wrong:\n   found {found:?}\nexpected {expected:?}"));
        }
        Ok(number)
    }
}

/// The tree called `name`, made if it is not there.
pub(crate) fn tree(database: &Database, name: &str) -> Result<TreeId, Error> {
    database.tree_with(name, &layout(name))
}

/// What a tree is made of. The counter is no key of the layout of tree "b".
fn layout(name: &str) -> Layout {
    match name {
        "a" => Layout { key: vec![Field::Rest], value: vec![Field::Rest] },
        "b" => Layout { key: vec![Field::Terminated(b' '), Field::BigEndian(2)], value: vec![Field::Rest] },
        _ => Layout::opaque(),
    }
}

/// Every key that batches draw from.
pub(crate) fn keys() -> impl Iterator<Item = Vec<u8>> {
    (0..KEYS).map(key).chain([COUNTER.to_vec()])
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number:02}").into_bytes()
}

fn draw_changes(random: &mut Random, number: u64, trees: usize, salt: u8) -> Vec<Change> {
    let mut changes = Vec::new();
    for tree in 0..trees {
        for _ in 0..random.below(4) {
            let key = key(random.below(KEYS));
            let value = (!random.once_in(3)).then(|| draw_value(random, salt));
            changes.push((tree, key, value));
        }
        changes.push((tree, COUNTER.to_vec(), Some(number.to_string().into_bytes())));
    }
    changes
}

/// Some values shrink when they are compressed, some do not.
fn draw_value(random: &mut Random, salt: u8) -> Vec<u8> {
    let len = random.below(48);
    let mut value = if random.once_in(2) { random.bytes(len) } else { vec![random.next() as u8; len] };
    for byte in &mut value {
        *byte ^= salt;
    }
    value
}

/// The number of the last batch, which all trees that hold anything agree on. A tree that was made late agrees once it
/// has taken part in a batch.
fn number_of(trees: &Trees) -> Result<u64, String> {
    let mut numbers = Vec::new();
    for (name, entries) in trees {
        let counter = entries.get(COUNTER).ok_or_else(|| format!("tree {name} lost its counter"))?;
        let text = String::from_utf8_lossy(counter).into_owned();
        numbers.push(text.parse::<u64>().map_err(|_| format!("tree {name} counts {text}"))?);
    }
    numbers.dedup();
    match numbers[..] {
        [] => Ok(0),
        [number] => Ok(number),
        _ => Err(format!("a batch is torn: the trees count {numbers:?}")),
    }
}

/// Everything a database holds.
pub(crate) fn dump(database: &Database) -> Result<Trees, Error> {
    let mut trees = Trees::new();
    for (index, name) in database.tree_names().into_iter().enumerate() {
        let mut scan = database.scan(TreeId(index as u32), KeyRange::all(), Direction::Forward)?;
        let mut entries = BTreeMap::new();
        while let Some((key, value)) = scan.next()? {
            entries.insert(key.to_vec(), value.to_vec());
        }
        if !entries.is_empty() {
            trees.insert(name, entries);
        }
    }
    Ok(trees)
}

pub(crate) fn open(disk: &SimDisk, options: &Options) -> Result<Database, String> {
    Database::open_on(Arc::new(disk.clone()), options.clone()).map_err(|error| format!("open failed: {error}"))
}

/// Opens what a crash left, and looks at it from all sides: it is in one state of `history` within `numbers`, it is
/// in the same one when it is opened again, it verifies, holds no file too many, takes a batch, and keeps it.
pub(crate) fn examine(
    left: &State,
    options: &Options,
    history: &History,
    numbers: RangeInclusive<u64>,
) -> Result<u64, String> {
    let disk = SimDisk::from_state(left.clone());
    let database = open(&disk, options)?;
    let number = history.locate(&database, numbers)?;
    verify(&database)?;
    close(&disk, &database)?;

    let database = open(&disk, options)?;
    history.locate(&database, number..=number).map_err(|text| format!("opened again: {text}"))?;
    let mut continued = history.up_to(number);
    write_one(&database, &mut continued)?;
    drop(database);

    let disk = SimDisk::from_state(disk.state().after_power_loss(PowerLoss::EXTREMES[0], &mut Random::new(0)));
    let database = open(&disk, options)?;
    continued.locate(&database, number + 1..=number + 1).map_err(|text| format!("after one more batch: {text}"))?;
    Ok(number)
}

/// Writes one durable batch over the trees that are there, which are made if there are none.
fn write_one(database: &Database, history: &mut History) -> Result<(), String> {
    if database.tree_names().is_empty() {
        tree(database, "a").map_err(|error| format!("no tree: {error}"))?;
    }
    let names = database.tree_names();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let batch = history.draw(&mut Random::new(history.last()), &names);
    database.commit_with(&batch, Durability::Sync).map_err(|error| format!("no more batches: {error}"))
}

pub(crate) fn verify(database: &Database) -> Result<(), String> {
    let report = database.verify().map_err(|error| format!("verify failed: {error}"))?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => Err(format!("verify found: {problem}")),
    }
}

/// Where a batch is: name of its log, and where its frame begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    pub(crate) log: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The frames of all logs in the order they were written. Every append to a log is one.
pub(crate) fn frames(disk: &SimDisk) -> Vec<FramePlace> {
    let mut logs = BTreeMap::new();
    let mut frames = Vec::new();
    for call in disk.trace() {
        match call {
            Call::Create { name, file } if name.strip_suffix(".wal").is_some() => drop(logs.insert(file, (name, 0))),
            Call::Append { file, bytes } => {
                let Some((log, end)) = logs.get_mut(&file) else { continue };
                frames.push(FramePlace { log: log.clone(), start: *end, end: *end + bytes.len() });
                *end += bytes.len();
            }
            _ => {}
        }
    }
    frames
}

/// Closes a database, and looks that no file is there that its manifest does not name.
pub(crate) fn close(disk: &SimDisk, database: &Database) -> Result<(), String> {
    database.close().map_err(|error| format!("close failed: {error}"))?;
    let state = disk.state();
    let found: Vec<_> = state.names().filter(|name| *name != LOCK).collect();
    let manifest = database.shared.manifest.lock();
    let mut live: Vec<_> = manifest.segments().map(|segment| format!("{:020}.seg", segment.number)).collect();
    live.push("MANIFEST".to_owned());
    live.sort();
    if found == live { Ok(()) } else { Err(format!("files {found:?}, live are {live:?}")) }
}
