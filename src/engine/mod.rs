//! Bytes in, bytes out: named ordered trees in one directory. Knows no record.
//!
//! A [`Batch`] of puts and deletes over any number of trees becomes one frame of the log (`wal.rs`) and is put into
//! the deltas (`delta/`), sorted and in memory. Full deltas are written as segments (`segment/`), immutable sorted
//! files, by columns where a tree has a layout (`layout.rs`) and its entries follow it;
//! runs of segments are merged in the background (`compaction.rs` decides, `worker.rs` and `settle.rs` act). The manifest
//! (`manifest.rs`) says which files are live. A read merges the places a version can be (`scan.rs`), newest first.
//! `database.rs` tells how commits and reads travel, and which lock guards what; `disk.rs` is the seam to the file
//! system, and `sync.rs` where locks, atomics and threads come from.
//!
//! Who reads, and then writes what follows from it, does so in a turn of its own ([`Database::exclusive`],
//! [`increment`](Database::increment), [`fetch_update`](Database::fetch_update)), which nobody else's commit comes into; or
//! in a transaction ([`Database::transact`]), which nobody waits for, and which is refused if something came between that
//! it depends on. Those who wait for their commits to be durable share syncs (`syncing.rs`).
//!
//! A database is copied while it is used ([`Database::backup`], [`restore()`]), and keeps states of itself under names
//! ([`Database::save_snapshot`]); such a copy holds segments and a manifest, and is opened read-only.
//!
//! # Threads and tasks
//!
//! A [`Database`] is shared: by reference, or in an `Arc`. It has one thread of its own, for the background, and more while
//! it settles. Nothing of it is asynchronous, and everything fits into a runtime that is: a commit in class `sync`, a flush,
//! a settle, a backup or a read from a disk may wait, so it belongs on the runtime's threads for blocking work
//! (`examples/async_service.rs`); commits of other classes and reads of what is in memory take microseconds.
//!
//! # Looking inside
//!
//! [`Database::stats`] answers what there is in memory and on disk, what was written for it, and what commits waited for.
//! Background work tells of itself through the crate `tracing`, target `profilestore`: `debug` for each flush, merge and
//! settle with its bytes and time and for each commit that waited, `info` for opening and closing, `warn` for the end of a
//! log that was dropped, `error` when writes are refused from now on. Single operations tell nothing. What listens must
//! not call the database.
//!
//! # Faults
//!
//! What may go wrong around the engine, and what it is held against:
//!
//! | | fault | what the engine does about it |
//! |---|---|---|
//! | FM1 | nothing: a sync of a file and of its directory returned | both the content and the name last |
//! | FM2 | bytes that were not synced: any of them survive, cut anywhere, in any order; a grown file may read as zeros or garbage | checksums find the end of what is whole |
//! | FM3 | names that were not synced: each creation, rename and removal survives or does not, on its own | names are synced before anything relies on them |
//! | FM4 | nothing: bytes outside of a write stay as they are | logs and segments are only appended to |
//! | FM5 | a read fails, or gives a flipped bit, an older block, or a block of elsewhere | an error with file and offset: checksums know their database, file and offset; [`salvage()`] copies the rest |
//! | FM6 | any call fails, once or for ever: no space, no file handles, a short write | the error comes back to who asked, or to the next who writes; what was acknowledged stays; [`Database::resume`] tries again what failed in the background |
//! | FM7 | a sync fails, the next one succeeds, and the bytes are gone all the same | writes are refused until the database is opened again, and what is read back is written and synced anew |
//! | FM8 | a thread or the process ends anywhere, again and again, also while the database opens | opening starts over from what is there |
//! | FM9 | somebody writes into the directory while it is open; a sync that lies | not covered |
//!
//! # What survives
//!
//! Of batches that were acknowledged in a class of [`Durability`], never a part of one, and none without all before it:
//!
//! | class | a panic, or the process is killed | a power loss |
//! |---|---|---|
//! | `none` | what a flush, settle or close returned for | the same |
//! | `process` | all | what was synced or flushed, and maybe more |
//! | `sync` | all | all |

mod backup;
mod batch;
mod codec;
mod compaction;
mod cursor;
mod database;
mod delta;
pub mod disk;
mod error;
mod events;
mod exclusive;
mod health;
mod increment;
mod layout;
mod manifest;
mod numbers;
mod open_files;
mod options;
mod range;
mod readable;
mod recovery;
mod run;
mod run_writer;
mod salvage;
mod saved;
mod scan;
mod segment;
mod settle;
mod snapshot;
mod stalls;
mod stats;
mod stored;
mod striped;
pub(crate) mod sync;
mod syncing;
mod target;
mod trail;
mod transaction;
mod verify;
mod version;
mod wal;
mod worker;
mod write;

pub use backup::{BackupOptions, BackupReport, restore};
pub use batch::{BATCH_BYTES_MAX, Batch, KEY_BYTES_MAX, Operation, TreeId, VALUE_BYTES_MAX};
pub use database::Database;
pub use error::{Error, Result};
pub use exclusive::Exclusive;
pub use layout::{Field, Layout};
pub use manifest::{TREE_NAME_BYTES_MAX, TREES_MAX};
pub use options::{Durability, Options};
pub use range::{Direction, KeyRange};
#[cfg(feature = "cli")]
pub(crate) use salvage::salvage_on;
pub use salvage::{Lost, LostPart, SalvageReport, salvage};
pub use saved::{SNAPSHOT_NAME_BYTES_MAX, SavedSnapshot};
pub use scan::Scan;
pub use segment::{Compression, Row};
pub(crate) use segment::{Text, TextCell};
pub use snapshot::Snapshot;
pub use stalls::{Stall, StallReason, Stalls};
pub use stats::{Stats, TreeStats};
pub use stored::Stored;
pub use transaction::{ATTEMPTS_MAX, Isolation, Transacted, Transaction};
pub use verify::VerifyReport;
pub use wal::RecoveryReport;

/// Readers of bytes that fuzzing tries: each hands any bytes to `run`, which panics if a promise is broken, and has seeds.
#[cfg(feature = "cli")]
pub(crate) mod fuzz {
    pub(crate) use super::batch::fuzz as batch;
    pub(crate) use super::manifest::fuzz as manifest;
    pub(crate) use super::salvage::fuzz as directory;
    pub(crate) use super::segment::fuzz as segment;
    pub(crate) use super::segment::fuzz::{blocks, columns};
    pub(crate) use super::wal::fuzz as log;
}

#[cfg(all(test, feature = "cli"))]
mod tests;
