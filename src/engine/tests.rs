//! The engine as its callers see it, on a real directory.

use std::ops::Bound;

use super::{
    Batch, Compression, Database, Direction, Durability, Error, Field, KeyRange, Layout, Options, TreeId,
    VALUE_BYTES_MAX,
};

/// Seals, flushes, merges and rotates logs every few commits.
fn tiny() -> Options {
    Options { delta_bytes: 2 << 10, block_bytes: 128, segment_bytes: 1 << 10, ..Options::default() }
}

fn put(database: &Database, tree: TreeId, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, key, value);
    database.commit(&batch).expect("commits");
}

fn all(database: &Database, tree: TreeId, range: KeyRange, direction: Direction) -> Vec<Vec<u8>> {
    let mut scan = database.scan(tree, range, direction).expect("scans");
    let mut keys = Vec::new();
    while let Some((key, _)) = scan.next().expect("reads") {
        keys.push(key.to_vec());
    }
    keys
}

#[test]
fn what_was_committed_is_there_after_every_way_to_end() {
    for options in [tiny(), Options::default()] {
        for end in ["close", "drop", "settle", "flush"] {
            let dir = tempfile::tempdir().expect("a directory");
            let database = Database::open(dir.path(), options.clone()).expect("opens");
            let (first, second) = (database.tree("first").expect("a tree"), database.tree("second").expect("a tree"));
            for i in 0..500_u32 {
                let mut batch = Batch::new();
                batch.put(first, &i.to_be_bytes(), &[i as u8; 20]);
                batch.put(second, &(i % 50).to_be_bytes(), &i.to_be_bytes());
                batch.delete(first, &(i / 2).to_be_bytes());
                database.commit(&batch).expect("commits");
            }
            match end {
                "close" => database.close().expect("closes"),
                "settle" => database.settle().expect("settles"),
                "flush" => database.flush().expect("flushes"),
                _ => {}
            }
            drop(database);
            let database = Database::open(dir.path(), options.clone()).expect("opens again");
            assert_eq!(database.tree("second").expect("the same tree"), second);
            let expected: Vec<_> = (250..500_u32).map(|i| i.to_be_bytes().to_vec()).collect();
            assert_eq!(all(&database, first, KeyRange::all(), Direction::Forward), expected, "{end}");
            let newest = database.get(second, &7_u32.to_be_bytes()).expect("reads");
            assert_eq!(newest, Some(457_u32.to_be_bytes().to_vec()), "{end}");
            assert!(database.verify().expect("verifies").problems.is_empty());
        }
    }
}

#[test]
fn a_snapshot_does_not_change_while_everything_under_it_is_rewritten() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), tiny()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    for i in 0..100_u8 {
        put(&database, tree, &[i], b"old");
    }
    let snapshot = database.snapshot();
    for round in 0..20 {
        for i in 0..100_u8 {
            put(&database, tree, &[i], &[round; 30]);
        }
        let mut batch = Batch::new();
        (50..100_u8).for_each(|i| batch.delete(tree, &[i]));
        database.commit(&batch).expect("commits");
    }
    database.settle().expect("settles");
    let mut scan = snapshot.scan(tree, KeyRange::all(), Direction::Reverse).expect("scans");
    for i in (0..100_u8).rev() {
        assert_eq!(scan.next().expect("reads"), Some((&[i][..], &b"old"[..])));
        assert_eq!(snapshot.get(tree, &[i]).expect("reads").as_deref(), Some(&b"old"[..]));
    }
    assert_eq!(scan.next().expect("reads"), None);
    let entries = database.stats().trees[0].entries;
    assert!(entries <= 200, "two versions a key at most, not {entries}");
    drop(scan);
    drop(snapshot);
    database.settle().expect("settles");
    let stats = database.stats();
    assert_eq!((stats.trees[0].entries, stats.trees[0].runs, stats.trees[0].tombstones), (50, 1, 0));
}

#[test]
fn reverse_is_forward_reversed_for_every_prefix_and_bound() {
    let keys: [&[u8]; 9] = [
        b"",
        &[0],
        &[0, 5, 0, 0, 0, 1],
        &[0, 5, 0, 0, 0, 2],
        &[0, 5, 0xFF],
        &[0, 5, 0xFF, 0xFF],
        &[0, 6],
        &[0xFF; 8],
        &[0xFF; 9],
    ];
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), tiny()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    for settled in [false, true] {
        for key in keys {
            put(&database, tree, key, b"value");
        }
        if settled {
            database.settle().expect("settles");
        }
        let prefixes: [&[u8]; 6] = [&[0, 5], &[0, 5, 0xFF], &[0xFF], &[], &[0xFF; 8], b"none"];
        let bounded = keys.iter().flat_map(|&a| {
            keys.iter()
                .map(move |&b| KeyRange { lower: Bound::Excluded(a.to_vec()), upper: Bound::Included(b.to_vec()) })
        });
        for range in prefixes.into_iter().map(KeyRange::prefix).chain(bounded) {
            let expected: Vec<_> = keys.iter().filter(|key| range.contains(key)).map(|key| key.to_vec()).collect();
            assert_eq!(all(&database, tree, range.clone(), Direction::Forward), expected, "{range:?}");
            let reversed: Vec<_> = expected.into_iter().rev().collect();
            assert_eq!(all(&database, tree, range.clone(), Direction::Reverse), reversed, "{range:?}");
        }
    }
}

#[test]
fn a_count_is_right_settled_or_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), tiny()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    let count = |range: KeyRange| database.snapshot().count(tree, &range).expect("counts");
    assert_eq!(count(KeyRange::all()), 0);
    for i in 0..200_u8 {
        put(&database, tree, &[i], b"value");
    }
    database.settle().expect("settles");
    assert_eq!((count(KeyRange::all()), count(KeyRange::prefix(&[7]))), (200, 1));
    let mut batch = Batch::new();
    batch.delete(tree, &[7]);
    database.commit(&batch).expect("commits");
    assert_eq!((count(KeyRange::all()), count(KeyRange::prefix(&[7]))), (199, 0));
    database.flush().expect("flushes");
    assert_eq!(count(KeyRange::all()), 199, "a tombstone is no entry");
    database.settle().expect("settles");
    assert_eq!(count(KeyRange::all()), 199);
}

#[test]
fn an_empty_value_is_a_value() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    put(&database, tree, b"key", b"");
    assert_eq!(database.get(tree, b"key").expect("reads"), Some(Vec::new()));
    database.settle().expect("settles");
    assert_eq!(database.get(tree, b"key").expect("reads"), Some(Vec::new()));
}

#[test]
fn a_second_opener_is_told_who_has_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = Database::open(dir.path(), Options::default()).expect("opens");
    let link = dir.path().with_extension("link");
    std::os::unix::fs::symlink(dir.path(), &link).expect("a link");
    for path in [dir.path(), link.as_path()] {
        let Err(Error::AlreadyOpen { pid, .. }) = Database::open(path, Options::default()) else {
            panic!("opened twice");
        };
        assert_eq!(pid, Some(std::process::id()));
    }
    std::fs::remove_file(link).expect("removes the link");
    first.close().expect("closes");
    Database::open(dir.path(), Options::default()).expect("opens after the close").close().expect("closes");
}

#[test]
fn a_closed_database_reads_on_and_refuses_writes() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    put(&database, tree, b"key", b"value");
    database.close().expect("closes");
    database.close().expect("closes again");
    assert_eq!(database.get(tree, b"key").expect("reads"), Some(b"value".to_vec()));
    let mut batch = Batch::new();
    batch.put(tree, b"key", b"other");
    assert!(matches!(database.commit(&batch), Err(Error::Closed)));
    assert!(matches!(database.flush(), Err(Error::Closed)));
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("photo.jpg"), b"x").expect("a file");
    let Err(Error::NotADatabase { reason, .. }) = Database::open(dir.path(), Options::default()) else {
        panic!("opened a directory of photos");
    };
    assert!(reason.contains("photo.jpg"), "{reason}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 1, "nothing was added");
}

#[test]
fn files_are_private_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("database");
    let database = Database::open(&dir, tiny()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    for i in 0..200_u8 {
        put(&database, tree, &[i], &[i; 50]);
    }
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for entry in std::fs::read_dir(&dir).expect("lists") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn senseless_options_are_refused_before_anything_is_made() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("database");
    let refused = Database::open(&dir, Options { block_bytes: 0, ..Options::default() });
    assert!(matches!(refused, Err(Error::InvalidOption { option: "block_bytes", .. })));
    assert!(!dir.exists());
}

#[test]
fn a_database_many_times_larger_than_its_budget_stays_within_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = 1 << 20;
    let options = Options { memory_bytes: budget, ..Options::default() };
    let database = Database::open(dir.path(), options).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    let value = |key: u32| key.wrapping_mul(0x9E37_79B9).to_be_bytes().repeat(256);
    let mut largest = (0, 0);
    let mut look = || {
        let stats = database.stats();
        // What is just added is counted a moment before room is made for it.
        assert!(stats.memory_bytes <= budget as u64 + (16 << 10), "{stats:?}");
        largest = (largest.0.max(stats.delta_bytes), largest.1.max(stats.resident_bytes));
    };
    // In no order, so that merges overlap; each key three times, and read in between.
    for step in 0..30_000_u32 {
        let key = step.wrapping_mul(7919) % 10_000;
        put(&database, tree, &key.to_be_bytes(), &value(key));
        if step % 3 == 0 {
            let read = step.wrapping_mul(104_729) % 10_000;
            let found = database.get(tree, &read.to_be_bytes()).expect("reads");
            assert!(found.is_none_or(|found| found == value(read)));
        }
        look();
    }
    database.settle().expect("settles");
    look();
    for step in 0..20_000_u32 {
        let key = step.wrapping_mul(7919) % 10_000;
        assert_eq!(database.get(tree, &key.to_be_bytes()).expect("reads"), Some(value(key)));
        look();
    }
    assert_eq!(database.stats().trees[0].entries, 10_000);
    assert!(largest.0 > budget as u64 / 8, "deltas make use of it: {largest:?}");
    assert!(largest.1 > budget as u64 * 2 / 3, "so do blocks, when there are no deltas: {largest:?}");
}

#[test]
fn a_small_budget_makes_deltas_smaller_than_asked() {
    let options =
        |delta_bytes, memory_bytes| Options { delta_bytes, memory_bytes, sealed_max: 3, ..Options::default() };
    for (delta_bytes, memory_bytes, expected) in [
        (8 << 20, 256 << 20, 8 << 20),
        (8 << 20, 32 << 20, 4 << 20),
        (8 << 20, 0, 64 << 10),
        (1 << 10, 0, 1 << 10),
        (1 << 30, 1 << 30, 1 << 27),
    ] {
        assert_eq!(options(delta_bytes, memory_bytes).delta_bytes_max(), expected);
    }
}

#[test]
fn writers_and_readers_of_many_threads_agree() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { delta_bytes: 32 << 10, ..tiny() };
    let database = Database::open(dir.path(), options).expect("opens");
    let (record, index) = (database.tree("record").expect("a tree"), database.tree("index").expect("a tree"));
    std::thread::scope(|scope| {
        for writer in 0..4_u32 {
            let database = &database;
            scope.spawn(move || {
                for i in 0..500_u32 {
                    let key = (i * 4 + writer).to_be_bytes();
                    let mut batch = Batch::new();
                    batch.put(record, &key, &[1; 40]);
                    batch.put(index, &key, b"");
                    let class = [Durability::None, Durability::Process, Durability::Sync][usize::from(i % 50 == 0) * 2];
                    database.commit_with(&batch, class).expect("commits");
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let snapshot = database.snapshot();
                    let count = |tree| {
                        let mut scan = snapshot.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
                        let mut count = 0;
                        while scan.next().expect("reads").is_some() {
                            count += 1;
                        }
                        count
                    };
                    assert_eq!(count(record), count(index), "a batch is seen whole or not at all");
                }
            });
        }
    });
    assert_eq!(all(&database, index, KeyRange::all(), Direction::Forward).len(), 2000);
    database.close().expect("closes");
}

/// A close used to flush until nothing had come in meanwhile: under writers that never pause it never ended. Now it
/// refuses new commits first, and keeps every commit that was not refused.
#[test]
fn a_close_ends_under_writers_that_never_pause_and_loses_none_of_their_commits() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), tiny()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let started = std::sync::Barrier::new(4);
    let committed: Vec<u32> = std::thread::scope(|scope| {
        let write = |writer: u32| {
            let mut batch = Batch::new();
            for i in 0.. {
                batch.clear();
                batch.put(tree, &[writer.to_be_bytes(), u32::to_be_bytes(i)].concat(), &[7; 100]);
                let class = [Durability::Process, Durability::Sync][usize::from(writer == 0)];
                match database.commit_with(&batch, class) {
                    Ok(()) => assert!(std::time::Instant::now() < give_up, "the close does not end"),
                    Err(Error::Closed) => return i,
                    Err(error) => panic!("{error}"),
                }
                if i == 50 {
                    started.wait();
                }
            }
            unreachable!("numbers do not run out")
        };
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(move || write(writer))).collect();
        started.wait();
        database.close().expect("closes");
        writers.into_iter().map(|writer| writer.join().expect("writes")).collect()
    });
    drop(database);
    let database = Database::open(dir.path(), tiny()).expect("opens again");
    assert_eq!(database.recovery().replayed_batches, 0, "a close leaves no log");
    let found = all(&database, tree, KeyRange::all(), Direction::Forward).len();
    assert_eq!(found, committed.iter().map(|&count| count as usize).sum::<usize>());
}

/// Names and contents of a directory, without the lock file.
fn files_of(dir: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry"));
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().expect("names are ASCII");
        (name, std::fs::read(entry.path()).expect("reads"))
    });
    files.filter(|(name, _)| name != "LOCK").collect()
}

fn is_segment(name: &str) -> bool {
    name.split_once('.').is_some_and(|(_, ending)| ending == "seg")
}

/// A directory whose database has a segment and, behind it, a log.
fn with_segment_and_log() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    put(&database, tree, b"in the segment", b"value");
    database.flush().expect("flushes");
    put(&database, tree, b"in the log", b"value");
    dir
}

/// Files used to be named by path: those of a directory that moved went to where it had been.
#[test]
fn a_database_moves_with_its_directory() {
    let parent = tempfile::tempdir().expect("a directory");
    let (before, after) = (parent.path().join("before"), parent.path().join("after"));
    let database = Database::open(&before, tiny()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    std::fs::rename(&before, &after).expect("moves");
    std::fs::create_dir(&before).expect("somebody else takes the name");
    for i in 0..200_u8 {
        put(&database, tree, &[i], &[i; 50]);
    }
    database.close().expect("closes");
    assert_eq!(std::fs::read_dir(&before).expect("lists").count(), 0);
    let database = Database::open(&after, tiny()).expect("opens where it is now");
    assert_eq!(all(&database, tree, KeyRange::all(), Direction::Forward).len(), 200);
}

/// The lock used to be on the lock file alone: without it a second opener became a second owner.
#[test]
fn a_second_opener_is_refused_after_the_lock_file_was_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    let _first = Database::open(dir.path(), Options::default()).expect("opens");
    std::fs::remove_file(dir.path().join("LOCK")).expect("removes");
    assert!(matches!(Database::open(dir.path(), Options::default()), Err(Error::AlreadyOpen { .. })));
}

/// The process id used to be written into whatever file a hard link in place of the lock file led to.
#[test]
fn a_lock_file_with_another_name_is_not_written_to() {
    let parent = tempfile::tempdir().expect("a directory");
    let (dir, precious) = (parent.path().join("database"), parent.path().join("precious"));
    std::fs::create_dir(&dir).expect("a directory");
    std::fs::write(&precious, b"precious").expect("a file");
    std::fs::hard_link(&precious, dir.join("LOCK")).expect("a link");
    let database = Database::open(&dir, Options::default()).expect("opens");
    assert!(matches!(Database::open(&dir, Options::default()), Err(Error::AlreadyOpen { pid: None, .. })));
    drop(database);
    assert_eq!(std::fs::read(&precious).expect("reads"), b"precious");
}

/// What was replayed used to be written before the segments were looked at: every refused open left more files.
#[test]
fn a_damaged_segment_is_refused_before_anything_is_changed() {
    let dir = with_segment_and_log();
    let segment = files_of(dir.path()).into_keys().find(|name| is_segment(name)).expect("one was flushed");
    let path = dir.path().join(segment);
    let mut bytes = std::fs::read(&path).expect("reads");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(&path, bytes).expect("writes");
    let before = files_of(dir.path());
    for _ in 0..2 {
        assert!(matches!(Database::open(dir.path(), Options::default()), Err(Error::Corruption { .. })));
        assert_eq!(files_of(dir.path()), before);
    }
}

/// The numbers of new files used to go on behind that of any file. Behind the largest they ended, and a manifest was
/// stored that no open would take.
#[test]
fn a_file_with_a_number_far_ahead_is_not_ours() {
    for name in ["04611686018427387903.seg", "04611686018427387903.wal", "18446744073709551615.seg"] {
        let dir = with_segment_and_log();
        std::fs::write(dir.path().join(name), b"foreign").expect("a file");
        for round in 0..3_u8 {
            let database = Database::open(dir.path(), tiny()).expect("opens");
            let tree = database.tree("tree").expect("a tree");
            assert_eq!(all(&database, tree, KeyRange::all(), Direction::Forward).len(), 2 + usize::from(round));
            put(&database, tree, &[round], b"value");
        }
        assert_eq!(std::fs::read(dir.path().join(name)).expect("it is left alone"), b"foreign");
    }
}

/// After an error the merge went on without the source that failed: whoever asked again got the rest as if it were all.
#[test]
fn a_scan_ends_at_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { segment_bytes: 1 << 20, compression: super::Compression::None, ..tiny() };
    let database = Database::open(dir.path(), options.clone()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    (0..100_u8).for_each(|i| put(&database, tree, &[i], &[i; 20]));
    database.settle().expect("settles");
    database.close().expect("closes");
    let place = |bytes: &[u8]| bytes.windows(20).position(|window| window == [50; 20]);
    let mut segments = files_of(dir.path()).into_iter().filter(|(name, _)| is_segment(name));
    let (name, mut bytes) = segments.find(|(_, bytes)| place(bytes).is_some()).expect("values are stored as they are");
    let middle = place(&bytes).expect("it was found");
    bytes[middle] ^= 1;
    std::fs::write(dir.path().join(&name), bytes).expect("writes");
    let database = Database::open(dir.path(), options).expect("opens: blocks are read when they are needed");
    (0..100_u8).step_by(10).for_each(|i| put(&database, tree, &[i, 0], b"newer"));
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut scan = database.scan(tree, KeyRange::all(), direction).expect("scans");
        let error = loop {
            match scan.next() {
                Ok(entry) => assert!(entry.is_some(), "the scan got past the damage"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Corruption { .. }));
        assert_eq!(scan.next().expect("it has ended"), None);
    }
}

/// Tombstones used to lie over what they delete until many runs had come together: a scan passed over all of them.
#[test]
fn deleting_everything_gives_back_the_space_without_a_settle() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = Database::open(dir.path(), Options::default()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    for value in [Some(&[7; 40][..]), None] {
        let mut batch = Batch::new();
        for i in 0..1000_u32 {
            match value {
                Some(value) => batch.put(tree, &i.to_be_bytes(), value),
                None => batch.delete(tree, &i.to_be_bytes()),
            }
        }
        database.commit(&batch).expect("commits");
        database.flush().expect("flushes");
    }
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while database.stats().trees[0].entries > 0 {
        assert!(std::time::Instant::now() < give_up, "{:?}", database.stats());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A flush that ran out of space used to leave what it had written, which was what filled the disk, and a reopen did not
/// remove it before it wrote more.
#[test]
fn what_a_full_disk_did_not_take_whole_is_removed_at_once() {
    use super::disk::sim::{CallKind, Fault, SimDisk};

    let disk = SimDisk::new();
    let segments = || {
        let names = super::disk::Disk::list(&disk).expect("lists");
        names.into_iter().filter(|name| is_segment(name)).collect::<Vec<_>>()
    };
    let open = || Database::open_on(std::sync::Arc::new(disk.clone()), Options::default());
    let database = open().expect("opens");
    let tree = database.tree("tree").expect("a tree");
    put(&database, tree, b"key", b"value");
    let full =
        Fault { ending: ".seg", error: rustix::io::Errno::NOSPC, short: true, ..Fault::for_ever(CallKind::Append, 0) };
    disk.inject(full);
    assert!(database.flush().is_err());
    assert_eq!(segments(), [""; 0], "the flush took back what it had written");
    assert_eq!(database.get(tree, b"key").expect("reads on"), Some(b"value".to_vec()));
    drop(database);
    assert!(open().is_err(), "the disk is still full");
    assert_eq!(segments(), [""; 0], "so did the open");
    disk.heal();
    let database = open().expect("opens");
    assert_eq!(database.get(tree, b"key").expect("reads"), Some(b"value".to_vec()));
}

/// A layout that was stored and could not be read again kept the database from opening.
#[test]
fn a_layout_that_no_manifest_holds_is_refused_and_any_other_opens_again() {
    let nested = |depth| (1..depth).fold(Field::Varint, |field, _| Field::Option(Box::new(field)));
    let dir = tempfile::tempdir().expect("a directory");
    let layout = |field: Field| Layout { key: vec![field], value: Vec::new() };
    {
        let database = Database::open(dir.path(), tiny()).expect("opens");
        for unsound in [Field::BigEndian(0), Field::BigEndian(9), Field::LittleEndian(9), nested(33)] {
            let refused = database.tree_with("refused", &layout(unsound));
            assert!(matches!(refused, Err(Error::InvalidOption { option: "layout", .. })));
        }
        let tree = database.tree_with("deep", &layout(nested(32))).expect("a tree");
        put(&database, tree, b"key", b"value");
        database.close().expect("closes");
    }
    let database = Database::open(dir.path(), tiny()).expect("opens again");
    assert_eq!(database.tree_names(), ["deep"]);
}

/// Entries were collected for a block of columns until they were too long for any block, which stopped the merge.
#[test]
fn the_largest_values_are_settled_in_a_tree_of_columns() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { compression: Compression::None, delta_bytes: 1 << 30, ..Options::default() };
    let database = Database::open(dir.path(), options).expect("opens");
    let layout = Layout { key: vec![Field::Rest], value: vec![Field::Rest] };
    let tree = database.tree_with("tree", &layout).expect("a tree");
    let large = vec![b'v'; VALUE_BYTES_MAX];
    put(&database, tree, b"a", &large[..65_000]);
    put(&database, tree, &[b'b'; 10_000], &large);
    put(&database, tree, b"c", b"small");
    database.settle().expect("settles");
    assert_eq!(database.get(tree, &[b'b'; 10_000]).expect("reads").map(|value| value.len()), Some(VALUE_BYTES_MAX));
    assert_eq!(database.get(tree, b"c").expect("reads").as_deref(), Some(&b"small"[..]));
    assert!(database.verify().expect("verifies").problems.is_empty());
}
