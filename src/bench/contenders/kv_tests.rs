//! What the repository relies on in any engine behind the seam.

use std::ops::{Bound, ControlFlow};
use std::path::Path;

use crate::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, Stored, TreeId};

/// Opens an engine in directories of its own, and checks that it does what the seam says.
pub(super) fn keeps_the_promises_of_the_seam<V: Kv>(open: impl Fn(&Path) -> V) {
    a_batch_reaches_every_tree_and_survives_a_reopen(&open);
    a_snapshot_does_not_see_later_commits(&open);
    scans_keep_to_their_bounds_both_ways(&open);
    many_reads_come_in_the_order_asked_until_the_reader_breaks(&open);
}

fn a_batch_reaches_every_tree_and_survives_a_reopen<V: Kv>(open: &impl Fn(&Path) -> V) {
    let directory = tempfile::tempdir().expect("a directory");
    for is_reopened in [false, true] {
        let kv = open(directory.path());
        let trees = [kv.tree("one").expect("a tree"), kv.tree("two").expect("a tree")];
        assert_eq!(kv.tree("one").expect("a tree"), trees[0]);
        if !is_reopened {
            let mut batch = Batch::new();
            for tree in trees {
                batch.put(tree, b"key", b"value");
            }
            batch.put(trees[0], b"gone", b"");
            batch.delete(trees[0], b"gone");
            batch.delete(trees[1], b"never there");
            kv.commit(&batch).expect("it commits");
        }
        for tree in trees {
            assert_eq!(kv.get(tree, b"key", |stored| stored.to_vec()).expect("it reads"), Some(b"value".to_vec()));
            assert_eq!(kv.get(tree, b"gone", |stored| stored.to_vec()).expect("it reads"), None);
            assert_eq!(kv.count(tree, &KeyRange::all()).expect("it counts"), 1);
        }
    }
}

fn a_snapshot_does_not_see_later_commits<V: Kv>(open: &impl Fn(&Path) -> V) {
    let directory = tempfile::tempdir().expect("a directory");
    let kv = open(directory.path());
    let tree = kv.tree("tree").expect("a tree");
    put(&kv, tree, b"a");
    let snapshot = kv.snapshot().expect("a snapshot");
    put(&kv, tree, b"b");
    assert_eq!(keys(&snapshot, tree, &KeyRange::all(), Direction::Forward), [b"a"]);
    assert_eq!(snapshot.get(tree, b"b", |stored| stored.to_vec()).expect("it reads"), None);
    let wanted = [&b"a"[..], b"b"];
    let mut found = Vec::new();
    let write_key = |i: usize, key: &mut Vec<u8>| key.extend_from_slice(wanted[i]);
    let note = |_, value: Option<Stored<'_>>| {
        found.push(value.is_some());
        ControlFlow::Continue(())
    };
    snapshot.get_many(tree, wanted.len(), write_key, note).expect("it reads");
    assert_eq!(found, [true, false]);
    drop(snapshot);
    assert_eq!(keys(&kv, tree, &KeyRange::all(), Direction::Reverse), [b"b", b"a"]);
}

fn scans_keep_to_their_bounds_both_ways<V: Kv>(open: &impl Fn(&Path) -> V) {
    let directory = tempfile::tempdir().expect("a directory");
    let kv = open(directory.path());
    let tree = kv.tree("tree").expect("a tree");
    let mut batch = Batch::new();
    (0..10_u8).for_each(|key| batch.put(tree, &[key], b""));
    kv.commit(&batch).expect("it commits");
    let range = KeyRange::of(&[2][..]..&[5][..]);
    assert_eq!(keys(&kv, tree, &range, Direction::Forward), [[2], [3], [4]]);
    assert_eq!(keys(&kv, tree, &range, Direction::Reverse), [[4], [3], [2]]);
    assert_eq!(kv.count(tree, &range).expect("it counts"), 3);
    assert_eq!(keys(&kv, tree, &KeyRange::of(&[7][..]..), Direction::Reverse), [[9], [8], [7]]);
    assert_eq!(keys(&kv, tree, &KeyRange::prefix(&[]), Direction::Forward).len(), 10);
    let behind_two = KeyRange { lower: Bound::Excluded(vec![2]), upper: Bound::Included(vec![5]) };
    assert_eq!(keys(&kv, tree, &behind_two, Direction::Forward), [[3], [4], [5]]);
    assert_eq!(keys(&kv, tree, &behind_two, Direction::Reverse), [[5], [4], [3]]);
    for reversed in [KeyRange::of(&[5][..]..&[2][..]), KeyRange::of(&[5][..]..&[5][..])] {
        assert!(keys(&kv, tree, &reversed, Direction::Forward).is_empty());
    }
}

fn many_reads_come_in_the_order_asked_until_the_reader_breaks<V: Kv>(open: &impl Fn(&Path) -> V) {
    let directory = tempfile::tempdir().expect("a directory");
    let kv = open(directory.path());
    let tree = kv.tree("tree").expect("a tree");
    let mut batch = Batch::new();
    (0..100_u8).for_each(|key| batch.put(tree, &[key], &[key, key]));
    kv.commit(&batch).expect("it commits");
    let wanted: Vec<u8> = (0..120).rev().chain([7, 7]).collect();
    let write_key = |i: usize, key: &mut Vec<u8>| key.push(wanted[i]);
    let mut found = Vec::new();
    let note = |i: usize, value: Option<Stored<'_>>| {
        found.push((wanted[i], value.map(|stored| stored.to_vec())));
        if i == 120 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    kv.snapshot().expect("a snapshot").get_many(tree, wanted.len(), write_key, note).expect("it reads");
    let expected = wanted[..=120].iter().map(|&key| (key, (key < 100).then(|| vec![key, key])));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// Commits `key` alone.
pub(super) fn put(kv: &impl Kv, tree: TreeId, key: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, key, b"");
    kv.commit(&batch).expect("it commits");
}

/// The keys of a scan.
pub(super) fn keys(kv: &impl KvRead, tree: TreeId, range: &KeyRange, direction: Direction) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    kv.scan(tree, range, direction, |key, _| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    })
    .expect("it scans");
    keys
}
