//! What a reader sees of a tree, in order: merge of all places a version can be, then visibility, then bounds.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use super::batch::TreeId;
use super::cursor::{Cursor, Entry, SEQUENCE_MAX};
use super::delta::{Delta, DeltaCursor};
use super::error::Result;
use super::range::{Direction, KeyRange};
use super::run::{Run, RunCursor};
use super::segment::Reading;
use super::snapshot::Snapshot;
use super::version::Version;

/// One place a version can be.
enum Source {
    Delta(DeltaCursor),
    Run(RunCursor),
}

impl Source {
    fn cursor(&mut self) -> &mut dyn Cursor {
        match self {
            Self::Delta(cursor) => cursor,
            Self::Run(cursor) => cursor,
        }
    }

    fn entry(&self) -> Option<Entry<'_>> {
        match self {
            Self::Delta(cursor) => cursor.entry(),
            Self::Run(cursor) => cursor.entry(),
        }
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        match (self, direction) {
            (Self::Delta(cursor), Direction::Forward) => cursor.next(),
            (Self::Delta(cursor), Direction::Reverse) => cursor.prev(),
            (Self::Run(cursor), Direction::Forward) => cursor.next(),
            (Self::Run(cursor), Direction::Reverse) => cursor.prev(),
        }
    }
}

/// Every version of several sources in one order. A settled tree has one source and pays for no merge.
pub(crate) struct Merge {
    /// Newest first: of one version in two of them, the first one counts.
    sources: Vec<Source>,
    /// Of each source, the [`rank`] of the entry it is on. Most entries are told apart by it without a look at their keys.
    ranks: Vec<u128>,
    direction: Direction,
    current: usize,
}

impl Merge {
    pub(crate) fn new<'a>(
        deltas: impl Iterator<Item = &'a Arc<Delta>>,
        runs: impl Iterator<Item = &'a Run>,
        reading: Reading,
        direction: Direction,
    ) -> Self {
        let deltas = deltas.map(|delta| Source::Delta(DeltaCursor::new(Arc::clone(delta))));
        let runs = runs.map(|run| Source::Run(run.cursor(reading)));
        Self { sources: deltas.chain(runs).collect(), ranks: Vec::new(), direction, current: 0 }
    }

    /// To the first version of the range, in the direction of the merge. Bounds are checked by the caller.
    pub(crate) fn start(&mut self, range: &KeyRange) -> Result<()> {
        for source in &mut self.sources {
            let cursor = source.cursor();
            match self.direction {
                Direction::Forward => match &range.lower {
                    Bound::Unbounded => cursor.first()?,
                    Bound::Included(key) => cursor.seek(key, SEQUENCE_MAX)?,
                    Bound::Excluded(key) => cursor.seek(&successor(key), SEQUENCE_MAX)?,
                },
                Direction::Reverse => match &range.upper {
                    Bound::Unbounded => cursor.last()?,
                    Bound::Included(key) => cursor.seek_before(&successor(key), SEQUENCE_MAX)?,
                    Bound::Excluded(key) => cursor.seek_before(key, SEQUENCE_MAX)?,
                },
            }
        }
        if self.sources.len() > 1 {
            self.sources.retain(|source| source.entry().is_some());
            self.ranks.clear();
            self.ranks.extend(self.sources.iter().filter_map(|source| rank(source, self.direction)));
            self.choose();
        }
        Ok(())
    }

    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.sources.get(self.current)?.entry()
    }

    pub(crate) fn step(&mut self) -> Result<()> {
        let Some(source) = self.sources.get_mut(self.current) else { return Ok(()) };
        source.step(self.direction)?;
        if self.ranks.len() < 2 {
            return Ok(());
        }
        if let Some(rank) = rank(source, self.direction) {
            self.ranks[self.current] = rank;
        } else {
            // It has nothing more to give.
            self.sources.remove(self.current);
            self.ranks.remove(self.current);
        }
        self.choose();
        Ok(())
    }

    /// Goes to the source whose entry comes first.
    fn choose(&mut self) {
        self.current = 0;
        for index in 1..self.ranks.len() {
            let order = self.ranks[index].cmp(&self.ranks[self.current]);
            if order.then_with(|| self.order(index, self.current)).is_lt() {
                self.current = index;
            }
        }
    }

    /// How the entries of two sources sort, in the direction of the merge.
    fn order(&self, a: usize, b: usize) -> Ordering {
        let order = match (self.sources[a].entry(), self.sources[b].entry()) {
            (Some(one), Some(other)) => {
                one.key.cmp(other.key).then_with(|| other.sequence.cmp(&one.sequence)).then(a.cmp(&b))
            }
            // Sources without an entry are let go.
            _ => Ordering::Equal,
        };
        match self.direction {
            Direction::Forward => order,
            Direction::Reverse => order.reverse(),
        }
    }
}

/// The front of the key that `source` is on, as a number that sorts as it does in `direction`; `None` at its end.
fn rank(source: &Source, direction: Direction) -> Option<u128> {
    let key = source.entry()?.key;
    let mut front = [0; 16];
    let len = key.len().min(front.len());
    front[..len].copy_from_slice(&key[..len]);
    let rank = u128::from_be_bytes(front);
    Some(match direction {
        Direction::Forward => rank,
        Direction::Reverse => !rank,
    })
}

/// The smallest key above `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    let mut successor = Vec::with_capacity(key.len() + 1);
    successor.extend_from_slice(key);
    successor.push(0);
    successor
}

/// The live entries of a key range as of one sequence number, one at a time.
///
/// Entries are lent: the bytes are good until the next call.
pub struct Scan<'a> {
    merge: Merge,
    range: KeyRange,
    sequence: u64,
    /// Whether every version there is, is a live entry that every reader sees.
    settled: bool,
    state: State,
    /// The last key handed out or passed over, once there is one.
    key: Vec<u8>,
    value: Vec<u8>,
    /// Counts as a reader, where the caller's own snapshot does not.
    _own: Option<Snapshot<'a>>,
    _callers: PhantomData<&'a ()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Running,
    Done,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        version: &Version,
        sequence: u64,
        tree: TreeId,
        range: KeyRange,
        direction: Direction,
        own: Option<Snapshot<'a>>,
    ) -> Result<Self> {
        let runs = version.tree(tree)?;
        // Asked once: a delta that gets its first entry meanwhile is in both answers or in none.
        let mut deltas = version.deltas(tree).peekable();
        let settled = deltas.peek().is_none() && runs.settled_entries().is_some();
        let merge = Merge::new(deltas, runs.runs().iter(), Reading::Again, direction);
        let (key, value) = (Vec::new(), Vec::new());
        Ok(Self { merge, range, sequence, settled, state: State::New, key, value, _own: own, _callers: PhantomData })
    }

    /// The next entry, key and value, or `None` at the end of the range. An error ends the scan too: what comes behind
    /// it is not known to be all there is.
    #[expect(clippy::should_implement_trait, reason = "an entry borrows from the scan, which `Iterator` cannot say")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.settled {
            return self.next_settled();
        }
        let found = match self.merge.direction {
            Direction::Forward => self.forward(),
            Direction::Reverse => self.reverse(),
        };
        if !matches!(found, Ok(true)) {
            self.state = State::Done;
            return found.map(|_| None);
        }
        let value = match self.merge.direction {
            Direction::Forward => self.merge.entry().and_then(|entry| entry.value),
            Direction::Reverse => Some(self.value.as_slice()),
        };
        Ok(value.map(|value| (self.key.as_slice(), value)))
    }

    /// With nothing to merge and nothing hidden, entries are lent from where they lie.
    fn next_settled(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self.state {
            State::New => {
                self.merge.start(&self.range)?;
                self.state = State::Running;
            }
            State::Running => self.merge.step()?,
            State::Done => return Ok(None),
        }
        let is_inside = |entry: Entry<'_>| match self.merge.direction {
            Direction::Forward => !self.range.is_above(entry.key),
            Direction::Reverse => !self.range.is_below(entry.key),
        };
        if !self.merge.entry().is_some_and(is_inside) {
            self.state = State::Done;
            return Ok(None);
        }
        Ok(self.merge.entry().and_then(|entry| Some((entry.key, entry.value?))))
    }

    /// Moves the merge onto the newest visible version of the next live key. The first version met that may be seen
    /// is the newest; the others of its key are passed over.
    fn forward(&mut self) -> Result<bool> {
        let mut passed = match self.state {
            State::New => {
                self.merge.start(&self.range)?;
                self.state = State::Running;
                false
            }
            State::Running => {
                self.merge.step()?;
                true
            }
            State::Done => return Ok(false),
        };
        while let Some(entry) = self.merge.entry() {
            if self.range.is_above(entry.key) {
                return Ok(false);
            }
            if entry.sequence <= self.sequence && !(passed && entry.key == self.key.as_slice()) {
                self.key.clear();
                self.key.extend_from_slice(entry.key);
                passed = true;
                if entry.value.is_some() {
                    return Ok(true);
                }
            }
            self.merge.step()?;
        }
        Ok(false)
    }

    /// Takes in all versions of the next live key, oldest first, and keeps the last that may be seen. The merge then
    /// stands on the key before it.
    fn reverse(&mut self) -> Result<bool> {
        match self.state {
            State::New => {
                self.merge.start(&self.range)?;
                self.state = State::Running;
            }
            State::Running => {}
            State::Done => return Ok(false),
        }
        while let Some(entry) = self.merge.entry() {
            if self.range.is_below(entry.key) {
                return Ok(false);
            }
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            if self.newest_visible_of_key()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn newest_visible_of_key(&mut self) -> Result<bool> {
        let mut live = false;
        while let Some(entry) = self.merge.entry().filter(|entry| entry.key == self.key.as_slice()) {
            if entry.sequence <= self.sequence {
                live = entry.value.is_some();
                self.value.clear();
                self.value.extend_from_slice(entry.value.unwrap_or_default());
            }
            self.merge.step()?;
        }
        Ok(live)
    }
}
