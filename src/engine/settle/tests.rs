use super::*;
use crate::engine::batch::Batch;
use crate::engine::disk::Disk;
use crate::engine::disk::sim::{Random, SimDisk};
use crate::engine::numbers::FileNumbers;
use crate::engine::options::Options;
use crate::engine::run_writer::RunWriter;
use crate::engine::{Database, Durability, Field, TreeStats};

const ENTRIES: u64 = 40_000;

fn open(disk: &SimDisk, options: &Options) -> Database {
    Database::open_on(Arc::new(disk.clone()), options.clone()).expect("opens")
}

fn numbers(database: &Database) -> TreeId {
    let layout = Layout { key: vec![Field::BigEndian(8)], value: vec![Field::Varint, Field::Rest] };
    database.tree_with("numbers", &layout).expect("a tree")
}

fn put(database: &Database, tree: TreeId, keys: impl IntoIterator<Item = u64>, value: u8) {
    for key in keys {
        let mut batch = Batch::new();
        batch.put(tree, &key.to_be_bytes(), &[value, value]);
        database.commit_with(&batch, Durability::None).expect("commits");
    }
}

fn stats(database: &Database, tree: TreeId) -> TreeStats {
    database.stats().trees.swap_remove(tree.0 as usize)
}

fn is_segment(name: &str) -> bool {
    name.strip_suffix(".seg").is_some()
}

/// Every number once, in no order.
fn shuffled(seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut keys: Vec<_> = (0..ENTRIES).collect();
    (1..keys.len()).for_each(|end| keys.swap(end, random.below(end + 1)));
    keys
}

#[test]
fn a_tree_that_is_cut_for_several_threads_is_whole() {
    let disk = SimDisk::new();
    let database = open(&disk, &Options { delta_bytes: 1 << 20, settle_threads: 3, ..Options::default() });
    let tree = numbers(&database);
    put(&database, tree, shuffled(1), 1);
    database.flush().expect("flushes");
    put(&database, tree, shuffled(2).into_iter().filter(|key| key % 3 == 0), 2);
    for key in (0..ENTRIES).filter(|key| key % 10 == 7) {
        let mut batch = Batch::new();
        batch.delete(tree, &key.to_be_bytes());
        database.commit_with(&batch, Durability::None).expect("commits");
    }
    database.settle().expect("settles");
    assert!(stats(&database, tree).segments > 1, "it was not cut");
    assert_eq!(stats(&database, tree).runs, 1);
    let mut expected = (0..ENTRIES).filter(|key| key % 10 != 7);
    let mut scan = database.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
    while let Some((key, value)) = scan.next().expect("reads") {
        let number = expected.next().expect("no entry too many");
        assert_eq!((key, value[0]), (&number.to_be_bytes()[..], if number % 3 == 0 { 2 } else { 1 }));
    }
    assert_eq!(expected.next(), None);
    assert!(database.verify().expect("verifies").problems.is_empty());
    database.close().expect("closes");
}

#[test]
fn what_comes_behind_a_settled_run_does_not_rewrite_it() {
    let disk = SimDisk::new();
    let database = open(&disk, &Options { settle_threads: 1, ..Options::default() });
    let tree = numbers(&database);
    put(&database, tree, 0..900, 1);
    database.settle().expect("settles");
    let before = disk.list().expect("lists");
    put(&database, tree, 900..1000, 2);
    database.settle().expect("settles");
    let after = disk.list().expect("lists");
    let segment = before.iter().find(|name| is_segment(name)).expect("one was written");
    assert!(after.contains(segment), "{segment} was rewritten");
    assert_eq!((stats(&database, tree).runs, stats(&database, tree).segments), (1, 2));
    assert_eq!(database.snapshot().count(tree, &KeyRange::all()).expect("counts"), 1000);
    put(&database, tree, [500], 3);
    database.settle().expect("settles");
    assert!(!disk.list().expect("lists").contains(segment), "an old value stayed");
    assert_eq!(database.snapshot().count(tree, &KeyRange::all()).expect("counts"), 1000);
}

#[test]
fn a_settled_database_is_left_as_it_is() {
    let disk = SimDisk::new();
    let database = open(&disk, &Options::default());
    let tree = numbers(&database);
    put(&database, tree, 0..100, 1);
    database.settle().expect("settles");
    let calls = disk.trace().len();
    database.settle().expect("settles");
    assert_eq!(disk.trace().len(), calls);
}

/// A tree whose entries are all deleted used to be one without a run, and so it has to stay.
#[test]
fn a_tree_of_which_nothing_is_left_has_no_run() {
    let disk = SimDisk::new();
    let database = open(&disk, &Options::default());
    let tree = numbers(&database);
    put(&database, tree, 0..100, 1);
    database.settle().expect("settles");
    for key in 0..100_u64 {
        let mut batch = Batch::new();
        batch.delete(tree, &key.to_be_bytes());
        database.commit(&batch).expect("commits");
    }
    database.settle().expect("settles");
    assert_eq!((stats(&database, tree).runs, stats(&database, tree).segments), (0, 0));
    database.close().expect("closes");
    assert_eq!(open(&disk, &Options::default()).snapshot().count(tree, &KeyRange::all()).expect("counts"), 0);
}

#[test]
fn a_run_that_is_given_up_leaves_no_file() {
    let disk = SimDisk::new();
    let delta = Arc::new(Delta::new());
    (0..10_000_u64).for_each(|key| delta.insert(&key.to_be_bytes(), key + 1, Some(&[7; 40])));
    let options = Options { segment_bytes: 1 << 10, ..Options::default() };
    let writer = RunWriter { disk: &disk, database_id: 1, options: &options, numbers: &FileNumbers::new(1) };
    let write = |gives_up: &dyn Fn() -> bool| {
        let mut merge = Merge::new([&delta].into_iter(), [].into_iter(), Reading::Once, Direction::Forward);
        let mut retention = Retention::new(0, false);
        writer.write(&Arc::default(), &mut merge, &KeyRange::all(), &mut retention, gives_up).expect("nothing fails")
    };
    let looks = AtomicUsize::new(0);
    assert_eq!(write(&|| looks.fetch_add(1, Ordering::Relaxed) == 3), None);
    assert!(!disk.list().expect("lists").iter().any(|name| is_segment(name)));
    assert!(write(&|| false).is_some_and(|segments| segments.len() > 1));
}
