//! A list of steps, and a fault that strikes while it runs, drawn from any bytes.
//!
//! Without a fault the database answers as the maps do. With one, an error is allowed once it has struck; what was
//! acknowledged before is there when the database is opened again, and the batch that failed is there as a whole or not at
//! all.

use super::{Change, Draw, Model, STEPS, Step, TREES_MAX, close, compare, configurations, open, run_on, text, verify};
use std::collections::BTreeMap;

use crate::bench::torture::caught;
use crate::engine::Durability;
use crate::engine::disk::sim::{CallKind, Fault, Random, SimDisk};

/// Steps of one list: most lists are short, so that each takes a few milliseconds.
const STEPS_MAX: usize = STEPS / 4;

pub(crate) fn run(input: &[u8]) {
    let mut random = Random::of_bytes(input);
    let configurations = configurations();
    let options = random.pick(&configurations).clone();
    let fault = draw_fault(&mut random);
    let mut draw = Draw::new(random);
    if fault.is_some() {
        // What a class without a log loses in a crash is not asked here.
        draw.classes = &[Durability::Process, Durability::Sync];
    }
    let mut steps = vec![Step::Declare { tree: 0, layout: draw.content.layout(&mut draw.random, 0) }];
    while steps.len() < STEPS_MAX && !draw.random.is_exhausted() {
        steps.push(draw.step());
    }
    let disk = SimDisk::new();
    if let Some(fault) = fault {
        disk.inject(fault);
    }
    let outcome = caught(|| Ok(run_on(&disk, &options, &steps))).and_then(|outcome| match outcome {
        Ok(()) => Ok(()),
        Err((_, text)) if text.contains("panicked") || !disk.was_struck() => Err(text),
        Err((at, failure)) => {
            disk.heal();
            after_failure(&disk, &options, &steps, at).map_err(|text| format!("after `{failure}`: {text}"))
        }
    });
    if let Err(text) = outcome {
        panic!("with {options:?} and {fault:?}: {text}");
    }
}

fn draw_fault(random: &mut Random) -> Option<Fault> {
    use CallKind::{Allocate, Append, Create, List, Open, Read, Remove, Rename, Sync, SyncDir};
    let kinds = [Append, Sync, Create, Rename, Remove, SyncDir, Open, Read, List, Allocate];
    let kind = match random.below(16) {
        0..6 => return None,
        drawn => Some(kinds[drawn - 6]),
    };
    let after = random.below(64);
    let fault = if random.once_in(2) { Fault::once(kind, after) } else { Fault::for_ever(kind, after) };
    Some(Fault { short: random.once_in(2), ..fault })
}

/// Opens what the failure at step `at` left.
fn after_failure(disk: &SimDisk, options: &crate::engine::Options, steps: &[Step], at: usize) -> Result<(), String> {
    let database = open(disk, options)?;
    let before = model_of(&steps[..at]);
    for tree in 0..before.len() {
        database.tree(&format!("tree {tree}")).map_err(text)?;
    }
    let unchanged = compare(&database, &before);
    if let (Err(text), Some(_)) = (&unchanged, steps.get(at)) {
        compare(&database, &model_of(&steps[..=at]))
            .map_err(|other| format!("neither before: {text}; nor after: {other}"))?;
    }
    verify(&database)?;
    close(disk, &database)
}

/// What the trees hold after these steps.
fn model_of(steps: &[Step]) -> Model {
    let mut model = Model::from([BTreeMap::new()]);
    for step in steps {
        match step {
            Step::NewTree { .. } if model.len() < TREES_MAX => model.push(BTreeMap::new()),
            Step::Write { changes, .. } => changes.iter().for_each(|change| apply(&mut model, change)),
            _ => {}
        }
    }
    model
}

fn apply(model: &mut Model, (tree, key, value): &Change) {
    let tree = tree % model.len();
    match value {
        Some(value) => drop(model[tree].insert(key.clone(), value.clone())),
        None => drop(model[tree].remove(key)),
    }
}

/// Bytes at random: every one of them is a choice.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    (0..6).map(|seed| Random::new(seed).bytes(600)).collect()
}
