//! A turn to read, check and write.

use super::batch::{Batch, TreeId};
use super::database::Shared;
use super::error::Result;
use super::options::Durability;
use super::snapshot::Snapshot;
use super::stored::Stored;
use super::sync::MutexGuard;

/// Between the reads and the commits of one turn nobody else commits: whoever has it must do so with its own methods, for
/// any other commit waits until it is over. Reads see everything that was committed before, also what is not durable yet:
/// it becomes durable before or together with what is built on it.
///
/// [`finish`](Self::finish) ends the turn as soon as the batch is applied, so that those who wait for one sync wait for it
/// together.
#[must_use = "others may write at once"]
pub struct Exclusive<'a> {
    shared: &'a Shared,
    turn: MutexGuard<'a, ()>,
}

impl<'a> Exclusive<'a> {
    pub(crate) fn new(shared: &'a Shared, turn: MutexGuard<'a, ()>) -> Self {
        Self { shared, turn }
    }

    /// A consistent view of everything committed so far.
    pub fn snapshot(&self) -> Snapshot<'a> {
        Snapshot::applied(self.shared)
    }

    /// Hands the value of `key` to `read` in the form in which it is there; `None` if it is not there.
    pub fn get_stored<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        self.shared.get_stored(&self.shared.applied, tree, key, read)
    }

    /// As [`Database::commit`](super::Database::commit), and the turn goes on.
    pub fn commit(&self, batch: &Batch) -> Result<()> {
        let applied = self.shared.apply(batch, self.shared.options.durability)?;
        self.shared.publish(applied)
    }

    /// As [`Database::commit`](super::Database::commit), and ends the turn before the batch is durable.
    pub fn finish(self, batch: &Batch) -> Result<()> {
        let durability = self.shared.options.durability;
        self.finish_with(batch, durability)
    }

    /// As [`Database::commit_with`](super::Database::commit_with), and ends the turn before the batch is durable.
    pub fn finish_with(self, batch: &Batch, durability: Durability) -> Result<()> {
        self.finish_numbered(batch, durability).map(drop)
    }

    /// The same. Answers the number of the commit, if the batch is not empty.
    pub(crate) fn finish_numbered(self, batch: &Batch, durability: Durability) -> Result<Option<u64>> {
        let Self { shared, turn } = self;
        let applied = shared.apply(batch, durability)?;
        drop(turn);
        shared.publish(applied)?;
        Ok(applied.map(|applied| applied.sequence))
    }
}
