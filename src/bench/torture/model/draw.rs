//! Draws lists of steps.

use std::ops::Bound;

use rustix::io::Errno;

use super::content::Content;
use super::kinds::{Kind, WEIGHTS};
use super::step::{Action, Change, End, Key, Read, Reading, Refusal, Step, Transacting, Upkeep};
use super::{SNAPSHOTS_MAX, STEPS, TREES_MAX};
use crate::engine::disk::sim::{AfterFailedSync, CallKind, Fault, PowerLoss, Random};
use crate::engine::{Direction, Durability, Isolation, KeyRange};

/// Calls in which upkeep is held. None of them is one that a commit makes: it would wait, too.
const HELD: [(CallKind, &str); 4] =
    [(CallKind::Create, ".seg"), (CallKind::Append, ".seg"), (CallKind::Sync, ".seg"), (CallKind::Rename, "")];

pub(super) struct Draw {
    random: Random,
    content: Content,
    classes: &'static [Durability],
    has_snapshots: bool,
    /// Steps that read, because everything was just settled.
    reads_left: usize,
}

impl Draw {
    pub(super) fn new(mut random: Random) -> Self {
        let classes: &[Durability] = match random.below(3) {
            0 => &[Durability::None, Durability::Process, Durability::Sync],
            1 => &[Durability::Process],
            _ => &[Durability::Process, Durability::Sync],
        };
        // A tree is settled only while nobody holds a snapshot.
        let has_snapshots = random.once_in(2);
        let content = Content::new(&mut random);
        Self { random, content, classes, has_snapshots, reads_left: 0 }
    }

    pub(super) fn steps(&mut self) -> Vec<Step> {
        std::iter::once(self.first()).chain((1..STEPS).map(|_| self.step())).collect()
    }

    /// Every list begins with it: the first tree is made of something.
    pub(super) fn first(&mut self) -> Step {
        Step {
            kind: Kind::ChangeLayout,
            action: Action::Declare { tree: 0, layout: self.content.layout(&mut self.random, 0) },
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.random.is_exhausted()
    }

    pub(super) fn step(&mut self) -> Step {
        let kind = if self.reads_left > 0 { self.kind_from(Kind::Get) } else { self.kind_from(Kind::Put) };
        self.reads_left = if kind == Kind::Settle { 12 } else { self.reads_left.saturating_sub(1) };
        Step { kind, action: self.action(kind) }
    }

    /// One of all kinds, or a read of one of the kinds from `first` on.
    fn kind_from(&mut self, first: Kind) -> Kind {
        let last = if first == Kind::Get { Kind::VisitTails } else { Kind::Salvage };
        let among = || WEIGHTS.iter().filter(|(kind, _)| (first..=last).contains(kind));
        let mut left = self.random.below(among().map(|(_, weight)| weight).sum());
        for (kind, weight) in among() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *kind,
            }
        }
        unreachable!("what is left is less than the sum")
    }

    pub(super) fn action(&mut self, kind: Kind) -> Action {
        match kind {
            Kind::Put
            | Kind::Overwrite
            | Kind::Delete
            | Kind::DeleteMissing
            | Kind::PutStray
            | Kind::PutEmptyKey
            | Kind::PutZeros
            | Kind::PutLargestBytes
            | Kind::PutSharedPrefix
            | Kind::PutLongKey
            | Kind::PutEmptyValue
            | Kind::PutLargeValue => {
                let change = self.change_of(kind);
                self.commit(vec![change])
            }
            Kind::PutAscending | Kind::PutDescending | Kind::PutEvenNumbers => self.row(kind),
            Kind::BatchOverOneTree => {
                let (tree, count) = (self.tree(), 1 + self.random.below(60));
                let changes = (0..count).map(|_| self.change_in(tree)).collect();
                self.commit(changes)
            }
            Kind::BatchOverAllTrees => {
                let count = 1 + self.random.below(40);
                let changes = (0..count).map(|_| self.change()).collect();
                self.commit(changes)
            }
            Kind::PutTwiceInOneBatch => self.twice(true, true),
            Kind::PutAndDeleteInOneBatch => self.twice(true, false),
            Kind::DeleteAndPutInOneBatch => self.twice(false, true),
            Kind::Burst => Action::Commit { batches: self.batches(20, 3), class: Some(self.class()) },
            Kind::CommitOfDefaultClass => Action::Commit { batches: self.batches(1, 4), class: None },
            Kind::CommitSynced => Action::Commit { batches: self.batches(2, 4), class: Some(Durability::Sync) },
            Kind::EmptyBatch => Action::Refuse(Refusal::EmptyBatch),
            Kind::ReadModifyWrite => {
                let tree = self.tree();
                let len = self.random.below(6);
                Action::Modify { tree, key: self.key(tree), tail: self.random.bytes(len) }
            }
            Kind::Increment => {
                let by = *self.random.pick(&[1, -1, 1_000, i64::MAX]);
                let key = if self.random.once_in(8) { self.key(0) } else { vec![b'c', self.random.below(3) as u8] };
                Action::Increment((self.tree(), key, by))
            }
            Kind::TransactReadCommitted => self.transact(Isolation::ReadCommitted),
            Kind::TransactSnapshot => self.transact(Isolation::Snapshot),
            Kind::TransactSerializable => self.transact(Isolation::Serializable),
            Kind::DeleteRange => {
                let tree = self.tree();
                Action::DeleteRange { tree, range: self.range(tree) }
            }
            Kind::EmptyTree => Action::DeleteRange { tree: self.tree(), range: KeyRange::all() },
            Kind::RefusedKey => Action::Refuse(Refusal::Key),
            Kind::RefusedTree => Action::Refuse(Refusal::Tree),
            Kind::RefusedLayout => Action::Refuse(Refusal::Layout),
            Kind::SecondOpen => Action::SecondOpen,
            Kind::Snapshot if self.has_snapshots => Action::Snapshot,
            Kind::Snapshot | Kind::Flush => Action::Upkeep(Upkeep::Flush),
            Kind::ReadSnapshot => {
                let reading = self.reading();
                Action::Read(Reading { snapshot: Some(self.random.below(SNAPSHOTS_MAX)), ..reading })
            }
            Kind::ReadWholeSnapshot => {
                let snapshot = Some(self.random.below(SNAPSHOTS_MAX));
                Action::Read(Reading { snapshot, tree: 0, read: Read::Whole })
            }
            Kind::DropSnapshot => Action::DropSnapshot(self.random.below(SNAPSHOTS_MAX)),
            Kind::NewTree => Action::NewTree(self.content.layout(&mut self.random, 0)),
            Kind::FindTree => Action::FindTree(self.tree()),
            Kind::ChangeLayout => {
                let tree = self.tree();
                Action::Declare { tree, layout: self.content.layout(&mut self.random, tree) }
            }
            Kind::ScanAcrossWrites => self.scan_across(None),
            Kind::ScanAcrossUpkeep => {
                let upkeep = *self.random.pick(&[Upkeep::Flush, Upkeep::Settle]);
                self.scan_across(Some(upkeep))
            }
            Kind::Settle => Action::Upkeep(Upkeep::Settle),
            Kind::Verify => Action::Upkeep(Upkeep::Verify),
            Kind::Stats => Action::Upkeep(Upkeep::Stats),
            Kind::Backup => Action::Upkeep(Upkeep::Backup),
            Kind::ResumeSound => Action::Upkeep(Upkeep::Resume),
            Kind::WriteDuringFlush => self.during(Upkeep::Flush),
            Kind::WriteDuringSettle => self.during(Upkeep::Settle),
            Kind::Salvage => Action::Salvage,
            kind if kind < Kind::Reopen => {
                let (snapshot, tree) = (None, self.tree());
                Action::Read(Reading { snapshot, tree, read: self.read(kind, tree) })
            }
            kind => self.trouble(kind),
        }
    }

    /// What ends the database, or may.
    fn trouble(&mut self, kind: Kind) -> Action {
        match kind {
            Kind::Reopen => Action::Reopen { end: End::Close, offset: 0 },
            Kind::UseClosed => Action::Reopen { end: End::CloseAndUse, offset: 0 },
            Kind::ReopenWithOtherOptions => Action::Reopen { end: self.end(), offset: 1 + self.random.below(20) },
            Kind::Kill => Action::Reopen { end: End::Kill, offset: 0 },
            Kind::KillDuringFlush => self.crash_during_flush(End::Kill),
            Kind::PowerLossDuringFlush => {
                let end = self.power_loss();
                self.crash_during_flush(end)
            }
            Kind::FailingOpen => Action::FailingOpen { end: self.end(), fault: self.any_fault(None, 30) },
            Kind::FailingWrites => {
                let kind = *self.random.pick(&[CallKind::Append, CallKind::Allocate]);
                self.fail(kind, 40)
            }
            Kind::FailingSyncs => self.fail(CallKind::Sync, 12),
            Kind::FailingNames => {
                let kinds = [CallKind::Create, CallKind::Rename, CallKind::Remove, CallKind::SyncDir];
                let kind = *self.random.pick(&kinds);
                self.fail(kind, 6)
            }
            Kind::DiskFull => {
                let ending = *self.random.pick(&["", ".seg", ".wal", "MANIFEST.new"]);
                let fault = self.any_fault(CallKind::Append, 12);
                let fault = Fault { for_ever: true, error: Errno::NOSPC, ending, ..fault };
                self.fail_with(fault)
            }
            Kind::FailingReads => {
                let kind = *self.random.pick(&[CallKind::Read, CallKind::Open]);
                let reads = (0..4).map(|_| self.reading()).collect();
                Action::FailingReads { fault: self.any_fault(kind, 6), reads }
            }
            _ => Action::Reopen { end: self.power_loss(), offset: 0 },
        }
    }

    fn commit(&mut self, changes: Vec<Change>) -> Action {
        Action::Commit { batches: vec![changes], class: Some(self.class()) }
    }

    fn class(&mut self) -> Durability {
        *self.random.pick(self.classes)
    }

    fn batches(&mut self, count: usize, len: usize) -> Vec<Vec<Change>> {
        let mut batch = || (0..=self.random.below(len)).map(|_| self.change()).collect();
        (0..count).map(|_| batch()).collect()
    }

    fn change(&mut self) -> Change {
        let tree = self.tree();
        self.change_in(tree)
    }

    fn change_in(&mut self, tree: usize) -> Change {
        let value = (!self.random.once_in(4)).then(|| self.value(tree));
        (tree, self.key(tree), value)
    }

    fn change_of(&mut self, kind: Kind) -> Change {
        let tree = self.tree();
        let random = &mut self.random;
        let (key, value) = match kind {
            Kind::PutStray => (self.content.stray(random), Some(self.content.stray(random))),
            Kind::PutEmptyKey => (Vec::new(), None),
            Kind::PutZeros => (vec![0; random.below(20)], None),
            Kind::PutLargestBytes => (vec![0xFF; random.below(20)], None),
            Kind::PutSharedPrefix => ([vec![b'p'; 300], vec![random.below(6) as u8]].concat(), None),
            Kind::PutLongKey => (vec![random.below(2) as u8; *random.pick(&[500, 3_000, 3_001, 64 << 10])], None),
            Kind::PutEmptyValue => (self.key(tree), Some(Vec::new())),
            Kind::PutLargeValue => {
                let len = *random.pick(&[2_000, 5_000, 40_000]);
                let value = if random.once_in(2) { random.bytes(len) } else { vec![7; len] };
                (self.key(tree), Some(value))
            }
            // Half of the keys are deleted and written again all the time.
            Kind::Overwrite => (self.content.key(&mut Random::new(self.random.below(8) as u64), tree), None),
            Kind::DeleteMissing => return (tree, [self.key(tree).as_slice(), b"\0?"].concat(), None),
            Kind::Delete => return (tree, self.key(tree), None),
            _ => (self.key(tree), None),
        };
        (tree, key, Some(value.unwrap_or_else(|| self.value(tree))))
    }

    /// Neighbours, in order.
    fn row(&mut self, kind: Kind) -> Action {
        let (tree, from, count) = (self.tree(), self.random.below(200) as u64, 1 + self.random.below(40) as u64);
        let step = if kind == Kind::PutEvenNumbers { 1_000 } else { 1 };
        let mut numbers: Vec<u64> = (from..from + count).map(|number| number * step).collect();
        if kind == Kind::PutDescending {
            numbers.reverse();
        }
        let changes = numbers.into_iter().map(|number| (tree, number.to_be_bytes().to_vec(), Some(self.value(tree))));
        let changes = changes.collect();
        self.commit(changes)
    }

    /// Something else, with a key that it changes twice.
    fn twice(&mut self, first: bool, second: bool) -> Action {
        let (tree, key) = self.tree_of_key();
        let mut change = |is_put: bool| (tree, key.clone(), is_put.then(|| self.value(tree)));
        let (first, second) = (change(first), change(second));
        let changes = vec![self.change(), first, self.change(), second, self.change()];
        self.commit(changes)
    }

    fn tree_of_key(&mut self) -> (usize, Key) {
        let tree = self.tree();
        (tree, self.key(tree))
    }

    fn value(&mut self, tree: usize) -> Vec<u8> {
        self.content.value(&mut self.random, tree)
    }

    fn scan_across(&mut self, upkeep: Option<Upkeep>) -> Action {
        let tree = self.tree();
        let (range, direction, before) = (self.range(tree), self.direction(), self.random.below(12));
        let changes = (0..12).map(|_| self.change_in(tree)).collect();
        Action::ScanAcross { tree, range, direction, before, changes, upkeep }
    }

    /// Everything in few trees and of known keys, so that transactions and others meet.
    fn transact(&mut self, isolation: Isolation) -> Action {
        let tree = self.tree();
        let first = (0..self.random.below(5)).map(|_| self.change_in(tree)).collect();
        let meanwhile = (0..self.random.below(4)).map(|_| vec![self.change_in(tree), self.change()]).collect();
        let upkeep = *self.random.pick(&[None, None, Some(Upkeep::Flush), Some(Upkeep::Settle)]);
        let then = (0..self.random.below(3)).map(|_| self.change()).collect();
        let (key, range, direction) = (self.key(tree), self.range(tree), self.direction());
        let commits = !self.random.once_in(6);
        let transacting =
            Transacting { isolation, first, meanwhile, upkeep, then, tree, key, range, direction, commits };
        Action::Transact(Box::new(transacting))
    }

    fn during(&mut self, upkeep: Upkeep) -> Action {
        let changes = (0..=self.random.below(5)).map(|_| self.change()).collect();
        let reads = (0..4).map(|_| self.reading()).collect();
        Action::During { upkeep, held: *self.random.pick(&HELD), put: self.sure_put(), changes, reads }
    }

    fn crash_during_flush(&mut self, end: End) -> Action {
        let changes = (0..=self.random.below(5)).map(|_| self.change()).collect();
        Action::CrashDuringFlush { held: *self.random.pick(&HELD), put: self.sure_put(), changes, end }
    }

    /// With it there is something to flush.
    fn sure_put(&mut self) -> Change {
        let tree = self.tree();
        (tree, self.key(tree), Some(self.value(tree)))
    }

    fn end(&mut self) -> End {
        match self.random.below(3) {
            0 => End::Close,
            1 => End::Kill,
            _ => self.power_loss(),
        }
    }

    fn crash(&mut self) -> End {
        if self.random.once_in(2) { End::Kill } else { self.power_loss() }
    }

    fn power_loss(&mut self) -> End {
        let losses = if self.random.once_in(2) { &PowerLoss::EXTREMES[..] } else { &PowerLoss::DRAWN[..] };
        End::PowerLoss { loss: *self.random.pick(losses), seed: self.random.below(1 << 16) as u64 }
    }

    fn any_fault(&mut self, kind: impl Into<Option<CallKind>>, after: usize) -> Fault {
        use AfterFailedSync::{CacheKeepsNew, OldComesBack, ReadsFail};
        let after = self.random.below(after);
        let fault = if self.random.once_in(2) { Fault::once(kind, after) } else { Fault::for_ever(kind, after) };
        let after_failed_sync = *self.random.pick(&[CacheKeepsNew, CacheKeepsNew, OldComesBack, ReadsFail]);
        let error = *self.random.pick(&[Errno::IO, Errno::NOSPC, Errno::MFILE]);
        Fault { short: self.random.once_in(2), error, after_failed_sync, ..fault }
    }

    fn fail(&mut self, kind: CallKind, after: usize) -> Action {
        let fault = self.any_fault(kind, after);
        self.fail_with(fault)
    }

    fn fail_with(&mut self, fault: Fault) -> Action {
        let batches = self.batches(16, 4);
        let class = Some(*self.random.pick(&[Durability::Process, Durability::Sync]));
        Action::Fail { fault, batches, class, end: self.crash() }
    }

    /// Of any kind.
    fn reading(&mut self) -> Reading {
        let snapshot = self.random.once_in(3).then(|| self.random.below(SNAPSHOTS_MAX));
        let (tree, kind) = (self.tree(), self.kind_from(Kind::Get));
        Reading { snapshot, tree, read: self.read(kind, tree) }
    }

    fn read(&mut self, kind: Kind, tree: usize) -> Read {
        use Direction::{Forward, Reverse};
        let (range, direction, limit) = (self.range(tree), self.direction(), self.random.below(10));
        match kind {
            Kind::Get => Read::Get { key: self.key(tree) },
            Kind::GetMissing => Read::Get { key: self.probe(tree) },
            Kind::GetStored => Read::GetStored { key: self.key(tree) },
            Kind::GetMany | Kind::GetManyStopped => {
                let keys = (0..self.random.below(20)).map(|_| self.key(tree)).collect();
                Read::GetMany { keys, limit: if kind == Kind::GetMany { usize::MAX } else { limit } }
            }
            Kind::Count => Read::Count { range },
            Kind::CountPrefix => Read::Count { range: self.prefix(tree) },
            Kind::ScanForward => Read::Scan { range: KeyRange::all(), direction: Forward, limit: usize::MAX },
            Kind::ScanReverse => Read::Scan { range: KeyRange::all(), direction: Reverse, limit: usize::MAX },
            Kind::ScanStopped => Read::Scan { range, direction, limit },
            Kind::ScanPrefix => Read::Scan { range: self.prefix(tree), direction, limit: usize::MAX },
            Kind::ScanReversedBounds => {
                let (a, b) = (self.key(tree), self.key(tree));
                let range = KeyRange::of(a.as_slice().max(&b)..a.as_slice().min(&b));
                Read::Scan { range, direction, limit: usize::MAX }
            }
            Kind::ScanTurning => {
                let legs = (0..2 + self.random.below(4)).map(|_| 1 + self.random.below(5)).collect();
                Read::Turning { from: self.probe(tree), legs }
            }
            Kind::ScanSkipping => {
                let mut from: Vec<Key> = (0..=self.random.below(5)).map(|_| self.probe(tree)).collect();
                from.sort_unstable();
                Read::Skipping { from, limit: 1 + limit }
            }
            Kind::ScansSideBySide => {
                Read::SideBySide { ranges: [(range, direction), (self.range(tree), self.direction())] }
            }
            Kind::Visit => Read::Visit { range, direction, limit: usize::MAX },
            Kind::VisitStopped => Read::Visit { range, direction, limit },
            Kind::VisitTails => Read::VisitTails { range, direction, limit, width: self.random.below(14) },
            _ => Read::Scan { range, direction, limit: usize::MAX },
        }
    }

    fn tree(&mut self) -> usize {
        self.random.below(TREES_MAX)
    }

    fn direction(&mut self) -> Direction {
        *self.random.pick(&[Direction::Forward, Direction::Reverse])
    }

    /// A known key, or one beside it.
    fn key(&mut self, tree: usize) -> Key {
        let mut key = self.content.key(&mut self.random, tree);
        match self.random.below(24) {
            0 => key.push(0),
            1 => drop(key.pop()),
            _ => {}
        }
        key
    }

    /// A key that is only looked for: also cut short, or with another byte somewhere.
    fn probe(&mut self, tree: usize) -> Key {
        let mut key = self.key(tree);
        let at = self.random.below(key.len() + 1);
        match self.random.below(4) {
            0 => key.truncate(at),
            1 if at < key.len() => key[at] = *self.random.pick(&[0, b'0' - 1, b'9' + 1, 0xFF]),
            _ => {}
        }
        key
    }

    fn prefix(&mut self, tree: usize) -> KeyRange {
        let mut prefix = self.probe(tree);
        prefix.truncate(self.random.below(12));
        KeyRange::prefix(&prefix)
    }

    /// Any bounds, also reversed ones.
    fn range(&mut self, tree: usize) -> KeyRange {
        if self.random.once_in(3) {
            return self.prefix(tree);
        }
        KeyRange { lower: self.bound(tree), upper: self.bound(tree) }
    }

    fn bound(&mut self, tree: usize) -> Bound<Key> {
        match self.random.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.probe(tree)),
            _ => Bound::Excluded(self.probe(tree)),
        }
    }
}
