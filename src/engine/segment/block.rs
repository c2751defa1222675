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
//! The file has no offset table: the pass that checks a block when it is first read builds one, and beside it the
//! first bytes of each suffix, where a search makes most of its steps. After that pass every entry is addressed
//! directly and nothing about it can fail.

use std::cmp::Reverse;
use std::ops::Range;

use super::frame::Flaw;
use crate::engine::batch::KEY_BYTES_MAX;
use crate::engine::codec::{self, Reader};
use crate::engine::cursor::Entry;

/// Collects the entries of one block.
#[derive(Default)]
pub(super) struct BlockBuilder {
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

impl BlockBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Raw length of the block, at most.
    pub(super) fn raw_bytes(&self) -> usize {
        raw_bytes(self.bytes.len() + self.overhead_bytes, self.entries.len(), self.prefix_len)
    }

    /// Raw length of the block, at most, once `entry` is in it.
    pub(super) fn raw_bytes_with(&self, entry: &Entry) -> usize {
        let prefix_len = common_prefix_len(&self.bytes[..self.prefix_len], entry.key);
        let bytes = self.bytes.len() + self.overhead_bytes + entry_bytes(entry) + overhead_bytes(entry);
        raw_bytes(bytes, self.entries.len() + 1, prefix_len)
    }

    /// Adds an entry that sorts behind all others.
    pub(super) fn push(&mut self, entry: &Entry) {
        self.prefix_len = if self.is_empty() {
            entry.key.len()
        } else {
            common_prefix_len(&self.bytes[..self.prefix_len], entry.key)
        };
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
    bytes - entries * prefix_len + prefix_len + varint_bytes(entries) + varint_bytes(prefix_len)
}

fn entry_bytes(entry: &Entry) -> usize {
    entry.key.len() + entry.value.map_or(0, <[u8]>::len)
}

fn overhead_bytes(entry: &Entry) -> usize {
    let value = entry.value.map_or(0, |value| varint_bytes(value.len()));
    varint_bytes(entry.key.len() << 1) + varint_bytes(entry.sequence as usize) + value
}

fn varint_bytes(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

pub(super) fn common_prefix_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
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
pub(crate) struct Block {
    bytes: Box<[u8]>,
    prefix: Range<usize>,
    /// Where each entry begins.
    offsets: Box<[u32]>,
    /// First four bytes of each suffix, comparable as a number.
    heads: Box<[u32]>,
}

/// What a block says about a key.
pub(super) enum Lookup<'a> {
    /// All of its entries come before what was asked for.
    Before,
    Absent,
    Found(Option<&'a [u8]>),
}

impl Block {
    /// Checks all there is to check inside one block.
    pub(super) fn decode(raw: Vec<u8>) -> Result<Self, Flaw> {
        let bytes = raw.into_boxed_slice();
        let (count, prefix) = decode_head(&bytes)?;
        let table = || {
            let mut table = Vec::new();
            let enough = table.try_reserve_exact(count);
            enough.map(|()| table).map_err(|_| Flaw::new("block", "entries that fit in memory", count))
        };
        let mut block = Self { prefix, offsets: Box::default(), heads: Box::default(), bytes };
        let (mut offsets, mut heads) = (table()?, table()?);
        block.decode_entries(count, &mut offsets, &mut heads)?;
        (block.offsets, block.heads) = (offsets.into_boxed_slice(), heads.into_boxed_slice());
        Ok(block)
    }

    fn decode_entries(&self, count: usize, offsets: &mut Vec<u32>, heads: &mut Vec<u32>) -> Result<(), Flaw> {
        let mut offset = self.prefix.end;
        let mut last: Option<(&[u8], Reverse<u64>)> = None;
        for index in 0..count {
            let (place, end) = place_at(&self.bytes, offset)
                .ok_or_else(|| Flaw::new("block entry", format!("{count} entries"), index))?;
            let suffix = &self.bytes[place.suffix];
            if self.prefix.len() + suffix.len() > KEY_BYTES_MAX {
                return Err(Flaw::new("key length", format!("at most {KEY_BYTES_MAX}"), suffix.len()));
            }
            let position = Some((suffix, Reverse(place.sequence)));
            if last >= position {
                return Err(Flaw::new("order of entries", "ascending keys", format!("entry {index} before its place")));
            }
            last = position;
            offsets.push(offset as u32);
            heads.push(head(suffix));
            offset = end;
        }
        if offset != self.bytes.len() {
            return Err(Flaw::new("end of a block", self.bytes.len(), offset));
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// What all keys begin with.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.bytes[self.prefix.clone()]
    }

    #[inline]
    pub(super) fn place(&self, index: usize) -> Place {
        let offset = self.offsets[index] as usize;
        place_at(&self.bytes, offset).expect("every entry was decoded once before").0
    }

    #[inline]
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Copies the key of an entry to `key`.
    pub(super) fn copy_key(&self, index: usize, key: &mut Vec<u8>) {
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
        let head = head(suffix);
        let below = self.heads.partition_point(|&other| other < head);
        if self.heads.get(below) != Some(&head) {
            return below;
        }
        let ties = self.heads[below..].partition_point(|&other| other == head);
        below
            + partition_point(ties, |index| {
                let place = self.place(below + index);
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
        Lookup::Found(place.value.map(|value| self.bytes(value)))
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> u64 {
        let tables = self.len() * 2 * size_of::<u32>();
        (self.bytes.len() + tables + size_of::<Self>()) as u64
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

/// The first four bytes as a number that sorts as they do; what is missing counts as zero.
#[inline]
fn head(bytes: &[u8]) -> u32 {
    if let Some(head) = bytes.first_chunk() {
        return u32::from_be_bytes(*head);
    }
    let mut head = [0; 4];
    head[..bytes.len()].copy_from_slice(bytes);
    u32::from_be_bytes(head)
}

/// How many of `0..len` are `before`, when all that are come first.
pub(super) fn partition_point(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
