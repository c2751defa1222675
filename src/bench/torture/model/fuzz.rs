//! A list of steps and its configuration, drawn from any bytes.

use super::STEPS;
use super::configurations::configurations;
use super::draw::Draw;
use super::machine::run as run_steps;
use crate::bench::torture::caught;
use crate::engine::disk::sim::Random;

/// Steps of one list: most lists are short, so that each takes a few milliseconds.
const STEPS_MAX: usize = STEPS / 4;

pub(crate) fn run(input: &[u8]) {
    let mut random = Random::of_bytes(input);
    let base = random.below(configurations().len());
    let mut draw = Draw::new(random);
    let mut steps = vec![draw.first()];
    while steps.len() < STEPS_MAX && !draw.is_exhausted() {
        steps.push(draw.step());
    }
    if let Err(text) = caught(|| run_steps(base, &steps)) {
        panic!("under {}: {text}", configurations()[base].name);
    }
}

/// Bytes at random: every one of them is a choice.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    (0..6).map(|seed| Random::new(seed).bytes(600)).collect()
}
