//! redb, through the same repository, codec and keys as our own engine.
//!
//! A tree is a table; a batch is a write transaction, one for each commit, since each must be atomic and acknowledged
//! by itself. Every single read is a read transaction of its own, as is every snapshot.
//!
//! redb knows two durabilities. `Immediate` syncs: class `sync`. What is committed with `None` is in the memory of the
//! process until the next `Immediate` one, so a killed process loses it: class `none`. There is nothing between.
//!
//! Settling commits once with `Immediate`; closing compacts, which asks for the database alone, inside the clock.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use redb::{
    AccessGuard, Builder, Database, Durability as Commit, ReadOnlyTable, ReadTransaction, ReadableDatabase,
    ReadableTableMetadata, StorageError, TableDefinition, WriteTransaction,
};

use super::ordered::{self, Trees, foreign};
use super::{Contender, Durability, OpenOptions, OpenStore, settings};
use crate::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, Locked, Stored, TreeId};
use crate::store::{ProfileStore, Repository, Result as StoreResult};

const NAME: &str = "redb";
/// Of the release built against, which does not tell its own.
const VERSION: &str = "4.6.0";
const FILE: &str = "profiles.redb";
/// Its default; more where there is more data.
const CACHE_BYTES: u64 = 1 << 30;

/// The contender.
pub struct Redb;

impl Contender for Redb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn classes(&self) -> &'static [Durability] {
        &[Durability::None, Durability::Sync]
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        let kv = Arc::new(RedbKv::open(dir, options)?);
        Ok(Box::new(OpenRedb { repository: Repository::open(Arc::clone(&kv))?, kv }))
    }
}

struct OpenRedb {
    repository: Repository<RedbKv>,
    kv: Arc<RedbKv>,
}

impl OpenStore for OpenRedb {
    fn profiles(&self) -> &dyn ProfileStore {
        &self.repository
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        Ok(settings([
            ("cache_bytes", self.kv.cache_bytes.to_string()),
            ("durability", format!("{:?}", self.kv.durability)),
            ("page_bytes", "4096 (fixed)".to_owned()),
            ("settle", "commit with Immediate, compact".to_owned()),
            ("transactions", "one for each commit, 1-phase (default)".to_owned()),
        ]))
    }

    fn stabilize(&self) -> Result<bool> {
        Ok(false)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.kv.write(Commit::Immediate, |_| Ok(()))?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { repository, kv } = *self;
        drop(repository);
        let mut database = Arc::into_inner(kv).context("the store is in use")?.database;
        database.compact().context("compacting")?;
        database.close().context("closing")
    }
}

/// redb behind the seam.
pub struct RedbKv {
    database: Database,
    cache_bytes: usize,
    /// Names of the tables.
    trees: Trees<String>,
    durability: Commit,
    writer: Mutex<()>,
}

impl RedbKv {
    /// Opens or makes the database in `dir`.
    pub fn open(dir: &Path, options: &OpenOptions) -> StoreResult<Self> {
        let durability = match options.durability {
            Durability::None => Commit::None,
            Durability::Process | Durability::Sync => Commit::Immediate,
        };
        // Its cache is of pages read and pages written.
        let cache_bytes = options.memory_bytes.unwrap_or_else(|| options.all_bytes(CACHE_BYTES)) as usize;
        let database = Builder::new().set_cache_size(cache_bytes).create(dir.join(FILE)).map_err(foreign(NAME))?;
        Ok(Self { database, cache_bytes, trees: Trees::new(NAME), durability, writer: Mutex::new(()) })
    }

    /// Commits what `act` does.
    fn write(&self, durability: Commit, act: impl FnOnce(&WriteTransaction) -> StoreResult<()>) -> StoreResult<()> {
        let mut transaction = self.database.begin_write().map_err(foreign(NAME))?;
        transaction.set_durability(durability).map_err(foreign(NAME))?;
        act(&transaction)?;
        transaction.commit().map_err(foreign(NAME))
    }
}

fn table(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

impl KvRead for RedbKv {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
        self.snapshot()?.get(tree, key, read)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        self.snapshot()?.scan(tree, range, direction, visit)
    }

    fn count(&self, tree: TreeId, range: &KeyRange) -> StoreResult<u64> {
        self.snapshot()?.count(tree, range)
    }
}

impl Kv for RedbKv {
    type Snapshot<'a> = RedbSnapshot<'a>;
    type Writer<'a> = Locked<'a, Self>;

    fn tree(&self, name: &str) -> StoreResult<TreeId> {
        self.trees.named(name, || {
            self.write(Commit::Immediate, |transaction| {
                transaction.open_table(table(name)).map(|_| ()).map_err(foreign(NAME))
            })?;
            Ok(name.to_owned())
        })
    }

    fn snapshot(&self) -> StoreResult<RedbSnapshot<'_>> {
        Ok(RedbSnapshot { kv: self, transaction: self.database.begin_read().map_err(foreign(NAME))? })
    }

    fn commit(&self, batch: &Batch) -> StoreResult<()> {
        self.write(self.durability, |transaction| {
            let mut operations = batch.iter().peekable();
            while let Some(tree) = operations.peek().map(|operation| operation.tree) {
                let mut table = transaction.open_table(table(self.trees.of(tree)?)).map_err(foreign(NAME))?;
                while let Some(operation) = operations.next_if(|operation| operation.tree == tree) {
                    match operation.value {
                        Some(value) => table.insert(operation.key, value),
                        None => table.remove(operation.key),
                    }
                    .map_err(foreign(NAME))?;
                }
            }
            Ok(())
        })
    }

    fn writer(&self) -> Locked<'_, Self> {
        Locked::new(self, &self.writer)
    }
}

/// A read transaction.
pub struct RedbSnapshot<'a> {
    kv: &'a RedbKv,
    transaction: ReadTransaction,
}

impl RedbSnapshot<'_> {
    fn table(&self, tree: TreeId) -> StoreResult<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        self.transaction.open_table(table(self.kv.trees.of(tree)?)).map_err(foreign(NAME))
    }
}

impl KvRead for RedbSnapshot<'_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
        let value = self.table(tree)?.get(key).map_err(foreign(NAME))?;
        Ok(value.map(|value| read(Stored::Bytes(value.value()))))
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let Some(bounds) = ordered::bounds(range) else { return Ok(()) };
        let entries = self.table(tree)?.range::<&[u8]>(bounds).map_err(foreign(NAME))?;
        let visit = |entry: redb::Result<(AccessGuard<'_, _>, AccessGuard<'_, _>), StorageError>| {
            entry.map(|(key, value)| visit(key.value(), Stored::Bytes(value.value())))
        };
        match direction {
            Direction::Forward => ordered::walk(NAME, entries, visit),
            Direction::Reverse => ordered::walk(NAME, entries.rev(), visit),
        }
    }

    fn count(&self, tree: TreeId, range: &KeyRange) -> StoreResult<u64> {
        let table = self.table(tree)?;
        if *range == KeyRange::all() {
            return table.len().map_err(foreign(NAME));
        }
        let mut entries = 0;
        self.scan(tree, range, Direction::Forward, |_, _| {
            entries += 1;
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// Opens the table once.
    fn get_many(
        &self,
        tree: TreeId,
        count: usize,
        mut key: impl FnMut(usize, &mut Vec<u8>),
        mut read: impl FnMut(usize, Option<Stored<'_>>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let table = self.table(tree)?;
        let mut buffer = Vec::new();
        for i in 0..count {
            buffer.clear();
            key(i, &mut buffer);
            let value = table.get(buffer.as_slice()).map_err(foreign(NAME))?;
            if read(i, value.as_ref().map(|value| Stored::Bytes(value.value()))).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::kv_tests;
    use super::*;

    #[test]
    fn the_version_shown_is_the_one_built_against() {
        let locked = include_str!("../../../Cargo.lock");
        assert!(locked.contains(&format!("name = \"redb\"\nversion = \"{VERSION}\"\n")));
    }

    #[test]
    fn it_keeps_the_promises_of_the_seam() {
        let options = OpenOptions::new(Durability::Sync, 1);
        kv_tests::keeps_the_promises_of_the_seam(|dir| RedbKv::open(dir, &options).expect("it opens"));
    }
}
