//! How the bytes of a block are packed, and what each codec can be trusted to unpack.

use std::fmt;

use super::super::error::{Error, Result};

/// How blocks of new segments are compressed. Segments that are there keep what they were written with.
///
/// A block that does not shrink is stored as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4: unpacks at the speed of memory.
    #[default]
    Lz4,
    /// Zstandard: smaller, and several times slower to unpack. Needs the cargo feature `zstd`.
    Zstd {
        /// 1 to 22; what is above 3 costs writing time, never reading time.
        level: i32,
    },
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd { level } => write!(f, "zstd level {level}"),
        }
    }
}

// On disk: do not renumber.
const CODEC_RAW: u8 = 0;
const CODEC_LZ4: u8 = 1;
const CODEC_ZSTD: u8 = 2;

impl Compression {
    /// For what is read again before long: at least as fast, and not as small.
    pub(crate) fn fast(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Lz4 | Self::Zstd { .. } => Self::Lz4,
        }
    }

    /// Refuses a level out of range, and a codec this build lacks.
    pub(crate) fn validate(self) -> Result<()> {
        let Self::Zstd { level } = self else { return Ok(()) };
        let expected = if cfg!(feature = "zstd") {
            "a zstd level lies in 1..=22"
        } else {
            "this build lacks the feature `zstd`, so it has to be none or lz4"
        };
        if cfg!(feature = "zstd") && (1..=22).contains(&level) {
            return Ok(());
        }
        Err(Error::InvalidOption { option: "compression", found: self.to_string(), expected })
    }
}

/// A codec with its working memory, kept from block to block.
pub(super) enum Compressor {
    None,
    Lz4(Box<lz4_flex::block::CompressTable>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub(super) fn new(compression: Compression) -> Result<Self> {
        compression.validate()?;
        Ok(match compression {
            Compression::None => Self::None,
            Compression::Lz4 => Self::Lz4(Box::default()),
            #[cfg(feature = "zstd")]
            Compression::Zstd { level } => Self::Zstd(
                zstd::bulk::Compressor::new(level)
                    .map_err(|error| Error::io("set up", std::path::Path::new("zstd"), error))?,
            ),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd { .. } => Self::None,
        })
    }

    /// Appends `raw` to `out`, packed if that is smaller, and says with which codec.
    pub(super) fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        let start = out.len();
        let packed = match self {
            Self::None => None,
            Self::Lz4(table) => {
                out.resize(start + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                let len = lz4_flex::block::compress_into_with_table(raw, &mut out[start..], table).ok();
                len.map(|len| (len, CODEC_LZ4))
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(compressor) => {
                out.resize(start + zstd::compress_bound(raw.len()), 0);
                compressor.compress_to_buffer(raw, &mut out[start..]).ok().map(|len| (len, CODEC_ZSTD))
            }
        };
        match packed {
            Some((len, codec)) if len < raw.len() => {
                out.truncate(start + len);
                codec
            }
            _ => {
                out.truncate(start);
                out.extend_from_slice(raw);
                CODEC_RAW
            }
        }
    }
}

/// Why stored bytes could not be unpacked.
pub(super) enum Failure {
    /// They are not what the codec wrote; says what came out instead.
    Damaged(String),
    /// This build cannot know.
    Unsupported { found: String, supported: &'static str },
}

/// The most bytes that `stored_len` bytes can unpack to. Zstandard has no bound of its own.
pub(super) fn raw_len_max(codec: u8, stored_len: usize) -> usize {
    match codec {
        CODEC_RAW => stored_len,
        CODEC_LZ4 => stored_len.saturating_mul(255).saturating_add(64),
        _ => usize::MAX,
    }
}

/// Unpacks `stored` to exactly the length of `raw`.
pub(super) fn decompress(codec: u8, stored: &[u8], raw: &mut [u8]) -> std::result::Result<(), Failure> {
    let len = match codec {
        CODEC_RAW => {
            if stored.len() == raw.len() {
                raw.copy_from_slice(stored);
            }
            stored.len()
        }
        CODEC_LZ4 => {
            lz4_flex::block::decompress_into(stored, raw).map_err(|error| Failure::Damaged(error.to_string()))?
        }
        CODEC_ZSTD => zstd_decompress(stored, raw)?,
        _ => return Err(Failure::Unsupported { found: format!("codec {codec}"), supported: "codecs 0 to 2" }),
    };
    if len != raw.len() {
        return Err(Failure::Damaged(format!("{len} bytes")));
    }
    Ok(())
}

#[cfg(feature = "zstd")]
fn zstd_decompress(stored: &[u8], raw: &mut [u8]) -> std::result::Result<usize, Failure> {
    use std::cell::RefCell;

    thread_local! {
        // A fresh context costs more than unpacking a small block with it.
        static DECOMPRESSOR: RefCell<zstd::bulk::Decompressor<'static>> = RefCell::default();
    }
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        decompressor.decompress_to_buffer(stored, raw).map_err(|error| Failure::Damaged(error.to_string()))
    })
}

#[cfg(not(feature = "zstd"))]
fn zstd_decompress(_stored: &[u8], _raw: &mut [u8]) -> std::result::Result<usize, Failure> {
    Err(Failure::Unsupported {
        found: "a zstd block".to_owned(),
        supported: "raw and lz4 blocks only, because it was built without the feature `zstd`",
    })
}
