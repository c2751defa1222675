//! What a database tells of its background work. In a process of its own, for who listens hears everybody.

use std::io::Write;
use std::sync::{Arc, Mutex};

use profilestore::engine::{Batch, Database, Options};

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panicked").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Heard {
    fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().expect("nobody panicked"));
        String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
    }
}

/// Each of `expected` is in a line of its own, in order.
fn assert_told(heard: &Heard, expected: &[&[&str]]) {
    let lines = heard.lines();
    let mut rest = lines.iter();
    for parts in expected {
        let is_told = rest.any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(is_told, "{parts:?} is not told, or too early, in {lines:#?}");
    }
}

#[test]
fn background_work_is_told_and_operations_are_not() {
    let heard = Heard::default();
    let writer = heard.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    let tree = database.tree("users").expect("a tree");
    assert_told(&heard, &[&["INFO profilestore: opened", "trees=0 replayed_batches=0"]]);

    for number in 0..1000_u32 {
        let mut batch = Batch::new();
        batch.put(tree, &number.to_be_bytes(), b"value");
        database.commit(&batch).expect("commits");
        database.get(tree, &number.to_be_bytes()).expect("reads");
    }
    assert_eq!(heard.lines(), Vec::<String>::new(), "operations are not told");

    database.flush().expect("flushes");
    database.settle().expect("settles");
    database
        .commit(&{
            let mut batch = Batch::new();
            batch.put(tree, b"last", b"value");
            batch
        })
        .expect("commits");
    drop(database);
    assert_told(&heard, &[&["DEBUG profilestore: background work", "work=\"flush\"", "segment_bytes="]]);

    let log = std::fs::read_dir(dir.path()).expect("lists").map(|entry| entry.expect("an entry").path());
    let log = log.filter(|path| path.extension().is_some_and(|ending| ending == "wal")).max().expect("a log");
    let mut bytes = std::fs::read(&log).expect("reads");
    let end = bytes.iter().rposition(|&byte| byte != 0).expect("frames") + 1;
    bytes.truncate(end);
    bytes.extend_from_slice(&[7; 9]);
    std::fs::write(&log, bytes).expect("writes");
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    database.close().expect("closes");
    assert_told(
        &heard,
        &[
            &["INFO profilestore: opened", "replayed_batches=1"],
            &["WARN profilestore: dropped the end of a log", ".wal", "bytes=9"],
            &["INFO profilestore: closed"],
        ],
    );
}
