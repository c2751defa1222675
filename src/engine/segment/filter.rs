//! The filter: which keys a segment surely does not hold.
//!
//! ```text
//! filter := line{n}      line: 64 bytes, bit i of a line is bit i % 8 of its byte i / 8
//! ```
//!
//! A Bloom filter over user keys whose bits for one key lie in one cache line. The xxh3-64 of the key chooses the line
//! with its upper half and the bits with its lower half. At ten bits a key about one absent key in a hundred passes.
//! The hash is not keyed: chosen keys can make every lookup read a block, and never make one wrong.

use xxhash_rust::xxh3::xxh3_64;

use super::frame::Flaw;

const BITS_PER_KEY: usize = 10;
const PROBES: usize = 6;
const LINE_BYTES: usize = 64;
/// Keys of a filter, about: their hashes take a megabyte until it is made.
const KEYS_MAX: usize = 1 << 17;

/// Collects keys.
#[derive(Default)]
pub(super) struct FilterBuilder {
    hashes: Vec<u64>,
}

impl FilterBuilder {
    pub(super) fn add(&mut self, key: &[u8]) {
        self.hashes.push(xxh3_64(key));
    }

    /// Whether further keys belong into another segment.
    pub(super) fn is_full(&self) -> bool {
        self.hashes.len() >= KEYS_MAX
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let lines = (self.hashes.len() * BITS_PER_KEY).div_ceil(LINE_BYTES * 8).max(1);
        let mut bytes = vec![0; lines * LINE_BYTES];
        for hash in self.hashes {
            let line = line(hash, lines);
            for bit in bits(hash) {
                bytes[line * LINE_BYTES + bit / 8] |= 1 << (bit % 8);
            }
        }
        bytes
    }
}

/// A filter in memory.
pub(super) struct Filter {
    bytes: Vec<u8>,
}

impl Filter {
    pub(super) fn decode(bytes: Vec<u8>) -> Result<Self, Flaw> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(LINE_BYTES) {
            return Err(Flaw::new("length of the filter", format!("a multiple of {LINE_BYTES}"), bytes.len()));
        }
        Ok(Self { bytes })
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether `key` can be there. Never false for a key that is.
    pub(super) fn may_contain(&self, key: &[u8]) -> bool {
        let hash = xxh3_64(key);
        let start = line(hash, self.bytes.len() / LINE_BYTES) * LINE_BYTES;
        let line = &self.bytes[start..start + LINE_BYTES];
        bits(hash).all(|bit| line[bit / 8] & 1 << (bit % 8) != 0)
    }
}

fn line(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// The bits of a key in its line: the top nine of a number that a multiplication stirs for each.
fn bits(hash: u64) -> impl Iterator<Item = usize> {
    let mut state = hash as u32;
    (0..PROBES).map(move |_| {
        state = state.wrapping_mul(0x9E37_79B1);
        (state >> 23) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_its_keys_and_few_others() {
        for keys in [0_u32, 1, 2, 100, 20_000] {
            let mut builder = FilterBuilder::default();
            (0..keys).for_each(|key| builder.add(&key.to_be_bytes()));
            let filter = Filter::decode(builder.finish()).expect("a sound filter");
            assert!((0..keys).all(|key| filter.may_contain(&key.to_be_bytes())));
            let passed = (keys..keys + 20_000).filter(|key| filter.may_contain(&key.to_be_bytes())).count();
            assert!(passed < 400, "{passed} of 20,000 absent keys passed beside {keys} keys");
        }
    }

    #[test]
    fn a_filter_of_no_whole_lines_is_refused() {
        for len in [0, 1, 63, 65] {
            assert!(Filter::decode(vec![0xFF; len]).is_err(), "{len} bytes");
        }
    }
}
