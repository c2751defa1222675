//! Any call may fail, once or for ever: the caller learns it, nothing that was acknowledged changes, and after a reopen
//! all is well.
//!
//! Each case runs a workload with one fault, at the first call, at the second and so on, until the workload ends before
//! the fault strikes.

use std::sync::{Arc, mpsc};

use super::harness::{History, case, close, dump, examine, open, tiny, verify};
use crate::engine::disk::sim::{AfterFailedSync, CallKind, Fault, PowerLoss, Random, SimDisk, State};
use crate::engine::{Database, Durability, Error, Options, Result};

const TREES: [&str; 2] = ["a", "b"];
/// No workload makes more calls.
const CALLS_MAX: usize = 2_000;

/// What the writer knows when the workload ended.
#[derive(Clone)]
struct Outcome {
    history: History,
    /// The last batch that was acknowledged, and the last of those a power loss must not take.
    acknowledged: u64,
    durable: u64,
    failure: Option<String>,
}

/// Writes until something fails, or to the end.
struct Writer {
    disk: SimDisk,
    random: Random,
    outcome: Outcome,
}

impl Writer {
    fn new(disk: &SimDisk, history: &History) -> Self {
        let number = history.last();
        let outcome = Outcome { history: history.clone(), acknowledged: number, durable: number, failure: None };
        Self { disk: disk.clone(), random: Random::new(number), outcome }
    }

    fn run(&mut self, database: &Database) -> Result<()> {
        for step in 0..24 {
            let durability = if step % 3 == 0 { Durability::Sync } else { Durability::Process };
            let batch = self.outcome.history.draw(&mut self.random, &TREES);
            database.commit_with(&batch, durability)?;
            self.outcome.acknowledged += 1;
            if durability == Durability::Sync {
                self.outcome.durable = self.outcome.acknowledged;
            }
            match step {
                12 => database.flush()?,
                18 => database.settle()?,
                _ => {}
            }
        }
        // What struck in the background before this call must show here at the latest.
        let struck = self.disk.was_struck();
        database.settle()?;
        assert!(!struck, "a fault struck in the background, and nobody heard of it");
        self.outcome.durable = self.outcome.acknowledged;
        database.close()
    }
}

/// After a failure, with the fault still in force: reads are right or fail, and writes are refused with its cause.
fn check_poisoned(database: &Database, outcome: &Outcome, failure: &Error) -> std::result::Result<(), String> {
    if failure.to_string().contains("panicked") {
        return Err(format!("a panic: {failure}"));
    }
    if dump(database).is_ok() {
        outcome.history.locate(database, outcome.acknowledged..=outcome.acknowledged)?;
    }
    let mut history = outcome.history.clone();
    let batch = history.draw(&mut Random::new(0), &TREES);
    for durability in [Durability::None, Durability::Process, Durability::Sync] {
        match database.commit_with(&batch, durability) {
            Err(Error::Poisoned { cause } | Error::Background { cause }) if cause.contains("/sim") => {}
            Err(Error::Closed) if matches!(failure, Error::Closed) => {}
            other => return Err(format!("after `{failure}` a commit gave {other:?}")),
        }
    }
    Ok(())
}

fn make_trees(database: &Database) {
    for name in TREES {
        database.tree(name).expect("a new tree");
    }
}

/// A database with content, whose first calls are past.
fn prepared() -> (State, History) {
    let disk = SimDisk::new();
    let database = open(&disk, &tiny()).expect("opens");
    let mut history = History::new();
    make_trees(&database);
    for _ in 0..6 {
        let batch = history.draw(&mut Random::new(history.last()), &TREES);
        database.commit_with(&batch, Durability::Process).expect("nothing fails here");
    }
    let left = disk.state();
    drop(database);
    (left, history)
}

/// Runs a workload with `fault`, from the opening on or after it, and answers whether the fault struck.
fn run_with(fault: Fault, while_opening: bool, start: &State, history: &History) -> std::result::Result<bool, String> {
    let disk = SimDisk::from_state(start.clone());
    if while_opening {
        disk.inject(fault);
    }
    let database = match Database::open_on(Arc::new(disk.clone()), tiny()) {
        Ok(database) => database,
        Err(error) if disk.was_struck() => return after_failed_open(&disk, history, &error).map(|()| true),
        Err(error) => return Err(format!("open failed without a fault: {error}")),
    };
    if !while_opening {
        disk.inject(fault);
    }
    let mut writer = Writer::new(&disk, history);
    let result = writer.run(&database);
    let mut outcome = writer.outcome;
    if let Err(failure) = &result {
        if !disk.was_struck() {
            return Err(format!("failed without a fault: {failure}"));
        }
        check_poisoned(&database, &outcome, failure)?;
        outcome.failure = Some(failure.to_string());
    }
    let at_failure = disk.state();
    drop(database);
    let struck = disk.heal() > 0;
    after_power_loss(&at_failure, &outcome)?;
    after_reopen(&disk, &outcome, fault)?;
    Ok(struck)
}

fn after_failed_open(disk: &SimDisk, history: &History, error: &Error) -> std::result::Result<(), String> {
    if error.to_string().contains("panicked") {
        return Err(format!("a panic: {error}"));
    }
    let number = history.last();
    disk.heal();
    for &loss in &PowerLoss::EXTREMES {
        // Nothing of the start was synced for sure; what is there must be a state all the same.
        examine(&disk.state().after_power_loss(loss, &mut Random::new(1)), &tiny(), history, 0..=number)?;
    }
    let database = open(disk, &tiny())?;
    history.locate(&database, number..=number)?;
    verify(&database)?;
    close(disk, &database)
}

/// The power fails right after the failure.
fn after_power_loss(at_failure: &State, outcome: &Outcome) -> std::result::Result<(), String> {
    let losses = PowerLoss::EXTREMES.iter().chain(&PowerLoss::DRAWN[..4]);
    for (seed, &loss) in losses.enumerate() {
        let left = at_failure.after_power_loss(loss, &mut Random::new(seed as u64));
        examine(&left, &tiny(), &outcome.history, outcome.durable..=outcome.history.last())
            .map_err(|text| format!("after {:?} and {loss:?}: {text}", outcome.failure))?;
    }
    Ok(())
}

/// The database is reopened where it failed, and the power fails later.
fn after_reopen(disk: &SimDisk, outcome: &Outcome, fault: Fault) -> std::result::Result<(), String> {
    let context = |text| format!("reopened after {:?}: {text}", outcome.failure);
    let loses_cache = fault.after_failed_sync != AfterFailedSync::CacheKeepsNew;
    let database = match open(disk, &tiny()) {
        Ok(database) => database,
        // The system lost what a killed process could count on. That is refused until a restart explains it.
        Err(_) if loses_cache => return after_power_loss(&disk.state(), outcome).map_err(context),
        Err(text) => return Err(context(text)),
    };
    let least = if loses_cache { outcome.durable } else { outcome.acknowledged };
    let number = outcome.history.locate(&database, least..=outcome.history.last()).map_err(context)?;
    let left = disk.state();
    close(disk, &database).map_err(context)?;
    for (seed, &loss) in PowerLoss::EXTREMES.iter().chain(&PowerLoss::DRAWN[6..]).enumerate() {
        let left = left.after_power_loss(loss, &mut Random::new(seed as u64));
        examine(&left, &tiny(), &outcome.history, number..=number).map_err(context)?;
    }
    Ok(())
}

/// Moves `fault` through a workload, and says how many cases that made.
fn at_every_call(fault: Fault, while_opening: bool) -> usize {
    let (start, history) = prepared();
    for after in 0..CALLS_MAX {
        let fault = Fault { after, ..fault };
        let (start, history) = (start.clone(), history.clone());
        let (sender, receiver) = mpsc::channel();
        case(&format!("{fault:?}, while opening: {while_opening}"), move || {
            let struck = run_with(fault, while_opening, &start, &history)?;
            sender.send(struck).map_err(|_| "nobody waits".to_owned())
        });
        if !receiver.recv().expect("the case ended well") {
            return after;
        }
    }
    panic!("the workload makes more than {CALLS_MAX} calls");
}

fn once_and_for_ever(kind: Option<CallKind>) -> [Fault; 2] {
    [Fault::once(kind, 0), Fault::for_ever(kind, 0)]
}

#[test]
fn a_failed_sync_is_final_and_loses_nothing_acknowledged() {
    use AfterFailedSync::{CacheKeepsNew, OldComesBack, ReadsFail};
    let mut cases = 0;
    for after_failed_sync in [CacheKeepsNew, OldComesBack, ReadsFail] {
        for fault in once_and_for_ever(Some(CallKind::Sync)) {
            cases += at_every_call(Fault { after_failed_sync, ..fault }, true);
        }
    }
    assert!(cases >= 100, "only {cases} cases");
}

#[test]
fn a_failed_sync_of_the_directory_is_final_and_loses_nothing_acknowledged() {
    let cases: usize =
        once_and_for_ever(Some(CallKind::SyncDir)).into_iter().map(|fault| at_every_call(fault, true)).sum();
    assert!(cases >= 30, "only {cases} cases");
}

/// Every call fails in turn, as `change` says.
fn every_call_fails(change: impl Fn(Fault) -> Fault) {
    let mut cases = 0;
    for fault in once_and_for_ever(None) {
        cases += at_every_call(change(fault), true);
    }
    assert!(cases >= 200, "only {cases} cases");
}

#[test]
fn an_io_error_at_any_call_reaches_the_caller_and_changes_nothing() {
    every_call_fails(|fault| fault);
}

#[test]
fn a_full_disk_at_any_call_reaches_the_caller_and_changes_nothing() {
    every_call_fails(|fault| Fault { error: rustix::io::Errno::NOSPC, ..fault });
}

#[test]
fn a_full_disk_that_takes_half_an_append_changes_nothing() {
    every_call_fails(|fault| Fault { error: rustix::io::Errno::NOSPC, short: true, ..fault });
}

#[test]
fn too_many_open_files_at_any_call_reaches_the_caller_and_changes_nothing() {
    every_call_fails(|fault| Fault { error: rustix::io::Errno::MFILE, ..fault });
}

/// A system that goes on as if nothing had happened (L-A4): the third sync of a log fails, six batches are tried.
#[test]
fn no_sync_succeeds_after_a_failed_one() {
    let disk = SimDisk::new();
    let options = Options { delta_bytes: 64 << 20, ..tiny() };
    let database = open(&disk, &options).expect("opens");
    make_trees(&database);
    disk.inject(Fault { ending: ".wal", ..Fault::once(CallKind::Sync, 2) });
    let mut history = History::new();
    for number in 1..=6 {
        let batch = history.draw(&mut Random::new(number), &TREES);
        match (number, database.commit_with(&batch, Durability::Sync)) {
            (1 | 2, Ok(())) | (3, Err(Error::Io { action: "sync", .. })) => {}
            (4..=6, Err(Error::Poisoned { cause })) if cause.contains(".wal") => {}
            (_, other) => panic!("batch {number}: {other:?}"),
        }
    }
    history.locate(&database, 2..=2).expect("reads go on");
    let at_failure = disk.state();
    drop(database);
    for &loss in &PowerLoss::EXTREMES {
        let left = at_failure.after_power_loss(loss, &mut Random::new(0));
        examine(&left, &tiny(), &history, 2..=3).expect("1 and 2 are there");
    }
}

/// The names of new segments are lost with the name of a log, while the background thread is busy with them: it must
/// not take the next sync of the directory for theirs.
#[test]
fn names_that_a_failed_sync_of_the_directory_lost_are_not_built_on() {
    for round in 0..8 {
        let disk = SimDisk::new();
        let database = open(&disk, &tiny()).expect("opens");
        make_trees(&database);
        let mut history = History::new();
        let first = history.draw(&mut Random::new(1), &TREES);
        database.commit_with(&first, Durability::Sync).expect("nothing fails yet");
        disk.hold(CallKind::Sync, ".seg");
        std::thread::scope(|scope| {
            scope.spawn(|| drop(database.flush()));
            disk.wait_for_held();
            // Which names are lost depends on how many calls there were.
            (0..round).for_each(|note| disk.mark(note));
            disk.inject(Fault::once(CallKind::SyncDir, 0));
            let second = history.draw(&mut Random::new(2), &TREES);
            database.commit_with(&second, Durability::Sync).expect_err("its log has no name");
            disk.release();
        });
        drop(database);
        let left = disk.state().after_power_loss(PowerLoss::EXTREMES[0], &mut Random::new(0));
        examine(&left, &tiny(), &history, 1..=2).expect("the first batch is there");
    }
}

/// The disk is full for a while, and the database is opened while it still is (L-A5).
#[test]
fn a_database_opens_again_once_there_is_room() {
    let (start, history) = prepared();
    let disk = SimDisk::from_state(start);
    disk.inject(Fault { error: rustix::io::Errno::NOSPC, ..Fault::for_ever(CallKind::Append, 9) });
    let acknowledged = match Database::open_on(Arc::new(disk.clone()), tiny()) {
        Err(_) => history.last(),
        Ok(database) => {
            let mut writer = Writer::new(&disk, &history);
            writer.run(&database).expect_err("the disk is full");
            writer.outcome.acknowledged
        }
    };
    // A recovery that needs room fails, one that does not may not.
    drop(Database::open_on(Arc::new(disk.clone()), tiny()));
    assert!(disk.heal() > 0, "the fault struck");
    let database = open(&disk, &tiny()).expect("there is room");
    let found = dump(&database).expect("reads");
    assert!(!found.is_empty());
    assert!(acknowledged >= history.last());
    close(&disk, &database).expect("nothing is left over");
}
