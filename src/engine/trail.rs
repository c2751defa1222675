//! What was changed since the oldest transaction that is open began, for it to be checked against.
//!
//! Deltas know the number of the commit that each of their versions is from, and segments do not always. So the deltas
//! that were sealed since are kept, also when they are flushed, until no transaction needs them; but of many only the
//! newest, and older transactions are refused then. What is kept counts against the budget of memory as before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::sync::Mutex;
use super::version::Generation;

/// Sealed generations that are kept, at most.
pub(crate) const GENERATIONS_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Trail(Mutex<State>);

#[derive(Default)]
struct State {
    /// Sealed, oldest first.
    generations: VecDeque<Arc<Generation>>,
    /// How many transactions are open, by the last commit that they see.
    open: BTreeMap<u64, usize>,
    /// Of what was committed up to this one, not everything is known.
    forgotten: u64,
}

impl Trail {
    /// Notes that a transaction begins, which sees the commits up to the answer of `now`.
    pub(crate) fn begin<T>(&self, now: impl FnOnce() -> (u64, T)) -> T {
        let mut state = self.0.lock();
        let (sequence, begun) = now();
        *state.open.entry(sequence).or_default() += 1;
        begun
    }

    pub(crate) fn end(&self, sequence: u64, published: u64) {
        let mut state = self.0.lock();
        if let Some(count) = state.open.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&sequence);
            }
        }
        state.trim(published);
    }

    /// Takes in what was sealed. Transactions to come see everything up to `published`.
    pub(crate) fn add(&self, generation: &Arc<Generation>, published: u64) {
        let mut state = self.0.lock();
        state.generations.push_back(Arc::clone(generation));
        state.trim(published);
        if state.generations.len() > GENERATIONS_MAX
            && let Some(oldest) = state.generations.pop_front()
        {
            state.forgotten = oldest.end().sequence;
        }
    }

    pub(crate) fn trim(&self, published: u64) {
        self.0.lock().trim(published);
    }

    /// The sealed generations with all that was committed after `sequence`; `None` if not all of it is known any more.
    pub(crate) fn since(&self, sequence: u64) -> Option<Vec<Arc<Generation>>> {
        let state = self.0.lock();
        (sequence >= state.forgotten)
            .then(|| state.generations.iter().filter(|sealed| sealed.end().sequence > sequence).cloned().collect())
    }
}

impl State {
    fn trim(&mut self, published: u64) {
        let needed_from = self.open.keys().next().map_or(published, |oldest| published.min(*oldest));
        while self.generations.front().is_some_and(|oldest| oldest.end().sequence <= needed_from) {
            self.generations.pop_front();
        }
    }
}
