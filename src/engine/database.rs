//! A database: one directory, several named trees. Opens and closes it, and carries every read and every commit.
//!
//! # How a commit travels
//!
//! In its turn, and under the writer lock: check limits and health, make room (seal a full delta, wait for a flush that lags), append
//! one frame to the log, put the operations into the deltas. Then, without a lock, publish the sequence number; in class
//! `sync` only after a sync, which waiting writers share (see `syncing.rs`). A later commit of a weaker class publishes
//! what came before it with itself. There is no other way to change data.
//!
//! # How a read travels
//!
//! A read loads the current [`Version`] and then the published sequence number, in this order: what a merge dropped from
//! that version was unseen at an earlier number already, and what was committed to a later version is seen by neither.
//! The version holds every file and delta it names, so a snapshot needs no lock and nobody has to be told of it.
//!
//! # Locks
//!
//! Taken in this order, never the other way round: `exclusive`, `writer`, `manifest`, then the rest, which are leaves:
//!
//! | lock | guards | under it |
//! |---|---|---|
//! | `exclusive` | a turn to read, check and write (see `exclusive.rs`) | the caller's work; its commits, but not the sync of its last |
//! | `writer` | the end of the log and the next sequence number | a log append; waits for a flush that lags |
//! | `manifest` | the manifest on disk, and swapping the version | one small file write and its syncs |
//! | `syncing` | the durable sequence number, and who waits for more | nothing slow |
//! | `names_lost` | syncs of the directory | a sync |
//! | open files | which segment files are open | nothing slow |
//! | `health` | the first failure | nothing slow |
//! | `trail` | what open transactions are checked against | nothing slow |
//! | `replaced` | which older versions may be held | nothing slow |
//! | `worker` state | what the background thread is asked for | nothing slow |

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::batch::{Batch, TreeId};
use super::disk::{Disk, RealDisk, lock_to_read};
use super::error::{Error, Result};
use super::events;
use super::exclusive::Exclusive;
use super::health::Health;
use super::layout::Layout;
use super::manifest::{Manifest, TreeManifest, check_layout, check_tree_count, check_tree_name};
use super::numbers::FileNumbers;
use super::open_files::OpenFiles;
use super::options::{Durability, Options};
use super::range::{Direction, KeyRange};
use super::recovery;
use super::scan::Scan;
use super::segment::BlockCache;
use super::snapshot::Snapshot;
use super::stats::Counters;
use super::stored::Stored;
use super::striped::StripedCount;
use super::sync::{ArcSwap, AtomicU64, Mutex, Ordering, thread};
use super::syncing::Syncing;
use super::trail::Trail;
use super::version::{Generation, Replaced, TreeRuns, Version};
use super::wal::RecoveryReport;
use super::worker::{self, Worker};
use super::write::WriterState;

/// An open database. Share it between threads by reference or in an `Arc`.
///
/// Dropping it without [`Database::close`] loses nothing its durability class promises: the next open replays the log.
pub struct Database {
    pub(crate) shared: Arc<Shared>,
    worker: Mutex<Option<thread::JoinHandle<()>>>,
    lock: Mutex<Option<Box<dyn Send + Sync>>>,
    exclusive: Mutex<()>,
    recovery: RecoveryReport,
}

/// What the handle, its snapshots and the background thread have in common.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) database_id: u128,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) files: Arc<OpenFiles>,
    pub(crate) version: ArcSwap<Version>,
    /// The newest sequence number that readers may see.
    pub(crate) visible: AtomicU64,
    /// The sequence number of the last commit that is in the deltas; the next turn to write begins with it.
    pub(crate) applied: AtomicU64,
    pub(crate) writer: Mutex<WriterState>,
    pub(crate) syncing: Syncing,
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) numbers: FileNumbers,
    /// The first failure to sync the directory.
    names_lost: Mutex<Option<String>>,
    /// Snapshots alive.
    pub(crate) snapshots: StripedCount,
    pub(crate) replaced: Replaced,
    pub(crate) trail: Trail,
    pub(crate) health: Health,
    pub(crate) worker: Worker,
    pub(crate) counters: Counters,
}

/// Scratch memory that is kept for the next call, in bytes. A single large value must not hold its memory for ever.
pub(crate) const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// Memory of a read, kept for the thread's next one.
#[derive(Default)]
pub(crate) struct ReadScratch {
    /// Where a value is copied to when it comes out of a delta.
    pub(crate) copied: Vec<u8>,
    /// Where a value of columns can be put together.
    pub(crate) rendered: Vec<u8>,
}

thread_local! {
    /// Taken for the call, so that a nested read has its own.
    static SCRATCH: Cell<ReadScratch> = const { Cell::new(ReadScratch { copied: Vec::new(), rendered: Vec::new() }) };
}

impl Database {
    /// Opens the database in `dir`, making it if it is not there and [`Options::create`] says so.
    ///
    /// What a crash left in the log is replayed, written to segments and synced before this returns.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        options.validate()?;
        options.check_open_files()?;
        let disk = RealDisk::open(dir.as_ref(), options.creates())?;
        Self::open_on(Arc::new(disk), options)
    }

    /// Opens a database on a disk of the caller's, such as one that injects faults.
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        let started = Instant::now();
        options.validate()?;
        recovery::check_directory(&*disk, options.creates())?;
        let (lock, recovered, health) = if options.read_only {
            (lock_to_read(&*disk)?, recovery::recover_unchanged(&disk, &options)?, Health::read_only())
        } else {
            (disk.lock()?, recovery::recover(&disk, &options)?, Health::default())
        };
        let manifest = recovered.manifest;
        let log_number = recovered.numbers.allot()?;
        let version = Version {
            active: Arc::new(Generation::new(log_number, manifest.trees.len(), &recovered.cache)),
            sealed: Vec::new(),
            trees: recovered.trees,
        };
        let shared = Arc::new(Shared {
            options,
            database_id: manifest.database_id,
            cache: recovered.cache,
            files: recovered.files,
            version: ArcSwap::from_pointee(version),
            visible: AtomicU64::new(manifest.flushed),
            applied: AtomicU64::new(manifest.flushed),
            writer: Mutex::new(WriterState::new(manifest.flushed, manifest.logged)),
            // Not up to what is flushed: frames are held against those before them, and not all of that was in a log.
            syncing: Syncing::new(manifest.logged),
            manifest: Mutex::new(manifest),
            numbers: recovered.numbers,
            names_lost: Mutex::new(None),
            snapshots: StripedCount::default(),
            replaced: Replaced::default(),
            trail: Trail::default(),
            health,
            worker: Worker::default(),
            counters: Counters::default(),
            disk,
        });
        let handle = if shared.options.read_only { None } else { Some(worker::spawn(&shared)?) };
        let trees = shared.version.load().trees.len();
        events::opened(shared.disk.path(), trees, &recovered.report, started.elapsed());
        Ok(Self {
            shared,
            worker: Mutex::new(handle),
            lock: Mutex::new(Some(lock)),
            exclusive: Mutex::new(()),
            recovery: recovered.report,
        })
    }

    /// What opening found in the log.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// The tree called `name`, made if it is not there, with keys and values of no known structure. A new tree is durable
    /// when this returns. One that is there keeps its layout. There are at most
    /// [`TREES_MAX`](crate::engine::TREES_MAX).
    pub fn tree(&self, name: &str) -> Result<TreeId> {
        let known = self.shared.manifest.lock().trees.iter().position(|tree| tree.name == name);
        known.map_or_else(|| self.tree_with(name, &Layout::opaque()), |index| Ok(TreeId(index as u32)))
    }

    /// The tree called `name`, made if it is not there, whose keys and values are made of the columns of `layout`. They
    /// need not be: what does not follow the layout takes more space, and that is all. If the tree has another layout, it
    /// has this one from now on; segments are laid out anew when they are merged. A layout that is not sound, see
    /// [`Layout::is_sound`], is refused.
    pub fn tree_with(&self, name: &str, layout: &Layout) -> Result<TreeId> {
        check_tree_name(name)?;
        check_layout(layout)?;
        let writer = self.shared.writer.lock();
        let mut manifest = self.shared.manifest.lock();
        let known = manifest.trees.iter().position(|tree| tree.name == name);
        let index = known.unwrap_or(manifest.trees.len());
        let id = TreeId(index as u32);
        if known.is_some_and(|index| manifest.trees[index].layout == *layout) {
            return Ok(id);
        }
        self.shared.check_writable(&writer)?;
        let mut edited = manifest.clone();
        let mut version = Version::clone(&self.shared.version.load());
        if known.is_none() {
            check_tree_count(edited.trees.len())?;
            edited.trees.push(TreeManifest { name: name.to_owned(), ..TreeManifest::default() });
            version.trees.push(Arc::new(TreeRuns::new(Arc::default(), Vec::new())));
            version.active = Arc::new(version.active.with_one_more_tree());
        }
        edited.trees[index].layout = layout.clone();
        let runs = version.trees[index].runs().to_vec();
        version.trees[index] = Arc::new(TreeRuns::new(Arc::new(layout.clone()), runs));
        self.shared.store_manifest(&mut manifest, edited)?;
        self.shared.show(version);
        Ok(id)
    }

    /// Names of all trees, by number.
    pub fn tree_names(&self) -> Vec<String> {
        self.shared.manifest.lock().trees.iter().map(|tree| tree.name.clone()).collect()
    }

    /// Applies `batch` whole or not at all, with the durability of the options.
    pub fn commit(&self, batch: &Batch) -> Result<()> {
        self.commit_with(batch, self.shared.options.durability)
    }

    /// Applies `batch` whole or not at all. When this fails with an I/O error, whether the batch is there after the
    /// next open is unknown; writes are refused until then.
    pub fn commit_with(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.exclusive().finish_with(batch, durability)
    }

    /// The value of `key`.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(tree, key, <[u8]>::to_vec)
    }

    /// Hands the value of `key` to `read` without a copy of its own; `None` if it is not there.
    pub fn get_with<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.snapshot().get_with(tree, key, read)
    }

    /// Hands the value of `key` to `read` in the form in which it is there; `None` if it is not there.
    pub fn get_stored<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        self.shared.get_stored(&self.shared.visible, tree, key, read)
    }

    /// A consistent view of everything published so far.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::new(&self.shared)
    }

    /// The live entries of `range` as of now, in order.
    pub fn scan(&self, tree: TreeId, range: KeyRange, direction: Direction) -> Result<Scan<'_>> {
        self.snapshot().into_scan(tree, range, direction)
    }

    /// A turn to read, check and write: between its reads and its commits nobody else commits. Whoever has it commits with
    /// its methods: any other commit waits until it is over.
    pub fn exclusive(&self) -> Exclusive<'_> {
        Exclusive::new(&self.shared, self.exclusive.lock())
    }

    /// Writes everything committed so far to segments and syncs them.
    pub fn flush(&self) -> Result<()> {
        let sequence = self.shared.seal()?;
        self.shared.wait_for_flush(sequence)
    }

    /// Writes everything committed so far to segments, and makes of every tree one sorted run: the state in which reads
    /// are fastest and files smallest. Until it is done, old and new segments of all trees that change are there together.
    pub fn settle(&self) -> Result<()> {
        let ticket = self.shared.seal_to_settle()?;
        self.shared.worker.wait_until(&self.shared.health, |progress| progress.settled(ticket))
    }

    /// Tries again what failed in the background, once its cause is gone: when a full disk has room again, say. Answers when
    /// all of it is done, and writes are taken again from then on; or with what it failed with this time. Does nothing in a
    /// database in which nothing failed.
    ///
    /// Nothing is lost by such a failure, for what could not be written is still in memory, and in the log if it was there.
    /// It is otherwise after a failed write or sync of the log, after a failed sync of the directory, and after a panic:
    /// these are refused here, and take a reopen.
    pub fn resume(&self) -> Result<()> {
        if self.shared.health.can_resume()? { self.shared.worker.retry(&self.shared.health) } else { Ok(()) }
    }

    /// Flushes, stops background work and gives up the directory. Reads through this handle go on seeing the state at
    /// the close; writes fail with [`Error::Closed`]. Closing twice does nothing.
    ///
    /// If the directory is opened again and changed, a read through this handle fails when it needs a file that is neither
    /// open, see [`Options::open_files_max`], nor there any more.
    ///
    /// After a failed write this returns that failure, and the next open recovers from the log.
    pub fn close(&self) -> Result<()> {
        let mut lock = self.lock.lock();
        if lock.is_none() {
            return Ok(());
        }
        let flushed = if self.shared.options.read_only {
            Ok(())
        } else {
            self.shared.seal_for_good().and_then(|sequence| self.shared.wait_for_flush(sequence))
        };
        self.stop();
        *lock = None;
        events::closed(self.shared.disk.path());
        flushed
    }

    fn stop(&self) {
        self.shared.health.close();
        self.shared.worker.stop();
        if let Some(handle) = self.worker.lock().take() {
            // The thread catches its panics and reports them through `health`.
            handle.join().expect("the background thread does not panic");
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Hands the value that `key` has as of the commit `newest` to `read`.
    pub(crate) fn get_stored<R>(
        &self,
        newest: &AtomicU64,
        tree: TreeId,
        key: &[u8],
        read: impl FnOnce(Stored<'_>) -> R,
    ) -> Result<Option<R>> {
        // In this order; see the head of this file.
        let version = self.version.load();
        let sequence = newest.load(Ordering::Acquire);
        Self::read(|ReadScratch { copied, .. }| version.get(tree, key, sequence, copied, read))
    }

    /// Runs a read with scratch memory.
    pub(crate) fn read<R>(read: impl FnOnce(&mut ReadScratch) -> R) -> R {
        let mut scratch = SCRATCH.take();
        let result = read(&mut scratch);
        if scratch.copied.capacity() + scratch.rendered.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(scratch);
        }
        result
    }

    /// Replaces the manifest on disk and, on success, in memory.
    ///
    /// When the rename or the sync of its name failed, it is unknown which of the two is on disk, so nothing may be built on
    /// either.
    pub(crate) fn store_manifest(&self, current: &mut Manifest, mut edited: Manifest) -> Result<()> {
        edited.next_number = self.numbers.next();
        edited.prepare(&*self.disk)?;
        Manifest::replace(&*self.disk).inspect_err(|error| self.health.poison(error))?;
        self.sync_dir()?;
        *current = edited;
        Ok(())
    }

    /// The last state that was made durable, and a version that holds its files: they stay there as long as it does.
    pub(crate) fn durable_state(&self) -> (Manifest, Arc<Version>) {
        let manifest = self.manifest.lock();
        (manifest.clone(), self.version.load_full())
    }

    /// Shows another version to readers. Called under the manifest lock. Answers the one before it.
    pub(crate) fn show(&self, version: Version) -> Arc<Version> {
        let replaced = self.version.swap(Arc::new(version));
        self.replaced.add(&replaced);
        replaced
    }

    /// Makes names durable. Never again after it failed once: a later success would not bring back the names that
    /// were lost then, whoever made them.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        let mut names_lost = self.names_lost.lock();
        if let Some(cause) = &*names_lost {
            return Err(Error::Poisoned { cause: cause.clone() });
        }
        self.disk.sync_dir().inspect_err(|error| {
            self.health.poison(error);
            *names_lost = Some(error.to_string());
        })
    }
}
