//! Reads what is left of a segment file that is damaged.
//!
//! Blocks lie end to end from the start of the file, and each has a checksum that knows its place. So neither fence nor
//! footer is needed to find them: where one is damaged, the next begins at the first place behind it where a block does.
//! The search for that takes time in proportion to the length of the file, whatever is in it.

use std::ops::Range;

use super::SegmentMeta;
use super::block::Block;
use super::frame::{self, Identity, LAYOUT_FENCE, LAYOUT_FILTER};
use crate::engine::disk::Disk;
use crate::engine::error::{Error, Result};
use crate::engine::readable::Readable;
use crate::engine::stored::Stored;

/// What a segment lost.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    /// How many entries are gone.
    pub(crate) entries: u64,
    /// Where they were; none if none are.
    pub(crate) gaps: Vec<Gap>,
}

/// Bytes of a segment that are no blocks.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Where they lie in the file.
    pub(crate) bytes: Range<usize>,
    /// What the system said, if some of them could not be read.
    pub(crate) reason: Option<String>,
    /// The last key before them, or the smallest of the segment, and the first one behind them, or the largest.
    pub(crate) between: (Vec<u8>, Vec<u8>),
}

/// Hands what blocks that are whole hold to `each`, in order, of each key the newest version, no value for a tombstone;
/// and tells what is missing between them.
///
/// Fails as `each` does, or with what is no damage: no memory for a block, or one in a format that this build does not read.
pub(crate) fn read_survivors(
    disk: &dyn Disk,
    database_id: u128,
    meta: &SegmentMeta,
    mut each: impl FnMut(&[u8], Option<Stored<'_>>) -> Result<()>,
) -> Result<Loss> {
    let identity = Identity { database_id, number: meta.number };
    // One that is longer than it was written has nothing of ours behind that.
    let file = Readable::read(disk, &identity.file_name(), meta.file_bytes);
    let bytes = &file.bytes;
    let mut search = Search { identity, bytes, offset: 0, wrong: 0 };
    let (mut found, mut gaps) = (0, Vec::<Gap>::new());
    let (mut newest, mut last, mut in_gap) = (Newest::default(), meta.smallest.clone(), false);
    while let Some(place) = search.next()? {
        match place {
            Place::Block(block) => {
                if in_gap && let Some(gap) = gaps.last_mut() {
                    gap.between.1 = key_of(&block, 0);
                }
                found += block.len() as u64;
                last = key_of(&block, block.len() - 1);
                in_gap = false;
                newest.of_each_key(&block, &mut each)?;
            }
            Place::Damaged(damaged) => {
                if !in_gap {
                    gaps.push(Gap::at(damaged.start, &last, meta));
                    in_gap = true;
                }
                if let Some(gap) = gaps.last_mut() {
                    gap.bytes.end = damaged.end;
                }
            }
        }
    }
    // Cut at the end of a block, or not what the manifest says.
    if found < meta.entries && !in_gap && (search.offset >= bytes.len() || gaps.is_empty()) {
        gaps.push(Gap::at(search.offset, &last, meta));
    }
    // All entries are there: what is damaged is fence, filter or footer.
    if found == meta.entries {
        gaps.clear();
    }
    for gap in &mut gaps {
        gap.reason = file.reason(&gap.bytes);
    }
    Ok(Loss { entries: meta.entries.saturating_sub(found), gaps })
}

impl Gap {
    fn at(offset: usize, last: &[u8], meta: &SegmentMeta) -> Self {
        Self { bytes: offset..offset, reason: None, between: (last.to_vec(), meta.largest.clone()) }
    }
}

/// The newest version of each key, which comes first; others may follow in the next block.
#[derive(Default)]
struct Newest {
    key: Option<Vec<u8>>,
}

impl Newest {
    fn of_each_key(
        &mut self,
        block: &Block,
        each: &mut impl FnMut(&[u8], Option<Stored<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut key = Vec::new();
        for entry in 0..block.len() {
            block.write_key(entry, &mut key);
            if self.key.as_ref() != Some(&key) {
                each(&key, block.version(entry).1)?;
                self.key.get_or_insert_default().clone_from(&key);
            }
        }
        Ok(())
    }
}

/// As many times the length of a file are read in vain, at most.
const WRONG_MAX: usize = 64;

/// Finds the blocks of a segment wherever they begin, in time proportional to its length.
///
/// At every byte a header is looked for, which costs the same anywhere; what it vouches for costs its length. Of bytes that
/// were not made up to look like headers of long blocks next to none do, so a search that has read [`WRONG_MAX`] times the
/// file in vain gives the rest of it up.
struct Search<'a> {
    identity: Identity,
    bytes: &'a [u8],
    offset: usize,
    /// Bytes of blocks that were read and are wrong.
    wrong: usize,
}

enum Place {
    Block(Block),
    /// So much that is none.
    Damaged(Range<usize>),
}

impl Search<'_> {
    /// What there is next; nothing behind the data, which end where the fence begins, or the file is over.
    fn next(&mut self) -> Result<Option<Place>> {
        let (offset, rest) = (self.offset, &self.bytes[self.offset..]);
        if rest.is_empty() {
            return Ok(None);
        }
        let Some(extent) = frame::extent_of_plausible(rest) else { return Ok(Some(self.damaged(1))) };
        let mut raw = Vec::new();
        let block = match frame::open(self.identity, offset as u64, &rest[..extent], &mut raw) {
            Ok(LAYOUT_FENCE | LAYOUT_FILTER) => return Ok(None),
            Ok(layout) => Block::decode(layout, &raw).and_then(std::result::Result::ok),
            Err(Error::Corruption { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(block) = block {
            self.offset += extent;
            return Ok(Some(Place::Block(block)));
        }
        self.wrong += extent.max(raw.len());
        let is_made_up = self.wrong / WRONG_MAX > self.bytes.len();
        Ok(Some(self.damaged(if is_made_up { rest.len() } else { 1 })))
    }

    fn damaged(&mut self, len: usize) -> Place {
        let start = self.offset;
        self.offset += len;
        Place::Damaged(start..self.offset)
    }
}

fn key_of(block: &Block, entry: usize) -> Vec<u8> {
    let mut key = Vec::new();
    block.write_key(entry, &mut key);
    key
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::engine::disk::sim::SimDisk;

    const FILE_BYTES: usize = 1 << 20;

    fn loss_of(bytes: &[u8]) -> Loss {
        let disk = SimDisk::new();
        let meta = SegmentMeta {
            number: 3,
            file_bytes: bytes.len() as u64,
            entries: 9,
            tombstones: 0,
            sequence_min: 1,
            sequence_max: 9,
            smallest: b"a".to_vec(),
            largest: b"z".to_vec(),
        };
        disk.create(&super::super::file_name(3)).expect("new").append(bytes).expect("memory has room");
        read_survivors(&disk, 7, &meta, |_, _| panic!("there is no entry")).expect("what is damaged is lost")
    }

    /// Sixteen bytes that are a header wherever they begin, of a block that is half as long as the file.
    #[test]
    fn headers_of_long_blocks_at_every_place_are_given_up() {
        let length = (FILE_BYTES as u32 / 2).to_le_bytes();
        for unit in [
            [&[0; 8][..], &length, &[0; 4]].concat(),
            [&[0; 8][..], &length, &length, &[0; 4]].concat(),
            [&length[..], &[0; 4], &[1, 0, 0, 0]].concat(),
        ] {
            let made_up: Vec<u8> = unit.iter().copied().cycle().take(FILE_BYTES).collect();
            let started = Instant::now();
            let loss = loss_of(&made_up);
            assert!(started.elapsed() < Duration::from_secs(5), "{:?} for a file of 1 MiB", started.elapsed());
            assert_eq!((loss.entries, loss.gaps.len()), (9, 1));
            assert_eq!(loss.gaps[0].bytes, 0..FILE_BYTES);
        }
    }

    #[test]
    fn a_search_reads_in_vain_what_is_bounded_by_the_file() {
        let length = (FILE_BYTES as u32 / 2).to_le_bytes();
        let unit = [&[0; 8][..], &length, &[0; 4]].concat();
        let made_up: Vec<u8> = unit.iter().copied().cycle().take(FILE_BYTES).collect();
        let identity = Identity { database_id: 7, number: 3 };
        let mut search = Search { identity, bytes: &made_up, offset: 0, wrong: 0 };
        while search.next().expect("nothing is unsupported").is_some() {}
        assert!((FILE_BYTES..=(WRONG_MAX + 1) * FILE_BYTES).contains(&search.wrong), "{} bytes", search.wrong);
    }
}
