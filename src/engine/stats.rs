//! What a database holds and has done, in numbers.

use std::time::Duration;

use super::database::Database;
use super::sync::{AtomicU64, Ordering};

/// Counted since the database was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) flushes: AtomicU64,
    pub(crate) merges: AtomicU64,
    pub(crate) segment_bytes_written: AtomicU64,
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
}

/// What one tree holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Its name.
    pub name: String,
    /// Sorted runs a read looks at.
    pub runs: u64,
    /// Files.
    pub segments: u64,
    /// Length of those files.
    pub segment_bytes: u64,
    /// Versions in them, tombstones included.
    pub entries: u64,
    /// Tombstones in them.
    pub tombstones: u64,
}

impl Database {
    /// A moment in the life of this database. The parts are read one after another while work goes on.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let version = shared.version.load_full();
        let trees = version.trees.iter().zip(self.tree_names()).map(|(tree, name)| {
            let metas = || tree.runs().iter().flat_map(super::run::Run::segments).map(|segment| segment.meta());
            TreeStats {
                name,
                runs: tree.runs().len() as u64,
                segments: metas().count() as u64,
                segment_bytes: metas().map(|meta| meta.file_bytes).sum(),
                entries: metas().map(|meta| meta.entries).sum(),
                tombstones: metas().map(|meta| meta.tombstones).sum(),
            }
        });
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
        }
    }
}
