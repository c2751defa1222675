//! The entries of one data block: opaque keys and values, the layout `bytes`.
//!
//! ```text
//! raw   := count:varint prefix:length-prefixed entry{count}
//! entry := tag:varint suffix sequence:varint value_len:varint value      tag = suffix_len << 1 | 1, a value
//!        | tag:varint suffix sequence:varint                             tag = suffix_len << 1, a tombstone
//! ```
//!
//! `prefix` is what all keys of the block begin with, so a key is `prefix suffix`. Entries are sorted by key ascending
//! and sequence descending, each place taken once. A settled entry, with sequence 0, spends one byte on it.
//!
//! The file has no offset table: the pass that checks a block when it is first read builds one, with the head of each
//! suffix (heads.rs). After that pass every entry is addressed directly and nothing about it can fail.

use std::cmp::Reverse;
use std::ops::Range;

use super::block::Lookup;
use super::frame::Flaw;
use super::heads::{common_prefix_len, head_u32, rank};
use crate::engine::batch::KEY_BYTES_MAX;
use crate::engine::codec::{self, Reader, varint_bytes};
use crate::engine::cursor::Entry;
use crate::engine::stored::Stored;

/// Collects the entries of one block.
#[derive(Default)]
pub(super) struct OpaqueBuilder {
    /// Key and value of each entry, one after the other.
    bytes: Vec<u8>,
    entries: Vec<Pending>,
    prefix_len: usize,
    overhead_bytes: usize,
}

struct Pending {
    key_len: usize,
    sequence: u64,
    value_len: Option<usize>,
}

impl OpaqueBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Raw length of the block, at most.
    pub(super) fn raw_bytes(&self) -> usize {
        raw_bytes(self.bytes.len() + self.overhead_bytes, self.entries.len(), self.prefix_len)
    }

    /// Raw length of the block, at most, once `entry` is in it.
    pub(super) fn raw_bytes_with(&self, entry: &Entry) -> usize {
        let prefix_len = self.prefix_len_with(entry.key);
        let bytes = self.bytes.len() + self.overhead_bytes + entry_bytes(entry) + overhead_bytes(entry);
        raw_bytes(bytes, self.entries.len() + 1, prefix_len)
    }

    fn prefix_len_with(&self, key: &[u8]) -> usize {
        if self.is_empty() { key.len() } else { common_prefix_len(&self.bytes[..self.prefix_len], key) }
    }

    /// Adds an entry that sorts behind all others.
    pub(super) fn push(&mut self, entry: &Entry) {
        self.prefix_len = self.prefix_len_with(entry.key);
        self.overhead_bytes += overhead_bytes(entry);
        self.bytes.extend_from_slice(entry.key);
        self.bytes.extend_from_slice(entry.value.unwrap_or_default());
        let value_len = entry.value.map(<[u8]>::len);
        self.entries.push(Pending { key_len: entry.key.len(), sequence: entry.sequence, value_len });
    }

    /// Writes the block to `raw` and begins the next one.
    pub(super) fn finish(&mut self, raw: &mut Vec<u8>) {
        raw.clear();
        codec::put_varint(raw, self.entries.len() as u64);
        codec::put_length_prefixed(raw, &self.bytes[..self.prefix_len]);
        let mut rest = self.bytes.as_slice();
        for pending in &self.entries {
            let (key, behind) = rest.split_at(pending.key_len);
            let (value, behind) = behind.split_at(pending.value_len.unwrap_or_default());
            rest = behind;
            let entry = Entry { key, sequence: pending.sequence, value: pending.value_len.map(|_| value) };
            put_entry(raw, self.prefix_len, &entry);
        }
        self.bytes.clear();
        self.entries.clear();
        self.prefix_len = 0;
        self.overhead_bytes = 0;
    }
}

/// `bytes` counts the keys whole; the block holds what they have in common once.
fn raw_bytes(bytes: usize, entries: usize, prefix_len: usize) -> usize {
    bytes - entries * prefix_len + prefix_len + varint_bytes(entries as u64) + varint_bytes(prefix_len as u64)
}

fn entry_bytes(entry: &Entry) -> usize {
    entry.key.len() + entry.value.map_or(0, <[u8]>::len)
}

fn overhead_bytes(entry: &Entry) -> usize {
    let value = entry.value.map_or(0, |value| varint_bytes(value.len() as u64));
    varint_bytes((entry.key.len() as u64) << 1) + varint_bytes(entry.sequence) + value
}

fn put_entry(raw: &mut Vec<u8>, prefix_len: usize, entry: &Entry) {
    let suffix = &entry.key[prefix_len..];
    codec::put_varint(raw, (suffix.len() as u64) << 1 | u64::from(entry.value.is_some()));
    raw.extend_from_slice(suffix);
    codec::put_varint(raw, entry.sequence);
    if let Some(value) = entry.value {
        codec::put_length_prefixed(raw, value);
    }
}

/// Where in the raw bytes the parts of an entry lie.
pub(super) struct Place {
    pub(super) suffix: Range<usize>,
    pub(super) sequence: u64,
    pub(super) value: Option<Range<usize>>,
}

/// The entry at `offset`; `None` if there is none. The place ends where the next entry begins.
#[inline]
fn place_at(bytes: &[u8], offset: usize) -> Option<(Place, usize)> {
    let mut reader = Reader::new(bytes.get(offset..)?);
    let tag = reader.varint()?;
    let suffix_len = usize::try_from(tag >> 1).ok()?;
    let suffix = bytes.len() - reader.remaining();
    reader.bytes(suffix_len)?;
    let sequence = reader.varint()?;
    let value = if tag & 1 == 1 {
        let len = reader.length_prefixed()?.len();
        let end = bytes.len() - reader.remaining();
        Some(end - len..end)
    } else {
        None
    };
    Some((Place { suffix: suffix..suffix + suffix_len, sequence, value }, bytes.len() - reader.remaining()))
}

/// A decoded block. Sound by construction: it holds at least one entry, and they are in order.
#[derive(Debug)]
pub(crate) struct OpaqueBlock {
    bytes: Box<[u8]>,
    prefix: Range<usize>,
    rows: Box<[Row]>,
}

/// What a search needs of an entry and what reading it begins with, side by side: one cache line for both.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The head of the suffix.
    head: u32,
    /// Where the entry begins.
    offset: u32,
}

impl OpaqueBlock {
    /// Checks all there is to check inside one block.
    pub(super) fn decode(raw: &[u8]) -> Result<Self, Flaw> {
        let (count, prefix) = decode_head(raw)?;
        let mut rows = Vec::new();
        rows.try_reserve_exact(count).map_err(|_| Flaw::new("block", "entries that fit in memory", count))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(raw.len()).map_err(|_| Flaw::new("block", "bytes that fit in memory", raw.len()))?;
        bytes.extend_from_slice(raw);
        let mut block = Self { bytes: bytes.into_boxed_slice(), prefix, rows: Box::default() };
        block.decode_entries(count, &mut rows)?;
        block.rows = rows.into_boxed_slice();
        Ok(block)
    }

    fn decode_entries(&self, count: usize, rows: &mut Vec<Row>) -> Result<(), Flaw> {
        let mut offset = self.prefix.end;
        let mut last: Option<(&[u8], Reverse<u64>)> = None;
        for index in 0..count {
            let (place, end) = place_at(&self.bytes, offset)
                .ok_or_else(|| Flaw::new("block entry", format!("{count} entries"), index))?;
            let suffix = &self.bytes[place.suffix];
            if self.prefix.len() + suffix.len() > KEY_BYTES_MAX {
                return Err(Flaw::new("length of a suffix", format!("a key of at most {KEY_BYTES_MAX}"), suffix.len()));
            }
            let position = Some((suffix, Reverse(place.sequence)));
            if last >= position {
                return Err(Flaw::new("order of entries", "ascending keys", format!("entry {index} before its place")));
            }
            last = position;
            rows.push(Row { head: head_u32(suffix), offset: offset as u32 });
            offset = end;
        }
        if offset != self.bytes.len() {
            return Err(Flaw::new("end of a block", self.bytes.len(), offset));
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What all keys begin with.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.bytes[self.prefix.clone()]
    }

    #[inline]
    pub(super) fn place(&self, index: usize) -> Place {
        let offset = self.rows[index].offset as usize;
        place_at(&self.bytes, offset).expect("every entry was decoded once before").0
    }

    #[inline]
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Replaces `key` with the key of an entry.
    pub(super) fn write_key(&self, index: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(self.bytes(self.place(index).suffix));
    }

    /// How many entries come before `(key, sequence)`.
    pub(super) fn rank(&self, key: &[u8], sequence: u64) -> usize {
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.len() };
        };
        let head = |index: usize| u64::from(self.rows[index].head);
        rank(self.len(), head, head_u32(suffix).into(), |index| {
            let place = self.place(index);
            (self.bytes(place.suffix), Reverse(place.sequence)) < (suffix, Reverse(sequence))
        })
    }

    /// The newest version of `key` that is not above `sequence`.
    pub(super) fn lookup(&self, key: &[u8], sequence: u64) -> Lookup<'_> {
        let index = self.rank(key, sequence);
        if index == self.len() {
            return Lookup::Before;
        }
        let place = self.place(index);
        if key.strip_prefix(self.prefix()) != Some(self.bytes(place.suffix)) {
            return Lookup::Absent;
        }
        Lookup::Found(place.value.map(|value| Stored::Bytes(self.bytes(value))))
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> u64 {
        (self.bytes.len() + size_of_val(&*self.rows) + size_of::<Self>()) as u64
    }
}

fn decode_head(bytes: &[u8]) -> Result<(usize, Range<usize>), Flaw> {
    let flaw = |found: &str| Flaw::new("head of a block", "an entry count and a prefix", found);
    let mut reader = Reader::new(bytes);
    let count = reader.varint().ok_or_else(|| flaw("neither"))?;
    let prefix_len = reader.length_prefixed().ok_or_else(|| flaw("no prefix"))?.len();
    // The shortest entry has two bytes: this bounds what is allocated.
    let count_max = reader.remaining() / 2;
    let count = usize::try_from(count).ok().filter(|count| (1..=count_max).contains(count));
    let count = count.ok_or_else(|| flaw("a count of entries that cannot be"))?;
    let end = bytes.len() - reader.remaining();
    Ok((count, end - prefix_len..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_of(raw: &[u8]) -> Result<OpaqueBlock, Flaw> {
        OpaqueBlock::decode(raw)
    }

    #[test]
    fn a_block_is_never_longer_than_foretold() {
        let long = vec![b'k'; 300];
        let mut keys: Vec<&[u8]> = vec![b"", b"k", &long[..63], &long[..64], &long[..65], &long, b"z"];
        let mut raw = Vec::new();
        while !keys.is_empty() {
            let mut builder = OpaqueBuilder::default();
            for (key, sequence) in keys.iter().zip([0, u64::MAX, 127, 128, 1 << 35, 5, 6]) {
                let entry =
                    Entry { key, sequence, value: (sequence != 5).then_some(&long[..sequence.min(200) as usize]) };
                let foretold = builder.raw_bytes_with(&entry);
                builder.push(&entry);
                assert_eq!(builder.raw_bytes(), foretold);
            }
            let foretold = builder.raw_bytes();
            builder.finish(&mut raw);
            assert!(raw.len() <= foretold && foretold <= raw.len() + keys.len(), "{} of {foretold}", raw.len());
            assert_eq!(block_of(&raw).expect("a sound block").len(), keys.len());
            keys.remove(0);
        }
    }

    #[test]
    fn what_is_not_sorted_counted_and_whole_is_no_block() {
        // Prefix "p"; tombstones "pa" at 5 and "pb" at 5.
        let sound = [2, 1, b'p', 2, b'a', 5, 2, b'b', 5];
        assert!(block_of(&sound).is_ok());
        for (what, index, byte) in [
            ("no entries", 0, 0),
            ("fewer entries than bytes", 0, 1),
            ("more entries than bytes", 0, 3),
            ("a prefix beyond the end", 1, 9),
            ("keys out of order", 4, b'c'),
            ("the same version twice", 7, b'a'),
            ("a suffix beyond the end", 6, 200),
            ("a value that is not there", 6, 3),
        ] {
            let mut raw = sound;
            raw[index] = byte;
            assert!(block_of(&raw).is_err(), "{what}");
        }
        for len in 0..sound.len() {
            assert!(block_of(&sound[..len]).is_err(), "cut at {len}");
        }
    }
}
