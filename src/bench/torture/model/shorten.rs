//! Makes a failing list of steps short.

use std::time::{Duration, Instant};

use super::step::Step;

/// Times that a list is tried before it counts as one that does not fail: the background thread has its turn in another
/// order each time.
const ATTEMPTS: usize = 3;
/// How long it goes on.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Leaves out steps, and parts of steps, as long as the rest still fails.
pub(super) fn shorten(steps: Vec<Step>, fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut short = Shortening { steps, end: Instant::now() + TIME_MAX, fails };
    loop {
        let before = short.size();
        short.leave_out();
        short.simplify();
        if short.size() == before || Instant::now() >= short.end {
            return short.steps;
        }
    }
}

struct Shortening<F> {
    steps: Vec<Step>,
    end: Instant,
    fails: F,
}

impl<F: Fn(&[Step]) -> bool> Shortening<F> {
    /// What gets less with every success.
    fn size(&self) -> (usize, usize) {
        (self.steps.len(), self.steps.iter().map(|step| format!("{step:?}").len()).sum())
    }

    /// Keeps `fewer` if they fail, too.
    fn accept(&mut self, fewer: Vec<Step>) -> bool {
        let fails = Instant::now() < self.end && (0..ATTEMPTS).any(|_| (self.fails)(&fewer));
        if fails {
            self.steps = fewer;
        }
        fails
    }

    fn leave_out(&mut self) {
        let mut part = self.steps.len().div_ceil(2);
        while part > 0 {
            let mut start = 0;
            while start < self.steps.len() {
                let mut fewer = self.steps.clone();
                fewer.drain(start..(start + part).min(self.steps.len()));
                if !self.accept(fewer) {
                    start += part;
                }
            }
            part /= 2;
        }
    }

    fn simplify(&mut self) {
        for index in 0..self.steps.len() {
            while self.simplify_step(index) {}
        }
    }

    fn simplify_step(&mut self, index: usize) -> bool {
        self.steps[index].simpler().into_iter().any(|simpler| {
            let mut steps = self.steps.clone();
            steps[index] = simpler;
            self.accept(steps)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Draw;
    use super::super::step::Action;
    use super::*;
    use crate::engine::disk::sim::Random;

    #[test]
    fn one_change_of_one_step_is_what_remains_of_a_list() {
        let steps = Draw::new(Random::new(1)).steps();
        let is_guilty = |step: &Step| match &step.action {
            Action::Commit { batches, .. } => batches.iter().flatten().any(|(_, key, _)| key.len() > 8),
            _ => false,
        };
        let short = shorten(steps, |steps| steps.iter().any(is_guilty));
        let [Step { action: Action::Commit { batches, .. }, .. }] = &short[..] else { panic!("{short:?}") };
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [1]);
    }
}
