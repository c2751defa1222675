//! Separators: keys that part a list of key ranges, in flat arrays, and which range a key falls into.
//!
//! Range `i` reaches from the separator before it, or from `smallest`, up to separator `i`, which is in it. The blocks of a
//! segment are such ranges, and so are the segments of a run.

use std::collections::TryReserveError;

use super::heads::{common_prefix_len, head_u64, rank};
use super::residency::allocated;

#[derive(Debug, Default)]
pub(crate) struct Separators {
    smallest: Vec<u8>,
    /// What every separator, and every key between them, begins with.
    prefix_len: usize,
    /// The head of each separator behind the prefix.
    heads: Vec<u64>,
    /// The separators one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Separators {
    /// None yet, with room for `count` of `bytes` together. All have to be added before any is looked for.
    pub(super) fn with_room_for(count: usize, bytes: usize, smallest: &[u8]) -> Result<Self, TryReserveError> {
        let mut separators = Self { smallest: smallest.to_vec(), ..Self::default() };
        separators.bytes.try_reserve_exact(bytes)?;
        separators.heads.try_reserve_exact(count)?;
        separators.ends.try_reserve_exact(count)?;
        Ok(separators)
    }

    /// The ranges that end with these keys, which ascend; the first begins with `smallest`.
    pub(crate) fn new<'a>(smallest: &[u8], keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut separators = Self { smallest: smallest.to_vec(), ..Self::default() };
        keys.for_each(|key| separators.push(key));
        separators.set_heads();
        separators
    }

    /// Adds one that is not below the one before.
    pub(super) fn push(&mut self, separator: &[u8]) {
        self.bytes.extend_from_slice(separator);
        self.ends.push(self.bytes.len() as u64);
    }

    /// To be called when all are there.
    pub(super) fn set_heads(&mut self) {
        let largest = self.len().checked_sub(1).map_or(&[][..], |last| self.get(last));
        // Short keys are compared whole by their heads.
        if self.smallest.len().max(largest.len()) > size_of::<u64>() {
            self.prefix_len = common_prefix_len(&self.smallest, largest);
        }
        for index in 0..self.len() {
            let head = head_u64(&self.get(index)[self.prefix_len..]);
            self.heads.push(head);
        }
    }

    /// Memory they take.
    pub(super) fn resident_bytes(&self) -> usize {
        let numbers = (self.heads.capacity() + self.ends.capacity()) * size_of::<u64>();
        allocated(self.smallest.capacity()) + allocated(self.bytes.capacity()) + numbers
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn smallest(&self) -> &[u8] {
        &self.smallest
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    /// No key of range `index` lies below.
    pub(super) fn floor(&self, index: usize) -> &[u8] {
        index.checked_sub(1).map_or(&self.smallest, |before| self.get(before))
    }

    /// The first range that can hold `key`, or a later key; the number of ranges if there is none.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        let prefix = &self.smallest[..self.prefix_len];
        let rest = if prefix.is_empty() {
            key
        } else {
            match key.strip_prefix(prefix) {
                Some(rest) => rest,
                None => return if key < prefix { 0 } else { self.len() },
            }
        };
        rank(self.len(), |index| self.heads[index], head_u64(rest), |index| self.get(index) < key)
    }
}
