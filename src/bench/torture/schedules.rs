//! Threads that take turns in an order that is drawn: whatever the order, each gets what it was promised, and nobody waits
//! for ever.
//!
//! Each case is one of the [`subjects`] under one schedule: a few threads and the background thread of one database, on a
//! disk in memory. Between any two things that one of them does to what they share, any other may go on; the
//! [`Chooser`] says who does. All of them wait for one another: that is a deadlock, and found at once. When they are done,
//! [`judge`](Case::judge) looks at what they saw, and at what a kill or a power loss at the end or anywhere before leaves.
//!
//! Orders are drawn, not counted through: one case has a thousand turns and more, which are too many for loom to try all
//! ways, so `shuttle` is used. It takes every access to memory for sequentially consistent, and does not wake threads
//! for no reason.

mod case;
mod chooser;
mod judge;
mod scene;
mod subjects;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use shuttle::{Config, FailurePersistence, Runner};

use self::case::{Case, START};
use self::chooser::Chooser;
use self::subjects::{SUBJECTS, Subject};
use super::Session;
use crate::engine::sync::scheduled::{exploring, give_up_exploring};

/// Of each thread. Those of the system have more, but a case runs small databases.
const STACK_BYTES: usize = 1 << 20;

/// Each subject once.
pub(crate) fn round(session: &mut Session<'_>, seed: u64) {
    for subject in SUBJECTS {
        if session.goes_on() {
            session.try_case(|| format!("schedule of {}", subject.name), || run(subject, seed));
        }
    }
}

fn run(subject: &'static Subject, seed: u64) -> Result<(), String> {
    explore(seed, move || Case::run(subject, seed))?.judge(seed)
}

/// Runs `case` under one schedule.
fn explore<T: Send + 'static>(seed: u64, case: impl Fn() -> T + Send + Sync + 'static) -> T {
    // Made once for all, by threads that take no turns.
    LazyLock::force(&START);
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let case = move || *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(exploring(&case));
    let explored = catch_unwind(AssertUnwindSafe(|| Runner::new(Chooser::new(seed), config).run(case)));
    give_up_exploring();
    if let Err(panic) = explored {
        resume_unwind(panic);
    }
    let result = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    result.expect("a schedule ends with its case")
}
