//! What is left of a damaged database comes back, and what is lost is named.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::engine::{
    Batch, Database, Direction, Error, Field, KeyRange, Layout, Lost, LostPart, Options, SalvageReport, salvage,
};

/// Entries by tree and key.
type Entries = BTreeMap<(String, Vec<u8>), Vec<u8>>;

const TREES: [&str; 2] = ["plain", "packed"];

/// A database of several runs, deletions and overwritten values, and a log that is not flushed.
fn damaged_later(dir: &Path) -> Entries {
    let options = Options { block_bytes: 256, segment_bytes: 2 << 10, delta_bytes: 64 << 10, ..Options::default() };
    let database = Database::open(dir, options).expect("opens");
    let layout = Layout { key: vec![Field::BigEndian(4)], value: vec![Field::Rest] };
    let trees = [database.tree(TREES[0]).expect("a tree"), database.tree_with(TREES[1], &layout).expect("a tree")];
    let mut entries = Entries::new();
    for round in 0..4_u32 {
        for number in (0..400_u32).filter(|number| number % (round + 1) == 0) {
            let mut batch = Batch::new();
            for (name, tree) in TREES.iter().zip(trees) {
                let (key, value) = (number.to_be_bytes(), format!("{round} of {number}").into_bytes());
                if number % 7 == round {
                    batch.delete(tree, &key);
                    entries.remove(&((*name).to_owned(), key.to_vec()));
                } else {
                    batch.put(tree, &key, &value);
                    entries.insert(((*name).to_owned(), key.to_vec()), value);
                }
            }
            database.commit(&batch).expect("commits");
        }
        match round {
            0 => database.settle().expect("settles"),
            1 | 2 => database.flush().expect("flushes"),
            _ => {}
        }
    }
    entries
}

fn copy_of(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for file in fs::read_dir(dir).expect("a directory") {
        let file = file.expect("an entry");
        fs::copy(file.path(), copy.path().join(file.file_name())).expect("copied");
    }
    copy
}

/// Names of the files with one of these endings.
fn names(dir: &Path, endings: &[&str]) -> Vec<String> {
    let has_one = |name: &String| endings.iter().any(|ending| name.ends_with(ending));
    let names = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.into_string().expect("names are ASCII")).filter(has_one).collect()
}

fn salvaged(from: &Path) -> (Entries, SalvageReport) {
    let dir = tempfile::tempdir().expect("a directory");
    let (to, report) = salvage(from, dir.path(), Options::default()).expect("a sound manifest is enough");
    let mut entries = Entries::new();
    for name in TREES {
        let tree = to.tree(name).expect("a tree");
        let mut scan = to.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
        while let Some((key, value)) = scan.next().expect("reads") {
            entries.insert((name.to_owned(), key.to_vec()), value.to_vec());
        }
    }
    (entries, report)
}

/// Whether the report says that this key may be gone or older.
fn is_named(lost: &[Lost], name: &str, key: &[u8]) -> bool {
    lost.iter().any(|lost| match &lost.what {
        LostPart::Entries { tree, between: (from, to), .. } => {
            tree == name && from.as_slice() <= key && key <= to.as_slice()
        }
        LostPart::Batches => true,
    })
}

fn assert_only_named_losses(expected: &Entries, found: &Entries, report: &SalvageReport, case: &str) {
    for place in expected.keys().chain(found.keys()) {
        if !is_named(&report.lost, &place.0, &place.1) {
            assert_eq!(found.get(place), expected.get(place), "{case}: {place:?}, lost: {:?}", report.lost);
        }
    }
}

#[test]
fn a_sound_database_comes_back_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = damaged_later(dir.path());
    let before = copy_of(dir.path());
    let (found, report) = salvaged(dir.path());
    assert_eq!(found, expected);
    assert_eq!(report.lost, []);
    assert!(report.batches > 0 && report.entries > 0, "{report:?}");
    for name in names(before.path(), &[".seg", ".wal", "MANIFEST"]) {
        let (now, then) = (fs::read(dir.path().join(&name)), fs::read(before.path().join(&name)));
        assert_eq!(now.expect("is there"), then.expect("is there"), "{name} was changed");
    }
}

#[test]
fn damage_costs_what_the_report_names_and_no_more() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = damaged_later(dir.path());
    let (mut cases, mut losses) = (0, 0);
    for name in names(dir.path(), &[".seg", ".wal"]) {
        let sound = fs::read(dir.path().join(&name)).expect("is there");
        let used = sound.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for at in (0..used).step_by(1 + used / 30) {
            let copy = copy_of(dir.path());
            let mut bytes = sound.clone();
            bytes[at] ^= 0x5A;
            fs::write(copy.path().join(&name), bytes).expect("written");
            let (found, report) = salvaged(copy.path());
            let case = format!("{name} at {at}");
            assert_only_named_losses(&expected, &found, &report, &case);
            assert!(report.lost.iter().all(|lost| lost.file == name && lost.offset <= at as u64), "{case}: {report:?}");
            assert!(report.lost.len() <= 1, "{case}: {report:?}");
            cases += 1;
            losses += report.lost.len();
        }
    }
    assert!(cases > 100 && losses > cases / 3, "{losses} losses in {cases} cases");
}

#[test]
fn a_segment_that_is_gone_or_cut_costs_its_range() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = damaged_later(dir.path());
    for name in names(dir.path(), &[".seg"]) {
        let copy = copy_of(dir.path());
        fs::remove_file(copy.path().join(&name)).expect("removed");
        let (found, report) = salvaged(copy.path());
        assert_only_named_losses(&expected, &found, &report, &name);
        assert_eq!(report.lost.len(), 1, "{name}");

        let copy = copy_of(dir.path());
        let bytes = fs::read(dir.path().join(&name)).expect("is there");
        fs::write(copy.path().join(&name), &bytes[..bytes.len() / 2]).expect("cut");
        let (found, report) = salvaged(copy.path());
        assert_only_named_losses(&expected, &found, &report, &name);
    }
}

#[test]
fn what_cannot_be_salvaged_is_refused_and_nothing_is_made() {
    let dir = tempfile::tempdir().expect("a directory");
    damaged_later(dir.path());
    let to = dir.path().join("to");
    let salvaged = || salvage(dir.path(), &to, Options::default()).map(|_| ()).expect_err("refused");
    {
        let _open = Database::open(dir.path(), Options::default()).expect("opens");
        assert!(matches!(salvaged(), Error::AlreadyOpen { .. }));
    }
    assert!(matches!(
        salvage(dir.path(), dir.path(), Options::default()).map(|_| ()),
        Err(Error::InvalidOption { option: "to", .. })
    ));
    fs::remove_file(dir.path().join("MANIFEST")).expect("removed");
    assert!(matches!(salvaged(), Error::NotADatabase { .. }));
    assert!(!to.exists());
}
