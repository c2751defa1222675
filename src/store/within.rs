//! Collections inside of a transaction.
//!
//! A transaction is a store like any other: it is read with its own changes in it, and each change is checked and made in
//! one turn, which is its own. So a [`Collection`](super::Collection) in it can do all that it can outside. What a
//! transaction promises for keys it promises for records and indexes, for these are keys: two transactions that enter the
//! same key in a unique index change the same index entry, so one of them conflicts. That two change one record at the same
//! time is a conflict at every isolation: each works out from the old record which index entries go.

use std::ops::ControlFlow;

use super::error::{Error, Result};
use super::kv::{Batch, Direction, KeyRange, Kv, KvRead, KvWriter, Stored, TreeId};
use crate::engine::Transaction;

/// A transaction as the store of a collection: see [`Collection::within`](super::Collection::within).
#[derive(Clone, Copy)]
pub struct Within<'t, 'd>(&'t Transaction<'d>);

impl<'t, 'd> Within<'t, 'd> {
    pub(super) fn new(transaction: &'t Transaction<'d>) -> Self {
        Self(transaction)
    }
}

impl KvRead for Within<'_, '_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        Ok(self.0.get_stored(tree, key, read)?)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(self.0.visit(tree, range, direction, visit)?)
    }

    fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        Ok(self.0.count(tree, range)?)
    }
}

impl Kv for Within<'_, '_> {
    type Snapshot<'a>
        = Self
    where
        Self: 'a;
    type Writer<'a>
        = Self
    where
        Self: 'a;

    fn tree(&self, name: &str) -> Result<TreeId> {
        Err(Error::invalid("tree", name, "one that is made outside of a transaction"))
    }

    fn snapshot(&self) -> Result<Self> {
        Ok(*self)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        Ok(self.0.apply(batch)?)
    }

    fn writer(&self) -> Self {
        *self
    }
}

impl KvWriter for Within<'_, '_> {
    fn commit(&self, batch: &Batch) -> Result<()> {
        Kv::commit(self, batch)
    }

    fn finish(self, batch: &Batch) -> Result<()> {
        Kv::commit(&self, batch)
    }
}
