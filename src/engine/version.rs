//! The state all reads go to: one immutable value covers every tree and is swapped whole, so that loading it once is
//! a view across all trees.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::batch::{Operation, TreeId};
use super::delta::{Delta, Lookup};
use super::error::{Error, Result};
use super::layout::Layout;
use super::run::Run;
use super::segment::{BlockCache, Charge, Segment};
use super::stored::Stored;
use super::sync::{Mutex, OnceLock};

/// Where every tree's versions are.
#[derive(Clone)]
pub(crate) struct Version {
    /// Takes the commits.
    pub(crate) active: Arc<Generation>,
    /// Full, waiting to be flushed; newest first.
    pub(crate) sealed: Vec<Arc<Generation>>,
    /// By tree.
    pub(crate) trees: Vec<Arc<TreeRuns>>,
}

/// The deltas of all trees between two log boundaries: sealed together, flushed together.
pub(crate) struct Generation {
    /// Logs with a smaller number hold nothing of it.
    pub(crate) log_number: u64,
    /// By tree. A generation sealed before a tree was made has none for it.
    pub(crate) deltas: Vec<Arc<Delta>>,
    memory: Arc<Charge>,
    end: Arc<OnceLock<GenerationEnd>>,
}

/// The last commits of a sealed generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GenerationEnd {
    /// Sequence number of the last commit.
    pub(crate) sequence: u64,
    /// Sequence number of the last commit that went to a log.
    pub(crate) logged: u64,
}

/// The sorted runs of one tree, newest first, and how new ones are laid out.
#[derive(Clone)]
pub(crate) struct TreeRuns {
    pub(crate) layout: Arc<Layout>,
    runs: Vec<Run>,
    settled_entries: Option<u64>,
}

/// Versions that another one took the place of, as long as somebody holds them. Taking a snapshot does not touch this.
#[derive(Default)]
pub(crate) struct Replaced {
    /// Oldest first, each with the moment it was replaced at. Nothing slow is done under the lock.
    versions: Mutex<Vec<(Instant, Weak<Version>)>>,
}

impl Replaced {
    pub(crate) fn add(&self, version: &Arc<Version>) {
        let mut versions = self.versions.lock();
        versions.retain(|(_, version)| version.strong_count() > 0);
        versions.push((Instant::now(), Arc::downgrade(version)));
    }

    /// How long ago the oldest that is still held was replaced.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let versions = self.versions.lock();
        let held = versions.iter().find(|(_, version)| version.strong_count() > 0);
        held.map(|(replaced, _)| replaced.elapsed())
    }
}

impl TreeRuns {
    pub(crate) fn new(layout: Arc<Layout>, runs: Vec<Run>) -> Self {
        let metas = || runs.iter().flat_map(Run::segments).map(|segment| segment.meta());
        let is_settled = runs.len() <= 1 && metas().all(|meta| meta.tombstones == 0 && meta.sequence_max == 0);
        let settled_entries = is_settled.then(|| metas().map(|meta| meta.entries).sum());
        Self { layout, runs, settled_entries }
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The same tree with other runs.
    pub(crate) fn edited(&self, edit: impl FnOnce(&mut Vec<Run>)) -> Self {
        let mut runs = self.runs.clone();
        edit(&mut runs);
        Self::new(Arc::clone(&self.layout), runs)
    }

    /// Number of entries, if there is at most one run and it holds nothing but live entries that every reader sees.
    pub(crate) fn settled_entries(&self) -> Option<u64> {
        self.settled_entries
    }
}

impl Generation {
    /// What it will hold counts against the budget of `cache`.
    pub(crate) fn new(log_number: u64, trees: usize, cache: &Arc<BlockCache>) -> Self {
        let deltas = (0..trees).map(|_| Arc::new(Delta::new())).collect();
        Self { log_number, deltas, memory: Arc::new(Charge::new(cache)), end: Arc::default() }
    }

    /// The same generation with room for a new tree; who still holds the narrower one learns of its end too. Called
    /// under the writer lock.
    pub(crate) fn with_one_more_tree(&self) -> Self {
        let deltas = self.deltas.iter().cloned().chain([Arc::new(Delta::new())]).collect();
        Self { log_number: self.log_number, deltas, memory: Arc::clone(&self.memory), end: Arc::clone(&self.end) }
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.deltas.iter().all(|delta| delta.is_empty())
    }

    /// Called under the writer lock, after the trees of the operations were checked.
    pub(crate) fn apply<'a>(&self, sequence: u64, operations: impl Iterator<Item = Operation<'a>>) {
        let mut grown = 0;
        for Operation { tree, key, value } in operations {
            let delta = &self.deltas[tree.0 as usize];
            let before = delta.byte_size();
            delta.insert(key, sequence, value);
            grown += delta.byte_size() - before;
        }
        self.memory.grow(grown);
    }

    /// Says that nothing more will be applied.
    pub(crate) fn seal(&self, end: GenerationEnd) {
        self.end.set(end).expect("a generation is sealed once");
    }

    /// Sequence number of the last commit, if nothing more will be applied.
    pub(crate) fn sealed_at(&self) -> Option<u64> {
        self.end.get().map(|end| end.sequence)
    }

    /// Where a sealed generation ends.
    pub(crate) fn end(&self) -> GenerationEnd {
        *self.end.get().expect("only sealed generations are flushed")
    }
}

impl Version {
    pub(crate) fn tree(&self, tree: TreeId) -> Result<&Arc<TreeRuns>> {
        self.trees.get(tree.0 as usize).ok_or(Error::UnknownTree { id: tree.0 })
    }

    /// The segments of all trees.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.trees.iter().flat_map(|tree| tree.runs()).flat_map(Run::segments)
    }

    /// The deltas of a tree, newest first.
    pub(crate) fn deltas(&self, tree: TreeId) -> impl Iterator<Item = &Arc<Delta>> {
        std::iter::once(&self.active)
            .chain(&self.sealed)
            .filter_map(move |generation| generation.deltas.get(tree.0 as usize))
            .filter(|delta| !delta.is_empty())
    }

    /// Those of its deltas that nothing is added to any more, newest first.
    pub(crate) fn sealed_deltas(&self, tree: TreeId) -> impl Iterator<Item = &Arc<Delta>> {
        let deltas = self.sealed.iter().filter_map(move |generation| generation.deltas.get(tree.0 as usize));
        deltas.filter(|delta| !delta.is_empty())
    }

    /// The one run of a tree that has no delta, and whose entries are all live and seen by everybody.
    pub(crate) fn settled_run(&self, tree: TreeId) -> Result<Option<&Run>> {
        let runs = self.tree(tree)?;
        let is_settled = runs.settled_entries.is_some() && self.deltas(tree).next().is_none();
        Ok(runs.runs.first().filter(|_| is_settled))
    }

    /// Hands the value of the newest version of `key` up to `sequence` to `read`, in the form in
    /// which it is there. `copied` holds what has to be copied out of a delta, so that no lock is held while it runs.
    pub(crate) fn get<R>(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: u64,
        copied: &mut Vec<u8>,
        read: impl FnOnce(Stored<'_>) -> R,
    ) -> Result<Option<R>> {
        let runs = &self.tree(tree)?.runs;
        for delta in self.deltas(tree) {
            copied.clear();
            match delta.get(key, sequence, copied) {
                Lookup::Absent => {}
                Lookup::Deleted => return Ok(None),
                Lookup::Found => return Ok(Some(read(Stored::Bytes(copied)))),
            }
        }
        let mut read = Some(read);
        for run in runs {
            let found = run.get(key, sequence, |value| {
                let read = read.take().expect("a run calls back once, and the loop ends there");
                value.map(read)
            })?;
            if let Some(value) = found {
                return Ok(value);
            }
        }
        Ok(None)
    }
}
