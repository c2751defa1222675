//! Makes logs durable: one sync for all commits that wait for it.
//!
//! A commit of class `sync` comes here when its frame is in a log and its turn to write is over. Whoever finds that nobody
//! syncs leads: it syncs all that is in the logs, without a lock, while others come and wait for the next sync. So a
//! sync serves everybody who came before it began, and no commit waits for more than two of them.
//!
//! Writers that wait for their commits come back after each of them, all at about the same time. A leader that began with
//! the first of them would leave the others to the next sync, so it gathers: it waits until as many are there as when the
//! last sync ended, but not longer than that sync took. If they do not come, that is halved each time, until they do. A
//! writer that is alone never waits.
//!
//! A failed sync is never tried again: what it left on disk is unknown. Those who waited for it are told of it, and
//! every later change is refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::Result;
use super::health::Health;
use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use super::wal::Log;

/// What is durable of the logs, and who waits for more.
pub(crate) struct Syncing {
    state: Mutex<State>,
    /// As many wait as the leader gathers.
    gathered: Condvar,
    /// Copy of the durable sequence number, for frames.
    synced: AtomicU64,
}

struct State {
    /// Logs that may hold frames that are not durable, oldest first.
    logs: Vec<LiveLog>,
    /// Every frame up to this sequence number is durable.
    synced: u64,
    is_led: bool,
    /// Those who wait while somebody else leads.
    waiting: Vec<Arc<Waiter>>,
    /// As many were waiting when the last sync ended.
    expected: usize,
    /// What the last sync took.
    sync_time: Duration,
    /// How often in a row fewer came than were expected.
    misses: u32,
}

/// Somebody who waits. Each has a condition of its own: where many are woken by one, they wake one another in turn.
struct Waiter {
    sequence: u64,
    call: Mutex<Option<Call>>,
    called: Condvar,
}

/// What a waiter is told.
#[derive(Clone, Copy)]
enum Call {
    /// What it waits for is durable.
    Durable,
    /// It is the next to lead.
    Lead,
}

impl Waiter {
    fn new(sequence: u64) -> Arc<Self> {
        Arc::new(Self { sequence, call: Mutex::new(None), called: Condvar::new() })
    }

    fn call(&self, call: Call) {
        *self.call.lock() = Some(call);
        self.called.notify_one();
    }

    fn wait(&self) -> Call {
        let mut call = self.call.lock();
        loop {
            match *call {
                Some(call) => return call,
                None => self.called.wait(&mut call),
            }
        }
    }
}

struct LiveLog {
    log: Arc<Log>,
    /// Whether its name is durable.
    named: bool,
}

/// What one sync makes durable.
struct Round {
    logs: Vec<Arc<Log>>,
    /// Every frame up to this sequence number.
    reaches: u64,
    /// The newest log whose name is not durable yet.
    unnamed: Option<u64>,
}

/// The right to sync. Handed on when dropped, also by a panic.
struct Lead<'a>(&'a Syncing);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        let synced = state.synced;
        let served: Vec<_> = state.waiting.extract_if(.., |waiter| waiter.sequence <= synced).collect();
        let next = state.waiting.pop();
        state.is_led = next.is_some();
        drop(state);
        for waiter in served {
            waiter.call(Call::Durable);
        }
        if let Some(next) = next {
            next.call(Call::Lead);
        }
    }
}

impl Syncing {
    pub(crate) fn new(synced: u64) -> Self {
        let state = State {
            logs: Vec::new(),
            synced,
            is_led: false,
            waiting: Vec::new(),
            expected: 0,
            sync_time: Duration::ZERO,
            misses: 0,
        };
        Self { state: Mutex::new(state), gathered: Condvar::new(), synced: AtomicU64::new(synced) }
    }

    /// Every frame up to this sequence number is durable.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Relaxed)
    }

    /// Bytes of all live logs.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.state.lock().logs.iter().map(|live| live.log.bytes()).sum()
    }

    /// A log that was made; its name is not durable yet.
    pub(crate) fn add(&self, log: Arc<Log>) {
        self.state.lock().logs.push(LiveLog { log, named: false });
    }

    /// Forgets logs whose content is durable in segments, up to the frame `logged`, and names them.
    pub(crate) fn forget_below(&self, floor: u64, logged: u64) -> Vec<u64> {
        let mut state = self.state.lock();
        let forgotten = state.logs.extract_if(.., |live| live.log.number < floor).map(|live| live.log.number).collect();
        self.reach(&mut state, logged);
        forgotten
    }

    /// Waits until every frame up to `sequence` is durable. `sync_dir` makes the names of files durable.
    pub(crate) fn wait(&self, sequence: u64, health: &Health, sync_dir: impl Fn() -> Result<()>) -> Result<()> {
        let Some(_lead) = self.wait_for_lead(sequence) else { return Ok(()) };
        let mut state = self.state.lock();
        if state.synced >= sequence {
            return Ok(());
        }
        health.check_sound()?;
        self.gather(&mut state);
        let round = state.round();
        drop(state);
        let started = Instant::now();
        round.sync(&sync_dir).inspect_err(|error| health.poison(error))?;
        let mut state = self.state.lock();
        state.end(&round, started.elapsed());
        self.reach(&mut state, round.reaches);
        Ok(())
    }

    /// `None` if somebody else's sync has reached `sequence`.
    fn wait_for_lead(&self, sequence: u64) -> Option<Lead<'_>> {
        let mut state = self.state.lock();
        if !state.is_led {
            state.is_led = true;
            return Some(Lead(self));
        }
        let waiter = Waiter::new(sequence);
        state.waiting.push(Arc::clone(&waiter));
        if state.waiting.len() + 1 == state.expected {
            self.gathered.notify_one();
        }
        drop(state);
        match waiter.wait() {
            Call::Lead => Some(Lead(self)),
            Call::Durable => None,
        }
    }

    /// Waits for those who are likely to come; see the head of this file.
    fn gather(&self, state: &mut MutexGuard<'_, State>) {
        let patience = state.sync_time.checked_div(1 << state.misses.min(16)).unwrap_or_default();
        let until = Instant::now() + patience;
        while state.waiting.len() + 1 < state.expected {
            if self.gathered.wait_until(state, until).timed_out() {
                state.misses = state.misses.saturating_add(1);
                return;
            }
        }
        state.misses = 0;
    }

    fn reach(&self, state: &mut State, sequence: u64) {
        state.synced = state.synced.max(sequence);
        self.synced.store(state.synced, Ordering::Relaxed);
    }
}

impl State {
    /// All that is not durable yet.
    fn round(&self) -> Round {
        let is_behind = |live: &&LiveLog| live.log.last_sequence() > self.synced;
        let logs: Vec<_> = self.logs.iter().filter(is_behind).map(|live| Arc::clone(&live.log)).collect();
        let reaches = logs.iter().map(|log| log.last_sequence()).max().unwrap_or_default();
        let unnamed = self.logs.iter().filter(|live| !live.named).map(|live| live.log.number).max();
        Round { logs, reaches, unnamed }
    }

    fn end(&mut self, round: &Round, sync_time: Duration) {
        let is_named = |live: &&mut LiveLog| Some(live.log.number) <= round.unnamed;
        self.logs.iter_mut().filter(is_named).for_each(|live| live.named = true);
        self.expected = self.waiting.len() + 1;
        self.sync_time = sync_time;
    }
}

impl Round {
    /// Oldest first: what is durable has no gaps.
    fn sync(&self, sync_dir: impl Fn() -> Result<()>) -> Result<()> {
        self.logs.iter().try_for_each(|log| log.sync())?;
        if self.unnamed.is_some() { sync_dir() } else { Ok(()) }
    }
}
