//! fjall, through the same repository, codec and keys as our own engine.
//!
//! A tree is a keyspace; a batch is one of fjall's, which is atomic across keyspaces. Class `process` writes each
//! commit to the file before it is acknowledged (`PersistMode::Buffer` flushes the journal's own buffer), `sync` syncs
//! it as well, `none` leaves it in the buffer.
//!
//! To be put away small and opened fast, fjall has to lose its journal, which it seals only in a flush that finds more
//! than 64 MB in it, and drops when all of it is flushed. There is no call for that. So settling fills it up, in a
//! keyspace that is deleted again, and flushes once more; closing opens the database a last time, which cuts the new
//! journal, made 64 MiB long, to what it holds. Both are inside the clock.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use fjall::config::{
    BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy, PartitioningPolicy, PinningPolicy,
    RestartIntervalPolicy,
};
use fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable,
};
use parking_lot::Mutex;

use super::ordered::{self, Bounds, Trees, foreign};
use super::{Contender, Durability, OpenOptions, OpenStore, settings};
use crate::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, Locked, Stored, TreeId};
use crate::store::{ProfileStore, Repository, Result as StoreResult};

const NAME: &str = "fjall";
/// Of the release built against, which does not tell its own.
const VERSION: &str = "3.1.13";
/// Its documentation asks for a fifth of memory, or more where all data fits; more than this where there is more data.
const CACHE_BYTES: u64 = 512 << 20;
/// The largest it recommends.
const MEMTABLE_BYTES: u64 = 64 << 20;
/// Buckets for each entry of a block. This and the next are what fjall takes for the keyspace that it keeps for itself;
/// with them a query takes two thirds of the time it takes with its defaults, for a tenth more space.
const HASH_RATIO: f32 = 8.0;
/// Entries of a block for each that is stored whole and can be searched for.
const RESTART_INTERVAL: u8 = 1;
/// A journal is made this long; one that is longer has been filled, and is sealed by the next flush.
const JOURNAL_BYTES: u64 = 64 << 20;
/// What it is filled with, at a time: little memory, and few versions of the keyspace that is filled.
const FILLER_BYTES: usize = 4 << 20;
/// Time between two looks at whether background work is done.
const POLL: Duration = Duration::from_millis(1);

/// The contender.
pub struct Fjall;

impl Contender for Fjall {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn classes(&self) -> &'static [Durability] {
        &[Durability::None, Durability::Process, Durability::Sync]
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        let kv = FjallKv::open(dir, options)?;
        Ok(Box::new(OpenFjall { repository: Repository::open(Arc::new(kv))?, dir: dir.to_owned() }))
    }
}

struct OpenFjall {
    repository: Repository<FjallKv>,
    dir: PathBuf,
}

impl OpenStore for OpenFjall {
    fn profiles(&self) -> &dyn ProfileStore {
        &self.repository
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.repository.kv().settings())
    }

    fn stabilize(&self) -> Result<bool> {
        self.repository.kv().merge().context("flushing and merging")?;
        Ok(true)
    }

    fn settle(&self) -> Result<()> {
        let kv = self.repository.kv();
        kv.merge().context("flushing and merging")?;
        kv.drop_journal().context("dropping the journal")?;
        kv.database.persist(PersistMode::SyncAll).context("syncing the journal")
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.repository.kv().database.persist(PersistMode::Buffer).context("writing the journal")?;
        let Self { repository, dir } = *self;
        drop(repository);
        Database::builder(dir).open().context("cutting the journal")?;
        Ok(())
    }
}

/// fjall behind the seam.
pub struct FjallKv {
    database: Database,
    keyspaces: Trees<Keyspace>,
    /// What a commit waits for; `None` waits for nothing.
    persist: Option<PersistMode>,
    memory: MemorySettings,
    writer: Mutex<()>,
}

/// What a memory budget changes.
#[derive(Clone, Copy)]
struct MemorySettings {
    memtable_bytes: u64,
    /// Whether all filters and block indexes stay in memory, beside the cache.
    is_pinned: bool,
}

impl FjallKv {
    /// Opens or makes the database in `dir`.
    pub fn open(dir: &Path, options: &OpenOptions) -> StoreResult<Self> {
        let persist = match options.durability {
            Durability::None => None,
            Durability::Process => Some(PersistMode::Buffer),
            Durability::Sync => Some(PersistMode::SyncAll),
        };
        let database = Database::builder(dir)
            .cache_size(options.cache_bytes(CACHE_BYTES))
            .journal_compression(CompressionType::None)
            .open()
            .map_err(foreign(NAME))?;
        let memory = MemorySettings {
            memtable_bytes: options.write_buffer_bytes(MEMTABLE_BYTES),
            is_pinned: options.memory_bytes.is_none(),
        };
        Ok(Self { database, keyspaces: Trees::new(NAME), persist, memory, writer: Mutex::new(()) })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let persist = self.persist.map_or_else(|| "none".to_owned(), |mode| format!("{mode:?}"));
        let filters_and_indexes = if self.memory.is_pinned {
            "whole, pinned on every level"
        } else {
            "in parts below the first levels, not pinned there (default)"
        };
        settings([
            ("cache_bytes", self.database.cache_capacity().to_string()),
            ("data_block_bytes", "4096 (default)".to_owned()),
            ("data_block_compression", "none on levels 0 and 1, lz4 below (default)".to_owned()),
            ("data_block_hash_ratio", HASH_RATIO.to_string()),
            ("data_block_restart_interval", RESTART_INTERVAL.to_string()),
            ("filter", "bloom, false positive rate 0.0001 on level 0, 10 bits a key below".to_owned()),
            ("filters_and_indexes", filters_and_indexes.to_owned()),
            ("memtable_bytes_max", format!("{} for each keyspace", self.memory.memtable_bytes)),
            ("persist", persist),
            ("settle", "stabilize, fill the journal until it is dropped, reopen".to_owned()),
            ("stabilize", "rotate every memtable, wait, major compaction".to_owned()),
        ])
    }

    /// Flushes every memtable and merges each keyspace into its last level.
    fn merge(&self) -> fjall::Result<()> {
        for keyspace in self.keyspaces.iter() {
            keyspace.rotate_memtable()?;
        }
        for keyspace in self.keyspaces.iter() {
            while keyspace.sealed_memtable_count() > 0 {
                thread::sleep(POLL);
            }
        }
        while self.database.active_compactions() > 0 {
            thread::sleep(POLL);
        }
        self.keyspaces.iter().try_for_each(Keyspace::major_compact)
    }

    /// Makes fjall seal its journal and drop it, given that everything in it is flushed; see the head of this file.
    fn drop_journal(&self) -> fjall::Result<()> {
        let filler = self.database.keyspace("filler", KeyspaceCreateOptions::default)?;
        let piece = vec![0; FILLER_BYTES];
        loop {
            filler.insert("piece", piece.as_slice())?;
            if self.database.journal_disk_space()? > JOURNAL_BYTES {
                break;
            }
            filler.clear()?;
        }
        filler.rotate_memtable()?;
        while filler.sealed_memtable_count() > 0 || self.database.journal_count() > 1 {
            thread::sleep(POLL);
        }
        self.database.delete_keyspace(filler)
    }
}

/// Where all blocks stay in the cache, what fjall does to keep memory free is left out: filters and block indexes are
/// whole and pinned on every level. Within a block, fjall looks keys up in a hash index, as it does in the keyspace that
/// it keeps for itself.
fn keyspace_options(memory: MemorySettings) -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default()
        .max_memtable_size(memory.memtable_bytes)
        .data_block_hash_ratio_policy(HashRatioPolicy::all(HASH_RATIO))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(RESTART_INTERVAL))
        .filter_policy(FilterPolicy::new([
            FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
            FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0)),
        ]));
    if !memory.is_pinned {
        return options;
    }
    options
        .filter_block_partitioning_policy(PartitioningPolicy::all(false))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_partitioning_policy(PartitioningPolicy::all(false))
        .index_block_pinning_policy(PinningPolicy::all(true))
}

impl KvRead for FjallKv {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
        let value = self.keyspaces.of(tree)?.get(key).map_err(foreign(NAME))?;
        Ok(value.map(|value| read(Stored::Bytes(&value))))
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let keyspace = self.keyspaces.of(tree)?;
        scan(range, direction, |bounds| keyspace.range::<&[u8], _>(bounds), visit)
    }
}

impl Kv for FjallKv {
    type Snapshot<'a> = FjallSnapshot<'a>;
    type Writer<'a> = Locked<'a, Self>;

    fn tree(&self, name: &str) -> StoreResult<TreeId> {
        self.keyspaces
            .named(name, || self.database.keyspace(name, || keyspace_options(self.memory)).map_err(foreign(NAME)))
    }

    fn snapshot(&self) -> StoreResult<FjallSnapshot<'_>> {
        Ok(FjallSnapshot { keyspaces: &self.keyspaces, snapshot: self.database.snapshot() })
    }

    fn commit(&self, batch: &Batch) -> StoreResult<()> {
        let database = self.database.clone();
        let mut writes = OwnedWriteBatch::with_capacity(database, batch.len()).durability(self.persist);
        for operation in batch.iter() {
            let keyspace = self.keyspaces.of(operation.tree)?;
            match operation.value {
                Some(value) => writes.insert(keyspace, operation.key, value),
                None => writes.remove(keyspace, operation.key),
            }
        }
        writes.commit().map_err(foreign(NAME))
    }

    fn writer(&self) -> Locked<'_, Self> {
        Locked::new(self, &self.writer)
    }
}

/// A view of all keyspaces at one moment.
pub struct FjallSnapshot<'a> {
    keyspaces: &'a Trees<Keyspace>,
    snapshot: fjall::Snapshot,
}

impl KvRead for FjallSnapshot<'_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
        let value = self.snapshot.get(self.keyspaces.of(tree)?, key).map_err(foreign(NAME))?;
        Ok(value.map(|value| read(Stored::Bytes(&value))))
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let keyspace = self.keyspaces.of(tree)?;
        scan(range, direction, |bounds| self.snapshot.range::<&[u8], _>(keyspace, bounds), visit)
    }
}

/// Hands the entries `open` gives for `range` to `visit`, in `direction`, until it breaks.
fn scan<'a>(
    range: &'a KeyRange,
    direction: Direction,
    open: impl FnOnce(Bounds<'a>) -> fjall::Iter,
    mut visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
) -> StoreResult<()> {
    let Some(entries) = ordered::bounds(range).map(open) else { return Ok(()) };
    let visit = |entry: Guard| entry.into_inner().map(|(key, value)| visit(&key, Stored::Bytes(&value)));
    match direction {
        Direction::Forward => ordered::walk(NAME, entries, visit),
        Direction::Reverse => ordered::walk(NAME, entries.rev(), visit),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kv_tests;
    use super::*;
    use crate::bench::generate;

    #[test]
    fn the_version_shown_is_the_one_built_against() {
        let locked = include_str!("../../../Cargo.lock");
        assert!(locked.contains(&format!("name = \"fjall\"\nversion = \"{VERSION}\"\n")));
    }

    #[test]
    fn it_keeps_the_promises_of_the_seam() {
        kv_tests::keeps_the_promises_of_the_seam(open);
    }

    #[test]
    fn a_memory_budget_bounds_the_cache_and_each_memtable() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = OpenOptions { memory_bytes: Some(32 << 20), ..OpenOptions::new(Durability::Process, 1 << 30) };
        let settings = FjallKv::open(directory.path(), &options).expect("it opens").settings();
        assert_eq!(settings["cache_bytes"], (24 << 20).to_string());
        assert!(settings["memtable_bytes_max"].starts_with(&(8 << 20).to_string()));
    }

    #[test]
    fn a_snapshot_does_not_see_later_commits_even_after_a_merge() {
        let directory = tempfile::tempdir().expect("a directory");
        let kv = open(directory.path());
        let tree = kv.tree("tree").expect("a tree");
        kv_tests::put(&kv, tree, b"a");
        let snapshot = kv.snapshot().expect("a snapshot");
        kv_tests::put(&kv, tree, b"b");
        kv.merge().expect("it merges");
        assert_eq!(kv_tests::keys(&snapshot, tree, &KeyRange::all(), Direction::Forward), [b"a"]);
        assert_eq!(kv_tests::keys(&kv, tree, &KeyRange::all(), Direction::Reverse), [b"b", b"a"]);
    }

    #[test]
    fn a_settled_and_closed_store_keeps_its_data_and_no_journal() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = OpenOptions::new(Durability::Process, 1);
        let store = Fjall.open(directory.path(), &options).expect("it opens");
        store.profiles().insert(generate::profile(1, 1)).expect("it inserts");
        store.settle().expect("it settles");
        store.close().expect("it closes");
        let journals = directory.path().read_dir().expect("its files").map(|file| file.expect("a file"));
        let journals = journals.filter(|file| file.path().extension().is_some_and(|extension| extension == "jnl"));
        assert_eq!(journals.map(|file| file.metadata().expect("a file").len()).collect::<Vec<_>>(), [0]);
        let store = Fjall.open(directory.path(), &options).expect("it opens again");
        assert_eq!(store.profiles().count().expect("it counts"), 1);
    }

    fn open(dir: &Path) -> FjallKv {
        FjallKv::open(dir, &OpenOptions::new(Durability::Process, 1)).expect("it opens")
    }
}
