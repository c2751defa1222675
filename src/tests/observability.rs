//! What a database says of itself in numbers.

use std::sync::Arc;
use std::thread;

use crate::engine::disk::sim::{CallKind, SimDisk};
use crate::engine::{Batch, Compression, Database, Durability, Options, Stall, TreeId, TreeStats};

const VALUE: [u8; 100] = [7; 100];

fn open(disk: &SimDisk, mut options: Options) -> (Database, TreeId) {
    options.compression = Compression::None;
    let database = Database::open_on(Arc::new(disk.clone()), options).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    (database, tree)
}

fn put(database: &Database, tree: TreeId, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let mut batch = Batch::new();
        batch.put(tree, &number.to_be_bytes(), &VALUE);
        database.commit(&batch).expect("commits");
    }
}

fn of_tree(database: &Database) -> TreeStats {
    database.stats().trees[0].clone()
}

#[test]
fn what_was_written_is_told_for_each_byte_committed() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, Options::default());
    assert_eq!(database.stats().write_amplification(), None, "nothing is committed");
    put(&database, tree, 0..1000);
    let logged = database.stats();
    assert!((104_000..120_000).contains(&logged.committed_bytes), "{} bytes", logged.committed_bytes);
    assert!(logged.log_bytes_written > logged.committed_bytes, "each batch has a head: {logged:?}");
    assert_eq!(logged.log_bytes_written, logged.log_bytes);
    database.flush().expect("flushes");
    let flushed = database.stats();
    assert_eq!((flushed.log_bytes, flushed.log_bytes_written), (0, logged.log_bytes_written));
    let amplification = flushed.write_amplification().expect("something was committed");
    assert!((1.9..2.6).contains(&amplification), "once to the log, once to a segment: {amplification}");

    let (unlogged, tree) = open(&SimDisk::new(), Options { durability: Durability::None, ..Options::default() });
    put(&unlogged, tree, 0..1000);
    assert_eq!((unlogged.stats().log_bytes_written, unlogged.stats().committed_bytes), (0, logged.committed_bytes));
}

#[test]
fn a_tree_tells_its_runs_newest_first_and_what_a_settle_would_spare() {
    let (database, tree) = open(&SimDisk::new(), Options::default());
    assert_eq!((of_tree(&database).space_amplification(), of_tree(&database).residency()), (None, None));
    for numbers in [0..1000, 0..500] {
        put(&database, tree, numbers);
        database.flush().expect("flushes");
    }
    let stats = of_tree(&database);
    let [newest, oldest] = stats.run_bytes[..] else { panic!("two runs: {stats:?}") };
    assert!(newest < oldest && newest + oldest == stats.segment_bytes, "{stats:?}");
    let amplification = stats.space_amplification().expect("there are segments");
    assert!((1.4..1.6).contains(&amplification), "half of it is there twice: {amplification}");
    database.settle().expect("settles");
    let stats = of_tree(&database);
    assert_eq!((stats.run_bytes.len(), stats.space_amplification()), (1, Some(1.0)));
}

#[test]
fn blocks_become_resident_when_they_are_read() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, Options::default());
    put(&database, tree, 0..5000);
    database.settle().expect("settles");
    drop(database);
    let (database, tree) = open(&disk, Options::default());
    let stats = of_tree(&database);
    assert!(stats.blocks > 3 && stats.resident_blocks == 0, "{stats:?}");
    database.get(tree, &0_u32.to_be_bytes()).expect("reads");
    assert_eq!(of_tree(&database).resident_blocks, 1);
    for number in 0..5000_u32 {
        database.get(tree, &number.to_be_bytes()).expect("reads");
    }
    assert_eq!(of_tree(&database).residency(), Some(1.0));
}

#[test]
fn a_commit_that_waits_for_a_flush_is_counted_with_its_time() {
    let disk = SimDisk::new();
    let (database, tree) = open(&disk, Options { delta_bytes: 16 << 10, sealed_max: 1, ..Options::default() });
    disk.hold(CallKind::Create, ".seg");
    let stalls = thread::scope(|scope| {
        let writer = scope.spawn(|| put(&database, tree, 0..1000));
        disk.wait_for_held();
        let held = std::time::Duration::from_millis(30);
        thread::sleep(held);
        disk.release();
        writer.join().expect("no panic");
        let stalls = database.stats().stalls;
        assert!(stalls.flush.commits > 0 && stalls.flush.time > held / 2, "{stalls:?}");
        stalls
    });
    assert_eq!((stalls.merge, stalls.settle), (Stall::default(), Stall::default()));
}
