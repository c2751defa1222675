//! Calls that fail: what was acknowledged stays, and all goes on after a resume or a reopen.

use super::super::look::{Answers, Wrong, compare, look};
use super::super::step::{Action, Change, End, Read, Reading, Upkeep};
use super::{Ending, Machine, Snapshots, text};
use crate::engine::disk::sim::{AfterFailedSync, CallKind, Fault, PowerLoss};
use crate::engine::{Database, Durability, Error};

impl Machine {
    pub(super) fn fail(
        &mut self,
        database: &Database,
        snapshots: &mut Snapshots<'_>,
        action: &Action,
    ) -> Result<Option<Ending>, String> {
        let ending = self.try_to_fail(database, action)?;
        for (snapshot, trees) in &*snapshots {
            look(snapshot, trees, 0, &Read::Whole, &mut Answers::default()).map_err(Wrong::text)?;
        }
        // A reopen lets go of them, and not every configuration has to reopen.
        snapshots.clear();
        Ok(ending)
    }

    fn try_to_fail(&mut self, database: &Database, action: &Action) -> Result<Option<Ending>, String> {
        let Action::Fail { fault, batches, class, end } = action else { return Ok(None) };
        self.disk.inject(*fault);
        let done = self.until_failure(database, batches, *class);
        let was_struck = self.disk.was_struck();
        self.disk.heal();
        if fault.kind == Some(CallKind::Remove) {
            // What could not be removed stays until the next opening, and somebody hears of it, or of more, some time.
            let rest = done.err().map_or_else(Vec::new, |(done, _)| batches[done..].to_vec());
            return Ok(Some(Ending { rest, ..Ending::by(*end) }));
        }
        let Err((done, error)) = done else {
            if was_struck {
                return Err(format!("{fault:?} struck, and nobody heard of it"));
            }
            compare(database, &self.model.trees)?;
            return Ok(None);
        };
        if !was_struck || matches!(error, Error::Panicked { .. }) {
            return Err(format!("with {fault:?}: {error}"));
        }
        let rest = batches[done..].to_vec();
        if database.resume().is_err() {
            return Ok(Some(Ending { rest, ..Ending::by(crash(*fault, *end)) }));
        }
        compare(database, &self.model.trees).map_err(|text| format!("resumed after `{error}`: {text}"))?;
        for changes in &rest {
            self.commit(database, changes, *class).map_err(text)?;
        }
        Ok(None)
    }

    /// How many batches were acknowledged before the failure. Without one, everything is settled.
    fn until_failure(
        &mut self,
        database: &Database,
        batches: &[Vec<Change>],
        class: Option<Durability>,
    ) -> Result<(), (usize, Error)> {
        for (index, changes) in batches.iter().enumerate() {
            self.commit(database, changes, class).map_err(|error| (index, error))?;
            if index % 8 == 5 {
                database.flush().map_err(|error| (index + 1, error))?;
                self.model.flushed(self.model.pending());
            }
        }
        // What struck in the background is told here at the latest.
        database.settle().map_err(|error| (batches.len(), error))?;
        self.model.flushed(self.model.pending());
        Ok(())
    }

    /// Reads while calls fail: an error or the right answer.
    pub(super) fn failing_reads(
        &mut self,
        database: &Database,
        snapshots: &Snapshots<'_>,
        fault: Fault,
        reads: &[Reading],
    ) -> Result<(), String> {
        self.disk.inject(fault);
        let mut read = |reading| match self.try_to_read(database, snapshots, reading, &mut Answers::default()) {
            Err(Wrong::Failed(_)) if self.disk.was_struck() => Ok(()),
            result => result.map_err(Wrong::text),
        };
        let result = reads.iter().try_for_each(&mut read);
        self.disk.heal();
        result?;
        // Background work may have met it too.
        if database.settle().is_err() {
            database.resume().map_err(text)?;
        }
        self.upkeep(database, snapshots, Upkeep::Settle)?;
        reads.iter().try_for_each(|reading| self.read(database, snapshots, reading, &mut Answers::default()))
    }
}

/// A cache that lost what it had was lost in a crash of the system.
fn crash(fault: Fault, end: End) -> End {
    let keeps_cache = fault.kind != Some(CallKind::Sync) || fault.after_failed_sync == AfterFailedSync::CacheKeepsNew;
    if keeps_cache { end } else { End::PowerLoss { loss: PowerLoss::EXTREMES[0], seed: 0 } }
}
