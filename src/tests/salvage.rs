//! What is left of a damaged database comes back, and what is lost is named.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::engine::{
    Batch, Database, Direction, Error, Field, KeyRange, Layout, Lost, LostPart, Options, SalvageReport, salvage,
};
use crate::store;

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
    let (to, report) = salvage(from, dir.path(), Options::default()).expect("one copy of the manifest is enough");
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
        LostPart::Manifest => false,
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
fn one_copy_of_the_manifest_is_enough() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = damaged_later(dir.path());
    let path = dir.path().join("MANIFEST");
    let sound = fs::read(&path).expect("is there");
    for at in [3, 100, 4000, 4096 + 3, sound.len() - 1] {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).expect("written");
        let error = Database::open(dir.path(), Options::default()).map(drop).expect_err("it is found");
        assert!(error.to_string().contains("MANIFEST is damaged at byte"), "{error}");
        let (found, report) = salvaged(dir.path());
        assert_eq!(found, expected, "byte {at}");
        assert!(matches!(&report.lost[..], [Lost { what: LostPart::Manifest, .. }]), "{:?}", report.lost);
    }
}

#[test]
fn a_directory_in_the_place_of_a_segment_costs_its_range() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = damaged_later(dir.path());
    for name in names(dir.path(), &[".seg"]) {
        let copy = copy_of(dir.path());
        fs::remove_file(copy.path().join(&name)).expect("removed");
        fs::create_dir(copy.path().join(&name)).expect("made");
        let (found, report) = salvaged(copy.path());
        assert_only_named_losses(&expected, &found, &report, &name);
        assert_eq!(report.lost[0].reason.as_deref(), Some("not a regular file"));
    }
}

/// Trees of an engine that are named like a collection, its indexes, and what says which indexes there are.
fn dotted(dir: &Path) -> Vec<(String, u64)> {
    let database = Database::open(dir, Options::default()).expect("opens");
    for name in ["logs", "logs.2024", "logs."] {
        let tree = database.tree(name).expect("a tree");
        let mut batch = Batch::new();
        for number in 0..200_u32 {
            batch.put(tree, &number.to_be_bytes(), b"value");
        }
        batch.put(tree, b"2024", b"");
        database.commit(&batch).expect("commits");
    }
    database.settle().expect("settles");
    let counts = counts(&database);
    database.close().expect("closes");
    counts
}

fn counts(database: &Database) -> Vec<(String, u64)> {
    let count = |name: String| {
        let tree = database.tree(&name).expect("a tree");
        let count = database.snapshot().count(tree, &KeyRange::all()).expect("counts");
        (name, count)
    };
    database.tree_names().into_iter().map(count).collect()
}

#[test]
fn a_tree_that_is_only_named_like_an_index_is_copied_and_its_losses_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = dotted(dir.path());
    assert!(expected.iter().all(|(_, count)| *count == 201), "{expected:?}");
    let salvaged = |from: &Path| {
        let to = tempfile::tempdir().expect("a directory");
        let (copy, report) = store::salvage(from, to.path(), Options::default()).expect("salvages");
        (counts(&copy), report.lost)
    };
    assert_eq!(salvaged(dir.path()), (expected.clone(), Vec::new()));
    let segments = names(dir.path(), &[".seg"]);
    assert_eq!(segments.len(), 3);
    for name in segments {
        let copy = copy_of(dir.path());
        fs::remove_file(copy.path().join(&name)).expect("removed");
        let (found, lost) = salvaged(copy.path());
        let [Lost { what: LostPart::Entries { tree, entries: 201, .. }, .. }] = &lost[..] else { panic!("{lost:?}") };
        let of_others = |counts: &[(String, u64)]| counts.iter().filter(|(name, _)| name != tree).cloned().collect();
        let (found, expected): (Vec<_>, Vec<_>) = (of_others(&found), of_others(&expected));
        assert_eq!(found, expected);
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
