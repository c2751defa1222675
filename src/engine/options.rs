//! How a database behaves, and how it is tuned. Validated once, when it is opened.

use rustix::process::{Resource, getrlimit};

use super::error::{Error, Result};
use super::segment::Compression;

/// What survives what. Every report of a measurement should name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// No log. A commit is safe once a later `flush` or `close` returned; a killed process loses it.
    None,
    /// In the page cache when a commit returns: survives a panic and a killed process. A power loss may drop the
    /// newest commits, never a part of one.
    #[default]
    Process,
    /// On disk when a commit returns: survives a power loss.
    Sync,
}

/// What a delta may take however small the budget is: flushes of less cost more than they spare.
const DELTA_BYTES_LEAST: usize = 64 << 10;

/// The part of the memory that an allocator loses between pieces of many lengths that come and go: measured with a budget
/// of 32 MiB and a million profiles.
const ALLOCATOR_SHARE: u64 = 4;

/// Segment files that are open by default, where the process may have twice as many.
const OPEN_FILES: usize = 256;
/// What is open besides: the directory, its lock and that of the lock file, a listing, a manifest, and the three streams
/// of the process.
const OPEN_FILES_BESIDES: usize = 8;

/// How many files the process may have open; `None` for any number.
fn files_allowed() -> Option<usize> {
    getrlimit(Resource::Nofile).current.map(|allowed| usize::try_from(allowed).unwrap_or(usize::MAX))
}

/// Options of a database. `Options::default()` suits a database that shares a machine with its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Durability of commits that do not name one. Default: [`Durability::Process`].
    pub durability: Durability,
    /// Whether to make a database where there is none. Default: true.
    pub create: bool,
    /// Whether nothing may be changed: commits, new trees, flushes and settles fail with
    /// [`Error::ReadOnly`](crate::engine::Error::ReadOnly), nothing is merged, and no file is written but the lock. For
    /// backups and other copies that must stay what they are; a medium that cannot be written to is read like this too. A
    /// database whose log holds what is not in segments yet is refused: open it once for writing. Default: false.
    pub read_only: bool,

    /// Memory for changes not yet in segments, all trees together, in bytes. Default: 8 MiB. Up to `sealed_max + 1` times
    /// this much is held while flushes lag, and once more while a settle is under way. Less is used where the former would
    /// be more than half of `memory_bytes`, but not less than 64 KiB. Logs take about as much on disk as this does in
    /// memory, and go with it: all trees are flushed together, idle ones too. More: fewer, larger flushes, and a longer
    /// replay after a crash.
    pub delta_bytes: usize,
    /// Memory for data, in bytes. Default: 256 MiB. It covers the changes not yet in segments, the indexes and filters of
    /// all open segments, and, with what these leave, blocks of segments. Changes and indexes are in memory whatever they
    /// take; blocks are not, if there is no room for them. Not in it: blocks in use at this moment by reads and merges,
    /// which are a few for each of them; what a merge collects before it writes it, about two megabytes for each thread;
    /// and a megabyte of the log. A quarter of `memory_bytes` is left for what the allocator loses between blocks that
    /// come and go. More: fewer reads from disk.
    pub memory_bytes: usize,
    /// Uncompressed size a block of a segment aims at, in bytes. Default: 16 KiB. More: smaller files, and more to
    /// read for one key that is not in memory.
    pub block_bytes: usize,
    /// Size a segment aims at, in bytes. Default: 64 MiB. More: fewer files, and more to rewrite at a time. One of a run
    /// that lies over others ends after 131,072 keys at the latest, which is what a filter is made for.
    pub segment_bytes: u64,
    /// How blocks are stored. Default: Zstandard level 3, or LZ4 in a build without the feature `zstd`. Runs that lie over
    /// others are written with LZ4 instead of Zstandard: they will be merged before long.
    pub compression: Compression,
    /// Sorted runs a tree may have before they are merged. Default: 8. More: less is rewritten, reads look in more
    /// places.
    pub runs_max: usize,
    /// Full deltas that may wait for their flush before commits wait too, and callers of
    /// [`flush`](crate::engine::Database::flush). Default: 2.
    pub sealed_max: usize,
    /// Files of segments that are open at a time, of however many there are. Default: 256, or half of what the process may
    /// have open (`ulimit -n`) if that is less. Besides them the database has a few more open, for logs and for what is
    /// being written, and each thread may have one more during a read. A database in a directory does not open in a process
    /// that may not have that many. More: files are opened less often.
    pub open_files_max: usize,
    /// Threads that merge trees side by side while [`settle`](crate::engine::Database::settle) waits for them. Default: 2.
    /// More: settled sooner, with more memory meanwhile. All other background work is one thread's.
    pub settle_threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            create: true,
            read_only: false,
            delta_bytes: 8 << 20,
            memory_bytes: 256 << 20,
            block_bytes: 16 << 10,
            segment_bytes: 64 << 20,
            compression: Self::DEFAULT_COMPRESSION,
            runs_max: 8,
            sealed_max: 2,
            open_files_max: files_allowed().map_or(OPEN_FILES, |allowed| OPEN_FILES.min(allowed / 2)).max(1),
            settle_threads: 2,
        }
    }
}

impl Options {
    const DEFAULT_COMPRESSION: Compression =
        if cfg!(feature = "zstd") { Compression::Zstd { level: 3 } } else { Compression::Lz4 };

    /// What changes, indexes and blocks may take of the memory, as far as they can be given up.
    pub(crate) fn budget_bytes(&self) -> u64 {
        let memory_bytes = self.memory_bytes as u64;
        memory_bytes - memory_bytes / ALLOCATOR_SHARE
    }

    /// The size at which a delta is full.
    pub(crate) fn delta_bytes_max(&self) -> usize {
        let share = self.memory_bytes / 2 / (self.sealed_max + 1);
        self.delta_bytes.min(share.max(DELTA_BYTES_LEAST))
    }

    /// Files that may be open at a time: those of segments, a log for each delta, one more for what is sealed to be settled
    /// and another that waits for its removal, and one for each thread that writes segments.
    fn open_files_needed(&self) -> usize {
        self.open_files_max + OPEN_FILES_BESIDES + self.sealed_max + 3 + self.settle_threads
    }

    /// Refuses what would run out of files later.
    pub(crate) fn check_open_files(&self) -> Result<()> {
        self.check_open_files_against(files_allowed().unwrap_or(usize::MAX))
    }

    fn check_open_files_against(&self, allowed: usize) -> Result<()> {
        let needed = self.open_files_needed();
        if needed <= allowed {
            return Ok(());
        }
        let max = self.open_files_max;
        let found =
            format!("{max}, with which {needed} files may be open at a time, and this process may open {allowed}");
        Err(Error::InvalidOption { option: "open_files_max", found, expected: "raise that limit (`ulimit -n`)" })
    }

    /// Whether a database may be made.
    pub(crate) fn creates(&self) -> bool {
        self.create && !self.read_only
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let ranges = [
            ("delta_bytes", self.delta_bytes as u64, 1 << 10, 1 << 40, "expected 1 KiB to 1 TiB"),
            ("memory_bytes", self.memory_bytes as u64, 0, 1 << 50, "expected at most 1 PiB"),
            ("block_bytes", self.block_bytes as u64, 64, 16 << 20, "expected 64 bytes to 16 MiB"),
            ("segment_bytes", self.segment_bytes, 1 << 10, 1 << 40, "expected 1 KiB to 1 TiB"),
            ("runs_max", self.runs_max as u64, 1, 64, "expected 1 to 64"),
            ("sealed_max", self.sealed_max as u64, 1, 64, "expected 1 to 64"),
            ("open_files_max", self.open_files_max as u64, 1, 1 << 20, "expected 1 to 1048576"),
            ("settle_threads", self.settle_threads as u64, 1, 64, "expected 1 to 64"),
        ];
        for (option, found, min, max, expected) in ranges {
            if !(min..=max).contains(&found) {
                return Err(Error::InvalidOption { option, found: found.to_string(), expected });
            }
        }
        self.compression.validate()
    }
}
