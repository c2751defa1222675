//! A cursor over a delta that others go on writing to.
//!
//! It never holds the lock between calls. It copies some entries at a time, few at first and more the longer it keeps
//! its direction, and finds its place again by key and sequence number when they are used up; if nothing was inserted
//! meanwhile, it is still where it was. Entries are never removed, so each one that was there when the cursor was
//! made is met exactly once. One inserted later may be met or missed, and the reader must not see it anyway: its
//! sequence number is above the reader's.

use std::sync::Arc;

use super::Delta;
use super::slots::{Slot, Target};
use super::tree::{Position, Tree};
use crate::engine::cursor::{Cursor, Entry};
use crate::engine::error::Result;
use crate::engine::range::Direction;

/// Entries copied after a seek, when most readers want one or two, and how many more each time after.
const COPIED_ENTRIES_STEP: usize = 4;
/// Entries copied at a time on a long way: enough to make the lock cheap, few enough not to keep the writer waiting.
const COPIED_ENTRIES_MAX: usize = 256;
/// No more entries are copied once this much is, however large the last one was.
const COPIED_BYTES_MAX: usize = 64 << 10;

pub(crate) struct DeltaCursor {
    delta: Arc<Delta>,
    copied: Copied,
    /// Which of the copied entries it is on. None are copied when it is on no entry.
    at: usize,
    direction: Direction,
    entries_wanted: usize,
}

impl DeltaCursor {
    pub(crate) fn new(delta: Arc<Delta>) -> Self {
        let (copied, direction) = (Copied::default(), Direction::Forward);
        Self { delta, copied, at: 0, direction, entries_wanted: COPIED_ENTRIES_STEP }
    }

    fn position(&mut self, direction: Direction, find: impl FnOnce(&Tree) -> Option<Position>) {
        self.entries_wanted = COPIED_ENTRIES_STEP;
        self.copy(direction, |_, tree| find(tree));
    }

    fn go(&mut self, direction: Direction) {
        let neighbour = match direction {
            Direction::Forward => Some(self.at + 1),
            Direction::Reverse => self.at.checked_sub(1),
        };
        match neighbour.filter(|&at| at < self.copied.entries.len()) {
            Some(at) => self.at = at,
            None => self.copy_more(direction),
        }
    }

    fn copy_more(&mut self, direction: Direction) {
        self.entries_wanted = if direction == self.direction {
            (self.entries_wanted + COPIED_ENTRIES_STEP).min(COPIED_ENTRIES_MAX)
        } else {
            COPIED_ENTRIES_STEP
        };
        let at = self.at;
        self.copy(direction, |copied, tree| step(tree, copied.locate(tree, at)?, direction));
    }

    /// Copies the entries from the one that `find` finds on, and goes to that one.
    fn copy(&mut self, direction: Direction, find: impl FnOnce(&Copied, &Tree) -> Option<Position>) {
        let tree = self.delta.tree.read();
        let position = find(&self.copied, &tree);
        self.copied.fill(&tree, position, direction, self.entries_wanted);
        self.direction = direction;
        self.at = match direction {
            Direction::Forward => 0,
            Direction::Reverse => self.copied.entries.len().saturating_sub(1),
        };
    }
}

impl Cursor for DeltaCursor {
    fn first(&mut self) -> Result<()> {
        self.position(Direction::Forward, Tree::first);
        Ok(())
    }

    fn last(&mut self) -> Result<()> {
        self.position(Direction::Reverse, Tree::last);
        Ok(())
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<()> {
        self.position(Direction::Forward, |tree| tree.seek(&Target::new(key, sequence)));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], sequence: u64) -> Result<()> {
        self.position(Direction::Reverse, |tree| tree.seek_before(&Target::new(key, sequence)));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.go(Direction::Forward);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.go(Direction::Reverse);
        Ok(())
    }

    fn entry(&self) -> Option<Entry<'_>> {
        self.copied.get(self.at)
    }
}

fn step(tree: &Tree, position: Position, direction: Direction) -> Option<Position> {
    match direction {
        Direction::Forward => tree.next(position),
        Direction::Reverse => tree.prev(position),
    }
}

/// Neighbouring entries of a tree as they were at one moment, in order.
#[derive(Default)]
struct Copied {
    bytes: Vec<u8>,
    entries: Vec<CopiedEntry>,
    /// `Tree::inserts` at that moment.
    inserts: u64,
}

struct CopiedEntry {
    slot: Slot,
    position: Position,
    start: usize,
}

impl Copied {
    /// Replaces what is copied by the entries from `position` on, in `direction`.
    fn fill(&mut self, tree: &Tree, mut position: Option<Position>, direction: Direction, wanted: usize) {
        self.bytes.clear();
        self.entries.clear();
        self.inserts = tree.inserts();
        let mut start = 0;
        while let Some(here) = position
            && self.entries.len() < wanted
            && start < COPIED_BYTES_MAX
        {
            let slot = tree.slot(here);
            self.entries.push(CopiedEntry { slot, position: here, start });
            start += slot.place.byte_len();
            position = step(tree, here, direction);
        }
        // A loop of its own: the processor then waits for the scattered bytes of many entries at once.
        self.bytes.reserve(start);
        for entry in &self.entries {
            self.bytes.extend_from_slice(tree.bytes(entry.slot));
        }
        if direction == Direction::Reverse {
            self.entries.reverse();
        }
    }

    fn get(&self, index: usize) -> Option<Entry<'_>> {
        let CopiedEntry { slot, start, .. } = self.entries.get(index)?;
        let (key, value) = slot.place.split(&self.bytes[*start..start + slot.place.byte_len()]);
        Some(Entry { key, sequence: slot.sequence, value })
    }

    /// Where a copied entry is now.
    fn locate(&self, tree: &Tree, index: usize) -> Option<Position> {
        let entry = self.get(index)?;
        if tree.inserts() == self.inserts {
            return Some(self.entries[index].position);
        }
        tree.seek(&Target::new(entry.key, entry.sequence))
    }
}
