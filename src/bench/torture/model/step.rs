//! One step of a list, with everything in it that was drawn.

use super::kinds::Kind;
use crate::engine::disk::sim::{CallKind, Fault, PowerLoss};
use crate::engine::{Direction, Durability, Isolation, KeyRange, Layout};

pub(super) type Key = Vec<u8>;
/// Number of a tree, modulo how many there are; key; and the new value unless it is a delete.
pub(super) type Change = (usize, Key, Option<Vec<u8>>);

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) action: Action,
}

/// What is done.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Batches, one after the other, of the default class if none is named.
    Commit {
        batches: Vec<Vec<Change>>,
        class: Option<Durability>,
    },
    /// Everything in a range, as it is found by a scan.
    DeleteRange {
        tree: usize,
        range: KeyRange,
    },
    /// Appends to a value that was read.
    Modify {
        tree: usize,
        key: Key,
        tail: Vec<u8>,
    },
    Transact(Box<Transacting>),
    /// Tree, key, and what is added to the counter there.
    Increment((usize, Key, i64)),
    Refuse(Refusal),
    Read(Reading),
    /// Begins to scan, takes `before` entries, and goes on when something else was done.
    ScanAcross {
        tree: usize,
        range: KeyRange,
        direction: Direction,
        before: usize,
        changes: Vec<Change>,
        upkeep: Option<Upkeep>,
    },
    Snapshot,
    DropSnapshot(usize),
    NewTree(Layout),
    FindTree(usize),
    /// The tree is made of something else from now on.
    Declare {
        tree: usize,
        layout: Layout,
    },
    Upkeep(Upkeep),
    /// Writes and reads while upkeep waits in a call.
    During {
        upkeep: Upkeep,
        held: (CallKind, &'static str),
        put: Change,
        changes: Vec<Change>,
        reads: Vec<Reading>,
    },
    SecondOpen,
    /// The database ends, and is opened again with the options of a configuration so far behind.
    Reopen {
        end: End,
        offset: usize,
    },
    /// The same, at a moment at which a flush waits in a call.
    CrashDuringFlush {
        held: (CallKind, &'static str),
        put: Change,
        changes: Vec<Change>,
        end: End,
    },
    FailingOpen {
        end: End,
        fault: Fault,
    },
    /// Writes and upkeep until a call fails. What does not resume is ended and opened again.
    Fail {
        fault: Fault,
        batches: Vec<Vec<Change>>,
        class: Option<Durability>,
        end: End,
    },
    FailingReads {
        fault: Fault,
        reads: Vec<Reading>,
    },
    Salvage,
}

/// A transaction, and what somebody else does meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Transacting {
    pub(super) isolation: Isolation,
    /// What it changes before the others.
    pub(super) first: Vec<Change>,
    pub(super) meanwhile: Vec<Vec<Change>>,
    pub(super) upkeep: Option<Upkeep>,
    /// What it changes after them.
    pub(super) then: Vec<Change>,
    /// What it reads, before and after.
    pub(super) tree: usize,
    pub(super) key: Key,
    pub(super) range: KeyRange,
    pub(super) direction: Direction,
    /// Whether it is not given up.
    pub(super) commits: bool,
}

/// What must be refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    EmptyBatch,
    Key,
    Tree,
    Layout,
}

/// What leaves every answer as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upkeep {
    Flush,
    Settle,
    Verify,
    Stats,
    Resume,
    Backup,
}

/// How a database ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Close,
    /// It is used after it was closed.
    CloseAndUse,
    Kill,
    PowerLoss {
        loss: PowerLoss,
        seed: u64,
    },
}

/// A read of a snapshot, or of the newest state.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) snapshot: Option<usize>,
    pub(super) tree: usize,
    pub(super) read: Read,
}

/// What is read of a tree. At most `limit` entries are taken.
#[derive(Clone, Debug)]
pub(super) enum Read {
    Get {
        key: Key,
    },
    GetStored {
        key: Key,
    },
    GetMany {
        keys: Vec<Key>,
        limit: usize,
    },
    Count {
        range: KeyRange,
    },
    Scan {
        range: KeyRange,
        direction: Direction,
        limit: usize,
    },
    /// From a key, so many entries one way, then so many back, and so on.
    Turning {
        from: Key,
        legs: Vec<usize>,
    },
    /// So many entries, and then on from the next key.
    Skipping {
        from: Vec<Key>,
        limit: usize,
    },
    /// Two ranges, an entry of each in turn.
    SideBySide {
        ranges: [(KeyRange, Direction); 2],
    },
    Visit {
        range: KeyRange,
        direction: Direction,
        limit: usize,
    },
    VisitTails {
        range: KeyRange,
        direction: Direction,
        limit: usize,
        width: usize,
    },
    /// All trees, both ways.
    Whole,
}

impl Step {
    /// The same with less to do, in different ways; none if it is as simple as it gets.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let Self { kind, action } = self;
        let with = |action| Self { kind: *kind, action };
        match action {
            Action::Commit { batches, class } => {
                let commit = |batches| with(Action::Commit { batches, class: *class });
                shorter_batches(batches).into_iter().map(commit).collect()
            }
            Action::Transact(transacting) => {
                let simpler = |meanwhile| {
                    let transacting = Transacting { meanwhile, ..(**transacting).clone() };
                    with(Action::Transact(Box::new(transacting)))
                };
                shorter_batches(&transacting.meanwhile).into_iter().map(simpler).collect()
            }
            Action::Fail { fault, batches, class, end } => {
                let fail = |batches| with(Action::Fail { fault: *fault, batches, class: *class, end: *end });
                shorter_batches(batches).into_iter().map(fail).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Without each batch, and without each half of the changes of each.
fn shorter_batches(batches: &[Vec<Change>]) -> Vec<Vec<Vec<Change>>> {
    let mut shorter = Vec::new();
    for index in 0..batches.len() {
        if batches.len() > 1 {
            let mut fewer = batches.to_vec();
            fewer.remove(index);
            shorter.push(fewer);
        }
        let (first, second) = batches[index].split_at(batches[index].len() / 2);
        if !first.is_empty() {
            for half in [first, second] {
                let mut fewer = batches.to_vec();
                fewer[index] = half.to_vec();
                shorter.push(fewer);
            }
        }
    }
    shorter
}
