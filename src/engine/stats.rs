//! What a database holds and has done, in numbers.

use std::time::Duration;

use super::database::Database;
use super::run::Run;
use super::stalls::{StallCounters, Stalls};
use super::sync::{AtomicU64, Ordering};
use super::version::TreeRuns;

/// Counted since the database was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) flushes: AtomicU64,
    pub(crate) merges: AtomicU64,
    pub(crate) segment_bytes_written: AtomicU64,
    /// Changed under the writer's lock only, as the next is.
    pub(crate) committed_bytes: AtomicU64,
    pub(crate) log_bytes_written: AtomicU64,
    pub(crate) stalls: StallCounters,
}

/// Counts on where nobody else does.
pub(crate) fn add_alone(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// A moment in the life of a database. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// One entry for each tree, by number.
    pub trees: Vec<TreeStats>,
    /// Memory held by changes that are not in segments yet.
    pub delta_bytes: u64,
    /// Full deltas that wait for their flush.
    pub sealed: u64,
    /// Bytes appended to the live logs.
    pub log_bytes: u64,
    /// Memory held by blocks of segments.
    pub resident_bytes: u64,
    /// Memory that counts against [`Options::memory_bytes`](super::Options::memory_bytes): blocks, changes that are not in
    /// segments yet, indexes and filters.
    pub memory_bytes: u64,
    /// Snapshots and scans that are alive.
    pub snapshots: u64,
    /// How long the oldest state that a snapshot or scan may still read has not been the present one: older versions of
    /// what was written since are kept for it. `None` if all read the present state, which costs nothing however long
    /// they do. Work in the background holds a state, too, for as long as a task takes.
    pub oldest_snapshot: Option<Duration>,
    /// Sequence number of the newest commit that readers see.
    pub sequence: u64,
    /// Flushes since the open.
    pub flushes: u64,
    /// Merges since the open.
    pub merges: u64,
    /// Bytes of segments written by both.
    pub segment_bytes_written: u64,
    /// Bytes of the batches committed since the open: keys, values and a few bytes for each change.
    pub committed_bytes: u64,
    /// Bytes appended to logs since the open.
    pub log_bytes_written: u64,
    /// How often and how long commits waited for background work since the open, and for what.
    pub stalls: Stalls,
}

impl Stats {
    /// Bytes written to files, logs and segments together, for each byte committed since the open; `None` before the first
    /// commit. Metadata, such as the manifest, do not count.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.log_bytes_written + self.segment_bytes_written;
        (self.committed_bytes > 0).then(|| written as f64 / self.committed_bytes as f64)
    }
}

/// What one tree holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Its name.
    pub name: String,
    /// Sorted runs a read looks at: the levels of this tree.
    pub runs: u64,
    /// Length of the files of each run, newest first.
    pub run_bytes: Vec<u64>,
    /// Files.
    pub segments: u64,
    /// Length of those files.
    pub segment_bytes: u64,
    /// Versions in them, tombstones included.
    pub entries: u64,
    /// Tombstones in them.
    pub tombstones: u64,
    /// Blocks of them.
    pub blocks: u64,
    /// Blocks that are in memory, decoded and verified.
    pub resident_blocks: u64,
}

impl TreeStats {
    /// Bytes of all runs for each byte of the largest, which is about what a settle would leave: 1 once settled, `None`
    /// without segments.
    pub fn space_amplification(&self) -> Option<f64> {
        let largest = *self.run_bytes.iter().max()?;
        (largest > 0).then(|| self.segment_bytes as f64 / largest as f64)
    }

    /// The share of blocks that are in memory, from 0 to 1; `None` without any.
    pub fn residency(&self) -> Option<f64> {
        (self.blocks > 0).then(|| self.resident_blocks as f64 / self.blocks as f64)
    }

    fn of(name: String, tree: &TreeRuns) -> Self {
        let segments = || tree.runs().iter().flat_map(Run::segments);
        let metas = || segments().map(|segment| segment.meta());
        let bytes = |run: &Run| run.segments().iter().map(|segment| segment.meta().file_bytes).sum();
        Self {
            name,
            runs: tree.runs().len() as u64,
            run_bytes: tree.runs().iter().map(bytes).collect(),
            segments: metas().count() as u64,
            segment_bytes: metas().map(|meta| meta.file_bytes).sum(),
            entries: metas().map(|meta| meta.entries).sum(),
            tombstones: metas().map(|meta| meta.tombstones).sum(),
            blocks: segments().map(|segment| segment.blocks() as u64).sum(),
            resident_blocks: segments().map(|segment| segment.resident_blocks() as u64).sum(),
        }
    }
}

impl Database {
    /// A moment in the life of this database. The parts are read one after another while work goes on.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let version = shared.version.load_full();
        let trees = version.trees.iter().zip(self.tree_names()).map(|(tree, name)| TreeStats::of(name, tree));
        let snapshots = shared.snapshots.total();
        let generations = || std::iter::once(&version.active).chain(&version.sealed);
        Stats {
            trees: trees.collect(),
            delta_bytes: generations().map(|generation| generation.bytes() as u64).sum(),
            sealed: version.sealed.len() as u64,
            log_bytes: shared.syncing.log_bytes(),
            resident_bytes: shared.cache.resident_bytes(),
            memory_bytes: shared.cache.resident_bytes() + shared.cache.charged_bytes(),
            snapshots,
            oldest_snapshot: shared.replaced.oldest().filter(|_| snapshots > 0),
            sequence: shared.visible.load(Ordering::Acquire),
            flushes: shared.counters.flushes.load(Ordering::Relaxed),
            merges: shared.counters.merges.load(Ordering::Relaxed),
            segment_bytes_written: shared.counters.segment_bytes_written.load(Ordering::Relaxed),
            committed_bytes: shared.counters.committed_bytes.load(Ordering::Relaxed),
            log_bytes_written: shared.counters.log_bytes_written.load(Ordering::Relaxed),
            stalls: shared.counters.stalls.read(),
        }
    }
}
