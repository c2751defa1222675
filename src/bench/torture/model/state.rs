//! What a database must hold, and which states a crash may leave instead.

use std::collections::BTreeMap;

use super::step::{Change, Key};
use crate::engine::Durability;

/// The content of each tree, by its number.
pub(super) type Trees = Vec<BTreeMap<Key, Vec<u8>>>;

/// Sorted maps, and what of them a crash may take.
pub(super) struct Model {
    pub(super) trees: Trees,
    /// Commits since everything was known to be in segments.
    pending: Vec<Pending>,
    /// So many of them, as far as they went to a log, survive a power loss.
    synced: usize,
}

struct Pending {
    changes: Vec<Change>,
    /// What was there before, in the order of the changes.
    before: Vec<Option<Vec<u8>>>,
    logged: bool,
}

/// What a crash takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Nothing: the database was closed.
    Nothing,
    /// What went to no log.
    Process,
    /// And a part of what was not synced.
    Power,
}

impl Model {
    /// One empty tree.
    pub(super) fn new() -> Self {
        Self { trees: vec![BTreeMap::new()], pending: Vec::new(), synced: 0 }
    }

    /// A batch was acknowledged.
    pub(super) fn commit(&mut self, changes: &[Change], class: Durability) {
        let before = changes.iter().map(|change| apply(&mut self.trees, change)).collect();
        self.pending.push(Pending { changes: changes.to_vec(), before, logged: class != Durability::None });
        if class == Durability::Sync {
            self.synced = self.pending.len();
        }
    }

    /// How many commits there are that nobody has flushed for sure.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether some of them are in no log.
    pub(super) fn has_unlogged(&self) -> bool {
        self.pending.iter().any(|commit| !commit.logged)
    }

    /// The oldest `count` of them are in segments by now.
    pub(super) fn flushed(&mut self, count: usize) {
        self.pending.drain(..count);
        self.synced = self.synced.saturating_sub(count);
    }

    /// What is there once these batches are committed, too.
    pub(super) fn trees_with(&self, batches: &[Vec<Change>]) -> Trees {
        batches.iter().fold(self.trees.clone(), |trees, changes| with(&trees, changes))
    }

    /// Everything that is there, as an opening found it, is in segments.
    pub(super) fn start_from(&mut self, found: Trees) {
        *self = Self { trees: found, ..Self::new() };
    }

    /// What has to be written again so that the trees are what they were before the crash that left `found`; `doubtful` was
    /// written and not acknowledged. Fails if no such crash leaves that.
    ///
    /// A crash leaves everything that was flushed, up to some commit, and behind it what went to the log, up to some commit
    /// that is not below those it must leave.
    pub(super) fn lost(
        &self,
        found: &Trees,
        loss: Loss,
        doubtful: Option<&[Change]>,
    ) -> Result<Vec<Vec<Change>>, String> {
        if *found == self.trees || doubtful.is_some_and(|changes| *found == with(&self.trees, changes)) {
            return Ok(Vec::new());
        }
        let count = self.pending.len();
        let least = match loss {
            Loss::Nothing => return Err(difference(found, &self.trees)),
            Loss::Process => count,
            Loss::Power => self.synced,
        };
        let mut flushed = self.without_pending();
        for first in 0..=count {
            if self.holds(found, &flushed, first, least) || self.holds_doubtful(found, &flushed, first, doubtful) {
                return Ok(self.pending[first..].iter().map(|commit| commit.changes.clone()).collect());
            }
            self.pending.get(first).into_iter().for_each(|commit| apply_all(&mut flushed, &commit.changes));
        }
        Err(format!(
            "no state since the last flush, with {count} commits since, is there: {}",
            difference(found, &self.trees)
        ))
    }

    /// Whether `found` is what was `flushed` before commit `first`, with logged ones from there to at least `least`.
    fn holds(&self, found: &Trees, flushed: &Trees, first: usize, least: usize) -> bool {
        let mut state = flushed.clone();
        for (index, commit) in self.pending.iter().enumerate().skip(first).filter(|(_, commit)| commit.logged) {
            if index >= least && state == *found {
                return true;
            }
            apply_all(&mut state, &commit.changes);
        }
        state == *found
    }

    /// The same, with all logged ones and the doubtful one.
    fn holds_doubtful(&self, found: &Trees, flushed: &Trees, first: usize, doubtful: Option<&[Change]>) -> bool {
        let Some(doubtful) = doubtful else { return false };
        let mut state = flushed.clone();
        let logged = self.pending[first..].iter().filter(|commit| commit.logged);
        logged.for_each(|commit| apply_all(&mut state, &commit.changes));
        with(&state, doubtful) == *found
    }

    fn without_pending(&self) -> Trees {
        let mut trees = self.trees.clone();
        for Pending { changes, before, .. } in self.pending.iter().rev() {
            for ((tree, key, _), before) in changes.iter().zip(before).rev() {
                apply(&mut trees, &(*tree, key.clone(), before.clone()));
            }
        }
        trees
    }
}

pub(super) fn with(trees: &Trees, changes: &[Change]) -> Trees {
    let mut trees = trees.clone();
    apply_all(&mut trees, changes);
    trees
}

fn apply_all(trees: &mut Trees, changes: &[Change]) {
    for change in changes {
        apply(trees, change);
    }
}

/// Answers what was there before.
fn apply(trees: &mut Trees, (tree, key, value): &Change) -> Option<Vec<u8>> {
    match value {
        Some(value) => trees[*tree].insert(key.clone(), value.clone()),
        None => trees[*tree].remove(key),
    }
}

/// Where two states differ first.
pub(super) fn difference(found: &Trees, expected: &Trees) -> String {
    if found.len() != expected.len() {
        return format!("found {} trees, expected {}", found.len(), expected.len());
    }
    for (tree, (found, expected)) in found.iter().zip(expected).enumerate() {
        let keys = found.keys().chain(expected.keys());
        if let Some(key) = keys.filter(|key| found.get(*key) != expected.get(*key)).min() {
            return format!("tree {tree}, key {key:?}: found {:?}, expected {:?}", found.get(key), expected.get(key));
        }
    }
    "no difference".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: u8) -> Vec<Change> {
        vec![(0, vec![key], Some(vec![key]))]
    }

    fn keys(keys: &[u8]) -> Trees {
        vec![keys.iter().map(|&key| (vec![key], vec![key])).collect()]
    }

    fn model(classes: &[Durability]) -> Model {
        let mut model = Model::new();
        for (key, class) in classes.iter().enumerate() {
            model.commit(&put(key as u8), *class);
        }
        model
    }

    #[test]
    fn a_power_loss_takes_what_was_not_synced_and_only_from_the_end() {
        let model = model(&[Durability::Sync, Durability::Process, Durability::Process]);
        assert_eq!(model.lost(&keys(&[0]), Loss::Power, None).map(|lost| lost.len()), Ok(3));
        model.lost(&keys(&[0, 1]), Loss::Power, None).expect("cut behind the second");
        model.lost(&keys(&[0, 2]), Loss::Power, None).expect_err("a hole");
        model.lost(&keys(&[]), Loss::Power, None).expect_err("the first was synced");
        model.lost(&keys(&[0, 1]), Loss::Process, None).expect_err("all were logged");
    }

    #[test]
    fn what_went_to_no_log_is_there_as_far_as_it_was_flushed() {
        let model = model(&[Durability::None, Durability::Process, Durability::None]);
        for there in [&[1][..], &[0, 1], &[0, 1, 2]] {
            model.lost(&keys(there), Loss::Process, None).expect("a flush may have come so far");
        }
        model.lost(&keys(&[1, 2]), Loss::Process, None).expect_err("a flush that left out the first");
        model.lost(&keys(&[0]), Loss::Process, None).expect_err("the second was logged");
    }

    #[test]
    fn a_doubtful_batch_is_there_or_not() {
        let model = model(&[Durability::Process]);
        for there in [&[0][..], &[0, 1]] {
            model.lost(&keys(there), Loss::Process, Some(&put(1))).expect("nobody knows");
        }
        model.lost(&keys(&[1]), Loss::Process, Some(&put(1))).expect_err("the first is missing");
    }
}
