//! The background thread: flushes sealed deltas, merges runs, one task at a time.
//!
//! A settle comes first, and what is under way is given up for it: it is the flush and merge of all. Then flushes do, so
//! that commits do not wait; unless a tree has so many runs that reads suffer, then merges do.
//!
//! A task that fails or panics stops background work; writes then fail with the cause, reads go on. A task that failed has
//! left everything as it was, or done all but remove files, so a resume lets the thread go on: it looks anew for what there
//! is to do, and once it finds nothing more, what had failed is done, and writes are taken again. Until then they are not,
//! so that this comes to an end.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::batch::TreeId;
use super::compaction::{self, Choice, KeySpan, Retention, RunShape};
use super::cursor::Cursor;
use super::database::Shared;
use super::delta::{Delta, DeltaCursor};
use super::error::{Error, Result};
use super::events;
use super::health::Health;
use super::layout::Layout;
use super::manifest::Manifest;
use super::range::{Direction, KeyRange};
use super::recovery::open_run;
use super::run::Run;
use super::run_writer::{RunWriter, discard};
use super::scan::Merge;
use super::segment::{Reading, SegmentMeta};
use super::settle::settle;
use super::sync::thread::{self, JoinHandle};
use super::sync::{Condvar, Mutex, Ordering};
use super::version::{Generation, TreeRuns, Version};
use super::wal;

/// Runs of one tree at which merges go before flushes, as a multiple of `runs_max`.
const RUNS_URGENT: usize = 4;

/// How others talk to the background thread.
#[derive(Default)]
pub(crate) struct Worker {
    state: Mutex<State>,
    /// Signalled when there may be something to do.
    wanted: Condvar,
    /// Signalled when something was done, or failed.
    progress: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    /// Set by `wake`, taken by the thread: no call is lost between looking for work and waiting for it.
    woken: bool,
    settle_requested: u64,
    settle_done: u64,
    /// Set by a failure, taken back by a resume: nothing is begun meanwhile.
    halted: bool,
}

impl Worker {
    pub(crate) fn wake(&self) {
        self.state.lock().woken = true;
        self.wanted.notify_one();
    }

    /// Asks for one full merge of every tree, with all that is sealed by now; the ticket tells when it is done.
    pub(crate) fn request_settle(&self) -> u64 {
        let mut state = self.state.lock();
        state.settle_requested += 1;
        state.woken = true;
        self.wanted.notify_one();
        state.settle_requested
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.wanted.notify_one();
        self.progress.notify_all();
    }

    /// Waits until `done` says so, or until the database can no longer get there.
    pub(crate) fn wait_until(&self, health: &Health, done: impl Fn(&Progress<'_>) -> bool) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if done(&Progress(&state)) {
                return Ok(());
            }
            health.check_writable()?;
            self.progress.wait(&mut state);
        }
    }

    /// What `look` says of this moment.
    pub(crate) fn sees(&self, look: impl Fn(&Progress<'_>) -> bool) -> bool {
        look(&Progress(&self.state.lock()))
    }

    /// Lets the thread go on after a failure, and waits until it has done all there is to do, or fails again.
    pub(crate) fn retry(&self, health: &Health) -> Result<()> {
        let mut state = self.state.lock();
        state.halted = false;
        self.wanted.notify_one();
        while !state.halted && !state.stop && health.can_resume()? {
            self.progress.wait(&mut state);
        }
        if state.stop { Err(Error::Closed) } else { health.check_writable() }
    }

    /// Begins nothing more, and tells `health` why. Both at once: a resume that came in between would take a failure that
    /// it could mend for one that it met.
    fn halt(&self, fail: impl FnOnce()) {
        let mut state = self.state.lock();
        state.halted = true;
        fail();
        drop(state);
        self.progress.notify_all();
    }

    /// Whether somebody waits for a settle, which makes every flush and merge needless.
    pub(super) fn is_settle_wanted(&self) -> bool {
        Progress(&self.state.lock()).is_settle_wanted()
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().stop
    }

    fn report_progress(&self) {
        // Taking the lock orders this after the check of a waiter that found nothing yet.
        drop(self.state.lock());
        self.progress.notify_all();
    }
}

/// What a waiter may look at.
pub(crate) struct Progress<'a>(&'a State);

impl Progress<'_> {
    /// Whether the settle behind `ticket` is done.
    pub(crate) fn settled(&self, ticket: u64) -> bool {
        self.0.settle_done >= ticket
    }

    /// Whether somebody waits for a settle.
    pub(crate) fn is_settle_wanted(&self) -> bool {
        self.0.settle_requested > self.0.settle_done
    }
}

/// Starts the background thread.
pub(crate) fn spawn(shared: &Arc<Shared>) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let path = shared.disk.path().to_path_buf();
    thread::Builder::new()
        .name("profilestore".to_owned())
        .spawn(move || run(&shared))
        .map_err(|error| Error::io("start the background thread of", &path, error))
}

fn run(shared: &Shared) {
    loop {
        match catch_unwind(AssertUnwindSafe(|| step(shared))) {
            Ok(Ok(true)) => shared.worker.report_progress(),
            Ok(Ok(false)) => return,
            Ok(Err(error)) => shared.worker.halt(|| shared.health.background_failed(&error)),
            Err(panic) => shared.worker.halt(|| shared.health.background_panicked(panic_text(&*panic))),
        }
    }
}

/// Does what there is to do next; `false` if nothing will be.
fn step(shared: &Shared) -> Result<bool> {
    let Some(task) = next_task(shared) else { return Ok(false) };
    perform(shared, task)?;
    shared.files.check_removals().map(|()| true)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a background task panicked: {}", text.unwrap_or("no message"))
}

enum Task {
    Flush(Arc<Generation>),
    Compact(TreeId, Choice),
    Settle(u64),
}

/// The next thing to do; waits for it, and ends with `None`.
fn next_task(shared: &Shared) -> Option<Task> {
    loop {
        let settle = {
            let mut state = shared.worker.state.lock();
            while state.halted && !state.stop {
                shared.worker.wanted.wait(&mut state);
            }
            if state.stop {
                return None;
            }
            state.woken = false;
            (state.settle_requested > state.settle_done).then_some(state.settle_requested)
        };
        let version = shared.version.load();
        let task = settle
            .map(Task::Settle)
            .or_else(|| compaction_task(shared, &version, runs_urgent(shared)))
            .or_else(|| version.sealed.last().cloned().map(Task::Flush))
            .or_else(|| compaction_task(shared, &version, 0));
        if task.is_some() {
            return task;
        }
        // Who waits for something to do holds no state for it.
        drop(version);
        if shared.health.background_recovered() {
            shared.worker.report_progress();
        }
        let mut state = shared.worker.state.lock();
        if !state.woken && !state.stop {
            shared.worker.wanted.wait(&mut state);
        }
    }
}

fn runs_urgent(shared: &Shared) -> usize {
    shared.options.runs_max * RUNS_URGENT
}

/// Whether a tree has so many runs that merges go before flushes.
pub(super) fn is_merge_urgent(shared: &Shared, version: &Version) -> bool {
    compaction_task(shared, version, runs_urgent(shared)).is_some()
}

/// A merge or join for a tree with more than `runs_over` runs.
fn compaction_task(shared: &Shared, version: &Version, runs_over: usize) -> Option<Task> {
    version.trees.iter().enumerate().filter(|(_, tree)| tree.runs().len() > runs_over).find_map(|(index, tree)| {
        let shapes: Vec<_> = tree.runs().iter().filter_map(shape).collect();
        match compaction::pick(&shapes, shared.options.runs_max) {
            Choice::Nothing => None,
            choice => Some(Task::Compact(TreeId(index as u32), choice)),
        }
    })
}

/// Installed runs are never empty, so none is left out.
pub(super) fn shape(run: &Run) -> Option<RunShape> {
    let metas = || run.segments().iter().map(|segment| segment.meta());
    Some(RunShape {
        entries: metas().map(|meta| meta.entries).sum(),
        tombstones: metas().map(|meta| meta.tombstones).sum(),
        versioned: metas().any(|meta| meta.sequence_max > 0),
        span: run.span()?,
    })
}

/// Whether none of `older` can hold a version of a key in `span`. So it is for the first run of a tree, and for every
/// run of a tree that fills in key order.
fn is_bottom(older: &[Run], span: Option<&KeySpan>) -> bool {
    older.iter().filter_map(Run::span).all(|older| span.is_some_and(|span| !span.overlaps(&older)))
}

impl Task {
    fn name(&self) -> &'static str {
        match self {
            Self::Flush(_) => "flush",
            Self::Compact(_, Choice::Join(_)) => "join",
            Self::Compact(..) => "merge",
            Self::Settle(_) => "settle",
        }
    }

    /// Name of the tree it is for, if it is for one.
    fn tree(&self, shared: &Shared) -> Option<String> {
        let Self::Compact(tree, _) = self else { return None };
        Some(shared.manifest.lock().trees[tree.0 as usize].name.clone())
    }
}

/// Does it, and tells.
fn perform(shared: &Shared, task: Task) -> Result<()> {
    let (work, tree) = (task.name(), task.tree(shared));
    let written = || shared.counters.segment_bytes_written.load(Ordering::Relaxed);
    let (before, started) = (written(), Instant::now());
    perform_untold(shared, task)?;
    events::worked(work, tree.as_deref(), written() - before, started.elapsed());
    Ok(())
}

fn perform_untold(shared: &Shared, task: Task) -> Result<()> {
    match task {
        Task::Flush(generation) => flush(shared, &generation),
        Task::Compact(tree, Choice::Merge(range)) => merge(shared, tree, range),
        Task::Compact(tree, Choice::Join(range)) => join(shared, tree, range),
        Task::Compact(_, Choice::Nothing) => Ok(()),
        Task::Settle(ticket) => {
            settle(shared)?;
            shared.worker.state.lock().settle_done = ticket;
            Ok(())
        }
    }
}

/// Writes the oldest sealed generation as one new run for each tree it changed, all entered at once.
fn flush(shared: &Shared, generation: &Generation) -> Result<()> {
    let published = shared.visible.load(Ordering::Acquire);
    let version = shared.version.load_full();
    let mut written: Vec<(usize, WrittenRun)> = Vec::new();
    for (index, delta) in generation.deltas.iter().enumerate().filter(|(_, delta)| !delta.is_empty()) {
        match flush_tree(shared, &version.trees[index], delta, published) {
            Ok(Some(run)) => written.push((index, run)),
            // What was written of other trees is of no use without this one.
            not_written => {
                discard(&*shared.disk, written.iter().flat_map(|(_, run)| run.numbers()));
                return not_written.map(drop);
            }
        }
    }
    install(shared, |manifest, version| {
        forget_sealed(manifest, version, 1);
        for (index, WrittenRun { metas, run }) in written {
            manifest.trees[index].runs.splice(0..0, metas);
            edit_runs(version, index, |runs| drop(runs.splice(0..0, run)));
        }
    })?;
    shared.counters.flushes.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Writes what was changed in one tree; `None` if it was given up.
fn flush_tree(shared: &Shared, tree: &TreeRuns, delta: &Arc<Delta>, published: u64) -> Result<Option<WrittenRun>> {
    let bottom = is_bottom(tree.runs(), delta_span(delta)?.as_ref());
    let mut merge = Merge::new([delta].into_iter(), [].into_iter(), Reading::Once, Direction::Forward);
    let gives_up = || shared.worker.is_settle_wanted();
    write_run(shared, &tree.layout, &mut merge, &KeyRange::all(), Retention::new(published, bottom), &gives_up)
}

/// Lets go of the oldest `count` sealed generations, whose changes the edit enters as segments, and of their logs.
pub(super) fn forget_sealed(manifest: &mut Manifest, version: &mut Version, count: usize) {
    let flushed = version.sealed.split_off(version.sealed.len() - count);
    let Some(end) = flushed.first().map(|newest| newest.end()) else { return };
    manifest.log_floor = version.sealed.last().unwrap_or(&version.active).log_number;
    manifest.flushed = end.sequence;
    manifest.logged = end.logged;
}

/// From the first key of a delta to the last.
pub(super) fn delta_span(delta: &Arc<Delta>) -> Result<Option<KeySpan>> {
    let mut cursor = DeltaCursor::new(Arc::clone(delta));
    cursor.first()?;
    let smallest = cursor.entry().map(|entry| entry.key.to_vec());
    cursor.last()?;
    let largest = cursor.entry().map(|entry| entry.key.to_vec());
    Ok(smallest.zip(largest).map(|(smallest, largest)| KeySpan { smallest, largest }))
}

/// Replaces the runs of `range` by one.
fn merge(shared: &Shared, tree: TreeId, range: std::ops::Range<usize>) -> Result<()> {
    let published = shared.visible.load(Ordering::Acquire);
    let version = shared.version.load_full();
    let index = tree.0 as usize;
    let (newer, older) = version.trees[index].runs().split_at(range.end);
    let inputs = &newer[range.start..];
    let bottom = is_bottom(older, KeySpan::around(inputs.iter().filter_map(Run::span)).as_ref());
    let mut merge = Merge::new([].into_iter(), inputs.iter(), Reading::Once, Direction::Forward);
    let retention = Retention::new(published, bottom);
    let gives_up = || shared.worker.is_settle_wanted() || shared.worker.is_stopped();
    let layout = &version.trees[index].layout;
    let written = write_run(shared, layout, &mut merge, &KeyRange::all(), retention, &gives_up)?;
    let Some(WrittenRun { metas, run }) = written else { return Ok(()) };
    install(shared, |manifest, version| {
        manifest.trees[index].runs.splice(range.clone(), metas);
        edit_runs(version, index, |runs| drop(runs.splice(range, run)));
    })?;
    shared.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Makes one run of runs whose keys do not overlap; the segments stay as they are.
fn join(shared: &Shared, tree: TreeId, range: std::ops::Range<usize>) -> Result<()> {
    let version = shared.version.load_full();
    let index = tree.0 as usize;
    let inputs = &version.trees[index].runs()[range.clone()];
    let mut segments: Vec<_> = inputs.iter().flat_map(|run| run.segments().iter().cloned()).collect();
    segments.sort_by(|a, b| a.meta().smallest.cmp(&b.meta().smallest));
    let metas = segments.iter().map(|segment| segment.meta().clone()).collect();
    let run = Run::new(segments)?;
    install(shared, |manifest, version| {
        manifest.trees[index].runs.splice(range.clone(), [metas]);
        edit_runs(version, index, |runs| drop(runs.splice(range, [run])));
    })
}

/// A run as the manifest and as readers know it; neither if nothing was left to write.
pub(super) struct WrittenRun {
    pub(super) metas: Option<Vec<SegmentMeta>>,
    pub(super) run: Option<Run>,
}

impl WrittenRun {
    /// Of its segments.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.metas.iter().flatten().map(|meta| meta.number)
    }
}

/// Writes a run and opens it; `None` if it was given up.
pub(super) fn write_run(
    shared: &Shared,
    layout: &Arc<Layout>,
    merge: &mut Merge,
    range: &KeyRange,
    mut retention: Retention,
    gives_up: &dyn Fn() -> bool,
) -> Result<Option<WrittenRun>> {
    let writer = RunWriter {
        disk: &*shared.disk,
        database_id: shared.database_id,
        options: &shared.options,
        numbers: &shared.numbers,
    };
    let Some(metas) = writer.write(layout, merge, range, &mut retention, gives_up)? else { return Ok(None) };
    if metas.is_empty() {
        return Ok(Some(WrittenRun { metas: None, run: None }));
    }
    let bytes = metas.iter().map(|meta| meta.file_bytes).sum();
    shared.counters.segment_bytes_written.fetch_add(bytes, Ordering::Relaxed);
    let numbers: Vec<_> = metas.iter().map(|meta| meta.number).collect();
    let run = open_run(&shared.files, shared.database_id, metas.clone(), &shared.cache)
        .inspect_err(|_| discard(&*shared.disk, numbers))?;
    Ok(Some(WrittenRun { metas: Some(metas), run: Some(run) }))
}

pub(super) fn edit_runs(version: &mut Version, index: usize, edit: impl FnOnce(&mut Vec<Run>)) {
    version.trees[index] = Arc::new(version.trees[index].edited(edit));
}

/// Makes an edit durable, shows it to readers, and removes the files it made obsolete: logs at once, segments with their
/// last reader. After a failure everything is as it was, and what the edit would have entered is removed, unless it is not
/// known what the manifest on disk names.
pub(super) fn install(shared: &Shared, edit: impl FnOnce(&mut Manifest, &mut Version)) -> Result<()> {
    // The names of new segments are durable before the manifest names them.
    shared.sync_dir()?;
    let mut manifest = shared.manifest.lock();
    let mut edited = manifest.clone();
    let mut version = Version::clone(&shared.version.load());
    edit(&mut edited, &mut version);
    let (before, after) = (numbers(&manifest), numbers(&edited));
    let log_floor_before = manifest.log_floor;
    shared.store_manifest(&mut manifest, edited).inspect_err(|_| {
        if shared.health.can_resume().is_ok() {
            discard(&*shared.disk, after.difference(&before).copied());
        }
    })?;
    let replaced = shared.show(version);
    let (log_floor, logged) = (manifest.log_floor, manifest.logged);
    drop(manifest);
    shared.trail.trim(shared.visible.load(Ordering::Acquire));

    replaced.segments().filter(|segment| !after.contains(&segment.meta().number)).for_each(|old| old.make_obsolete());
    if log_floor > log_floor_before {
        for number in shared.syncing.forget_below(log_floor, logged) {
            shared.disk.remove(&wal::file_name(number))?;
        }
    }
    Ok(())
}

fn numbers(manifest: &Manifest) -> HashSet<u64> {
    manifest.segments().map(|segment| segment.number).collect()
}
