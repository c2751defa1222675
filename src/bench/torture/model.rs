//! Whatever is done to a database, it answers as sorted maps would, however it is configured.
//!
//! A list of steps is drawn from a seed: of many kinds ([`kinds`]), from a put to a power loss in the middle of a flush. It
//! runs under each configuration ([`configurations`]), beside a map for each tree ([`state`]); every answer must be that of
//! the maps, and the answers of all steps the same under all configurations. A list that fails is made shorter as long
//! as it still fails ([`mod@shorten`]), and printed with its seed and configuration.

mod configurations;
mod content;
mod draw;
mod fuzz;
mod kinds;
mod look;
mod machine;
mod shorten;
mod state;
mod step;

use configurations::configurations;
use draw::Draw;
use machine::{History, run};
use shorten::shorten;
use step::Step;

use super::{Session, caught};
use crate::engine::disk::sim::Random;

pub(crate) use fuzz::{run as fuzz, seeds as fuzz_seeds};

/// Steps of one list.
const STEPS: usize = 300;
const TREES_MAX: usize = 4;
const SNAPSHOTS_MAX: usize = 4;

/// One list of steps, under one configuration after the other.
pub(crate) fn round(session: &mut Session<'_>, seed: u64) {
    let steps = Draw::new(Random::new(seed)).steps();
    let mut first: Option<History> = None;
    for (number, configuration) in configurations().iter().enumerate() {
        if !session.goes_on() {
            return;
        }
        let count = steps.len().min(usize::try_from(session.left()).unwrap_or(usize::MAX));
        let steps = &steps[..count];
        let history = session.try_cases(
            count as u64,
            || format!("under {}", configuration.name),
            || try_list(number, steps, first.as_ref()).map_err(|text| describe(number, steps, first.as_ref(), &text)),
        );
        first = first.or(history);
    }
}

/// Runs a list, and compares its answers with those under another configuration.
fn try_list(number: usize, steps: &[Step], other: Option<&History>) -> Result<History, String> {
    let history = run(number, steps)?;
    let differs = |other: &History| history.iter().zip(other).position(|(answer, other)| answer != other);
    match other.and_then(differs) {
        None => Ok(history),
        Some(at) => {
            Err(format!("step {at}, {:?}, has another answer under {}", steps[at].kind, configurations()[0].name))
        }
    }
}

/// The failure, and a short list of steps that fails.
fn describe(number: usize, steps: &[Step], other: Option<&History>, text: &str) -> String {
    let failure = |steps: &[Step]| {
        // Another list has other answers.
        let other = other.and_then(|_| caught(|| run(0, steps)).ok());
        caught(|| try_list(number, steps, other.as_ref())).err()
    };
    let short = shorten(steps.to_vec(), |steps| failure(steps).is_some());
    let again = failure(&short);
    let short: Vec<_> = short.iter().map(|step| format!("{step:?}")).collect();
    format!("{text}\nthese {} steps fail with {again:?}:\n{}", short.len(), short.join("\n"))
}

#[cfg(test)]
mod tests;
