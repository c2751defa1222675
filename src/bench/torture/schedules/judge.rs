//! What is right whatever the order was.
//!
//! Batches go to the log in the order of their sequence numbers, so the trace of the disk tells what every number stands
//! for. Then each snapshot has to show exactly what its number says, and at least what was acknowledged before; and
//! whatever is left of the database at some moment has to be the state after one of the batches, not before those that
//! were promised until then.

use std::ops::RangeInclusive;

use super::case::{Case, START};
use super::scene::{Content, Record, Seen, Written, read};
use crate::bench::torture::history::{open, verify};
use crate::engine::Direction;
use crate::engine::disk::sim::{Call, PowerLoss, Random, SimDisk, State};

/// What becomes of the disk at some moment.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Lost(PowerLoss),
}

/// The trace, read.
struct Course {
    trace: Vec<Call>,
    /// Each batch with the call that appended it.
    order: Vec<(usize, Written)>,
    /// The state before them, and after each.
    states: Vec<Content>,
}

impl Case {
    /// Looks at what was seen, and at what is left at the end, and at one moment before.
    pub(super) fn judge(&self, seed: u64) -> Result<(), String> {
        let course = Course::of(self.disk.trace(), &self.record);
        self.record.seen.iter().try_for_each(|seen| course.judge_seen(seen))?;
        let mut random = Random::new(seed);
        let calls = course.trace.len();
        let before = if random.once_in(4) { End::Killed } else { draw_loss(&mut random) };
        let ends = [(calls, End::Killed), (calls, draw_loss(&mut random)), (random.below(calls + 1), before)];
        ends.into_iter().try_for_each(|(moment, end)| {
            let numbers = course.promised(&self.record, moment, end)?;
            let left = course.left(moment, end, &mut random);
            self.judge_left(left, &course, numbers)
                .map_err(|text| format!("{end:?} after call {moment} of {calls}: {text}"))
        })
    }

    fn judge_left(&self, left: State, course: &Course, numbers: RangeInclusive<usize>) -> Result<(), String> {
        let database = open(&SimDisk::from_state(left), &self.options)?;
        let found =
            read(&database.snapshot(), Direction::Forward).map_err(|error| format!("reading failed: {error}"))?;
        let number = course.states.iter().rposition(|state| *state == found);
        let number = number.ok_or_else(|| format!("no batch ever led to {found:?}"))?;
        if !numbers.contains(&number) {
            return Err(format!("state {number} is there, expected one of {numbers:?} of {:?}", course.order));
        }
        verify(&database)
    }
}

fn draw_loss(random: &mut Random) -> End {
    let losses: Vec<_> = PowerLoss::EXTREMES.iter().chain(&PowerLoss::DRAWN).collect();
    End::Lost(**random.pick(&losses))
}

impl Course {
    fn of(trace: Vec<Call>, record: &Record) -> Self {
        let order = order(&trace, &record.tried);
        let mut states = vec![START.content.clone()];
        for (_, written) in &order {
            let mut state = states[states.len() - 1].clone();
            written.apply(&mut state);
            states.push(state);
        }
        Self { trace, order, states }
    }

    /// How many batches there have to be for these.
    fn least<'a>(&self, batches: impl IntoIterator<Item = &'a Written>) -> Result<usize, String> {
        batches.into_iter().try_fold(0, |least, batch| {
            let place = self.order.iter().position(|(_, written)| written == batch);
            Ok(least.max(1 + place.ok_or_else(|| format!("{batch:?} was acknowledged, and is in no log"))?))
        })
    }

    fn judge_seen(&self, seen: &Seen) -> Result<(), String> {
        let Seen { sequence, content, acknowledged } = seen;
        let number = usize::try_from(sequence - START.sequence).expect("there are few batches");
        let least = self.least(acknowledged)?;
        if number < least {
            return Err(format!("a snapshot shows {number} batches, and {least} were acknowledged before"));
        }
        if self.states.get(number) != Some(content) {
            let order = &self.order;
            return Err(format!("a snapshot of {number} batches of {order:?} shows {content:?}"));
        }
        Ok(())
    }

    /// The batches there may be when it ends so at a moment: at least those that were promised by then.
    fn promised(&self, record: &Record, moment: usize, end: End) -> Result<RangeInclusive<usize>, String> {
        let mut least = 0;
        for call in &self.trace[..moment] {
            let Call::Mark(number) = call else { continue };
            let promise = &record.promises[*number as usize];
            if promise.durable || matches!(end, End::Killed) {
                least = least.max(self.least(&promise.batches)?);
            }
        }
        Ok(least..=self.order.iter().filter(|(call, _)| *call < moment).count())
    }

    fn left(&self, moment: usize, end: End, random: &mut Random) -> State {
        let mut state = START.state.clone();
        self.trace[..moment].iter().for_each(|call| state.apply(call));
        match end {
            End::Killed => state,
            End::Lost(loss) => state.after_power_loss(loss, random),
        }
    }
}

/// The batches in the order in which they went to logs, each whole and in one call.
fn order(trace: &[Call], tried: &[Written]) -> Vec<(usize, Written)> {
    let batches: Vec<_> = tried.iter().map(|&written| (written.batch(), written)).collect();
    let appended = |bytes: &[u8]| batches.iter().find(|(batch, _)| bytes.ends_with(batch.as_bytes()));
    let frame = |(call, appending): (usize, &Call)| match appending {
        Call::Append { bytes, .. } => appended(bytes).map(|&(_, written)| (call, written)),
        _ => None,
    };
    trace.iter().enumerate().filter_map(frame).collect()
}
