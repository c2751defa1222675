//! Values that are changed in place, in one turn: counters, and whatever else follows from what was there.
//!
//! ```text
//! counter := value:i64     8 bytes, least significant first; one that is not there counts as 0
//! ```

use super::batch::{Batch, TreeId};
use super::database::Database;
use super::error::{Error, Result};

impl Database {
    /// Adds to a counter, and answers what it is then. Exact whoever else adds to it, and never a conflict.
    ///
    /// # Errors
    /// [`Error::NotACounter`] if the value is not 8 bytes long, [`Error::CounterOverflow`] if the sum is none of 64 bits;
    /// nothing is changed then. Otherwise as [`Database::commit`].
    pub fn increment(&self, tree: TreeId, key: &[u8], by: i64) -> Result<i64> {
        let turn = self.exclusive();
        let sum = turn.get_stored(tree, key, |value| added(Some(&value.to_vec()), by))?;
        let sum = sum.unwrap_or_else(|| added(None, by))?;
        let mut batch = Batch::new();
        batch.put(tree, key, &sum);
        turn.finish(&batch)?;
        Ok(i64::from_le_bytes(sum))
    }

    /// The counter at `key`.
    ///
    /// # Errors
    /// [`Error::NotACounter`] if the value is not 8 bytes long.
    pub fn counter(&self, tree: TreeId, key: &[u8]) -> Result<i64> {
        counter(self.get(tree, key)?.as_deref())
    }

    /// Replaces the value of `key` by what `update` makes of it; `None` is no value. Answers what it was before. Nothing comes
    /// between; `update` must not call back into the database.
    ///
    /// # Errors
    /// As [`Database::commit`].
    pub fn fetch_update(
        &self,
        tree: TreeId,
        key: &[u8],
        update: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let turn = self.exclusive();
        let before = turn.get_stored(tree, key, |value| value.to_vec())?;
        let mut batch = Batch::new();
        match update(before.as_deref()) {
            Some(value) => batch.put(tree, key, &value),
            None => batch.delete(tree, key),
        }
        turn.finish(&batch)?;
        Ok(before)
    }
}

fn counter(value: Option<&[u8]>) -> Result<i64> {
    let Some(value) = value else { return Ok(0) };
    let bytes = value.try_into().map_err(|_| Error::NotACounter { len: value.len() as u64 })?;
    Ok(i64::from_le_bytes(bytes))
}

/// The counter `value` with `by` added.
pub(super) fn added(value: Option<&[u8]>, by: i64) -> Result<[u8; 8]> {
    let sum = counter(value)?.checked_add(by).ok_or(Error::CounterOverflow)?;
    Ok(sum.to_le_bytes())
}
