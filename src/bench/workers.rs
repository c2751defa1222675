//! One phase, on all its workers at once: each runs its share of the plan against the store and folds the answers.
//!
//! All workers wait at a gate. The clock starts when it opens, that is when the first of them leaves it, and stops
//! when the last is done; each reads the clock itself, so a main thread that is scheduled late changes nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use parking_lot::{Condvar, Mutex};

use super::checksum::Checksum;
use super::dataset::{DataSet, data_bytes};
use super::measure::{self, Sampler};
use super::phase::{Operation, Phase};
use super::plan::{Operations, Plan, Queries, Work};
use super::result::PhaseResult;
use crate::store::{ProfileStore, ProfileView};

/// Time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// The run was stopped from outside; what was finished stays finished.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Runs `phase`, whose `operations` are drawn, to its end; tells `progress` the operations done so far, a few times a second.
pub fn run_phase(
    store: &dyn ProfileStore,
    plan: &Plan,
    phase: &Phase,
    operations: &Operations,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<PhaseResult> {
    let shared = Shared::new(plan, stop);
    let outcomes = thread::scope(|scope| {
        let mut workers = Vec::new();
        for (number, done) in shared.done.iter().enumerate() {
            let worker = Worker { store, shared: &shared, done: &done.0 };
            let work = plan.work(phase, operations, number as u64);
            match thread::Builder::new().spawn_scoped(scope, move || worker.run(work)) {
                Ok(handle) => workers.push(handle),
                Err(error) => {
                    shared.gate.give_up();
                    return Err(anyhow!(error).context("cannot start a worker"));
                }
            }
        }
        let ticker = scope.spawn(|| shared.tick(progress));
        let outcomes = workers.into_iter().map(|worker| {
            let outcome = worker.join();
            outcome.unwrap_or_else(|_| Err(shared.fail(anyhow!("a worker panicked"))))
        });
        let outcomes = outcomes.collect::<Vec<_>>();
        shared.is_over.store(true, Ordering::Relaxed);
        ticker.thread().unpark();
        first_cause(outcomes)
    });
    outcomes.and_then(|outcomes| summed_up(phase, outcomes)).with_context(|| format!("phase `{}`", phase.name))
}

/// What the workers of a phase share.
struct Shared<'a> {
    gate: Gate,
    done: Vec<Padded>,
    stop: &'a AtomicBool,
    /// A worker failed: the others need not go on.
    failed: AtomicBool,
    is_over: AtomicBool,
    data: DataSet,
    seed: i32,
    limit: usize,
}

/// A counter alone on its cache lines, so that workers do not slow each other down by counting.
#[derive(Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl<'a> Shared<'a> {
    fn new(plan: &Plan, stop: &'a AtomicBool) -> Self {
        let workload = plan.workload();
        Self {
            gate: Gate::new(workload.workers as usize),
            done: (0..workload.workers).map(|_| Padded::default()).collect(),
            stop,
            failed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            data: workload.dataset,
            seed: workload.seed,
            limit: usize::try_from(workload.query_limit).unwrap_or(usize::MAX),
        }
    }

    fn tick(&self, progress: &(dyn Fn(u64) + Sync)) {
        while !self.is_over.load(Ordering::Relaxed) {
            thread::park_timeout(PROGRESS_INTERVAL);
            progress(self.done.iter().map(|done| done.0.load(Ordering::Relaxed)).sum());
        }
    }

    fn fail(&self, error: anyhow::Error) -> anyhow::Error {
        self.failed.store(true, Ordering::Relaxed);
        error
    }

    fn check_stopped(&self) -> Result<()> {
        let is_stopped = self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
        if is_stopped { Err(Interrupted.into()) } else { Ok(()) }
    }
}

/// Opens when everyone expected has arrived.
struct Gate {
    arrived: Mutex<usize>,
    changed: Condvar,
    expected: usize,
}

/// More than can ever arrive.
const GIVEN_UP: usize = usize::MAX / 2;

impl Gate {
    fn new(expected: usize) -> Self {
        Self { arrived: Mutex::new(0), changed: Condvar::new(), expected }
    }

    /// Returns when the gate opens: `false` if it was given up.
    fn wait(&self) -> bool {
        let mut arrived = self.arrived.lock();
        *arrived += 1;
        if *arrived == self.expected {
            self.changed.notify_all();
        }
        while *arrived < self.expected {
            self.changed.wait(&mut arrived);
        }
        *arrived < GIVEN_UP
    }

    /// Lets everyone go home: somebody will never arrive.
    fn give_up(&self) {
        *self.arrived.lock() = GIVEN_UP;
        self.changed.notify_all();
    }
}

/// What one worker did.
struct Outcome {
    operations: u64,
    began: Instant,
    ended: Instant,
    answers: Answers,
    sampler: Sampler,
}

/// What one worker was told, and what it had handed over.
#[derive(Default)]
struct Answers {
    checksum: Checksum,
    /// User data written.
    data_bytes: u64,
}

/// Every outcome, or the error that made the others stop.
fn first_cause(outcomes: Vec<Result<Outcome>>) -> Result<Vec<Outcome>> {
    let mut done = Vec::with_capacity(outcomes.len());
    let mut interrupted = None;
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => done.push(outcome),
            Err(error) if error.is::<Interrupted>() => interrupted = Some(error),
            Err(error) => return Err(error),
        }
    }
    interrupted.map_or(Ok(done), Err)
}

fn summed_up(phase: &Phase, outcomes: Vec<Outcome>) -> Result<PhaseResult> {
    let began = outcomes.iter().map(|outcome| outcome.began).min().context("no worker ran")?;
    let ended = outcomes.iter().map(|outcome| outcome.ended).max().context("no worker ran")?;
    let operations: u64 = outcomes.iter().map(|outcome| outcome.operations).sum();
    let seconds = (ended - began).as_secs_f64();
    let had_work = outcomes.iter().filter(|outcome| outcome.operations > 0);
    let checksum = Checksum::combined(&had_work.map(|outcome| outcome.answers.checksum).collect::<Vec<_>>());
    let writes = matches!(phase.operation, Operation::Insert | Operation::Update);
    let data_bytes = outcomes.iter().map(|outcome| outcome.answers.data_bytes).sum();
    Ok(PhaseResult {
        name: phase.name.to_owned(),
        operations,
        elapsed_ms: seconds * 1000.0,
        ops_per_s: (operations > 0 && seconds > 0.0).then(|| operations as f64 / seconds),
        checksum: checksum.to_string(),
        data_bytes: writes.then_some(data_bytes),
        latency_us: measure::latency(outcomes.into_iter().map(|outcome| outcome.sampler.into_histogram())),
    })
}

/// One thread's part of a phase.
struct Worker<'a> {
    store: &'a dyn ProfileStore,
    shared: &'a Shared<'a>,
    done: &'a AtomicU64,
}

impl Worker<'_> {
    fn run(&self, work: Work<'_>) -> Result<Outcome> {
        let operations = work.len() as u64;
        let mut answers = Answers::default();
        let mut sampler = Sampler::begin();
        if !self.shared.gate.wait() {
            return Err(Interrupted.into());
        }
        sampler.restart();
        self.perform(work, &mut answers, &mut sampler).map_err(|error| self.shared.fail(error))?;
        let ended = Instant::now();
        self.done.store(operations, Ordering::Relaxed);
        Ok(Outcome { operations, began: sampler.begun(), ended, answers, sampler })
    }

    fn perform(&self, work: Work<'_>, answers: &mut Answers, sampler: &mut Sampler) -> Result<()> {
        let count = work.len();
        let checksum = &mut answers.checksum;
        match work {
            Work::Insert(ids) => self.each(count, sampler, |i| self.insert(ids.start as i64 + i as i64, answers)),
            Work::Read(ids) => self.each(count, sampler, |i| self.read(i64::from(ids[i]), checksum)),
            Work::FindByEmail(ids) => {
                let mut email = String::with_capacity(64);
                self.each(count, sampler, |i| self.find_by_email(i64::from(ids[i]), &mut email, checksum))
            }
            Work::Scan(queries) => self.each(count, sampler, |i| self.scan(&queries, i, checksum)),
            Work::Query(queries) => self.each(count, sampler, |i| self.query(&queries, i, checksum)),
            Work::Update(ids) => self.each(count, sampler, |i| self.update(i64::from(ids[i]), answers)),
        }
    }

    /// Does every operation, times some of them, and at those looks whether to go on.
    fn each(&self, count: usize, sampler: &mut Sampler, mut operation: impl FnMut(usize) -> Result<()>) -> Result<()> {
        for i in 0..count {
            let index = i as u64;
            if sampler.is_due(index) {
                self.shared.check_stopped()?;
                self.done.store(index, Ordering::Relaxed);
                let started = Instant::now();
                operation(i)?;
                sampler.record(index, started);
            } else {
                operation(i)?;
            }
        }
        Ok(())
    }

    fn insert(&self, id: i64, answers: &mut Answers) -> Result<()> {
        let profile = self.shared.data.profile(id, self.shared.seed);
        answers.data_bytes += data_bytes(&profile.view());
        self.store.insert(profile).with_context(|| format!("inserting profile {id}"))?;
        answers.checksum.number(id);
        Ok(())
    }

    fn read(&self, id: i64, checksum: &mut Checksum) -> Result<()> {
        read_profile(self.store, id, |profile| checksum.profile(profile))
    }

    fn find_by_email(&self, id: i64, email: &mut String, checksum: &mut Checksum) -> Result<()> {
        self.shared.data.email(id, self.shared.seed, email);
        let mut answer = OneProfile::expected(id);
        let found = self.store.find_by_email(email, &mut |profile| {
            answer.note(profile);
            checksum.profile(profile);
        });
        answer.check(found.with_context(|| format!("looking up {email}"))?)
    }

    fn scan(&self, queries: &Queries<'_>, i: usize, checksum: &mut Checksum) -> Result<()> {
        let (query, limit) = (queries.get(i), self.shared.limit);
        let mut rows = 0;
        let scanned = self.store.scan(&query, limit, &mut |id| {
            rows += 1;
            checksum.number(id);
        });
        scanned.with_context(|| format!("scan {i}"))?;
        ensure!(rows <= limit, "scan {i} gave {rows} ids; the limit is {limit}");
        Ok(())
    }

    fn query(&self, queries: &Queries<'_>, i: usize, checksum: &mut Checksum) -> Result<()> {
        let (query, limit) = (queries.get(i), self.shared.limit);
        let mut rows = 0;
        let answered = self.store.query(&query, limit, &mut |profile| {
            rows += 1;
            checksum.profile(profile);
        });
        answered.with_context(|| format!("query {i}"))?;
        ensure!(rows <= limit, "query {i} gave {rows} profiles; the limit is {limit}");
        Ok(())
    }

    fn update(&self, id: i64, answers: &mut Answers) -> Result<()> {
        let Shared { data, seed, .. } = *self.shared;
        let mut answer = OneProfile::expected(id);
        let found = self.store.modify(id, &mut |current| data.updated(current, seed), &mut |profile| {
            answer.note(profile);
            answers.data_bytes += data_bytes(profile);
            answers.checksum.profile(profile);
        });
        answer.check(found.with_context(|| format!("updating profile {id}"))?)
    }
}

/// Reads a profile that must be there.
pub(super) fn read_profile(store: &dyn ProfileStore, id: i64, mut read: impl FnMut(&ProfileView<'_>)) -> Result<()> {
    let mut answer = OneProfile::expected(id);
    let found = store.get(id, &mut |profile| {
        answer.note(profile);
        read(profile);
    });
    answer.check(found.with_context(|| format!("reading profile {id}"))?)
}

/// Checks that a store gave the profile asked for, once.
struct OneProfile {
    expected: i64,
    given: u32,
    last: i64,
}

impl OneProfile {
    fn expected(id: i64) -> Self {
        Self { expected: id, given: 0, last: id }
    }

    #[inline]
    fn note(&mut self, profile: &ProfileView<'_>) {
        self.given += 1;
        self.last = profile.user_id;
    }

    #[inline]
    fn check(&self, found: bool) -> Result<()> {
        let id = self.expected;
        ensure!(found, "profile {id} is missing");
        ensure!(self.given == 1, "profile {id} was given {} times", self.given);
        ensure!(self.last == id, "profile {} was given for {id}", self.last);
        Ok(())
    }
}
