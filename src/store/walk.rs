//! Walks over a [`KvRead`] whose visitor can fail, and which can pause: a visitor may not call back into the store, so
//! whoever needs another read for what was found collects a page, reads, and goes on behind it.

use std::ops::{Bound, ControlFlow};

use super::error::Result;
use super::kv::{Direction, KeyRange, KvRead, Stored, TreeId};

/// Entries of one page: enough to make the cost of starting a scan small, few enough to keep in memory.
pub(super) const PAGE_ENTRIES: usize = 1024;

/// A tree, and the part of it to walk.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub(super) tree: TreeId,
    pub(super) range: KeyRange,
    pub(super) direction: Direction,
}

impl Walk {
    /// All of `tree`, in order.
    pub(super) fn all(tree: TreeId) -> Self {
        Self { tree, range: KeyRange::all(), direction: Direction::Forward }
    }

    /// Hands at most `limit` entries to `visit`. Whether it stopped there, and there may be more.
    pub(super) fn visit(
        &self,
        reader: &impl KvRead,
        limit: usize,
        mut visit: impl FnMut(&[u8], Stored<'_>) -> Result<()>,
    ) -> Result<bool> {
        let mut left = limit;
        if left == 0 {
            return Ok(true);
        }
        let mut outcome = Ok(());
        reader.scan(self.tree, &self.range, self.direction, |key, value| {
            left -= 1;
            // Written only when there is something to say: this runs for every entry.
            if let Err(error) = visit(key, value) {
                outcome = Err(error);
                return ControlFlow::Break(());
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        outcome.map(|()| left == 0)
    }

    /// Hands the last `width` bytes of at most `limit` keys to `visit`.
    pub(super) fn visit_tails(
        &self,
        reader: &impl KvRead,
        limit: usize,
        width: usize,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut left = limit;
        if left == 0 {
            return Ok(());
        }
        let mut outcome = Ok(());
        reader.scan_tails(self.tree, &self.range, self.direction, width, |tail| {
            left -= 1;
            if let Err(error) = visit(tail) {
                outcome = Err(error);
                return ControlFlow::Break(());
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        outcome
    }

    /// Hands at most `limit` entries to `visit` and moves behind the last of them. Whether there may be more.
    pub(super) fn page(
        &mut self,
        reader: &impl KvRead,
        limit: usize,
        mut visit: impl FnMut(&[u8], Stored<'_>) -> Result<()>,
    ) -> Result<bool> {
        let mut last = Vec::new();
        let mut left = limit;
        let more = self.visit(reader, limit, |key, value| {
            left -= 1;
            if left == 0 {
                last.extend_from_slice(key);
            }
            visit(key, value)
        })?;
        if more {
            self.move_behind(last);
        }
        Ok(more)
    }

    /// Leaves out everything up to `key`, in the walk's direction.
    pub(super) fn move_behind(&mut self, key: Vec<u8>) {
        match self.direction {
            Direction::Forward if !self.range.is_below(&key) => self.range.lower = Bound::Excluded(key),
            Direction::Reverse if !self.range.is_above(&key) => self.range.upper = Bound::Excluded(key),
            _ => {}
        }
    }
}

/// Hands the value of each of `count` keys to `read`; see [`KvRead::get_many`].
pub(super) fn get_many(
    reader: &impl KvRead,
    tree: TreeId,
    count: usize,
    key: impl FnMut(usize, &mut Vec<u8>),
    mut read: impl FnMut(usize, Option<Stored<'_>>) -> Result<()>,
) -> Result<()> {
    let mut outcome = Ok(());
    reader.get_many(tree, count, key, |i, value| {
        if let Err(error) = read(i, value) {
            outcome = Err(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    outcome
}
