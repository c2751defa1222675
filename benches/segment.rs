//! Building a segment of settled entries: `cargo bench --bench segment`.
//!
//! The records of a hundred thousand profiles, and the entries of two of their indexes, each in a tree of its own: what a
//! flush and a merge do, from sorted entries to a file. Rates are of keys and values as they were committed; beside
//! packed columns stand the same bytes without a layout. Files go to memory where there is a directory for that, so that
//! no disk is measured.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use parking_lot::Mutex;
use profilestore::bench::generate;
use profilestore::engine::{Database, Durability, Exclusive, Layout, Options, Snapshot};
use profilestore::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, Stored, TreeId};
use profilestore::store::{Repository, Result};

const PROFILES: i64 = 100_000;
const SEED: i32 = 570_123_434;
/// Entries of one commit.
const TOGETHER: usize = 1000;
const TREES: [&str; 3] = ["profiles", "profiles.email", "profiles.reputation"];

/// What one tree holds, in order, and what it is made of.
struct Entries {
    layout: Layout,
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Entries {
    fn bytes(&self) -> usize {
        self.pairs.iter().map(|(key, value)| key.len() + value.len()).sum()
    }
}

/// By name of the tree, as a repository commits them.
static ENTRIES: LazyLock<BTreeMap<String, Entries>> = LazyLock::new(|| {
    let files = directory();
    let kv = Arc::new(Recorder { database: database(files.path()), layouts: Mutex::default() });
    let profiles = Repository::open(Arc::clone(&kv)).expect("a new collection");
    for id in 1..=PROFILES {
        profiles.insert(&generate::profile(id, SEED)).expect("a new profile");
    }
    let layouts = kv.layouts.lock().clone();
    layouts
        .into_iter()
        .map(|(name, (tree, layout))| (name, Entries { layout, pairs: pairs(&kv.database, tree) }))
        .collect()
});

fn pairs(database: &Database, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    let visit = |key: &[u8], value: Stored<'_>| {
        pairs.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    database.snapshot().visit(tree, &KeyRange::all(), Direction::Forward, visit).expect("it reads");
    pairs
}

fn main() {
    LazyLock::force(&ENTRIES);
    divan::main();
}

#[divan::bench(args = TREES)]
fn columns(bencher: Bencher, tree: &str) {
    let entries = &ENTRIES[tree];
    build(bencher, entries, &entries.layout);
}

#[divan::bench(args = TREES)]
fn opaque(bencher: Bencher, tree: &str) {
    build(bencher, &ENTRIES[tree], &Layout::opaque());
}

/// Times the flush of a delta with all entries, which is the only one: they are settled by it.
fn build(bencher: Bencher, entries: &Entries, layout: &Layout) {
    let fill = || {
        let files = directory();
        let database = database(files.path());
        let tree = database.tree_with("tree", layout).expect("a new tree");
        for pairs in entries.pairs.chunks(TOGETHER) {
            let mut batch = Batch::new();
            for (key, value) in pairs {
                batch.put(tree, key, value);
            }
            database.commit(&batch).expect("it commits");
        }
        (files, database)
    };
    bencher
        .counter(BytesCount::new(entries.bytes()))
        .counter(ItemsCount::new(entries.pairs.len()))
        .with_inputs(fill)
        .bench_refs(|(_, database)| database.flush().expect("it flushes"));
}

/// In memory, if the system has a place for that.
fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}

/// Takes everything into one delta.
fn database(dir: &Path) -> Database {
    let options =
        Options { durability: Durability::None, delta_bytes: 1 << 30, memory_bytes: 8 << 30, ..Options::default() };
    Database::open(dir, options).expect("a new database")
}

/// A database that tells what its trees are made of.
struct Recorder {
    database: Database,
    layouts: Mutex<BTreeMap<String, (TreeId, Layout)>>,
}

impl KvRead for Recorder {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        KvRead::get(&self.database, tree, key, read)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        KvRead::scan(&self.database, tree, range, direction, visit)
    }
}

impl Kv for Recorder {
    type Snapshot<'a> = Snapshot<'a>;
    type Writer<'a> = Exclusive<'a>;

    fn tree(&self, name: &str) -> Result<TreeId> {
        Kv::tree(&self.database, name)
    }

    fn tree_with(&self, name: &str, layout: &Layout) -> Result<TreeId> {
        let tree = Kv::tree_with(&self.database, name, layout)?;
        self.layouts.lock().insert(name.to_owned(), (tree, layout.clone()));
        Ok(tree)
    }

    fn snapshot(&self) -> Result<Snapshot<'_>> {
        Kv::snapshot(&self.database)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        Kv::commit(&self.database, batch)
    }

    fn writer(&self) -> Exclusive<'_> {
        Kv::writer(&self.database)
    }
}
