//! What a crash leaves is opened again: trees that fill at different speeds, openings that are cut short, leftovers, and
//! owners that race.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use crate::bench::torture::history::{self, History, dump, examine, frames, open, tiny};
use crate::engine::disk::LOCK;
use crate::engine::disk::sim::{CallKind, Fault, PowerLoss, Random, SimDisk, State};
use crate::engine::{Batch, Database, Durability, Error, Options, TreeId};

/// Nothing is flushed unless it is asked for.
fn roomy() -> Options {
    Options { delta_bytes: 64 << 20, ..tiny() }
}

fn write(database: &Database, history: &mut History, batches: usize) {
    for _ in 0..batches {
        let batch = history.draw(&mut Random::new(history.last()), &["a", "b"]);
        database.commit(&batch).expect("nothing fails here");
    }
}

fn make_trees(database: &Database) {
    for name in ["a", "b"] {
        history::tree(database, name).expect("a new tree");
    }
}

fn put(database: &Database, tree: TreeId, number: u32, durability: Durability) {
    let mut batch = Batch::new();
    batch.put(tree, &number.to_be_bytes(), &[number as u8; 12]);
    database.commit_with(&batch, durability).expect("commits");
}

/// One of so many puts goes to the slow tree.
const SLOWNESS: u32 = 75;

fn is_slow(number: u32) -> bool {
    number % SLOWNESS == SLOWNESS - 1
}

/// Both trees are there as they were after so many puts.
fn assert_holds(left: State, puts: u32) {
    let database = open(&SimDisk::from_state(left), &tiny()).expect("opens");
    let trees = dump(&database).expect("reads");
    for (name, slow) in [("fast", false), ("slow", true)] {
        let found: Vec<_> = trees.get(name).into_iter().flatten().map(|(key, _)| key.clone()).collect();
        let expected: Vec<_> = (0..puts).filter(|&number| is_slow(number) == slow).collect();
        let expected: Vec<_> = expected.iter().map(|number| number.to_be_bytes().to_vec()).collect();
        assert_eq!(found.len(), expected.len(), "{name} after {puts} puts");
        assert_eq!(found, expected, "{name} after {puts} puts");
    }
}

#[test]
fn a_log_goes_only_when_every_tree_in_it_is_flushed() {
    const PUTS: u32 = 6_000;
    let disk = SimDisk::new();
    let database = open(&disk, &tiny()).expect("opens");
    let (fast, slow) = (database.tree("fast").expect("a tree"), database.tree("slow").expect("a tree"));
    let mut logs_max = 0;
    for number in 0..PUTS {
        let puts = number + 1;
        let at_end_of_part = puts % 500 == 0;
        let durability = if at_end_of_part { Durability::Sync } else { Durability::Process };
        put(&database, if is_slow(number) { slow } else { fast }, number, durability);
        if at_end_of_part {
            let left = disk.state();
            logs_max = logs_max.max(left.names().filter(|name| name.strip_suffix(".wal").is_some()).count());
            assert_holds(left.after_power_loss(PowerLoss::EXTREMES[0], &mut Random::new(0)), puts);
            assert_holds(left, puts);
        }
    }
    assert!((1..10).contains(&logs_max), "logs come and go: {logs_max}");
    database.close().expect("closes");
    assert_holds(disk.state(), PUTS);
}

/// A hole that a power loss explains ends the log before it. Opening is cut short at every call, and goes on from there.
#[test]
fn an_opening_that_is_cut_short_leaves_no_tree_ahead_of_another() {
    let disk = SimDisk::new();
    let database = open(&disk, &roomy()).expect("opens");
    make_trees(&database);
    let mut history = History::new();
    write(&database, &mut history, 40);
    let mut left = disk.state();
    drop(database);
    let hole = frames(&disk).swap_remove(20);
    let mut log = left.contents().remove(&hole.log).expect("the log is there");
    log[hole.start + 20] ^= 1;
    left.overwrite(&hole.log, log);

    let left = left.restarted();
    let disk = SimDisk::from_state(left.clone());
    drop(open(&disk, &tiny()).expect("a hole in what was never synced is the end"));
    let trace = disk.trace();
    let mut reached = left;
    for (cut, call) in trace.iter().enumerate() {
        examine(&reached, &tiny(), &history, 20..=20).unwrap_or_else(|text| panic!("killed at call {cut}: {text}"));
        for loss in PowerLoss::EXTREMES {
            let left = reached.after_power_loss(loss, &mut Random::new(0));
            examine(&left, &tiny(), &history, 20..=20).unwrap_or_else(|text| panic!("{loss:?} at {cut}: {text}"));
        }
        reached.apply(call);
    }
    assert!(trace.len() > 10, "segments of two trees were written");
}

#[test]
fn whatever_a_crash_leaves_behind_is_removed_by_the_next_open() {
    let disk = SimDisk::new();
    let database = open(&disk, &tiny()).expect("opens");
    make_trees(&database);
    let mut history = History::new();
    write(&database, &mut history, 50);
    history::close(&disk, &database).expect("closes");
    let manifest = disk.state().contents().remove("MANIFEST").expect("it is there");
    let segment = format!("{:020}.seg", 0);
    for (name, content) in [
        ("MANIFEST.new", manifest[..manifest.len() / 2].to_vec()),
        ("MANIFEST.new", Vec::new()),
        (&segment, b"half a segm".to_vec()),
        (&format!("{:020}.seg", 1_000_000), Vec::new()),
        (&format!("{:020}.wal", 0), b"an old log".to_vec()),
        (LOCK, b"4711\n".to_vec()),
    ] {
        let mut left = disk.state();
        left.overwrite(name, content);
        let disk = SimDisk::from_state(left);
        let database = open(&disk, &tiny()).unwrap_or_else(|text| panic!("{name}: {text}"));
        history.locate(&database, 50..=50).expect("all is there");
        history::close(&disk, &database).unwrap_or_else(|text| panic!("{name}: {text}"));
    }
}

/// Segments that were finished before the disk was full used to stay until the next open.
#[test]
fn a_recovery_that_fails_leaves_nothing_behind() {
    let disk = SimDisk::new();
    let database = open(&disk, &roomy()).expect("opens");
    make_trees(&database);
    let mut history = History::new();
    write(&database, &mut history, 40);
    let left = disk.state();
    drop(database);
    let (mut failed, names) = (0, |state: State| state.names().map(str::to_owned).collect::<Vec<_>>());
    for ending in [".seg", "MANIFEST.new"] {
        for kind in [CallKind::Create, CallKind::Append, CallKind::Sync] {
            for after in 0..4 {
                let disk = SimDisk::from_state(left.clone());
                let fault = Fault { ending, short: true, error: Errno::NOSPC, ..Fault::for_ever(kind, after) };
                disk.inject(fault);
                if let Err(error) = open(&disk, &tiny()) {
                    failed += 1;
                    assert!(error.contains(ending), "{error}");
                    assert_eq!(names(disk.state()), names(left.clone()), "{kind:?} {ending} after {after}");
                }
                disk.heal();
                examine(&disk.state(), &tiny(), &history, 40..=40).expect("all is there");
            }
        }
    }
    assert!(failed >= 9, "only {failed} cases: segments of two trees are written, and a manifest");
}

/// Deltas that wait for a flush are in a log only. Nobody may have to wait for somebody to flush them after a crash.
#[test]
fn what_was_recovered_is_flushed_without_waiting_for_anybody() {
    for round in 0..30 {
        let disk = SimDisk::new();
        let database = open(&disk, &Options { sealed_max: 8, ..tiny() }).expect("opens");
        let trees: Vec<_> = (0..6).map(|name| database.tree(&format!("tree {name}")).expect("a tree")).collect();
        disk.hold(CallKind::Create, ".seg");
        let mut number = 0;
        while database.stats().sealed < 5 + round % 3 {
            put(&database, trees[number as usize % trees.len()], number, Durability::Process);
            number += 1;
        }
        let disk_left = SimDisk::from_state(disk.state());
        disk.release();
        drop(database);

        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let database = open(&disk_left, &Options { sealed_max: 1, ..tiny() }).expect("opens");
            let stats = database.stats();
            assert_eq!((stats.sealed, stats.log_bytes), (0, 0), "all of it is in segments");
            assert_eq!(stats.trees.iter().map(|tree| tree.entries).sum::<u64>(), u64::from(number));
            for more in 0..100 {
                for &tree in &trees {
                    put(&database, tree, number + more, Durability::Process);
                }
            }
            database.close().expect("closes");
            // A receiver that is gone gave up.
            let _ = sender.send(());
        });
        receiver.recv_timeout(Duration::from_secs(20)).expect("writes go on");
    }
}

/// On a real directory, where the lock is the operating system's.
#[test]
fn one_of_many_openers_at_once_has_the_database() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("database");
    drop(Database::open(&dir, Options::default()).expect("makes it"));
    let link = parent.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).expect("a link");
    let roundabout = parent.path().join("link/../database/.");
    for _ in 0..20 {
        let (opened, refused, together) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(6));
        thread::scope(|scope| {
            for path in [&dir, &link, &roundabout, &dir, &link, &roundabout] {
                let (opened, refused, together) = (&opened, &refused, &together);
                scope.spawn(move || {
                    together.wait();
                    let database = Database::open(path, Options::default());
                    // Nobody gives it up before all have tried.
                    together.wait();
                    match database {
                        Ok(_) => opened.fetch_add(1, Ordering::SeqCst),
                        Err(Error::AlreadyOpen { .. }) => refused.fetch_add(1, Ordering::SeqCst),
                        Err(error) => panic!("{error}"),
                    };
                });
            }
        });
        assert_eq!((opened.into_inner(), refused.into_inner()), (1, 5));
    }
}

#[test]
fn somebody_who_reads_the_lock_file_does_not_take_the_lock_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    for _ in 0..3 {
        let text = std::fs::read_to_string(dir.path().join(LOCK)).expect("it can be read, and is closed again");
        assert_eq!(text.trim(), std::process::id().to_string());
        let refused = thread::scope(|scope| {
            scope.spawn(|| Database::open(dir.path(), Options::default()).err()).join().expect("it does not panic")
        });
        assert!(matches!(refused, Some(Error::AlreadyOpen { pid: Some(pid), .. }) if pid == std::process::id()));
    }
    database.close().expect("closes");
    drop(Arc::new(Database::open(dir.path(), Options::default()).expect("it is free")));
}
