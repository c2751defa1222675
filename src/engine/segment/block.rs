//! A decoded data block, in either layout: opaque bytes with their versions, or columns of settled entries.

use super::frame::{Flaw, LAYOUT_BYTES, LAYOUT_COLUMNS};
use super::opaque::OpaqueBlock;
use super::packed::Packed;
use crate::engine::stored::Stored;

/// A block. Sound by construction: it holds at least one entry, and they are in order.
#[derive(Debug)]
pub(crate) enum Block {
    Opaque(OpaqueBlock),
    Packed(Packed),
}

/// What a block says about a key.
pub(super) enum Lookup<'a> {
    /// All of its entries come before what was asked for.
    Before,
    Absent,
    Found(Option<Stored<'a>>),
}

impl Block {
    /// Checks all there is to check inside one block; `None` if there is no such layout.
    pub(super) fn decode(layout: u8, raw: &[u8]) -> Option<Result<Self, Flaw>> {
        match layout {
            LAYOUT_BYTES => Some(OpaqueBlock::decode(raw).map(Self::Opaque)),
            LAYOUT_COLUMNS => Some(Packed::decode(raw).map(Self::Packed)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Opaque(block) => block.len(),
            Self::Packed(block) => block.len(),
        }
    }

    /// Replaces `key` with the key of an entry.
    #[inline]
    pub(super) fn write_key(&self, index: usize, key: &mut Vec<u8>) {
        match self {
            Self::Opaque(block) => block.write_key(index, key),
            Self::Packed(block) => block.write_key(index, key),
        }
    }

    /// Sequence number and value of an entry; no value is a tombstone.
    #[inline]
    pub(super) fn version(&self, index: usize) -> (u64, Option<Stored<'_>>) {
        match self {
            Self::Opaque(block) => {
                let place = block.place(index);
                (place.sequence, place.value.map(|value| Stored::Bytes(block.bytes(value))))
            }
            Self::Packed(block) => (0, Some(block.value(index))),
        }
    }

    /// How many entries come before `(key, sequence)`.
    #[inline]
    pub(super) fn rank(&self, key: &[u8], sequence: u64) -> usize {
        match self {
            Self::Opaque(block) => block.rank(key, sequence),
            // Settled entries sort behind every version of the same key.
            Self::Packed(block) => block.rank(key),
        }
    }

    /// The newest version of `key` that is not above `sequence`.
    #[inline]
    pub(super) fn lookup(&self, key: &[u8], sequence: u64) -> Lookup<'_> {
        match self {
            Self::Opaque(block) => block.lookup(key, sequence),
            Self::Packed(block) => block.lookup(key),
        }
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> u64 {
        match self {
            Self::Opaque(block) => block.resident_bytes(),
            Self::Packed(block) => block.resident_bytes(),
        }
    }
}
