//! A transaction, and what somebody else commits while it is open.

use super::super::look::{Answers, expected, take};
use super::super::state::{Trees, with};
use super::super::step::{Change, Transacting};
use super::{Machine, Snapshots, text};
use crate::engine::{Database, Error, Isolation, Transaction, TreeId};

impl Machine {
    pub(super) fn transact<'a>(
        &mut self,
        database: &'a Database,
        snapshots: &mut Snapshots<'a>,
        transacting: &Transacting,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let Transacting { isolation, first, meanwhile, upkeep, then, commits, .. } = transacting;
        let (first, then) = (self.resolve(first), self.resolve(then));
        let before = self.model.trees.clone();
        let transaction = database.begin(*isolation);
        change(&transaction, &first)?;
        self.look_into(&transaction, transacting, &with(&before, &first), answers)?;

        for changes in meanwhile {
            self.commit(database, changes, None).map_err(text)?;
        }
        if let Some(upkeep) = upkeep {
            self.upkeep(database, snapshots, *upkeep)?;
        }
        change(&transaction, &then)?;
        let own = [first, then].concat();
        let base = if *isolation == Isolation::ReadCommitted { &self.model.trees } else { &before };
        self.look_into(&transaction, transacting, &with(base, &own), answers)?;
        if !commits {
            return Ok(());
        }

        let must_conflict = self.must_conflict(transacting, &own);
        let commit = |_: &_, class| transaction.commit_with(class);
        match self.commit_by(commit, &own, None) {
            Ok(()) if must_conflict => Err("committed, where it had to conflict".to_owned()),
            Err(Error::Conflict { .. }) if must_conflict => Ok(()),
            outcome => outcome.map_err(text),
        }
    }

    /// Reads of it what it reads, which must be as in `trees`.
    fn look_into(
        &self,
        transaction: &Transaction<'_>,
        Transacting { tree, key, range, direction, .. }: &Transacting,
        trees: &Trees,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let tree = tree % self.model.trees.len();
        let id = TreeId(tree as u32);
        answers.same(&transaction.get(id, key).map_err(text)?.as_ref(), &trees[tree].get(key))?;
        let mut scan = transaction.scan(id, range.clone(), *direction).map_err(text)?;
        let entries = expected(&trees[tree], range, *direction, usize::MAX);
        answers.same(&take(&mut scan, usize::MAX).map_err(text)?, &entries)?;
        answers.same(&transaction.count(id, range).map_err(text)?, &(entries.len() as u64))
    }

    fn must_conflict(&self, transacting: &Transacting, own: &[Change]) -> bool {
        let Transacting { isolation, tree, key, range, meanwhile, .. } = transacting;
        let meanwhile: Vec<_> = meanwhile.iter().flat_map(|changes| self.resolve(changes)).collect();
        let tree = tree % self.model.trees.len();
        let is_own = |(tree, key, _): &Change| own.iter().any(|(own_tree, own, _)| (own_tree, own) == (tree, key));
        let is_read = |(changed, found, _): &Change| *changed == tree && (found == key || range.contains(found));
        match isolation {
            _ if own.is_empty() => false,
            Isolation::ReadCommitted => false,
            Isolation::Snapshot => meanwhile.iter().any(is_own),
            Isolation::Serializable => meanwhile.iter().any(|change| is_own(change) || is_read(change)),
        }
    }

    /// Adds to a counter, which may be no counter.
    pub(super) fn increment(
        &mut self,
        database: &Database,
        (tree, key, by): &(usize, Vec<u8>, i64),
        answers: &mut Answers,
    ) -> Result<(), String> {
        let tree = tree % self.model.trees.len();
        let counter = self.model.trees[tree].get(key).map_or(Some([0; 8]), |value| value.as_slice().try_into().ok());
        let sum = counter.map(|counter| i64::from_le_bytes(counter).checked_add(*by));
        match (database.increment(TreeId(tree as u32), key, *by), sum) {
            (Ok(found), Some(Some(sum))) => {
                answers.same(&found, &sum)?;
                let change = (tree, key.clone(), Some(sum.to_le_bytes().to_vec()));
                self.model.commit(&[change], self.configuration().options.durability);
                Ok(())
            }
            (Err(Error::NotACounter { .. }), None) | (Err(Error::CounterOverflow), Some(None)) => Ok(()),
            (found, sum) => Err(format!("found {found:?}, expected {sum:?}")),
        }
    }
}

fn change(transaction: &Transaction<'_>, changes: &[Change]) -> Result<(), String> {
    changes.iter().try_for_each(|(tree, key, value)| {
        let tree = TreeId(*tree as u32);
        let outcome = match value {
            Some(value) => transaction.put(tree, key, value),
            None => transaction.delete(tree, key),
        };
        outcome.map_err(text)
    })
}
