//! Files, space and memory: a bounded number of each, and a way on when there are none left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::alone::{alone_dir, run_alone};
use crate::engine::disk::Disk;
use crate::engine::disk::sim::{Random, SimDisk};
use crate::engine::{Batch, Compression, Database, Direction, Error, KeyRange, Options, TreeId};

/// A segment for every few entries.
fn many_segments() -> Options {
    let options = Options { delta_bytes: 64 << 10, block_bytes: 256, segment_bytes: 1 << 10, ..Options::default() };
    Options { compression: Compression::None, memory_bytes: 1 << 20, ..options }
}

fn value(number: u32, round: u32) -> Vec<u8> {
    [number.to_be_bytes(), round.to_be_bytes()].concat().repeat(12)
}

fn put_all(database: &Database, tree: TreeId, numbers: std::ops::Range<u32>, round: u32) -> Result<(), Error> {
    let mut batch = Batch::new();
    for number in numbers {
        batch.put(tree, &number.to_be_bytes(), &value(number, round));
        if batch.len() == 100 {
            database.commit(&batch)?;
            batch.clear();
        }
    }
    database.commit(&batch)
}

/// Walks through a tree of so many entries, which were all written in the same round.
fn scan_all(database: &Database, tree: TreeId, entries: u32, round: u32, direction: Direction) {
    let mut scan = database.scan(tree, KeyRange::all(), direction).expect("scans");
    for step in 0..entries {
        let number = if direction == Direction::Forward { step } else { entries - 1 - step };
        let found = scan.next().expect("reads").expect("it is not over");
        assert_eq!(found, (&number.to_be_bytes()[..], &value(number, round)[..]));
    }
    assert_eq!(scan.next().expect("reads"), None);
}

fn segments(disk: &SimDisk) -> Vec<String> {
    let names = disk.list().expect("lists").into_iter();
    names.filter(|name| name.strip_suffix(".seg").is_some()).collect()
}

/// There used to be a file handle for each segment.
#[test]
fn a_bounded_number_of_files_is_open_however_many_there_are() {
    const ENTRIES: u32 = 12_000;
    let disk = SimDisk::new();
    let options = Options { open_files_max: 4, ..many_segments() };
    let database = Database::open_on(Arc::new(disk.clone()), options.clone()).expect("opens");
    let trees: Vec<_> = (0..4).map(|name| database.tree(&format!("tree {name}")).expect("a tree")).collect();
    for round in 0..2 {
        for &tree in &trees {
            put_all(&database, tree, 0..ENTRIES / 4, round).expect("commits");
        }
        database.settle().expect("settles");
    }
    assert!(segments(&disk).len() > 1_000, "{} segments", segments(&disk).len());
    drop(database);
    let database = Database::open_on(Arc::new(disk.clone()), options).expect("opens");
    thread::scope(|scope| {
        for &tree in &trees {
            for direction in [Direction::Forward, Direction::Reverse] {
                let database = &database;
                scope.spawn(move || scan_all(database, tree, ENTRIES / 4, 1, direction));
            }
        }
        let other = database.tree("other").expect("a tree");
        put_all(&database, other, 0..2_000, 0).expect("commits");
        database.settle().expect("settles beside the scans");
    });
    assert!(database.verify().expect("verifies").problems.is_empty());
    // Four, and one for each of eight scans and two merges; four logs, two segments and a manifest that are written.
    assert!(disk.handles_max() <= 4 + 10 + 7, "{} files were open at a time", disk.handles_max());
}

/// A file that is closed can be opened by its name only.
#[test]
fn what_a_snapshot_reads_keeps_its_name_until_the_last_reader_is_gone() {
    const ENTRIES: u32 = 2_000;
    let disk = SimDisk::new();
    let options = Options { open_files_max: 1, ..many_segments() };
    let database = Database::open_on(Arc::new(disk.clone()), options.clone()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    put_all(&database, tree, 0..ENTRIES, 0).expect("commits");
    database.settle().expect("settles");
    let old = segments(&disk);
    let (snapshot, scan) = (database.snapshot(), database.scan(tree, KeyRange::all(), Direction::Reverse));
    put_all(&database, tree, 0..ENTRIES, 1).expect("commits");
    database.settle().expect("settles");
    let is_there = |names: &[String]| segments(&disk).iter().filter(|name| names.contains(name)).count();
    assert_eq!(is_there(&old), old.len(), "somebody reads them");
    for number in 0..ENTRIES {
        let found = snapshot.get(tree, &number.to_be_bytes()).expect("reads");
        assert_eq!(found, Some(value(number, 0)));
    }
    drop(snapshot);
    assert_eq!(is_there(&old), old.len(), "the scan reads them still");
    let killed = disk.state();
    let mut scan = scan.expect("scans");
    assert!(scan.next().expect("reads").is_some());
    drop(scan);
    assert_eq!(is_there(&old), 0, "the last one removes them");
    scan_all(&database, tree, ENTRIES, 1, Direction::Forward);

    // A process that ends before that leaves them to the next.
    let disk = SimDisk::from_state(killed);
    let database = Database::open_on(Arc::new(disk.clone()), options).expect("opens");
    assert!(segments(&disk).iter().all(|name| !old.contains(name)));
    scan_all(&database, tree, ENTRIES, 1, Direction::Forward);
}

/// Elsewhere a reader that is always there made a store grow without end.
#[test]
fn a_reader_that_stays_holds_the_state_it_reads_and_no_other() {
    const ENTRIES: u32 = 500;
    let disk = SimDisk::new();
    let database = Database::open_on(Arc::new(disk.clone()), many_segments()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    put_all(&database, tree, 0..ENTRIES, 0).expect("commits");
    database.settle().expect("settles");
    let bytes = || disk.state().contents().values().map(Vec::len).sum::<usize>();
    let once = bytes();
    let snapshot = database.snapshot();
    let leaked = database.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
    for round in 1..=100 {
        put_all(&database, tree, 0..ENTRIES, round).expect("commits");
        if round % 20 == 0 {
            database.settle().expect("settles");
            assert!(bytes() < 3 * once, "round {round}: {} bytes, once {once}", bytes());
        }
    }
    assert_eq!(database.stats().snapshots, 2);
    assert_eq!(snapshot.get(tree, &7_u32.to_be_bytes()).expect("reads"), Some(value(7, 0)));
    drop((snapshot, leaked));
    assert_eq!(database.stats().snapshots, 0);
    assert!(bytes() < once + once / 2, "{} bytes, once {once}", bytes());

    // A scan that is never dropped holds its own state, and ends with the process.
    std::mem::forget(database.scan(tree, KeyRange::all(), Direction::Forward).expect("scans"));
    for round in 0..5 {
        put_all(&database, tree, 0..ENTRIES, round).expect("commits");
        database.settle().expect("settles");
        assert!(bytes() < 3 * once, "round {round}: {} bytes, once {once}", bytes());
    }
    assert_eq!(database.stats().snapshots, 1, "it can be seen");
    database.close().expect("closes");
    drop(database);
    let database = Database::open_on(Arc::new(disk.clone()), many_segments()).expect("opens");
    assert!(bytes() < once + once / 2, "{} bytes, once {once}", bytes());
    scan_all(&database, tree, ENTRIES, 4, Direction::Forward);
}

/// Runs a test of this file again, in a process that may have so many files open.
fn run_limited(test: &str, files: usize, dir: &Path) {
    run_alone(&format!("resources::{test}"), &format!("ulimit -n {files}"), dir);
}

#[test]
fn thousands_of_segments_and_hundreds_of_trees_work_with_64_files() {
    const ENTRIES: u32 = 25_000;
    let Some(dir) = alone_dir() else {
        let dir = tempfile::tempdir().expect("a directory");
        return run_limited("thousands_of_segments_and_hundreds_of_trees_work_with_64_files", 64, dir.path());
    };
    let database = Database::open(&dir, many_segments()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    put_all(&database, tree, 0..ENTRIES, 0).expect("commits");
    database.settle().expect("settles");
    assert!(database.stats().trees[0].segments > 2_000, "{:?}", database.stats().trees[0]);
    for name in 0..200 {
        let tree = database.tree(&format!("tree {name}")).expect("a tree");
        put_all(&database, tree, 0..5, 0).expect("commits");
    }
    database.close().expect("closes");
    drop(database);
    let database = Database::open(&dir, many_segments()).expect("opens");
    thread::scope(|scope| {
        for reader in 0..8 {
            let direction = if reader % 2 == 0 { Direction::Forward } else { Direction::Reverse };
            let database = &database;
            scope.spawn(move || scan_all(database, tree, ENTRIES, 0, direction));
        }
        let small = database.tree("tree 7").expect("a tree");
        put_all(&database, small, 0..1_000, 1).expect("commits");
        database.settle().expect("settles");
        scan_all(&database, small, 1_000, 1, Direction::Forward);
    });
    assert!(database.verify().expect("verifies").problems.is_empty());
    database.close().expect("closes");
}

#[test]
fn a_process_that_may_open_too_few_files_is_told_how_many_it_needs() {
    let Some(dir) = alone_dir() else {
        let dir = tempfile::tempdir().expect("a directory");
        return run_limited("a_process_that_may_open_too_few_files_is_told_how_many_it_needs", 16, dir.path());
    };
    let dir = dir.join("database");
    let refused = Database::open(&dir, Options::default()).err().expect("refused").to_string();
    assert_eq!(
        refused,
        "option open_files_max is 8, with which 23 files may be open at a time, and this process may open 16; \
         raise that limit (`ulimit -n`)"
    );
    assert!(!dir.exists(), "nothing is made");
    let fewer = Options { open_files_max: 1, sealed_max: 1, settle_threads: 1, ..many_segments() };
    let database = Database::open(&dir, fewer).expect("14 are enough for fewer");
    let tree = database.tree("tree").expect("a tree");
    put_all(&database, tree, 0..3_000, 0).expect("commits");
    database.settle().expect("settles");
    scan_all(&database, tree, 3_000, 0, Direction::Reverse);
}

/// A file system of memory, small, until it is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this process may not mount.
    fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(dir.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(dir))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a failed test may have files open here.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Entries that nothing can compress, by number.
fn incompressible(number: u32) -> Vec<u8> {
    Random::new(u64::from(number) + 1).bytes(20_000)
}

fn put_one(database: &Database, tree: TreeId, number: u32) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.put(tree, &number.to_be_bytes(), &incompressible(number));
    database.commit(&batch)
}

fn assert_all(database: &Database, tree: TreeId, entries: u32) {
    for number in 0..entries {
        let found = database.get(tree, &number.to_be_bytes()).expect("reads");
        assert!(found == Some(incompressible(number)), "entry {number} of {entries}");
    }
}

/// Small deltas let a flush or a merge run out of space, a large one the log.
#[test]
fn a_real_disk_that_was_full_is_written_to_again() {
    for delta_bytes in [64 << 10, 256 << 10, 1 << 20, 64 << 20] {
        let Some(small) = SmallDisk::mount("8m") else {
            eprintln!("skipped: this process may not mount a file system");
            return;
        };
        let dir = small.path("database");
        let options = Options { delta_bytes, sealed_max: 1, ..Options::default() };
        fs::write(small.path("ballast"), vec![1; 5 << 20]).expect("there is room");
        let database = Database::open(&dir, options.clone()).expect("opens");
        let tree = database.tree("tree").expect("a tree");
        let is_read = AtomicBool::new(true);
        let (refused, entries) = thread::scope(|scope| {
            let database = &database;
            put_one(database, tree, 0).expect("there is room");
            scope.spawn(|| {
                while is_read.load(Ordering::Relaxed) {
                    assert_all(database, tree, 1);
                }
            });
            let refused = (1..).find_map(|number| Some((put_one(database, tree, number).err()?, number)));
            is_read.store(false, Ordering::Relaxed);
            refused.expect("the disk is small")
        });
        let text = refused.to_string();
        assert!(text.contains("No space left on device") && text.contains("database/"), "{text}");
        assert_all(&database, tree, entries);

        fs::remove_file(small.path("ballast")).expect("removes");
        let database = match database.resume() {
            Ok(()) => database,
            Err(Error::Poisoned { .. }) => {
                drop(database);
                Database::open(&dir, options.clone()).expect("opens")
            }
            Err(error) => panic!("{error}"),
        };
        for number in entries..entries + 20 {
            put_one(&database, tree, number).expect("there is room again");
        }
        drop(database);
        let database = Database::open(&dir, options).expect("opens");
        assert_all(&database, tree, entries + 20);
        database.close().expect("closes");
    }
}

/// Opening needs room for what it replays. Without it that is said, and nothing is lost.
#[test]
fn a_real_disk_that_is_still_full_loses_nothing_at_a_reopen() {
    let Some(small) = SmallDisk::mount("8m") else {
        eprintln!("skipped: this process may not mount a file system");
        return;
    };
    let dir = small.path("database");
    let options = Options { delta_bytes: 64 << 20, ..Options::default() };
    let database = Database::open(&dir, options.clone()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    fs::write(small.path("ballast"), vec![1; 1 << 20]).expect("there is room");
    let mut entries = 0;
    while put_one(&database, tree, entries).is_ok() {
        entries += 1;
    }
    assert_all(&database, tree, entries);
    drop(database);
    for _ in 0..3 {
        let refused = Database::open(&dir, options.clone()).err().expect("it is full").to_string();
        assert!(refused.contains("No space left on device") && refused.contains(".seg"), "{refused}");
    }
    fs::remove_file(small.path("ballast")).expect("removes");
    let refused = Database::open(&dir, options.clone()).err().expect("a megabyte is too little").to_string();
    assert!(refused.contains("No space left on device"), "{refused}");
    let remounted = Command::new("mount").args(["-o", "remount,size=32m"]).arg(small.0.path()).status();
    assert!(remounted.is_ok_and(|status| status.success()));
    let database = Database::open(&dir, options).expect("there is room");
    assert_all(&database, tree, entries);
    put_one(&database, tree, entries).expect("there is room");
    database.close().expect("closes");
}
