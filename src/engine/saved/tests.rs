use super::*;
use crate::engine::batch::{Batch, TreeId};

const TREE: TreeId = TreeId(0);

fn put(database: &Database, value: &str) {
    let mut batch = Batch::new();
    batch.put(TREE, b"key", value.as_bytes());
    database.commit(&batch).expect("commits");
}

fn open(dir: &tempfile::TempDir) -> Database {
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    database.tree("tree").expect("a tree");
    database
}

fn value(database: &Database) -> Option<Vec<u8>> {
    database.get(TREE, b"key").expect("reads")
}

fn names(database: &Database) -> Vec<String> {
    database.saved_snapshots().expect("listed").into_iter().map(|saved| saved.name).collect()
}

#[test]
fn a_snapshot_stays_as_it_was_also_when_the_database_is_opened_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = open(&dir);
    assert_eq!(names(&database), [""; 0]);
    put(&database, "first");
    let saved = database.save_snapshot("before").expect("saved");
    assert_eq!((saved.name.as_str(), saved.sequence), ("before", 1));
    put(&database, "second");
    database.settle().expect("settles");
    database.save_snapshot("after").expect("saved");
    database.close().expect("closes");
    drop(database);

    let database = open(&dir);
    put(&database, "third");
    assert_eq!(names(&database), ["after", "before"]);
    assert_eq!(database.saved_snapshots().expect("listed")[1], saved);
    for (name, expected) in [("before", "first"), ("after", "second")] {
        let snapshot = database.open_snapshot(name).expect("opens");
        assert_eq!(value(&snapshot).as_deref(), Some(expected.as_bytes()));
        assert!(snapshot.verify().expect("looked at").problems.is_empty());
        assert!(matches!(snapshot.flush(), Err(Error::ReadOnly)));
        assert!(matches!(database.open_snapshot(name), Err(Error::AlreadyOpen { .. })));
        assert!(matches!(database.remove_snapshot(name), Err(Error::AlreadyOpen { .. })));
    }
    database.remove_snapshot("before").expect("removed");
    assert_eq!(names(&database), ["after"]);
    assert!(!dir.path().join("snapshots/before").exists());
    assert_eq!(value(&database).as_deref(), Some(&b"third"[..]));
}

#[test]
fn names_are_checked_and_taken_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = open(&dir);
    put(&database, "value");
    let long = "x".repeat(SNAPSHOT_NAME_BYTES_MAX + 1);
    for name in ["", ".", "..", "a/b", "../a", "a b", "é", "a.b", "\0", &long] {
        let refused = |result: Result<()>| matches!(result, Err(Error::InvalidOption { option: "name", .. }));
        assert!(refused(database.save_snapshot(name).map(drop)), "{name:?}");
        assert!(refused(database.open_snapshot(name).map(drop)), "{name:?}");
        assert!(refused(database.remove_snapshot(name)), "{name:?}");
    }
    database.save_snapshot("a-B_9").expect("saved");
    let twice = database.save_snapshot("a-B_9").expect_err("there is one");
    assert!(twice.to_string().contains("there is one of this name"), "{twice}");
    let none = database.open_snapshot("other").map(drop).expect_err("there is none");
    assert!(none.to_string().contains("saved_snapshots"), "{none}");
}

#[test]
fn what_a_crash_left_of_a_snapshot_is_none_and_gives_way_to_the_next() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = open(&dir);
    put(&database, "value");
    database.save_snapshot("name").expect("saved");
    let left = dir.path().join("snapshots/name");
    fs::remove_file(left.join(MANIFEST)).expect("removed");
    assert_eq!(names(&database), [""; 0]);
    assert!(database.open_snapshot("name").is_err());
    put(&database, "newer");
    database.save_snapshot("name").expect("saved");
    assert_eq!(value(&database.open_snapshot("name").expect("opens")).as_deref(), Some(&b"newer"[..]));
}
