//! Commits that wait for background work: for what, how often, and how long.
//!
//! A commit waits when the active delta is full and as many as [`Options::sealed_max`](super::Options::sealed_max) wait for
//! their flush already. What the background thread does first then is the reason.

use std::time::Duration;

use super::sync::{AtomicU64, Ordering};

/// What commits waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// Deltas are sealed faster than they are flushed.
    Flush,
    /// A tree has so many runs that they are merged before anything is flushed.
    Merge,
    /// Somebody asked for a settle, which flushes and merges everything at once.
    Settle,
}

/// Commits that waited for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// How many.
    pub commits: u64,
    /// How long in all.
    pub time: Duration,
}

/// Commits that waited, by what they waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// For a flush.
    pub flush: Stall,
    /// For merges.
    pub merge: Stall,
    /// For a settle.
    pub settle: Stall,
}

/// Counted since the database was opened.
#[derive(Default)]
pub(crate) struct StallCounters([StallCounter; 3]);

#[derive(Default)]
struct StallCounter {
    commits: AtomicU64,
    nanos: AtomicU64,
}

impl StallReason {
    /// Its name in events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Merge => "merge",
            Self::Settle => "settle",
        }
    }

    /// What the background thread does first, by its own order.
    pub(crate) fn of(is_settle_wanted: bool, is_merge_urgent: bool) -> Self {
        match (is_settle_wanted, is_merge_urgent) {
            (true, _) => Self::Settle,
            (false, true) => Self::Merge,
            (false, false) => Self::Flush,
        }
    }
}

impl StallCounters {
    pub(crate) fn add(&self, reason: StallReason, waited: Duration) {
        let StallCounter { commits, nanos } = &self.0[reason as usize];
        commits.fetch_add(1, Ordering::Relaxed);
        nanos.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Stalls {
        let of = |reason: StallReason| {
            let StallCounter { commits, nanos } = &self.0[reason as usize];
            let time = Duration::from_nanos(nanos.load(Ordering::Relaxed));
            Stall { commits: commits.load(Ordering::Relaxed), time }
        };
        Stalls { flush: of(StallReason::Flush), merge: of(StallReason::Merge), settle: of(StallReason::Settle) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_what_is_done_first() {
        assert_eq!(StallReason::of(true, true), StallReason::Settle);
        assert_eq!(StallReason::of(false, true), StallReason::Merge);
        assert_eq!(StallReason::of(false, false), StallReason::Flush);
    }

    #[test]
    fn each_reason_is_counted_by_itself() {
        let counters = StallCounters::default();
        counters.add(StallReason::Merge, Duration::from_millis(2));
        counters.add(StallReason::Merge, Duration::from_millis(3));
        counters.add(StallReason::Settle, Duration::from_millis(7));
        let Stalls { flush, merge, settle } = counters.read();
        assert_eq!(flush, Stall::default());
        assert_eq!(merge, Stall { commits: 2, time: Duration::from_millis(5) });
        assert_eq!(settle, Stall { commits: 1, time: Duration::from_millis(7) });
    }
}
