//! From a directory to a database's state: read the manifest, open its segments, replay its logs, tidy up.
//!
//! What was replayed is written to segments and synced before the database is handed out: it may have been read from
//! a page cache that never reached the disk, and nothing may be built on it before it is durable. Then the manifest
//! raises the log floor, and only then are old files removed. A crash at any point repeats the whole.
//!
//! Whatever is refused is refused before anything is changed: all logs and segments are read first, one log at a time.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::batch::Operation;
use super::compaction::Retention;
use super::delta::Delta;
use super::disk::{Disk, LOCK};
use super::error::{Error, Result};
use super::manifest::{MANIFEST, MANIFEST_NEW, Manifest, TreeManifest};
use super::numbers::FileNumbers;
use super::open_files::OpenFiles;
use super::options::Options;
use super::range::{Direction, KeyRange};
use super::run::Run;
use super::run_writer::{RunWriter, discard};
use super::scan::Merge;
use super::segment::BlockCache;
use super::segment::{self, Reading, Segment, SegmentMeta};
use super::version::TreeRuns;
use super::wal::{self, LogImage, RecoveryReport, ReplayContext};

/// The state to start from.
pub(crate) struct Recovered {
    pub(crate) manifest: Manifest,
    pub(crate) trees: Vec<Arc<TreeRuns>>,
    pub(crate) numbers: FileNumbers,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) files: Arc<OpenFiles>,
    pub(crate) report: RecoveryReport,
}

/// Refuses a directory that holds something else, before anything in it is touched.
pub(crate) fn check_directory(disk: &dyn Disk, create: bool) -> Result<()> {
    let names = disk.list()?;
    if names.iter().any(|name| name == MANIFEST) {
        return Ok(());
    }
    let reason = if let Some(file) = names.iter().find(|name| FileName::parse(name).is_some()) {
        format!("it holds {file} and no {MANIFEST}; the manifest was lost, or the copy of a database is incomplete")
    } else if let Some(foreign) = names.iter().find(|&name| name != LOCK && name != MANIFEST_NEW) {
        format!("it holds {foreign}; name an empty directory or one that does not exist yet")
    } else if !create {
        format!("it holds no {MANIFEST}, and the option `create` is off")
    } else {
        return Ok(());
    };
    Err(Error::NotADatabase { dir: disk.path().to_path_buf(), reason })
}

/// Recovers the database on `disk`, which the caller has locked, or makes a new one.
pub(crate) fn recover(disk: &Arc<dyn Disk>, options: &Options) -> Result<Recovered> {
    let files_open = OpenFiles::new(disk, options.open_files_max);
    let disk = &**disk;
    let boot_id = disk.boot_id()?;
    let names = disk.list()?;
    let mut manifest = if names.iter().any(|name| name == MANIFEST) {
        Manifest::load(disk)?
    } else {
        Manifest::new(random_id(), boot_id)
    };
    let files = own_files(&names, &manifest);
    let above_files = files.iter().map(|file| file.number() + 1).max().unwrap_or(0);
    let numbers = FileNumbers::new(manifest.next_number.max(above_files));

    let logs = live_logs(&files, manifest.log_floor);
    let restarted = boot_id.is_none() || manifest.boot_id != boot_id;
    let (deltas, report) = replay(disk, &logs, &manifest, restarted)?;
    let cache = BlockCache::new(options.budget_bytes());
    let mut trees = open_trees(&files_open, &manifest, &cache)?;
    remove_unfinished(disk, &files, &manifest)?;
    let first_number = numbers.next();
    let writer = RunWriter { disk, database_id: manifest.database_id, options, numbers: &numbers };
    let mut prepare = || {
        if !logs.is_empty() || restarted {
            write_runs(&writer, &mut manifest, &deltas, &report)?;
            open_new_runs(&files_open, &manifest, &mut trees, &cache)?;
            manifest.boot_id = boot_id;
            manifest.log_floor = numbers.allot()?;
            manifest.next_number = numbers.next();
            disk.sync_dir()?;
        }
        manifest.prepare(disk)
    };
    if let Err(error) = prepare() {
        // What was written may be all that the disk had room for, and nothing names it.
        discard(disk, first_number..numbers.next());
        let _ = disk.remove(MANIFEST_NEW);
        return Err(error);
    }
    // Also when nothing changed: a process that died, or whose sync failed, may have left the manifest that was just
    // read in the page cache only, and on the disk an older one that needs the files removed below.
    Manifest::replace(disk)?;
    disk.sync_dir()?;
    remove_obsolete(disk, &manifest)?;
    let trees = trees.into_iter().map(Arc::new).collect();
    Ok(Recovered { manifest, trees, numbers, cache, files: files_open, report })
}

/// The database on `disk`, which the caller has locked, as it is: nothing is replayed, written or removed.
pub(crate) fn recover_unchanged(disk: &Arc<dyn Disk>, options: &Options) -> Result<Recovered> {
    let files = OpenFiles::new(disk, options.open_files_max);
    let manifest = Manifest::load(&**disk)?;
    if let Some(log) = log_numbers(&disk.list()?, &manifest).first() {
        let found = format!("on, and {} may hold what is in no segment", wal::file_name(*log));
        return Err(Error::InvalidOption {
            option: "read_only",
            found,
            expected: "open it once without, and close it",
        });
    }
    let cache = BlockCache::new(options.budget_bytes());
    let trees = open_trees(&files, &manifest, &cache)?.into_iter().map(Arc::new).collect();
    let numbers = FileNumbers::new(manifest.next_number);
    let report = RecoveryReport { last_sequence: manifest.flushed, ..RecoveryReport::default() };
    Ok(Recovered { manifest, trees, numbers, cache, files, report })
}

/// A file whose name carries a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileName {
    Log(u64),
    Segment(u64),
}

impl FileName {
    /// Only the exact form that is written: twenty digits and a known ending.
    fn parse(name: &str) -> Option<Self> {
        let (digits, ending) = name.split_at_checked(20)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok()?;
        match ending {
            ".wal" => Some(Self::Log(number)),
            ".seg" => Some(Self::Segment(number)),
            _ => None,
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Log(number) | Self::Segment(number) => number,
        }
    }
}

/// Numbers beyond the manifest's that a process may have used up before it stored the next one: far more than any did.
const NUMBERS_AHEAD_MAX: u64 = 1 << 32;

/// The files that this database can have written. One with a number far ahead is none, and must not drag the numbers of
/// new files along: they would end where the manifest's do.
fn own_files(names: &[String], manifest: &Manifest) -> Vec<FileName> {
    let end = manifest.next_number + NUMBERS_AHEAD_MAX;
    names.iter().filter_map(|name| FileName::parse(name)).filter(|file| file.number() < end).collect()
}

fn random_id() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(std::time::SystemTime::now()));
    half() << 64 | half()
}

/// Numbers of the logs that hold what is in no segment, oldest first.
pub(crate) fn log_numbers(names: &[String], manifest: &Manifest) -> Vec<u64> {
    live_logs(&own_files(names, manifest), manifest.log_floor)
}

fn live_logs(files: &[FileName], floor: u64) -> Vec<u64> {
    let logs = files.iter().filter_map(|file| if let FileName::Log(number) = file { Some(*number) } else { None });
    let mut numbers: Vec<u64> = logs.filter(|number| *number >= floor).collect();
    numbers.sort_unstable();
    numbers
}

/// The logs' batches as one delta for each tree.
fn replay(
    disk: &dyn Disk,
    logs: &[u64],
    manifest: &Manifest,
    restarted: bool,
) -> Result<(Vec<Arc<Delta>>, RecoveryReport)> {
    let deltas: Vec<_> = manifest.trees.iter().map(|_| Arc::new(Delta::new())).collect();
    let context = ReplayContext {
        database_id: manifest.database_id,
        flushed: manifest.flushed,
        previous: manifest.logged,
        trees: deltas.len(),
        restarted,
    };
    let logs = logs.iter().map(|&number| LogImage::read(&*disk.open(&wal::file_name(number))?, number));
    let report = wal::replay(logs, context, |sequence, operations| {
        for Operation { tree, key, value } in operations {
            deltas[tree.0 as usize].insert(key, sequence, *value);
        }
    })?;
    Ok((deltas, report))
}

/// Enters the replayed batches into `manifest` as one new run for each tree.
fn write_runs(
    writer: &RunWriter<'_>,
    manifest: &mut Manifest,
    deltas: &[Arc<Delta>],
    report: &RecoveryReport,
) -> Result<()> {
    for (tree, delta) in manifest.trees.iter_mut().zip(deltas) {
        let mut merge = Merge::new([delta].into_iter(), [].into_iter(), Reading::Once, Direction::Forward);
        let mut retention = Retention::new(report.last_sequence, tree.runs.is_empty());
        let layout = Arc::new(tree.layout.clone());
        let run = writer.write(&layout, &mut merge, &KeyRange::all(), &mut retention, &|| false)?;
        let run = run.expect("it is not given up");
        if !run.is_empty() {
            tree.runs.insert(0, run);
        }
    }
    manifest.flushed = report.last_sequence;
    manifest.logged = report.last_sequence;
    Ok(())
}

fn open_trees(files: &Arc<OpenFiles>, manifest: &Manifest, cache: &Arc<BlockCache>) -> Result<Vec<TreeRuns>> {
    let open_run = |run: &Vec<SegmentMeta>| open_run(files, manifest.database_id, run.clone(), cache);
    let open_tree = |tree: &TreeManifest| {
        let layout = Arc::new(tree.layout.clone());
        Ok(TreeRuns::new(layout, tree.runs.iter().map(open_run).collect::<Result<_>>()?))
    };
    manifest.trees.iter().map(open_tree).collect()
}

/// Opens the runs that [`write_runs`] entered in front of those that are open.
fn open_new_runs(
    files: &Arc<OpenFiles>,
    manifest: &Manifest,
    trees: &mut [TreeRuns],
    cache: &Arc<BlockCache>,
) -> Result<()> {
    for (tree, TreeManifest { runs, .. }) in trees.iter_mut().zip(&manifest.trees) {
        if runs.len() > tree.runs().len() {
            let newest = open_run(files, manifest.database_id, runs[0].clone(), cache)?;
            *tree = tree.edited(|runs| runs.insert(0, newest));
        }
    }
    Ok(())
}

/// Opens the segments of one run.
pub(crate) fn open_run(
    files: &Arc<OpenFiles>,
    database_id: u128,
    segments: Vec<SegmentMeta>,
    cache: &Arc<BlockCache>,
) -> Result<Run> {
    let segments = segments
        .into_iter()
        .map(|meta| Segment::open(files, database_id, meta, cache).map(Arc::new))
        .collect::<Result<Vec<_>>>()?;
    Run::new(segments)
}

/// Removes segments that are younger than the manifest. No manifest names them, nor does an older one that a power loss
/// might bring back, so they can go before anything is written; and on a full disk they have to, for they are what a
/// flush left that ran out of space.
fn remove_unfinished(disk: &dyn Disk, files: &[FileName], manifest: &Manifest) -> Result<()> {
    for file in files {
        if let FileName::Segment(number) = *file
            && number >= manifest.next_number
        {
            disk.remove(&segment::file_name(number))?;
        }
    }
    Ok(())
}

/// Removes what a crash left behind, and logs that were replayed.
fn remove_obsolete(disk: &dyn Disk, manifest: &Manifest) -> Result<()> {
    let live: HashSet<u64> = manifest.segments().map(|segment| segment.number).collect();
    let names = disk.list()?;
    for file in own_files(&names, manifest) {
        match file {
            FileName::Log(number) if number < manifest.log_floor => disk.remove(&wal::file_name(number))?,
            FileName::Segment(number) if !live.contains(&number) => disk.remove(&segment::file_name(number))?,
            _ => {}
        }
    }
    Ok(())
}
