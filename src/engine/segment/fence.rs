//! The fence: which data block a key is in.
//!
//! ```text
//! fence := smallest:length-prefixed post*
//! post  := separator:length-prefixed block_bytes:varint        one per data block, in order
//! ```
//!
//! Data blocks lie end to end from the start of the file, so their lengths are their offsets, and cannot overlap. A
//! separator lies at or above the last key of its block and below the first key of the next one, except where versions
//! of one key continue in the next block: there it is that key. The last separator is the largest key of the segment.
//!
//! Separators are not shortened against one another: a few bytes on disk could then ask for any amount of memory.

use super::frame::{Flaw, HEADER_BYTES, RAW_BYTES_MAX};
use super::heads::{common_prefix_len, head_u64, rank};
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

    pub(super) fn push(&mut self, separator: &[u8], block_bytes: u64) {
        codec::put_length_prefixed(&mut self.bytes, separator);
        codec::put_varint(&mut self.bytes, block_bytes);
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
    smallest: Vec<u8>,
    /// What every key of the segment and every separator begins with.
    prefix_len: usize,
    /// The head of each separator behind the prefix.
    heads: Vec<u64>,
    /// The separators one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<u64>,
    /// Where each block begins, and at last where the data ends.
    offsets: Vec<u64>,
}

impl Fence {
    /// `blocks` and `data_bytes` are what the footer says; they have to agree with the fence.
    pub(super) fn decode(bytes: &[u8], blocks: u64, data_bytes: u64) -> Result<Self, Flaw> {
        let mut reader = Reader::new(bytes);
        let smallest = reader.length_prefixed().ok_or_else(|| Flaw::new("fence", "a smallest key", "none"))?;
        // The shortest post has two bytes: this bounds what is allocated.
        let count = usize::try_from(blocks).ok().filter(|count| (1..=reader.remaining() / 2).contains(count));
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
        fence.set_heads();
        Ok(fence)
    }

    fn with_room_for(count: usize, bytes: usize, smallest: &[u8]) -> Result<Self, Flaw> {
        let mut fence = Self {
            smallest: smallest.to_vec(),
            prefix_len: 0,
            heads: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            offsets: vec![0],
        };
        let reserved = fence.bytes.try_reserve_exact(bytes);
        let reserved = reserved.and_then(|()| fence.heads.try_reserve_exact(count));
        let reserved = reserved.and_then(|()| fence.ends.try_reserve_exact(count));
        let reserved = reserved.and_then(|()| fence.offsets.try_reserve_exact(count));
        reserved.map_err(|_| Flaw::new("fence", "blocks that fit in memory", count))?;
        Ok(fence)
    }

    fn decode_post(&mut self, reader: &mut Reader) -> Result<(), Flaw> {
        let short = || Flaw::new("fence", "a separator and a length for each block", "an early end");
        let separator = reader.length_prefixed().ok_or_else(short)?;
        let block_bytes = reader.varint().ok_or_else(short)?;
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
        self.bytes.extend_from_slice(separator);
        self.ends.push(self.bytes.len() as u64);
        self.offsets.push(end);
        Ok(())
    }

    fn set_heads(&mut self) {
        self.prefix_len = common_prefix_len(&self.smallest, self.largest());
        for block in 0..self.len() {
            let head = head_u64(&self.separator(block)[self.prefix_len..]);
            self.heads.push(head);
        }
    }

    /// Number of data blocks.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn smallest(&self) -> &[u8] {
        &self.smallest
    }

    pub(super) fn largest(&self) -> &[u8] {
        self.separator(self.len() - 1)
    }

    pub(super) fn separator(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[block] as usize]
    }

    /// No key of `block` lies below.
    pub(super) fn floor(&self, block: usize) -> &[u8] {
        block.checked_sub(1).map_or(&self.smallest, |before| self.separator(before))
    }

    /// Offset and length of a block in the file.
    pub(super) fn extent(&self, block: usize) -> (u64, usize) {
        let offset = self.offsets[block];
        (offset, (self.offsets[block + 1] - offset) as usize)
    }

    fn data_bytes(&self) -> u64 {
        self.offsets.last().copied().unwrap_or_default()
    }

    /// The first block that can hold `key`, or a later key; the number of blocks if there is none.
    pub(super) fn find(&self, key: &[u8]) -> usize {
        let prefix = &self.smallest[..self.prefix_len];
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.len() };
        };
        rank(self.len(), |block| self.heads[block], head_u64(rest), |block| self.separator(block) < key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(smallest: &[u8], posts: &[(&[u8], u64)]) -> Vec<u8> {
        let mut builder = FenceBuilder::new(smallest);
        for (separator, block_bytes) in posts {
            builder.push(separator, *block_bytes);
        }
        builder.bytes().to_vec()
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
        let fence = Fence::decode(&encode(b"", &posts), 7, 210).expect("a sound fence");
        for key in
            [&b""[..], b"a", b"k", b"k\0", b"k\0\0", b"kk", b"kkkkkkkkk", b"kkkkkkkkk\0", b"kl", b"y", b"z", b"z\0"]
        {
            let expected = separators.iter().position(|separator| *separator >= key).unwrap_or(7);
            assert_eq!(fence.find(key), expected, "{key:?}");
        }
        assert_eq!(fence.extent(6), (180, 30));
    }

    #[test]
    fn disorder_and_wrong_counts_are_refused() {
        let sound = encode(b"a", &[(b"b", 30), (b"c", 40)]);
        assert!(Fence::decode(&sound, 2, 70).is_ok());
        for (blocks, data_bytes) in [(0, 70), (1, 30), (3, 70), (u64::MAX, 70), (2, 71), (2, 0)] {
            assert!(Fence::decode(&sound, blocks, data_bytes).is_err(), "{blocks} blocks, {data_bytes} bytes");
        }
        for posts in
            [[(&b"c"[..], 30), (&b"b"[..], 40)], [(&b"A"[..], 30), (&b"B"[..], 40)], [(&b"b"[..], 66), (&b"c"[..], 4)]]
        {
            assert!(Fence::decode(&encode(b"a", &posts), 2, 70).is_err(), "{posts:?}");
        }
        let overflowing = encode(b"a", &[(b"b", u64::MAX), (b"c", 71)]);
        assert!(Fence::decode(&overflowing, 2, 70).is_err());
    }
}
