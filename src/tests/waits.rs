//! Who waits for background work, how much may be outstanding meanwhile, and that every wait ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::bench::torture::history::tiny;
use crate::engine::disk::sim::{CallKind, Fault, SimDisk};
use crate::engine::{Batch, Database, Durability, Error, Options, Result, TreeId};

const CALLERS: u8 = 12;

fn open(disk: &SimDisk, options: Options) -> (Database, TreeId) {
    let database = Database::open_on(Arc::new(disk.clone()), options).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    (database, tree)
}

/// A delta takes all that is written here.
fn roomy() -> Options {
    Options { delta_bytes: 64 << 10, memory_bytes: 1 << 20, ..tiny() }
}

fn put(database: &Database, tree: TreeId, key: &[u8]) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(tree, key, &[7; 100]);
    database.commit(&batch)
}

/// Watches `database` for as long as it is worth it, or until `is_over`.
fn watch(database: &Database, is_over: impl Fn() -> bool, look: impl Fn(&Database)) {
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end && !is_over() {
        look(database);
        thread::yield_now();
    }
}

/// Lets many threads write a key and then call `act` while the disk takes no segment, and `then` acts on the disk. Answers
/// what each was told.
fn while_no_segment_is_taken(
    database: &Database,
    tree: TreeId,
    disk: &SimDisk,
    act: fn(&Database) -> Result<()>,
    then: impl FnOnce(),
) -> Vec<Result<()>> {
    disk.hold(CallKind::Create, ".seg");
    thread::scope(|scope| {
        let call = |caller: u8| {
            let done = put(database, tree, &[caller]).and_then(|()| act(database));
            done.inspect(|()| assert!(database.get(tree, &[caller]).expect("reads").is_some()))
        };
        let callers: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || call(caller))).collect();
        disk.wait_for_held();
        then();
        disk.release();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    })
}

/// Each call of `flush` used to seal one delta more, however many waited for their flush already.
#[test]
fn no_number_of_flushes_at_once_seals_more_deltas_than_the_options_say() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, roomy());
    let bounded = |database: &Database| assert!(database.stats().sealed <= 2, "{:?}", database.stats());
    let told = while_no_segment_is_taken(&database, tree, &disk, Database::flush, || {
        watch(&database, || false, bounded);
    });
    assert!(told.iter().all(Result::is_ok), "{told:?}");
    assert_eq!((database.stats().sealed, database.stats().delta_bytes), (0, 0));
    database.close().expect("closes");
}

/// One settle is begun without waiting for flushes that it makes needless, and no other one beside it.
#[test]
fn no_number_of_settles_at_once_seals_more_than_one_delta_besides() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, roomy());
    let bounded = |database: &Database| assert!(database.stats().sealed <= 3, "{:?}", database.stats());
    let told = while_no_segment_is_taken(&database, tree, &disk, Database::settle, || {
        watch(&database, || false, bounded);
    });
    assert!(told.iter().all(Result::is_ok), "{told:?}");
    let stats = database.stats();
    assert_eq!((stats.sealed, stats.trees[0].runs, stats.trees[0].entries), (0, 1, u64::from(CALLERS)));
    database.close().expect("closes");
}

/// Who waits for its turn does not keep others from writing where there is room.
#[test]
fn a_flush_that_waits_does_not_hold_up_a_writer() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, roomy());
    let told = while_no_segment_is_taken(&database, tree, &disk, Database::flush, || {
        watch(&database, || database.stats().sealed == 2, |_| {});
        put(&database, tree, b"beside them").expect("there is room");
    });
    assert!(told.iter().all(Result::is_ok), "{told:?}");
}

/// What is committed while a flush waits for its turn is sealed together with what it was called for. It returned when all
/// that came before was flushed. Without a log, what is in segments is all that a crash leaves.
#[test]
fn a_flush_that_waited_returns_when_its_own_commits_are_in_segments() {
    for round in 0..20 {
        let disk = SimDisk::new();
        let (database, tree) = open(&disk, Options { durability: Durability::None, ..roomy() });
        let put_and_flush = |key: u8| {
            put(&database, tree, &[key]).and_then(|()| database.flush()).expect("flushes");
            let (killed, _) = open(&SimDisk::from_state(disk.state()), roomy());
            assert!(killed.get(tree, &[key]).expect("reads").is_some(), "{key} in round {round}");
        };
        disk.hold(CallKind::Create, ".seg");
        thread::scope(|scope| {
            (0..4).for_each(|key| drop(scope.spawn(move || put_and_flush(key))));
            disk.wait_for_held();
            watch(&database, || database.stats().sealed == 2, |_| {});
            for beside in 100..110 {
                put(&database, tree, &[beside]).expect("there is room");
                thread::yield_now();
            }
            disk.release();
        });
    }
}

#[test]
fn flushes_that_wait_end_with_a_close_and_everything_is_flushed() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, roomy());
    let closes = AtomicBool::new(false);
    thread::scope(|scope| {
        let told = while_no_segment_is_taken(&database, tree, &disk, Database::flush, || {
            watch(&database, || database.stats().sealed == 2, |_| {});
            scope.spawn(|| {
                closes.store(true, Ordering::Release);
                database.close().expect("closes");
            });
            watch(&database, || closes.load(Ordering::Acquire), |_| {});
        });
        assert!(told.iter().all(|told| matches!(told, Ok(()) | Err(Error::Closed))), "{told:?}");
    });
    let acknowledged = database.stats().sequence;
    assert_eq!((database.stats().sealed, database.stats().delta_bytes), (0, 0), "the close flushed all of it");
    drop(database);
    let (database, _) = open(&disk, roomy());
    assert_eq!(database.recovery().replayed_batches, 0, "no log is left");
    assert_eq!(database.stats().trees[0].entries, acknowledged);
}

#[test]
fn flushes_that_wait_are_told_of_a_failure_and_a_resume_does_what_they_asked_for() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, roomy());
    let told = while_no_segment_is_taken(&database, tree, &disk, Database::flush, || {
        watch(&database, || database.stats().sealed == 2, |_| {});
        disk.inject(Fault { ending: ".seg", error: Errno::NOSPC, ..Fault::for_ever(CallKind::Append, 0) });
    });
    assert!(told.iter().all(|told| matches!(told, Err(Error::Background { .. }))), "{told:?}");
    disk.heal();
    database.resume().expect("there is room again");
    assert_eq!(database.stats().sealed, 0);
    database.flush().expect("flushes");
    database.close().expect("closes");
}

/// A commit waits for what is to be done, and that does not grow while it waits: flushes go before all merges but those of
/// a tree with too many runs. Counted, because how long a task takes is the disk's.
#[test]
fn a_writer_that_is_faster_than_merges_waits_for_a_bounded_number_of_tasks() {
    const TREES: u64 = 3;
    let (options, disk) = (tiny(), SimDisk::new());
    let (runs_max, sealed_max) = (4 * options.runs_max as u64 + 1, options.sealed_max as u64);
    let (database, _) = open(&disk, options);
    let trees: Vec<_> = (0..TREES).map(|name| database.tree(&format!("tree {name}")).expect("a tree")).collect();
    let tasks = || database.stats().flushes + database.stats().merges;
    let mut longest = 0;
    for number in 0..4_000_u32 {
        let mut batch = Batch::new();
        for &tree in &trees {
            batch.put(tree, &number.wrapping_mul(0x9E37_79B9).to_be_bytes(), &[7; 60]);
        }
        let before = tasks();
        database.commit(&batch).expect("commits");
        longest = longest.max(tasks() - before);
        let stats = database.stats();
        let runs = stats.trees.iter().map(|tree| tree.runs).max();
        assert!(stats.sealed <= sealed_max && runs <= Some(runs_max), "{stats:?}");
    }
    let all_there_is = sealed_max + 1 + TREES * (runs_max + sealed_max + 1);
    assert!(longest <= all_there_is, "a commit waited for {longest} tasks");
    assert!(tasks() > 500, "only {} tasks: nobody waited", tasks());
}
