//! Any call may fail, once or for ever: the caller learns it, nothing that was acknowledged changes, and after a reopen
//! all is well.
//!
//! Each case runs a workload with one fault, at the first call, at the second and so on, until the workload ends before
//! the fault strikes.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;

use super::history::{self, History, close, dump, examine, open, tiny, verify};
use super::{Session, caught};
use crate::engine::disk::sim::{AfterFailedSync, CallKind, Fault, PowerLoss, Random, SimDisk, State};
use crate::engine::{Database, Durability, Error, Result};

const TREES: [&str; 2] = ["a", "b"];
/// A case takes a few milliseconds.
const CASE_TIME_MAX: Duration = Duration::from_secs(10);

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
    fn new(disk: &SimDisk, history: &History, seed: u64) -> Self {
        let number = history.last();
        let outcome = Outcome { history: history.clone(), acknowledged: number, durable: number, failure: None };
        Self { disk: disk.clone(), random: Random::new(seed), outcome }
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
        history::tree(database, name).expect("a new tree");
    }
}

/// A database with content, whose first calls are past.
fn prepared(seed: u64) -> (State, History) {
    let disk = SimDisk::new();
    let database = open(&disk, &tiny()).expect("opens");
    let (mut history, mut random) = (History::new(), Random::new(!seed));
    make_trees(&database);
    for _ in 0..6 {
        let batch = history.draw(&mut random, &TREES);
        database.commit_with(&batch, Durability::Process).expect("nothing fails here");
    }
    let left = disk.state();
    drop(database);
    (left, history)
}

/// Opens and runs a workload with `fault`, and answers whether it struck.
fn run_with(fault: Fault, start: &State, history: &History, seed: u64) -> std::result::Result<bool, String> {
    let disk = SimDisk::from_state(start.clone());
    disk.inject(fault);
    let database = match Database::open_on(Arc::new(disk.clone()), tiny()) {
        Ok(database) => database,
        Err(error) if disk.was_struck() => return after_failed_open(&disk, history, &error).map(|()| true),
        Err(error) => return Err(format!("open failed without a fault: {error}")),
    };
    let mut writer = Writer::new(&disk, history, seed);
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

/// Moves `fault` through opening and workload, call by call, until it is behind the last one.
fn at_every_call(session: &mut Session<'_>, fault: Fault, seed: u64) {
    let prepared = session.try_cases(0, || "preparing".to_owned(), || Ok(prepared(seed)));
    let Some((start, history)) = prepared else { return };
    for after in 0.. {
        let fault = Fault { after, ..fault };
        let (start, history) = (start.clone(), history.clone());
        let run = move || run_with(fault, &start, &history, seed);
        let struck = session.try_case(|| format!("{fault:?}"), || within(CASE_TIME_MAX, run));
        if struck == Some(false) || !session.goes_on() {
            return;
        }
    }
}

fn once_and_for_ever(kind: Option<CallKind>) -> [Fault; 2] {
    [Fault::once(kind, 0), Fault::for_ever(kind, 0)]
}

/// A sync fails, with everything that later reads may find then.
fn failed_syncs() -> Vec<Fault> {
    use AfterFailedSync::{CacheKeepsNew, OldComesBack, ReadsFail};
    let afterwards =
        |fault| [CacheKeepsNew, OldComesBack, ReadsFail].map(|after_failed_sync| Fault { after_failed_sync, ..fault });
    once_and_for_ever(Some(CallKind::Sync)).into_iter().flat_map(afterwards).collect()
}

/// A sync of the directory fails.
fn failed_directory_syncs() -> Vec<Fault> {
    once_and_for_ever(Some(CallKind::SyncDir)).to_vec()
}

/// Any call fails, with `error`; of an append, half may land.
fn failed_calls(error: Errno, short: bool) -> Vec<Fault> {
    once_and_for_ever(None).map(|fault| Fault { error, short, ..fault }).to_vec()
}

/// Every fault at every call.
pub(crate) fn round(session: &mut Session<'_>, seed: u64) {
    let any_call = [(Errno::IO, false), (Errno::NOSPC, false), (Errno::NOSPC, true), (Errno::MFILE, false)];
    let any_call = any_call.into_iter().flat_map(|(error, short)| failed_calls(error, short));
    for fault in failed_syncs().into_iter().chain(failed_directory_syncs()).chain(any_call) {
        if session.goes_on() {
            at_every_call(session, fault, seed);
        }
    }
}

/// Runs a case on a thread of its own, and gives up on it when it takes too long.
fn within<T: Send + 'static>(
    limit: Duration,
    run: impl FnOnce() -> std::result::Result<T, String> + Send + 'static,
) -> std::result::Result<T, String> {
    let (sender, receiver) = mpsc::channel();
    // A receiver that is gone gave up.
    std::thread::spawn(move || drop(sender.send(caught(run))));
    receiver.recv_timeout(limit).unwrap_or_else(|_| Err(format!("still running after {limit:?}")))
}

#[cfg(test)]
mod tests;
