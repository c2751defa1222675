//! Reads what is left of a segment file that is damaged.
//!
//! Blocks lie end to end from the start of the file, and each has a checksum that knows its place. So neither fence nor
//! footer is needed to find them: where one is damaged, the next begins at the first place behind it where a block does.

use std::ops::Range;

use super::SegmentMeta;
use super::block::Block;
use super::frame::{self, Identity, LAYOUT_FENCE, LAYOUT_FILTER};
use crate::engine::disk::Disk;
use crate::engine::error::Result;
use crate::engine::readable::Readable;
use crate::engine::stored::Stored;

/// What a segment lost.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    /// How many entries are gone; there may be gaps without any, for fence, filter and footer hold none.
    pub(crate) entries: u64,
    pub(crate) gaps: Vec<Gap>,
}

/// Bytes of a segment that are no blocks.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Where they lie in the file.
    pub(crate) bytes: Range<usize>,
    /// What the system said, if some of them could not be read.
    pub(crate) reason: Option<String>,
    /// The last key before them, or the smallest of the segment, and the first one behind them, or the largest.
    pub(crate) between: (Vec<u8>, Vec<u8>),
}

/// Hands what blocks that are whole hold to `each`, in order, of each key the newest version, no value for a tombstone;
/// and tells what is missing between them.
pub(crate) fn read_survivors(
    disk: &dyn Disk,
    database_id: u128,
    meta: &SegmentMeta,
    mut each: impl FnMut(&[u8], Option<Stored<'_>>) -> Result<()>,
) -> Result<Loss> {
    let identity = Identity { database_id, number: meta.number };
    // One that is longer than it was written has nothing of ours behind that.
    let file = Readable::read(disk, &identity.file_name(), meta.file_bytes);
    let bytes = &file.bytes;
    let mut loss = Loss { entries: meta.entries, gaps: Vec::new() };
    let (mut offset, mut newest, mut last, mut in_gap) = (0, Newest::default(), meta.smallest.clone(), false);
    // The end of the data: where the fence begins, or the file is over.
    while let Some(place) = place_at(identity, bytes, offset) {
        match place {
            Place::Block(block, extent) => {
                if in_gap && let Some(gap) = loss.gaps.last_mut() {
                    gap.between.1 = key_of(&block, 0);
                }
                loss.entries = loss.entries.saturating_sub(block.len() as u64);
                last = key_of(&block, block.len() - 1);
                in_gap = false;
                newest.of_each_key(&block, &mut each)?;
                offset += extent;
            }
            Place::Damaged => {
                if !in_gap {
                    loss.gaps.push(Gap::at(offset, &last, meta));
                    in_gap = true;
                }
                offset += 1;
                if let Some(gap) = loss.gaps.last_mut() {
                    gap.bytes.end = offset;
                }
            }
        }
    }
    // Cut at the end of a block, or not what the manifest says.
    if loss.entries > 0 && !in_gap && (offset >= bytes.len() || loss.gaps.is_empty()) {
        loss.gaps.push(Gap::at(offset, &last, meta));
    }
    for gap in &mut loss.gaps {
        gap.reason = file.reason(&gap.bytes);
    }
    Ok(loss)
}

impl Gap {
    fn at(offset: usize, last: &[u8], meta: &SegmentMeta) -> Self {
        Self { bytes: offset..offset, reason: None, between: (last.to_vec(), meta.largest.clone()) }
    }
}

/// The newest version of each key, which comes first; others may follow in the next block.
#[derive(Default)]
struct Newest {
    key: Option<Vec<u8>>,
}

impl Newest {
    fn of_each_key(
        &mut self,
        block: &Block,
        each: &mut impl FnMut(&[u8], Option<Stored<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut key = Vec::new();
        for entry in 0..block.len() {
            block.write_key(entry, &mut key);
            if self.key.as_ref() != Some(&key) {
                each(&key, block.version(entry).1)?;
                self.key.get_or_insert_default().clone_from(&key);
            }
        }
        Ok(())
    }
}

enum Place {
    /// A block, and its length in the file.
    Block(Block, usize),
    Damaged,
}

/// What there is at `offset`; nothing behind the data.
fn place_at(identity: Identity, bytes: &[u8], offset: usize) -> Option<Place> {
    let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
    let Some(extent) = frame::extent_of_plausible(rest) else { return Some(Place::Damaged) };
    let mut raw = Vec::new();
    match frame::open(identity, offset as u64, &rest[..extent], &mut raw) {
        Ok(LAYOUT_FENCE | LAYOUT_FILTER) => None,
        Ok(layout) => match Block::decode(layout, &raw) {
            Some(Ok(block)) => Some(Place::Block(block, extent)),
            _ => Some(Place::Damaged),
        },
        Err(_) => Some(Place::Damaged),
    }
}

fn key_of(block: &Block, entry: usize) -> Vec<u8> {
    let mut key = Vec::new();
    block.write_key(entry, &mut key);
    key
}
