//! Background work that fails: reads go on, writes are told why, and there is a way back.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::bench::torture::history::{self, History, examine, open, tiny};
use crate::engine::disk::sim::{CallKind, Fault, PowerLoss, Random, SimDisk, State};
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::{Database, Durability, Error, Result};

const TREES: [&str; 2] = ["a", "b"];

/// A database with its trees, on a disk of its own.
fn new_database() -> (SimDisk, Database) {
    let disk = SimDisk::new();
    let database = open(&disk, &tiny()).expect("opens");
    make_trees(&database);
    (disk, database)
}

fn make_trees(database: &Database) {
    for name in TREES {
        history::tree(database, name).expect("a new tree");
    }
}

/// Commits the next batch. One that is refused is not part of the history.
fn write_one(database: &Database, history: &mut History, durability: Durability) -> Result<()> {
    let mut next = history.clone();
    let batch = next.draw(&mut Random::new(history.last()), &TREES);
    database.commit_with(&batch, durability)?;
    *history = next;
    Ok(())
}

/// Commits and settles until something fails; `None` if nothing did.
fn write_until_refused(database: &Database, history: &mut History) -> Option<Error> {
    for step in 1..=60 {
        let done = write_one(database, history, Durability::Process);
        let done = done.and_then(|()| if step % 20 == 0 { database.settle() } else { Ok(()) });
        if done.is_err() {
            return done.err();
        }
    }
    None
}

fn holds(database: &Database, history: &History) {
    history.locate(database, history.last()..=history.last()).expect("what was acknowledged is there, and no more");
}

fn holds_after_power_loss(left: &State, history: &History) {
    for loss in PowerLoss::EXTREMES {
        let left = left.after_power_loss(loss, &mut Random::new(0));
        examine(&left, &tiny(), history, history.last()..=history.last()).expect("all of it is durable");
    }
}

/// Lets every such call fail after `after` that go well, frees the disk, and goes on. Answers whether any failed.
fn goes_on_after(fault: Fault) -> bool {
    let case = format!("{fault:?}");
    let (disk, database) = new_database();
    let mut history = History::new();
    disk.inject(fault);
    let Some(refused) = write_until_refused(&database, &mut history) else { return false };
    let text = refused.to_string();
    assert!(matches!(refused, Error::Background { .. }), "{case}: {text}");
    assert!(text.contains("/sim/") && text.contains(fault.ending) && text.contains("`resume`"), "{case}: {text}");
    holds(&database, &history);

    let again = database.resume().expect_err("the disk is still full");
    assert!(matches!(&again, Error::Background { cause } if cause.contains("/sim/")), "{case}: {again}");
    assert!(write_one(&database, &mut history, Durability::None).is_err(), "{case}: nothing has changed");
    holds(&database, &history);
    reopens_after(Fault { after: 0, ..fault }, disk.state(), &history);

    assert!(disk.heal() > 1);
    database.resume().unwrap_or_else(|error| panic!("{case}: {error}"));
    database.resume().expect("there is nothing to do");
    for _ in 0..100 {
        write_one(&database, &mut history, Durability::Process).unwrap_or_else(|error| panic!("{case}: {error}"));
    }
    write_one(&database, &mut history, Durability::Sync).expect("syncs");
    holds_after_power_loss(&disk.state(), &history);
    database.settle().expect("settles");
    holds(&database, &history);
    history::close(&disk, &database).unwrap_or_else(|problem| panic!("{case}: {problem}"));
    true
}

/// A process that ends instead loses nothing either, be it opened again before there is room or after.
fn reopens_after(fault: Fault, left: State, history: &History) {
    let disk = SimDisk::from_state(left);
    disk.inject(fault);
    match Database::open_on(Arc::new(disk.clone()), tiny()) {
        Ok(database) => holds(&database, history),
        Err(error) => assert!(error.to_string().contains("/sim/"), "{error}"),
    }
    disk.heal();
    holds(&open(&disk, &tiny()).expect("opens"), history);
}

/// More calls than background work of the tests makes.
const CALLS_MAX: usize = 10_000;

#[test]
fn a_database_goes_on_when_a_full_disk_has_room_again() {
    let mut cases = 0;
    for ending in [".seg", "MANIFEST.new"] {
        let calls = [CallKind::Create, CallKind::Append, CallKind::Sync].map(|kind| (kind, false));
        for (kind, short) in calls.into_iter().chain([(CallKind::Append, true)]) {
            let fault = |after| Fault { ending, short, error: Errno::NOSPC, ..Fault::for_ever(kind, after) };
            let struck = (0..CALLS_MAX).take_while(|&after| goes_on_after(fault(after))).count();
            assert!(struck < CALLS_MAX, "every call so far was struck: there are more");
            cases += struck;
        }
    }
    assert!(cases > 100, "only {cases}");
}

/// What such a call was for is done; that it failed has to be told all the same.
#[test]
fn a_file_that_could_not_be_removed_is_told_and_goes_with_the_next_open() {
    for ending in [".seg", ".wal"] {
        let (disk, database) = new_database();
        let mut history = History::new();
        disk.inject(Fault { ending, ..Fault::once(CallKind::Remove, 0) });
        let refused = write_until_refused(&database, &mut history).expect("something was to be removed");
        assert!(refused.to_string().contains("could not remove /sim/"), "{refused}");
        database.resume().expect("the next one is removed");
        for _ in 0..100 {
            write_one(&database, &mut history, Durability::Process).expect("goes on");
        }
        holds(&database, &history);
        database.close().expect("closes");
        let database = open(&disk, &tiny()).expect("opens");
        holds(&database, &history);
        history::close(&disk, &database).expect("nothing is left over");
    }
}

/// After these nobody knows what is on the disk, so that only a reopen may go on from what is found there.
#[test]
fn no_resume_makes_up_for_a_failed_log_or_lost_names() {
    let faults = [
        Fault { ending: ".wal", error: Errno::NOSPC, ..Fault::once(CallKind::Append, 7) },
        Fault { ending: ".wal", ..Fault::once(CallKind::Sync, 0) },
        Fault::once(CallKind::SyncDir, 0),
        Fault::once(CallKind::Rename, 0),
    ];
    for fault in faults {
        let (disk, database) = new_database();
        let mut history = History::new();
        disk.inject(fault);
        while write_one(&database, &mut history, Durability::Sync).is_ok() {}
        holds(&database, &history);
        disk.heal();
        for _ in 0..2 {
            let refused = database.resume().expect_err("it is not known what is on the disk");
            assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
            assert!(write_one(&database, &mut history, Durability::None).is_err());
        }
        drop(database);
        let database = open(&disk, &tiny()).expect("opens");
        // A batch whose sync failed may be there or not.
        let found = history::dump(&database).expect("reads");
        assert!(history.identify(&found).is_ok() || found.len() == TREES.len(), "{fault:?}");
        history::close(&disk, &database).expect("nothing is left over");
    }
}

#[test]
fn who_resumes_a_closed_database_is_told_and_a_sound_one_is_left_alone() {
    let (disk, database) = new_database();
    let calls = disk.trace().len();
    database.resume().expect("there is nothing to do");
    assert_eq!(disk.trace().len(), calls);
    database.close().expect("closes");
    assert!(matches!(database.resume(), Err(Error::Closed)));
}

/// A resume waits for a disk that takes its time. Meanwhile writes wait for nothing: they are refused.
#[test]
fn writes_are_refused_until_a_resume_has_done_its_work() {
    let (disk, database) = new_database();
    let mut history = History::new();
    disk.inject(Fault { ending: ".seg", error: Errno::NOSPC, ..Fault::for_ever(CallKind::Append, 0) });
    write_until_refused(&database, &mut history).expect("the disk is full");
    disk.heal();
    disk.hold(CallKind::Create, ".seg");
    std::thread::scope(|scope| {
        let resumed = scope.spawn(|| database.resume());
        disk.wait_for_held();
        assert!(write_one(&database, &mut history, Durability::Process).is_err(), "it is not done yet");
        holds(&database, &history);
        disk.release();
        resumed.join().expect("it does not panic").expect("there is room");
    });
    write_one(&database, &mut history, Durability::Process).expect("it is done");
    holds(&database, &history);
}

/// A simulated disk on which one call panics.
struct Panicking {
    disk: SimDisk,
    due: Mutex<Option<(CallKind, &'static str)>>,
}

impl Panicking {
    fn pass(&self, kind: CallKind, name: &str) {
        let mut due = self.due.lock();
        if due.is_some_and(|(call, ending)| call == kind && name.ends_with(ending)) {
            *due = None;
            drop(due);
            panic!("a bug at {kind:?} of {name}");
        }
    }
}

impl Disk for Panicking {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        self.disk.lock()
    }

    fn list(&self) -> Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.pass(CallKind::Create, name);
        self.disk.create(name)
    }

    fn create_log(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.disk.create_log(name)
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.pass(CallKind::Open, name);
        self.disk.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.pass(CallKind::Rename, from);
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.pass(CallKind::Remove, name);
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.pass(CallKind::SyncDir, "");
        self.disk.sync_dir()
    }

    fn boot_id(&self) -> Result<Option<u128>> {
        self.disk.boot_id()
    }
}

#[test]
fn a_panic_in_the_background_is_told_as_what_it_was_and_leaves_no_lock_behind() {
    let calls = [
        (CallKind::Create, ".seg"),
        (CallKind::Open, ".seg"),
        (CallKind::Remove, ".seg"),
        (CallKind::Remove, ".wal"),
        (CallKind::Create, "MANIFEST.new"),
        (CallKind::Rename, "MANIFEST.new"),
        (CallKind::SyncDir, ""),
    ];
    for (kind, ending) in calls {
        for settles in [true, false] {
            let (disk, mut history) = (SimDisk::new(), History::new());
            let panicking = Arc::new(Panicking { disk: disk.clone(), due: Mutex::default() });
            let database = Database::open_on(panicking.clone(), tiny()).expect("opens");
            make_trees(&database);
            for _ in 0..2 {
                (0..10).for_each(|_| write_one(&database, &mut history, Durability::Process).expect("commits"));
                database.flush().expect("flushes");
            }
            write_one(&database, &mut history, Durability::Process).expect("commits");
            *panicking.due.lock() = Some((kind, ending));
            let cause = format!("a bug at {kind:?}");
            let is_told = |error: Error| {
                let text = error.to_string();
                assert!(matches!(error, Error::Panicked { .. }), "{text}");
                assert!(text.contains(&cause) && !text.to_lowercase().contains("poison"), "{text}");
            };
            if settles {
                is_told(database.settle().expect_err("it panics"));
            } else {
                is_told(write_until_refused(&database, &mut history).expect("it panics"));
            }
            holds(&database, &history);
            is_told(write_one(&database, &mut history, Durability::Process).expect_err("it has panicked"));
            is_told(database.flush().expect_err("it has panicked"));
            is_told(database.resume().expect_err("nobody knows what a panic left"));
            assert_eq!(database.tree_names(), TREES);
            assert!(database.verify().expect("verifies").problems.is_empty());
            is_told(database.close().expect_err("it has panicked"));
            drop(database);
            let database = open(&disk, &tiny()).expect("opens");
            holds(&database, &history);
            history::close(&disk, &database).expect("nothing is left over");
        }
    }
}
