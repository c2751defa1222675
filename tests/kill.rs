//! Kills a process with real files in the middle of its writes, many times, and opens what is left each time.
//!
//! The test starts itself again as the process to be killed: it writes numbered batches over two trees and says on its
//! standard output which were acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use profilestore::engine::{Batch, Database, Direction, Durability, Error, KeyRange, Options, TreeId};

/// Where the process to be killed finds its directory.
const DIRECTORY: &str = "PROFILESTORE_KILL_DIRECTORY";
const KILLS: u64 = 200;
const RECORDS: TreeId = TreeId(0);
const INDEX: TreeId = TreeId(1);
/// As many records are there as batches have this many different numbers.
const LIVE: u64 = 500;

/// Seals, flushes and merges happen all the time.
fn options() -> Options {
    Options {
        durability: Durability::Process,
        delta_bytes: 16 << 10,
        block_bytes: 512,
        segment_bytes: 16 << 10,
        runs_max: 2,
        ..Options::default()
    }
}

/// Batch `number` replaces the record in its slot, and moves its index entry.
fn batch(number: u64) -> Batch {
    let mut batch = Batch::new();
    let slot = (number % LIVE).to_be_bytes();
    batch.put(RECORDS, &slot, &number.to_be_bytes());
    batch.put(INDEX, &number.to_be_bytes(), &slot);
    if let Some(old) = number.checked_sub(LIVE) {
        batch.delete(INDEX, &old.to_be_bytes());
    }
    batch
}

fn open(directory: &Path) -> Database {
    let database = Database::open(directory, options()).expect("what a kill leaves opens");
    assert_eq!(database.tree("records").expect("a tree"), RECORDS);
    assert_eq!(database.tree("index").expect("a tree"), INDEX);
    database
}

/// The numbers in both trees; they must be the same, without a gap up to the last.
fn numbers(database: &Database) -> Vec<u64> {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    let mut records = Vec::new();
    let mut scan = database.scan(RECORDS, KeyRange::all(), Direction::Forward).expect("scans");
    while let Some((slot, value)) = scan.next().expect("reads") {
        assert_eq!(number(value) % LIVE, number(slot), "a record in a slot of another");
        records.push(number(value));
    }
    records.sort_unstable();
    let mut index = Vec::new();
    let mut scan = database.scan(INDEX, KeyRange::all(), Direction::Forward).expect("scans");
    while let Some((key, slot)) = scan.next().expect("reads") {
        assert_eq!(number(key) % LIVE, number(slot), "an index entry of another record");
        index.push(number(key));
    }
    assert_eq!(records, index, "records and index disagree");
    let last = records.last().copied().unwrap_or(0);
    let expected: Vec<u64> = (last.saturating_sub(LIVE - 1).max(1)..=last).collect();
    assert_eq!(records, if last == 0 { vec![] } else { expected });
    records
}

/// Not a test of its own: the process that is killed.
#[test]
fn writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let database = open(Path::new(&directory));
    let first = numbers(&database).last().map_or(1, |last| last + 1);
    let mut output = std::io::stdout();
    for number in first.. {
        database.commit(&batch(number)).expect("a commit");
        writeln!(output, "\nacknowledged {number}").expect("the parent reads");
    }
}

fn start(directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["writes_until_it_is_killed", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test starts again")
}

/// Starts a writer and kills it some time after its first word; answers the last number it acknowledged.
fn kill_after(directory: &Path, wait: Duration) -> u64 {
    let mut child = start(directory);
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = mpsc::channel();
    let last = Arc::clone(&acknowledged);
    let reader = std::thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            // A kill may cut the last line, which makes its number smaller, never larger.
            if let Some(number) = line.strip_prefix("acknowledged ").and_then(|number| number.parse().ok()) {
                last.fetch_max(number, Ordering::SeqCst);
                // The receiver waits for the first only.
                let _ = sender.send(());
            }
        }
    });
    receiver.recv_timeout(Duration::from_secs(10)).expect("the writer starts to write");
    std::thread::sleep(wait);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    reader.join().expect("the reader ends with the writer");
    acknowledged.load(Ordering::SeqCst)
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("database");
    let mut written = 0;
    for kill in 0..KILLS {
        let acknowledged = kill_after(&directory, Duration::from_millis(1 + kill * 37 % 50));
        assert!(acknowledged > written, "kill {kill}: the writer went on from {written}, said {acknowledged}");
        let database = open(&directory);
        written = numbers(&database).last().copied().unwrap_or(0);
        assert!(written >= acknowledged, "kill {kill}: {acknowledged} was acknowledged, {written} is there");
        if kill % 20 == 0 {
            let report = database.verify().expect("verifies");
            assert!(report.problems.is_empty(), "kill {kill}: {:?}", report.problems);
        }
        if kill % 3 == 0 {
            database.close().expect("closes");
        }
    }
}

#[test]
fn a_second_owner_is_refused_and_a_killed_one_leaves_no_lock() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("database");
    let database = open(&directory);
    let started = Instant::now();
    match Database::open(&directory, options()) {
        Err(Error::AlreadyOpen { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("expected a refusal, got {:?}", other.err()),
    }
    std::os::unix::fs::symlink(&directory, parent.path().join("link")).expect("a symbolic link");
    assert!(matches!(Database::open(parent.path().join("link"), options()), Err(Error::AlreadyOpen { .. })));
    assert!(started.elapsed() < Duration::from_secs(1));
    database.close().expect("closes");

    let mut child = start(&directory);
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    while !lines.next().expect("it writes").expect("text").starts_with("acknowledged") {}
    match Database::open(&directory, options()) {
        Err(Error::AlreadyOpen { pid, .. }) => assert_eq!(pid, Some(child.id())),
        other => panic!("expected a refusal, got {:?}", other.err()),
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    numbers(&open(&directory));
}
