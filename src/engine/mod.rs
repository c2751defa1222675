//! Bytes in, bytes out: named ordered trees in one directory. Knows no record.

mod batch;
mod codec;
mod cursor;
mod delta;
pub mod disk;
mod error;
mod range;
mod run;
mod segment;

pub use batch::{BATCH_BYTES_MAX, Batch, KEY_BYTES_MAX, Operation, TreeId, VALUE_BYTES_MAX};
pub use error::{Error, Result};
pub use range::{Direction, KeyRange};
pub use segment::Compression;
