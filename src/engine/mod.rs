//! Bytes in, bytes out: named ordered trees in one directory. Knows no record.
//!
//! A [`Batch`] of puts and deletes over any number of trees becomes one frame of the log (`wal.rs`) and is put into
//! the deltas (`delta/`), sorted and in memory. Full deltas are written as segments (`segment/`), immutable sorted
//! files, by columns where a tree has a layout (`layout.rs`) and its entries follow it;
//! runs of segments are merged in the background (`compaction.rs` decides, `worker.rs` acts). The manifest
//! (`manifest.rs`) says which files are live. A read merges the places a version can be (`scan.rs`), newest first.
//! `database.rs` tells how commits and reads travel, and which lock guards what; `disk.rs` is the seam to the file
//! system.

mod batch;
mod codec;
mod compaction;
mod cursor;
mod database;
mod delta;
pub mod disk;
mod error;
mod health;
mod layout;
mod manifest;
mod options;
mod range;
mod recovery;
mod run;
mod run_writer;
mod scan;
mod segment;
mod snapshot;
mod stats;
mod stored;
mod striped;
mod verify;
mod version;
mod wal;
mod worker;
mod write;

pub use batch::{BATCH_BYTES_MAX, Batch, KEY_BYTES_MAX, Operation, TreeId, VALUE_BYTES_MAX};
pub use database::Database;
pub use error::{Error, Result};
pub use layout::{Field, Layout};
pub use manifest::TREE_NAME_BYTES_MAX;
pub use options::{Durability, Options};
pub use range::{Direction, KeyRange};
pub use scan::Scan;
pub use segment::{Compression, Row};
pub(crate) use segment::{Text, TextCell};
pub use snapshot::Snapshot;
pub use stats::{Stats, TreeStats};
pub use stored::Stored;
pub use verify::VerifyReport;
pub use wal::RecoveryReport;

#[cfg(test)]
mod tests;
