//! Which runs of a tree to merge, and which versions survive a merge. Pure: no disk, no clock, no lock.
//!
//! Runs are tiered: a flush adds a small run on top, and runs of like size are merged, so that each entry is rewritten
//! about once for each doubling of the tree. Runs whose keys do not overlap (ids and times mostly arrive in order) are
//! joined without rewriting anything. A tree of which tombstones are half is merged whole: scans and gets pass over every
//! tombstone, and what it deletes takes up space, until both have met.

use std::ops::Range;

/// What the choice depends on, for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunShape {
    /// Versions, tombstones among them. Runs are measured by them: the oldest is packed and the others are not, so that
    /// their bytes say little of what a merge has to do.
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// Whether a version in it has a sequence number: not every reader sees it, or there may be older ones.
    pub(crate) versioned: bool,
    pub(crate) span: KeySpan,
}

/// The keys from one to another, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
}

impl KeySpan {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.smallest <= other.largest && other.smallest <= self.largest
    }

    /// From the smallest to the largest key of all of `spans`.
    pub(crate) fn around(spans: impl IntoIterator<Item = Self>) -> Option<Self> {
        spans.into_iter().reduce(|all, span| Self {
            smallest: all.smallest.min(span.smallest),
            largest: all.largest.max(span.largest),
        })
    }
}

/// What to do with the runs of one tree, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Nothing to gain.
    Nothing,
    /// Make one run of these without rewriting their segments.
    Join(Range<usize>),
    /// Rewrite these as one run.
    Merge(Range<usize>),
}

/// A run may be this many times as large as all newer ones of a merge together and still take part in it.
const SIZE_RATIO: u64 = 2;

/// Chooses the next step for a tree whose runs are `runs`, newest first.
pub(crate) fn pick(runs: &[RunShape], runs_max: usize) -> Choice {
    for newer in 0..runs.len().saturating_sub(1) {
        if !runs[newer].span.overlaps(&runs[newer + 1].span) {
            return Choice::Join(newer..newer + 2);
        }
    }
    if runs.len() > 1 && is_mostly_deleted(runs) {
        return Choice::Merge(0..runs.len());
    }
    if runs.len() <= runs_max {
        return Choice::Nothing;
    }
    let mut end = 1;
    let mut entries = runs[0].entries;
    while end < runs.len() && (end < 2 || runs[end].entries <= entries.saturating_mul(SIZE_RATIO)) {
        entries += runs[end].entries;
        end += 1;
    }
    Choice::Merge(0..end)
}

/// How many of `runs`, newest first, settling has to rewrite, together with changes in `newer` that are in no run yet. The
/// others are settled, and their keys lie apart from all the rest and from each other: they are joined as they are.
pub(crate) fn unsettled(newer: Option<&KeySpan>, runs: &[RunShape]) -> usize {
    let is_enough = |count: &usize| {
        let (rewritten, kept) = runs.split_at(*count);
        let rewritten = KeySpan::around(rewritten.iter().map(|run| &run.span).chain(newer).cloned());
        kept.iter().enumerate().all(|(index, run)| {
            let mut others = kept[..index].iter().map(|other| &other.span).chain(&rewritten);
            run.tombstones == 0 && !run.versioned && !others.any(|other| other.overlaps(&run.span))
        })
    };
    (0..runs.len()).find(is_enough).unwrap_or(runs.len())
}

/// Whether half of all versions are tombstones. Merging them costs no more than writing them did.
fn is_mostly_deleted(runs: &[RunShape]) -> bool {
    let entries: u64 = runs.iter().map(|run| run.entries).sum();
    let tombstones: u64 = runs.iter().map(|run| run.tombstones).sum();
    tombstones > 0 && tombstones >= entries.div_ceil(2)
}

/// Decides, version by version, what a merge writes. Fed with versions in order: key ascending, newest first.
///
/// Snapshots hold the files they read, so a merge only serves those who come later: they read at the published sequence
/// number or above. A version is needed if it is the newest of its key, or if the next newer one is not published yet.
/// A tombstone with nothing older beneath it is not.
pub(crate) struct Retention {
    /// The newest sequence number that readers may see.
    published: u64,
    /// Whether no older run can hold a version of any key of the merge.
    bottom: bool,
    /// The key of the last version fed, and its sequence number.
    key: Vec<u8>,
    newer: Option<u64>,
}

/// What becomes of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Drop,
    /// Written with this sequence number.
    Keep {
        sequence: u64,
    },
}

impl Retention {
    pub(crate) fn new(published: u64, bottom: bool) -> Self {
        Self { published, bottom, key: Vec::new(), newer: None }
    }

    pub(crate) fn is_bottom(&self) -> bool {
        self.bottom
    }

    pub(crate) fn decide(&mut self, key: &[u8], sequence: u64, tombstone: bool) -> Fate {
        let newer = self.newer.replace(sequence).filter(|_| self.key == key);
        if newer.is_none() {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        if newer.is_some_and(|newer| newer <= self.published) {
            return Fate::Drop;
        }
        // Every later reader sees this version and none older: the number says nothing any more.
        let settled = self.bottom && sequence <= self.published;
        match (settled, tombstone) {
            (true, true) => Fate::Drop,
            (true, false) => Fate::Keep { sequence: 0 },
            (false, _) => Fate::Keep { sequence },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(entries: u64, smallest: &str, largest: &str) -> RunShape {
        let span = KeySpan { smallest: smallest.into(), largest: largest.into() };
        RunShape { entries, tombstones: 0, versioned: false, span }
    }

    #[test]
    fn runs_filled_in_key_order_are_joined_not_rewritten() {
        assert_eq!(pick(&[run(10, "m", "z"), run(90, "a", "l")], 4), Choice::Join(0..2));
        assert_eq!(pick(&[run(10, "a", "z"), run(10, "x", "z"), run(90, "a", "l")], 4), Choice::Join(1..3));
        assert_eq!(pick(&[run(10, "l", "z"), run(90, "a", "l")], 4), Choice::Nothing);
    }

    #[test]
    fn runs_of_like_size_are_merged_and_a_large_one_is_left_alone() {
        let overlapping = |sizes: &[u64]| sizes.iter().map(|&entries| run(entries, "a", "z")).collect::<Vec<_>>();
        assert_eq!(pick(&overlapping(&[1, 1, 1, 1]), 4), Choice::Nothing);
        assert_eq!(pick(&overlapping(&[1, 1, 1, 1, 100]), 4), Choice::Merge(0..4));
        assert_eq!(pick(&overlapping(&[1, 1, 2, 4, 8]), 4), Choice::Merge(0..5));
        assert_eq!(pick(&overlapping(&[1, 100, 100, 100, 100]), 4), Choice::Merge(0..5));
    }

    #[test]
    fn a_tree_of_which_half_is_tombstones_is_merged_whole() {
        let deleting = |tombstones| RunShape { tombstones, ..run(100, "a", "z") };
        assert_eq!(pick(&[deleting(100), run(100, "a", "z")], 4), Choice::Merge(0..2));
        assert_eq!(pick(&[deleting(99), run(100, "a", "z")], 4), Choice::Nothing);
        assert_eq!(pick(&[deleting(100)], 4), Choice::Nothing, "there is nothing to merge it with");
    }

    #[test]
    fn settling_rewrites_only_runs_that_meet_something_newer_or_are_not_settled() {
        let span = |smallest: &str, largest: &str| Some(run(1, smallest, largest).span);
        let (low, middle, high) = (run(9, "a", "c"), run(9, "f", "h"), run(9, "m", "p"));
        let versioned = |run: &RunShape| RunShape { versioned: true, ..run.clone() };
        let runs = [high.clone(), middle.clone(), low.clone()];
        assert_eq!(unsettled(None, &[]), 0);
        assert_eq!(unsettled(None, &runs), 0, "they are joined");
        assert_eq!(unsettled(span("q", "z").as_ref(), &runs), 0, "what is new comes behind them");
        assert_eq!(unsettled(span("o", "z").as_ref(), &runs), 1);
        assert_eq!(unsettled(span("g", "z").as_ref(), &runs), 2);
        assert_eq!(unsettled(span("d", "e").as_ref(), &runs), 0, "between two of them");
        assert_eq!(unsettled(span("b", "z").as_ref(), &runs), 3);
        assert_eq!(unsettled(None, &[versioned(&high), middle.clone()]), 1);
        assert_eq!(unsettled(None, &[high.clone(), versioned(&middle), low.clone()]), 2);
        assert_eq!(unsettled(None, &[versioned(&high), middle.clone(), run(1, "g", "g")]), 3, "two that meet");
        assert_eq!(unsettled(None, &[RunShape { tombstones: 1, ..high }, middle, low]), 1);
    }

    #[test]
    fn picking_comes_to_an_end() {
        let mut runs = vec![run(1, "a", "z"); 40];
        for step in 0.. {
            assert!(step < 100, "still picking");
            match pick(&runs, 4) {
                Choice::Nothing => break,
                Choice::Join(range) | Choice::Merge(range) => {
                    let entries = runs[range.clone()].iter().map(|run| run.entries).sum();
                    runs.splice(range, [run(entries, "a", "z")]);
                }
            }
        }
        assert!(runs.len() <= 4);
    }

    /// What survives of versions (sequence, tombstone) of one key, newest first.
    fn kept(published: u64, bottom: bool, versions: &[(u64, bool)]) -> Vec<u64> {
        let mut retention = Retention::new(published, bottom);
        let fates = versions.iter().map(|&(sequence, tombstone)| retention.decide(b"key", sequence, tombstone));
        fates.filter_map(|fate| if let Fate::Keep { sequence } = fate { Some(sequence) } else { None }).collect()
    }

    #[test]
    fn only_versions_that_somebody_may_read_survive() {
        let versions: Vec<_> = (1..=100).rev().map(|sequence| (sequence, false)).collect();
        assert_eq!(kept(100, false, &versions), [100]);
        assert_eq!(kept(100, true, &versions), [0]);
        assert_eq!(kept(98, false, &versions), [100, 99, 98], "99 may be published before 100 is");
        assert_eq!(kept(98, true, &versions), [100, 99, 0]);
    }

    #[test]
    fn a_tombstone_goes_only_with_everything_beneath_it() {
        assert_eq!(kept(9, true, &[(5, true), (3, false)]), [0; 0]);
        assert_eq!(kept(9, false, &[(5, true), (3, false)]), [5]);
        assert_eq!(kept(4, true, &[(5, true), (3, false)]), [5, 0]);
        assert_eq!(kept(9, true, &[(7, false), (5, true), (3, false)]), [0]);
        assert_eq!(kept(6, true, &[(7, false), (5, true), (3, false)]), [7]);
    }

    #[test]
    fn an_empty_first_key_is_a_key() {
        let mut retention = Retention::new(9, false);
        assert_eq!(retention.decide(b"", 5, false), Fate::Keep { sequence: 5 });
        assert_eq!(retention.decide(b"", 4, false), Fate::Drop);
        assert_eq!(retention.decide(b"a", 3, false), Fate::Keep { sequence: 3 });
    }
}
