//! Walks over the entries of one segment.

use std::sync::Arc;

use super::block::Block;
use super::{Reading, Segment};
use crate::engine::cursor::{Cursor, Entry};
use crate::engine::error::Result;
use crate::engine::stored::Stored;

/// A cursor over a segment. It holds the block it stands in, whatever becomes of the block's slot. After an error it
/// is on no entry.
pub(crate) struct SegmentCursor {
    segment: Arc<Segment>,
    reading: Reading,
    /// Index of the block, and the block; `None` is no entry.
    block: Option<(usize, Arc<Block>)>,
    /// Index of the entry in the block.
    index: usize,
    /// Its key, put together.
    key: Vec<u8>,
    /// Its value, if that does not lie in the block.
    rendered: Vec<u8>,
}

impl SegmentCursor {
    pub(crate) fn new(segment: Arc<Segment>, reading: Reading) -> Self {
        Self { segment, reading, block: None, index: 0, key: Vec::new(), rendered: Vec::new() }
    }

    /// Whether there is an entry, without looking at it.
    #[inline]
    pub(crate) fn is_on_entry(&self) -> bool {
        self.block.is_some()
    }

    /// Makes `block` the one it stands in. It stands on none of the entries until [`Self::stand`].
    fn enter(&mut self, block: usize) -> Result<&Block> {
        if self.block.as_ref().is_none_or(|(current, _)| *current != block) {
            self.block = None;
            let entered = match self.reading {
                Reading::Again => Arc::clone(&*self.segment.block(block)?),
                Reading::Once => self.segment.block_once(block)?,
            };
            return Ok(&self.block.insert((block, entered)).1);
        }
        Ok(&self.block.as_ref().expect("it is in a block").1)
    }

    /// Takes its stand on an entry of the block it is in.
    #[inline]
    fn stand(&mut self, index: usize) {
        let (_, block) = self.block.as_ref().expect("only after entering a block");
        block.write_key(index, &mut self.key);
        if let Block::Packed(packed) = &**block
            && packed.has_values()
        {
            packed.write_value(index, &mut self.rendered);
        }
        self.index = index;
    }

    fn first_of(&mut self, block: usize) -> Result<()> {
        if block == self.segment.contents.fence.len() {
            self.block = None;
            return Ok(());
        }
        self.enter(block)?;
        self.stand(0);
        Ok(())
    }

    fn last_of(&mut self, block: usize) -> Result<()> {
        let last = self.enter(block)?.len() - 1;
        self.stand(last);
        Ok(())
    }
}

impl Cursor for SegmentCursor {
    fn first(&mut self) -> Result<()> {
        self.first_of(0)
    }

    fn last(&mut self) -> Result<()> {
        self.last_of(self.segment.contents.fence.len() - 1)
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<()> {
        let blocks = self.segment.contents.fence.len();
        // More than one block only if versions of the key fill the first to its end.
        for block in self.segment.contents.fence.find(key)..blocks {
            let entered = self.enter(block)?;
            let index = entered.rank(key, sequence);
            if index < entered.len() {
                self.stand(index);
                return Ok(());
            }
        }
        self.block = None;
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], sequence: u64) -> Result<()> {
        self.seek(key, sequence)?;
        if self.block.is_none() { self.last() } else { self.prev() }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match &self.block {
            None => {}
            Some((_, block)) if self.index + 1 < block.len() => self.stand(self.index + 1),
            Some((block, _)) => return self.first_of(block + 1),
        }
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        match &self.block {
            None => {}
            Some(_) if self.index > 0 => self.stand(self.index - 1),
            Some((0, _)) => self.block = None,
            Some((block, _)) => return self.last_of(block - 1),
        }
        Ok(())
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let (_, block) = self.block.as_ref()?;
        let (sequence, value) = block.version(self.index);
        let value = value.map(|value| match value {
            Stored::Bytes(bytes) => bytes,
            Stored::Row(_) => &self.rendered,
        });
        Some(Entry { key: &self.key, sequence, value })
    }
}
