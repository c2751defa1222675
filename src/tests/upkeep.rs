//! What a database keeps while it lives: logs, old states, and what was deleted; and what is left of one that is closed.

use std::fs;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::alone::{alone_dir, run_alone};
use crate::bench::torture::history::tiny;
use crate::engine::disk::Disk;
use crate::engine::disk::sim::SimDisk;
use crate::engine::{Batch, Compression, Database, Direction, Durability, KeyRange, Options, TreeId};

fn open(disk: &SimDisk, options: Options) -> Database {
    Database::open_on(Arc::new(disk.clone()), options).expect("opens")
}

/// Puts or deletes keys that are numbers, a thousand at a time.
fn write(database: &Database, tree: TreeId, numbers: Range<u32>, value: Option<&[u8]>) {
    let mut batch = Batch::new();
    for first in numbers.clone().step_by(1_000) {
        batch.clear();
        for number in first..numbers.end.min(first + 1_000) {
            match value {
                Some(value) => batch.put(tree, &number.to_be_bytes(), value),
                None => batch.delete(tree, &number.to_be_bytes()),
            }
        }
        database.commit(&batch).expect("commits");
    }
}

fn bytes_on(disk: &SimDisk) -> usize {
    disk.state().contents().values().map(Vec::len).sum()
}

/// Elsewhere a log stayed for as long as any tree had something in it that was not flushed.
#[test]
fn logs_are_bounded_when_one_tree_is_busy_and_a_thousand_are_idle() {
    const DELTA_BYTES: usize = 64 << 10;
    let disk = SimDisk::new();
    let options = Options { delta_bytes: DELTA_BYTES, memory_bytes: 16 << 20, ..Options::default() };
    let most = (options.sealed_max + 2) * DELTA_BYTES * 5 / 4;
    let logs_max = options.sealed_max + 2;
    let database = open(&disk, options);
    let trees: Vec<_> = (0..1_000).map(|name| database.tree(&format!("tree {name}")).expect("a tree")).collect();
    for &tree in &trees {
        write(&database, tree, 0..1, Some(b"idle"));
    }
    for number in 0..20_000_u32 {
        let mut batch = Batch::new();
        batch.put(trees[500], &number.to_be_bytes(), &[7; 50]);
        database.commit(&batch).expect("commits");
        if number % 500 == 0 {
            let names = disk.list().expect("lists").into_iter();
            let logs = names.filter(|name| name.strip_suffix(".wal").is_some()).count();
            assert!(database.stats().log_bytes <= most as u64, "{} bytes, at most {most}", database.stats().log_bytes);
            assert!(logs <= logs_max, "{logs} logs");
        }
    }
    assert!(database.stats().flushes > 20, "{} flushes", database.stats().flushes);
    let killed = open(&SimDisk::from_state(disk.state()), Options::default());
    for &tree in &trees {
        assert!(killed.get(tree, &0_u32.to_be_bytes()).expect("reads").is_some());
    }
}

#[test]
fn the_age_of_the_oldest_snapshot_is_shown_from_when_it_costs_something() {
    const WHILE: Duration = Duration::from_millis(20);
    let disk = SimDisk::new();
    let database = open(&disk, tiny());
    let tree = database.tree("tree").expect("a tree");
    write(&database, tree, 0..10, Some(b"value"));
    let age = || database.stats().oldest_snapshot;
    // The background thread may hold an older state for a moment.
    let ends = || {
        let waits = (0..1_000).take_while(|_| age().is_some()).map(|_| thread::sleep(Duration::from_millis(10)));
        waits.count() < 1_000
    };
    let oldest = database.snapshot();
    assert!(ends(), "it reads the present state");
    database.flush().expect("flushes");
    let first = age().expect("it reads an older one");
    thread::sleep(WHILE);
    let scan_begun = Instant::now();
    let scan = database.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
    for _ in 0..100 {
        write(&database, tree, 0..10, Some(b"newer"));
        database.flush().expect("flushes");
    }
    assert!(age().expect("both do") >= first + WHILE);
    drop(oldest);
    let younger = age().expect("the scan does");
    assert!(younger <= scan_begun.elapsed(), "{younger:?}");
    drop(scan);
    assert!(ends(), "nobody reads anything");
    assert_eq!(database.stats().snapshots, 0);
}

/// What was deleted takes no room after a settle, and nothing is passed over to find that nothing is there.
#[test]
fn a_tree_of_many_keys_that_are_all_deleted_is_empty_after_a_settle() {
    const KEYS: u32 = 300_000;
    let disk = SimDisk::new();
    let options = Options { compression: Compression::None, ..Options::default() };
    let database = open(&disk, options);
    let tree = database.tree("tree").expect("a tree");
    write(&database, tree, 0..KEYS, Some(&[7; 20]));
    database.settle().expect("settles");
    let full = bytes_on(&disk);
    assert!(full > KEYS as usize * 20);
    write(&database, tree, 0..KEYS, None);
    database.settle().expect("settles");
    let left = bytes_on(&disk);
    assert!(left * 20 <= full, "{left} bytes are left of {full}");
    let stats = &database.stats().trees[0];
    assert_eq!((stats.segments, stats.entries, stats.tombstones), (0, 0, 0), "a look at it finds nothing to pass over");
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut scan = database.scan(tree, KeyRange::all(), direction).expect("scans");
        assert_eq!(scan.next().expect("reads"), None);
    }
}

/// The bytes of what was deleted leave the files with the settle, and not before a snapshot of it is gone.
#[test]
fn what_was_deleted_is_in_no_file_after_a_settle() {
    const SECRET: &[u8] = b"somebody@example.org";
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { compression: Compression::None, durability: Durability::Sync, ..Options::default() };
    let database = Database::open(dir.path(), options).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    let is_in_a_file = || {
        let files = fs::read_dir(dir.path()).expect("lists").map(|file| file.expect("an entry").path());
        let contents = files.map(|file| fs::read(file).expect("reads"));
        contents.into_iter().any(|content| content.windows(SECRET.len()).any(|window| window == SECRET))
    };
    let mut batch = Batch::new();
    batch.put(tree, SECRET, SECRET);
    batch.put(tree, b"another", b"value");
    database.commit(&batch).expect("commits");
    assert!(is_in_a_file(), "in the log");
    database.settle().expect("settles");
    assert!(is_in_a_file(), "in a segment");
    let snapshot = database.snapshot();
    batch.clear();
    batch.delete(tree, SECRET);
    database.commit(&batch).expect("commits");
    database.settle().expect("settles");
    assert!(is_in_a_file(), "the snapshot reads it");
    drop(snapshot);
    database.settle().expect("settles");
    assert!(!is_in_a_file());
}

/// What this process has: open files, threads, and bytes of memory.
fn held() -> (usize, usize, usize) {
    let count = |dir: &str| fs::read_dir(dir).expect("lists").count();
    let status = fs::read_to_string("/proc/self/status").expect("reads");
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is told");
    let kilobytes: usize = memory.trim().trim_end_matches(" kB").parse().expect("a number");
    (count("/proc/self/fd"), count("/proc/self/task"), kilobytes << 10)
}

/// Ten thousand where the build is fast, a tenth of them otherwise.
#[test]
fn thousands_of_opens_and_closes_leave_no_file_thread_or_memory() {
    let Some(dir) = alone_dir() else {
        let memory = fs::metadata("/dev/shm").is_ok_and(|found| found.is_dir());
        let dir = if memory { tempfile::tempdir_in("/dev/shm") } else { tempfile::tempdir() }.expect("a directory");
        return run_alone("upkeep::thousands_of_opens_and_closes_leave_no_file_thread_or_memory", "true", dir.path());
    };
    let cycles = if cfg!(debug_assertions) { 1_000 } else { 10_000 };
    let mut before = held();
    for cycle in 0..cycles {
        let database = Database::open(&dir, tiny()).expect("opens");
        let tree = database.tree("tree").expect("a tree");
        write(&database, tree, cycle % 50..cycle % 50 + 3, Some(&[7; 100]));
        let snapshot = database.snapshot();
        assert!(snapshot.get(tree, &(cycle % 50).to_be_bytes()).expect("reads").is_some());
        drop(snapshot);
        match cycle % 3 {
            0 => database.close().expect("closes"),
            1 => database.settle().expect("settles"),
            _ => {}
        }
        drop(database);
        if cycle == cycles / 10 {
            before = held();
        }
    }
    let after = held();
    assert_eq!((after.0, after.1), (before.0, before.1), "open files and threads");
    assert!(after.2 <= before.2 + (4 << 20), "{} bytes of memory, before {}", after.2, before.2);
    assert!(fs::read_dir(&dir).expect("lists").count() < 20, "files are left behind");
}
