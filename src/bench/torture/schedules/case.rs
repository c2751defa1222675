//! One case: where it starts, what its threads do, and what is left of it.

use std::sync::LazyLock;

use super::scene::{Content, Record, Scene, Written, make_trees, read};
use super::subjects::Subject;
use crate::bench::torture::history::{close, open, tiny};
use crate::engine::disk::sim::{Random, SimDisk, State};
use crate::engine::{Direction, Durability, Options};

/// The database that every case starts with: two trees of two runs each, whose keys writers overwrite.
pub(super) struct Start {
    pub(super) state: State,
    pub(super) content: Content,
    /// Sequence number of its last commit.
    pub(super) sequence: u64,
}

pub(super) static START: LazyLock<Start> = LazyLock::new(|| {
    let disk = SimDisk::new();
    // Nothing merges the runs in the background.
    let database = open(&disk, &Options { runs_max: 8, ..tiny() }).expect("opens");
    make_trees(&database).expect("new trees");
    for number in 1..=4 {
        let batch = Written { writer: 9, number }.batch();
        database.commit_with(&batch, Durability::Process).expect("nothing fails here");
        if number % 2 == 0 {
            database.flush().expect("nothing fails here");
        }
    }
    let snapshot = database.snapshot();
    let (content, sequence) = (read(&snapshot, Direction::Forward).expect("it can be read"), snapshot.sequence());
    drop(snapshot);
    close(&disk, &database).expect("closes");
    Start { state: disk.state(), content, sequence }
});

/// What a schedule left.
pub(super) struct Case {
    pub(super) disk: SimDisk,
    pub(super) record: Record,
    pub(super) options: Options,
}

impl Case {
    /// Runs one, inside of an exploration.
    pub(super) fn run(subject: &Subject, seed: u64) -> Result<Self, String> {
        let mut random = Random::new(!seed);
        let disk = SimDisk::from_state(START.state.clone());
        let options = (subject.options)(&mut random);
        let scene = Scene::open(&disk, options.clone()).map_err(|error| format!("open failed: {error}"))?;
        let acted = (subject.act)(&scene, &mut random).and_then(|()| end(&scene));
        let record = scene.take_record();
        // The background thread has to end in any case, or it would be missed.
        drop(scene);
        acted.map(|()| Self { disk, record, options })
    }
}

/// Closes the database, and looks for what should be gone, unless something failed in it.
fn end(scene: &Scene) -> Result<(), String> {
    let database = scene.database();
    let snapshots = database.stats().snapshots;
    if snapshots != 0 {
        return Err(format!("{snapshots} snapshots are left, and nobody has them"));
    }
    // Another close would be told nothing.
    if scene.close_failed() {
        return Ok(());
    }
    let closed = scene.close();
    if scene.disk().was_struck() {
        return Ok(());
    }
    closed.map_err(|error| format!("close failed: {error}"))?;
    close(scene.disk(), database)?;
    let stats = database.stats();
    if (stats.sealed, stats.log_bytes) != (0, 0) {
        return Err(format!("closed with {} sealed deltas and logs of {} bytes", stats.sealed, stats.log_bytes));
    }
    Ok(())
}
