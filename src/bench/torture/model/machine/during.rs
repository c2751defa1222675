//! What is done, and what a crash leaves, while upkeep waits in a call.

use std::thread;

use super::super::look::Answers;
use super::super::step::{Action, Change, End, Upkeep};
use super::{Ending, Machine, Snapshots, text};
use crate::engine::Database;
use crate::engine::disk::sim::{CallKind, SimDisk};

impl Machine {
    pub(super) fn during(
        &mut self,
        database: &Database,
        snapshots: &Snapshots<'_>,
        action: &Action,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let Action::During { upkeep, held, put, changes, reads } = action else { return Ok(()) };
        self.begin_anew(database, put)?;
        let flushed = self.model.pending();
        let disk = self.disk.clone();
        while_held(&disk, database, *upkeep, *held, || {
            self.commit(database, changes, None).map_err(text)?;
            reads.iter().try_for_each(|reading| self.read(database, snapshots, reading, answers))
        })?;
        self.model.flushed(flushed);
        reads.iter().try_for_each(|reading| self.read(database, snapshots, reading, answers))
    }

    pub(super) fn crash_during_flush(&mut self, database: &Database, action: &Action) -> Result<Ending, String> {
        let Action::CrashDuringFlush { held, put, changes, end } = action else { return Ok(Ending::by(End::Kill)) };
        self.begin_anew(database, put)?;
        let disk = self.disk.clone();
        let left = while_held(&disk, database, Upkeep::Flush, *held, || {
            self.commit(database, changes, None).map_err(text)?;
            Ok(disk.state())
        })?;
        Ok(Ending { left: Some(left), ..Ending::by(*end) })
    }

    /// Leaves one commit to be flushed, and nothing else to be done in the background: otherwise that could be what is held,
    /// with the lock that sealing takes, and a commit would wait for it.
    fn begin_anew(&mut self, database: &Database, put: &Change) -> Result<(), String> {
        database.settle().map_err(text)?;
        self.model.flushed(self.model.pending());
        self.commit(database, std::slice::from_ref(put), None).map_err(text)
    }
}

/// Runs `meanwhile` once the upkeep of `database`, which has something to write, is held in a call.
fn while_held<T>(
    disk: &SimDisk,
    database: &Database,
    upkeep: Upkeep,
    (kind, ending): (CallKind, &'static str),
    meanwhile: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    disk.hold(kind, ending);
    thread::scope(|scope| {
        let upkeep = scope.spawn(|| match upkeep {
            Upkeep::Settle => database.settle(),
            _ => database.flush(),
        });
        disk.wait_for_held();
        let result = meanwhile();
        disk.release();
        upkeep.join().map_err(|_| "upkeep panicked".to_owned())?.map_err(text)?;
        result
    })
}
