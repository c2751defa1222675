//! Transactions: reads, and changes that depend on them, as if nobody else were there.
//!
//! A transaction reads from a snapshot with its own changes in front of it, in a delta of its own, and keeps what it
//! changes until it commits. Then it has the turn to write: what was committed since it began (`trail.rs`) is looked through
//! for what must not have changed, and the changes are one batch. Nothing is locked meanwhile, and nobody waits for a
//! transaction. What each isolation promises is told with [`Isolation`].

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::batch::{Batch, Operation, TreeId};
use super::database::{Database, Shared};
use super::delta::Delta;
use super::error::{Error, Result};
use super::increment::added;
use super::options::Durability;
use super::range::{Direction, KeyRange};
use super::scan::{Merge, Scan};
use super::segment::Reading;
use super::snapshot::Snapshot;
use super::stored::Stored;
use super::sync::{Mutex, Ordering};
use super::version::Generation;

/// What a transaction notices of others.
///
/// | isolation | reads | must not have changed since it began |
/// |---|---|---|
/// | [`ReadCommitted`](Self::ReadCommitted) | what is committed at that moment | nothing; but see [`Transaction::apply`] |
/// | [`Snapshot`](Self::Snapshot) | what was committed when it began | what it changes |
/// | [`Serializable`](Self::Serializable) | what was committed when it began | what it changes, and what it read |
///
/// So under `Snapshot` no update is lost, and all reads are of one moment; but two transactions that each read what the
/// other one changes can both commit (write skew), and so can two that each enter what the other one looked for in vain
/// (phantoms). Under `Serializable` they cannot: the outcome is as if all transactions had run one after the other, in the
/// order of their commits. What it read is each key that it asked for, there or not, and each range that it scanned or
/// counted, whole. A transaction that changes nothing sees one moment, and cannot conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each read sees what is committed at that moment, and the transaction's own changes. Updates can be lost, but those of
    /// collections conflict as under `Snapshot`, from the moment on at which each was made. Each read after a commit of
    /// somebody else's costs a pass over the changes made so far.
    ReadCommitted,
    /// All reads see the moment at which the transaction began. Conflicts if somebody else changed what it changes.
    #[default]
    Snapshot,
    /// As if transactions ran one after the other. Conflicts also if somebody else changed what it read.
    Serializable,
}

/// What [`Database::transact`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transacted<T> {
    /// What the closure answered in the run that was committed.
    pub value: T,
    /// How often it ran.
    pub attempts: u32,
}

/// Runs of a transaction that conflicts each time, at most.
pub const ATTEMPTS_MAX: u32 = 100;

/// A transaction that is open. Dropping it without a commit changes nothing.
///
/// # Limits
/// Changes are held in memory twice: in a batch, of [`BATCH_BYTES_MAX`](super::BATCH_BYTES_MAX) bytes at most, and sorted, in
/// the budget of [`Options::memory_bytes`](super::Options::memory_bytes). A change that would be too much is refused at
/// once. Ten million puts of 24 bytes take 1.2 GB while they are made, and 2.1 GB when they are committed. What others
/// commit while a transaction is open is kept for it, up to sixteen full deltas: one that is open for longer conflicts.
/// Keys and ranges that a serializable one read are kept in memory, too. It knows the trees that there were when it began.
pub struct Transaction<'a> {
    database: &'a Database,
    isolation: Isolation,
    /// The last commit that it saw when it began.
    begun: u64,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    /// What it reads: its own changes in front of a snapshot.
    view: Snapshot<'a>,
    own: Arc<Generation>,
    /// Its changes, but for increments.
    batch: Batch,
    /// What is to be added to the counters that it changed by nothing else.
    increments: BTreeMap<(TreeId, Vec<u8>), i64>,
    reads: Reads,
    /// Under `ReadCommitted`, keys that must not have changed since a commit.
    guards: Vec<(TreeId, Vec<u8>, u64)>,
}

/// What a serializable transaction read.
#[derive(Default)]
struct Reads {
    keys: HashSet<(TreeId, Vec<u8>)>,
    ranges: Vec<(TreeId, KeyRange)>,
}

impl Database {
    /// Begins a transaction.
    pub fn begin(&self, isolation: Isolation) -> Transaction<'_> {
        let shared = &self.shared;
        let view = shared.trail.begin(|| {
            let view = Snapshot::new(shared);
            (view.sequence(), view)
        });
        let begun = view.sequence();
        let own = own_generation(shared, &view);
        let view = view.behind(&own);
        let (batch, increments) = (Batch::new(), BTreeMap::new());
        let state = State { view, own, batch, increments, reads: Reads::default(), guards: Vec::new() };
        Transaction { database: self, isolation, begun, state: Mutex::new(state) }
    }

    /// Runs `run` in a transaction and commits it; again if it conflicts, [`ATTEMPTS_MAX`] times at most. `run` is called
    /// anew each time, so it must do nothing that cannot be done twice. If it fails, nothing is changed.
    ///
    /// # Errors
    /// What `run` fails with; what a commit fails with; [`Error::Conflict`] if the last attempt did.
    pub fn transact<T, E: From<Error>>(
        &self,
        isolation: Isolation,
        mut run: impl FnMut(&Transaction<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<Transacted<T>, E> {
        let mut attempts = 1;
        loop {
            let transaction = self.begin(isolation);
            let value = run(&transaction)?;
            match transaction.commit() {
                Ok(()) => return Ok(Transacted { value, attempts }),
                Err(Error::Conflict { .. }) if attempts < ATTEMPTS_MAX => attempts += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn own_generation(shared: &Shared, view: &Snapshot<'_>) -> Arc<Generation> {
    Arc::new(Generation::new(0, view.tree_count(), &shared.cache))
}

impl<'a> Transaction<'a> {
    /// The value of `key`.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_stored(tree, key, |value| value.to_vec())
    }

    /// Hands the value of `key` to `read` in the form in which it is there; `None` if it is not there.
    pub fn get_stored<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        let note = |reads: &mut Reads| {
            reads.keys.insert((tree, key.to_vec()));
        };
        self.read(note)?.get_stored(tree, key, read)
    }

    /// Hands every entry of `range`, in order, to `visit` until it breaks. `visit` may change what comes behind it; it
    /// sees that or not.
    pub fn visit(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.read(|reads| reads.ranges.push((tree, range.clone())))?.visit(tree, range, direction, visit)
    }

    /// The entries of `range`, in order.
    pub fn scan(&self, tree: TreeId, range: KeyRange, direction: Direction) -> Result<Scan<'a>> {
        self.read(|reads| reads.ranges.push((tree, range.clone())))?.into_scan(tree, range, direction)
    }

    /// Number of entries in `range`.
    pub fn count(&self, tree: TreeId, range: &KeyRange) -> Result<u64> {
        self.read(|reads| reads.ranges.push((tree, range.clone())))?.count(tree, range)
    }

    /// Sets `key` of `tree` to `value`.
    pub fn put(&self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(Operation { tree, key, value: Some(value) })
    }

    /// Removes `key` from `tree`.
    pub fn delete(&self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.change(Operation { tree, key, value: None })
    }

    /// Makes all changes of a batch, which follow from what was read just now: that somebody else changed the same keys
    /// since is a conflict, under `ReadCommitted` too.
    pub fn apply(&self, batch: &Batch) -> Result<()> {
        for operation in batch.iter() {
            self.change(operation)?;
            if self.isolation == Isolation::ReadCommitted {
                let mut state = self.state.lock();
                let seen = state.view.sequence();
                state.guards.push((operation.tree, operation.key.to_vec(), seen));
            }
        }
        Ok(())
    }

    /// Adds to a counter (see [`Database::increment`]), whatever it is when the transaction commits: that conflicts with
    /// nothing. Reads of this transaction see the sum with what it was when it began.
    pub fn increment(&self, tree: TreeId, key: &[u8], by: i64) -> Result<()> {
        let mut state = self.state.lock();
        self.refresh(&mut state)?;
        let seen = state.view.get_stored(tree, key, |value| value.to_vec())?;
        let sum = added(seen.as_deref(), by)?;
        let operation = Operation { tree, key, value: Some(&sum) };
        let place = (tree, key.to_vec());
        let pending = state.increments.get(&place).copied();
        if pending.is_none() && state.changes(tree, key) {
            return state.change(operation);
        }
        let pending = pending.unwrap_or_default().checked_add(by).ok_or(Error::CounterOverflow)?;
        state.show(operation)?;
        state.increments.insert(place, pending);
        Ok(())
    }

    /// Commits with the durability of the options.
    ///
    /// # Errors
    /// [`Error::Conflict`] if something changed that must not have; nothing is changed then. Otherwise as
    /// [`Database::commit`].
    pub fn commit(self) -> Result<()> {
        let durability = self.database.shared.options.durability;
        self.commit_with(durability)
    }

    /// The same with a durability of its own.
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        self.commit_numbered(durability).map(drop)
    }

    /// The last commit that it saw when it began.
    #[cfg(test)]
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Commits. Answers the number of the commit, if anything is changed.
    pub(crate) fn commit_numbered(self, durability: Durability) -> Result<Option<u64>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.batch.is_empty() && state.increments.is_empty() {
            return Ok(None);
        }
        let turn = self.database.exclusive();
        if let Err(conflict) = self.check(state) {
            drop(turn);
            // What came first may wait for its sync: until then a new transaction would not see it, and conflict again.
            self.database.shared.publish_applied()?;
            return Err(conflict);
        }
        for ((tree, key), by) in &state.increments {
            let newest = turn.get_stored(*tree, key, |value| value.to_vec())?;
            state.batch.put(*tree, key, &added(newest.as_deref(), *by)?);
        }
        turn.finish_numbered(&state.batch, durability)
    }

    /// Looks through what was committed since the beginning.
    fn check(&self, state: &State<'_>) -> Result<()> {
        let State { batch, reads, guards, .. } = state;
        let changes_blindly = self.isolation == Isolation::ReadCommitted;
        if changes_blindly && guards.is_empty() {
            return Ok(());
        }
        let shared = &self.database.shared;
        // In this order: what is sealed in between is in both.
        let active = Arc::clone(&shared.version.load().active);
        let since = shared.trail.since(self.begun);
        let since = since.ok_or_else(|| conflict("more than is kept for a transaction"))?;
        let later = Later(since.into_iter().chain([active]).collect());
        guards.iter().try_for_each(|(tree, key, seen)| later.check_key(*tree, key, *seen))?;
        if changes_blindly {
            return Ok(());
        }
        batch.iter().try_for_each(|Operation { tree, key, .. }| later.check_key(tree, key, self.begun))?;
        reads.keys.iter().try_for_each(|(tree, key)| later.check_key(*tree, key, self.begun))?;
        reads.ranges.iter().try_for_each(|(tree, range)| later.check_range(*tree, range, self.begun))
    }

    /// What is read now, after a note of it.
    fn read(&self, note: impl FnOnce(&mut Reads)) -> Result<Snapshot<'a>> {
        let mut state = self.state.lock();
        self.refresh(&mut state)?;
        if self.isolation == Isolation::Serializable {
            note(&mut state.reads);
        }
        Ok(state.view.again(&self.database.shared))
    }

    /// Under `ReadCommitted`, goes on to what is committed now.
    fn refresh(&self, state: &mut State<'a>) -> Result<()> {
        let shared = &self.database.shared;
        let is_newest = || shared.visible.load(Ordering::Acquire) == state.view.sequence();
        if self.isolation != Isolation::ReadCommitted || is_newest() {
            return Ok(());
        }
        let view = Snapshot::new(shared);
        state.own = own_generation(shared, &view);
        state.view = view.behind(&state.own);
        state.own.apply(state.view.sequence(), state.batch.iter());
        for ((tree, key), by) in &state.increments {
            let newest = state.view.get_stored(*tree, key, |value| value.to_vec())?;
            let sum = added(newest.as_deref(), *by)?;
            state.show(Operation { tree: *tree, key, value: Some(&sum) })?;
        }
        Ok(())
    }

    fn change(&self, operation: Operation<'_>) -> Result<()> {
        let mut state = self.state.lock();
        state.change(operation)?;
        if !state.increments.is_empty() {
            state.increments.remove(&(operation.tree, operation.key.to_vec()));
        }
        Ok(())
    }
}

impl State<'_> {
    fn change(&mut self, operation: Operation<'_>) -> Result<()> {
        self.batch.check_room(operation)?;
        self.show(operation)?;
        self.batch.add(operation);
        Ok(())
    }

    /// Puts a change in front of what is read.
    fn show(&self, operation: Operation<'_>) -> Result<()> {
        let TreeId(id) = operation.tree;
        if id as usize >= self.own.deltas.len() {
            return Err(Error::UnknownTree { id });
        }
        self.own.apply(self.view.sequence(), std::iter::once(operation));
        Ok(())
    }

    /// Whether a change of a key was shown.
    fn changes(&self, tree: TreeId, key: &[u8]) -> bool {
        self.own.deltas.get(tree.0 as usize).is_some_and(|delta| delta.newest(key).is_some())
    }
}

/// What was committed later than a transaction began, and perhaps some of what was before.
struct Later(Vec<Arc<Generation>>);

impl Later {
    fn deltas(&self, tree: TreeId) -> impl Iterator<Item = &Arc<Delta>> {
        let deltas = self.0.iter().filter_map(move |generation| generation.deltas.get(tree.0 as usize));
        deltas.filter(|delta| !delta.is_empty())
    }

    /// Refuses a version that is later than the commit `than`.
    fn check_key(&self, tree: TreeId, key: &[u8], than: u64) -> Result<()> {
        let is_later = |delta: &Arc<Delta>| delta.newest(key).is_some_and(|sequence| sequence > than);
        if self.deltas(tree).any(is_later) { Err(conflict_at(tree, key)) } else { Ok(()) }
    }

    fn check_range(&self, tree: TreeId, range: &KeyRange, than: u64) -> Result<()> {
        let mut merge = Merge::new(self.deltas(tree), [].into_iter(), Reading::Once, Direction::Forward);
        merge.start(range)?;
        while let Some(entry) = merge.entry().filter(|entry| !range.is_above(entry.key)) {
            if entry.sequence > than {
                return Err(conflict_at(tree, entry.key));
            }
            merge.step()?;
        }
        Ok(())
    }
}

fn conflict_at(TreeId(tree): TreeId, key: &[u8]) -> Error {
    conflict(&format!("key \"{}\" of tree {tree}", key.escape_ascii()))
}

fn conflict(what: &str) -> Error {
    Error::Conflict { what: what.to_owned() }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let shared = &self.database.shared;
        shared.trail.end(self.begun, shared.visible.load(Ordering::Acquire));
    }
}
