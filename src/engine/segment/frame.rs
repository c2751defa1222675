//! One block as it lies in a segment file: a header, and the stored bytes it vouches for.
//!
//! ```text
//! block  := header stored
//! header := checksum:u64 stored_len:u32 raw_len:u32 codec:u8 layout:u8 flags:u16      20 bytes
//! ```
//!
//! The checksum is the xxh3-64 of everything behind it, seeded with the database id, the file number and the block's
//! offset: a block that lies in the wrong place, in the wrong file or in another database does not pass. The layout says
//! what the raw bytes mean. No flag has a meaning yet, so all are zero.
//!
//! Nothing is allocated from a length before it was checked: the stored length against the extent the reader was told,
//! the raw length against [`RAW_BYTES_MAX`] and what the codec can reach at all.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::compression::{self, Compressor, Failure};
use crate::engine::batch::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::engine::codec::Reader;
use crate::engine::disk;
use crate::engine::error::{Error, Result};

pub(super) const HEADER_BYTES: usize = 20;

/// Longest raw block: one entry of the largest size and what surrounds it.
pub(super) const RAW_BYTES_MAX: usize = VALUE_BYTES_MAX + KEY_BYTES_MAX + 64;

// On disk: do not renumber.
pub(super) const LAYOUT_FENCE: u8 = 0;
pub(super) const LAYOUT_FILTER: u8 = 1;
pub(super) const LAYOUT_BYTES: u8 = 2;
pub(super) const LAYOUT_COLUMNS: u8 = 3;

const CHECKSUM_BYTES: usize = 8;

/// Which file bytes belong to: the seed of their checksums, and the name in errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) database_id: u128,
    pub(super) number: u64,
}

/// What is wrong with bytes; an error once file and offset are known.
#[derive(Debug, PartialEq)]
pub(super) struct Flaw {
    what: &'static str,
    expected: String,
    found: String,
}

impl Flaw {
    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts alike are given as they are")]
    pub(super) fn new(what: &'static str, expected: impl ToString, found: impl ToString) -> Self {
        Self { what, expected: expected.to_string(), found: found.to_string() }
    }
}

impl Identity {
    pub(super) fn file_name(self) -> String {
        super::file_name(self.number)
    }

    /// The checksum of the bytes behind the checksum field at `offset`.
    pub(super) fn checksum(self, offset: u64, bytes: &[u8]) -> u64 {
        let mut place = [0; 32];
        place[..16].copy_from_slice(&self.database_id.to_le_bytes());
        place[16..24].copy_from_slice(&self.number.to_le_bytes());
        place[24..].copy_from_slice(&offset.to_le_bytes());
        xxh3_64_with_seed(bytes, xxh3_64(&place))
    }

    pub(super) fn damaged(self, offset: u64, flaw: Flaw) -> Error {
        Error::Corruption {
            file: self.file_name(),
            offset,
            what: flaw.what,
            expected: flaw.expected,
            found: flaw.found,
        }
    }

    pub(super) fn unsupported(self, found: String, supported: &str) -> Error {
        Error::UnsupportedFormat { file: self.file_name(), found, supported: supported.to_owned() }
    }

    /// A buffer to read bytes of the segment into.
    pub(super) fn buffer(self, len: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        self.resize(&mut buffer, len)?;
        Ok(buffer)
    }

    /// The same in a buffer that was used before; what is in it is to be overwritten.
    pub(super) fn resize(self, buffer: &mut Vec<u8>, len: usize) -> Result<()> {
        disk::resize(buffer, len, &self.file_name())
    }
}

/// Appends the block of `raw` to `out`, to lie at `offset` of the file.
pub(super) fn seal(
    identity: Identity,
    offset: u64,
    layout: u8,
    raw: &[u8],
    compressor: &mut Compressor,
    out: &mut Vec<u8>,
) {
    assert!(raw.len() <= RAW_BYTES_MAX, "a block of {} bytes is over the limit", raw.len());
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let codec = compressor.compress(raw, out);
    let stored_len = (out.len() - start - HEADER_BYTES) as u32;
    let header = &mut out[start + CHECKSUM_BYTES..start + HEADER_BYTES];
    header[..4].copy_from_slice(&stored_len.to_le_bytes());
    header[4..8].copy_from_slice(&(raw.len() as u32).to_le_bytes());
    header[8] = codec;
    header[9] = layout;
    let checksum = identity.checksum(offset, &out[start + CHECKSUM_BYTES..]);
    out[start..start + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks the block that `bytes` are, from first to last, and unpacks it to `raw`; gives its layout. After an error
/// `raw` holds nothing useful.
pub(super) fn open(identity: Identity, offset: u64, bytes: &[u8], raw: &mut Vec<u8>) -> Result<u8> {
    let header = Header::decode(bytes).ok_or_else(|| {
        identity.damaged(offset, Flaw::new("block header", format!("{HEADER_BYTES} bytes"), bytes.len()))
    })?;
    let computed = identity.checksum(offset, &bytes[CHECKSUM_BYTES..]);
    if computed != header.checksum {
        let flaw = Flaw::new("block checksum", format!("{computed:016x}"), format!("{:016x}", header.checksum));
        return Err(identity.damaged(offset, flaw));
    }
    let stored = &bytes[HEADER_BYTES..];
    if header.flags != 0 {
        return Err(identity.unsupported(format!("block flags {:#06x}", header.flags), "none"));
    }
    header.check_lengths(stored.len()).map_err(|flaw| identity.damaged(offset, flaw))?;
    identity.resize(raw, header.raw_len as usize)?;
    compression::decompress(header.codec, stored, raw).map_err(|failure| match failure {
        Failure::Damaged(found) => {
            let expected = format!("{} bytes", header.raw_len);
            identity.damaged(offset, Flaw::new("compressed block", expected, found))
        }
        Failure::Unsupported { found, supported } => identity.unsupported(found, supported),
    })?;
    Ok(header.layout)
}

/// Makes the checksum of the block that `bytes` are right again; gives its layout.
#[cfg(feature = "cli")]
pub(super) fn repair(identity: Identity, offset: u64, bytes: &mut [u8]) -> u8 {
    let checksum = identity.checksum(offset, &bytes[CHECKSUM_BYTES..]);
    bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    bytes[HEADER_BYTES - 3]
}

/// Length of the block at the front of `bytes`, unverified but not beyond their end.
pub(super) fn extent(bytes: &[u8]) -> Option<usize> {
    let extent = (Header::decode(bytes)?.stored_len as usize).checked_add(HEADER_BYTES)?;
    (extent <= bytes.len()).then_some(extent)
}

/// The same for bytes that may be anything: nothing, if no header looks like that. It spares a checksum for nearly every
/// place where no block begins.
pub(super) fn extent_of_plausible(bytes: &[u8]) -> Option<usize> {
    let header = Header::decode(bytes)?;
    let is_plausible = header.flags == 0
        && header.layout <= LAYOUT_COLUMNS
        && header.check_lengths(header.stored_len as usize).is_ok();
    extent(bytes).filter(|_| is_plausible)
}

struct Header {
    checksum: u64,
    stored_len: u32,
    raw_len: u32,
    codec: u8,
    layout: u8,
    flags: u16,
}

impl Header {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        Some(Self {
            checksum: reader.u64()?,
            stored_len: reader.u32()?,
            raw_len: reader.u32()?,
            codec: reader.u8()?,
            layout: reader.u8()?,
            flags: u16::from_le_bytes([reader.u8()?, reader.u8()?]),
        })
    }

    fn check_lengths(&self, stored_len: usize) -> std::result::Result<(), Flaw> {
        if self.stored_len as usize != stored_len {
            return Err(Flaw::new("stored length of a block", stored_len, self.stored_len));
        }
        let raw_len_max = compression::raw_len_max(self.codec, stored_len).min(RAW_BYTES_MAX);
        if self.raw_len as usize > raw_len_max {
            return Err(Flaw::new("raw length of a block", format!("at most {raw_len_max}"), self.raw_len));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::segment::Compression;

    const IDENTITY: Identity = Identity { database_id: 7, number: 3 };

    fn sealed(raw: &[u8], compression: Compression) -> Vec<u8> {
        let mut out = Vec::new();
        let mut compressor = Compressor::new(compression).expect("the level is in range");
        seal(IDENTITY, 100, LAYOUT_BYTES, raw, &mut compressor, &mut out);
        out
    }

    /// Sets a field of the header and makes the checksum right again.
    fn forged(mut block: Vec<u8>, field: usize, bytes: &[u8]) -> Vec<u8> {
        block[field..field + bytes.len()].copy_from_slice(bytes);
        let checksum = IDENTITY.checksum(100, &block[CHECKSUM_BYTES..]);
        block[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        block
    }

    fn compressions() -> Vec<Compression> {
        let mut all = vec![Compression::None, Compression::Lz4];
        if cfg!(feature = "zstd") {
            all.push(Compression::Zstd { level: 3 });
        }
        all
    }

    fn opened(identity: Identity, offset: u64, bytes: &[u8]) -> Result<(u8, Vec<u8>)> {
        let mut raw = vec![7; 9];
        open(identity, offset, bytes, &mut raw).map(|layout| (layout, raw))
    }

    #[test]
    fn open_undoes_seal() {
        for compression in compressions() {
            for raw in [&b""[..], b"x", &[b'a'; 5000], &(0..=255).collect::<Vec<u8>>()] {
                let block = sealed(raw, compression);
                assert!(block.len() <= raw.len() + HEADER_BYTES, "what does not shrink is stored raw");
                assert_eq!(extent(&block), Some(block.len()));
                let opened = opened(IDENTITY, 100, &block).expect("a sound block opens");
                assert_eq!(opened, (LAYOUT_BYTES, raw.to_vec()));
            }
        }
    }

    #[test]
    fn a_block_of_another_place_file_or_database_is_refused() {
        let block = sealed(b"value", Compression::None);
        let Identity { database_id, number } = IDENTITY;
        assert!(opened(IDENTITY, 101, &block).is_err());
        assert!(opened(Identity { database_id, number: number + 1 }, 100, &block).is_err());
        assert!(opened(Identity { database_id: database_id + 1, number }, 100, &block).is_err());
    }

    #[test]
    fn forged_lengths_are_refused_before_anything_is_allocated() {
        for compression in compressions() {
            let block = sealed(&[b'a'; 3000], compression);
            for len in [0, 1, 2999, 3001, 1 << 31, u32::MAX - 1, u32::MAX] {
                let raw_len = forged(block.clone(), 12, &u32::to_le_bytes(len));
                assert!(opened(IDENTITY, 100, &raw_len).is_err(), "raw length {len} under {compression:?}");
                let stored_len = forged(block.clone(), 8, &u32::to_le_bytes(len));
                assert!(opened(IDENTITY, 100, &stored_len).is_err(), "stored length {len} under {compression:?}");
            }
        }
    }

    #[test]
    fn unknown_codecs_and_flags_are_unsupported_and_not_damage() {
        let block = sealed(b"value", Compression::None);
        for forged in [forged(block.clone(), 16, &[9]), forged(block, 18, &[1, 0])] {
            assert!(matches!(opened(IDENTITY, 100, &forged), Err(Error::UnsupportedFormat { .. })));
        }
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn a_zstd_block_names_the_feature_this_build_lacks() {
        let block = forged(sealed(b"value", Compression::None), 16, &[2]);
        let error = opened(IDENTITY, 100, &block).err().expect("the codec is missing");
        assert!(error.to_string().contains("feature"), "{error}");
    }
}
