//! What a disk does not give back is lost, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::engine::disk::sim::{CallKind, Fault, SimDisk};
use crate::engine::{Direction, KeyRange};

const TREES: [&str; 2] = ["a", "b"];
const ENTRIES: u32 = 600;
/// Those behind the first so many are in a log only.
const FLUSHED: u32 = 500;

type Entries = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

fn entries() -> Entries {
    let of_tree = |tree| (0..ENTRIES).map(move |number| (tree, number));
    let entry = |(tree, number): (usize, u32)| {
        ((tree, number.to_be_bytes().to_vec()), format!("value {number} of {tree}").repeat(3).into_bytes())
    };
    (0..TREES.len()).flat_map(of_tree).map(entry).collect()
}

/// A segment of many sectors for each tree, and a log of several.
fn killed() -> SimDisk {
    killed_after(&[FLUSHED]).0
}

/// The same after settling when so many entries were in each tree; and the manifests from before.
fn killed_after(settled: &[u32]) -> (SimDisk, Vec<Vec<u8>>) {
    let mut manifests = Vec::new();
    let disk = SimDisk::new();
    let options = Options { block_bytes: 256, compression: segment::Compression::None, ..Options::default() };
    let database = Database::open_on(Arc::new(disk.clone()), options).expect("opens");
    let trees = TREES.map(|name| database.tree(name).expect("a tree"));
    let entries = entries();
    for number in 0..ENTRIES {
        let mut batch = Batch::new();
        for (index, tree) in trees.iter().enumerate() {
            let key = number.to_be_bytes().to_vec();
            batch.put(*tree, &key, &entries[&(index, key.clone())]);
        }
        database.commit(&batch).expect("commits");
        if settled.contains(&(number + 1)) {
            manifests.push(disk.state().contents()[MANIFEST].clone());
            database.settle().expect("settles");
        }
    }
    (SimDisk::from_state(disk.state()), manifests)
}

fn names(disk: &SimDisk, ending: &str) -> Vec<&'static str> {
    let state = disk.state();
    let names = state.names().filter(|name| name.ends_with(ending));
    names.map(|name| &*name.to_owned().leak()).collect()
}

fn salvaged(disk: &SimDisk) -> (Entries, SalvageReport) {
    let copy = Database::open_on(Arc::new(SimDisk::new()), Options::default()).expect("opens");
    let report = salvage_on(disk, &copy).expect("what cannot be read is lost, and no more");
    let mut found = Entries::new();
    for (index, name) in TREES.iter().enumerate() {
        let tree = copy.tree(name).expect("a tree");
        let mut scan = copy.scan(tree, KeyRange::all(), Direction::Forward).expect("scans");
        while let Some((key, value)) = scan.next().expect("reads") {
            found.insert((index, key.to_vec()), value.to_vec());
        }
    }
    (found, report)
}

/// How many entries are missing, each of which the report names, with the reason.
fn missing(found: &Entries, report: &SalvageReport) -> usize {
    let is_named = |(index, key): &(usize, Vec<u8>)| {
        report.lost.iter().any(|lost| match &lost.what {
            LostPart::Entries { tree, between: (first, last), .. } => {
                *tree == TREES[*index] && first <= key && key <= last
            }
            LostPart::Batches => key[..] >= FLUSHED.to_be_bytes()[..],
            LostPart::Manifest => false,
        })
    };
    let expected = entries();
    for (place, value) in &expected {
        assert!(found.get(place) == Some(value) || !found.contains_key(place) && is_named(place), "{place:?}");
    }
    assert!(report.lost.iter().all(|lost| lost.reason.is_some()), "{:?}", report.lost);
    expected.len() - found.len()
}

#[test]
fn a_segment_that_cannot_be_opened_is_lost_and_the_other_is_not() {
    let segments = names(&killed(), ".seg");
    assert_eq!(segments.len(), 2);
    for ending in segments {
        for (kind, error) in [(CallKind::Open, rustix::io::Errno::ACCESS), (CallKind::Len, rustix::io::Errno::IO)] {
            let disk = killed();
            disk.inject(Fault { ending, error, ..Fault::for_ever(kind, 0) });
            let (found, report) = salvaged(&disk);
            assert_eq!(missing(&found, &report), FLUSHED as usize);
            assert_eq!((report.lost.len(), report.lost[0].file.as_str(), report.lost[0].offset), (1, ending, 0));
        }
    }
}

#[test]
fn a_sector_of_a_segment_that_cannot_be_read_costs_the_blocks_that_touch_it() {
    let sound = killed();
    for name in names(&sound, ".seg") {
        let len = sound.state().contents()[name].len();
        assert!(len > 20_000, "{len}");
        for start in (0..len).step_by(4096) {
            let disk = SimDisk::from_state(sound.state());
            disk.break_sector(name, start..start + 512);
            let (found, report) = salvaged(&disk);
            let missing = missing(&found, &report);
            assert!(
                missing * len <= FLUSHED as usize * (4096 + 2 * 512),
                "{missing} of {FLUSHED} for a sector of {len}"
            );
            assert!(report.lost.iter().all(|lost| lost.offset <= start as u64), "{:?}", report.lost);
        }
    }
}

/// A disk that lost the write of a part of the manifest, and kept what had been there.
#[test]
fn of_two_manifests_that_differ_the_newer_one_is_taken() {
    let (sound, older) = killed_after(&[1, FLUSHED / 2, FLUSHED]);
    let newest = sound.state().contents()[MANIFEST].clone();
    let (first, second) = newest.split_at(4096);
    assert!(second.len() < 4096, "the second copy begins at the second block");
    for older in older {
        for (stale, at) in [([&older[..4096], second].concat(), 0), ([first, &older[4096..]].concat(), 4096)] {
            let mut state = sound.state();
            state.overwrite(MANIFEST, stale);
            let disk = SimDisk::from_state(state);
            assert!(Database::open_on(Arc::new(disk.clone()), Options::default()).is_err(), "it is damaged");
            let (found, report) = salvaged(&disk);
            assert_eq!(found, entries());
            let [Lost { file, offset, what: LostPart::Manifest, .. }] = &report.lost[..] else {
                panic!("not one copy of the manifest: {:?}", report.lost)
            };
            assert_eq!((file.as_str(), *offset >= at && *offset < at + 4096), (MANIFEST, true), "{offset}");
        }
    }
}

#[test]
fn a_sector_of_a_log_that_cannot_be_read_costs_the_batches_that_touch_it() {
    let sound = killed();
    let logs = names(&sound, ".wal");
    let [name] = logs[..] else { panic!("one log: {logs:?}") };
    let len = sound.state().contents()[name].len();
    assert!(len > 8192, "{len}");
    for start in (0..len).step_by(4096) {
        let disk = SimDisk::from_state(sound.state());
        disk.break_sector(name, start..start + 1);
        let (found, report) = salvaged(&disk);
        let missing = missing(&found, &report) / TREES.len();
        let touched = 1 + (ENTRIES - FLUSHED) as usize * (4096 + 200) / len;
        assert!((1..=touched).contains(&missing), "{missing} batches at {start} of {len}: {:?}", report.lost);
    }
}

#[test]
fn a_log_that_cannot_be_opened_is_told_and_lost() {
    let disk = killed();
    disk.inject(Fault { ending: ".wal", ..Fault::for_ever(CallKind::Open, 0) });
    let (found, report) = salvaged(&disk);
    assert_eq!(missing(&found, &report), TREES.len() * (ENTRIES - FLUSHED) as usize);
    assert_eq!(report.lost.len(), 1);
}

#[test]
fn a_copy_that_cannot_be_written_ends_it() {
    let full = SimDisk::new();
    let copy = Database::open_on(Arc::new(full.clone()), Options { delta_bytes: 16 << 10, ..Options::default() });
    let copy = copy.expect("opens");
    full.inject(Fault { ending: ".seg", error: rustix::io::Errno::NOSPC, ..Fault::for_ever(CallKind::Append, 0) });
    let result = salvage_on(&killed(), &copy).and_then(|_| copy.flush());
    assert!(result.is_err_and(|error| error.to_string().contains("append")));
}
