//! Any bytes as a manifest: it is refused, or written again as what was read. What is refused may have a copy that can be
//! salvaged.

use super::{Manifest, TreeManifest, copies};
use crate::engine::layout::{Field, Layout};
use crate::engine::readable::Readable;
use crate::engine::segment::SegmentMeta;

pub(crate) fn run(input: &[u8]) {
    check_bytes(input);
    check_bytes(&copies::repair(input));
}

/// Makes two sound copies of the last one.
pub(crate) fn repair(bytes: &mut Vec<u8>) {
    *bytes = copies::repair(bytes);
}

/// One copy alone, which is of use to salvage only.
pub(crate) fn one_copy(manifest: &Manifest) -> Vec<u8> {
    let mut bytes = manifest.encode();
    let [_, second] = copies::places(&bytes);
    bytes.truncate(bytes.len() - second);
    bytes
}

fn check_bytes(bytes: &[u8]) {
    let salvaged = Manifest::salvage_file(Readable { bytes: bytes.to_vec(), ..Readable::default() });
    let Ok(manifest) = Manifest::decode(bytes) else {
        let is_told = salvaged.map_or(true, |(_, damage)| damage.is_some());
        assert!(is_told, "damage that salvage does not tell");
        return;
    };
    let (salvaged, damage) = salvaged.expect("what opens can be salvaged");
    assert!(damage.is_none() && salvaged == manifest, "damage of a sound manifest: {damage:?}");
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
    let empty = one_copy(&manifest);
    let layout = Layout { key: vec![Field::Terminated(0), Field::BigEndian(4)], value: vec![Field::Rest] };
    let runs = vec![vec![segment(5), segment(3)], vec![segment(8)]];
    manifest.trees.push(TreeManifest { name: "people".to_owned(), layout, runs });
    manifest.trees.push(TreeManifest { name: String::new(), ..TreeManifest::default() });
    vec![empty, one_copy(&manifest), manifest.encode()]
}
