//! Our engine behind the [`Kv`] seam.

use std::ops::ControlFlow;

use super::error::Result;
use super::kv::{Batch, Direction, KeyRange, Kv, KvRead, KvWriter, Layout, Stored, TreeId};
use crate::engine::{Database, Exclusive, Snapshot};

impl KvRead for Database {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        Ok(self.get_stored(tree, key, read)?)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(Database::snapshot(self).visit(tree, range, direction, visit)?)
    }

    fn scan_tails(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        width: usize,
        visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(Database::snapshot(self).visit_tails(tree, range, direction, width, visit)?)
    }

    fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        Ok(Database::snapshot(self).count(tree, range)?)
    }
}

impl KvRead for Snapshot<'_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        Ok(self.get_stored(tree, key, read)?)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(self.visit(tree, range, direction, visit)?)
    }

    fn scan_tails(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        width: usize,
        visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(self.visit_tails(tree, range, direction, width, visit)?)
    }

    fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        Ok(Snapshot::count(self, tree, range)?)
    }

    fn get_many(
        &self,
        tree: TreeId,
        count: usize,
        key: impl FnMut(usize, &mut Vec<u8>),
        read: impl FnMut(usize, Option<Stored<'_>>) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(Snapshot::get_many(self, tree, count, key, read)?)
    }
}

impl Kv for Database {
    type Snapshot<'a> = Snapshot<'a>;
    type Writer<'a> = Exclusive<'a>;

    fn tree(&self, name: &str) -> Result<TreeId> {
        Ok(Database::tree(self, name)?)
    }

    fn tree_with(&self, name: &str, layout: &Layout) -> Result<TreeId> {
        Ok(Database::tree_with(self, name, layout)?)
    }

    fn snapshot(&self) -> Result<Snapshot<'_>> {
        Ok(Database::snapshot(self))
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        Ok(Database::commit(self, batch)?)
    }

    fn writer(&self) -> Exclusive<'_> {
        self.exclusive()
    }
}

impl KvRead for Exclusive<'_> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        Ok(self.get_stored(tree, key, read)?)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(self.snapshot().visit(tree, range, direction, visit)?)
    }
}

impl KvWriter for Exclusive<'_> {
    fn commit(&self, batch: &Batch) -> Result<()> {
        Ok(Exclusive::commit(self, batch)?)
    }

    fn finish(self, batch: &Batch) -> Result<()> {
        Ok(Exclusive::finish(self, batch)?)
    }
}
