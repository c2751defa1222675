//! A count that many threads change at once without slowing each other down.

use super::sync::{AtomicIsize, AtomicUsize, Ordering};

/// Threads that count without meeting another.
const STRIPES: usize = 16;

/// How many of something there are. Each thread counts on cache lines of its own, as far as there are some for it.
#[derive(Default)]
pub(crate) struct StripedCount([Stripe; STRIPES]);

/// What came, less what went, as far as it was counted here: below zero, if more went.
#[derive(Default)]
#[repr(align(128))]
struct Stripe(AtomicIsize);

thread_local! {
    static STRIPE: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES
    };
}

impl StripedCount {
    /// Counts one, until the answer is dropped.
    pub(crate) fn count_one(&self) -> Counted<'_> {
        self.add(1);
        Counted(self)
    }

    pub(crate) fn total(&self) -> u64 {
        let sum: isize = self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum();
        // A sum over a moment may miss one that came and see it go.
        sum.max(0) as u64
    }

    fn add(&self, change: isize) {
        self.0[STRIPE.with(|stripe| *stripe)].0.fetch_add(change, Ordering::Relaxed);
    }
}

/// One of those that are there.
pub(crate) struct Counted<'a>(&'a StripedCount);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_goes_on_another_thread_is_gone() {
        let count = StripedCount::default();
        let kept = count.count_one();
        thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                let counted = count.count_one();
                scope.spawn(|| {
                    let inside = count.count_one();
                    drop((counted, inside));
                });
            }
        });
        assert_eq!(count.total(), 1);
        drop(kept);
        assert_eq!(count.total(), 0);
    }
}
