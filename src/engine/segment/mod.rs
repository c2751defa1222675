//! Segments: immutable sorted files, each with versions of one tree.
//!
//! ```text
//! file   := data* fence filter? footer
//! data   := block                    layout bytes (opaque.rs) or columns (packed/), back to back from the start
//! fence  := block+                   chunks of the fence (fence.rs), raw, end to end
//! filter := block+                   chunks of the filter (filter.rs), likewise
//! footer                             fixed size, at the very end (footer.rs)
//! ```
//!
//! What a block looks like, and how its checksum ties it to its place, is in frame.rs. All numbers are little-endian.
//!
//! Versions are sorted by key ascending and sequence descending. A file is written once by [`SegmentWriter`], synced,
//! and never changed. Its name is its number, formatted here and nowhere read from a file.
//!
//! # What a reader promises
//!
//! Damaged bytes are an error that names the file and the offset: when the segment is opened for footer, fence and
//! filter, when a block is first read for the rest. They are never an answer, a panic, or memory beyond a small
//! multiple of the file and of the largest block. A checksum that is right proves nothing about structure, so order,
//! bounds and counts are checked as well. Blocks that were checked stay in memory under the budget of a
//! [`BlockCache`]; a lookup in one of them takes no lock and allocates nothing.

mod block;
mod compression;
mod cursor;
mod fence;
mod filter;
mod footer;
mod frame;
#[cfg(feature = "cli")]
pub(crate) mod fuzz;
mod heads;
mod opaque;
mod packed;
mod residency;
mod salvage;
mod separators;
mod settled;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

use std::cell::Cell;
use std::sync::Arc;

use block::{Block, Lookup};
use fence::Fence;
use filter::Filter;
use footer::{FOOTER_BYTES, Footer, agree, agree_on_key};
use frame::{Flaw, Identity, LAYOUT_FENCE, LAYOUT_FILTER};
use residency::{Held, Slots};

use super::error::Result;
use super::open_files::{OpenFiles, SegmentFile};
use super::stored::Stored;

pub use compression::Compression;
pub(crate) use cursor::SegmentCursor;
pub(crate) use footer::SegmentMeta;
pub use packed::Row;
pub(crate) use packed::{Text, TextCell};
pub(crate) use residency::{BlockCache, Charge};
pub(crate) use salvage::read_survivors;
pub(crate) use separators::Separators;
pub(crate) use settled::LastBlock;
pub(crate) use writer::{SegmentWriter, WriterParams};

/// Whether blocks that a cursor reads stay in memory for the next reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// They do: for readers.
    Again,
    /// They do not: for merges, which pass by once and then remove the file.
    Once,
}

/// What names of segment files end with.
pub(crate) const ENDING: &str = ".seg";

/// Name of the segment file with this number.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:020}{ENDING}")
}

/// An open segment.
pub(crate) struct Segment {
    meta: SegmentMeta,
    contents: Contents,
    slots: Arc<Slots>,
    cache: Arc<BlockCache>,
    /// For what is read when it is opened.
    _charge: Charge,
}

impl Segment {
    /// Opens the file that `meta` describes and checks that it does.
    pub(crate) fn open(
        files: &Arc<OpenFiles>,
        database_id: u128,
        meta: SegmentMeta,
        cache: &Arc<BlockCache>,
    ) -> Result<Self> {
        let identity = Identity { database_id, number: meta.number };
        let contents = Contents::load(SegmentFile::new(files, meta.number), identity, &meta)?;
        let slots = Slots::new(contents.fence.len());
        let charge = Charge::new(cache);
        charge.grow(slots.resident_bytes() + contents.resident_bytes());
        Ok(Self { meta, contents, slots, cache: Arc::clone(cache), _charge: charge })
    }

    /// Number of its data blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.contents.fence.len()
    }

    /// How many of them are in memory.
    pub(crate) fn resident_blocks(&self) -> usize {
        self.slots.filled()
    }

    /// A key between a block and the next, or the last of the block; `None` if there is no such block.
    pub(crate) fn separator(&self, block: usize) -> Option<&[u8]> {
        (block < self.blocks()).then(|| self.contents.fence.separator(block))
    }

    pub(crate) fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Hands the newest version of `key` that is not above `sequence` to `read`: its value, or `None` for a tombstone.
    /// Returns `None`, and reads nothing, if there is no such version.
    pub(crate) fn get<R>(
        &self,
        key: &[u8],
        sequence: u64,
        read: impl FnOnce(Option<Stored<'_>>) -> R,
    ) -> Result<Option<R>> {
        let Contents { fence, filter, .. } = &self.contents;
        if filter.as_ref().is_some_and(|filter| !filter.may_contain(key)) {
            return Ok(None);
        }
        for block in fence.find(key)..fence.len() {
            match self.block(block)?.lookup(key, sequence) {
                Lookup::Found(value) => return Ok(Some(read(value))),
                Lookup::Absent => return Ok(None),
                // Older versions of the key may continue in the next block, but only if it is the separator.
                Lookup::Before if fence.separator(block) != key => return Ok(None),
                Lookup::Before => {}
            }
        }
        Ok(None)
    }

    /// No manifest names it any more: its file is removed with the last of those who hold it.
    pub(crate) fn make_obsolete(&self) {
        self.contents.file.make_obsolete();
    }

    /// Reads the whole file anew and checks all there is to check.
    pub(crate) fn verify(&self) -> Result<()> {
        verify::verify(&self.contents, &self.meta)
    }

    fn block(&self, index: usize) -> Result<Held> {
        if let Some(block) = self.slots.get(index) {
            return Ok(block);
        }
        let block = Arc::new(self.contents.read_block(&self.contents.fence, index)?);
        Ok(self.cache.keep(&self.slots, index, block).into())
    }

    /// The block, for somebody who passes by once: a merge must not drive out what readers come back for.
    fn block_once(&self, index: usize) -> Result<Arc<Block>> {
        match self.slots.get(index) {
            Some(block) => Ok(Arc::clone(&block)),
            None => Ok(Arc::new(self.contents.read_block(&self.contents.fence, index)?)),
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.cache.forget(&self.slots);
    }
}

/// The file, and what is read of it when the segment is opened.
struct Contents {
    file: SegmentFile,
    identity: Identity,
    fence: Fence,
    filter: Option<Filter>,
}

impl Contents {
    fn load(file: SegmentFile, identity: Identity, meta: &SegmentMeta) -> Result<Self> {
        let (fence, filter) = load_index(&file, identity, meta)?;
        Ok(Self { file, identity, fence, filter })
    }

    /// Memory it takes.
    fn resident_bytes(&self) -> usize {
        self.fence.resident_bytes() + self.filter.as_ref().map_or(0, Filter::resident_bytes)
    }

    /// Reads and checks a data block, itself and against its place in the fence.
    fn read_block(&self, fence: &Fence, index: usize) -> Result<Block> {
        let (offset, len) = fence.extent(index);
        with_buffers(|Buffers { stored, raw }| {
            self.identity.resize(stored, len)?;
            self.file.read_at(offset, stored)?;
            let layout = frame::open(self.identity, offset, stored, raw)?;
            let decoded = Block::decode(layout, raw)
                .ok_or_else(|| self.identity.unsupported(format!("block layout {layout}"), "layouts 2 and 3"))?;
            let block = decoded.and_then(|block| check_bounds(fence, index, &block).map(|()| block));
            block.map_err(|flaw| self.identity.damaged(offset, flaw))
        })
    }
}

/// Longest buffer that is kept: a single large block must not hold its memory for ever.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// What a block passes through on its way from the file.
#[derive(Default)]
struct Buffers {
    stored: Vec<u8>,
    raw: Vec<u8>,
}

thread_local! {
    /// Kept for the next block: buffers that come and go between blocks that stay would leave holes in memory.
    static BUFFERS: Cell<Buffers> = const { Cell::new(Buffers { stored: Vec::new(), raw: Vec::new() }) };
}

fn with_buffers<R>(read: impl FnOnce(&mut Buffers) -> R) -> R {
    let mut buffers = BUFFERS.take();
    let done = read(&mut buffers);
    if buffers.stored.capacity().max(buffers.raw.capacity()) <= BUFFER_BYTES_MAX {
        BUFFERS.set(buffers);
    }
    done
}

/// The keys of a block have to lie where the fence sends those who look for them.
fn check_bounds(fence: &Fence, index: usize, block: &Block) -> std::result::Result<(), Flaw> {
    let entries = fence.entries_before(index + 1) - fence.entries_before(index);
    agree("entries of a block", entries, block.len() as u64)?;
    let mut key = Vec::new();
    block.write_key(0, &mut key);
    if index == 0 {
        agree_on_key("first key of the first block", fence.smallest(), &key)?;
    }
    if key.as_slice() < fence.floor(index) {
        return Err(out_of_bounds("at least", fence.floor(index), &key));
    }
    block.write_key(block.len() - 1, &mut key);
    if index == fence.len() - 1 {
        agree_on_key("last key of the last block", fence.largest(), &key)?;
    }
    if key.as_slice() > fence.separator(index) {
        return Err(out_of_bounds("at most", fence.separator(index), &key));
    }
    Ok(())
}

fn out_of_bounds(relation: &str, bound: &[u8], key: &[u8]) -> Flaw {
    Flaw::new("bounds of a block", format!("{relation} {}", footer::show_key(bound)), footer::show_key(key))
}

/// Reads footer, fence and filter and holds them against each other and against `meta`.
fn load_index(file: &SegmentFile, identity: Identity, meta: &SegmentMeta) -> Result<(Fence, Option<Filter>)> {
    let file_bytes = file.len()?;
    agree("length of the file", meta.file_bytes, file_bytes).map_err(|flaw| identity.damaged(file_bytes, flaw))?;
    let Some(footer_offset) = file_bytes.checked_sub(FOOTER_BYTES as u64) else {
        return Err(identity.damaged(0, Flaw::new("length of the file", "room for a footer", file_bytes)));
    };
    let mut bytes = [0; FOOTER_BYTES];
    file.read_at(footer_offset, &mut bytes)?;
    let footer = Footer::decode(identity, footer_offset, &bytes)?;
    footer.check(meta).map_err(|flaw| identity.damaged(footer_offset, flaw))?;
    let fence = load_fence(file, identity, &footer, meta)?;
    let filter = if footer.filter_offset < footer_offset {
        let bytes = load_chunks(file, identity, footer.filter_offset..footer_offset, LAYOUT_FILTER)?;
        Some(Filter::decode(bytes).map_err(|flaw| identity.damaged(footer.filter_offset, flaw))?)
    } else {
        None
    };
    Ok((fence, filter))
}

fn load_fence(file: &SegmentFile, identity: Identity, footer: &Footer, meta: &SegmentMeta) -> Result<Fence> {
    let bytes = load_chunks(file, identity, footer.fence_offset..footer.filter_offset, LAYOUT_FENCE)?;
    let checked = || {
        let fence = Fence::decode(&bytes, footer)?;
        agree_on_key("smallest key", &meta.smallest, fence.smallest())?;
        agree_on_key("largest key", &meta.largest, fence.largest())?;
        Ok(fence)
    };
    checked().map_err(|flaw| identity.damaged(footer.fence_offset, flaw))
}

/// What the blocks in `range` hold, one after the other.
fn load_chunks(file: &SegmentFile, identity: Identity, range: std::ops::Range<u64>, layout: u8) -> Result<Vec<u8>> {
    // The range lies inside the file.
    let mut bytes = identity.buffer((range.end - range.start) as usize)?;
    file.read_at(range.start, &mut bytes)?;
    let (mut contents, mut raw, mut rest) = (Vec::new(), Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let offset = range.end - rest.len() as u64;
        let damaged =
            |found: &str| identity.damaged(offset, Flaw::new("block", format!("a raw one of layout {layout}"), found));
        let extent = frame::extent(rest).ok_or_else(|| damaged("a block that reaches too far"))?;
        let (block, behind) = rest.split_at(extent);
        let found = frame::open(identity, offset, block, &mut raw)?;
        // A packed chunk could ask for more memory than the file has bytes.
        if found != layout || raw.len() > extent {
            return Err(damaged(&format!("layout {found}, {} raw bytes", raw.len())));
        }
        contents.extend_from_slice(&raw);
        rest = behind;
    }
    Ok(contents)
}
