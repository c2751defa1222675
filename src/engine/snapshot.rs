//! A sequence number and a version: a view of all trees that later commits and merges do not change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::batch::TreeId;
use super::database::{ReadScratch, Shared};
use super::error::Result;
use super::range::{Direction, KeyRange};
use super::scan::Scan;
use super::stored::Stored;
use super::version::Version;

/// A consistent view across all trees. Holding one keeps the files and the memory it reads from, whatever becomes of
/// them meanwhile; drop it to let them go.
pub struct Snapshot<'a> {
    shared: &'a Shared,
    version: Arc<Version>,
    sequence: u64,
}

impl<'a> Snapshot<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        shared.snapshots.fetch_add(1, Ordering::Relaxed);
        // In this order; see the head of `database.rs`.
        let version = shared.version.load_full();
        let published = shared.visible.load(Ordering::Acquire);
        // Sealed meanwhile: what was committed since is in a later version.
        let sequence = version.active.sealed_at().map_or(published, |last| last.min(published));
        Self { shared, version, sequence }
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

    /// The live entries of `range`, in order.
    pub fn scan(&self, tree: TreeId, range: KeyRange, direction: Direction) -> Result<Scan<'_>> {
        Scan::new(&self.version, self.sequence, tree, range, direction, None)
    }

    /// The same, for a scan that keeps the snapshot.
    pub(crate) fn into_scan(self, tree: TreeId, range: KeyRange, direction: Direction) -> Result<Scan<'a>> {
        let version = Arc::clone(&self.version);
        Scan::new(&version, self.sequence, tree, range, direction, Some(self))
    }

    /// Number of live entries in `range`. A settled tree knows how many there are in all of it; anything else is walked.
    pub fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        let runs = self.version.tree(tree)?;
        let only_runs = self.version.deltas(tree).next().is_none();
        if let Some(entries) = runs.settled_entries().filter(|_| only_runs && *range == KeyRange::all()) {
            return Ok(entries);
        }
        let mut scan = self.scan(tree, range.clone(), Direction::Forward)?;
        let mut entries = 0;
        while scan.next()?.is_some() {
            entries += 1;
        }
        Ok(entries)
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.shared.snapshots.fetch_sub(1, Ordering::Relaxed);
    }
}
