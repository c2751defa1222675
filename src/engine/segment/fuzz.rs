//! Any bytes as a segment file, as a block and as a filter.
//!
//! What opens is read in every direction, and verification says the same of it as reading does. The numbers that the
//! manifest would know of a file are taken from the file.

pub(crate) mod blocks;
pub(crate) mod columns;

use std::cmp::Reverse;
use std::sync::Arc;

use super::filter::{Filter, FilterBuilder};
use super::footer::{self, FOOTER_BYTES, Footer};
use super::frame::{self, Identity, LAYOUT_FENCE, LAYOUT_FILTER};
use super::{
    BlockCache, Compression, Fence, Reading, Segment, SegmentCursor, SegmentMeta, SegmentWriter, WriterParams,
    file_name, load_chunks, read_survivors,
};
use crate::engine::cursor::{Cursor, Entry, SEQUENCE_MAX};
use crate::engine::disk::Disk;
use crate::engine::disk::sim::SimDisk;
use crate::engine::error::{Error, Result};
use crate::engine::layout::{Field, Layout};
use crate::engine::open_files::{OpenFiles, SegmentFile};
use crate::engine::stored::Stored;

/// Key, sequence and value; sorted as versions are.
pub(crate) type Version = (Vec<u8>, Reverse<u64>, Option<Vec<u8>>);

const IDENTITY: Identity = Identity { database_id: 7, number: 3 };
/// Lookups that are tried in one file.
const LOOKUPS_MAX: usize = 40;

pub(crate) fn run(input: &[u8]) {
    check_file(input);
    let mut repaired = input.to_vec();
    repair(IDENTITY.database_id, IDENTITY.number, &mut repaired);
    check_file(&repaired);
}

/// Makes the checksums of all blocks right again, and the footer what a footer is.
pub(crate) fn repair(database_id: u128, number: u64, bytes: &mut [u8]) {
    let identity = Identity { database_id, number };
    let Some(footer_offset) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let (blocks, footer) = bytes.split_at_mut(footer_offset);
    let (mut offset, mut fence_offset, mut filter_offset) = (0, None, None);
    while let Some(extent) = frame::extent(&blocks[offset..]) {
        match frame::repair(identity, offset as u64, &mut blocks[offset..offset + extent]) {
            LAYOUT_FENCE => fence_offset = fence_offset.or(Some(offset as u64)),
            LAYOUT_FILTER => filter_offset = filter_offset.or(Some(offset as u64)),
            _ => {}
        }
        offset += extent;
    }
    let filter_offset = filter_offset.unwrap_or(footer_offset as u64);
    footer::repair(identity, footer_offset as u64, fence_offset.zip(Some(filter_offset)), footer);
}

fn check_file(bytes: &[u8]) {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let file = disk.create(&IDENTITY.file_name()).expect("an empty disk");
    file.append(bytes).expect("memory has room");
    let files = OpenFiles::new(&disk, 1);
    let meta = describe(&SegmentFile::new(&files, IDENTITY.number), bytes);
    let cache = BlockCache::new(1 << 20);
    let opened = Segment::open(&files, IDENTITY.database_id, meta.clone(), &cache).map(Arc::new);
    let is_sound = opened.as_ref().is_ok_and(check_reading);
    check_survivors(&*disk, &meta, opened.ok().filter(|_| is_sound));
}

/// What the manifest would say of the file.
fn describe(file: &SegmentFile, bytes: &[u8]) -> SegmentMeta {
    let mut meta = SegmentMeta {
        number: IDENTITY.number,
        file_bytes: bytes.len() as u64,
        entries: 0,
        tombstones: 0,
        smallest: Vec::new(),
        largest: Vec::new(),
        sequence_min: 0,
        sequence_max: 0,
    };
    let Some((before, footer)) = bytes.split_last_chunk() else { return meta };
    let Ok(footer) = Footer::decode(IDENTITY, before.len() as u64, footer) else { return meta };
    meta = SegmentMeta {
        entries: footer.entries,
        tombstones: footer.tombstones,
        sequence_min: footer.sequence_min,
        sequence_max: footer.sequence_max,
        ..meta
    };
    if let Ok(chunks) = load_chunks(file, IDENTITY, footer.fence_offset..footer.filter_offset, LAYOUT_FENCE)
        && let Ok(fence) = Fence::decode(&chunks, &footer)
    {
        meta.smallest = fence.smallest().to_vec();
        meta.largest = fence.largest().to_vec();
    }
    meta
}

/// Answers whether the segment is sound, as verification and reading agree.
fn check_reading(segment: &Arc<Segment>) -> bool {
    let forward = scan(segment, Reading::Once, false);
    let backward = scan(segment, Reading::Again, true);
    let verified = segment.verify();
    let (Ok(forward), Ok(mut backward)) = (&forward, backward) else {
        assert!(forward.is_err() && scan(segment, Reading::Again, true).is_err(), "one direction reads, one does not");
        assert!(verified.is_err(), "what cannot be read is verified");
        return false;
    };
    backward.reverse();
    assert!(*forward == backward, "backward is not forward, reversed");
    assert_eq!(verified.is_ok(), is_whole(segment, forward), "{verified:?}");
    if verified.is_ok() {
        check_lookups(segment, forward);
    }
    verified.is_ok()
}

pub(crate) fn scan(segment: &Arc<Segment>, reading: Reading, back: bool) -> Result<Vec<Version>> {
    let (mut cursor, mut versions) = (SegmentCursor::new(Arc::clone(segment), reading), Vec::new());
    if back {
        cursor.last()?;
    } else {
        cursor.first()?;
    }
    while let Some(entry) = cursor.entry() {
        versions.push(copied(&entry));
        if back { cursor.prev()? } else { cursor.next()? }
    }
    Ok(versions)
}

fn copied(entry: &Entry<'_>) -> Version {
    (entry.key.to_vec(), Reverse(entry.sequence), entry.value.map(<[u8]>::to_vec))
}

/// What verification has to look for.
fn is_whole(segment: &Segment, versions: &[Version]) -> bool {
    let Segment { meta, contents, .. } = segment;
    let place = |version: &Version| (version.0.clone(), version.1);
    let sequences = || versions.iter().map(|version| version.1.0);
    versions.is_sorted_by(|one, next| place(one) < place(next))
        && meta.entries == versions.len() as u64
        && meta.tombstones == versions.iter().filter(|version| version.2.is_none()).count() as u64
        && (Some(meta.sequence_min), Some(meta.sequence_max)) == (sequences().min(), sequences().max())
        && contents.filter.as_ref().is_none_or(|filter| versions.iter().all(|(key, ..)| filter.may_contain(key)))
}

fn check_lookups(segment: &Arc<Segment>, versions: &[Version]) {
    let mut cursor = SegmentCursor::new(Arc::clone(segment), Reading::Again);
    for (key, Reverse(sequence), _) in versions.iter().step_by(1 + versions.len() / LOOKUPS_MAX) {
        let longer = [key.as_slice(), &[0]].concat();
        let shorter = &key[..key.len().saturating_sub(1)];
        let probes =
            [(key.as_slice(), *sequence), (key, SEQUENCE_MAX), (key, sequence / 2), (&longer, 0), (shorter, 1)];
        for (key, sequence) in probes {
            let rank = versions.partition_point(|version| (version.0.as_slice(), version.1) < (key, Reverse(sequence)));
            let expected = versions.get(rank).filter(|version| version.0 == key).map(|version| version.2.clone());
            let found = segment.get(key, sequence, |value| value.map(|value| value.to_vec()));
            assert_eq!(found.expect("it was read"), expected, "{key:?} at {sequence}");
            cursor.seek(key, sequence).expect("it was read");
            assert_eq!(cursor.entry().as_ref().map(copied).as_ref(), versions.get(rank), "{key:?} at {sequence}");
            cursor.seek_before(key, sequence).expect("it was read");
            let before = rank.checked_sub(1).map(|before| &versions[before]);
            assert_eq!(cursor.entry().as_ref().map(copied).as_ref(), before, "before {key:?} at {sequence}");
        }
    }
}

/// Of a segment that is sound everything survives.
fn check_survivors(disk: &dyn Disk, meta: &SegmentMeta, sound: Option<Arc<Segment>>) {
    let mut survivors: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    let each = |key: &[u8], value: Option<Stored<'_>>| {
        survivors.push((key.to_vec(), value.map(|value| value.to_vec())));
        Ok(())
    };
    let survived = read_survivors(disk, IDENTITY.database_id, meta, each);
    let Some(segment) = sound else {
        assert!(matches!(survived, Ok(_) | Err(Error::UnsupportedFormat { .. })), "not what is lost: {survived:?}");
        return;
    };
    let loss = survived.expect("it was read");
    let mut newest = scan(&segment, Reading::Once, false).expect("it was read");
    newest.dedup_by(|next, one| next.0 == one.0);
    assert!(loss.gaps.is_empty() && loss.entries == 0, "{loss:?} of a sound segment");
    assert_eq!(survivors, newest.into_iter().map(|(key, _, value)| (key, value)).collect::<Vec<_>>());
}

/// Any bytes as a filter, and as keys of one: `key_len:u8 key` for each.
pub(crate) fn run_filter(input: &[u8]) {
    let decoded = Filter::decode(input.to_vec());
    let (mut keys, mut rest) = (Vec::new(), input);
    while let Some((&len, behind)) = rest.split_first() {
        let (key, behind) = behind.split_at(usize::from(len).min(behind.len()));
        keys.push(key);
        rest = behind;
    }
    let mut builder = FilterBuilder::default();
    for key in &keys {
        builder.add(key);
    }
    let filter = Filter::decode(builder.finish()).expect("a filter decodes");
    assert!(filter.resident_bytes() <= 64 + keys.len() * 2, "a filter has ten bits for a key");
    for key in keys {
        assert!(filter.may_contain(key), "a key of the filter is not known to it");
        let _ = decoded.as_ref().is_ok_and(|filter| filter.may_contain(key));
    }
}

pub(crate) fn filter_seeds() -> Vec<Vec<u8>> {
    let mut builder = FilterBuilder::default();
    (0..60_u32).for_each(|key| builder.add(&key.to_be_bytes()));
    vec![builder.finish(), b"\x03key\x00\x05other".to_vec(), vec![0xFF; 64], Vec::new()]
}

/// Files of either layout, in every compression.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let layout = Arc::new(Layout { key: vec![Field::Terminated(0), Field::BigEndian(2)], value: vec![Field::Rest] });
    let write = |versions: &[Version], layout: &Arc<Layout>, compression| {
        let params = WriterParams { block_bytes: 160, compression, filter: true, layout: Arc::clone(layout) };
        file_of(IDENTITY.database_id, IDENTITY.number, versions.iter().cloned(), &params).0
    };
    let opaque = Arc::default();
    let mut seeds = vec![
        write(&versions(), &opaque, Compression::None),
        write(&versions(), &opaque, Compression::Lz4),
        write(&settled(), &layout, Compression::None),
        write(&settled()[..1], &opaque, Compression::None),
    ];
    if cfg!(feature = "zstd") {
        seeds.push(write(&settled(), &opaque, Compression::Zstd { level: 1 }));
    }
    seeds
}

/// The file of a segment, and what the manifest says of it.
pub(crate) fn file_of(
    database_id: u128,
    number: u64,
    versions: impl Iterator<Item = Version>,
    params: &WriterParams,
) -> (Vec<u8>, SegmentMeta) {
    let disk = SimDisk::new();
    let mut writer = SegmentWriter::new(&disk, database_id, number, params).expect("an empty disk");
    for (key, Reverse(sequence), value) in versions {
        writer.add(Entry { key: &key, sequence, value: value.as_deref() }).expect("within the limits");
    }
    let meta = writer.finish().expect("memory has room");
    let file = disk.open(&file_name(number)).expect("it was written");
    let mut bytes = vec![0; meta.file_bytes as usize];
    file.read_at(0, &mut bytes).expect("it was written");
    (bytes, meta)
}

/// Several versions of some keys, and deletions.
fn versions() -> Vec<Version> {
    let version = |n: u64| {
        let value = (!n.is_multiple_of(5)).then(|| format!("value {n}").into_bytes());
        (format!("key {:02}", n / 3).into_bytes(), Reverse(90 - n), value)
    };
    (0..60).map(version).collect()
}

/// Settled entries, most of which follow a layout.
pub(crate) fn settled() -> Vec<Version> {
    let entry = |n: u16| {
        let key = [format!("user{:02}\0", n / 4).as_bytes(), &n.to_be_bytes()].concat();
        (if n == 30 { b"user07".to_vec() } else { key }, Reverse(0), Some(format!("since {n}").into_bytes()))
    };
    let mut entries: Vec<_> = (0..48).map(entry).collect();
    entries.sort();
    entries
}
