//! What others can put into the directory, and what others may read of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::alone::{alone_dir, run_alone};
use crate::bench::torture::history::tiny;
use crate::engine::{Batch, Database, Direction, Error, KeyRange, Options, Result, salvage};

fn put(database: &Database, key: &[u8]) {
    let tree = database.tree("tree").expect("a tree");
    let mut batch = Batch::new();
    batch.put(tree, key, &[7; 100]);
    database.commit(&batch).expect("commits");
}

/// A database with a segment, and a log behind it.
fn make(dir: &Path) {
    let database = Database::open(dir, Options::default()).expect("opens");
    put(&database, b"in the segment");
    database.flush().expect("flushes");
    put(&database, b"in the log");
}

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).expect("lists").map(|file| file.expect("an entry").path()).collect()
}

/// Modes of a directory and of everything in it.
fn modes(dir: &Path) -> BTreeMap<PathBuf, u32> {
    let mode = |path: PathBuf| {
        let mode = fs::symlink_metadata(&path).expect("is there").permissions().mode() & 0o7777;
        (path, mode)
    };
    files(dir).into_iter().chain([dir.to_path_buf()]).map(mode).collect()
}

/// What is made by an open, a flush, a merge, a recovery and a salvage is its owner's alone.
#[test]
fn nobody_else_may_read_a_file_whatever_the_umask() {
    let Some(parent) = alone_dir() else {
        for umask in ["000", "022", "077"] {
            let parent = tempfile::tempdir().expect("a directory");
            let before = format!("umask {umask}");
            run_alone("intruders::nobody_else_may_read_a_file_whatever_the_umask", &before, parent.path());
        }
        return;
    };
    let (dir, copy) = (parent.join("database"), parent.join("copy"));
    let check = |dir: &Path| {
        for (path, mode) in modes(dir) {
            assert_eq!(mode, if path == dir { 0o700 } else { 0o600 }, "{}", path.display());
        }
    };
    for _ in 0..2 {
        let database = Database::open(&dir, tiny()).expect("opens");
        (0..100_u8).for_each(|number| put(&database, &[number]));
        check(&dir);
        database.settle().expect("settles");
        put(&database, b"in the log");
        check(&dir);
    }
    salvage(&dir, &copy, Options::default()).expect("salvages");
    check(&copy);
}

/// Calls `open` in another thread: one that waits for a FIFO waits for ever.
fn in_time(dir: &Path) -> Result<Database> {
    let (told, answer) = mpsc::channel();
    let dir = dir.to_path_buf();
    thread::spawn(move || told.send(Database::open(dir, Options::default())).is_ok());
    answer.recv_timeout(Duration::from_secs(20)).expect("the open does not end")
}

/// Puts something that is no file in the place of `path`; `false` if this process may not.
fn replace(path: &Path, kind: &str, precious: &Path) -> bool {
    if fs::symlink_metadata(path).is_ok() {
        fs::remove_file(path).expect("removes");
    }
    let made = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    match kind {
        "FIFO" => made(Command::new("mkfifo").arg(path)),
        "device" => made(Command::new("mknod").arg(path).args(["c", "1", "5"])),
        "directory" => fs::create_dir(path).is_ok(),
        "link" => symlink(precious, path).is_ok(),
        "link to nothing" => symlink(path.with_extension("nothing"), path).is_ok(),
        _ => unreachable!("{kind} is none of these"),
    }
}

#[test]
fn what_is_no_file_in_the_place_of_one_is_an_error_that_names_it_and_nobody_waits_for_it() {
    let mut cases = 0;
    for ending in ["MANIFEST", "LOCK", ".wal", ".seg"] {
        for kind in ["FIFO", "device", "directory", "link", "link to nothing"] {
            let parent = tempfile::tempdir().expect("a directory");
            let (dir, precious) = (parent.path().join("database"), parent.path().join("precious"));
            fs::write(&precious, b"precious").expect("a file");
            make(&dir);
            let is_it = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(ending));
            let path = files(&dir).into_iter().find(is_it).expect("there is one of each");
            if !replace(&path, kind, &precious) {
                eprintln!("skipped: this process may not make a {kind}");
                continue;
            }
            let refused = in_time(&dir).err().unwrap_or_else(|| panic!("opened with a {kind} for {}", path.display()));
            let name = path.file_name().and_then(|name| name.to_str()).expect("it is text");
            assert!(refused.to_string().contains(name), "a {kind} for {name}: {refused}");
            assert!(fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()), "it is left alone");
            assert_eq!(fs::read(&precious).expect("reads"), b"precious", "a {kind} for {name}");
            assert!(!path.with_extension("nothing").exists());
            cases += 1;
        }
    }
    assert!(cases >= 16, "only {cases}");
}

/// What is written is made anew, under a name that nobody has; what has that name is not written to.
#[test]
fn what_has_the_name_of_a_file_to_come_is_not_written_to() {
    for kind in ["FIFO", "link", "link to nothing"] {
        let parent = tempfile::tempdir().expect("a directory");
        let (dir, precious) = (parent.path().join("database"), parent.path().join("precious"));
        fs::write(&precious, b"precious").expect("a file");
        make(&dir);
        let numbers = files(&dir).into_iter().filter_map(|file| file.file_stem()?.to_str()?.parse::<u64>().ok());
        let next = numbers.max().expect("files have numbers") + 1;
        let names = (next..next + 6).flat_map(|number| [format!("{number:020}.seg"), format!("{number:020}.wal")]);
        let planted: Vec<PathBuf> = names.chain(["MANIFEST.new".to_owned()]).map(|name| dir.join(name)).collect();
        let made = planted.iter().filter(|path| replace(path, kind, &precious)).count();
        assert_eq!(made, planted.len());
        // It is refused, for a log that cannot be read, or works with other names.
        for _ in 0..2 {
            match in_time(&dir) {
                Ok(database) => {
                    put(&database, b"more");
                    database.settle().expect("settles");
                    database.close().expect("closes");
                }
                Err(error) => assert!(matches!(error, Error::Io { .. }), "{error}"),
            }
        }
        assert_eq!(fs::read(&precious).expect("reads"), b"precious");
        assert!(planted.iter().all(|path| !path.with_extension("nothing").exists()), "nothing was made behind a link");
        for path in planted.iter().filter(|path| fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())) {
            let found = fs::symlink_metadata(path).expect("is there").file_type();
            assert!(found.is_fifo() || found.is_symlink());
            fs::remove_file(path).expect("removes");
        }
        let database = in_time(&dir).expect("opens without them");
        let tree = database.tree("tree").expect("a tree");
        let mut scan = database.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
        assert!(scan.next().expect("reads").is_some(), "what was there is there");
    }
}

#[test]
fn a_segment_that_is_cut_while_it_is_open_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { memory_bytes: 0, ..tiny() };
    let database = Database::open(dir.path(), options).expect("opens");
    (0..200_u8).for_each(|number| put(&database, &[number]));
    database.settle().expect("settles");
    for file in files(dir.path()).into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "seg")) {
        fs::OpenOptions::new().write(true).open(file).and_then(|file| file.set_len(0)).expect("cuts it");
    }
    let tree = database.tree("tree").expect("a tree");
    let refused = (0..200_u8).filter(|&number| database.get(tree, &[number]).is_err()).count();
    assert!(refused > 100, "{refused} reads were refused");
}
