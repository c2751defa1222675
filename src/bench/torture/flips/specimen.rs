//! A small database with every kind of file, and what it must answer.

use super::damage::{Damage, Files, MANIFEST};
use crate::bench::torture::history::{self, FramePlace, History, frames, open, tiny};
use crate::engine::disk::sim::{CallKind, Random, SimDisk, State};
use crate::engine::{Compression, Database, Durability, Options};

const TREES: [&str; 2] = ["a", "b"];

/// A database that was killed, and all that is needed to judge what becomes of it.
pub(super) struct Specimen {
    pub(super) options: Options,
    pub(super) history: History,
    pub(super) files: Files,
    /// As a killed process leaves it.
    pub(super) killed: State,
    /// After a restart of the system.
    pub(super) restarted: State,
    /// Of the logs that are there, in order; the first belongs to batch `flushed + 1`.
    pub(super) frames: Vec<FramePlace>,
    pub(super) flushed: u64,
    /// Batches whose frames were synced before the next one was written.
    pub(super) synced: Vec<u64>,
    /// Earlier manifests, and the last batch of each.
    pub(super) older: Vec<(Vec<u8>, u64)>,
    pub(super) foreign: Files,
}

impl Specimen {
    /// Two databases with the same life and other values in it: one is the specimen, the other a stranger.
    pub(super) fn new(compression: Compression, seed: u64) -> Self {
        let foreign = Life::live(compression, seed, 0xFF).1.contents();
        let (Life { options, disk, history, synced, older, .. }, killed) = Life::live(compression, seed, 0);
        let files = killed.contents();
        let all = frames(&disk);
        let flushed = all.iter().take_while(|frame| !files.contains_key(&frame.log)).count();
        let frames = all[flushed..].to_vec();
        let restarted = killed.restarted();
        Self { options, history, files, killed, restarted, frames, flushed: flushed as u64, synced, older, foreign }
    }

    pub(super) fn damages(&self) -> Vec<Damage> {
        Damage::all(&self.files, &self.foreign, self.older.len())
    }

    /// The last batch that a frame of batch `number` says was synced.
    pub(super) fn synced_before(&self, number: u64) -> u64 {
        self.synced.iter().copied().filter(|synced| *synced < number).max().unwrap_or(0)
    }
}

/// A database while it is written to.
struct Life {
    options: Options,
    disk: SimDisk,
    history: History,
    random: Random,
    synced: Vec<u64>,
    older: Vec<(Vec<u8>, u64)>,
}

impl Life {
    /// Everything is flushed when it is told to and nothing is merged unasked, so that the same files come of it each time.
    fn live(compression: Compression, seed: u64, salt: u8) -> (Self, State) {
        let options = Options { compression, block_bytes: 512, sealed_max: 64, runs_max: 64, ..tiny() };
        let (disk, history, random) = (SimDisk::new(), History::with_salt(salt), Random::new(seed));
        let mut life = Self { options, disk, history, random, synced: Vec::new(), older: Vec::new() };
        life.fill_segments();
        let left = life.fill_logs();
        (life, left)
    }

    /// One settled run, and one from a flush.
    fn fill_segments(&mut self) {
        let database = self.open(64 << 20);
        for name in TREES {
            history::tree(&database, name).expect("nothing fails here");
        }
        self.write(&database, 30);
        database.flush().expect("nothing fails here");
        self.remember_manifest();
        self.write(&database, 20);
        database.settle().expect("nothing fails here");
        self.remember_manifest();
        self.write(&database, 12);
        database.close().expect("nothing fails here");
        self.remember_manifest();
    }

    /// Several logs with several frames each, while a flush is held.
    fn fill_logs(&mut self) -> State {
        let database = self.open(6 << 10);
        self.write(&database, 6);
        self.disk.hold(CallKind::Create, ".seg");
        std::thread::scope(|scope| {
            scope.spawn(|| database.flush().expect("nothing fails here"));
            self.disk.wait_for_held();
            self.write(&database, 50);
            let left = self.disk.state();
            self.disk.release();
            left
        })
    }

    fn open(&self, delta_bytes: usize) -> Database {
        open(&self.disk, &Options { delta_bytes, ..self.options.clone() }).expect("nothing fails here")
    }

    fn write(&mut self, database: &Database, batches: usize) {
        for _ in 0..batches {
            let batch = self.history.draw(&mut self.random, &TREES);
            let durability = if self.random.once_in(6) { Durability::Sync } else { Durability::Process };
            database.commit_with(&batch, durability).expect("nothing fails here");
            if durability == Durability::Sync {
                self.synced.push(self.history.last());
            }
        }
    }

    fn remember_manifest(&mut self) {
        let manifest = self.disk.state().contents().remove(MANIFEST).expect("a database has one");
        self.older.push((manifest, self.history.last()));
    }
}
