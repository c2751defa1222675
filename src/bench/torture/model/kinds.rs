//! What a step can be. Each kind exercises something that the others do not.

#[cfg(doc)]
use super::draw::Draw;

/// Kinds of steps, and how often each is drawn, in parts of their sum.
pub(super) const WEIGHTS: &[(Kind, usize)] = &[
    // Writes, by the shape of keys and values.
    (Kind::Put, 40),
    (Kind::Overwrite, 20),
    (Kind::Delete, 20),
    (Kind::DeleteMissing, 6),
    (Kind::PutStray, 8),
    (Kind::PutEmptyKey, 4),
    (Kind::PutZeros, 5),
    (Kind::PutLargestBytes, 5),
    (Kind::PutSharedPrefix, 8),
    (Kind::PutLongKey, 2),
    (Kind::PutEmptyValue, 6),
    (Kind::PutLargeValue, 3),
    (Kind::PutAscending, 8),
    (Kind::PutDescending, 6),
    (Kind::PutEvenNumbers, 6),
    // Writes, by the shape of batches.
    (Kind::BatchOverOneTree, 12),
    (Kind::BatchOverAllTrees, 20),
    (Kind::PutTwiceInOneBatch, 8),
    (Kind::PutAndDeleteInOneBatch, 8),
    (Kind::DeleteAndPutInOneBatch, 8),
    (Kind::Burst, 8),
    (Kind::CommitOfDefaultClass, 8),
    (Kind::CommitSynced, 8),
    (Kind::EmptyBatch, 3),
    (Kind::ReadModifyWrite, 8),
    (Kind::Increment, 6),
    (Kind::TransactReadCommitted, 5),
    (Kind::TransactSnapshot, 5),
    (Kind::TransactSerializable, 5),
    (Kind::DeleteRange, 5),
    (Kind::EmptyTree, 3),
    // What is refused, and changes nothing.
    (Kind::RefusedKey, 2),
    (Kind::RefusedTree, 2),
    (Kind::RefusedLayout, 2),
    (Kind::SecondOpen, 3),
    // Reads.
    (Kind::Get, 30),
    (Kind::GetMissing, 10),
    (Kind::GetStored, 10),
    (Kind::GetMany, 12),
    (Kind::GetManyStopped, 6),
    (Kind::Count, 10),
    (Kind::CountPrefix, 6),
    (Kind::ScanForward, 10),
    (Kind::ScanReverse, 10),
    (Kind::ScanStopped, 10),
    (Kind::ScanPrefix, 8),
    (Kind::ScanReversedBounds, 4),
    (Kind::ScanTurning, 8),
    (Kind::ScanSkipping, 8),
    (Kind::ScansSideBySide, 6),
    (Kind::ScanAcrossWrites, 6),
    (Kind::ScanAcrossUpkeep, 5),
    (Kind::Visit, 10),
    (Kind::VisitStopped, 8),
    (Kind::VisitTails, 10),
    // Snapshots.
    (Kind::Snapshot, 18),
    (Kind::ReadSnapshot, 40),
    (Kind::ReadWholeSnapshot, 6),
    (Kind::DropSnapshot, 12),
    // Trees.
    (Kind::NewTree, 10),
    (Kind::FindTree, 5),
    (Kind::ChangeLayout, 8),
    // Upkeep.
    (Kind::Flush, 10),
    (Kind::Settle, 12),
    (Kind::Verify, 3),
    (Kind::Stats, 8),
    (Kind::ResumeSound, 2),
    (Kind::WriteDuringFlush, 3),
    (Kind::WriteDuringSettle, 3),
    // The database ends, and is opened again.
    (Kind::Reopen, 4),
    (Kind::ReopenWithOtherOptions, 4),
    (Kind::UseClosed, 2),
    (Kind::Kill, 4),
    (Kind::KillDuringFlush, 3),
    (Kind::PowerLoss, 5),
    (Kind::PowerLossDuringFlush, 3),
    (Kind::FailingOpen, 3),
    // Calls fail.
    (Kind::FailingWrites, 4),
    (Kind::FailingSyncs, 4),
    (Kind::FailingNames, 3),
    (Kind::FailingReads, 3),
    (Kind::DiskFull, 4),
    // What is there is copied.
    (Kind::Backup, 3),
    (Kind::Salvage, 2),
];

/// See [`Draw::action`] for what each does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Put,
    Overwrite,
    Delete,
    DeleteMissing,
    PutStray,
    PutEmptyKey,
    PutZeros,
    PutLargestBytes,
    PutSharedPrefix,
    PutLongKey,
    PutEmptyValue,
    PutLargeValue,
    PutAscending,
    PutDescending,
    /// Keys of a field that a block of columns keeps by their distance from a line.
    PutEvenNumbers,
    BatchOverOneTree,
    BatchOverAllTrees,
    PutTwiceInOneBatch,
    PutAndDeleteInOneBatch,
    DeleteAndPutInOneBatch,
    /// Many small commits, one after the other.
    Burst,
    CommitOfDefaultClass,
    CommitSynced,
    EmptyBatch,
    ReadModifyWrite,
    Increment,
    /// Others commit while it is open, and perhaps what it reads or changes.
    TransactReadCommitted,
    TransactSnapshot,
    TransactSerializable,
    DeleteRange,
    EmptyTree,
    RefusedKey,
    RefusedTree,
    RefusedLayout,
    SecondOpen,
    Get,
    GetMissing,
    GetStored,
    GetMany,
    GetManyStopped,
    Count,
    CountPrefix,
    ScanForward,
    ScanReverse,
    ScanStopped,
    ScanPrefix,
    ScanReversedBounds,
    /// A few entries one way, then back from there, and so on.
    ScanTurning,
    /// A few entries, then on from a key far behind them.
    ScanSkipping,
    /// Two scans that take turns.
    ScansSideBySide,
    /// A scan that is under way while its tree changes.
    ScanAcrossWrites,
    /// A scan whose deltas and files are flushed and merged away under it.
    ScanAcrossUpkeep,
    Visit,
    VisitStopped,
    VisitTails,
    Snapshot,
    ReadSnapshot,
    ReadWholeSnapshot,
    DropSnapshot,
    NewTree,
    FindTree,
    ChangeLayout,
    Flush,
    Settle,
    Verify,
    Stats,
    /// Nothing had failed: nothing happens.
    ResumeSound,
    WriteDuringFlush,
    WriteDuringSettle,
    Reopen,
    ReopenWithOtherOptions,
    /// A closed database is read, and refuses writes.
    UseClosed,
    Kill,
    KillDuringFlush,
    PowerLoss,
    PowerLossDuringFlush,
    FailingOpen,
    FailingWrites,
    FailingSyncs,
    /// Creations, renames, removals and syncs of the directory.
    FailingNames,
    FailingReads,
    DiskFull,
    /// Onto another disk, which is opened read-only.
    Backup,
    Salvage,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::draw::Draw;
    use super::*;
    use crate::engine::disk::sim::Random;

    #[test]
    fn every_kind_is_drawn_and_none_is_listed_twice() {
        let mut drawn: BTreeMap<Kind, usize> = BTreeMap::new();
        for seed in 0..60 {
            for step in Draw::new(Random::new(seed)).steps() {
                *drawn.entry(step.kind).or_default() += 1;
            }
        }
        let listed: Vec<_> = WEIGHTS.iter().map(|(kind, _)| *kind).collect();
        assert!(listed.is_sorted(), "in the order of the enum, each once");
        assert_eq!(drawn.into_keys().collect::<Vec<_>>(), listed);
        assert!(listed.len() >= 45);
    }
}
