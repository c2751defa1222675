//! Writes a segment, entry by entry, in order.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use super::compression::{Compression, Compressor};
use super::fence::{self, FenceBuilder};
use super::filter::FilterBuilder;
use super::footer::{Footer, SegmentMeta};
use super::frame::{self, Identity, LAYOUT_BYTES, LAYOUT_COLUMNS, LAYOUT_FENCE, LAYOUT_FILTER};
use super::opaque::OpaqueBuilder;
use super::packed::{PackedBuilder, Run};
use crate::engine::batch::{KEY_BYTES_MAX, VALUE_BYTES_MAX, within};
use crate::engine::cursor::Entry;
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::error::Result;
use crate::engine::layout::Layout;

/// Bytes collected before they are given to the file.
const APPEND_BYTES: usize = 256 << 10;
/// Raw length of the blocks that fence and filter are cut into.
const CHUNK_BYTES: usize = 1 << 20;
/// A block of columns is packed from at most this many times the bytes of a block: it gets so much shorter.
const PACKED_FACTOR: usize = 4;

/// How a segment is laid out.
#[derive(Clone, Debug)]
pub(crate) struct WriterParams {
    /// A block is closed before it would pass this raw length, but holds at least one entry.
    pub(crate) block_bytes: usize,
    pub(crate) compression: Compression,
    /// Whether lookups of absent keys are to be spared a block: ten bits for each key, for runs that lie over others.
    pub(crate) filter: bool,
    /// What keys and values are made of; settled entries that follow it are stored by columns.
    pub(crate) layout: Arc<Layout>,
}

impl Default for WriterParams {
    fn default() -> Self {
        Self { block_bytes: 16 << 10, compression: Compression::default(), filter: true, layout: Arc::default() }
    }
}

/// A segment in the making. Dropped before it is finished, it leaves a file that no manifest names.
pub(crate) struct SegmentWriter {
    output: Output,
    compressor: Compressor,
    block_bytes: usize,
    layout: Arc<Layout>,
    /// Settled entries, which come behind those of `opaque`, of which there are none then.
    packed: PackedBuilder,
    opaque: OpaqueBuilder,
    /// The key added last to the open block.
    last: Vec<u8>,
    raw: Vec<u8>,
    fence: Option<FenceBuilder>,
    filter: Option<FilterBuilder>,
    /// What is known so far; `largest` is the key added last.
    meta: SegmentMeta,
    sequence: u64,
}

impl SegmentWriter {
    /// Makes the file of segment `number`, which must not be there yet.
    pub(crate) fn new(disk: &dyn Disk, database_id: u128, number: u64, params: &WriterParams) -> Result<Self> {
        let identity = Identity { database_id, number };
        let compressor = Compressor::new(params.compression)?;
        let file = disk.create(&identity.file_name())?;
        Ok(Self {
            output: Output { file, identity, buffer: Vec::new(), appended: 0 },
            compressor,
            block_bytes: params.block_bytes.min(VALUE_BYTES_MAX),
            layout: Arc::clone(&params.layout),
            packed: PackedBuilder::default(),
            opaque: OpaqueBuilder::default(),
            last: Vec::new(),
            raw: Vec::new(),
            fence: None,
            filter: params.filter.then(FilterBuilder::default),
            meta: SegmentMeta {
                number,
                file_bytes: 0,
                entries: 0,
                tombstones: 0,
                smallest: Vec::new(),
                largest: Vec::new(),
                sequence_min: u64::MAX,
                sequence_max: 0,
            },
            sequence: 0,
        })
    }

    /// Adds a version that sorts behind all others; a caller that mixes up the order is a bug, and stopped.
    pub(crate) fn add(&mut self, entry: Entry) -> Result<()> {
        within("key", entry.key.len(), KEY_BYTES_MAX)?;
        within("value", entry.value.map_or(0, <[u8]>::len), VALUE_BYTES_MAX)?;
        let first = self.meta.entries == 0;
        let last = (self.meta.largest.as_slice(), Reverse(self.sequence));
        assert!(first || last < (entry.key, Reverse(entry.sequence)), "entries are added in order");
        if first {
            self.meta.smallest = entry.key.to_vec();
        }
        match entry.value {
            Some(value) if entry.sequence == 0 && self.layout.is_columns() => self.push_packed(entry.key, value)?,
            _ => {
                self.close_packed(entry.key)?;
                self.push_opaque(&entry)?;
            }
        }
        if let Some(filter) = &mut self.filter
            && (first || self.meta.largest != entry.key)
        {
            filter.add(entry.key);
        }
        self.count(&entry);
        Ok(())
    }

    fn count(&mut self, entry: &Entry) {
        self.meta.entries += 1;
        self.meta.tombstones += u64::from(entry.value.is_none());
        self.meta.sequence_min = self.meta.sequence_min.min(entry.sequence);
        self.meta.sequence_max = self.meta.sequence_max.max(entry.sequence);
        self.meta.largest.clear();
        self.meta.largest.extend_from_slice(entry.key);
        self.sequence = entry.sequence;
    }

    /// The key added last.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.meta.largest
    }

    /// Whether it is time for another segment: it has about `segment_bytes` by now, written or in the open block before
    /// that is compressed; or its filter covers as many keys as a filter is made for.
    pub(crate) fn is_full(&self, segment_bytes: u64) -> bool {
        let open = (self.opaque.raw_bytes() + self.packed.bytes()) as u64;
        self.output.position() + open >= segment_bytes || self.filter.as_ref().is_some_and(FilterBuilder::is_full)
    }

    /// Writes what remains and makes the file durable. Its name is for the caller to make durable, by syncing the
    /// directory before a manifest names it. A segment without entries has no bounds, so there has to be one.
    pub(crate) fn finish(mut self) -> Result<SegmentMeta> {
        assert!(self.meta.entries > 0, "a segment holds at least one entry");
        let largest = std::mem::take(&mut self.meta.largest);
        self.meta.largest.clone_from(&largest);
        self.close_packed(&largest)?;
        self.close_opaque(&largest)?;
        let fence = self.fence.take().expect("closing a block begins the fence");
        let fence_offset = self.output.position();
        self.output.put_chunks(LAYOUT_FENCE, fence.bytes())?;
        let filter_offset = self.output.position();
        if let Some(filter) = self.filter.take() {
            self.output.put_chunks(LAYOUT_FILTER, &filter.finish())?;
        }
        let SegmentMeta { entries, tombstones, sequence_min, sequence_max, .. } = self.meta;
        let blocks = fence.blocks();
        let footer = Footer { fence_offset, filter_offset, blocks, entries, tombstones, sequence_min, sequence_max };
        self.meta.file_bytes = self.output.finish(&footer)?;
        Ok(self.meta)
    }

    fn push_packed(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.close_opaque(key)?;
        if self.packed.is_full(key.len() + value.len(), self.block_bytes.saturating_mul(PACKED_FACTOR)) {
            self.close_packed(key)?;
        }
        self.packed.push(key, value);
        Ok(())
    }

    fn push_opaque(&mut self, entry: &Entry) -> Result<()> {
        if !self.opaque.is_empty() && self.opaque.raw_bytes_with(entry) > self.block_bytes {
            self.close_opaque(entry.key)?;
        }
        self.opaque.push(entry);
        self.last.clear();
        self.last.extend_from_slice(entry.key);
        Ok(())
    }

    /// Writes the open block of columns, and what does not fit into one as opaque blocks; `next` is the key behind it.
    fn close_packed(&mut self, next: &[u8]) -> Result<()> {
        if self.packed.is_empty() {
            return Ok(());
        }
        let mut packed = std::mem::take(&mut self.packed);
        let whole = 0..packed.len();
        if !self.put_columns(&mut packed, &whole, next)? {
            for Run { rows, packed: follow } in packed.runs(&self.layout) {
                let next = if rows.end == packed.len() { next } else { &packed.entry(rows.end).0.to_vec() };
                if !follow || !self.put_columns(&mut packed, &rows, next)? {
                    self.put_bytes(&packed, rows, next)?;
                }
            }
        }
        self.packed = packed;
        self.packed.clear();
        Ok(())
    }

    /// Writes these rows as one block of columns; `false` if that cannot be.
    fn put_columns(&mut self, packed: &mut PackedBuilder, rows: &Range<usize>, next: &[u8]) -> Result<bool> {
        if !packed.write(rows, &self.layout, &mut self.raw) {
            return Ok(false);
        }
        self.last.clear();
        self.last.extend_from_slice(packed.entry(rows.end - 1).0);
        self.put_block(LAYOUT_COLUMNS, rows.len(), next).map(|()| true)
    }

    /// Writes these rows as opaque blocks.
    fn put_bytes(&mut self, packed: &PackedBuilder, rows: Range<usize>, next: &[u8]) -> Result<()> {
        for row in rows {
            let (key, value) = packed.entry(row);
            self.push_opaque(&Entry { key, sequence: 0, value: Some(value) })?;
        }
        self.close_opaque(next)
    }

    /// Writes the open opaque block; `next` is the key behind it.
    fn close_opaque(&mut self, next: &[u8]) -> Result<()> {
        if self.opaque.is_empty() {
            return Ok(());
        }
        let entries = self.opaque.len();
        self.opaque.finish(&mut self.raw);
        self.put_block(LAYOUT_BYTES, entries, next)
    }

    fn put_block(&mut self, layout: u8, entries: usize, next: &[u8]) -> Result<()> {
        let block_bytes = self.output.put(layout, &self.raw, &mut self.compressor)?;
        let fence = self.fence.get_or_insert_with(|| FenceBuilder::new(&self.meta.smallest));
        fence.push(fence::separator(&self.last, next), block_bytes, entries as u64);
        Ok(())
    }
}

/// The end of the file, where everything goes.
struct Output {
    file: Box<dyn DiskFile>,
    identity: Identity,
    buffer: Vec<u8>,
    /// Bytes that were given to the file.
    appended: u64,
}

impl Output {
    fn position(&self) -> u64 {
        self.appended + self.buffer.len() as u64
    }

    /// Adds one block and returns its length in the file.
    fn put(&mut self, layout: u8, raw: &[u8], compressor: &mut Compressor) -> Result<u64> {
        let offset = self.position();
        frame::seal(self.identity, offset, layout, raw, compressor, &mut self.buffer);
        let block_bytes = self.position() - offset;
        if self.buffer.len() >= APPEND_BYTES {
            self.append()?;
        }
        Ok(block_bytes)
    }

    /// Adds `bytes` cut into blocks. They are not compressed, so what they take in memory is bounded by the file.
    fn put_chunks(&mut self, layout: u8, bytes: &[u8]) -> Result<()> {
        for chunk in bytes.chunks(CHUNK_BYTES) {
            self.put(layout, chunk, &mut Compressor::None)?;
        }
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.appended += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self, footer: &Footer) -> Result<u64> {
        footer.encode(self.identity, self.position(), &mut self.buffer);
        self.append()?;
        self.file.sync()?;
        Ok(self.appended)
    }
}
