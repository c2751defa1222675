//! fjall, through the same repository, codec and keys as our own engine.
//!
//! A tree is a keyspace; a batch is one of fjall's, which is atomic across keyspaces. Class `process` writes each
//! commit to the file before it is acknowledged (`PersistMode::Buffer` flushes the journal's own buffer), `sync` syncs
//! it as well, `none` leaves it in the buffer.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy};
use fjall::{Database, Guard, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable};
use parking_lot::{Mutex, MutexGuard};

use super::{Contender, Durability, OpenOptions, OpenStore};
use crate::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, TreeId};
use crate::store::{Error, ProfileStore, Repository, Result as StoreResult};

const NAME: &str = "fjall";
/// Of the release built against, which does not tell its own.
const VERSION: &str = "3.1.13";
/// Its documentation asks for a fifth of memory, or more where all data fits.
const CACHE_BYTES: u64 = 512 << 20;
/// The largest it recommends.
const MEMTABLE_BYTES: u64 = 64 << 20;
/// Buckets for each entry of a block: the most its documentation calls typical.
const HASH_RATIO: f32 = 1.0;
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
        let kv = FjallKv::open(dir, options.durability)?;
        Ok(Box::new(OpenFjall { repository: Repository::open(Arc::new(kv))? }))
    }
}

struct OpenFjall {
    repository: Repository<FjallKv>,
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
        kv.database.persist(PersistMode::SyncAll).context("syncing the journal")
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.repository.kv().database.persist(PersistMode::Buffer).context("writing the journal")
    }
}

/// fjall behind the seam.
pub struct FjallKv {
    database: Database,
    /// By the number of their [`TreeId`]; only ever grows.
    keyspaces: ArcSwap<Vec<Keyspace>>,
    /// What a commit waits for; `None` waits for nothing.
    persist: Option<PersistMode>,
    writer: Mutex<()>,
}

impl FjallKv {
    /// Opens or makes the database in `dir`.
    pub fn open(dir: &Path, durability: Durability) -> StoreResult<Self> {
        let persist = match durability {
            Durability::None => None,
            Durability::Process => Some(PersistMode::Buffer),
            Durability::Sync => Some(PersistMode::SyncAll),
        };
        let database = Database::builder(dir).cache_size(CACHE_BYTES).open().map_err(foreign)?;
        Ok(Self { database, keyspaces: ArcSwap::default(), persist, writer: Mutex::new(()) })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let persist = self.persist.map_or_else(|| "none".to_owned(), |mode| format!("{mode:?}"));
        let settings = [
            ("cache_bytes", self.database.cache_capacity().to_string()),
            ("data_block_bytes", "4096 (default)".to_owned()),
            ("data_block_compression", "none on levels 0 and 1, lz4 below (default)".to_owned()),
            ("data_block_hash_ratio", HASH_RATIO.to_string()),
            ("filter", "bloom, false positive rate 0.0001 on level 0, 10 bits a key below".to_owned()),
            ("memtable_bytes_max", MEMTABLE_BYTES.to_string()),
            ("persist", persist),
            ("stabilize", "rotate every memtable, wait, major compaction".to_owned()),
        ];
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn keyspace(&self, tree: TreeId) -> StoreResult<Keyspace> {
        let keyspaces = self.keyspaces.load();
        keyspaces.get(tree.0 as usize).cloned().ok_or_else(|| foreign(format!("there is no tree {}", tree.0)))
    }

    /// Flushes every memtable and merges each keyspace into its last level.
    fn merge(&self) -> fjall::Result<()> {
        let keyspaces = self.keyspaces.load_full();
        for keyspace in keyspaces.iter() {
            keyspace.rotate_memtable()?;
        }
        for keyspace in keyspaces.iter() {
            while keyspace.sealed_memtable_count() > 0 {
                thread::sleep(POLL);
            }
        }
        while self.database.active_compactions() > 0 {
            thread::sleep(POLL);
        }
        keyspaces.iter().try_for_each(Keyspace::major_compact)
    }
}

/// Keys are whole and known to be there far more often than not, blocks stay in the cache: the case its hash index is
/// for.
fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .data_block_hash_ratio_policy(HashRatioPolicy::all(HASH_RATIO))
        .filter_policy(FilterPolicy::new([
            FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
            FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0)),
        ]))
}

impl KvRead for FjallKv {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> StoreResult<Option<R>> {
        let value = self.keyspace(tree)?.get(key).map_err(foreign)?;
        Ok(value.map(|value| read(&value)))
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let keyspace = self.keyspace(tree)?;
        walk(range, direction, |bounds| keyspace.range::<&[u8], _>(bounds), visit)
    }
}

impl Kv for FjallKv {
    type Snapshot<'a> = FjallSnapshot<'a>;

    fn tree(&self, name: &str) -> StoreResult<TreeId> {
        let _turn = self.writer.lock();
        let mut keyspaces = self.keyspaces.load().as_ref().clone();
        if let Some(known) = keyspaces.iter().position(|keyspace| keyspace.name().as_bytes() == name.as_bytes()) {
            return Ok(TreeId(known as u32));
        }
        keyspaces.push(self.database.keyspace(name, keyspace_options).map_err(foreign)?);
        let tree = TreeId(keyspaces.len() as u32 - 1);
        self.keyspaces.store(Arc::new(keyspaces));
        Ok(tree)
    }

    fn snapshot(&self) -> StoreResult<FjallSnapshot<'_>> {
        Ok(FjallSnapshot { kv: self, snapshot: self.database.snapshot() })
    }

    fn commit(&self, batch: &Batch) -> StoreResult<()> {
        let database = self.database.clone();
        let mut writes = OwnedWriteBatch::with_capacity(database, batch.len()).durability(self.persist);
        let keyspaces = self.keyspaces.load();
        for operation in batch.iter() {
            let keyspace = keyspaces
                .get(operation.tree.0 as usize)
                .ok_or_else(|| foreign(format!("there is no tree {}", operation.tree.0)))?;
            match operation.value {
                Some(value) => writes.insert(keyspace, operation.key, value),
                None => writes.remove(keyspace, operation.key),
            }
        }
        writes.commit().map_err(foreign)
    }

    fn writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock()
    }
}

/// A view of all keyspaces at one moment.
pub struct FjallSnapshot<'a> {
    kv: &'a FjallKv,
    snapshot: fjall::Snapshot,
}

impl KvRead for FjallSnapshot<'_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> StoreResult<Option<R>> {
        let value = self.snapshot.get(&self.kv.keyspace(tree)?, key).map_err(foreign)?;
        Ok(value.map(|value| read(&value)))
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> StoreResult<()> {
        let keyspace = self.kv.keyspace(tree)?;
        walk(range, direction, |bounds| self.snapshot.range::<&[u8], _>(&keyspace, bounds), visit)
    }
}

type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Hands the entries `open` gives for `range` to `visit`, in `direction`, until it breaks.
fn walk<'a>(
    range: &'a KeyRange,
    direction: Direction,
    open: impl FnOnce(Bounds<'a>) -> fjall::Iter,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> StoreResult<()> {
    if holds_nothing(range) {
        return Ok(());
    }
    let mut entries = open((range.lower.as_ref().map(Vec::as_slice), range.upper.as_ref().map(Vec::as_slice)));
    let mut next = || match direction {
        Direction::Forward => entries.next(),
        Direction::Reverse => entries.next_back(),
    };
    while let Some(entry) = next() {
        let (key, value) = Guard::into_inner(entry).map_err(foreign)?;
        if visit(&key, &value).is_break() {
            break;
        }
    }
    Ok(())
}

/// Whether the bounds lie the wrong way round, which the seam allows and fjall does not promise to bear.
fn holds_nothing(range: &KeyRange) -> bool {
    match (&range.lower, &range.upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => {
            lower >= upper
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
fn foreign(error: impl ToString) -> Error {
    Error::Foreign { store: NAME, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_shown_is_the_one_built_against() {
        let locked = include_str!("../../../Cargo.lock");
        assert!(locked.contains(&format!("name = \"fjall\"\nversion = \"{VERSION}\"\n")));
    }

    fn opened(directory: &tempfile::TempDir) -> FjallKv {
        FjallKv::open(directory.path(), Durability::Process).expect("it opens")
    }

    fn keys(kv: &impl KvRead, tree: TreeId, range: &KeyRange, direction: Direction) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        kv.scan(tree, range, direction, |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })
        .expect("it scans");
        keys
    }

    #[test]
    fn a_batch_reaches_every_tree_and_survives_a_reopen() {
        let directory = tempfile::tempdir().expect("a directory");
        for is_reopened in [false, true] {
            let kv = opened(&directory);
            let trees = [kv.tree("one").expect("a tree"), kv.tree("two").expect("a tree")];
            assert_eq!(kv.tree("one").expect("a tree"), trees[0]);
            if !is_reopened {
                let mut batch = Batch::new();
                for tree in trees {
                    batch.put(tree, b"key", b"value");
                }
                batch.put(trees[0], b"gone", b"");
                batch.delete(trees[0], b"gone");
                kv.commit(&batch).expect("it commits");
            }
            for tree in trees {
                assert_eq!(kv.get(tree, b"key", <[u8]>::to_vec).expect("it reads"), Some(b"value".to_vec()));
                assert_eq!(kv.get(tree, b"gone", <[u8]>::len).expect("it reads"), None);
            }
        }
    }

    #[test]
    fn a_snapshot_does_not_see_later_commits_even_after_a_merge() {
        let directory = tempfile::tempdir().expect("a directory");
        let kv = opened(&directory);
        let tree = kv.tree("tree").expect("a tree");
        let put = |key: &[u8]| {
            let mut batch = Batch::new();
            batch.put(tree, key, b"");
            kv.commit(&batch).expect("it commits");
        };
        put(b"a");
        let snapshot = kv.snapshot().expect("a snapshot");
        put(b"b");
        kv.merge().expect("it merges");
        assert_eq!(keys(&snapshot, tree, &KeyRange::all(), Direction::Forward), [b"a"]);
        assert_eq!(snapshot.get(tree, b"b", <[u8]>::len).expect("it reads"), None);
        assert_eq!(keys(&kv, tree, &KeyRange::all(), Direction::Reverse), [b"b", b"a"]);
    }

    #[test]
    fn scans_keep_to_their_bounds_both_ways() {
        let directory = tempfile::tempdir().expect("a directory");
        let kv = opened(&directory);
        let tree = kv.tree("tree").expect("a tree");
        let mut batch = Batch::new();
        (0..10_u8).for_each(|key| batch.put(tree, &[key], b""));
        kv.commit(&batch).expect("it commits");
        let range = KeyRange::of(&[2][..]..&[5][..]);
        assert_eq!(keys(&kv, tree, &range, Direction::Forward), [[2], [3], [4]]);
        assert_eq!(keys(&kv, tree, &range, Direction::Reverse), [[4], [3], [2]]);
        for reversed in [KeyRange::of(&[5][..]..&[2][..]), KeyRange::of(&[5][..]..&[5][..])] {
            assert!(keys(&kv, tree, &reversed, Direction::Forward).is_empty());
        }
    }
}
