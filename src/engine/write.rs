//! The one write path: room, log, deltas, publish.

use std::sync::Arc;
use std::time::Instant;

use super::batch::{Batch, TreeId};
use super::database::{SCRATCH_BYTES_MAX, Shared};
use super::error::{Error, Result};
use super::events;
use super::numbers::{check_log, sequence_after};
use super::options::Durability;
use super::stalls::StallReason;
use super::stats::add_alone;
use super::sync::{Guard, Ordering};
use super::version::{Generation, GenerationEnd, Version};
use super::wal::{self, Log, Place};
use super::worker::{Progress, is_merge_urgent};

/// What the writer lock guards.
pub(crate) struct WriterState {
    /// Sequence number of the last commit.
    sequence: u64,
    /// Sequence number of the last commit that went to a log.
    logged: u64,
    /// Log of the active generation; made with its first frame.
    log: Option<Arc<Log>>,
    /// Scratch for frames.
    frame: Vec<u8>,
    /// Set before the last flush, so that it is the last.
    closed: bool,
}

/// A commit that is in the log, as far as its durability wants it there, and in the deltas.
#[derive(Clone, Copy)]
#[must_use = "it may not be durable yet, and nobody may see it"]
pub(crate) struct Applied {
    pub(crate) sequence: u64,
    durability: Durability,
}

impl WriterState {
    pub(crate) fn new(sequence: u64, logged: u64) -> Self {
        Self { sequence, logged, log: None, frame: Vec::new(), closed: false }
    }
}

impl Shared {
    /// Refuses a change that comes too late.
    pub(crate) fn check_writable(&self, writer: &WriterState) -> Result<()> {
        self.health.check_writable()?;
        if writer.closed { Err(Error::Closed) } else { Ok(()) }
    }

    /// Applies `batch` whole or not at all. In class `sync` it is durable, and seen by others, once [`Self::publish`] is
    /// done with what this answers; in any other it is at once. `None` if there is nothing to do.
    pub(crate) fn apply(&self, batch: &Batch, durability: Durability) -> Result<Option<Applied>> {
        batch.check_limits()?;
        if batch.is_empty() {
            return Ok(None);
        }
        let mut writer = self.writer.lock();
        self.check_writable(&writer)?;
        let version = self.make_room(&mut writer)?;
        let TreeId(largest_tree) = batch.largest_tree();
        if largest_tree as usize >= version.trees.len() {
            return Err(Error::UnknownTree { id: largest_tree });
        }
        let sequence = sequence_after(writer.sequence)?;
        if durability != Durability::None {
            self.append(&mut writer, sequence, version.active.log_number, batch)
                .inspect_err(|error| self.health.poison(error))?;
        }
        version.active.apply(sequence, batch.iter());
        add_alone(&self.counters.committed_bytes, batch.as_bytes().len() as u64);
        writer.sequence = sequence;
        self.applied.store(sequence, Ordering::Release);
        if durability != Durability::Sync {
            self.visible.fetch_max(sequence, Ordering::Release);
        }
        Ok(Some(Applied { sequence, durability }))
    }

    /// Makes a commit durable that waits for that, and shows it to readers.
    pub(crate) fn publish(&self, applied: Option<Applied>) -> Result<()> {
        match applied {
            Some(Applied { sequence, durability: Durability::Sync }) => self.publish_through(sequence),
            _ => Ok(()),
        }
    }

    /// Makes everything durable, and shows it, that is applied and waits for that.
    pub(crate) fn publish_applied(&self) -> Result<()> {
        let applied = self.applied.load(Ordering::Acquire);
        if self.visible.load(Ordering::Acquire) < applied { self.publish_through(applied) } else { Ok(()) }
    }

    fn publish_through(&self, sequence: u64) -> Result<()> {
        self.syncing.wait(sequence, &self.health, || self.sync_dir())?;
        self.visible.fetch_max(sequence, Ordering::Release);
        Ok(())
    }

    fn append(&self, writer: &mut WriterState, sequence: u64, log_number: u64, batch: &Batch) -> Result<()> {
        let WriterState { log, frame, logged, .. } = writer;
        let log = match log {
            Some(log) => log,
            None => log.insert(self.create_log(log_number)?),
        };
        let place = Place { sequence, previous: *logged, synced: self.syncing.synced() };
        log.append(frame, place, batch.as_bytes())?;
        add_alone(&self.counters.log_bytes_written, frame.len() as u64);
        if frame.capacity() > SCRATCH_BYTES_MAX {
            *frame = Vec::new();
        }
        *logged = sequence;
        Ok(())
    }

    fn create_log(&self, number: u64) -> Result<Arc<Log>> {
        let log = Log::new(self.disk.create_log(&wal::file_name(number))?, self.database_id, number);
        self.syncing.add(Arc::clone(&log));
        Ok(log)
    }

    /// The version to write to, with room in its active generation. Waits while flushes lag.
    fn make_room(&self, writer: &mut WriterState) -> Result<Guard<Arc<Version>>> {
        let version = self.version.load();
        check_log(version.active.log_number)?;
        if version.active.bytes() < self.options.delta_bytes_max() {
            return Ok(version);
        }
        drop(version);
        if !self.may_seal() {
            self.stall()?;
        }
        self.seal_locked(writer)?;
        self.worker.wake();
        Ok(self.version.load())
    }

    /// Waits until a flush has made room for one more sealed generation.
    fn stall(&self) -> Result<()> {
        let reason = StallReason::of(self.worker.is_settle_wanted(), is_merge_urgent(self, &self.version.load()));
        let started = Instant::now();
        let waited = self.worker.wait_until(&self.health, |_| self.may_seal());
        self.counters.stalls.add(reason, started.elapsed());
        events::stalled(reason, started.elapsed());
        waited
    }

    /// Whether one more sealed generation is within the memory that the options allow.
    fn may_seal(&self) -> bool {
        self.version.load().sealed.len() < self.options.sealed_max
    }

    /// Has everything committed so far sealed, and the background thread told. Answers the last commit of it.
    pub(crate) fn seal(&self) -> Result<u64> {
        self.seal_in_turn(
            |_| self.may_seal(),
            |sequence| {
                self.worker.wake();
                sequence
            },
        )
    }

    /// Has everything committed so far sealed and settled. The background thread learns of both at once, so that it
    /// does not begin to flush what it is about to settle; for the same reason the first to ask does not wait for a flush:
    /// there may be one more sealed generation until it is served. Answers the ticket.
    pub(crate) fn seal_to_settle(&self) -> Result<u64> {
        self.seal_in_turn(|progress| self.may_seal() || !progress.is_settle_wanted(), |_| self.worker.request_settle())
    }

    /// Seals the active generation when `may_seal` says so, unless somebody else does before, and tells the background
    /// thread under the same lock, with the last commit of that generation. Waits without the lock: whoever finds room in
    /// the active generation goes on, and its commits are sealed with those that were there.
    fn seal_in_turn(&self, may_seal: impl Fn(&Progress<'_>) -> bool, tell: impl FnOnce(u64) -> u64) -> Result<u64> {
        let mut writer = self.writer.lock();
        self.check_writable(&writer)?;
        let (sequence, active) = (writer.sequence, Arc::clone(&self.version.load().active));
        while !active.is_empty() && active.sealed_at().is_none() {
            if self.worker.sees(&may_seal) {
                self.check_writable(&writer)?;
                self.seal_locked(&mut writer)?;
                break;
            }
            drop(writer);
            self.worker.wait_until(&self.health, &may_seal)?;
            writer = self.writer.lock();
        }
        Ok(tell(active.sealed_at().unwrap_or(sequence)))
    }

    /// As [`Self::seal`], and refuses every later change: what has to be flushed does not grow any more, so it is sealed at
    /// once. Also if it fails: a failure that is gone the next moment must not let anybody write who comes after the close.
    pub(crate) fn seal_for_good(&self) -> Result<u64> {
        let mut writer = self.writer.lock();
        let checked = self.check_writable(&writer);
        writer.closed = true;
        checked?;
        if !self.version.load().active.is_empty() {
            self.seal_locked(&mut writer)?;
        }
        self.worker.wake();
        Ok(writer.sequence)
    }

    /// Waits until everything up to `sequence`, which a seal answered, is in segments.
    pub(crate) fn wait_for_flush(&self, sequence: u64) -> Result<()> {
        self.worker.wait_until(&self.health, |_| {
            self.version.load().sealed.last().is_none_or(|oldest| oldest.end().sequence > sequence)
        })
    }

    /// The caller wakes the background thread.
    fn seal_locked(&self, writer: &mut WriterState) -> Result<()> {
        let manifest = self.manifest.lock();
        let mut version = Version::clone(&self.version.load());
        let active = Generation::new(self.numbers.allot_log()?, version.trees.len(), &self.cache);
        version.active.seal(GenerationEnd { sequence: writer.sequence, logged: writer.logged });
        self.trail.add(&version.active, self.visible.load(Ordering::Acquire));
        version.sealed.insert(0, std::mem::replace(&mut version.active, Arc::new(active)));
        self.show(version);
        drop(manifest);
        writer.log = None;
        Ok(())
    }
}
