//! Any bytes as the files of a directory: what opens soundly is salvaged whole, what does not is refused or salvaged in
//! part, and neither ends in a panic.
//!
//! ```text
//! input := file*
//! file  := name:length-prefixed content:length-prefixed
//! ```

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::salvage_on;
use crate::engine::codec::{Reader, put_length_prefixed};
use crate::engine::disk::sim::{SimDisk, State};
use crate::engine::disk::{Disk, LOCK};
use crate::engine::error::Result;
use crate::engine::layout::{Field, Layout};
use crate::engine::manifest::{self, MANIFEST, Manifest, TreeManifest};
use crate::engine::open_files::OpenFiles;
use crate::engine::segment::{self, BlockCache, Compression, Reading, Segment, SegmentMeta, WriterParams};
use crate::engine::wal;
use crate::engine::{Database, Direction, KeyRange, Options, TreeId};

const DATABASE: u128 = 7;

type Files = Vec<(String, Vec<u8>)>;
/// Name of a tree, and its entries.
type Dump = Vec<(String, Vec<(Vec<u8>, Vec<u8>)>)>;

pub(crate) fn run(input: &[u8]) {
    let mut files = decode(input);
    check(&files);
    repair(&mut files);
    check(&files);
}

fn decode(input: &[u8]) -> Files {
    let (mut reader, mut files) = (Reader::new(input), Files::new());
    while let Some(name) = reader.length_prefixed().and_then(|name| std::str::from_utf8(name).ok()) {
        let content = reader.length_prefixed().unwrap_or_default();
        files.push((name.to_owned(), content.to_vec()));
    }
    files
}

/// Makes the checks of every file right again, for the place in which it is found.
fn repair(files: &mut Files) {
    for (name, content) in files {
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        match (stem.parse(), ending) {
            (Ok(number), "wal") => wal::fuzz::repair(DATABASE, number, content),
            (Ok(number), "seg") => segment::fuzz::repair(DATABASE, number, content),
            _ if name == MANIFEST => manifest::fuzz::repair(content),
            _ => {}
        }
    }
}

fn check(files: &Files) {
    let left = disk_of(files).state();
    let salvaged = salvaged(&left);
    if let Err(error) = &salvaged {
        assert!(!error.to_string().contains("panicked"), "{error}");
    }
    let Some(expected) = opened(&left) else { return };
    let (found, lost) = salvaged.expect("a sound database is salvaged");
    assert!(lost.is_empty(), "of a sound database {lost:?} is lost");
    assert_eq!(found, expected, "what is salvaged is not what was there");
}

fn disk_of(files: &Files) -> SimDisk {
    let disk = SimDisk::new();
    for (name, content) in files.iter().filter(|(name, _)| name != LOCK) {
        // The same name twice: the first counts.
        if let Ok(file) = disk.create(name) {
            file.append(content).expect("memory has room");
        }
    }
    disk
}

fn options() -> Options {
    Options { memory_bytes: 1 << 20, ..Options::default() }
}

fn salvaged(left: &State) -> Result<(Dump, Vec<super::Lost>)> {
    let disk = SimDisk::from_state(left.clone());
    let to = Database::open_on(Arc::new(SimDisk::new()), options()).expect("an empty disk");
    let report = salvage_on(&disk, &to)?;
    Ok((dump(&to).expect("what was copied can be read"), report.lost))
}

/// What the database holds, if nothing is wrong with it.
fn opened(left: &State) -> Option<Dump> {
    let database = match Database::open_on(Arc::new(SimDisk::from_state(left.clone())), options()) {
        Ok(database) => database,
        Err(error) => {
            assert!(!error.to_string().contains("panicked"), "{error}");
            return None;
        }
    };
    let problems = database.verify().map(|report| report.problems);
    for text in problems.iter().flatten().map(ToString::to_string) {
        assert!(!text.contains("panicked"), "{text}");
    }
    let is_sound = problems.is_ok_and(|problems| problems.is_empty());
    let found = dump(&database);
    if is_sound {
        assert!(found.is_ok(), "verified, and not to be read: {found:?}");
    }
    let flushed = database.flush().and_then(|()| database.close());
    if let Err(error) = flushed {
        assert!(!error.to_string().contains("panicked"), "{error}");
    }
    let is_whole = is_sound && database.recovery().dropped_from.is_none() && !is_empty(left);
    found.ok().filter(|_| is_whole && !has_twins(left))
}

/// Whether one version lies in two segments of a tree. No file alone is wrong then, and nobody writes such a pair; which of
/// the two is read is not promised.
fn has_twins(left: &State) -> bool {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::from_state(left.clone()));
    let Ok(manifest) = Manifest::load(&*disk) else { return false };
    let (files, cache) = (OpenFiles::new(&disk, 1), BlockCache::new(1 << 20));
    manifest.trees.iter().any(|tree| {
        let mut seen = HashSet::new();
        let mut is_new = |meta: &SegmentMeta| {
            let segment = Segment::open(&files, manifest.database_id, meta.clone(), &cache).expect("it was verified");
            let versions = segment::fuzz::scan(&Arc::new(segment), Reading::Once, false).expect("it was verified");
            versions.into_iter().all(|(key, sequence, _)| seen.insert((key, sequence)))
        };
        !tree.runs.iter().flatten().all(&mut is_new)
    })
}

/// Opening makes a database where there is none.
fn is_empty(left: &State) -> bool {
    left.names().all(|name| name != MANIFEST)
}

fn dump(database: &Database) -> Result<Dump> {
    let mut trees = Dump::new();
    for (index, name) in database.tree_names().into_iter().enumerate() {
        let mut scan = database.scan(TreeId(index as u32), KeyRange::all(), Direction::Forward)?;
        let mut entries = Vec::new();
        while let Some((key, value)) = scan.next()? {
            entries.push((key.to_vec(), value.to_vec()));
        }
        trees.push((name, entries));
    }
    Ok(trees)
}

fn encode(files: &[(String, &[u8])]) -> Vec<u8> {
    let mut input = Vec::new();
    for (name, content) in files {
        put_length_prefixed(&mut input, name.as_bytes());
        put_length_prefixed(&mut input, content);
    }
    input
}

/// A small database: two trees, three segments, and a log.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let layout = Layout { key: vec![Field::Terminated(0), Field::BigEndian(2)], value: vec![Field::Rest] };
    let write = |number: u64, layout: &Layout, every: usize| {
        let params = WriterParams {
            block_bytes: 200,
            compression: Compression::None,
            filter: number == 2,
            layout: Arc::new(layout.clone()),
        };
        // Only the oldest run holds settled entries.
        let sequence = |at: usize| if number == 2 { 1 + at as u64 } else { 0 };
        let entries = segment::fuzz::settled().into_iter().step_by(every).enumerate();
        let entries = entries.map(|(at, (key, _, value))| (key, Reverse(sequence(at)), value));
        segment::fuzz::file_of(DATABASE, number, entries, &params)
    };
    let (plain, over, packed) = (write(1, &Layout::opaque(), 2), write(2, &Layout::opaque(), 5), write(3, &layout, 1));
    let log = wal::fuzz::log_of(DATABASE, 4, 11..14, 12);
    let manifest = Manifest {
        next_number: 5,
        log_floor: 4,
        flushed: 10,
        logged: 10,
        trees: vec![
            TreeManifest {
                name: "plain".to_owned(),
                layout: Layout::opaque(),
                runs: vec![vec![over.1], vec![plain.1]],
            },
            TreeManifest { name: "packed".to_owned(), layout, runs: vec![vec![packed.1]] },
        ],
        ..Manifest::new(DATABASE, None)
    };
    // Changes to one copy alone are changes to what repairing makes of it.
    let (whole, one_copy) = (manifest.encode(), manifest::fuzz::one_copy(&manifest));
    let files = [
        (MANIFEST.to_owned(), one_copy.as_slice()),
        (wal::file_name(4), &log),
        (segment::file_name(1), &plain.0),
        (segment::file_name(2), &over.0),
        (segment::file_name(3), &packed.0),
    ];
    vec![encode(&files), encode(&[(MANIFEST.to_owned(), whole.as_slice())])]
}
