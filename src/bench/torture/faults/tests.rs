//! Each way to fail, at every call; and the faults that need a moment of their own.

use super::*;
use crate::bench::torture::sound_cases;
use crate::engine::Options;

/// Every one of `faults` at every call, in at least so many cases.
fn every_call_fails(faults: Vec<Fault>, cases_min: u64) {
    let cases = sound_cases(|session| faults.into_iter().for_each(|fault| at_every_call(session, fault, 6)));
    assert!(cases >= cases_min, "only {cases} cases");
}

#[test]
fn a_failed_sync_is_final_and_loses_nothing_acknowledged() {
    every_call_fails(failed_syncs(), 100);
}

#[test]
fn a_failed_sync_of_the_directory_is_final_and_loses_nothing_acknowledged() {
    every_call_fails(failed_directory_syncs(), 30);
}

#[test]
fn an_io_error_at_any_call_reaches_the_caller_and_changes_nothing() {
    every_call_fails(failed_calls(Errno::IO, false), 200);
}

#[test]
fn a_full_disk_at_any_call_reaches_the_caller_and_changes_nothing() {
    every_call_fails(failed_calls(Errno::NOSPC, false), 200);
}

#[test]
fn a_full_disk_that_takes_half_an_append_changes_nothing() {
    every_call_fails(failed_calls(Errno::NOSPC, true), 200);
}

#[test]
fn too_many_open_files_at_any_call_reaches_the_caller_and_changes_nothing() {
    every_call_fails(failed_calls(Errno::MFILE, false), 200);
}

/// A system that goes on as if nothing had happened: the third sync of a log fails, six batches are tried.
#[test]
fn no_sync_succeeds_after_a_failed_one() {
    let disk = SimDisk::new();
    let options = Options { delta_bytes: 64 << 20, ..tiny() };
    let database = open(&disk, &options).expect("opens");
    make_trees(&database);
    disk.inject(Fault { ending: ".wal", ..Fault::once(CallKind::Sync, 2) });
    let mut history = History::new();
    for number in 1..=6 {
        let batch = history.draw(&mut Random::new(number), &TREES);
        match (number, database.commit_with(&batch, Durability::Sync)) {
            (1 | 2, Ok(())) | (3, Err(Error::Io { action: "sync", .. })) => {}
            (4..=6, Err(Error::Poisoned { cause })) if cause.contains(".wal") => {}
            (_, other) => panic!("batch {number}: {other:?}"),
        }
    }
    history.locate(&database, 2..=2).expect("reads go on");
    let at_failure = disk.state();
    drop(database);
    for &loss in &PowerLoss::EXTREMES {
        let left = at_failure.after_power_loss(loss, &mut Random::new(0));
        examine(&left, &tiny(), &history, 2..=3).expect("1 and 2 are there");
    }
}

/// The names of new segments are lost with the name of a log, while the background thread is busy with them: it must
/// not take the next sync of the directory for theirs.
#[test]
fn names_that_a_failed_sync_of_the_directory_lost_are_not_built_on() {
    for round in 0..8 {
        let disk = SimDisk::new();
        let database = open(&disk, &tiny()).expect("opens");
        make_trees(&database);
        let mut history = History::new();
        let first = history.draw(&mut Random::new(1), &TREES);
        database.commit_with(&first, Durability::Sync).expect("nothing fails yet");
        disk.hold(CallKind::Sync, ".seg");
        std::thread::scope(|scope| {
            scope.spawn(|| drop(database.flush()));
            disk.wait_for_held();
            // Which names are lost depends on how many calls there were.
            (0..round).for_each(|note| disk.mark(note));
            disk.inject(Fault::once(CallKind::SyncDir, 0));
            let second = history.draw(&mut Random::new(2), &TREES);
            database.commit_with(&second, Durability::Sync).expect_err("its log has no name");
            disk.release();
        });
        drop(database);
        let left = disk.state().after_power_loss(PowerLoss::EXTREMES[0], &mut Random::new(0));
        examine(&left, &tiny(), &history, 1..=2).expect("the first batch is there");
    }
}

/// The disk is full for a while, and the database is opened while it still is.
#[test]
fn a_database_opens_again_once_there_is_room() {
    let (start, history) = prepared(6);
    let disk = SimDisk::from_state(start);
    disk.inject(Fault { error: Errno::NOSPC, ..Fault::for_ever(CallKind::Append, 9) });
    let acknowledged = match Database::open_on(Arc::new(disk.clone()), tiny()) {
        Err(_) => history.last(),
        Ok(database) => {
            let mut writer = Writer::new(&disk, &history, 6);
            writer.run(&database).expect_err("the disk is full");
            writer.outcome.acknowledged
        }
    };
    // A recovery that needs room fails, one that does not may not.
    drop(Database::open_on(Arc::new(disk.clone()), tiny()));
    assert!(disk.heal() > 0, "the fault struck");
    let database = open(&disk, &tiny()).expect("there is room");
    let found = dump(&database).expect("reads");
    assert!(!found.is_empty());
    assert!(acknowledged >= history.last());
    close(&disk, &database).expect("nothing is left over");
}
