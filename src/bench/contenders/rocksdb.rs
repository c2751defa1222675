//! `RocksDB`, through the same repository, codec and keys as our own engine, twice.
//!
//! `rocksdb` is one database in which a tree is a column family, and a batch is one of `RocksDB`'s, which is atomic
//! across them. `rocksdb-many` is one database for each tree, as in the published run: a commit is a batch for each
//! database it changes, one after another, and a crash between two of them leaves a record without its index entries or
//! entries without their record. A lock keeps a snapshot from falling between them. All else is the same in both.
//!
//! Class `process` hands each commit to the log's file and does not sync it, `sync` syncs it, `none` writes no log; the
//! column families of a database are then flushed together, so that what survives in it is the state after some commit.
//!
//! Settings are those its tuning guide gives for data that fits into memory. They are read back from the options file
//! that the library writes into each database; so is the version, since a program linked to the system's library runs
//! with whichever is installed.

mod options;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use parking_lot::{Mutex, RwLock};
use rocksdb::{
    BottommostLevelCompaction, BoundColumnFamily, ColumnFamilyDescriptor, CompactOptions, DBWithThreadMode,
    DEFAULT_COLUMN_FAMILY_NAME, MultiThreaded, Options, ReadOptions, SnapshotWithThreadMode, WriteBatch, WriteOptions,
};

use super::ordered::{self, Trees, foreign};
use super::{Contender, Durability, OpenOptions, OpenStore, settings};
use crate::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, Locked, Stored, TreeId};
use crate::store::{ProfileStore, Repository, Result as StoreResult};

const NAME: &str = "rocksdb";

type Database = DBWithThreadMode<MultiThreaded>;

/// The contender, in one of its two forms.
pub struct Rocksdb {
    databases: Databases,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Databases {
    /// One database, one column family for each tree.
    One,
    /// One database for each tree.
    Many,
}

impl Rocksdb {
    /// One database, one column family for each tree.
    pub const ONE: Self = Self { databases: Databases::One };
    /// One database for each tree.
    pub const MANY: Self = Self { databases: Databases::Many };
}

impl Contender for Rocksdb {
    fn name(&self) -> &'static str {
        match self.databases {
            Databases::One => NAME,
            Databases::Many => "rocksdb-many",
        }
    }

    fn version(&self) -> String {
        static VERSION: OnceLock<String> = OnceLock::new();
        VERSION
            .get_or_init(|| options::version_that_runs().unwrap_or_else(|error| format!("unknown: {error:#}")))
            .clone()
    }

    fn classes(&self) -> &'static [Durability] {
        &[Durability::None, Durability::Process, Durability::Sync]
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        let kv = RocksKv::open(dir, self.databases, options)?;
        Ok(Box::new(OpenRocksdb { repository: Repository::open(Arc::new(kv))? }))
    }
}

struct OpenRocksdb {
    repository: Repository<RocksKv>,
}

impl OpenStore for OpenRocksdb {
    fn profiles(&self) -> &dyn ProfileStore {
        &self.repository
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.repository.kv().settings()
    }

    fn stabilize(&self) -> Result<bool> {
        self.settle().map(|()| true)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.repository.kv().merge()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let kv = self.repository.kv();
        match kv.durability {
            // Nothing else keeps what is in the memtables.
            Durability::None => Ok(kv.flush()?),
            Durability::Process | Durability::Sync => Ok(()),
        }
    }
}

/// `RocksDB` behind the seam.
pub struct RocksKv {
    dir: PathBuf,
    durability: Durability,
    options: Options,
    writes: WriteOptions,
    reads: ReadOptions,
    /// The database of all trees, in that form.
    together: Option<Arc<Database>>,
    trees: Trees<Tree>,
    /// Keeps snapshots of several databases and commits to them apart.
    whole: RwLock<()>,
    writer: Mutex<()>,
}

struct Tree {
    database: Arc<Database>,
    family: String,
}

impl Tree {
    /// The handle of its column family, which the database looks up by name, in 30 ns.
    fn family(&self) -> StoreResult<Arc<BoundColumnFamily<'_>>> {
        let family = self.database.cf_handle(&self.family);
        family.ok_or_else(|| foreign(NAME)(format!("there is no column family {}", self.family)))
    }
}

impl RocksKv {
    fn open(dir: &Path, databases: Databases, options: &OpenOptions) -> StoreResult<Self> {
        let durability = options.durability;
        let options = options::database_options(options);
        let together = match databases {
            Databases::One => Some(Arc::new(open_database(dir, &options).map_err(foreign(NAME))?)),
            Databases::Many => None,
        };
        let mut writes = WriteOptions::default();
        writes.set_sync(durability == Durability::Sync);
        writes.disable_wal(durability == Durability::None);
        Ok(Self {
            dir: dir.to_owned(),
            durability,
            options,
            writes,
            reads: ReadOptions::default(),
            together,
            trees: Trees::new(NAME),
            whole: RwLock::new(()),
            writer: Mutex::new(()),
        })
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        let database = self.databases().next().context("no tree was opened")?;
        let cache_bytes = database.property_value("rocksdb.block-cache-capacity")?.context("it tells no capacity")?;
        let (databases, atomicity) = match self.together {
            Some(_) => ("one, a column family for each tree", "record and index entries in one batch"),
            None => ("one for each tree, as published", "none: a batch for each database, one after another"),
        };
        let log = match self.durability {
            Durability::None => "off",
            Durability::Process => "on, not synced",
            Durability::Sync => "on, synced by each commit",
        };
        let mut settings = settings([
            ("atomicity", atomicity.to_owned()),
            ("block_cache_bytes", cache_bytes),
            ("databases", databases.to_owned()),
            ("filter", format!("bloom, {} bits a key", options::FILTER_BITS_PER_KEY)),
            ("log", log.to_owned()),
            ("reads", "pinned; many rows by batched multi-get".to_owned()),
            ("stabilize and settle", "flush, compact all with the last level forced".to_owned()),
        ]);
        settings.extend(options::read_back(database.path())?);
        Ok(settings)
    }

    /// Every database once.
    fn databases(&self) -> impl Iterator<Item = &Database> {
        let count = if self.together.is_some() { 1 } else { usize::MAX };
        self.trees.iter().map(|tree| &*tree.database).take(count)
    }

    /// The place of the tree's database among them.
    fn home(&self, tree: TreeId) -> usize {
        if self.together.is_some() { 0 } else { tree.0 as usize }
    }

    fn make_tree(&self, name: &str) -> std::result::Result<Tree, rocksdb::Error> {
        let Some(database) = &self.together else {
            let database = Arc::new(open_database(&self.dir.join(name), &self.options)?);
            return Ok(Tree { database, family: DEFAULT_COLUMN_FAMILY_NAME.to_owned() });
        };
        if database.cf_handle(name).is_none() {
            database.create_cf(name, &self.options)?;
        }
        Ok(Tree { database: Arc::clone(database), family: name.to_owned() })
    }

    fn flush(&self) -> StoreResult<()> {
        self.trees.iter().try_for_each(|tree| tree.database.flush_cf(&tree.family()?).map_err(foreign(NAME)))
    }

    /// Flushes every memtable and merges each tree into its last level.
    fn merge(&self) -> StoreResult<()> {
        self.flush()?;
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        for tree in self.trees.iter() {
            tree.database.compact_range_cf_opt(&tree.family()?, None::<&[u8]>, None::<&[u8]>, &options);
        }
        Ok(())
    }
}

/// Opens or makes the database in `dir`, with all column families it has.
fn open_database(dir: &Path, options: &Options) -> std::result::Result<Database, rocksdb::Error> {
    let is_there = dir.join("CURRENT").exists();
    let families =
        if is_there { Database::list_cf(options, dir)? } else { vec![DEFAULT_COLUMN_FAMILY_NAME.to_owned()] };
    let families = families.into_iter().map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
    Database::open_cf_descriptors(options, dir, families)
}

impl KvRead for RocksKv {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
        get(self.trees.of(tree)?, key, &self.reads, read)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        scan(self.trees.of(tree)?, range, direction, ReadOptions::default(), visit)
    }
}

impl Kv for RocksKv {
    type Snapshot<'a> = RocksSnapshot<'a>;
    type Writer<'a> = Locked<'a, Self>;

    fn tree(&self, name: &str) -> StoreResult<TreeId> {
        self.trees.named(name, || self.make_tree(name).map_err(foreign(NAME)))
    }

    fn snapshot(&self) -> StoreResult<RocksSnapshot<'_>> {
        let _whole = self.together.is_none().then(|| self.whole.read());
        Ok(RocksSnapshot { kv: self, views: self.databases().map(View::of).collect() })
    }

    fn commit(&self, batch: &Batch) -> StoreResult<()> {
        let mut writes: Vec<_> = self.databases().map(|_| WriteBatch::default()).collect();
        for operation in batch.iter() {
            let family = self.trees.of(operation.tree)?.family()?;
            let writes = &mut writes[self.home(operation.tree)];
            match operation.value {
                Some(value) => writes.put_cf(&family, operation.key, value),
                None => writes.delete_cf(&family, operation.key),
            }
        }
        let _whole = self.together.is_none().then(|| self.whole.write());
        let mut changed = self.databases().zip(writes).filter(|(_, writes)| !writes.is_empty());
        changed.try_for_each(|(database, writes)| database.write_opt(writes, &self.writes)).map_err(foreign(NAME))
    }

    fn writer(&self) -> Locked<'_, Self> {
        Locked::new(self, &self.writer)
    }
}

/// A view of every database.
pub struct RocksSnapshot<'a> {
    kv: &'a RocksKv,
    /// One for each database, in their order.
    views: Vec<View<'a>>,
}

struct View<'a> {
    /// What the point reads go by; names the snapshot.
    reads: ReadOptions,
    snapshot: SnapshotWithThreadMode<'a, Database>,
}

impl<'a> View<'a> {
    fn of(database: &'a Database) -> Self {
        let snapshot = database.snapshot();
        Self { reads: reads_of(&snapshot), snapshot }
    }
}

fn reads_of(snapshot: &SnapshotWithThreadMode<'_, Database>) -> ReadOptions {
    let mut reads = ReadOptions::default();
    reads.set_snapshot(snapshot);
    reads
}

impl RocksSnapshot<'_> {
    /// A tree, and the view of the database it is in.
    fn of(&self, tree: TreeId) -> StoreResult<(&Tree, &View<'_>)> {
        let view = self.views.get(self.kv.home(tree)).ok_or("the tree is younger than the snapshot");
        Ok((self.kv.trees.of(tree)?, view.map_err(foreign(NAME))?))
    }
}

impl KvRead for RocksSnapshot<'_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
        let (tree, view) = self.of(tree)?;
        get(tree, key, &view.reads, read)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let (tree, view) = self.of(tree)?;
        scan(tree, range, direction, reads_of(&view.snapshot), visit)
    }

    /// One multi-get: two thirds of the time that as many single ones take.
    fn get_many(
        &self,
        tree: TreeId,
        count: usize,
        mut key: impl FnMut(usize, &mut Vec<u8>),
        mut read: impl FnMut(usize, Option<Stored<'_>>) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let (tree, view) = self.of(tree)?;
        let (mut keys, mut buffer) = (Vec::new(), Vec::new());
        let mut ends = Vec::with_capacity(count);
        for i in 0..count {
            buffer.clear();
            key(i, &mut buffer);
            keys.extend_from_slice(&buffer);
            ends.push(keys.len());
        }
        let starts = [0].into_iter().chain(ends.iter().copied());
        let keys = starts.zip(&ends).map(|(start, &end)| &keys[start..end]);
        let values = tree.database.batched_multi_get_cf_opt(&tree.family()?, keys, false, &view.reads);
        let mut i = 0;
        ordered::walk(NAME, values.into_iter(), |value| {
            let flow = read(i, value?.as_deref().map(Stored::Bytes));
            i += 1;
            Ok::<_, rocksdb::Error>(flow)
        })
    }
}

fn get<R>(tree: &Tree, key: &[u8], reads: &ReadOptions, read: impl FnOnce(Stored<'_>) -> R) -> StoreResult<Option<R>> {
    let value = tree.database.get_pinned_cf_opt(&tree.family()?, key, reads).map_err(foreign(NAME))?;
    Ok(value.map(|value| read(Stored::Bytes(&value))))
}

/// `RocksDB` is told the bounds, so that it reads no block behind them; it takes the lower one inclusive and the upper one
/// exclusive. The key right behind another is that and a zero.
fn scan(
    tree: &Tree,
    range: &KeyRange,
    direction: Direction,
    mut reads: ReadOptions,
    mut visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
) -> StoreResult<()> {
    let Some((lower, upper)) = ordered::bounds(range) else { return Ok(()) };
    match lower {
        Bound::Included(key) => reads.set_iterate_lower_bound(key),
        Bound::Excluded(key) => reads.set_iterate_lower_bound([key, &[0]].concat()),
        Bound::Unbounded => {}
    }
    match upper {
        Bound::Included(key) => reads.set_iterate_upper_bound([key, &[0]].concat()),
        Bound::Excluded(key) => reads.set_iterate_upper_bound(key),
        Bound::Unbounded => {}
    }
    let mut entries = tree.database.raw_iterator_cf_opt(&tree.family()?, reads);
    match direction {
        Direction::Forward => entries.seek_to_first(),
        Direction::Reverse => entries.seek_to_last(),
    }
    while let Some((key, value)) = entries.item() {
        if visit(key, Stored::Bytes(value)).is_break() {
            return Ok(());
        }
        match direction {
            Direction::Forward => entries.next(),
            Direction::Reverse => entries.prev(),
        }
    }
    entries.status().map_err(foreign(NAME))
}

#[cfg(test)]
mod tests {
    use super::super::kv_tests;
    use super::*;
    use crate::bench::generate;

    fn open(dir: &Path, databases: Databases, durability: Durability) -> RocksKv {
        RocksKv::open(dir, databases, &OpenOptions::new(durability, 1)).expect("it opens")
    }

    #[test]
    fn it_keeps_the_promises_of_the_seam_in_one_database_and_in_many() {
        for databases in [Databases::One, Databases::Many] {
            kv_tests::keeps_the_promises_of_the_seam(|dir| open(dir, databases, Durability::Process));
        }
    }

    #[test]
    fn settings_tell_which_is_atomic_and_what_the_library_runs_with() {
        for (databases, atomicity) in [(Databases::One, "one batch"), (Databases::Many, "none")] {
            let directory = tempfile::tempdir().expect("a directory");
            let kv = open(directory.path(), databases, Durability::Process);
            kv.tree("tree").expect("a tree");
            let settings = kv.settings().expect("its settings");
            assert!(settings["atomicity"].contains(atomicity), "{}", settings["atomicity"]);
            assert_eq!(settings["block_cache_bytes"], (512 << 20).to_string());
            assert_eq!(settings["compression"], "kLZ4Compression");
        }
    }

    #[test]
    fn a_memory_budget_is_divided_between_the_cache_and_the_memtables() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = OpenOptions { memory_bytes: Some(32 << 20), ..OpenOptions::new(Durability::Process, 1 << 30) };
        let kv = RocksKv::open(directory.path(), Databases::One, &options).expect("it opens");
        kv.tree("tree").expect("a tree");
        let settings = kv.settings().expect("its settings");
        assert_eq!(settings["block_cache_bytes"], (24 << 20).to_string());
        assert_eq!(settings["db_write_buffer_size"], (8 << 20).to_string());
        assert_eq!(settings["cache_index_and_filter_blocks"], "false");
    }

    #[test]
    fn without_a_log_a_closed_store_keeps_its_data() {
        let options = OpenOptions::new(Durability::None, 1);
        for contender in [Rocksdb::ONE, Rocksdb::MANY] {
            let directory = tempfile::tempdir().expect("a directory");
            let store = contender.open(directory.path(), &options).expect("it opens");
            store.profiles().insert(generate::profile(1, 1)).expect("it inserts");
            store.close().expect("it closes");
            let store = contender.open(directory.path(), &options).expect("it opens again");
            assert_eq!(store.profiles().count().expect("it counts"), 1);
        }
    }
}
