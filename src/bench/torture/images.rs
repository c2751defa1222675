//! A crash at every call: whatever it leaves opens, and is one of the states it may be.
//!
//! A workload is recorded once. For every call of the trace, images of what a crash there may leave are made (a killed
//! process, and a power loss of every kind) and opened. Each must be the state after some batch `n`, with `n` at
//! least the last batch whose survival was promised at that moment and at most the last that was begun, in all trees
//! at once. [`nested`] does the same to the opening itself.
//!
//! A violation names seed, call and kind of the crash. The background thread makes the order of calls differ from run to
//! run, so it also tells the calls before it.

pub(crate) mod nested;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};

use super::Session;
use super::history::{self, History, examine, open, tiny};
use crate::engine::disk::sim::{Call, PowerLoss, Random, SimDisk, State};
use crate::engine::{Batch, Database, Durability, Field, Layout, Options};

/// What a trace is made of, besides calls: the notes of the writer.
#[derive(Clone, Copy, Debug)]
enum Note {
    Begun(u64),
    /// A killed process must not lose it from here on.
    Acknowledged(u64),
    /// Nor must a power loss.
    Durable(u64),
}

/// A workload that ran, with all that is needed to judge a crash at any moment of it.
struct Recorded {
    base: State,
    trace: Vec<Call>,
    notes: Vec<Note>,
    history: History,
}

/// What was promised so far.
#[derive(Clone, Copy, Debug, Default)]
struct Promises {
    begun: u64,
    acknowledged: u64,
    durable: u64,
}

impl Promises {
    fn take(&mut self, note: Note) {
        match note {
            Note::Begun(number) => self.begun = self.begun.max(number),
            Note::Acknowledged(number) => self.acknowledged = self.acknowledged.max(number),
            Note::Durable(number) => {
                self.acknowledged = self.acknowledged.max(number);
                self.durable = self.durable.max(number);
            }
        }
    }
}

/// Writes batches to a disk, and notes in its trace what was promised when.
struct Recorder {
    disk: SimDisk,
    options: Options,
    notes: Vec<Note>,
    history: History,
    random: Random,
    trees: Vec<&'static str>,
}

impl Recorder {
    fn new(disk: SimDisk, history: History, seed: u64) -> Self {
        Self { disk, options: tiny(), notes: Vec::new(), history, random: Random::new(seed), trees: Vec::new() }
    }

    fn note(&mut self, note: Note) {
        self.disk.mark(self.notes.len() as u64);
        self.notes.push(note);
    }

    /// Opening makes all that it finds durable.
    fn open(&mut self) -> Database {
        let database = open(&self.disk, &self.options).expect("nothing fails here");
        self.note(Note::Durable(self.history.last()));
        database
    }

    fn tree(&mut self, database: &Database, name: &'static str) {
        history::tree(database, name).expect("nothing fails here");
        self.trees.push(name);
    }

    fn commit(&mut self, database: &Database, durability: Durability) {
        let batch: Batch = self.history.draw(&mut self.random, &self.trees);
        let number = self.history.last();
        self.note(Note::Begun(number));
        database.commit_with(&batch, durability).expect("nothing fails here");
        self.note(match durability {
            Durability::Sync => Note::Durable(number),
            _ => Note::Acknowledged(number),
        });
    }

    fn all_is_durable(&mut self) {
        self.note(Note::Durable(self.history.last()));
    }

    fn finish(self, base: State) -> Recorded {
        Recorded { base, trace: self.disk.trace(), notes: self.notes, history: self.history }
    }
}

/// Everything a writer can do, in a life of three processes.
fn record(classes: &[Durability], batches: usize, seed: u64) -> Recorded {
    let mut recorder = Recorder::new(SimDisk::new(), History::new(), seed);
    let mut database = recorder.open();
    recorder.tree(&database, "a");
    recorder.tree(&database, "b");
    for step in 1..=batches {
        let durability = *recorder.random.pick(classes);
        recorder.commit(&database, durability);
        if step == batches / 4 {
            recorder.tree(&database, "c");
        }
        if step == batches / 3 || step == batches * 5 / 6 {
            database.flush().expect("nothing fails here");
            recorder.all_is_durable();
        }
        if step == batches * 2 / 3 {
            database.settle().expect("nothing fails here");
            recorder.all_is_durable();
        }
        if step == batches / 2 {
            database.close().expect("nothing fails here");
            recorder.all_is_durable();
            drop(database);
            database = recorder.open();
        }
        if step == batches * 3 / 4 {
            drop(database);
            database = recorder.open();
            let other = Layout { key: vec![Field::Terminated(b'e'), Field::Rest], value: vec![Field::Rest] };
            database.tree_with("c", &other).expect("nothing fails here");
        }
    }
    drop(database);
    recorder.finish(State::default())
}

/// How a process or a system ends.
#[derive(Clone, Copy, Debug)]
enum Crash {
    /// The process is killed between two calls.
    Kill,
    /// It is killed in the middle of an append.
    KillInAppend,
    /// It is killed while it stores an append to the room of a log, in whatever order.
    KillInStore,
    PowerLoss(PowerLoss),
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill => write!(f, "killed between calls"),
            Self::KillInAppend => write!(f, "killed in an append"),
            Self::KillInStore => write!(f, "killed while it stored an append"),
            Self::PowerLoss(PowerLoss { names, content }) => {
                write!(f, "power loss that takes of names {names:?}, of content {content:?}")
            }
        }
    }
}

/// Something a crash left.
struct Image {
    crash: Crash,
    left: State,
    promises: Promises,
}

impl Image {
    /// The states it may be in.
    fn numbers(&self) -> RangeInclusive<u64> {
        match self.crash {
            Crash::PowerLoss(_) => self.promises.durable..=self.promises.begun,
            Crash::Kill | Crash::KillInAppend | Crash::KillInStore => self.promises.acknowledged..=self.promises.begun,
        }
    }
}

/// Hands every image of every moment of a trace to `look`, with the index of the last call that was made, until it
/// breaks.
fn for_every_crash(
    recorded: &Recorded,
    from: Promises,
    seed: u64,
    mut look: impl FnMut(usize, &Image) -> ControlFlow<()>,
) {
    let mut state = recorded.base.clone();
    let mut promises = from;
    for (at, call) in recorded.trace.iter().enumerate() {
        let mut random = Random::new(seed ^ ((at as u64) << 20));
        let mut images = Vec::new();
        if let Call::Append { file, bytes } = call {
            let mut torn = |crash, bytes| {
                let mut left = state.clone();
                left.apply(&Call::Append { file: *file, bytes });
                images.push(Image { crash, left, promises });
            };
            torn(Crash::KillInAppend, bytes[..random.below(bytes.len())].to_vec());
            if state.room(*file) >= bytes.len() {
                torn(Crash::KillInStore, some_stores(bytes, &mut random));
            }
        }
        state.apply(call);
        if let Call::Mark(note) = call {
            promises.take(recorded.notes[*note as usize]);
        }
        images.push(Image { crash: Crash::Kill, left: state.clone(), promises });
        images.extend(power_losses(&state, promises, &mut random));
        if images.iter().try_for_each(|image| look(at, image)).is_break() {
            return;
        }
    }
}

/// Bytes as they are in the middle of a copy to memory of zeros.
fn some_stores(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    const STORE_BYTES: usize = 16;
    let mut stored = bytes.to_vec();
    stored.chunks_mut(STORE_BYTES).filter(|_| random.once_in(2)).for_each(|store| store.fill(0));
    stored
}

/// What power losses at one moment leave, each content once.
fn power_losses(state: &State, promises: Promises, random: &mut Random) -> Vec<Image> {
    let mut seen = BTreeSet::new();
    let losses = PowerLoss::EXTREMES.iter().chain(&PowerLoss::DRAWN);
    losses
        .map(|&loss| Image { crash: Crash::PowerLoss(loss), left: state.after_power_loss(loss, random), promises })
        .filter(|image| seen.insert(image.left.contents()))
        .collect()
}

/// All that is needed to look into it.
fn describe(recorded: &Recorded, at: usize, image: &Image, text: &str) -> String {
    let calls: Vec<_> = recorded.trace[..=at].iter().rev().take(30).rev().map(|call| format!("{call:.40?}")).collect();
    let files = image.left.contents();
    let files: Vec<_> = files.iter().map(|(name, content)| format!("{name}: {} bytes", content.len())).collect();
    format!("{:?}: {text}\nfiles left: {files:#?}\ncalls before: {calls:#?}", image.promises)
}

/// Examines every image of a workload.
fn examine_all(session: &mut Session<'_>, recorded: &Recorded, from: Promises, seed: u64, where_from: &str) {
    for_every_crash(recorded, from, seed, |at, image| {
        session.try_case(
            || format!("{where_from}call {at}, {}", image.crash),
            || {
                let found = examine(&image.left, &tiny(), &recorded.history, image.numbers());
                found.map_err(|text| describe(recorded, at, image, &text))
            },
        );
        if session.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
}

/// Records one workload and examines every image of it.
pub(crate) fn round(session: &mut Session<'_>, seed: u64) {
    use Durability::{Process, Sync};
    const CLASSES: [&[Durability]; 3] = [&[Process, Process, Sync], &[Sync], &[Process]];
    let recorded = session.try_cases(0, recording, || Ok(record(CLASSES[(seed % 3) as usize], 60, seed)));
    if let Some(recorded) = recorded {
        examine_all(session, &recorded, Promises::default(), seed, "");
    }
}

fn recording() -> String {
    "while the workload was recorded".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::torture::sound_cases;

    fn crash_at_every_call(seed: u64) {
        let images = sound_cases(|session| round(session, seed));
        assert!(images >= 2_000, "only {images} images");
    }

    #[test]
    fn a_crash_at_any_call_of_a_synced_workload_loses_nothing_that_was_acknowledged() {
        crash_at_every_call(1);
    }

    #[test]
    fn a_crash_at_any_call_of_an_unsynced_workload_loses_at_most_the_newest_batches() {
        crash_at_every_call(2);
    }

    #[test]
    fn a_crash_at_any_call_of_a_mixed_workload_keeps_every_promise() {
        crash_at_every_call(3);
    }

    /// Deltas go straight into settled runs, of all trees at once: a tree that entered before the others would show after a
    /// power loss that took the log.
    #[test]
    fn a_crash_at_any_call_of_a_settle_tears_no_batch() {
        let mut recorder = Recorder::new(SimDisk::new(), History::new(), 8);
        recorder.options = Options { delta_bytes: 8 << 10, ..tiny() };
        let database = recorder.open();
        for name in ["a", "b", "c"] {
            recorder.tree(&database, name);
        }
        for _ in 0..6 {
            (0..9).for_each(|_| recorder.commit(&database, Durability::Process));
            database.settle().expect("nothing fails here");
            recorder.all_is_durable();
        }
        drop(database);
        let settled = recorder.finish(State::default());
        let images = sound_cases(|session| examine_all(session, &settled, Promises::default(), 8, ""));
        assert!(images >= 1_000, "only {images} images");
    }

    /// Batches without a log leave gaps in the numbers of those with one, and no gap in the order of frames.
    #[test]
    fn a_batch_of_class_none_is_safe_from_the_next_flush_on() {
        let mut recorder = Recorder::new(SimDisk::new(), History::new(), 5);
        let database = recorder.open();
        recorder.tree(&database, "a");
        recorder.commit(&database, Durability::Process);
        recorder.commit(&database, Durability::None);
        let killed = recorder.disk.state();
        examine(&killed, &tiny(), &recorder.history, 1..=1).expect("a killed process loses it before");
        database.flush().expect("nothing fails here");
        let flushed = recorder.disk.state().after_power_loss(PowerLoss::EXTREMES[0], &mut Random::new(0));
        examine(&flushed, &tiny(), &recorder.history, 2..=2).expect("a power loss does not take it after");
        recorder.commit(&database, Durability::Process);
        let killed = recorder.disk.state();
        examine(&killed, &tiny(), &recorder.history, 3..=3).expect("the log goes on behind it");
    }
}
