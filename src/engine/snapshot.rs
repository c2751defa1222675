//! A sequence number and a version: a view of all trees that later commits and merges do not change.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::batch::TreeId;
use super::database::{ReadScratch, Shared};
use super::error::Result;
use super::range::{Direction, KeyRange};
use super::run::Run;
use super::scan::Scan;
use super::stored::Stored;
use super::striped::Counted;
use super::sync::{AtomicU64, Guard, Ordering};
use super::version::{Generation, Version};

/// A consistent view across all trees. Holding one keeps the files and the memory it reads from, whatever becomes of
/// them meanwhile; drop it to let them go.
pub struct Snapshot<'a> {
    version: Guard<Arc<Version>>,
    sequence: u64,
    _counted: Counted<'a>,
}

impl<'a> Snapshot<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self::of(shared, &shared.visible)
    }

    /// A view of everything committed so far, also of what is not durable yet.
    pub(crate) fn applied(shared: &'a Shared) -> Self {
        Self::of(shared, &shared.applied)
    }

    fn of(shared: &'a Shared, newest: &AtomicU64) -> Self {
        // In this order; see the head of `database.rs`.
        let version = shared.version.load();
        let newest = newest.load(Ordering::Acquire);
        // Sealed meanwhile: what was committed since is in a later version.
        let sequence = version.active.sealed_at().map_or(newest, |last| last.min(newest));
        Self { version, sequence, _counted: shared.snapshots.count_one() }
    }

    /// The same view with other changes in front of it: as if they were of the last commit that it sees.
    pub(crate) fn behind(mut self, changes: &Arc<Generation>) -> Self {
        let mut version = Version::clone(&self.version);
        version.sealed.insert(0, std::mem::replace(&mut version.active, Arc::clone(changes)));
        self.version = Guard::from_inner(Arc::new(version));
        self
    }

    /// The same view once more.
    pub(crate) fn again(&self, shared: &'a Shared) -> Self {
        let version = Guard::from_inner(Arc::clone(&self.version));
        Self { version, sequence: self.sequence, _counted: shared.snapshots.count_one() }
    }

    /// Number of trees.
    pub(crate) fn tree_count(&self) -> usize {
        self.version.trees.len()
    }

    /// The number of the last commit it sees.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The value of `key`.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(tree, key, <[u8]>::to_vec)
    }

    /// Hands the value of `key` to `read` without a copy of its own; `None` if it is not there.
    pub fn get_with<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Shared::read(|ReadScratch { copied, rendered }| {
            self.version.get(tree, key, self.sequence, copied, |stored| read(stored.bytes(rendered)))
        })
    }

    /// Hands the value of `key` to `read` in the form in which it is there; `None` if it is not there.
    pub fn get_stored<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        Shared::read(|ReadScratch { copied, .. }| self.version.get(tree, key, self.sequence, copied, read))
    }

    /// Hands the value of each of `count` keys to `read`, in order, until it breaks; `key(i, buffer)` writes the `i`-th
    /// key.
    pub fn get_many(
        &self,
        tree: TreeId,
        count: usize,
        mut key: impl FnMut(usize, &mut Vec<u8>),
        mut read: impl FnMut(usize, Option<Stored<'_>>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut settled = self.version.settled_run(tree)?.map(Run::settled_reader);
        Shared::read(|ReadScratch { copied, rendered: buffer }| {
            for i in 0..count {
                buffer.clear();
                key(i, buffer);
                let flow = if let Some(reader) = &mut settled {
                    reader.get(buffer, |value| read(i, value))?
                } else {
                    let found = self.version.get(tree, buffer, self.sequence, copied, |value| read(i, Some(value)))?;
                    found.unwrap_or_else(|| read(i, None))
                };
                if flow.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Hands every live entry of `range`, in order, to `visit` until it breaks.
    pub fn visit(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.visit_part(tree, range, direction, None, visit)
    }

    /// Hands the last `width` bytes of every live key of `range`, in order, to `visit` until it breaks; of shorter keys all
    /// there is. Spares what it takes to put the rest of the keys together.
    pub fn visit_tails(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        width: usize,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let visit_tail = |key: &[u8], _: Stored<'_>| visit(&key[key.len().saturating_sub(width)..]);
        self.visit_part(tree, range, direction, Some(width), visit_tail)
    }

    fn visit_part(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        tail: Option<usize>,
        mut visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        if let Some(run) = self.version.settled_run(tree)? {
            return run.visit_settled(range, direction, tail, visit);
        }
        let mut scan = self.scan(tree, range.clone(), direction)?;
        while let Some((key, value)) = scan.next()? {
            if visit(key, Stored::Bytes(value)).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The live entries of `range`, in order.
    pub fn scan(&self, tree: TreeId, range: KeyRange, direction: Direction) -> Result<Scan<'_>> {
        Scan::new(&self.version, self.sequence, tree, range, direction, None)
    }

    /// The same, for a scan that keeps the snapshot.
    pub(crate) fn into_scan(self, tree: TreeId, range: KeyRange, direction: Direction) -> Result<Scan<'a>> {
        let version = Arc::clone(&self.version);
        Scan::new(&version, self.sequence, tree, range, direction, Some(self))
    }

    /// Number of live entries in `range`. In a settled tree that takes two lookups; any other is walked.
    pub fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        if let Some(run) = self.version.settled_run(tree)? {
            return run.count_settled(range);
        }
        let mut scan = self.scan(tree, range.clone(), Direction::Forward)?;
        let mut entries = 0;
        while scan.next()?.is_some() {
            entries += 1;
        }
        Ok(entries)
    }
}
