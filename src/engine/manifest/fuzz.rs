//! Any bytes as a manifest: it is refused, or written again as what was read.

use super::{HEAD_BYTES, MAGIC, Manifest, TreeManifest, VERSION, check};
use crate::engine::layout::{Field, Layout};
use crate::engine::segment::SegmentMeta;

pub(crate) fn run(input: &[u8]) {
    check_bytes(input);
    let mut repaired = input.to_vec();
    repair(&mut repaired);
    check_bytes(&repaired);
}

/// Gives bytes the head that belongs to them.
pub(crate) fn repair(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(HEAD_BYTES), 0);
    let (head, body) = bytes.split_at_mut(HEAD_BYTES);
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
    head[16..].copy_from_slice(&check(body).to_le_bytes());
}

fn check_bytes(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    let again = Manifest::decode(&manifest.encode()).expect("what was read can be written and read again");
    assert_eq!(again, manifest);
    assert!(manifest.segments().all(|segment| segment.number < manifest.next_number));
    // Nothing is kept that takes much more room than its bytes: a segment takes 8 of them at least, a tree 5.
    assert!(manifest.segments().count() <= bytes.len() / 8 && manifest.trees.len() <= bytes.len() / 5);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let segment = |number: u64| SegmentMeta {
        number,
        file_bytes: 1000 + number,
        entries: 20,
        tombstones: 2,
        smallest: vec![1],
        largest: vec![9, 9],
        sequence_min: 0,
        sequence_max: 40,
    };
    let mut manifest = Manifest { next_number: 9, flushed: 40, logged: 39, ..Manifest::new(7, Some(1)) };
    let empty = manifest.encode();
    let layout = Layout { key: vec![Field::Terminated(0), Field::BigEndian(4)], value: vec![Field::Rest] };
    let runs = vec![vec![segment(5), segment(3)], vec![segment(8)]];
    manifest.trees.push(TreeManifest { name: "people".to_owned(), layout, runs });
    manifest.trees.push(TreeManifest { name: String::new(), ..TreeManifest::default() });
    vec![empty, manifest.encode()]
}
