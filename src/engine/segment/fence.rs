//! The fence: which data block a key is in.
//!
//! ```text
//! fence := smallest:length-prefixed post*
//! post  := separator:length-prefixed block_bytes:varint entries:varint        one per data block, in order
//! ```
//!
//! Data blocks lie end to end from the start of the file, so their lengths are their offsets, and cannot overlap. A
//! separator lies at or above the last key of its block and below the first key of the next one, except where versions
//! of one key continue in the next block: there it is that key. The last separator is the largest key of the segment.
//!
//! With the entries of every block known, a key is counted to without looking at the blocks before it.
//!
//! Separators are not shortened against one another: a few bytes on disk could then ask for any amount of memory.

use std::collections::TryReserveError;

use super::footer::{Footer, agree};
use super::frame::{Flaw, HEADER_BYTES, RAW_BYTES_MAX};
use super::heads::common_prefix_len;
use super::separators::Separators;
use crate::engine::codec::{self, Reader};

/// Collects the fence while data blocks are written.
pub(super) struct FenceBuilder {
    bytes: Vec<u8>,
    blocks: u64,
}

impl FenceBuilder {
    pub(super) fn new(smallest: &[u8]) -> Self {
        let mut bytes = Vec::new();
        codec::put_length_prefixed(&mut bytes, smallest);
        Self { bytes, blocks: 0 }
    }

    pub(super) fn push(&mut self, separator: &[u8], block_bytes: u64, entries: u64) {
        codec::put_length_prefixed(&mut self.bytes, separator);
        codec::put_varint(&mut self.bytes, block_bytes);
        codec::put_varint(&mut self.bytes, entries);
        self.blocks += 1;
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A short key that is at least `last` and, if `last` and `next` differ, less than `next`.
pub(super) fn separator<'a>(last: &'a [u8], next: &'a [u8]) -> &'a [u8] {
    let len = common_prefix_len(last, next) + 1;
    if len < last.len() && len < next.len() { &next[..len] } else { last }
}

/// A fence in memory, in flat arrays.
pub(super) struct Fence {
    separators: Separators,
    /// Where each block begins, and at last where the data ends.
    offsets: Vec<u64>,
    /// How many entries come before each block, and at last how many there are.
    entries: Vec<u64>,
}

impl Fence {
    /// What the footer says has to agree with the fence.
    pub(super) fn decode(bytes: &[u8], footer: &Footer) -> Result<Self, Flaw> {
        let Footer { blocks, fence_offset: data_bytes, .. } = *footer;
        let mut reader = Reader::new(bytes);
        let smallest = reader.length_prefixed().ok_or_else(|| Flaw::new("fence", "a smallest key", "none"))?;
        // The shortest post has three bytes: this bounds what is allocated.
        let count = usize::try_from(blocks).ok().filter(|count| (1..=reader.remaining() / 3).contains(count));
        let count = count.ok_or_else(|| Flaw::new("number of blocks", "what the fence has room for", blocks))?;
        let mut fence = Self::with_room_for(count, reader.remaining(), smallest)?;
        for _ in 0..count {
            fence.decode_post(&mut reader)?;
        }
        if !reader.is_empty() {
            return Err(Flaw::new("end of the fence", "no bytes", reader.remaining()));
        }
        if fence.data_bytes() != data_bytes {
            return Err(Flaw::new("length of the data blocks", data_bytes, fence.data_bytes()));
        }
        agree("entries of all blocks", footer.entries, fence.entries_before(fence.len()))?;
        fence.separators.set_heads();
        Ok(fence)
    }

    fn with_room_for(count: usize, bytes: usize, smallest: &[u8]) -> Result<Self, Flaw> {
        let reserve = || {
            let separators = Separators::with_room_for(count, bytes, smallest)?;
            let (mut offsets, mut entries) = (Vec::new(), Vec::new());
            offsets.try_reserve_exact(count + 1)?;
            entries.try_reserve_exact(count + 1)?;
            offsets.push(0);
            entries.push(0);
            Ok(Self { separators, offsets, entries })
        };
        reserve().map_err(|_: TryReserveError| Flaw::new("fence", "blocks that fit in memory", count))
    }

    fn decode_post(&mut self, reader: &mut Reader) -> Result<(), Flaw> {
        let short = || Flaw::new("fence", "a separator, a length and a count for each block", "an early end");
        let separator = reader.length_prefixed().ok_or_else(short)?;
        let block_bytes = reader.varint().ok_or_else(short)?;
        let entries = reader.varint().ok_or_else(short)?;
        if separator < self.floor(self.len()) {
            return Err(Flaw::new(
                "order of separators",
                "ascending",
                format!("block {} below the one before", self.len()),
            ));
        }
        let extents = HEADER_BYTES as u64..=(HEADER_BYTES + RAW_BYTES_MAX) as u64;
        let end = self.data_bytes().checked_add(block_bytes).filter(|_| extents.contains(&block_bytes));
        let end = end.ok_or_else(|| Flaw::new("length of a block", format!("one in {extents:?}"), block_bytes))?;
        self.separators.push(separator);
        self.offsets.push(end);
        let before = self.entries_before(self.len() - 1);
        // No entry is shorter than a byte. A bound for each block is one for the sums over all segments there may be.
        let possible = 1..=RAW_BYTES_MAX as u64;
        let sum = before.checked_add(entries).filter(|_| possible.contains(&entries));
        self.entries.push(sum.ok_or_else(|| Flaw::new("entries of a block", format!("{possible:?}"), entries))?);
        Ok(())
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> usize {
        self.separators.resident_bytes() + (self.offsets.capacity() + self.entries.capacity()) * size_of::<u64>()
    }

    /// Number of data blocks.
    pub(super) fn len(&self) -> usize {
        self.separators.len()
    }

    pub(super) fn smallest(&self) -> &[u8] {
        self.separators.smallest()
    }

    pub(super) fn largest(&self) -> &[u8] {
        self.separator(self.len() - 1)
    }

    pub(super) fn separator(&self, block: usize) -> &[u8] {
        self.separators.get(block)
    }

    /// No key of `block` lies below.
    pub(super) fn floor(&self, block: usize) -> &[u8] {
        self.separators.floor(block)
    }

    /// Offset and length of a block in the file.
    pub(super) fn extent(&self, block: usize) -> (u64, usize) {
        let offset = self.offsets[block];
        (offset, (self.offsets[block + 1] - offset) as usize)
    }

    /// How many entries the blocks before `block` hold.
    pub(super) fn entries_before(&self, block: usize) -> u64 {
        self.entries[block]
    }

    fn data_bytes(&self) -> u64 {
        self.offsets.last().copied().unwrap_or_default()
    }

    /// The first block that can hold `key`, or a later key; the number of blocks if there is none.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> usize {
        self.separators.find(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(smallest: &[u8], posts: &[(&[u8], u64)]) -> Vec<u8> {
        let mut builder = FenceBuilder::new(smallest);
        for (separator, block_bytes) in posts {
            builder.push(separator, *block_bytes, 2);
        }
        builder.bytes().to_vec()
    }

    fn decode(bytes: &[u8], blocks: u64, data_bytes: u64, entries: u64) -> Result<Fence, Flaw> {
        let numbers = Footer {
            filter_offset: data_bytes,
            tombstones: 0,
            sequence_min: 0,
            sequence_max: 0,
            blocks,
            entries,
            fence_offset: data_bytes,
        };
        Fence::decode(bytes, &numbers)
    }

    #[test]
    fn a_separator_parts_any_two_keys() {
        let keys: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"ab", b"abcdef", b"b", b"\xFF\xFF"];
        for (index, last) in keys.iter().enumerate() {
            for next in &keys[index + 1..] {
                let separator = separator(last, next);
                assert!(*last <= separator && separator < *next, "{last:?} {separator:?} {next:?}");
            }
            assert_eq!(separator(last, last), *last);
        }
        assert_eq!(separator(b"apple pie", b"banana split"), b"b");
    }

    #[test]
    fn find_gives_the_first_block_whose_separator_is_not_below() {
        let separators: [&[u8]; 7] = [b"k", b"k", b"k\0", b"kkkkkkkkk", b"kkkkkkkkkk", b"kl", b"z"];
        let posts = separators.map(|separator| (separator, 30));
        let fence = decode(&encode(b"", &posts), 7, 210, 14).expect("a sound fence");
        for key in
            [&b""[..], b"a", b"k", b"k\0", b"k\0\0", b"kk", b"kkkkkkkkk", b"kkkkkkkkk\0", b"kl", b"y", b"z", b"z\0"]
        {
            let expected = separators.iter().position(|separator| *separator >= key).unwrap_or(7);
            assert_eq!(fence.find(key), expected, "{key:?}");
        }
        assert_eq!(fence.extent(6), (180, 30));
        assert_eq!((fence.entries_before(0), fence.entries_before(6), fence.entries_before(7)), (0, 12, 14));
    }

    #[test]
    fn disorder_and_wrong_counts_are_refused() {
        let sound = encode(b"a", &[(b"b", 30), (b"c", 40)]);
        assert!(decode(&sound, 2, 70, 4).is_ok());
        for (blocks, data_bytes, entries) in
            [(0, 70, 4), (1, 30, 2), (3, 70, 4), (u64::MAX, 70, 4), (2, 71, 4), (2, 0, 4), (2, 70, 5)]
        {
            assert!(decode(&sound, blocks, data_bytes, entries).is_err(), "{blocks} blocks, {data_bytes} bytes");
        }
        for posts in
            [[(&b"c"[..], 30), (&b"b"[..], 40)], [(&b"A"[..], 30), (&b"B"[..], 40)], [(&b"b"[..], 66), (&b"c"[..], 4)]]
        {
            assert!(decode(&encode(b"a", &posts), 2, 70, 4).is_err(), "{posts:?}");
        }
        for entries in [0, RAW_BYTES_MAX as u64 + 1, 1 << 63, u64::MAX] {
            let mut builder = FenceBuilder::new(b"a");
            builder.push(b"b", 30, entries);
            assert!(decode(builder.bytes(), 1, 30, entries).is_err(), "a block of {entries} entries");
        }
        let overflowing = encode(b"a", &[(b"b", u64::MAX), (b"c", 71)]);
        assert!(decode(&overflowing, 2, 70, 4).is_err());
    }
}
