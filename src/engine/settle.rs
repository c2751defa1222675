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
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::batch::TreeId;
use super::compaction::{self, KeySpan, Retention, RunShape};
use super::database::Shared;
use super::delta::Delta;
use super::error::Result;
use super::layout::Layout;
use super::range::Direction;
use super::recovery::segment_name;
use super::run::Run;
use super::scan::Merge;
use super::segment::{Reading, Segment, SegmentMeta};
use super::version::Version;
use super::worker::{WrittenRun, delta_span, edit_runs, forget_sealed, install, shape, write_run};

/// What has to be done about one tree.
struct Unsettled {
    tree: usize,
    layout: Arc<Layout>,
    deltas: Vec<Arc<Delta>>,
    /// Merged with the deltas.
    rewritten: Vec<Run>,
    /// Taken over as they are.
    kept: Vec<Run>,
}

/// What has become of it: a run, unless nothing is left.
struct Settled {
    tree: usize,
    run: Option<WrittenRun>,
    /// Segments of it that were not there before.
    written: Vec<u64>,
}

/// Settles every tree together with what is sealed. Some trees are merged side by side, the largest first; nobody else
/// changes their runs meanwhile.
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
    trees.sort_by_key(|tree| Reverse(tree.entries()));
    let threads = shared.options.settle_threads;
    let settled = side_by_side(threads, &trees, |tree| tree.settle(shared, published));
    let settled = all_or_none(shared, settled)?;
    let merges = settled.iter().filter(|tree| !tree.written.is_empty()).count();
    install(shared, |manifest, edited| {
        forget_sealed(manifest, edited, version.sealed.len());
        for Settled { tree, run, .. } in settled {
            let (metas, run) = run.map_or((None, None), |(metas, run)| (Some(metas), Some(run)));
            manifest.trees[tree].runs = metas.into_iter().collect();
            edit_runs(edited, tree, |runs| *runs = run.into_iter().collect());
        }
    })?;
    shared.counters.flushes.fetch_add(version.sealed.len() as u64, Ordering::Relaxed);
    shared.counters.merges.fetch_add(merges as u64, Ordering::Relaxed);
    Ok(())
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

    /// Versions to merge.
    fn entries(&self) -> u64 {
        let deltas = self.deltas.iter().map(|delta| delta.len() as u64);
        let runs = self.rewritten.iter().filter_map(shape).map(|run| run.entries);
        deltas.chain(runs).sum()
    }

    /// Merges what has to be merged, and joins it with what is kept.
    fn settle(&self, shared: &Shared, published: u64) -> Result<Settled> {
        let mut merge = Merge::new(self.deltas.iter(), self.rewritten.iter(), Reading::Once, Direction::Forward);
        // Nothing that is kept has a version of a key that is merged.
        let mut retention = Retention::new(published, true);
        let merged = write_run(shared, &self.layout, &mut merge, &mut retention)?;
        let (metas, merged) = merged.unzip();
        let written = metas.iter().flatten().map(|meta| meta.number).collect();
        let runs = merged.iter().chain(&self.kept);
        let mut segments: Vec<Arc<Segment>> = runs.flat_map(|run| run.segments().iter().cloned()).collect();
        if segments.is_empty() {
            return Ok(Settled { tree: self.tree, run: None, written });
        }
        segments.sort_by(|a, b| a.meta().smallest.cmp(&b.meta().smallest));
        let metas: Vec<SegmentMeta> = segments.iter().map(|segment| segment.meta().clone()).collect();
        Ok(Settled { tree: self.tree, run: Some((metas, Run::new(segments)?)), written })
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

/// The first failure, if there is one; then what was written besides goes, if the disk still lets go of files: it may be
/// what filled it.
fn all_or_none(shared: &Shared, settled: Vec<Result<Settled>>) -> Result<Vec<Settled>> {
    let (done, failed): (Vec<_>, Vec<_>) = settled.into_iter().partition(Result::is_ok);
    let done: Vec<_> = done.into_iter().flatten().collect();
    let Some(failure) = failed.into_iter().find_map(Result::err) else { return Ok(done) };
    for number in done.into_iter().flat_map(|tree| tree.written) {
        // The failure to report is the first one; what cannot be removed now is removed by the next open.
        let _ = shared.disk.remove(&segment_name(number));
    }
    Err(failure)
}
