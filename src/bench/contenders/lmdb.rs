//! LMDB, through the same repository, codec and keys as our own engine.
//!
//! A tree is a named database; a batch is a write transaction. Every single read is a read transaction of its own, as
//! is every snapshot. Readers are tied to threads, which LMDB calls the faster way: a thread has one view open at a
//! time, and the repository asks for no more.
//!
//! Class `process` is `NO_SYNC | WRITE_MAP`. A transaction writes copies of pages into the shared map and, when they
//! are all there, the page that names the new root. The map is the operating system's page cache, which outlives a
//! killed process, and what was in it is what the program had done, in that order: acknowledged transactions are there
//! and a half-made one is not named. A power loss may take anything since the last sync, and then the file with it.
//! Class `sync` is LMDB as it comes: no flags, two syncs a commit. Nothing is cheaper than `process`, so there is no
//! class `none`.
//!
//! Settling syncs. With `WRITE_MAP` the file is as long as the map; closing opens it a last time with the smallest
//! map, which cuts it to the pages in use, inside the clock. Free pages stay: they are only given up by a copy to
//! another file (`mdb_copy -c`), which is no way to put away a store that is to be reopened, and is not done.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithTls};
use parking_lot::Mutex;

use super::ordered::{self, TREES_MAX, Trees, foreign};
use super::{Contender, Durability, OpenOptions, OpenStore, settings};
use crate::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, Locked, Stored, TreeId};
use crate::store::{ProfileStore, Repository, Result as StoreResult};

const NAME: &str = "lmdb";
/// Room for a profile and its index entries, half-filled and free pages included; what is not used costs nothing.
const MAP_BYTES_PER_PROFILE: u64 = 4 << 10;
/// Room for the smallest store, and the step in which the map grows; a multiple of every page size.
const MAP_BYTES_MIN: u64 = 64 << 20;

/// So small that LMDB maps what the file holds instead; a multiple of every page size.
const MAP_BYTES_TO_CUT: u64 = 64 << 10;

/// The contender.
pub struct Lmdb;

impl Contender for Lmdb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        let version = heed::lmdb_version();
        format!("{}.{}.{}", version.major, version.minor, version.patch)
    }

    fn classes(&self) -> &'static [Durability] {
        &[Durability::Process, Durability::Sync]
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        let kv = LmdbKv::open(dir, options)?;
        let flags = flags_of(options.durability);
        Ok(Box::new(OpenLmdb { repository: Repository::open(Arc::new(kv))?, dir: dir.to_owned(), flags }))
    }
}

struct OpenLmdb {
    repository: Repository<LmdbKv>,
    dir: PathBuf,
    flags: EnvFlags,
}

impl OpenStore for OpenLmdb {
    fn profiles(&self) -> &dyn ProfileStore {
        &self.repository
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        let env = &self.repository.kv().env;
        let flags = EnvFlags::from_bits_retain(env.get_flags()?);
        Ok(settings([
            ("cache_bytes", "none of its own: the page cache, which no budget bounds".to_owned()),
            ("flags", flags.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join(" | ")),
            ("map_bytes", env.info().map_size.to_string()),
            ("page_bytes", env.unnamed_database_stat().page_size.to_string()),
            ("readers", "one for each thread".to_owned()),
            ("readers_max", env.max_readers().to_string()),
            ("settle", "sync, reopen with the smallest map; not copied".to_owned()),
        ]))
    }

    fn stabilize(&self) -> Result<bool> {
        Ok(false)
    }

    fn settle(&self) -> Result<()> {
        self.repository.kv().env.force_sync().context("syncing")
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { repository, dir, flags } = *self;
        drop(repository);
        open_env(&dir, MAP_BYTES_TO_CUT, flags).context("cutting the file")?;
        Ok(())
    }
}

type Tree = Database<'static, Bytes, Bytes>;

/// LMDB behind the seam.
pub struct LmdbKv {
    env: Env<WithTls>,
    trees: Trees<Tree>,
    writer: Mutex<()>,
}

impl LmdbKv {
    /// Opens or makes the database in `dir`.
    pub fn open(dir: &Path, options: &OpenOptions) -> StoreResult<Self> {
        let map_bytes = MAP_BYTES_MIN.saturating_add(options.profiles.saturating_mul(MAP_BYTES_PER_PROFILE));
        let map_bytes = map_bytes.next_multiple_of(MAP_BYTES_MIN);
        let env = open_env(dir, map_bytes, flags_of(options.durability)).map_err(foreign(NAME))?;
        Ok(Self { env, trees: Trees::new(NAME), writer: Mutex::new(()) })
    }
}

fn flags_of(durability: Durability) -> EnvFlags {
    match durability {
        Durability::None | Durability::Process => EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP,
        Durability::Sync => EnvFlags::empty(),
    }
}

#[expect(
    unsafe_code,
    reason = "a map of a file that another program changes is undefined; the directory is ours alone"
)]
fn open_env(dir: &Path, map_bytes: u64, flags: EnvFlags) -> heed::Result<Env<WithTls>> {
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes as usize).max_dbs(TREES_MAX as u32);
    // SAFETY: none of the flags turns locks off, and no other program opens or changes the files.
    unsafe { options.flags(flags).open(dir) }
}

impl KvRead for LmdbKv {
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

impl Kv for LmdbKv {
    type Snapshot<'a> = LmdbSnapshot<'a>;
    type Writer<'a> = Locked<'a, Self>;

    fn tree(&self, name: &str) -> StoreResult<TreeId> {
        self.trees.named(name, || {
            let transaction = self.env.write_txn().map_err(foreign(NAME))?;
            let made = self.env.create_databases_and_commit(transaction, |databases, transaction| {
                databases.create_database::<Bytes, Bytes>(transaction, Some(name)).map(CommitOrAbort::<_, ()>::Commit)
            });
            Ok(made.map_err(foreign(NAME))?.unwrap_commit())
        })
    }

    fn snapshot(&self) -> StoreResult<LmdbSnapshot<'_>> {
        Ok(LmdbSnapshot { kv: self, transaction: self.env.read_txn().map_err(foreign(NAME))? })
    }

    fn commit(&self, batch: &Batch) -> StoreResult<()> {
        let mut transaction = self.env.write_txn().map_err(foreign(NAME))?;
        for operation in batch.iter() {
            let tree = self.trees.of(operation.tree)?;
            match operation.value {
                Some(value) => tree.put(&mut transaction, operation.key, value),
                None => tree.delete(&mut transaction, operation.key).map(|_| ()),
            }
            .map_err(foreign(NAME))?;
        }
        transaction.commit().map_err(foreign(NAME))
    }

    fn writer(&self) -> Locked<'_, Self> {
        Locked::new(self, &self.writer)
    }
}

/// A read transaction.
pub struct LmdbSnapshot<'a> {
    kv: &'a LmdbKv,
    transaction: RoTxn<'a, WithTls>,
}

impl KvRead for LmdbSnapshot<'_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
        let value = self.kv.trees.of(tree)?.get(&self.transaction, key).map_err(foreign(NAME))?;
        Ok(value.map(|value| read(Stored::Bytes(value))))
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let Some(bounds) = ordered::bounds(range) else { return Ok(()) };
        let (tree, transaction) = (self.kv.trees.of(tree)?, &self.transaction);
        let visit = |entry: heed::Result<(_, _)>| entry.map(|(key, value)| visit(key, Stored::Bytes(value)));
        match direction {
            Direction::Forward => ordered::walk(NAME, tree.range(transaction, &bounds).map_err(foreign(NAME))?, visit),
            Direction::Reverse => {
                ordered::walk(NAME, tree.rev_range(transaction, &bounds).map_err(foreign(NAME))?, visit)
            }
        }
    }

    fn count(&self, tree: TreeId, range: &KeyRange) -> StoreResult<u64> {
        if *range == KeyRange::all() {
            return self.kv.trees.of(tree)?.len(&self.transaction).map_err(foreign(NAME));
        }
        let mut entries = 0;
        self.scan(tree, range, Direction::Forward, |_, _| {
            entries += 1;
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kv_tests;
    use super::*;

    fn open(dir: &Path) -> LmdbKv {
        LmdbKv::open(dir, &OpenOptions::new(Durability::Process, 1)).expect("it opens")
    }

    #[test]
    fn it_keeps_the_promises_of_the_seam() {
        kv_tests::keeps_the_promises_of_the_seam(open);
    }

    #[test]
    fn a_closed_store_is_as_long_as_its_pages_and_opens_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = OpenOptions::new(Durability::Process, 1);
        for _ in 0..2 {
            let store = Lmdb.open(directory.path(), &options).expect("it opens");
            assert_eq!(store.profiles().count().expect("it counts"), 0);
            store.settle().expect("it settles");
            store.close().expect("it closes");
            let file = directory.path().join("data.mdb").metadata().expect("its file");
            assert!(file.len() <= MAP_BYTES_TO_CUT, "{}", file.len());
        }
    }
}
