//! A position in a sorted list of versions, the shape that deltas, segments and runs have in common.
//!
//! Versions are sorted by key ascending and, for one key, by sequence number descending: the newest version of a key
//! comes first.

use super::error::Result;

/// Above every sequence number in use: seeking to `(key, SEQUENCE_MAX)` finds the newest version of `key`.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX;

/// One version of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) sequence: u64,
    /// `None` is a tombstone.
    pub(crate) value: Option<&'a [u8]>,
}

/// Moves over a sorted list of versions. A new cursor is on no entry; so is one that moved past either end, and from
/// there only the four positioning calls lead back.
pub(crate) trait Cursor {
    /// To the first version.
    fn first(&mut self) -> Result<()>;

    /// To the last version.
    fn last(&mut self) -> Result<()>;

    /// To the first version at or after `(key, sequence)`: of `key` with a sequence number of at most `sequence`, or
    /// else of a later key.
    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<()>;

    /// To the last version before `(key, sequence)`: of `key` with a larger sequence number, or else of an earlier key.
    fn seek_before(&mut self, key: &[u8], sequence: u64) -> Result<()>;

    /// One forward. Does nothing on no entry.
    fn next(&mut self) -> Result<()>;

    /// One back. Does nothing on no entry.
    fn prev(&mut self) -> Result<()>;

    /// Where it is.
    fn entry(&self) -> Option<Entry<'_>>;
}
