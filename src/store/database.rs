//! Our engine behind the [`Kv`] seam.

use std::ops::ControlFlow;

use parking_lot::MutexGuard;

use super::error::Result;
use super::kv::{Batch, Direction, KeyRange, Kv, KvRead, Layout, Stored, TreeId};
use crate::engine::{Database, Scan, Snapshot};

impl KvRead for Database {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        Ok(self.get_stored(tree, key, read)?)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        drive(Database::scan(self, tree, range.clone(), direction)?, visit)
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
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        drive(Snapshot::scan(self, tree, range.clone(), direction)?, visit)
    }

    fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        Ok(Snapshot::count(self, tree, range)?)
    }
}

fn drive(mut scan: Scan<'_>, mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<()> {
    while let Some((key, value)) = scan.next()? {
        if visit(key, value).is_break() {
            break;
        }
    }
    Ok(())
}

impl Kv for Database {
    type Snapshot<'a> = Snapshot<'a>;

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

    fn writer(&self) -> MutexGuard<'_, ()> {
        self.exclusive()
    }
}
