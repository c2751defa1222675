//! Which trees there are, and which segments and logs are live: one small file, replaced whole.
//!
//! ```text
//! manifest := copy zeros copy                             the second copy begins at the next multiple of 4096
//! copy     := magic:8 version:u32 length:u32 check:u64 body:length*u8
//! body     := database_id:u64*2 boot_id:u64*2 next_number:varint log_floor:varint flushed:varint logged:varint
//!             tree_count:varint tree*
//! tree     := name:bytes layout:bytes run_count:varint run*
//! run      := segment_count:varint segment*
//! segment  := number:varint file_bytes:varint entries:varint tombstones:varint
//!             sequence_min:varint sequence_max:varint smallest:bytes largest:bytes
//! bytes    := length:varint u8*                          a layout is encoded as at the head of `layout.rs`
//! ```
//!
//! `check` is the xxh3-64 of the body, seeded with the magic and the place of the copy. Trees are numbered by their place,
//! runs go from newest to oldest, the segments of a run in key order. The file is written under a temporary name, synced,
//! renamed over the old one, and the directory synced: it is the old one or the new one at any moment.
//!
//! Without this file no other can be understood, so all of it is there twice, on different sectors. To open a database both
//! copies must be sound and equal: damage to one is found as long as there is the other, and [`Manifest::salvage`] takes
//! whichever is sound.

mod copies;

use std::collections::HashSet;

use super::batch::within;
use super::codec::{Reader, put_length_prefixed, put_varint};
use super::disk::{self, Disk};
use super::error::{Error, Result};
use super::layout::Layout;
use super::readable::Readable;
use super::segment::SegmentMeta;

use self::copies::HEAD_BYTES;

/// Name of the manifest.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// Name it is written under before it replaces the old one.
pub(crate) const MANIFEST_NEW: &str = "MANIFEST.new";
/// Longest tree name, in bytes.
pub const TREE_NAME_BYTES_MAX: usize = 255;

/// Most trees of a database.
pub const TREES_MAX: usize = 1 << 16;
/// No number of a file or commit is larger: far beyond what a database can use up, and far enough below the end that
/// counting on cannot overflow.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;
const MANIFEST_BYTES_MAX: u64 = 512 << 20;

/// The durable state of a database, apart from the content of the files it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Drawn once; part of every checksum seed.
    pub(crate) database_id: u128,
    /// Boot id under which logs are written.
    pub(crate) boot_id: Option<u128>,
    /// Above the number of every file.
    pub(crate) next_number: u64,
    /// Logs below it are obsolete.
    pub(crate) log_floor: u64,
    /// Every batch up to this sequence number is in segments.
    pub(crate) flushed: u64,
    /// The last of them that was also written to a log.
    pub(crate) logged: u64,
    pub(crate) trees: Vec<TreeManifest>,
}

/// The durable state of one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeManifest {
    pub(crate) name: String,
    /// How new segments of it are laid out.
    pub(crate) layout: Layout,
    /// Newest first.
    pub(crate) runs: Vec<Vec<SegmentMeta>>,
}

/// What is wrong with a manifest of which one copy is sound.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    /// What the system said, if it could not be read.
    pub(crate) reason: Option<String>,
}

impl Manifest {
    pub(crate) fn new(database_id: u128, boot_id: Option<u128>) -> Self {
        Self { database_id, boot_id, next_number: 1, log_floor: 1, flushed: 0, logged: 0, trees: Vec::new() }
    }

    /// The same state without its logs, which hold nothing of it: what a copy of its segments alone is.
    pub(crate) fn without_logs(self) -> Self {
        Self { boot_id: None, log_floor: self.next_number, ..self }
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &SegmentMeta> {
        self.trees.iter().flat_map(|tree| tree.runs.iter().flatten())
    }

    /// Writes and syncs what [`Self::replace`] puts in the place of the manifest. Whatever this fails with, the manifest is
    /// as it was.
    pub(crate) fn prepare(&self, disk: &dyn Disk) -> Result<()> {
        let bytes = self.encode();
        within("manifest", bytes.len(), MANIFEST_BYTES_MAX as usize)?;
        if disk.list()?.iter().any(|name| name == MANIFEST_NEW) {
            disk.remove(MANIFEST_NEW)?;
        }
        let file = disk.create(MANIFEST_NEW)?;
        file.append(&bytes)?;
        file.sync()
    }

    /// Replaces the manifest by the prepared one; durable once the directory is synced.
    pub(crate) fn replace(disk: &dyn Disk) -> Result<()> {
        disk.rename(MANIFEST_NEW, MANIFEST)
    }

    pub(crate) fn load(disk: &dyn Disk) -> Result<Self> {
        let file = disk.open(MANIFEST)?;
        let len = file.len()?;
        if len > MANIFEST_BYTES_MAX {
            return Err(damaged(8, "length", format!("at most {MANIFEST_BYTES_MAX}"), len));
        }
        let mut bytes = Vec::new();
        disk::resize(&mut bytes, len as usize, MANIFEST)?;
        file.read_at(0, &mut bytes)?;
        Self::decode(&bytes)
    }

    /// The same from a disk that may be damaged, where one sound copy is enough. Says where the rest is not what was
    /// written.
    pub(crate) fn salvage(disk: &dyn Disk) -> Result<(Self, Option<Damage>)> {
        Self::salvage_file(Readable::read(disk, MANIFEST, MANIFEST_BYTES_MAX))
    }

    fn salvage_file(file: Readable) -> Result<(Self, Option<Damage>)> {
        let error = match Self::decode(&file.bytes) {
            Ok(manifest) => return Ok((manifest, None)),
            Err(error) => error,
        };
        let flaw = match &error {
            Error::Corruption { offset, .. } => Some(*offset as usize),
            _ => None,
        };
        let [first, second] = copies::places(&file.bytes);
        let sound = |place| copies::at(&file.bytes, place).and_then(Self::decode_copy).ok();
        let (manifest, offset) = match (sound(first), sound(second)) {
            // The disk kept what had been in the place of one of them.
            (Some(one), Some(other)) if other.age() > one.age() => (other, first),
            (Some(one), _) => (one, flaw.unwrap_or(second)),
            (None, Some(other)) => (other, flaw.unwrap_or(first)),
            (None, None) => return Err(file.error.unwrap_or(error)),
        };
        let offset = file.unreadable.first().map_or(offset, |bad| bad.start);
        Ok((manifest, Some(Damage { offset: offset as u64, reason: file.reason(&(offset..offset)) })))
    }

    /// More than that of every earlier state of the same database: an edit takes a number, moves one on, or adds a tree.
    fn age(&self) -> [u64; 5] {
        [self.next_number, self.log_floor, self.flushed, self.logged, self.trees.len() as u64]
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let (mut body, mut layout) = (Vec::new(), Vec::new());
        put_u128(&mut body, self.database_id);
        put_u128(&mut body, self.boot_id.unwrap_or(0));
        for number in [self.next_number, self.log_floor, self.flushed, self.logged, self.trees.len() as u64] {
            put_varint(&mut body, number);
        }
        for tree in &self.trees {
            put_length_prefixed(&mut body, tree.name.as_bytes());
            layout.clear();
            tree.layout.encode(&mut layout);
            put_length_prefixed(&mut body, &layout);
            put_varint(&mut body, tree.runs.len() as u64);
            for run in &tree.runs {
                put_varint(&mut body, run.len() as u64);
                for segment in run {
                    put_segment(&mut body, segment);
                }
            }
        }
        copies::write(&body)
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        Self::decode_copy(copies::read(bytes)?)
    }

    fn decode_copy(body: &[u8]) -> Result<Self> {
        let manifest =
            decode_body(body).ok_or_else(|| damaged(HEAD_BYTES as u64, "body", "a manifest", "other bytes"))?;
        manifest.validate()?;
        Ok(manifest)
    }

    /// What a valid checksum does not prove: that the numbers make sense together.
    fn validate(&self) -> Result<()> {
        let mut numbers: Vec<u64> = self.segments().map(|segment| segment.number).collect();
        numbers.sort_unstable();
        if let Some([twice, _]) = numbers.array_windows().find(|[a, b]| a == b) {
            return Err(damaged(HEAD_BYTES as u64, "segment list", "each number once", format!("{twice} twice")));
        }
        let largest = numbers.last().copied().unwrap_or(0).max(self.log_floor.saturating_sub(1));
        if largest >= self.next_number {
            return Err(damaged(HEAD_BYTES as u64, "next number", format!("above {largest}"), self.next_number));
        }
        for (what, number) in [("next number", self.next_number), ("flushed", self.flushed)] {
            if number > NUMBER_MAX {
                return Err(damaged(HEAD_BYTES as u64, what, format!("at most {NUMBER_MAX}"), number));
            }
        }
        if self.logged > self.flushed {
            return Err(damaged(HEAD_BYTES as u64, "logged", format!("at most {}", self.flushed), self.logged));
        }
        if let Some(newer) = self.segments().map(|segment| segment.sequence_max).find(|&newest| newest > self.flushed) {
            return Err(damaged(HEAD_BYTES as u64, "sequence number", format!("at most {}", self.flushed), newer));
        }
        self.validate_trees()
    }

    fn validate_trees(&self) -> Result<()> {
        if self.trees.len() > TREES_MAX {
            let expected = format!("at most {TREES_MAX}");
            return Err(damaged(HEAD_BYTES as u64, "tree count", expected, self.trees.len()));
        }
        let mut names = HashSet::new();
        for TreeManifest { name, runs, .. } in &self.trees {
            if name.len() > TREE_NAME_BYTES_MAX || !names.insert(name) {
                let name = name.chars().take(40).collect::<String>();
                return Err(damaged(HEAD_BYTES as u64, "tree name", "each once and not too long", name.escape_debug()));
            }
            if runs.iter().any(Vec::is_empty) {
                return Err(damaged(HEAD_BYTES as u64, "run", "one segment at least", "none"));
            }
        }
        Ok(())
    }
}

/// Refuses a name that could not be stored.
pub(crate) fn check_tree_name(name: &str) -> Result<()> {
    within("tree name", name.len(), TREE_NAME_BYTES_MAX)
}

/// Refuses one tree more than there can be.
pub(crate) fn check_tree_count(trees: usize) -> Result<()> {
    if trees < TREES_MAX { Ok(()) } else { Err(Error::TooManyTrees { max: TREES_MAX }) }
}

/// Refuses a layout that could be stored, and not read again.
pub(crate) fn check_layout(layout: &Layout) -> Result<()> {
    if layout.is_sound() {
        return Ok(());
    }
    let expected = "numbers have 1 to 8 bytes, and fields lie at most 32 deep in one another";
    Err(Error::InvalidOption { option: "layout", found: "one that no manifest holds".to_owned(), expected })
}

fn put_u128(out: &mut Vec<u8>, value: u128) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_segment(out: &mut Vec<u8>, segment: &SegmentMeta) {
    let numbers = [
        segment.number,
        segment.file_bytes,
        segment.entries,
        segment.tombstones,
        segment.sequence_min,
        segment.sequence_max,
    ];
    for number in numbers {
        put_varint(out, number);
    }
    put_length_prefixed(out, &segment.smallest);
    put_length_prefixed(out, &segment.largest);
}

fn read_segment(reader: &mut Reader<'_>) -> Option<SegmentMeta> {
    Some(SegmentMeta {
        number: reader.varint()?,
        file_bytes: reader.varint()?,
        entries: reader.varint()?,
        tombstones: reader.varint()?,
        sequence_min: reader.varint()?,
        sequence_max: reader.varint()?,
        smallest: reader.length_prefixed()?.to_vec(),
        largest: reader.length_prefixed()?.to_vec(),
    })
}

fn read_u128(reader: &mut Reader<'_>) -> Option<u128> {
    let bytes = reader.bytes(16)?;
    Some(u128::from_le_bytes(bytes.try_into().ok()?))
}

/// A list whose length was read from a file: it grows as its items decode, never ahead of them.
fn read_list<T>(reader: &mut Reader<'_>, mut item: impl FnMut(&mut Reader<'_>) -> Option<T>) -> Option<Vec<T>> {
    let count = reader.varint()?;
    if count > reader.remaining() as u64 {
        return None;
    }
    (0..count).map(|_| item(reader)).collect()
}

fn decode_body(body: &[u8]) -> Option<Manifest> {
    let reader = &mut Reader::new(body);
    let manifest = Manifest {
        database_id: read_u128(reader)?,
        boot_id: Some(read_u128(reader)?).filter(|&boot_id| boot_id != 0),
        next_number: reader.varint()?,
        log_floor: reader.varint()?,
        flushed: reader.varint()?,
        logged: reader.varint()?,
        trees: read_list(reader, |reader| {
            let name = std::str::from_utf8(reader.length_prefixed()?).ok()?.to_owned();
            let layout = Layout::decode(reader.length_prefixed()?)?;
            let runs = read_list(reader, |reader| read_list(reader, read_segment))?;
            Some(TreeManifest { name, layout, runs })
        })?,
    };
    reader.is_empty().then_some(manifest)
}

fn damaged(offset: u64, what: &'static str, expected: impl ToString, found: impl ToString) -> Error {
    Error::corruption(MANIFEST, offset, what, expected, found)
}

#[cfg(feature = "cli")]
pub(crate) mod fuzz;
#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;
    use crate::engine::disk::sim::SimDisk;
    use crate::engine::layout::Field;

    fn sample() -> Manifest {
        let segment = |number| SegmentMeta {
            number,
            file_bytes: 4096,
            entries: 300,
            tombstones: 2,
            sequence_min: 0,
            sequence_max: 900,
            smallest: vec![],
            largest: vec![0xFF; 40],
        };
        Manifest {
            next_number: 12,
            log_floor: 9,
            flushed: 900,
            logged: 880,
            trees: vec![
                TreeManifest {
                    name: "users".to_owned(),
                    layout: Layout { key: vec![Field::BigEndian(8)], value: vec![Field::Prefixed, Field::Rest] },
                    runs: vec![vec![segment(7), segment(8)], vec![segment(3)]],
                },
                TreeManifest::default(),
            ],
            ..Manifest::new(u128::MAX / 3, Some(77))
        }
    }

    #[test]
    fn decode_undoes_encode() {
        assert_eq!(Manifest::decode(&sample().encode()).expect("decodes"), sample());
    }

    /// The damage of a manifest that was salvaged all the same.
    fn salvaged(bytes: &[u8], case: &str) -> Option<u64> {
        let disk = SimDisk::new();
        disk.create(MANIFEST).expect("new").append(bytes).expect("memory has room");
        assert!(Manifest::load(&disk).is_err(), "{case} is found");
        let (manifest, damage) = Manifest::salvage(&disk).ok()?;
        assert_eq!(manifest, sample(), "{case}");
        Some(damage.unwrap_or_else(|| panic!("{case} is told")).offset)
    }

    #[test]
    fn a_flipped_bit_is_refused_and_costs_one_copy() {
        let bytes = sample().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let case = format!("bit {bit}");
            let offset = salvaged(&damaged, &case).expect("the other copy is sound");
            assert_eq!(offset < 4096, bit / 8 < 4096, "{case}: {offset}");
        }
    }

    #[test]
    fn a_cut_is_refused_and_costs_no_copy_that_is_whole() {
        let bytes = sample().encode();
        let [_, second] = copies::places(&bytes);
        let copy_bytes = bytes.len() - second;
        for cut in 0..bytes.len() {
            let case = format!("cut at {cut}");
            assert_eq!(salvaged(&bytes[..cut], &case).is_some(), cut >= copy_bytes, "{case}");
        }
    }

    #[test]
    fn a_sector_that_cannot_be_read_costs_one_copy() {
        let bytes = sample().encode();
        for bad in [0..512, 4096..4608] {
            let disk = SimDisk::new();
            disk.create(MANIFEST).expect("new").append(&bytes).expect("memory has room");
            let start = bad.start;
            disk.break_sector(MANIFEST, bad);
            assert!(matches!(Manifest::load(&disk), Err(Error::Io { action: "read", .. })));
            let (manifest, damage) = Manifest::salvage(&disk).expect("the other copy can be read");
            assert_eq!(manifest, sample());
            let Damage { offset, reason } = damage.expect("it is told");
            assert_eq!((offset, reason.is_some()), (start as u64, true));
        }
    }

    #[test]
    fn a_newer_version_is_named_and_refused() {
        let mut bytes = sample().encode();
        bytes[8] = 9;
        let error = Manifest::decode(&bytes).expect_err("refused");
        assert_eq!(error.to_string(), "MANIFEST has format version 9; this build reads version 3");
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused_despite_a_valid_checksum() {
        let refused = |change: fn(&mut Manifest)| {
            let mut manifest = sample();
            change(&mut manifest);
            assert!(matches!(Manifest::decode(&manifest.encode()), Err(Error::Corruption { .. })));
        };
        refused(|manifest| manifest.next_number = 8);
        refused(|manifest| manifest.trees[0].runs[1][0].number = 7);
        refused(|manifest| manifest.next_number = u64::MAX);
        refused(|manifest| manifest.logged = 901);
        refused(|manifest| manifest.flushed = 899);
        refused(|manifest| manifest.trees[1].name = "users".to_owned());
        refused(|manifest| manifest.trees[1].name = "x".repeat(TREE_NAME_BYTES_MAX + 1));
        refused(|manifest| manifest.trees[0].runs.push(vec![]));
        refused(|manifest| {
            let trees =
                (0..TREES_MAX).map(|number| TreeManifest { name: number.to_string(), ..TreeManifest::default() });
            manifest.trees.extend(trees);
        });
    }

    #[test]
    fn a_list_longer_than_the_file_is_refused_before_it_is_allocated() {
        let mut body = Vec::new();
        body.extend_from_slice(&[0; 32]);
        (0..4).for_each(|_| put_varint(&mut body, 1));
        put_varint(&mut body, u64::MAX);
        assert_eq!(decode_body(&body), None);
    }
}
