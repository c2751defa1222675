//! A crash while the database is opened after a crash: however often that happens, nothing more is lost.

use std::ops::ControlFlow;

use super::{Crash, Image, Promises, Recorded, Recorder, describe, examine_all, for_every_crash, record, recording};
use crate::bench::torture::Session;
use crate::bench::torture::history::{History, open, tiny};
use crate::engine::Durability;
use crate::engine::disk::sim::{Call, Random, SimDisk, State};

/// Opens what a crash left, writes two batches, and records it all.
fn record_opening(left: &State, history: &History, seed: u64) -> Recorded {
    let mut recorder = Recorder::new(SimDisk::from_state(left.clone()), history.clone(), seed);
    let database = recorder.open();
    recorder.trees = ["a", "b", "c"][..database.tree_names().len()].to_vec();
    if !recorder.trees.is_empty() {
        recorder.commit(&database, Durability::Process);
        recorder.commit(&database, Durability::Sync);
    }
    drop(database);
    recorder.finish(left.clone())
}

/// What was promised about an image before it is opened. Once the power was lost, what is left is on the disk, and so
/// is the state it opens in.
fn promises_before_opening(image: &Image, number: u64) -> Promises {
    match image.crash {
        Crash::PowerLoss(_) => Promises { begun: number, acknowledged: number, durable: number },
        Crash::Kill | Crash::KillInAppend | Crash::KillInStore => {
            Promises { begun: number, acknowledged: number, durable: image.promises.durable }
        }
    }
}

/// Examines every image of the opening of an image.
fn crash_while_opening(session: &mut Session<'_>, outer: &Recorded, seed: u64, at: usize, image: &Image) {
    let case = || format!("opening what was left by call {at}, {}", image.crash);
    let opened = session.try_cases(0, case, || {
        let disk = SimDisk::from_state(image.left.clone());
        let number = open(&disk, &tiny()).and_then(|database| outer.history.locate(&database, image.numbers()));
        let number = number.map_err(|text| describe(outer, at, image, &text))?;
        Ok((number, record_opening(&image.left, &outer.history.up_to(number), seed)))
    });
    if let Some((number, inner)) = opened {
        examine_all(session, &inner, promises_before_opening(image, number), seed, &(case() + ": "));
    }
}

/// Records one workload, and crashes in the opening of some of its images.
pub(crate) fn round(session: &mut Session<'_>, seed: u64) {
    let record = || Ok(record(&[Durability::Process, Durability::Sync], 40, seed));
    let Some(recorded) = session.try_cases(0, recording, record) else { return };
    let mut random = Random::new(seed);
    for_every_crash(&recorded, Promises::default(), seed, |at, image| {
        // A kill between a rename and the sync of the directory leaves the manifest in the page cache only.
        let unsynced_manifest = matches!(image.crash, Crash::Kill) && matches!(recorded.trace[at], Call::Rename { .. });
        if random.once_in(if unsynced_manifest { 8 } else { 200 }) {
            crash_while_opening(session, &recorded, seed, at, image);
        }
        if session.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
}

#[cfg(test)]
mod tests {
    use super::round;
    use crate::bench::torture::sound_cases;

    #[test]
    fn a_crash_at_any_call_of_an_opening_loses_nothing_more() {
        let images = sound_cases(|session| round(session, 4));
        assert!(images >= 1_000, "only {images} images");
    }
}
