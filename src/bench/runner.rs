//! The life of a run: open, sixteen phases, settle, close, reopen, verify, and a check of everything outside the clock.
//!
//! Every step is told as an [`Event`] when it has happened, so that what was finished survives a run that was not.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::checksum::Checksum;
use super::contenders::{Contender, Durability, OpenOptions, OpenStore};
use super::event::{Event, Step};
use super::measure::{self, DirectorySize};
use super::phase::{Operation, PHASES, Phase};
use super::plan::{Operations, Plan};
use super::result::{IndexCheckResult, Workload};
use super::workers::{Interrupted, read_profile, run_phase};
use crate::store::ProfileStore;

/// Profiles the check outside the clock reads before it looks whether it was stopped.
const CHECKED_AT_ONCE: u64 = 4096;

/// Where and how a contender is to run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// An empty directory for the store.
    pub dir: PathBuf,
    /// Class to run in.
    pub durability: Durability,
    /// Set to stop the run; it then fails with [`Interrupted`].
    pub stop: Arc<AtomicBool>,
}

/// Runs `plan` on `contender`. An error is not told as an event: it is for the caller to tell.
pub fn run(
    contender: &dyn Contender,
    plan: &Plan,
    settings: &RunSettings,
    emit: &(dyn Fn(Event) + Sync),
) -> Result<()> {
    Run { contender, plan, settings, emit }.start_to_end()
}

struct Run<'a> {
    contender: &'a dyn Contender,
    plan: &'a Plan,
    settings: &'a RunSettings,
    emit: &'a (dyn Fn(Event) + Sync),
}

/// What verify found, and what the process had cost by then.
struct Verified {
    run_ms: f64,
    checksum: Checksum,
    peak_memory_bytes: Option<u64>,
    io_write_bytes: Option<u64>,
}

impl Run<'_> {
    fn start_to_end(&self) -> Result<()> {
        let mut operations = self.plan.room();
        let baseline_memory_bytes = measure::resident_bytes();
        let begun = Instant::now();
        let store = self.open().context("opening the store")?;
        let settings = store.settings().context("reading the settings back")?;
        self.emit(Event::Opened { version: self.contender.version(), settings, baseline_memory_bytes });
        let mut drawing = Duration::ZERO;
        for phase in &PHASES {
            drawing += self.draw(phase, &mut operations);
            self.phase(store.as_ref(), phase, &operations)?;
        }
        let size = self.put_away(store)?;
        let store = self.step(Step::Reopen, "reopening the store", || self.open())?;
        let verified = self.verify(store.profiles(), begun + drawing)?;
        self.check(store, size, &verified)
    }

    fn open(&self) -> Result<Box<dyn OpenStore>> {
        let Workload { profiles, workers, memory_bytes, .. } = *self.plan.workload();
        let options = OpenOptions { durability: self.settings.durability, profiles, workers, memory_bytes };
        self.contender.open(&self.settings.dir, &options)
    }

    /// Draws the operations of a phase; gives the time that took, which is none of the store's.
    fn draw(&self, phase: &Phase, operations: &mut Operations) -> Duration {
        let begun = Instant::now();
        self.plan.draw(phase, operations);
        begun.elapsed()
    }

    fn phase(&self, store: &dyn OpenStore, phase: &Phase, operations: &Operations) -> Result<()> {
        self.check_stopped()?;
        let count = phase.operations(self.plan.workload());
        self.emit(Event::PhaseStarted { name: phase.name.to_owned(), operations: count });
        let progress = |done| self.emit(Event::Progress { done });
        let phase_result = run_phase(store.profiles(), self.plan, phase, operations, &self.settings.stop, &progress)?;
        self.emit(Event::PhaseFinished { phase: phase_result });
        match phase.operation {
            Operation::Insert => self.stabilize(store, Step::PreReadStabilize),
            Operation::Update => self.stabilize(store, Step::PostUpdateStabilize),
            _ => Ok(()),
        }
    }

    fn stabilize(&self, store: &dyn OpenStore, step: Step) -> Result<()> {
        self.check_stopped()?;
        self.emit(Event::StepStarted { step });
        let begun = Instant::now();
        let was_needed = store.stabilize().context("making the store ready for reads")?;
        let elapsed_ms = was_needed.then(|| milliseconds_since(begun));
        self.emit(Event::StepFinished { step, elapsed_ms });
        Ok(())
    }

    /// Settles and closes; its size is what then lies in the directory.
    fn put_away(&self, store: Box<dyn OpenStore>) -> Result<DirectorySize> {
        self.step(Step::Settle, "settling the store", || {
            store.settle()?;
            store.close()
        })?;
        measure::directory_size(&self.settings.dir).context("measuring the store")
    }

    /// `run_begun` is the start of the run, put off by the time that was not the store's.
    fn verify(&self, store: &dyn ProfileStore, run_begun: Instant) -> Result<Verified> {
        let checksum = self.step(Step::Verify, "verify", || self.final_checksum(store))?;
        Ok(Verified {
            run_ms: milliseconds_since(run_begun),
            checksum,
            peak_memory_bytes: measure::peak_resident_bytes(),
            io_write_bytes: measure::written_bytes(),
        })
    }

    /// The number of profiles, then the first, the middle and the last of them.
    fn final_checksum(&self, store: &dyn ProfileStore) -> Result<Checksum> {
        let profiles = self.plan.workload().profiles;
        let count = store.count()?;
        ensure!(count == profiles, "the store holds {count} profiles; {profiles} were inserted");
        let mut checksum = Checksum::default();
        checksum.unsigned(count);
        for id in [1, (profiles / 2).max(1), profiles] {
            read_profile(store, id as i64, |profile| checksum.profile(profile))?;
        }
        Ok(checksum)
    }

    /// Outside every clock: all fields of all profiles, and every index.
    fn check(&self, store: Box<dyn OpenStore>, size: DirectorySize, verified: &Verified) -> Result<()> {
        let (all_fields, index_check) = self.step(Step::Check, "checking every profile and index", || {
            let all_fields = self.all_fields(store.profiles())?;
            Ok((all_fields, store.profiles().check_indexes()?))
        })?;
        store.close().context("closing the store")?;
        self.emit(Event::Finished {
            run_ms: verified.run_ms,
            verify_checksum: verified.checksum.to_string(),
            all_fields_checksum: all_fields.to_string(),
            storage_bytes: size.apparent_bytes,
            storage_allocated_bytes: size.allocated_bytes,
            peak_memory_bytes: verified.peak_memory_bytes,
            io_write_bytes: verified.io_write_bytes,
            index_check: IndexCheckResult { checked: index_check.checked, problems: index_check.problems },
        });
        Ok(())
    }

    fn all_fields(&self, store: &dyn ProfileStore) -> Result<Checksum> {
        let mut checksum = Checksum::default();
        for id in 1..=self.plan.workload().profiles {
            if id % CHECKED_AT_ONCE == 0 {
                self.check_stopped()?;
            }
            read_profile(store, id as i64, |profile| checksum.all_fields(profile))?;
        }
        Ok(checksum)
    }

    /// Does and times something outside the phases.
    fn step<T>(&self, step: Step, what: &'static str, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check_stopped()?;
        self.emit(Event::StepStarted { step });
        let begun = Instant::now();
        let done = act().context(what)?;
        self.emit(Event::StepFinished { step, elapsed_ms: Some(milliseconds_since(begun)) });
        Ok(done)
    }

    fn check_stopped(&self) -> Result<()> {
        if self.settings.stop.load(Ordering::Relaxed) { Err(Interrupted.into()) } else { Ok(()) }
    }

    fn emit(&self, event: Event) {
        (self.emit)(event);
    }
}

fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
