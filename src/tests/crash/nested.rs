//! A crash while the database is opened after a crash: however often that happens, nothing more is lost.

use super::{Crash, Image, Promises, Recorded, Recorder, for_every_crash, record, report};
use crate::engine::Durability;
use crate::engine::disk::sim::{Call, Random, SimDisk, State};
use crate::tests::harness::{History, examine, open, tiny};

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
        Crash::Kill | Crash::KillInAppend => {
            Promises { begun: number, acknowledged: number, durable: image.promises.durable }
        }
    }
}

fn crash_while_opening(outer: &Recorded, seed: u64, at: usize, image: &Image) -> usize {
    let disk = SimDisk::from_state(image.left.clone());
    let number = open(&disk, &tiny()).and_then(|database| outer.history.locate(&database, image.numbers()));
    let number = number.unwrap_or_else(|text| report(outer, seed, at, image, &text));
    let inner = record_opening(&image.left, &outer.history.up_to(number), seed);
    let mut images = 0;
    for_every_crash(&inner, promises_before_opening(image, number), seed, |inner_at, inner_image| {
        images += 1;
        if let Err(text) = examine(&inner_image.left, &tiny(), &inner.history, inner_image.numbers()) {
            eprintln!("while opening what was left by seed {seed}, call {at}, {}", image.crash);
            report(&inner, seed, inner_at, inner_image, &text);
        }
    });
    images
}

#[test]
fn a_crash_at_any_call_of_an_opening_loses_nothing_more() {
    let seed = 4;
    let recorded = record(&[Durability::Process, Durability::Sync], 40, seed);
    let mut random = Random::new(seed);
    let mut images = 0;
    for_every_crash(&recorded, Promises::default(), seed, |at, image| {
        // A kill between a rename and the sync of the directory leaves the manifest in the page cache only.
        let unsynced_manifest = matches!(image.crash, Crash::Kill) && matches!(recorded.trace[at], Call::Rename { .. });
        if random.once_in(if unsynced_manifest { 8 } else { 200 }) {
            images += crash_while_opening(&recorded, seed, at, image);
        }
    });
    println!("seed {seed}: {images} images of openings");
    assert!(images >= 1_000, "only {images} images");
}
