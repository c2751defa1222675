//! Every kind of damage: it is an error, or it changes nothing.

use std::ops::Range;
use std::path::Path;

use super::*;
use crate::engine::error::Error;

/// A small file with several blocks, all parts, and the damage tests' answer to compare with.
fn small_file(compression: Compression) -> (Bench, SegmentMeta, Vec<Version>) {
    let bench = Bench::new(1 << 20);
    let value = |key: u32| format!("a value of {:08x}", key.wrapping_mul(2_654_435_761));
    let mut versions: Vec<_> =
        (0..100).map(|key| version(format!("user{key:04}").as_bytes(), 9, Some(value(key).as_bytes()))).collect();
    versions.extend((0..40).map(|sequence| version(b"user0030", sequence, (sequence != 7).then_some(b"older"))));
    versions.sort();
    versions.dedup_by(|left, right| (&left.0, left.1) == (&right.0, right.1));
    let meta = bench.write(1, &versions, &params(400, compression));
    assert!((1000..5000).contains(&meta.file_bytes), "{} bytes", meta.file_bytes);
    (bench, meta, versions)
}

/// The same, settled and by columns.
fn small_packed_file(compression: Compression) -> (Bench, SegmentMeta, Vec<Version>) {
    let bench = Bench::new(1 << 20);
    let value = |key: u32| {
        let text = format!("number {} of {}", key * 7, ["many", "few"][key as usize % 2]);
        [&[text.len() as u8], text.as_bytes(), &key.wrapping_mul(77).to_be_bytes()].concat()
    };
    let versions: Vec<_> =
        (0..100).map(|key| version(format!("user{key:04}\0").as_bytes(), 0, Some(&value(key)))).collect();
    let layout = Layout { key: vec![Field::Terminated(0)], value: vec![Field::Prefixed, Field::BigEndian(4)] };
    let params = WriterParams { layout: Arc::new(layout), ..params(400, compression) };
    let meta = bench.write(1, &versions, &params);
    assert!((400..2000).contains(&meta.file_bytes), "{} bytes", meta.file_bytes);
    (bench, meta, versions)
}

/// Puts `bytes` in place of the file and reads it: an error, or the truth. Says whether it was an error.
fn is_refused(bench: &Bench, meta: &SegmentMeta, versions: &[Version], bytes: &[u8]) -> bool {
    bench.overwrite(meta.number, bytes);
    match read_all(bench, meta) {
        Ok(found) => {
            assert_eq!(found, versions, "damage changed an answer");
            false
        }
        Err(Error::Corruption { file, .. } | Error::UnsupportedFormat { file, .. }) => {
            assert_eq!(file, file_name(meta.number));
            true
        }
        Err(error) => panic!("damage is not told as damage: {error}"),
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let files = compressions()
        .into_iter()
        .flat_map(|compression| [small_file, small_packed_file].map(|file| (compression, file(compression))));
    for (compression, (bench, meta, versions)) in files {
        let sound = std::fs::read(bench.path(1)).expect("the file is there");
        assert!(!is_refused(&bench, &meta, &versions, &sound));
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(is_refused(&bench, &meta, &versions, &bytes), "bit {bit} of {compression:?}");
        }
    }
}

#[test]
fn a_file_cut_or_grown_at_any_length_is_found() {
    let (bench, meta, versions) = small_file(Compression::Lz4);
    let sound = std::fs::read(bench.path(1)).expect("the file is there");
    for len in 0..sound.len() {
        assert!(is_refused(&bench, &meta, &versions, &sound[..len]), "cut at {len}");
        // A manifest that agrees on the length does not help.
        let cut = SegmentMeta { file_bytes: len as u64, ..meta.clone() };
        assert!(is_refused(&bench, &cut, &versions, &sound[..len]), "cut at {len}, length agreed");
    }
    assert!(is_refused(&bench, &meta, &versions, &[sound.as_slice(), b"\0"].concat()));
}

/// Offset and length of each block of the file in front of the footer.
fn extents(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut extents = Vec::new();
    let mut start = 0;
    while start < bytes.len() - FOOTER_BYTES {
        let end = start + frame::extent(&bytes[start..]).expect("a sound block");
        extents.push(start..end);
        start = end;
    }
    extents
}

#[test]
fn swapped_blocks_are_found() {
    let bench = Bench::new(1 << 20);
    let versions: Vec<_> = (0..100_u32).map(|key| version(&key.to_be_bytes(), 1, Some(b"same length"))).collect();
    let meta = bench.write(1, &versions, &params(200, Compression::None));
    let sound = std::fs::read(bench.path(1)).expect("the file is there");
    let extents = extents(&sound);
    let (one, other) = (extents[1].clone(), extents[2].clone());
    assert_eq!(one.len(), other.len(), "or the swap would show in the lengths");
    let mut bytes = sound.clone();
    bytes[one.clone()].copy_from_slice(&sound[other.clone()]);
    bytes[other].copy_from_slice(&sound[one]);
    assert!(is_refused(&bench, &meta, &versions, &bytes));
}

#[test]
fn a_file_of_the_same_name_from_another_database_or_number_is_found() {
    let (bench, meta, versions) = small_file(Compression::Lz4);
    let foreign = Bench::new(0);
    let mut writer =
        SegmentWriter::new(&*foreign.disk, DATABASE_ID + 1, 1, &params(400, Compression::Lz4)).expect("a new file");
    for version in &versions {
        writer.add(entry_of(version)).expect("within the limits");
    }
    assert_eq!(writer.finish().expect("room"), meta, "only the id tells them apart");
    let bytes = std::fs::read(foreign.path(1)).expect("the file is there");
    assert!(is_refused(&bench, &meta, &versions, &bytes));

    let renamed = bench.write(2, &versions, &params(400, Compression::Lz4));
    let bytes = std::fs::read(bench.path(renamed.number)).expect("the file is there");
    assert!(is_refused(&bench, &meta, &versions, &bytes));
}

#[test]
fn a_manifest_that_describes_another_file_is_found() {
    let (bench, meta, _) = small_file(Compression::Lz4);
    let others = [
        SegmentMeta { file_bytes: meta.file_bytes + 1, ..meta.clone() },
        SegmentMeta { entries: meta.entries - 1, ..meta.clone() },
        SegmentMeta { tombstones: meta.tombstones + 1, ..meta.clone() },
        SegmentMeta { smallest: b"user".to_vec(), ..meta.clone() },
        SegmentMeta { largest: b"user9".to_vec(), ..meta.clone() },
        SegmentMeta { sequence_min: 1, ..meta.clone() },
        SegmentMeta { sequence_max: 99, ..meta.clone() },
    ];
    for other in others {
        assert!(matches!(bench.open(&other), Err(Error::Corruption { .. })), "{other:?}");
    }
}

/// Damage with its checksums made right again: what is left is structure.
fn reseal(bytes: &mut [u8]) {
    let identity = Identity { database_id: DATABASE_ID, number: 1 };
    let mut start = 0;
    while let Some(extent) = frame::extent(&bytes[start..bytes.len() - FOOTER_BYTES]) {
        let checksum = identity.checksum(start as u64, &bytes[start + 8..start + extent]);
        bytes[start..start + 8].copy_from_slice(&checksum.to_le_bytes());
        start += extent;
    }
    let footer = bytes.len() - FOOTER_BYTES;
    let checksum = identity.checksum(footer as u64, &bytes[footer + 8..]);
    bytes[footer..footer + 8].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn damage_under_valid_checksums_never_panics_and_never_breaks_the_order() {
    for compression in compressions() {
        let (bench, meta, _) = small_file(compression);
        let sound = std::fs::read(bench.path(1)).expect("the file is there");
        for position in 0..sound.len() {
            for change in [1, 0x80, 0xFF] {
                let mut bytes = sound.clone();
                bytes[position] ^= change;
                reseal(&mut bytes);
                bench.overwrite(1, &bytes);
                // A changed value cannot be seen; what is read has to be sorted and of the promised size.
                if let Ok(found) = read_all(&bench, &meta) {
                    assert!(found.is_sorted_by(|left, right| (&left.0, left.1) < (&right.0, right.1)));
                    assert_eq!(found.len() as u64, meta.entries);
                }
            }
        }
    }
}

#[test]
fn zeros_and_ones_of_any_kind_are_refused_at_once() {
    let (bench, meta, versions) = small_file(Compression::None);
    for byte in [0, 0xFF, 0x80] {
        let meta = SegmentMeta { file_bytes: 1 << 20, ..meta.clone() };
        assert!(is_refused(&bench, &meta, &versions, &vec![byte; 1 << 20]));
    }
}

#[test]
fn a_file_in_place_of_a_segment_that_is_missing_or_a_directory_is_an_error() {
    let (bench, meta, _) = small_file(Compression::None);
    let path: &Path = &bench.path(1);
    std::fs::remove_file(path).expect("the file is there");
    assert!(matches!(bench.open(&meta), Err(Error::Io { .. })));
    std::fs::create_dir(path).expect("the name is free");
    assert!(matches!(bench.open(&meta), Err(Error::Io { .. })));
}
