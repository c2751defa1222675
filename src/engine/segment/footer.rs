//! The end of a segment file, and what the manifest remembers about the whole.
//!
//! ```text
//! footer := checksum:u64 fence_offset:u64 filter_offset:u64 blocks:u64 entries:u64 tombstones:u64
//!           sequence_min:u64 sequence_max:u64 version:u32 magic:u8{8}                        76 bytes
//! ```
//!
//! The checksum covers all behind it and is seeded like that of a block, with the footer's offset: a file that was cut
//! or grew has no valid footer at its end. Magic and version stand last, where a reader of any version looks for them.

use super::frame::{Flaw, Identity};
use crate::engine::codec::Reader;
use crate::engine::error::Result;

pub(super) const FOOTER_BYTES: usize = 76;

const MAGIC: [u8; 8] = *b"profseg\n";
const VERSION: u32 = 3;
const CHECKSUM_BYTES: usize = 8;

/// A segment as the manifest knows it. [`Segment::open`](super::Segment::open) holds the file against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    pub(crate) number: u64,
    pub(crate) file_bytes: u64,
    /// Versions, tombstones among them.
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    pub(crate) sequence_min: u64,
    pub(crate) sequence_max: u64,
}

#[derive(Debug, PartialEq)]
pub(super) struct Footer {
    pub(super) fence_offset: u64,
    /// Where the fence ends and the filter, if there is one, begins.
    pub(super) filter_offset: u64,
    pub(super) blocks: u64,
    pub(super) entries: u64,
    pub(super) tombstones: u64,
    pub(super) sequence_min: u64,
    pub(super) sequence_max: u64,
}

impl Footer {
    /// Appends the footer to `out`, to lie at `offset` of the file.
    pub(super) fn encode(&self, identity: Identity, offset: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; CHECKSUM_BYTES]);
        for field in self.fields() {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        let checksum = identity.checksum(offset, &out[start + CHECKSUM_BYTES..]);
        out[start..start + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }

    fn fields(&self) -> [u64; 7] {
        let Self { fence_offset, filter_offset, blocks, entries, tombstones, sequence_min, sequence_max } = *self;
        [fence_offset, filter_offset, blocks, entries, tombstones, sequence_min, sequence_max]
    }

    /// The footer that lies at `offset` of the file, sound in itself and with offsets inside the file.
    pub(super) fn decode(identity: Identity, offset: u64, bytes: &[u8; FOOTER_BYTES]) -> Result<Self> {
        let damaged =
            |what, expected: String, found: String| identity.damaged(offset, Flaw::new(what, expected, found));
        let short = || damaged("footer", format!("{FOOTER_BYTES} bytes"), "fewer".to_owned());
        let mut reader = Reader::new(bytes);
        let checksum = reader.u64().ok_or_else(short)?;
        let mut fields = [0; 7];
        for field in &mut fields {
            *field = reader.u64().ok_or_else(short)?;
        }
        let version = reader.u32().ok_or_else(short)?;
        if reader.bytes(MAGIC.len()) != Some(&MAGIC) {
            return Err(damaged("end of the file", "a segment footer".to_owned(), "something else".to_owned()));
        }
        if version != VERSION {
            return Err(identity.unsupported(version.to_string(), &VERSION.to_string()));
        }
        let computed = identity.checksum(offset, &bytes[CHECKSUM_BYTES..]);
        if computed != checksum {
            return Err(damaged("footer checksum", format!("{computed:016x}"), format!("{checksum:016x}")));
        }
        let [fence_offset, filter_offset, blocks, entries, tombstones, sequence_min, sequence_max] = fields;
        if !(fence_offset <= filter_offset && filter_offset <= offset) {
            let found = format!("{fence_offset} and {filter_offset}");
            return Err(damaged("offsets in the footer", format!("ascending up to {offset}"), found));
        }
        if tombstones > entries {
            let expected = format!("at most {entries}, the number of entries");
            return Err(damaged("number of tombstones", expected, tombstones.to_string()));
        }
        Ok(Self { fence_offset, filter_offset, blocks, entries, tombstones, sequence_min, sequence_max })
    }

    /// What the manifest says has to be what the file says.
    pub(super) fn check(&self, meta: &SegmentMeta) -> std::result::Result<(), Flaw> {
        agree("number of entries", meta.entries, self.entries)?;
        agree("number of tombstones", meta.tombstones, self.tombstones)?;
        agree("smallest sequence number", meta.sequence_min, self.sequence_min)?;
        agree("largest sequence number", meta.sequence_max, self.sequence_max)
    }
}

/// Makes version, magic and checksum of a footer at `offset` right again, and its offsets if they are known.
#[cfg(feature = "cli")]
pub(super) fn repair(identity: Identity, offset: u64, offsets: Option<(u64, u64)>, bytes: &mut [u8]) {
    if let Some((fence_offset, filter_offset)) = offsets {
        bytes[8..16].copy_from_slice(&fence_offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&filter_offset.to_le_bytes());
    }
    bytes[FOOTER_BYTES - 12..FOOTER_BYTES - 8].copy_from_slice(&VERSION.to_le_bytes());
    bytes[FOOTER_BYTES - 8..].copy_from_slice(&MAGIC);
    let checksum = identity.checksum(offset, &bytes[CHECKSUM_BYTES..]);
    bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

pub(super) fn agree(what: &'static str, expected: u64, found: u64) -> std::result::Result<(), Flaw> {
    if expected == found { Ok(()) } else { Err(Flaw::new(what, expected, found)) }
}

/// Keys are shown by their first bytes.
pub(super) fn agree_on_key(what: &'static str, expected: &[u8], found: &[u8]) -> std::result::Result<(), Flaw> {
    if expected == found { Ok(()) } else { Err(Flaw::new(what, show_key(expected), show_key(found))) }
}

pub(super) fn show_key(key: &[u8]) -> String {
    const SHOWN: usize = 40;
    let dots = if key.len() > SHOWN { "..." } else { "" };
    format!("key \"{}{dots}\"", key[..key.len().min(SHOWN)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::error::Error;

    const IDENTITY: Identity = Identity { database_id: 9, number: 4 };
    const FOOTER: Footer = Footer {
        fence_offset: 500,
        filter_offset: 600,
        blocks: 3,
        entries: 40,
        tombstones: 5,
        sequence_min: 0,
        sequence_max: u64::MAX,
    };

    fn encoded(footer: &Footer) -> [u8; FOOTER_BYTES] {
        let mut bytes = Vec::new();
        footer.encode(IDENTITY, 700, &mut bytes);
        bytes.try_into().expect("a footer has a fixed size")
    }

    #[test]
    fn decode_undoes_encode() {
        assert_eq!(Footer::decode(IDENTITY, 700, &encoded(&FOOTER)).expect("sound"), FOOTER);
        assert!(Footer::decode(IDENTITY, 701, &encoded(&FOOTER)).is_err());
    }

    #[test]
    fn another_version_is_named_and_not_called_damage() {
        let mut bytes = encoded(&FOOTER);
        bytes[FOOTER_BYTES - 12] = 4;
        let error = Footer::decode(IDENTITY, 700, &bytes).expect_err("version 4 is not known");
        assert!(matches!(&error, Error::UnsupportedFormat { found, .. } if found == "4"), "{error}");
    }

    #[test]
    fn more_tombstones_than_entries_are_refused() {
        assert!(Footer::decode(IDENTITY, 700, &encoded(&Footer { tombstones: 40, ..FOOTER })).is_ok());
        for tombstones in [41, 1 << 63, u64::MAX] {
            assert!(Footer::decode(IDENTITY, 700, &encoded(&Footer { tombstones, ..FOOTER })).is_err());
        }
    }

    #[test]
    fn offsets_outside_the_file_are_refused() {
        for (fence_offset, filter_offset) in [(601, 600), (500, 701), (u64::MAX, u64::MAX)] {
            let bytes = encoded(&Footer { fence_offset, filter_offset, ..FOOTER });
            assert!(matches!(Footer::decode(IDENTITY, 700, &bytes), Err(Error::Corruption { .. })));
        }
    }
}
