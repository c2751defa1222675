//! Reads of a segment that holds live entries only, each key once: one look at the fence, one block, one entry.
//!
//! Whoever looks up many keys holds on to the block of the last one; whoever wants a range gets it from inside, block by
//! block, with its bounds looked up once and not compared with every key.

use std::ops::{ControlFlow, Range};

use super::Segment;
use super::block::{Block, Lookup};
use super::residency::Held;
use crate::engine::cursor::SEQUENCE_MAX;
use crate::engine::error::Result;
use crate::engine::range::Direction;
use crate::engine::stored::Stored;

/// The block that a reader looked at last, in one segment.
#[derive(Default)]
pub(crate) struct LastBlock(Option<(usize, Held)>);

impl LastBlock {
    /// The value of `key`, if no more than a look at this block says so.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<Stored<'_>> {
        match &**self.0.as_ref()?.1 {
            Block::Packed(block) => block.get_dense(key),
            Block::Opaque(_) => None,
        }
    }
}

impl Segment {
    /// Hands the value of `key` to `read`, or nothing if it is not there.
    #[inline]
    pub(crate) fn get_settled<R>(
        &self,
        key: &[u8],
        last: &mut LastBlock,
        read: impl FnOnce(Option<Stored<'_>>) -> R,
    ) -> Result<R> {
        let index = self.contents.fence.find(key);
        if index == self.contents.fence.len() {
            return Ok(read(None));
        }
        if last.0.as_ref().is_none_or(|(current, _)| *current != index) {
            last.0 = Some((index, self.block(index)?));
        }
        let (_, held) = last.0.as_ref().expect("it was just looked at");
        Ok(match held.lookup(key, SEQUENCE_MAX) {
            Lookup::Found(value) => read(value),
            Lookup::Before | Lookup::Absent => read(None),
        })
    }

    /// Hands every entry with `from <= key < to`, in order, to `visit` until it breaks. No `to` is no bound. If only the
    /// last `tail` bytes of a key are wanted, what comes before them may be missing.
    pub(crate) fn visit_settled(
        &self,
        (from, to): (&[u8], Option<&[u8]>),
        direction: Direction,
        tail: Option<usize>,
        key: &mut Vec<u8>,
        visit: &mut impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let fence = &self.contents.fence;
        let first = fence.find(from);
        let last = to.map_or(fence.len(), |to| fence.find(to).saturating_add(1).min(fence.len()));
        let mut blocks = first..last.max(first);
        while let Some(index) = next(&mut blocks, direction) {
            let block = self.block(index)?;
            let begin = if index == first { block.rank(from, SEQUENCE_MAX) } else { 0 };
            let end = match to {
                Some(to) if index + 1 == last => block.rank(to, SEQUENCE_MAX),
                _ => block.len(),
            };
            if visit_block(&block, begin..end.max(begin), direction, tail, key, visit).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// How many entries have a key below `key`.
    pub(crate) fn rank_settled(&self, key: &[u8]) -> Result<u64> {
        let fence = &self.contents.fence;
        let index = fence.find(key);
        if index == fence.len() {
            return Ok(self.meta.entries);
        }
        Ok(fence.entries_before(index) + self.block(index)?.rank(key, SEQUENCE_MAX) as u64)
    }
}

#[inline]
fn visit_block(
    block: &Block,
    mut entries: Range<usize>,
    direction: Direction,
    tail: Option<usize>,
    key: &mut Vec<u8>,
    visit: &mut impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if entries.is_empty() {
        return ControlFlow::Continue(());
    }
    match block {
        Block::Packed(block) => {
            if let Some((column, tail)) = tail.and_then(|tail| Some((block.tail_number(tail)?, tail))) {
                while let Some(entry) = next(&mut entries, direction) {
                    let number = block.number(column, entry).to_be_bytes();
                    visit(&number[number.len() - tail..], block.value(entry))?;
                }
                return ControlFlow::Continue(());
            }
            block.write_key(entries.start, key);
            let varying = block.varying(tail);
            while let Some(entry) = next(&mut entries, direction) {
                block.rewrite_key(entry, varying, key);
                visit(key, block.value(entry))?;
            }
        }
        block @ Block::Opaque(_) => {
            while let Some(entry) = next(&mut entries, direction) {
                block.write_key(entry, key);
                if let (_, Some(value)) = block.version(entry) {
                    visit(key, value)?;
                }
            }
        }
    }
    ControlFlow::Continue(())
}

#[inline(always)]
fn next(range: &mut Range<usize>, direction: Direction) -> Option<usize> {
    match direction {
        Direction::Forward => range.next(),
        Direction::Reverse => range.next_back(),
    }
}
