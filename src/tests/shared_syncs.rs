//! Commits that are durable together: who waits for whose sync, and what everybody sees and is told meanwhile.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::engine::disk::sim::{Call, CallKind, Fault, SimDisk};
use crate::engine::{Database, Durability, Error as EngineError, Options};
use crate::store::tests::records::profile;
use crate::store::{Error, Profile, Repository, Result};

const WRITERS: i64 = 12;

type Profiles = Repository<Database>;

fn open(disk: &SimDisk) -> Profiles {
    let options = Options { durability: Durability::Sync, ..Options::default() };
    Repository::open(Arc::new(Database::open_on(Arc::new(disk.clone()), options).expect("opens"))).expect("opens")
}

/// Sequence number of the last commit that is applied, durable or not.
fn applied(profiles: &Profiles) -> u64 {
    profiles.kv().exclusive().snapshot().sequence()
}

fn syncs(disk: &SimDisk) -> usize {
    disk.trace().iter().filter(|call| matches!(call, Call::Sync { .. })).count()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::yield_now();
    }
}

/// Lets every writer insert a profile while no sync of a log ends, `then` look, and the syncs go on. Answers what each
/// writer was told.
fn while_nothing_is_synced(disk: &SimDisk, profiles: &Profiles, then: impl FnOnce()) -> Vec<Result<()>> {
    let before = applied(profiles);
    disk.hold(CallKind::Sync, ".wal");
    thread::scope(|scope| {
        let insert = |id| scope.spawn(move || profiles.insert(&profile(id)));
        let writers: Vec<_> = (1..=WRITERS).map(insert).collect();
        until("all are applied", || applied(profiles) == before + WRITERS as u64);
        then();
        disk.release();
        writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
    })
}

/// A change of a collection had the turn to write until it was durable, so no two of them shared a sync.
#[test]
fn changes_of_a_collection_share_syncs() {
    let disk = SimDisk::new();
    let profiles = open(&disk);
    let before = syncs(&disk);
    let told = while_nothing_is_synced(&disk, &profiles, || {
        assert_eq!(profiles.count().expect("counts"), 0, "nobody sees what is not durable");
    });
    assert!(told.iter().all(Result::is_ok), "{told:?}");
    let count = syncs(&disk) - before;
    assert!((1..=3).contains(&count), "{count} syncs: one that was held, and one or two for all others");
    assert_eq!(profiles.count().expect("counts"), WRITERS as u64);
    let check = profiles.check().expect("checks");
    assert!(check.problems.is_empty(), "{check:?}");
}

/// What is checked before a change is checked against everything before it, durable or not.
#[test]
fn what_is_not_durable_yet_is_not_overlooked() {
    let disk = SimDisk::new();
    let profiles = open(&disk);
    let told = while_nothing_is_synced(&disk, &profiles, || {
        assert!(matches!(profiles.insert(&profile(1)), Err(Error::DuplicateId { .. })));
        let same_email = Profile { user_id: 99, ..profile(2) };
        assert!(matches!(profiles.insert(&same_email), Err(Error::DuplicateKey { .. })));
    });
    assert!(told.iter().all(Result::is_ok), "{told:?}");
}

#[test]
fn all_who_wait_for_a_sync_that_fails_are_told() {
    let disk = SimDisk::new();
    let profiles = open(&disk);
    let told = while_nothing_is_synced(&disk, &profiles, || {
        disk.inject(Fault { ending: ".wal", error: Errno::IO, ..Fault::for_ever(CallKind::Sync, 0) });
    });
    assert!(told.iter().all(Result::is_err), "{told:?}");
    assert_eq!(profiles.count().expect("counts"), 0);
    let refused = profiles.insert(&profile(99));
    assert!(matches!(refused, Err(Error::Engine(EngineError::Poisoned { .. }))), "{refused:?}");
}
