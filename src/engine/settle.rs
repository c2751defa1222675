//! Settling: of every tree one run, in which every entry is live and seen by all readers.
//!
//! Sealed deltas are merged straight into the run that stays: they are not flushed first, read again and merged. Runs that
//! meet nothing newer are taken over as they are.
//!
//! All trees enter the manifest in one edit. A batch may have changed several of them, and until its log is let go a power
//! loss may take its newest frames: a tree that entered before the others would keep its part of a batch that they lost.
//! So there is one moment at which the old runs and the log are what counts, and one from which on the new runs are. The
//! price is room for both until then.

use std::cmp::Reverse;
use std::ops::Bound;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use super::batch::TreeId;
use super::compaction::{self, KeySpan, Retention, RunShape};
use super::database::Shared;
use super::delta::Delta;
use super::error::Result;
use super::layout::Layout;
use super::range::{Direction, KeyRange};
use super::run::Run;
use super::run_writer::discard;
use super::scan::Merge;
use super::segment::{Reading, Segment, SegmentMeta};
use super::sync::{AtomicUsize, Ordering};
use super::version::Version;
use super::worker::{WrittenRun, delta_span, edit_runs, forget_sealed, install, shape, write_run};

/// A tree with less work than this is done in one part, and has one segment if that is large enough.
const CUT_WORK_MIN: u64 = 1 << 17;

/// A tree that has to be settled.
struct Unsettled {
    tree: usize,
    layout: Arc<Layout>,
    deltas: Vec<Arc<Delta>>,
    /// Merged with the deltas.
    rewritten: Vec<Run>,
    /// Taken over as they are.
    kept: Vec<Run>,
}

/// What one thread merges at a time: some keys of one tree.
struct Part<'a> {
    of: &'a Unsettled,
    range: KeyRange,
    work: u64,
}

/// Settles every tree together with what is sealed. Nobody else changes runs meanwhile.
pub(super) fn settle(shared: &Shared) -> Result<()> {
    let published = shared.visible.load(Ordering::Acquire);
    let version = shared.version.load_full();
    let mut trees = Vec::new();
    for tree in 0..version.trees.len() {
        trees.extend(Unsettled::of(&version, tree)?);
    }
    if trees.is_empty() && version.sealed.is_empty() {
        return Ok(());
    }
    let threads = shared.options.settle_threads;
    let parts = cut(&trees, threads);
    let written = all_or_none(shared, side_by_side(threads, &parts, |part| part.write(shared, published)))?;
    let joined = trees.iter().map(|tree| Ok((tree.tree, tree.join(&written)?))).collect::<Result<Vec<_>>>()?;
    let merges = written.iter().filter(|(_, written)| written.run.is_some()).count();
    install(shared, |manifest, edited| {
        forget_sealed(manifest, edited, version.sealed.len());
        for (tree, WrittenRun { metas, run }) in joined {
            manifest.trees[tree].runs = metas.into_iter().collect();
            edit_runs(edited, tree, |runs| *runs = run.into_iter().collect());
        }
    })?;
    shared.counters.flushes.fetch_add(version.sealed.len() as u64, Ordering::Relaxed);
    shared.counters.merges.fetch_add(merges as u64, Ordering::Relaxed);
    Ok(())
}

/// What there is to do, the largest part first. A tree that is more than one thread's share of it is cut.
fn cut(trees: &[Unsettled], threads: usize) -> Vec<Part<'_>> {
    let total: u64 = trees.iter().map(Unsettled::work).sum();
    let count = |work: u64| if work < CUT_WORK_MIN { 1 } else { (work * threads as u64).div_ceil(total) };
    let mut parts: Vec<_> = trees.iter().flat_map(|tree| tree.parts(count(tree.work()))).collect();
    parts.sort_by_key(|part| Reverse(part.work));
    parts
}

impl Unsettled {
    /// `None` if the tree is settled.
    fn of(version: &Version, tree: usize) -> Result<Option<Self>> {
        let deltas: Vec<_> = version.sealed_deltas(TreeId(tree as u32)).cloned().collect();
        let runs = &version.trees[tree];
        if deltas.is_empty() && runs.settled_entries().is_some() {
            return Ok(None);
        }
        let spans = deltas.iter().map(delta_span).collect::<Result<Vec<_>>>()?;
        let shapes: Vec<RunShape> = runs.runs().iter().filter_map(shape).collect();
        let rewritten = compaction::unsettled(KeySpan::around(spans.into_iter().flatten()).as_ref(), &shapes);
        let (rewritten, kept) = runs.runs().split_at(rewritten);
        let (rewritten, kept) = (rewritten.to_vec(), kept.to_vec());
        Ok(Some(Self { tree, layout: Arc::clone(&runs.layout), deltas, rewritten, kept }))
    }

    /// About how long it takes: every version is merged, and every column of it packed.
    fn work(&self) -> u64 {
        let deltas = self.deltas.iter().map(|delta| delta.len() as u64);
        let runs = self.rewritten.iter().filter_map(shape).map(|run| run.entries);
        let columns = self.layout.key.len() + self.layout.value.len();
        deltas.chain(runs).sum::<u64>() * (2 + columns as u64)
    }

    /// The tree in about `count` parts of like size, going by its largest run.
    fn parts(&self, count: u64) -> Vec<Part<'_>> {
        let largest = self.rewritten.iter().max_by_key(|run| run.blocks());
        let ends = (1..count).filter_map(|part| largest?.key_at(part, count));
        let ends: Vec<Bound<&[u8]>> = ends.map(Bound::Included).chain([Bound::Unbounded]).collect();
        let work = self.work() / ends.len() as u64;
        let mut start = Bound::Unbounded;
        let part = |end: Bound<_>| {
            let range = KeyRange::of((start, end));
            start = if let Bound::Included(end) = end { Bound::Excluded(end) } else { end };
            Part { of: self, range, work }
        };
        ends.into_iter().map(part).collect()
    }

    /// One run of what was written for this tree and what is kept of it.
    fn join(&self, written: &[(usize, WrittenRun)]) -> Result<WrittenRun> {
        let written = written.iter().filter(|(tree, _)| *tree == self.tree).filter_map(|(_, part)| part.run.as_ref());
        let runs = written.chain(&self.kept);
        let mut segments: Vec<Arc<Segment>> = runs.flat_map(|run| run.segments().iter().cloned()).collect();
        if segments.is_empty() {
            return Ok(WrittenRun { metas: None, run: None });
        }
        segments.sort_by(|a, b| a.meta().smallest.cmp(&b.meta().smallest));
        let metas: Vec<SegmentMeta> = segments.iter().map(|segment| segment.meta().clone()).collect();
        Ok(WrittenRun { metas: Some(metas), run: Some(Run::new(segments)?) })
    }
}

impl Part<'_> {
    /// Merges it. Answers which tree it is of, too.
    fn write(&self, shared: &Shared, published: u64) -> Result<(usize, WrittenRun)> {
        let Unsettled { tree, layout, deltas, rewritten, .. } = self.of;
        let mut merge = Merge::new(deltas.iter(), rewritten.iter(), Reading::Once, Direction::Forward);
        // Nothing that is kept has a version of a key that is merged.
        let retention = Retention::new(published, true);
        let written = write_run(shared, layout, &mut merge, &self.range, retention, &|| false)?;
        Ok((*tree, written.expect("it is not given up")))
    }
}

/// Does `task` for all of `work`, in its order, on up to `threads` threads. After a failure nothing more is begun.
fn side_by_side<W: Sync, R: Send>(threads: usize, work: &[W], task: impl Fn(&W) -> Result<R> + Sync) -> Vec<Result<R>> {
    let next = AtomicUsize::new(0);
    let do_some = || {
        let mut done = Vec::new();
        while let Some(work) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(task(work).inspect_err(|_| next.store(usize::MAX / 2, Ordering::Relaxed)));
        }
        done
    };
    thread::scope(|scope| {
        let others = 1..threads.min(work.len());
        // A thread that cannot be had is done without.
        let others: Vec<_> = others.filter_map(|_| thread::Builder::new().spawn_scoped(scope, do_some).ok()).collect();
        let mut done = do_some();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    })
}

/// The first failure, if there is one; then nothing stays behind of what was written besides.
fn all_or_none(shared: &Shared, written: Vec<Result<(usize, WrittenRun)>>) -> Result<Vec<(usize, WrittenRun)>> {
    let (done, failed): (Vec<_>, Vec<_>) = written.into_iter().partition(Result::is_ok);
    let done: Vec<_> = done.into_iter().flatten().collect();
    let Some(failure) = failed.into_iter().find_map(Result::err) else { return Ok(done) };
    discard(&*shared.disk, done.iter().flat_map(|(_, written)| written.numbers()));
    Err(failure)
}

#[cfg(all(test, feature = "cli"))]
mod tests;
