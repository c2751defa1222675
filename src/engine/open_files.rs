//! Segment files that are open for reading: a bounded number at a time, of any number of segments.
//!
//! A segment reads through a [`SegmentFile`], which opens its file when something is read and keeps it open until the
//! room is wanted for another. Open files go through a clock like that of blocks: the one at its front is closed, unless
//! it was read since it was last there. A read that is under way keeps the file it reads from open, so threads may hold
//! one more each for as long as a read takes.
//!
//! # Files that are in no manifest any more
//!
//! A closed file can only be opened again by its name. So a segment that a merge takes out of the manifest keeps its
//! name as long as somebody reads it: the file is removed when the last version, snapshot or scan that holds the segment
//! is gone, by whoever that is. What it takes on disk is no more than before, for an unlinked file that is open takes
//! up its space too. After a crash the next open removes it, like everything that the manifest does not name. If it cannot
//! be removed, the background thread hears of it, see [`OpenFiles::check_removals`].

use std::collections::VecDeque;
use std::sync::Arc;

use super::disk::{Disk, DiskFile};
use super::error::{Error, Result};
use super::segment;
use super::sync::{ArcSwapOption, AtomicBool, Mutex, Ordering};

type Handle = Box<dyn DiskFile>;

/// All that are open, of one database.
pub(crate) struct OpenFiles {
    disk: Arc<dyn Disk>,
    max: usize,
    /// Guards the filling and emptying of all slots. No input or output under it.
    clock: Mutex<Clock>,
    removal_failed: Mutex<Option<Error>>,
}

#[derive(Default)]
struct Clock {
    open: VecDeque<Arc<Slot>>,
    /// How many more are being opened, with room made for them.
    opening: usize,
}

/// One file, open or not.
#[derive(Default)]
struct Slot {
    handle: ArcSwapOption<Handle>,
    used: AtomicBool,
}

/// A segment file, by its number.
pub(crate) struct SegmentFile {
    files: Arc<OpenFiles>,
    number: u64,
    slot: Arc<Slot>,
    is_obsolete: AtomicBool,
}

impl OpenFiles {
    /// At most `max`, but for reads that are under way.
    pub(crate) fn new(disk: &Arc<dyn Disk>, max: usize) -> Arc<Self> {
        Arc::new(Self {
            disk: Arc::clone(disk),
            max: max.max(1),
            clock: Mutex::default(),
            removal_failed: Mutex::default(),
        })
    }

    /// Tells, once, that an obsolete file could not be removed.
    pub(crate) fn check_removals(&self) -> Result<()> {
        self.removal_failed.lock().take().map_or(Ok(()), Err)
    }

    /// Closes files until there is room for one more, which is opened next.
    fn make_room(&self) {
        let mut closed = Vec::new();
        let mut clock = self.clock.lock();
        let Clock { open, opening } = &mut *clock;
        // One chance each: readers cannot keep this going.
        let mut chances = open.len();
        while open.len() + *opening >= self.max
            && let Some(slot) = open.pop_front()
        {
            if chances > 0 && slot.used.swap(false, Ordering::Relaxed) {
                chances -= 1;
                open.push_back(slot);
                continue;
            }
            closed.push(slot.handle.swap(None));
        }
        *opening += 1;
        // Files are closed outside the lock.
        drop(clock);
    }

    /// Keeps what was opened. If another thread was faster, its handle is the one to use.
    fn keep(&self, slot: &Arc<Slot>, opened: Result<Handle>) -> Result<Arc<Handle>> {
        let mut clock = self.clock.lock();
        clock.opening -= 1;
        if let Some(handle) = slot.handle.load_full() {
            return Ok(handle);
        }
        let handle = Arc::new(opened?);
        slot.handle.store(Some(Arc::clone(&handle)));
        clock.open.push_back(Arc::clone(slot));
        Ok(handle)
    }

    fn close(&self, slot: &Arc<Slot>) {
        let mut clock = self.clock.lock();
        if slot.handle.swap(None).is_some() {
            clock.open.retain(|other| !Arc::ptr_eq(other, slot));
        }
    }
}

impl SegmentFile {
    pub(crate) fn new(files: &Arc<OpenFiles>, number: u64) -> Self {
        Self { files: Arc::clone(files), number, slot: Arc::default(), is_obsolete: AtomicBool::new(false) }
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> Result<u64> {
        self.handle()?.len()
    }

    /// Fills `buffer` from `offset`; an error if the file ends before.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.handle()?.read_at(offset, buffer)
    }

    /// No manifest names it any more: it is removed once nobody reads it.
    pub(crate) fn make_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Relaxed);
    }

    fn handle(&self) -> Result<Arc<Handle>> {
        if let Some(handle) = self.slot.handle.load_full() {
            self.slot.used.store(true, Ordering::Relaxed);
            return Ok(handle);
        }
        self.files.make_room();
        self.files.keep(&self.slot, self.files.disk.open(&segment::file_name(self.number)))
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        self.files.close(&self.slot);
        if self.is_obsolete.load(Ordering::Relaxed)
            && let Err(error) = self.files.disk.remove(&segment::file_name(self.number))
        {
            self.files.removal_failed.lock().get_or_insert(error);
        }
    }
}
