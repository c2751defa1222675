//! Runs a list of steps under one configuration, and compares every answer with sorted maps.
//!
//! What a crash takes depends on the configuration. It must be something that a crash may take; then it is written again,
//! as an application would, so that every configuration goes on with the same content.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::configurations::{Configuration, configurations};
use super::look::{Answers, Wrong, compare, dump, expected, look, take};
use super::state::{Loss, Model, Trees, difference};
use super::step::{Action, Change, End, Key, Reading, Refusal, Step, Upkeep};
use super::{SNAPSHOTS_MAX, TREES_MAX};
use crate::bench::torture::history::{close, open, verify};
use crate::engine::disk::sim::{Fault, Random, SimDisk, State};
use crate::engine::{
    Batch, Database, Direction, Durability, Error, Field, KEY_BYTES_MAX, KeyRange, Layout, Options, Snapshot, Stored,
    TreeId, salvage_on,
};

mod during;
mod fail;
mod transact;

/// The folded answers of each step.
pub(super) type History = Vec<u64>;

/// Runs steps on a new database under configuration number `base`.
pub(super) fn run(base: usize, steps: &[Step]) -> Result<History, String> {
    let mut machine = Machine { base, offset: 0, disk: SimDisk::new(), model: Model::new(), history: History::new() };
    machine.run(steps).map_err(|text| {
        let at = machine.history.len();
        match steps.get(at) {
            Some(step) => format!("step {at}, {:?}: {text}", step.kind),
            None => format!("at the end: {text}"),
        }
    })?;
    Ok(machine.history)
}

struct Machine {
    base: usize,
    /// How far the configuration in use is behind the one that the list is run under.
    offset: usize,
    disk: SimDisk,
    model: Model,
    /// Has as many answers as steps were taken.
    history: History,
}

type Snapshots<'a> = Vec<(Snapshot<'a>, Trees)>;

/// How a database ends, and what is to be done when it is open again.
struct Ending {
    end: End,
    offset: Option<usize>,
    /// What the crash leaves, if that was a while ago.
    left: Option<State>,
    /// Strikes the next opening.
    fault: Option<Fault>,
    /// To be committed then. The first of it was written before, with an outcome that is not known.
    rest: Vec<Vec<Change>>,
}

impl Ending {
    fn by(end: End) -> Self {
        Self { end, offset: None, left: None, fault: None, rest: Vec::new() }
    }
}

impl Machine {
    fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        let mut database = open(&self.disk, &self.configuration().options)?;
        database.tree("tree 0").map_err(text)?;
        while let Some(ending) = self.session(&database, steps)? {
            let loss = self.end(database, &ending)?;
            database = self.begin(&ending, loss)?;
            if let Some(step) = steps.get(self.history.len()) {
                compare(&database, &self.model.trees).map_err(|text| format!("after {:?}: {text}", step.kind))?;
                self.history.push(Answers::default().finish());
            }
        }
        compare(&database, &self.model.trees)?;
        close(&self.disk, &database)
    }

    /// With every class and option that is in use at the moment.
    fn configuration(&self) -> Configuration {
        let all = configurations();
        let mut configuration = all[(self.base + self.offset) % all.len()].clone();
        // These change what a list means to the model, so they stay.
        configuration.class = all[self.base].class;
        configuration
    }

    /// Takes steps until one ends the database, which it answers, or to the end of the list.
    fn session(&mut self, database: &Database, steps: &[Step]) -> Result<Option<Ending>, String> {
        let mut snapshots = Snapshots::new();
        while let Some(step) = steps.get(self.history.len()) {
            let mut answers = Answers::default();
            if let Some(ending) = self.take(database, &mut snapshots, &step.action, &mut answers)? {
                return Ok(Some(ending));
            }
            self.history.push(answers.finish());
        }
        Ok(None)
    }

    fn take<'a>(
        &mut self,
        database: &'a Database,
        snapshots: &mut Snapshots<'a>,
        action: &Action,
        answers: &mut Answers,
    ) -> Result<Option<Ending>, String> {
        match action {
            Action::Commit { batches, class } => {
                for changes in batches {
                    self.commit(database, changes, *class).map_err(text)?;
                }
            }
            Action::DeleteRange { tree, range } => self.delete_range(database, *tree, range, answers)?,
            Action::Modify { tree, key, tail } => self.modify(database, *tree, key, tail)?,
            Action::Transact(transacting) => self.transact(database, snapshots, transacting, answers)?,
            Action::Increment(place) => self.increment(database, place, answers)?,
            Action::Refuse(refusal) => refuse(database, *refusal)?,
            Action::Read(reading) => self.read(database, snapshots, reading, answers)?,
            Action::ScanAcross { .. } => self.scan_across(database, snapshots, action, answers)?,
            Action::Snapshot if snapshots.len() < SNAPSHOTS_MAX => {
                snapshots.push((database.snapshot(), self.model.trees.clone()));
            }
            Action::DropSnapshot(snapshot) if *snapshot < snapshots.len() => drop(snapshots.swap_remove(*snapshot)),
            Action::Snapshot | Action::DropSnapshot(_) => {}
            Action::NewTree(layout) => self.new_tree(database, layout, answers)?,
            Action::FindTree(tree) => {
                let tree = tree % self.model.trees.len();
                answers.same(&database.tree(&name(tree)).map_err(text)?.0, &(tree as u32))?;
            }
            Action::Declare { tree, layout } => {
                self.declare(database, tree % self.model.trees.len(), layout, answers)?;
            }
            Action::Upkeep(upkeep) => self.upkeep(database, snapshots, *upkeep)?,
            Action::During { .. } => self.during(database, snapshots, action, answers)?,
            Action::SecondOpen => refuse_second(&self.disk)?,
            Action::Reopen { end, offset } => {
                let offset = (*offset > 0).then_some(*offset);
                return Ok(Some(Ending { offset, ..Ending::by(*end) }));
            }
            Action::CrashDuringFlush { .. } => return self.crash_during_flush(database, action).map(Some),
            Action::FailingOpen { end, fault } => {
                return Ok(Some(Ending { fault: Some(*fault), ..Ending::by(*end) }));
            }
            Action::Fail { .. } => return self.fail(database, snapshots, action),
            Action::FailingReads { fault, reads } => self.failing_reads(database, snapshots, *fault, reads)?,
            Action::Salvage => self.salvage(database)?,
        }
        Ok(None)
    }

    fn resolve(&self, changes: &[Change]) -> Vec<Change> {
        let count = self.model.trees.len();
        changes.iter().map(|(tree, key, value)| (tree % count, key.clone(), value.clone())).collect()
    }

    /// Commits, and tells the model when it was acknowledged.
    fn commit(
        &mut self,
        database: &Database,
        changes: &[Change],
        class: Option<Durability>,
    ) -> crate::engine::Result<()> {
        self.commit_by(|batch, class| database.commit_with(batch, class), changes, class)
    }

    fn commit_by(
        &mut self,
        commit: impl FnOnce(&Batch, Durability) -> crate::engine::Result<()>,
        changes: &[Change],
        class: Option<Durability>,
    ) -> crate::engine::Result<()> {
        let configuration = self.configuration();
        let class = configuration.class.or(class).unwrap_or(configuration.options.durability);
        let changes = self.resolve(changes);
        commit(&batch(&changes), class)?;
        if !changes.is_empty() {
            self.model.commit(&changes, class);
        }
        Ok(())
    }

    fn delete_range(
        &mut self,
        database: &Database,
        tree: usize,
        range: &KeyRange,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let tree = tree % self.model.trees.len();
        let mut scan = database.scan(TreeId(tree as u32), range.clone(), Direction::Forward).map_err(text)?;
        let found = take(&mut scan, usize::MAX).map_err(text)?;
        answers.same(&found, &expected(&self.model.trees[tree], range, Direction::Forward, usize::MAX))?;
        let changes: Vec<_> = found.into_iter().map(|(key, _)| (tree, key, None)).collect();
        self.commit(database, &changes, None).map_err(text)
    }

    fn modify(&mut self, database: &Database, tree: usize, key: &Key, tail: &[u8]) -> Result<(), String> {
        let tree = tree % self.model.trees.len();
        let turn = database.exclusive();
        let append = |value: Stored<'_>| [&value.to_vec(), tail].concat();
        let value = turn.get_stored(TreeId(tree as u32), key, append).map_err(text)?;
        let value = value.unwrap_or_else(|| tail.to_vec());
        let commit = |batch: &Batch, class| turn.finish_with(batch, class);
        self.commit_by(commit, &[(tree, key.clone(), Some(value))], None).map_err(text)
    }

    fn read(
        &self,
        database: &Database,
        snapshots: &Snapshots<'_>,
        reading: &Reading,
        answers: &mut Answers,
    ) -> Result<(), String> {
        self.try_to_read(database, snapshots, reading, answers).map_err(Wrong::text)
    }

    fn try_to_read(
        &self,
        database: &Database,
        snapshots: &Snapshots<'_>,
        Reading { snapshot, tree, read }: &Reading,
        answers: &mut Answers,
    ) -> Result<(), Wrong> {
        match snapshot {
            None => look(&database.snapshot(), &self.model.trees, *tree, read, answers),
            Some(snapshot) => match snapshots.get(*snapshot) {
                Some((snapshot, trees)) => look(snapshot, trees, *tree, read, answers),
                None => Ok(()),
            },
        }
    }

    fn scan_across<'a>(
        &mut self,
        database: &'a Database,
        snapshots: &Snapshots<'a>,
        action: &Action,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let Action::ScanAcross { tree, range, direction, before, changes, upkeep } = action else { return Ok(()) };
        let tree = tree % self.model.trees.len();
        let expected = expected(&self.model.trees[tree], range, *direction, usize::MAX);
        let mut scan = database.scan(TreeId(tree as u32), range.clone(), *direction).map_err(text)?;
        let mut found = take(&mut scan, *before).map_err(text)?;
        self.commit(database, changes, None).map_err(text)?;
        if let Some(upkeep) = upkeep {
            self.upkeep(database, snapshots, *upkeep)?;
        }
        found.extend(take(&mut scan, usize::MAX).map_err(text)?);
        answers.same(&found, &expected)
    }

    fn new_tree(&mut self, database: &Database, layout: &Layout, answers: &mut Answers) -> Result<(), String> {
        if self.model.trees.len() < TREES_MAX {
            self.declare(database, self.model.trees.len(), layout, answers)?;
            self.model.trees.push(BTreeMap::new());
        }
        Ok(())
    }

    fn declare(&self, database: &Database, tree: usize, layout: &Layout, answers: &mut Answers) -> Result<(), String> {
        let layout = if self.configuration().opaque { &Layout::opaque() } else { layout };
        answers.same(&database.tree_with(&name(tree), layout).map_err(text)?.0, &(tree as u32))
    }

    fn upkeep(&mut self, database: &Database, snapshots: &Snapshots<'_>, upkeep: Upkeep) -> Result<(), String> {
        match upkeep {
            Upkeep::Flush => {
                database.flush().map_err(text)?;
                self.model.flushed(self.model.pending());
            }
            Upkeep::Settle => {
                database.settle().map_err(text)?;
                self.model.flushed(self.model.pending());
                self.check_settled(database)?;
            }
            Upkeep::Verify => verify(database)?,
            Upkeep::Stats => self.check_stats(database, snapshots)?,
            Upkeep::Resume => database.resume().map_err(text)?,
            Upkeep::Backup => self.backup(database)?,
        }
        Ok(())
    }

    /// A settled tree has one run, of what is alive.
    fn check_settled(&self, database: &Database) -> Result<(), String> {
        for (stats, entries) in database.stats().trees.iter().zip(&self.model.trees) {
            let is_settled = stats.runs <= 1 && stats.tombstones == 0 && stats.entries == entries.len() as u64;
            if !is_settled {
                return Err(format!("settled, and there are {} entries: {stats:?}", entries.len()));
            }
        }
        Ok(())
    }

    /// What the numbers say of a database at rest or not.
    fn check_stats(&self, database: &Database, snapshots: &Snapshots<'_>) -> Result<(), String> {
        let stats = database.stats();
        let names: Vec<_> = stats.trees.iter().map(|tree| tree.name.clone()).collect();
        let sums_up = stats.trees.iter().all(|tree| {
            tree.tombstones <= tree.entries && tree.runs <= tree.segments && (tree.segments == 0) == (tree.entries == 0)
        });
        let is_right = names == database.tree_names()
            && names.len() == self.model.trees.len()
            && stats.snapshots == snapshots.len() as u64
            && stats.sequence == database.snapshot().sequence()
            && stats.resident_bytes <= stats.memory_bytes
            && sums_up;
        if is_right { Ok(()) } else { Err(format!("with {} snapshots: {stats:?}", snapshots.len())) }
    }

    /// Onto another disk, where it is a database that nobody changes.
    fn backup(&mut self, database: &Database) -> Result<(), String> {
        let disk = SimDisk::new();
        database.backup_on(&disk, None, false).map_err(text)?;
        self.model.flushed(self.model.pending());
        let backup = open(&disk, &Options { read_only: true, ..Options::default() })?;
        compare(&backup, &self.model.trees).map_err(|text| format!("backed up: {text}"))?;
        verify(&backup)?;
        match backup.commit(&batch(&[(0, Key::new(), None)])) {
            Err(Error::ReadOnly) => close(&disk, &backup),
            other => Err(format!("a read-only database answers {other:?}")),
        }
    }

    /// What a killed process would leave at this moment, copied into a new database.
    fn salvage(&mut self, database: &Database) -> Result<(), String> {
        if self.model.has_unlogged() {
            database.flush().map_err(text)?;
            self.model.flushed(self.model.pending());
        }
        let left = SimDisk::from_state(self.disk.state());
        let copy = open(&SimDisk::new(), &Options::default())?;
        let report = salvage_on(&left, &copy).map_err(text)?;
        if !report.lost.is_empty() {
            return Err(format!("of a sound database {:?} is lost", report.lost));
        }
        compare(&copy, &self.model.trees).map_err(|text| format!("salvaged: {text}"))
    }

    /// Ends a database, and says what that may have taken.
    fn end(&mut self, database: Database, ending: &Ending) -> Result<Loss, String> {
        let left = ending.left.clone().unwrap_or_else(|| self.disk.state());
        let (state, loss) = match ending.end {
            End::Close => {
                close(&self.disk, &database)?;
                self.model.flushed(self.model.pending());
                (self.disk.state(), Loss::Nothing)
            }
            End::CloseAndUse => {
                close(&self.disk, &database)?;
                self.model.flushed(self.model.pending());
                self.use_closed(&database)?;
                (self.disk.state(), Loss::Nothing)
            }
            End::Kill => (left, Loss::Process),
            End::PowerLoss { loss, seed } => (left.after_power_loss(loss, &mut Random::new(seed)), Loss::Power),
        };
        drop(database);
        self.disk = SimDisk::from_state(state);
        Ok(loss)
    }

    fn use_closed(&self, database: &Database) -> Result<(), String> {
        compare(database, &self.model.trees).map_err(|text| format!("closed: {text}"))?;
        let put = batch(&[(0, Key::new(), Some(Vec::new()))]);
        for result in [database.commit(&put), database.flush(), database.settle()] {
            if !matches!(result, Err(Error::Closed)) {
                return Err(format!("a closed database answers {result:?}"));
            }
        }
        database.close().map_err(text)
    }

    /// Opens what is left, and writes again what was lost.
    fn begin(&mut self, ending: &Ending, loss: Loss) -> Result<Database, String> {
        self.offset = ending.offset.unwrap_or(self.offset);
        let options = self.configuration().options;
        if let Some(fault) = ending.fault {
            self.fail_to_open(&options, fault)?;
        }
        let database = open(&self.disk, &options)?;
        let found = dump(&database).map_err(text)?;
        let rest: Vec<_> = ending.rest.iter().map(|changes| self.resolve(changes)).collect();
        let again = self.model.lost(&found, loss, rest.first().map(Vec::as_slice))?;
        let expected = self.model.trees_with(&rest);
        self.model.start_from(found);
        for changes in again.iter().chain(&rest) {
            self.commit(&database, changes, None).map_err(text)?;
        }
        if self.model.trees != expected {
            return Err(format!("written again: {}", difference(&self.model.trees, &expected)));
        }
        Ok(database)
    }

    /// The first try fails or not; nobody has to hear of more than that.
    fn fail_to_open(&self, options: &Options, fault: Fault) -> Result<(), String> {
        self.disk.inject(fault);
        let opened = open(&self.disk, options);
        let struck = self.disk.was_struck();
        self.disk.heal();
        match opened {
            Err(text) if text.contains("panicked") || !struck => Err(text),
            _ => Ok(()),
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn name(tree: usize) -> String {
    format!("tree {tree}")
}

fn batch(changes: &[Change]) -> Batch {
    let mut batch = Batch::new();
    for (tree, key, value) in changes {
        match value {
            Some(value) => batch.put(TreeId(*tree as u32), key, value),
            None => batch.delete(TreeId(*tree as u32), key),
        }
    }
    batch
}

/// Asks for what is refused, or does nothing.
fn refuse(database: &Database, refusal: Refusal) -> Result<(), String> {
    let too_long = vec![1; KEY_BYTES_MAX + 1];
    let unsound = Layout { key: vec![Field::BigEndian(9)], value: Vec::new() };
    let (result, is_right): (_, fn(&Error) -> bool) = match refusal {
        Refusal::EmptyBatch => return database.commit(&Batch::new()).map_err(text),
        Refusal::Key => (database.commit(&batch(&[(0, too_long, None)])), |error| {
            matches!(error, Error::TooLarge { what: "key", .. })
        }),
        Refusal::Tree => {
            let changes = [(0, b"put".to_vec(), Some(Vec::new())), (TREES_MAX + 3, Key::new(), None)];
            (database.commit(&batch(&changes)), |error| matches!(error, Error::UnknownTree { .. }))
        }
        Refusal::Layout => (database.tree_with("tree 0", &unsound).map(drop), |error| {
            matches!(error, Error::InvalidOption { option: "layout", .. })
        }),
    };
    match result {
        Err(error) if is_right(&error) => Ok(()),
        other => Err(format!("{refusal:?} gave {other:?}")),
    }
}

fn refuse_second(disk: &SimDisk) -> Result<(), String> {
    match Database::open_on(Arc::new(disk.clone()), Options::default()) {
        Err(Error::AlreadyOpen { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("a second open was let in".to_owned()),
    }
}
