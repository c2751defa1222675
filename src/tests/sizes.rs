//! Keys and values of every length that is allowed, and none that is not.

use std::collections::BTreeMap;

use crate::engine::{
    BATCH_BYTES_MAX, Batch, Compression, Database, Error, KEY_BYTES_MAX, Options, TREE_NAME_BYTES_MAX, VALUE_BYTES_MAX,
};

fn options() -> Options {
    Options { compression: Compression::Lz4, ..Options::default() }
}

#[test]
fn keys_and_values_of_every_length_up_to_the_limit_come_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = [0, 1, 127, 128, 255, 256, 65_535, KEY_BYTES_MAX];
    let values = [0, 1, 127, 128, 65_535, 65_536, 1 << 24, VALUE_BYTES_MAX];
    let entries = || keys.iter().zip(values).map(|(&key, value)| (vec![b'k'; key], vec![value as u8 ^ 0x5A; value]));
    {
        let database = Database::open(dir.path(), options()).expect("opens");
        let tree = database.tree("tree").expect("a tree");
        for (key, value) in entries() {
            let mut batch = Batch::new();
            batch.put(tree, &key, &value);
            database.commit(&batch).expect("within the limits");
        }
    }
    // From the log, from the segments that it is written to, and from those after a settle.
    for step in 0..3 {
        let database = Database::open(dir.path(), options()).expect("opens");
        let tree = database.tree("tree").expect("a tree");
        for (key, value) in entries() {
            let is_same = database.get_with(tree, &key, |found| found == value).expect("reads");
            assert_eq!(is_same, Some(true), "step {step}: key of {} bytes, value of {}", key.len(), value.len());
        }
        database.settle().expect("settles");
        assert!(database.verify().expect("verifies").problems.is_empty());
    }
}

#[test]
fn what_is_too_large_is_refused_before_a_byte_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), options()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    let files = || -> BTreeMap<_, _> {
        let files = std::fs::read_dir(dir.path()).expect("lists").map(|file| file.expect("an entry"));
        files.map(|file| (file.file_name(), file.metadata().expect("is there").len())).collect()
    };
    let before = files();
    let refused = |batch: &Batch, expected: &str, limit: usize| match database.commit(batch) {
        Err(Error::TooLarge { what, len, max }) => {
            assert_eq!((what, max), (expected, limit as u64));
            assert!(len > max);
        }
        other => panic!("{expected}: {other:?}"),
    };
    let mut batch = Batch::new();
    batch.put(tree, b"fine", b"fine");
    batch.put(tree, &vec![0; KEY_BYTES_MAX + 1], b"");
    refused(&batch, "key", KEY_BYTES_MAX);
    batch.clear();
    batch.delete(tree, &vec![0; KEY_BYTES_MAX + 1]);
    refused(&batch, "key", KEY_BYTES_MAX);
    batch.clear();
    let largest = vec![0; VALUE_BYTES_MAX + 1];
    batch.put(tree, b"key", &largest);
    refused(&batch, "value", VALUE_BYTES_MAX);
    batch.clear();
    (0..=BATCH_BYTES_MAX / VALUE_BYTES_MAX).for_each(|_| batch.put(tree, b"key", &largest[1..]));
    refused(&batch, "batch", BATCH_BYTES_MAX);
    drop(batch);
    let name = "n".repeat(TREE_NAME_BYTES_MAX + 1);
    assert!(matches!(database.tree(&name), Err(Error::TooLarge { what: "tree name", .. })));
    assert_eq!(files(), before);
    assert_eq!(database.stats().sequence, 0, "none of it is there");
    assert_eq!(database.get(tree, b"fine").expect("reads"), None);
}

#[test]
fn every_senseless_size_is_refused_by_the_name_of_its_option() {
    let parent = tempfile::tempdir().expect("a directory");
    let default = Options::default;
    for (expected, options) in [
        ("block_bytes", Options { block_bytes: 0, ..default() }),
        ("block_bytes", Options { block_bytes: 1, ..default() }),
        ("block_bytes", Options { block_bytes: 8 << 30, ..default() }),
        ("segment_bytes", Options { segment_bytes: 0, ..default() }),
        ("delta_bytes", Options { delta_bytes: 0, ..default() }),
        ("runs_max", Options { runs_max: 0, ..default() }),
        ("sealed_max", Options { sealed_max: 0, ..default() }),
        ("settle_threads", Options { settle_threads: 0, ..default() }),
        ("open_files_max", Options { open_files_max: 0, ..default() }),
    ] {
        let dir = parent.path().join("database");
        match Database::open(&dir, options) {
            Err(Error::InvalidOption { option, .. }) => assert_eq!(option, expected),
            other => panic!("{expected}: {:?}", other.err()),
        }
        assert!(!dir.exists(), "{expected}: nothing is made");
    }
}
