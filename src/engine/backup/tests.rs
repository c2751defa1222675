use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::engine::batch::{Batch, TreeId};
use crate::engine::disk::sim::{CallKind, Fault, PowerLoss, Random, SimDisk, State};
use crate::engine::{Direction, Durability, Isolation, KeyRange, Layout};

type Entries = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

fn tiny() -> Options {
    Options { block_bytes: 256, segment_bytes: 2 << 10, delta_bytes: 16 << 10, runs_max: 2, ..Options::default() }
}

fn read_only() -> Options {
    Options { read_only: true, ..Options::default() }
}

fn commit(database: &Database, number: u32, text: &str) {
    let mut batch = Batch::new();
    for tree in [0, 1] {
        batch.put(TreeId(tree), &number.to_be_bytes(), text.as_bytes());
    }
    database.commit(&batch).expect("commits");
}

fn fill(database: &Database) {
    for name in ["one", "two"] {
        database.tree(name).expect("a tree");
    }
    for number in 0..600 {
        commit(database, number, &format!("the value of {number}"));
    }
}

fn entries(database: &Database) -> Entries {
    let mut entries = Entries::new();
    for tree in 0..database.tree_names().len() as u32 {
        let mut scan = database.scan(TreeId(tree), KeyRange::all(), Direction::Forward).expect("scans");
        while let Some((key, value)) = scan.next().expect("reads") {
            entries.insert((tree, key.to_vec()), value.to_vec());
        }
    }
    entries
}

/// What the backup in `dir` holds, once all of it was checked.
fn held(dir: &Path) -> Entries {
    let backup = Database::open(dir, read_only()).expect("a backup is a database");
    assert!(backup.verify().expect("it is looked at").problems.is_empty());
    entries(&backup)
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(dir).expect("a directory").map(|file| file.expect("an entry"));
    let file = |file: fs::DirEntry| {
        (file.file_name().into_string().expect("a name"), fs::read(file.path()).expect("a file is read"))
    };
    files.map(file).filter(|(name, _)| name != "LOCK").collect()
}

fn is_database(dir: &Path) -> bool {
    Database::open(dir, Options { create: false, ..read_only() }).is_ok()
}

#[test]
fn a_backup_holds_what_was_committed_and_stays_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path().join("from"), tiny()).expect("opens");
    fill(&database);
    for (name, link) in [("copied", false), ("linked", true)] {
        let to = dir.path().join(name);
        let expected = entries(&database);
        let report = database.backup(&to, &BackupOptions { link, ..BackupOptions::default() }).expect("backs up");
        assert_eq!(report.linked_bytes, if link { report.bytes } else { 0 });
        let segments: Vec<_> = files(&to).into_iter().filter(|(name, _)| name != "MANIFEST").collect();
        assert_eq!(report.segments, segments.len() as u64);
        assert_eq!(report.bytes, segments.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
        assert_eq!(report.sequence, database.snapshot().sequence());
        assert_eq!(held(&to), expected);
        // Everything is rewritten, and what the backup has in common with it is gone from there.
        (0..600).for_each(|number| commit(&database, number, name));
        database.settle().expect("settles");
        assert_eq!(held(&to), expected, "{name}");
    }
    let from = dir.path().join("from");
    let refused =
        |to: &Path| matches!(database.backup(to, &BackupOptions::default()), Err(Error::InvalidOption { .. }));
    assert!(refused(&dir.path().join("copied")) && refused(&from) && refused(&from.join("in-it")));
}

#[test]
fn backups_under_load_are_states_between_two_commits() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path().join("from"), tiny()).expect("opens");
    fill(&database);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                let mut batch = Batch::new();
                for tree in [0, 1] {
                    batch.put(TreeId(tree), b"round", &round.to_be_bytes());
                    batch.put(TreeId(tree), &(round % 600).to_be_bytes(), &[round as u8; 40]);
                }
                database.commit(&batch).expect("commits");
                if round.is_multiple_of(500) {
                    database.settle().expect("settles");
                }
            }
            round
        });
        let mut last = 0;
        for number in 0..12 {
            let to = dir.path().join(number.to_string());
            let before = database.get(TreeId(0), b"round").expect("reads");
            database.backup(&to, &BackupOptions { link: number % 2 == 0, base: None }).expect("backs up");
            let held = held(&to);
            let rounds = [0, 1].map(|tree| held.get(&(tree, b"round".to_vec())).cloned());
            assert_eq!(rounds[0], rounds[1], "a commit is there whole");
            assert!(rounds[0] >= before, "what was committed before is there");
            let round = rounds[0].as_ref().map_or(0, |bytes| u32::from_be_bytes(bytes[..].try_into().expect("4")));
            assert!(round >= last);
            last = round;
            for recent in (1..=round.min(600)).map(|back| round + 1 - back) {
                let value = &held[&(0, (recent % 600).to_be_bytes().to_vec())];
                assert_eq!(value, &[recent as u8; 40], "and so is every commit before it");
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().expect("no panic") > 0);
    });
}

#[test]
fn an_incremental_backup_links_what_did_not_change_and_stands_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let database = Database::open(path("from"), tiny()).expect("opens");
    fill(&database);
    database.settle().expect("settles");
    let full = database.backup(path("full"), &BackupOptions::default()).expect("backs up");
    (600..620).for_each(|number| commit(&database, number, "new"));
    let from = |base: &str| BackupOptions { base: Some(path(base)), link: false };
    let next = database.backup(path("next"), &from("full")).expect("backs up");
    assert_eq!((next.linked_bytes, next.segments > full.segments), (full.bytes, true));
    fs::remove_dir_all(path("full")).expect("removed");
    assert_eq!(held(&path("next")), entries(&database));
}

#[test]
fn a_base_that_holds_something_else_is_not_linked() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let database = Database::open(path("from"), tiny()).expect("opens");
    fill(&database);
    database.backup(path("base"), &BackupOptions::default()).expect("backs up");
    let segments = || files(&path("base")).into_iter().filter(|(name, _)| name.ends_with(segment::ENDING));
    let (damaged, mut bytes) = segments().next().expect("a segment");
    let length = bytes.len();
    bytes[length / 2] ^= 1;
    fs::write(path("base").join(&damaged), &bytes).expect("written");
    let (cut, bytes) = segments().nth(1).expect("another");
    fs::write(path("base").join(&cut), &bytes[1..]).expect("written");
    let options = BackupOptions { base: Some(path("base")), link: false };
    let report = database.backup(path("next"), &options).expect("backs up");
    assert_eq!(report.linked_bytes, report.bytes - (length + bytes.len()) as u64);
    assert_eq!(held(&path("next")), entries(&database));

    let other = Database::open(path("other"), tiny()).expect("opens");
    match other.backup(path("of other"), &options) {
        Err(Error::InvalidOption { option: "base", .. }) => assert!(!path("of other").exists()),
        result => panic!("{result:?}"),
    }
    let nothing = BackupOptions { base: Some(path("nowhere")), link: false };
    assert!(database.backup(path("of nowhere"), &nothing).is_err() && !path("of nowhere").exists());
}

/// A backup that was written to counts its files on like the database does: equal names, different content.
#[test]
fn a_base_that_went_its_own_way_is_not_taken_for_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let database = Database::open(path("from"), tiny()).expect("opens");
    fill(&database);
    database.backup(path("base"), &BackupOptions::default()).expect("backs up");
    let base = Database::open(path("base"), tiny()).expect("opens for writing too");
    for (database, text) in [(&database, "here"), (&base, "gone")] {
        (0..600).for_each(|number| commit(database, number, text));
        database.settle().expect("settles");
    }
    base.close().expect("closes");
    let options = BackupOptions { base: Some(path("base")), link: false };
    database.backup(path("next"), &options).expect("backs up");
    assert_eq!(held(&path("next")), entries(&database));
}

#[test]
fn a_restore_is_the_database_again_and_the_backup_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let database = Database::open(path("from"), tiny()).expect("opens");
    fill(&database);
    database.backup(path("backup"), &BackupOptions::default()).expect("backs up");
    let before = files(&path("backup"));
    let report = restore(path("backup"), path("to")).expect("restores");
    assert_eq!(report.linked_bytes, 0, "a restored database shares nothing with the backup");
    let restored = Database::open(path("to"), tiny()).expect("opens");
    assert_eq!(entries(&restored), entries(&database));
    commit(&restored, 7, "after it");
    restored.settle().expect("settles");
    restored.close().expect("closes");
    assert_eq!(files(&path("backup")), before);
    assert!(matches!(restore(path("backup"), path("to")), Err(Error::InvalidOption { option: "to", .. })));
}

#[test]
fn a_damaged_or_unfinished_backup_is_not_restored() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let database = Database::open(path("from"), tiny()).expect("opens");
    fill(&database);
    database.backup(path("backup"), &BackupOptions::default()).expect("backs up");
    for (name, bytes) in files(&path("backup")) {
        let file = path("backup").join(&name);
        for damaged in [bytes[..bytes.len() / 2].to_vec(), bytes.iter().map(|byte| byte ^ 0x10).collect()] {
            fs::write(&file, damaged).expect("written");
            assert!(restore(path("backup"), path("to")).is_err() && !path("to").exists(), "{name}");
        }
        fs::remove_file(&file).expect("removed");
        assert!(restore(path("backup"), path("to")).is_err() && !path("to").exists(), "without {name}");
        fs::write(&file, &bytes).expect("written");
    }
    restore(path("backup"), path("to")).expect("it is sound again");
}

/// Calls `visit` with every state that a crash may leave at any call of the backup.
fn crash_everywhere(calls: &SimDisk, mut visit: impl FnMut(usize, State)) {
    let mut state = State::default();
    for (at, call) in calls.trace().iter().enumerate() {
        state.apply(call);
        visit(at, state.clone());
        for loss in PowerLoss::EXTREMES.into_iter().chain(PowerLoss::DRAWN) {
            visit(at, state.after_power_loss(loss, &mut Random::new(at as u64)));
        }
    }
}

#[test]
fn a_crash_at_any_call_leaves_a_whole_backup_or_none() {
    let database = Database::open_on(Arc::new(SimDisk::new()), tiny()).expect("opens");
    fill(&database);
    let to = SimDisk::new();
    database.backup_on(&to, None, false).expect("backs up");
    let expected = entries(&database);
    let (mut none, mut whole) = (0, 0);
    crash_everywhere(&to, |at, left| {
        match Database::open_on(Arc::new(SimDisk::from_state(left)), Options { create: false, ..read_only() }) {
            Err(Error::NotADatabase { .. }) => none += 1,
            Err(error) => panic!("after call {at}: {error}"),
            Ok(backup) => {
                assert_eq!(entries(&backup), expected, "after call {at}");
                whole += 1;
            }
        }
    });
    assert!(none > 100 && whole > 1, "{none} without, {whole} with a manifest");
}

#[test]
fn a_backup_whose_disk_fails_says_so_and_leaves_no_database() {
    let from = SimDisk::new();
    let database = Database::open_on(Arc::new(from.clone()), tiny()).expect("opens");
    fill(&database);
    database.settle().expect("settles");
    let expected = entries(&database);
    let mut struck = 0;
    for kind in [CallKind::Lock, CallKind::List, CallKind::Create, CallKind::Append, CallKind::Sync, CallKind::Rename] {
        for fault in (0..).map(|after| Fault::once(kind, after)) {
            let to = SimDisk::new();
            to.inject(fault);
            let outcome = database.backup_on(&to, None, false);
            if !to.was_struck() {
                outcome.expect("nothing failed");
                break;
            }
            to.heal();
            assert!(matches!(outcome, Err(Error::Io { .. })), "{kind:?}: {outcome:?}");
            let names: Vec<_> = to.state().names().filter(|name| *name != "LOCK").map(str::to_owned).collect();
            assert_eq!(names, Vec::<String>::new(), "{kind:?}");
            struck += 1;
        }
    }
    assert!(struck > 20, "only {struck} faults");
    for kind in [CallKind::Open, CallKind::Len, CallKind::Read] {
        from.inject(Fault::for_ever(kind, 0));
        let to = SimDisk::new();
        // A file that is open is not opened again, and one that was read need not be: only then it may succeed.
        if database.backup_on(&to, None, false).is_err() {
            assert_eq!(to.state().names().filter(|name| *name != "LOCK").count(), 0, "{kind:?}");
        }
        from.heal();
    }
    assert_eq!(entries(&database), expected, "the database has not suffered");
    commit(&database, 1, "and takes commits");
}

#[test]
fn a_database_that_is_opened_read_only_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("database");
    let pending = Database::open(&path, tiny()).expect("opens");
    fill(&pending);
    drop(pending);
    match Database::open(&path, read_only()) {
        Err(Error::InvalidOption { option: "read_only", .. }) => {}
        other => panic!("its log is not replayed: {:?}", other.map(drop)),
    }
    Database::open(&path, tiny()).expect("replays").close().expect("closes");

    let before = files(&path);
    let database = Database::open(&path, read_only()).expect("opens");
    assert!(matches!(Database::open(&path, read_only()), Err(Error::AlreadyOpen { .. })));
    let tree = database.tree("one").expect("it is known");
    let mut batch = Batch::new();
    batch.put(tree, b"key", b"value");
    let layout = Layout { key: Vec::new(), value: vec![crate::engine::Field::Varint] };
    let refusals = [
        ("commit", database.commit(&batch)),
        ("commit of class sync", database.commit_with(&batch, Durability::Sync)),
        ("flush", database.flush()),
        ("settle", database.settle()),
        ("resume", database.resume()),
        ("new tree", database.tree("three").map(drop)),
        ("other layout", database.tree_with("one", &layout).map(drop)),
        ("increment", database.increment(tree, b"counter", 1).map(drop)),
        ("turn", database.exclusive().finish(&batch)),
        (
            "transaction",
            database
                .transact(Isolation::Snapshot, |transaction| {
                    transaction.put(tree, b"key", b"value")?;
                    Ok::<_, Error>(())
                })
                .map(drop),
        ),
    ];
    for (what, refusal) in refusals {
        assert!(matches!(refusal, Err(Error::ReadOnly)), "{what}: {refusal:?}");
    }
    assert_eq!(entries(&database).len(), 1200);
    database.close().expect("closes");
    database.close().expect("and does nothing then");
    assert!(matches!(database.commit(&batch), Err(Error::Closed)));
    assert_eq!(files(&path), before);

    let nowhere = dir.path().join("nowhere");
    assert!(Database::open(&nowhere, read_only()).is_err() && !nowhere.exists());
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).expect("made");
    assert!(!is_database(&empty) && files(&empty).is_empty());
}
