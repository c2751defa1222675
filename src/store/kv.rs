//! The seam to an ordered key-value engine.
//!
//! The repository, its codec and its keys are the same over every engine behind this trait, so a comparison of two
//! of them compares engines and nothing else. Reads hand bytes to a closure, which every engine can do without a
//! copy: the bytes live only for the call.

use std::ops::ControlFlow;

use parking_lot::{Mutex, MutexGuard};

pub use crate::engine::{Batch, Direction, KeyRange, Layout, Operation, Stored, TreeId};

use super::error::Result;

/// Reads on one consistent state: a store as it is now, or a snapshot of it.
pub trait KvRead {
    /// Hands the value of `key` to `read`; `None` if the key is not there.
    ///
    /// `read` must not call back into the store.
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>>;

    /// Hands every entry of `range`, in order, to `visit` until it breaks.
    ///
    /// `visit` must not call back into the store.
    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Hands the last `width` bytes of every key of `range`, in order, to `visit` until it breaks; of shorter keys all
    /// there is. Engines that can do better than to hand out whole entries override it.
    ///
    /// `visit` must not call back into the store.
    fn scan_tails(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        width: usize,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.scan(tree, range, direction, |key, _| visit(&key[key.len().saturating_sub(width)..]))
    }

    /// Number of entries in `range`. Engines that can do better than to walk it override it.
    fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        let mut entries = 0;
        self.scan(tree, range, Direction::Forward, |_, _| {
            entries += 1;
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// Hands the value of each of `count` keys to `read`, in order; `key(i, buffer)` writes the `i`-th key.
    /// Stops when `read` breaks. Engines that can do better than one `get` after another override it.
    ///
    /// Neither closure may call back into the store.
    fn get_many(
        &self,
        tree: TreeId,
        count: usize,
        mut key: impl FnMut(usize, &mut Vec<u8>),
        mut read: impl FnMut(usize, Option<Stored<'_>>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        for i in 0..count {
            buffer.clear();
            key(i, &mut buffer);
            let flow = match self.get(tree, &buffer, |value| read(i, Some(value)))? {
                Some(flow) => flow,
                None => read(i, None),
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// An ordered key-value store with named trees and batches that are atomic across them.
pub trait Kv: KvRead {
    /// A consistent view that later commits do not change.
    type Snapshot<'a>: KvRead
    where
        Self: 'a;

    /// A turn to write.
    type Writer<'a>: KvWriter
    where
        Self: 'a;

    /// The tree called `name`, made if it is not there.
    fn tree(&self, name: &str) -> Result<TreeId>;

    /// The same tree, for an engine that makes use of what its keys and values are made of.
    fn tree_with(&self, name: &str, layout: &Layout) -> Result<TreeId> {
        let _ = layout;
        self.tree(name)
    }

    /// A view of everything committed so far, across all trees.
    fn snapshot(&self) -> Result<Self::Snapshot<'_>>;

    /// Applies `batch` whole or not at all, with the store's durability.
    fn commit(&self, batch: &Batch) -> Result<()>;

    /// A turn to write, which a repository has from the reads that a change depends on to its commit.
    fn writer(&self) -> Self::Writer<'_>;
}

/// A turn to read, check and write: between its reads and its commits nobody else's turn comes. Its reads see everything
/// that was committed before, durable or not.
pub trait KvWriter: KvRead {
    /// Applies `batch` whole or not at all, with the store's durability, and goes on.
    fn commit(&self, batch: &Batch) -> Result<()>;

    /// The same, and ends the turn: as soon as nothing that comes later can come before the batch, at the latest when it
    /// is durable.
    fn finish(self, batch: &Batch) -> Result<()>;
}

/// A turn to write in a store that knows no such thing: a lock of the adapter's, which is held until a commit is durable.
pub struct Locked<'a, V> {
    kv: &'a V,
    _turn: MutexGuard<'a, ()>,
}

impl<'a, V: Kv> Locked<'a, V> {
    /// Waits for its turn.
    pub fn new(kv: &'a V, turns: &'a Mutex<()>) -> Self {
        Self { kv, _turn: turns.lock() }
    }
}

impl<V: Kv> KvRead for Locked<'_, V> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        self.kv.get(tree, key, read)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.kv.scan(tree, range, direction, visit)
    }
}

impl<V: Kv> KvWriter for Locked<'_, V> {
    fn commit(&self, batch: &Batch) -> Result<()> {
        self.kv.commit(batch)
    }

    fn finish(self, batch: &Batch) -> Result<()> {
        self.kv.commit(batch)
    }
}
