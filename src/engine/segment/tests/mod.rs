//! What segments promise, on real files. Beside it: against a model, and against damage.

mod damage;
mod model;

use std::cmp::Reverse;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::engine::batch::KEY_BYTES_MAX;
use crate::engine::cursor::{Cursor, Entry, SEQUENCE_MAX};
use crate::engine::disk::{Disk, RealDisk};
use crate::engine::error::Error;
use crate::engine::layout::{Field, Layout};

const DATABASE_ID: u128 = 0xD1CE;

/// Key, sequence and value; sorted as versions are.
type Version = (Vec<u8>, Reverse<u64>, Option<Vec<u8>>);

/// Segments in a directory of their own.
struct Bench {
    dir: TempDir,
    disk: Arc<dyn Disk>,
    files: Arc<OpenFiles>,
    cache: Arc<BlockCache>,
}

impl Bench {
    fn new(budget_bytes: u64) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir.path(), false).expect("it can be opened"));
        let files = OpenFiles::new(&disk, 4);
        Self { dir, disk, files, cache: BlockCache::new(budget_bytes) }
    }

    fn write(&self, number: u64, versions: &[Version], params: &WriterParams) -> SegmentMeta {
        let mut writer = SegmentWriter::new(&*self.disk, DATABASE_ID, number, params).expect("a new file");
        for version in versions {
            writer.add(entry_of(version)).expect("within the limits");
        }
        writer.finish().expect("the disk has room")
    }

    fn open(&self, meta: &SegmentMeta) -> Result<Arc<Segment>> {
        Segment::open(&self.files, DATABASE_ID, meta.clone(), &self.cache).map(Arc::new)
    }

    fn segment(&self, number: u64, versions: &[Version], params: &WriterParams) -> Arc<Segment> {
        self.open(&self.write(number, versions, params)).expect("what was written opens")
    }

    /// In place: a file that is truncated first is flushed, and that takes a thousand times as long.
    fn overwrite(&self, number: u64, bytes: &[u8]) {
        let file = std::fs::File::options().write(true).open(self.path(number)).expect("the file is there");
        file.write_all_at(bytes, 0).and_then(|()| file.set_len(bytes.len() as u64)).expect("the file can be written");
    }

    fn path(&self, number: u64) -> std::path::PathBuf {
        self.dir.path().join(file_name(number))
    }
}

fn entry_of((key, sequence, value): &Version) -> Entry<'_> {
    Entry { key, sequence: sequence.0, value: value.as_deref() }
}

fn version(key: &[u8], sequence: u64, value: Option<&[u8]>) -> Version {
    (key.to_vec(), Reverse(sequence), value.map(<[u8]>::to_vec))
}

fn copy_of(value: Option<Stored<'_>>) -> Option<Vec<u8>> {
    value.map(|value| value.to_vec())
}

fn params(block_bytes: usize, compression: Compression) -> WriterParams {
    WriterParams { block_bytes, compression, filter: true, layout: Arc::default() }
}

fn compressions() -> Vec<Compression> {
    let zstd = cfg!(feature = "zstd").then_some(Compression::Zstd { level: 1 });
    [Compression::None, Compression::Lz4].into_iter().chain(zstd).collect()
}

fn scan(cursor: &mut impl Cursor) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    cursor.first()?;
    while let Some(entry) = cursor.entry() {
        versions.push(version(entry.key, entry.sequence, entry.value));
        cursor.next()?;
    }
    Ok(versions)
}

fn scan_back(cursor: &mut impl Cursor) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    cursor.last()?;
    while let Some(entry) = cursor.entry() {
        versions.push(version(entry.key, entry.sequence, entry.value));
        cursor.prev()?;
    }
    versions.reverse();
    Ok(versions)
}

/// Everything a reader can learn, or the first error.
fn read_all(bench: &Bench, meta: &SegmentMeta) -> Result<Vec<Version>> {
    let segment = bench.open(meta)?;
    segment.verify()?;
    let versions = scan(&mut SegmentCursor::new(Arc::clone(&segment), Reading::Again))?;
    assert_eq!(versions, scan_back(&mut SegmentCursor::new(segment, Reading::Once))?);
    Ok(versions)
}

/// Keys and values chosen to be awkward; several versions of one key fill several small blocks.
fn awkward_versions() -> Vec<Version> {
    let mut versions = vec![
        version(b"", u64::MAX, Some(b"")),
        version(b"", 0, None),
        version(b"\0", 5, Some(b"\0")),
        version(b"\0\0", 5, None),
        version(&[0xFF; 9], 1 << 63, Some(&[0xFF; 300])),
        version(&[b'k'; KEY_BYTES_MAX], 3, Some(b"longest key")),
        version(&[b'k'; KEY_BYTES_MAX - 1], 0, Some(b"")),
    ];
    versions.extend((0..300).map(|sequence| version(b"hot", sequence, (sequence % 3 != 0).then_some(b"value"))));
    versions.extend((0..300_u32).map(|key| version(&key.to_be_bytes(), 0, Some(&key.to_le_bytes()))));
    versions.sort();
    versions
}

#[test]
fn awkward_versions_round_trip_in_every_block_size_and_compression() {
    let versions = awkward_versions();
    for compression in compressions() {
        for block_bytes in [0, 64, 1 << 10, 64 << 10, usize::MAX] {
            let bench = Bench::new(1 << 20);
            let meta = bench.write(1, &versions, &params(block_bytes, compression));
            assert_eq!((meta.entries, meta.tombstones), (versions.len() as u64, 102));
            assert_eq!((meta.smallest.as_slice(), meta.largest.as_slice()), (&b""[..], &[0xFF; 9][..]));
            assert_eq!((meta.sequence_min, meta.sequence_max), (0, u64::MAX));
            assert_eq!(read_all(&bench, &meta).expect("a sound file"), versions);
            let segment = bench.open(&meta).expect("a sound file");
            assert_gets(&versions, |key, sequence| segment.get(key, sequence, copy_of));
        }
    }
}

/// Looks up every version, the places beside it, and keys that are not there.
fn assert_gets(versions: &[Version], get: impl Fn(&[u8], u64) -> Result<Option<Option<Vec<u8>>>>) {
    for (key, Reverse(sequence), _) in versions {
        let longer = [key.as_slice(), b"\0"].concat();
        for key in [key.as_slice(), &longer, key.split_last().map_or(&[], |(_, shorter)| shorter)] {
            for sequence in [*sequence, sequence.saturating_sub(1), sequence.saturating_add(1), SEQUENCE_MAX, 0] {
                let from =
                    versions.partition_point(|version| (version.0.as_slice(), version.1) < (key, Reverse(sequence)));
                let expected = versions.get(from).filter(|version| version.0 == key).map(|version| version.2.clone());
                assert_eq!(get(key, sequence).expect("a sound file"), expected);
            }
        }
    }
}

#[test]
fn a_value_far_larger_than_a_block_is_a_block_of_its_own() {
    let huge = vec![7; 5 << 20];
    let versions = [version(b"a", 1, Some(b"x")), version(b"b", 1, Some(&huge)), version(b"c", 1, Some(b"y"))];
    for compression in compressions() {
        let bench = Bench::new(1 << 20);
        let segment = bench.segment(1, &versions, &params(4096, compression));
        assert_eq!(segment.contents.fence.len(), 3);
        assert_eq!(scan(&mut SegmentCursor::new(Arc::clone(&segment), Reading::Again)).expect("sound"), versions);
        assert!(bench.cache.resident_bytes() <= 1 << 20, "a block over the budget is not kept");
        segment.verify().expect("sound");
    }
}

#[test]
fn a_settled_entry_spends_one_byte_on_its_sequence() {
    let bench = Bench::new(0);
    let size = |number, sequence| {
        let versions: Vec<_> = (0..1000_u32).map(|key| version(&key.to_be_bytes(), sequence, Some(b"v"))).collect();
        bench.write(number, &versions, &params(1 << 20, Compression::None)).file_bytes
    };
    assert_eq!(size(2, 1 << 40) - size(1, 0), 5 * 1000);
}

#[test]
fn absent_keys_read_no_block() {
    let bench = Bench::new(1 << 30);
    let versions: Vec<_> = (0..2000_u32).map(|key| version(&(key * 2).to_be_bytes(), 1, Some(b"value"))).collect();
    let segment = bench.segment(1, &versions, &params(64, Compression::Lz4));
    for key in 0..2000_u32 {
        let found = segment.get(&(key * 2 + 1).to_be_bytes(), SEQUENCE_MAX, |_| ());
        assert_eq!(found.expect("sound"), None);
    }
    let blocks = segment.contents.fence.len() as u64;
    assert!(bench.cache.resident_bytes() < blocks / 4 * 64, "the filter lets few absent keys through");
}

#[test]
fn sorting_errors_of_the_caller_are_stopped() {
    let refused = |first: Entry, second: Entry| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let bench = Bench::new(0);
            let mut writer = SegmentWriter::new(&*bench.disk, 1, 1, &WriterParams::default()).expect("a new file");
            writer.add(first).expect("within the limits");
            writer.add(second).expect("within the limits");
        }))
        .is_err()
    };
    let entry = |key, sequence| Entry { key, sequence, value: None };
    assert!(refused(entry(b"b", 1), entry(b"a", 1)));
    assert!(refused(entry(b"a", 1), entry(b"a", 1)));
    assert!(refused(entry(b"a", 1), entry(b"a", 2)));
    assert!(!refused(entry(b"a", 2), entry(b"a", 1)));
}

#[test]
fn a_key_or_value_over_its_limit_is_refused() {
    let bench = Bench::new(0);
    let mut writer = SegmentWriter::new(&*bench.disk, 1, 1, &WriterParams::default()).expect("a new file");
    let key = vec![0; KEY_BYTES_MAX + 1];
    let added = writer.add(Entry { key: &key, sequence: 0, value: None });
    assert!(matches!(added, Err(Error::TooLarge { what: "key", .. })));
}

#[test]
fn a_tiny_budget_evicts_and_answers_stay_right() {
    let versions: Vec<_> = (0..5000_u32).map(|key| version(&key.to_be_bytes(), 1, Some(&[key as u8; 20]))).collect();
    let bench = Bench::new(32 << 10);
    let segment = bench.segment(1, &versions, &params(1 << 10, Compression::Lz4));
    let taken = || bench.cache.resident_bytes() + bench.cache.charged_bytes();
    for step in 0..20_000_u32 {
        let key = step.wrapping_mul(2_654_435_761) % 5000;
        let value = segment.get(&key.to_be_bytes(), SEQUENCE_MAX, copy_of).expect("sound");
        assert_eq!(value, Some(Some(vec![key as u8; 20])));
        assert!(taken() <= 32 << 10);
    }
    assert!(taken() > 28 << 10, "the budget is made use of");
    drop(segment);
    assert_eq!(bench.cache.resident_bytes(), 0, "a dropped segment gives its memory back");
}

#[test]
fn blocks_make_room_for_charges_and_take_it_back() {
    let versions: Vec<_> = (0..5000_u32).map(|key| version(&key.to_be_bytes(), 1, Some(&[key as u8; 20]))).collect();
    let bench = Bench::new(64 << 10);
    let segment = bench.segment(1, &versions, &params(1 << 10, Compression::None));
    let index_bytes = bench.cache.charged_bytes();
    assert!(index_bytes > versions.len() as u64 * 10 / 8, "the filter alone takes ten bits for each key");
    let read_all = || {
        (0..5000_u32).for_each(|key| {
            segment.get(&key.to_be_bytes(), SEQUENCE_MAX, |_| ()).expect("sound");
        });
        bench.cache.resident_bytes() + bench.cache.charged_bytes()
    };
    let full = 62 << 10..=64 << 10;
    assert!(full.contains(&read_all()));
    let charge = Charge::new(&bench.cache);
    charge.grow(40 << 10);
    assert!(full.contains(&(bench.cache.resident_bytes() + bench.cache.charged_bytes())), "room was made at once");
    assert!(full.contains(&read_all()));
    charge.grow(40 << 10);
    assert_eq!(bench.cache.resident_bytes(), 0, "charges alone are over the budget");
    assert_eq!(read_all(), index_bytes + (80 << 10), "nothing stays, and answers come all the same");
    drop(charge);
    assert!(full.contains(&read_all()));
    drop(segment);
    assert_eq!((bench.cache.resident_bytes(), bench.cache.charged_bytes()), (0, 0));
}

#[test]
fn one_block_goes_for_each_that_comes() {
    let versions: Vec<_> = (0..20_000_u32).map(|key| version(&key.to_be_bytes(), 1, Some(&[1; 20]))).collect();
    let bench = Bench::new(128 << 10);
    let segment = bench.segment(1, &versions, &params(1 << 10, Compression::None));
    let get = |key: u32| segment.get(&key.to_be_bytes(), SEQUENCE_MAX, |_| ()).expect("sound");
    for key in 0..20_000 {
        get(key);
    }
    let full = bench.cache.resident_bytes();
    assert!((40 << 10..100 << 10).contains(&full), "{full} bytes of blocks beside the index");
    for step in 0..5000_u32 {
        get(step.wrapping_mul(2_654_435_761) % 20_000);
        let left = bench.cache.resident_bytes();
        assert!(left + (2 << 10) >= full, "{left} of {full} bytes are left at step {step}");
    }
}

#[test]
fn a_block_in_use_outlives_one_that_is_not() {
    let versions: Vec<_> = (0..3000_u32).map(|key| version(&key.to_be_bytes(), 1, Some(&[1; 20]))).collect();
    let bench = Bench::new(16 << 10);
    let segment = bench.segment(1, &versions, &params(1 << 10, Compression::Lz4));
    let get = |key: u32| segment.get(&key.to_be_bytes(), SEQUENCE_MAX, |_| ()).expect("sound");
    get(0);
    for key in 0..3000 {
        get(0);
        assert!(segment.slots.get(0).is_some(), "evicted at key {key}");
        get(key);
    }
}

#[test]
fn threads_read_while_blocks_come_and_go() {
    let versions: Vec<_> = (0..4000_u32).map(|key| version(&key.to_be_bytes(), 1, Some(&key.to_le_bytes()))).collect();
    let bench = Bench::new(32 << 10);
    let segments = [bench.segment(1, &versions, &params(512, Compression::Lz4)), {
        let settled: Vec<_> = versions.iter().map(|(key, _, value)| (key.clone(), Reverse(0), value.clone())).collect();
        let layout = Layout { key: vec![Field::BigEndian(4)], value: vec![Field::LittleEndian(4)] };
        bench.segment(2, &settled, &WriterParams { layout: Arc::new(layout), ..params(512, Compression::None) })
    }];
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let segments = &segments;
            scope.spawn(move || {
                for step in 0..20_000_u32 {
                    let key = (step + thread).wrapping_mul(2_654_435_761) % 4000;
                    let segment = &segments[(step % 2) as usize];
                    let value = segment.get(&key.to_be_bytes(), SEQUENCE_MAX, copy_of).expect("sound");
                    assert_eq!(value, Some(Some(key.to_le_bytes().to_vec())));
                }
            });
        }
    });
    assert!(bench.cache.resident_bytes() + bench.cache.charged_bytes() <= 32 << 10);
    drop(segments);
    assert_eq!(bench.cache.resident_bytes(), 0);
}
