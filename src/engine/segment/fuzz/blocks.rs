//! Any bytes as a block of either layout: it is refused, or it answers as the list of its entries does.

use std::cmp::Reverse;

use super::super::block::{Block, Lookup};
use super::super::frame::{LAYOUT_BYTES, LAYOUT_COLUMNS, RAW_BYTES_MAX};
use super::super::opaque::OpaqueBuilder;
use super::{Version, columns, versions};
use crate::engine::cursor::{Entry, SEQUENCE_MAX};

/// A block in memory takes at most so many times the bytes it was read from, and [`RESIDENT_BYTES`]: most for a column of
/// numbers without bits, and for a phrase that is little but slots.
const RESIDENT_FACTOR: u64 = 64;
const RESIDENT_BYTES: u64 = 1 << 10;
/// Entries that are looked for in one block.
const LOOKUPS_MAX: usize = 40;

pub(crate) fn run_opaque(input: &[u8]) {
    if let Some(Ok(block)) = Block::decode(LAYOUT_BYTES, input) {
        check(&block, input.len());
    }
}

pub(crate) fn run_packed(input: &[u8]) {
    if let Some(Ok(block)) = Block::decode(LAYOUT_COLUMNS, input) {
        check(&block, input.len());
    }
}

/// Answers the entries of the block.
pub(super) fn check(block: &Block, raw_bytes: usize) -> Vec<Version> {
    let resident = block.resident_bytes();
    assert!(resident <= raw_bytes as u64 * RESIDENT_FACTOR + RESIDENT_BYTES, "{resident} bytes for {raw_bytes}");
    let entries: Vec<_> = (0..block.len()).map(|index| entry_of(block, index)).collect();
    assert!(!entries.is_empty(), "a block without an entry");
    let bytes: usize = entries.iter().map(|(key, _, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum();
    assert!(bytes <= RAW_BYTES_MAX * 2, "entries of {bytes} bytes");
    let place = |version: &Version| (version.0.clone(), version.1);
    assert!(entries.is_sorted_by(|one, next| place(one) < place(next)), "entries out of order");
    check_lookups(block, &entries);
    if let Block::Packed(packed) = block {
        columns::check(packed, &entries);
    }
    entries
}

fn entry_of(block: &Block, index: usize) -> Version {
    let mut key = Vec::new();
    block.write_key(index, &mut key);
    let (sequence, value) = block.version(index);
    (key, Reverse(sequence), value.map(|value| value.to_vec()))
}

fn check_lookups(block: &Block, entries: &[Version]) {
    for (key, Reverse(sequence), _) in entries.iter().step_by(1 + entries.len() / LOOKUPS_MAX) {
        check_lookup(block, entries, key, *sequence);
        for probe in beside(key) {
            check_lookup(block, entries, &probe, SEQUENCE_MAX);
            check_lookup(block, entries, &probe, sequence / 2);
        }
    }
}

/// The key, and others a byte away from it.
fn beside(key: &[u8]) -> Vec<Vec<u8>> {
    let mut probes = vec![key.to_vec(), [key, &[0]].concat(), [key, b"0"].concat(), Vec::new()];
    for at in [0, key.len() / 2, key.len().saturating_sub(1)].into_iter().filter(|at| *at < key.len()) {
        probes.push(key[..at].to_vec());
        for byte in [key[at].wrapping_add(1), key[at].wrapping_sub(1), 0xFF, b'9'] {
            let mut probe = key.to_vec();
            probe[at] = byte;
            probes.push(probe);
        }
    }
    probes
}

fn check_lookup(block: &Block, entries: &[Version], key: &[u8], sequence: u64) {
    let before = |entry: &Version| match block {
        Block::Opaque(_) => (entry.0.as_slice(), entry.1) < (key, Reverse(sequence)),
        // What is settled is seen at every sequence number.
        Block::Packed(_) => entry.0.as_slice() < key,
    };
    let rank = entries.partition_point(before);
    assert_eq!(block.rank(key, sequence), rank, "rank of {key:?} at {sequence}");
    match (block.lookup(key, sequence), entries.get(rank)) {
        (Lookup::Before, None) => {}
        (Lookup::Absent, Some(entry)) if entry.0 != key => {}
        (Lookup::Found(value), Some(entry)) if entry.0 == key => {
            assert_eq!(value.map(|value| value.to_vec()), entry.2, "value of {key:?} at {sequence}");
        }
        (Lookup::Before, _) => panic!("{key:?} at {sequence} is said to be behind all entries"),
        (Lookup::Absent, _) => panic!("{key:?} at {sequence} is said to be absent"),
        (Lookup::Found(_), _) => panic!("{key:?} at {sequence} is said to be there"),
    }
}

pub(crate) fn opaque_seeds() -> Vec<Vec<u8>> {
    let block = |versions: &[Version]| {
        let (mut builder, mut raw) = (OpaqueBuilder::default(), Vec::new());
        for (key, Reverse(sequence), value) in versions {
            builder.push(&Entry { key, sequence: *sequence, value: value.as_deref() });
        }
        builder.finish(&mut raw);
        raw
    };
    let awkward = [(Vec::new(), Reverse(u64::MAX), None), (Vec::new(), Reverse(0), Some(vec![7; 150]))];
    vec![block(&versions()), block(&versions()[..1]), block(&awkward)]
}
