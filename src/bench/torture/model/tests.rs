//! Some lists in every run of the tests, and what the lists meet.

use std::ops::ControlFlow;

use super::*;
use crate::bench::torture::history::{open, tiny};
use crate::bench::torture::sound_cases;
use crate::engine::disk::sim::SimDisk;
use crate::engine::{Batch, Direction, KeyRange, Stored, TreeId};

/// Lists of one test.
const LISTS: u64 = 3;

/// Each test tries lists of its own, so that they run side by side.
fn agrees_with_maps(part: u64) {
    let seeds = part * LISTS..(part + 1) * LISTS;
    let steps = sound_cases(|session| seeds.for_each(|seed| round(session, seed)));
    assert_eq!(steps, LISTS * (STEPS * configurations().len()) as u64);
}

#[test]
fn lists_have_one_history_under_every_configuration() {
    agrees_with_maps(0);
}

#[test]
fn more_lists_have_one_history_under_every_configuration() {
    agrees_with_maps(1);
}

#[test]
fn other_lists_have_one_history_under_every_configuration() {
    agrees_with_maps(2);
}

#[test]
fn the_last_lists_have_one_history_under_every_configuration() {
    agrees_with_maps(3);
}

/// A tool that never meets a row of columns proves nothing about them.
#[test]
fn most_trees_are_read_from_rows_of_columns_once_they_are_settled() {
    let (mut in_rows, mut trees) = (0, 0);
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let content = content::Content::new(&mut random);
        let database = open(&SimDisk::new(), &tiny()).expect("opens");
        for number in 0..TREES_MAX {
            let layout = content.layout(&mut random, number);
            let tree = database.tree_with(&format!("tree {number}"), &layout).expect("a new tree");
            let mut batch = Batch::new();
            for _ in 0..100 {
                batch.put(tree, &content.key(&mut random, number), &content.value(&mut random, number));
            }
            database.commit(&batch).expect("commits");
        }
        database.settle().expect("settles");
        for tree in (0..TREES_MAX as u32).map(TreeId) {
            let mut rows = 0;
            let visit = |_: &[u8], value: Stored<'_>| {
                rows += usize::from(matches!(value, Stored::Row(_) | Stored::Bytes(&[])));
                ControlFlow::Continue(())
            };
            database.snapshot().visit(tree, &KeyRange::all(), Direction::Forward, visit).expect("reads");
            trees += 1;
            in_rows += usize::from(rows > 10);
        }
    }
    assert!(in_rows * 2 > trees, "only {in_rows} of {trees}");
}
