//! A database that several threads work on, and a record of what they did and were told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bench::torture::history;
use crate::engine::disk::sim::SimDisk;
use crate::engine::{
    Batch, Database, Direction, Durability, Error, Isolation, KeyRange, Options, Result, Snapshot, Stored, TreeId,
};

/// Made in this order, so that these are their numbers.
pub(super) const TREES: [&str; 2] = ["a", "b"];

/// The content of every tree, by number.
pub(super) type Content = [BTreeMap<String, String>; TREES.len()];

/// One change of a batch: tree, key, and the new value unless it is a delete.
type Change = (u32, String, Option<String>);

/// A batch, by who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Written {
    pub(super) writer: u8,
    /// From 1 on.
    pub(super) number: u8,
}

impl Written {
    /// Every batch of a writer changes its own key in every tree, and keys of all.
    fn changes(self) -> Vec<Change> {
        let Self { writer, number } = self;
        let value = format!("{writer}/{number} ........................");
        let mut changes = Vec::new();
        for tree in 0..TREES.len() as u32 {
            changes.push((tree, own_key(writer), Some(value.clone())));
            changes.push((tree, "last".to_owned(), Some(value.clone())));
            changes.push((tree, "odd".to_owned(), (number % 2 == 1).then(|| value.clone())));
            let spread = (u32::from(number) * 5 + u32::from(writer) * 3 + tree) % 4;
            changes.push((tree, format!("some {spread}"), Some(value.clone())));
        }
        changes
    }

    pub(super) fn batch(self) -> Batch {
        let mut batch = Batch::new();
        for (tree, key, value) in self.changes() {
            match value {
                Some(value) => batch.put(TreeId(tree), key.as_bytes(), value.as_bytes()),
                None => batch.delete(TreeId(tree), key.as_bytes()),
            }
        }
        batch
    }

    pub(super) fn apply(self, content: &mut Content) {
        for (tree, key, value) in self.changes() {
            match value {
                Some(value) => drop(content[tree as usize].insert(key, value)),
                None => drop(content[tree as usize].remove(&key)),
            }
        }
    }
}

fn as_text(value: Stored<'_>) -> String {
    text(value.bytes(&mut Vec::new()))
}

fn own_key(writer: u8) -> String {
    format!("writer {writer}")
}

/// Batches that have to be there from some moment on, which is noted in the trace of the disk.
pub(super) struct Promise {
    pub(super) batches: Vec<Written>,
    /// Whether a power loss must not take them either.
    pub(super) durable: bool,
}

/// What a snapshot showed.
pub(super) struct Seen {
    pub(super) sequence: u64,
    pub(super) content: Content,
    /// Acknowledged before it was taken.
    pub(super) acknowledged: Vec<Written>,
}

/// What threads did and were told.
#[derive(Default)]
pub(super) struct Record {
    pub(super) tried: Vec<Written>,
    pub(super) acknowledged: Vec<Written>,
    pub(super) promises: Vec<Promise>,
    pub(super) seen: Vec<Seen>,
    /// Whether a close was told of a failure: it leaves logs, for the next open.
    pub(super) close_failed: bool,
}

/// What the threads of a case share. Clones are the same one.
#[derive(Clone)]
pub(super) struct Scene(Arc<Inner>);

struct Inner {
    disk: SimDisk,
    database: Database,
    /// No turn is taken while it is held.
    record: Mutex<Record>,
}

impl Scene {
    pub(super) fn open(disk: &SimDisk, options: Options) -> Result<Self> {
        let database = Database::open_on(Arc::new(disk.clone()), options)?;
        Ok(Self(Arc::new(Inner { disk: disk.clone(), database, record: Mutex::default() })))
    }

    pub(super) fn database(&self) -> &Database {
        &self.0.database
    }

    pub(super) fn disk(&self) -> &SimDisk {
        &self.0.disk
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_record(&self) -> Record {
        std::mem::take(&mut *self.record())
    }

    /// Commits a batch. Only `writer` writes batches of its number, one after the other.
    pub(super) fn write(&self, written: Written, durability: Durability) -> Result<()> {
        self.record().tried.push(written);
        self.database().commit_with(&written.batch(), durability)?;
        self.acknowledge(written, durability);
        Ok(())
    }

    /// The same in a turn to write, which nobody else's comes between: answers what the last one wrote.
    pub(super) fn write_in_turn(&self, written: Written, durability: Durability) -> Result<Option<String>> {
        let turn = self.database().exclusive();
        self.record().tried.push(written);
        let before = turn.get_stored(TreeId(0), b"last", as_text)?;
        turn.finish_with(&written.batch(), durability)?;
        self.acknowledge(written, durability);
        Ok(before)
    }

    /// The same in a transaction, again and again until it does not conflict.
    pub(super) fn write_in_transaction(&self, written: Written, durability: Durability) -> Result<Option<String>> {
        self.record().tried.push(written);
        loop {
            let transaction = self.database().begin(Isolation::Snapshot);
            let before = transaction.get_stored(TreeId(0), b"last", as_text)?;
            transaction.apply(&written.batch())?;
            match transaction.commit_with(durability) {
                Err(Error::Conflict { .. }) => {}
                outcome => {
                    outcome?;
                    self.acknowledge(written, durability);
                    return Ok(before);
                }
            }
        }
    }

    fn acknowledge(&self, written: Written, durability: Durability) {
        self.record().acknowledged.push(written);
        self.promise(vec![written], durability == Durability::Sync);
    }

    /// As a writer, reads what it wrote last.
    pub(super) fn read_back(&self, written: Written) -> std::result::Result<(), String> {
        let mut expected = Content::default();
        written.apply(&mut expected);
        let key = own_key(written.writer);
        for (tree, expected) in expected.iter().enumerate() {
            let read = |value: Stored<'_>| text(value.bytes(&mut Vec::new()));
            let found = self.database().get_stored(TreeId(tree as u32), key.as_bytes(), read);
            let found = found.map_err(|error| format!("reading back {written:?} failed: {error}"))?;
            if found.as_ref() != expected.get(&key) {
                return Err(format!("{written:?} was acknowledged, and its writer reads {found:?} in tree {tree}"));
            }
        }
        Ok(())
    }

    /// Does something that makes durable whatever was acknowledged before.
    pub(super) fn harden(&self, act: impl FnOnce(&Database) -> Result<()>) -> Result<()> {
        let acknowledged = self.record().acknowledged.clone();
        act(self.database())?;
        self.promise(acknowledged, true);
        Ok(())
    }

    pub(super) fn close(&self) -> Result<()> {
        let closed = self.harden(Database::close);
        self.record().close_failed |= closed.is_err();
        closed
    }

    pub(super) fn close_failed(&self) -> bool {
        self.record().close_failed
    }

    fn promise(&self, batches: Vec<Written>, durable: bool) {
        let mut record = self.record();
        let number = record.promises.len() as u64;
        record.promises.push(Promise { batches, durable });
        drop(record);
        self.disk().mark(number);
    }

    /// Takes a snapshot and reads everything twice, with `meanwhile` in between.
    pub(super) fn look(
        &self,
        meanwhile: impl FnOnce() -> std::result::Result<(), String>,
    ) -> std::result::Result<u64, String> {
        let failed = |error: Error| format!("reading failed: {error}");
        let acknowledged = self.record().acknowledged.clone();
        let snapshot = self.database().snapshot();
        let content = read(&snapshot, Direction::Forward).map_err(failed)?;
        meanwhile()?;
        let again = read(&snapshot, Direction::Reverse).map_err(failed)?;
        let sequence = snapshot.sequence();
        if content != again {
            return Err(format!("snapshot {sequence} changed:\nfirst {content:?}\n then {again:?}"));
        }
        drop(snapshot);
        self.record().seen.push(Seen { sequence, content, acknowledged });
        Ok(sequence)
    }
}

/// Everything a snapshot shows.
pub(super) fn read(snapshot: &Snapshot<'_>, direction: Direction) -> Result<Content> {
    let mut content = Content::default();
    for (tree, entries) in content.iter_mut().enumerate() {
        let mut scan = snapshot.scan(TreeId(tree as u32), KeyRange::all(), direction)?;
        while let Some((key, value)) = scan.next()? {
            entries.insert(text(key), text(value));
        }
    }
    Ok(content)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Makes the trees, in their order.
pub(super) fn make_trees(database: &Database) -> Result<()> {
    TREES.iter().try_for_each(|name| history::tree(database, name).map(drop))
}
