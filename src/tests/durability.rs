//! The table "what survives" in the docs of the engine, cell by cell.

use std::ops::RangeInclusive;
use std::panic::{self, AssertUnwindSafe};

use crate::bench::torture::history::{History, examine, open, tiny};
use crate::engine::disk::sim::{Call, PowerLoss, Random, SimDisk, State};
use crate::engine::{Durability, Options};

const BATCHES: u64 = 6;

/// How a database ends that nobody closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Panic,
    Kill,
    PowerLoss,
}

/// Nothing is flushed unless it is asked for.
fn roomy() -> Options {
    Options { delta_bytes: 64 << 20, ..tiny() }
}

/// Every state that a database can be left in, with batches of one class in it, flushed or not.
fn left_by(end: End, class: Durability, flushed: bool) -> (Vec<State>, History) {
    let (disk, mut history) = (SimDisk::new(), History::new());
    let database = open(&disk, &roomy()).expect("opens");
    for name in ["a", "b"] {
        database.tree(name).expect("a new tree");
    }
    for _ in 0..BATCHES {
        let batch = history.draw(&mut Random::new(history.last()), &["a", "b"]);
        database.commit_with(&batch, class).expect("nothing fails here");
    }
    if flushed {
        database.flush().expect("nothing fails here");
    }
    let killed = disk.state();
    let states = match end {
        End::Kill => vec![killed],
        End::Panic => {
            panic::catch_unwind(AssertUnwindSafe(move || {
                let _dropped_by_the_panic = database;
                panic!("somewhere in the application");
            }))
            .expect_err("it panics");
            vec![disk.state()]
        }
        End::PowerLoss => {
            let mut random = Random::new(4);
            let losses = PowerLoss::EXTREMES.into_iter().chain(PowerLoss::DRAWN.into_iter().cycle().take(40));
            losses.map(|loss| killed.after_power_loss(loss, &mut random)).collect()
        }
    };
    (states, history)
}

/// The batches that are there after each end.
fn survivors(end: End, class: Durability, flushed: bool, promised: RangeInclusive<u64>) -> Vec<u64> {
    let (states, history) = left_by(end, class, flushed);
    let survivors = states.iter().map(|left| {
        examine(left, &roomy(), &history, promised.clone())
            .unwrap_or_else(|problem| panic!("{end:?}, {class:?}, flushed: {flushed}: {problem}"))
    });
    survivors.collect()
}

const ALL: RangeInclusive<u64> = BATCHES..=BATCHES;

#[test]
fn class_none_keeps_what_was_flushed_whatever_happens() {
    for end in [End::Panic, End::Kill, End::PowerLoss] {
        let survivors_without = survivors(end, Durability::None, false, 0..=BATCHES);
        assert!(survivors_without.iter().any(|&last| last < BATCHES), "{end:?}: no log, and still nothing is lost?");
        survivors(end, Durability::None, true, ALL);
    }
}

#[test]
fn class_process_keeps_everything_but_in_a_power_loss() {
    for end in [End::Panic, End::Kill] {
        survivors(end, Durability::Process, false, ALL);
    }
    let survivors_of_power_loss = survivors(End::PowerLoss, Durability::Process, false, 0..=BATCHES);
    assert!(survivors_of_power_loss.iter().any(|&last| last < BATCHES), "nothing was synced, and nothing is lost?");
    survivors(End::PowerLoss, Durability::Process, true, ALL);
}

#[test]
fn class_sync_keeps_everything() {
    for end in [End::Panic, End::Kill, End::PowerLoss] {
        survivors(end, Durability::Sync, false, ALL);
    }
}

/// One thread has nobody to share a sync with.
#[test]
fn every_commit_of_class_sync_has_a_sync_of_its_own() {
    let disk = SimDisk::new();
    let options = Options { memory_bytes: 1 << 30, ..roomy() };
    let database = open(&disk, &options).expect("opens");
    database.tree("a").expect("a new tree");
    let syncs = || disk.trace().iter().filter(|call| matches!(call, Call::Sync { .. })).count();
    for (class, expected) in [(Durability::None, 0), (Durability::Process, 0), (Durability::Sync, 1_000)] {
        let (before, mut history) = (syncs(), History::new());
        for _ in 0..1_000 {
            let batch = history.draw(&mut Random::new(history.last()), &["a"]);
            database.commit_with(&batch, class).expect("nothing fails here");
        }
        assert_eq!(syncs() - before, expected, "{class:?}");
    }
}
