//! Fixed and variable integers and length-prefixed bytes, little-endian; LEB128 varints of at most ten bytes.
//!
//! Readers are total: they return `None` for bytes that end early or do not decode, and never panic.

use xxhash_rust::xxh3::xxh3_64;

/// Seed of a checksum: which database, which file, which offset. Bytes that are right but in the wrong place fail it.
pub(crate) fn location_seed(database_id: u128, number: u64, offset: u64) -> u64 {
    let mut location = [0; 32];
    location[..16].copy_from_slice(&database_id.to_le_bytes());
    location[16..24].copy_from_slice(&number.to_le_bytes());
    location[24..].copy_from_slice(&offset.to_le_bytes());
    xxh3_64(&location)
}

/// Appends `value` as a LEB128 varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that [`put_varint`] takes for `value`.
pub(crate) fn varint_bytes(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Appends a varint length and the bytes.
pub(crate) fn put_length_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads values off the front of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.rest.split_first_chunk().map(|(head, rest)| {
            self.rest = rest;
            u32::from_le_bytes(*head)
        })
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.rest.split_first_chunk().map(|(head, rest)| {
            self.rest = rest;
            u64::from_le_bytes(*head)
        })
    }

    /// Bytes up to and with the first one that is `end`.
    pub(crate) fn through(&mut self, end: u8) -> Option<&'a [u8]> {
        let at = self.rest.iter().position(|&byte| byte == end)?;
        self.bytes(at + 1)
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A varint length and that many bytes; the length is checked against what is left before it is used.
    pub(crate) fn length_prefixed(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.bytes(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_round_trips_at_every_width() {
        for shift in 0..64 {
            for value in [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + 1, u64::MAX] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert!(out.len() <= 10);
                assert_eq!(varint_bytes(value), out.len());
                assert_eq!(Reader::new(&out).varint(), Some(value));
                assert_eq!(Reader::new(&out[..out.len() - 1]).varint(), None);
            }
        }
    }

    #[test]
    fn a_varint_that_never_ends_is_refused() {
        assert_eq!(Reader::new(&[0x80; 20]).varint(), None);
        assert_eq!(Reader::new(&[0xFF; 20]).varint(), None);
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        let mut out = Vec::new();
        put_varint(&mut out, u64::MAX);
        out.push(1);
        assert_eq!(Reader::new(&out).length_prefixed(), None);
    }
}
