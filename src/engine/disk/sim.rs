//! A disk in memory that remembers every call, can fail any of them, and knows what a crash would leave.
//!
//! The trace of calls is the truth: [`State::apply`] turns any prefix of it into the state at that moment, and
//! [`State::after_power_loss`] that state into one of those a power loss may leave. A killed process leaves the state
//! as it is, so a disk made from it goes on where the trace stopped, with what was not synced still not synced.
//!
//! Reads change nothing and are not in the trace; they can fail like every other call.

mod faults;
mod random;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::error::{Error, Result};
use super::super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use super::{Disk, DiskFile, LOCK};

pub(crate) use self::faults::{CallKind, Fault};
pub(crate) use self::random::Random;
pub(crate) use self::state::{AfterFailedSync, Call, PowerLoss, State};

use self::faults::Faults;
use self::state::FileId;

/// A simulated directory. Clones are handles of the same one.
#[derive(Clone)]
pub(crate) struct SimDisk {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    locked: AtomicBool,
    recording: Mutex<Recording>,
    /// Signalled with every change of what is held.
    held_changed: Condvar,
    /// Files that are open, and the most that were.
    handles: Mutex<(usize, usize)>,
}

/// Which calls wait.
#[derive(Default)]
struct Held {
    /// Those of this kind, on files whose names end so.
    calls: Option<(CallKind, &'static str)>,
    waiting: usize,
}

/// Behind one lock, so that the trace has one order.
struct Recording {
    state: State,
    trace: Vec<Call>,
    faults: Faults,
    broken: Vec<(String, Range<usize>)>,
    held: Held,
}

impl Recording {
    fn create(&mut self, name: &str) {
        self.perform(Call::Create { name: name.to_owned(), file: self.state.next_file() });
    }

    fn perform(&mut self, call: Call) {
        self.state.apply(&call);
        self.trace.push(call);
    }
}

impl SimDisk {
    /// An empty directory.
    pub(crate) fn new() -> Self {
        Self::from_state(State::default())
    }

    /// A directory as a crash left it. Nobody has it locked, and its trace is empty.
    pub(crate) fn from_state(state: State) -> Self {
        let (trace, faults, broken, held) = Default::default();
        Self {
            inner: Arc::new(Inner {
                path: PathBuf::from("/sim"),
                locked: AtomicBool::new(false),
                recording: Mutex::new(Recording { state, trace, faults, broken, held }),
                held_changed: Condvar::new(),
                handles: Mutex::default(),
            }),
        }
    }

    /// Leaves a note in the trace, at its place among the calls.
    pub(crate) fn mark(&self, note: u64) {
        self.inner.recording.lock().perform(Call::Mark(note));
    }

    /// The calls so far.
    pub(crate) fn trace(&self) -> Vec<Call> {
        self.inner.recording.lock().trace.clone()
    }

    /// What a process that is killed now leaves behind.
    pub(crate) fn state(&self) -> State {
        self.inner.recording.lock().state.clone()
    }

    /// Lets calls of one kind, on files whose names end so, wait from now on.
    pub(crate) fn hold(&self, kind: CallKind, ending: &'static str) {
        self.inner.recording.lock().held.calls = Some((kind, ending));
    }

    /// Waits until a call is held.
    pub(crate) fn wait_for_held(&self) {
        let mut recording = self.inner.recording.lock();
        while recording.held.waiting == 0 {
            self.inner.held_changed.wait(&mut recording);
        }
    }

    /// Lets the held calls go on.
    pub(crate) fn release(&self) {
        self.inner.recording.lock().held.calls = None;
        self.inner.held_changed.notify_all();
    }

    /// Lets calls fail from now on.
    pub(crate) fn inject(&self, fault: Fault) {
        self.inner.recording.lock().faults.add(fault);
    }

    /// Lets every read of these bytes of a file fail, for good.
    pub(crate) fn break_sector(&self, name: &str, bytes: Range<usize>) {
        self.inner.recording.lock().broken.push((name.to_owned(), bytes));
    }

    /// Lets calls succeed again, and says how many failed since the last time.
    pub(crate) fn heal(&self) -> usize {
        self.inner.recording.lock().faults.clear()
    }

    /// How many files were open at a time, at most.
    #[cfg(test)]
    pub(crate) fn handles_max(&self) -> usize {
        self.inner.handles.lock().1
    }

    /// Whether an injected fault has struck that somebody has to hear of.
    pub(crate) fn was_struck(&self) -> bool {
        self.inner.recording.lock().faults.told() > 0
    }
}

impl Inner {
    /// The recording, once this call is not held.
    fn pass(&self, kind: CallKind, name: &str) -> MutexGuard<'_, Recording> {
        let mut recording = self.recording.lock();
        while recording.held.calls.is_some_and(|(waits, ending)| waits == kind && name.ends_with(ending)) {
            recording.held.waiting += 1;
            self.held_changed.notify_all();
            self.held_changed.wait(&mut recording);
            recording.held.waiting -= 1;
        }
        recording
    }

    /// The recording, unless an injected fault strikes this call.
    fn enter(&self, kind: CallKind, name: &str) -> Result<MutexGuard<'_, Recording>> {
        let mut recording = self.pass(kind, name);
        match recording.faults.strike(kind, name) {
            Some(fault) => Err(self.fail(kind, name, fault.error())),
            None => Ok(recording),
        }
    }

    fn fail(&self, kind: CallKind, name: &str, error: io::Error) -> Error {
        Error::io(kind.verb(), &self.path.join(name), error)
    }
}

impl Disk for SimDisk {
    fn path(&self) -> &Path {
        &self.inner.path
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        let mut recording = self.inner.enter(CallKind::Lock, LOCK)?;
        if self.inner.locked.swap(true, Ordering::SeqCst) {
            return Err(Error::AlreadyOpen { dir: self.inner.path.clone(), pid: Some(std::process::id()) });
        }
        if recording.state.file(LOCK).is_none() {
            recording.create(LOCK);
        }
        Ok(Box::new(Locked(Arc::clone(&self.inner))))
    }

    fn list(&self) -> Result<Vec<String>> {
        let recording = self.inner.enter(CallKind::List, "")?;
        Ok(recording.state.names().map(str::to_owned).collect())
    }

    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.create_file(name)?))
    }

    fn create_log(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(SimLog { file: self.create_file(name)?, has_room: AtomicBool::new(true) }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let recording = self.inner.enter(CallKind::Open, name)?;
        self.existing(&recording, CallKind::Open, name)?;
        Ok(Box::new(self.handle(&recording, name)))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut recording = self.inner.enter(CallKind::Rename, from)?;
        self.existing(&recording, CallKind::Rename, from)?;
        recording.perform(Call::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut recording = self.inner.enter(CallKind::Remove, name)?;
        self.existing(&recording, CallKind::Remove, name)?;
        recording.perform(Call::Remove { name: name.to_owned() });
        Ok(())
    }

    fn sync_dir(&self) -> Result<()> {
        let mut recording = self.inner.pass(CallKind::SyncDir, "");
        if let Some(fault) = recording.faults.strike(CallKind::SyncDir, "") {
            let seed = recording.trace.len() as u64;
            recording.perform(Call::FailToSyncDir { seed });
            return Err(self.inner.fail(CallKind::SyncDir, "", fault.error()));
        }
        recording.perform(Call::SyncDir);
        Ok(())
    }

    fn boot_id(&self) -> Result<Option<u128>> {
        Ok(Some(self.inner.enter(CallKind::BootId, "")?.state.boot_id()))
    }
}

impl SimDisk {
    fn existing(&self, recording: &Recording, kind: CallKind, name: &str) -> Result<FileId> {
        let found = recording.state.file(name);
        found.ok_or_else(|| self.inner.fail(kind, name, io::ErrorKind::NotFound.into()))
    }

    fn create_file(&self, name: &str) -> Result<SimFile> {
        let mut recording = self.inner.enter(CallKind::Create, name)?;
        if recording.state.file(name).is_some() {
            return Err(self.inner.fail(CallKind::Create, name, io::ErrorKind::AlreadyExists.into()));
        }
        recording.create(name);
        Ok(self.handle(&recording, name))
    }

    fn handle(&self, recording: &Recording, name: &str) -> SimFile {
        let file = recording.state.file(name).expect("the caller looked");
        let mut handles = self.inner.handles.lock();
        handles.0 += 1;
        handles.1 = handles.1.max(handles.0);
        SimFile { inner: Arc::clone(&self.inner), name: name.to_owned(), file }
    }
}

struct Locked(Arc<Inner>);

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::SeqCst);
    }
}

/// An open file; goes on working after its name is gone.
struct SimFile {
    inner: Arc<Inner>,
    name: String,
    file: FileId,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.inner.handles.lock().0 -= 1;
    }
}

impl SimFile {
    fn fail(&self, kind: CallKind, error: io::Error) -> Error {
        self.inner.fail(kind, &self.name, error)
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> Result<u64> {
        Ok(self.inner.enter(CallKind::Len, &self.name)?.state.len(self.file) as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let recording = self.inner.enter(CallKind::Read, &self.name)?;
        let (start, end) = (offset as usize, offset as usize + buffer.len());
        if recording.broken.iter().any(|(name, bad)| *name == self.name && bad.start < end && start < bad.end) {
            return Err(self.fail(CallKind::Read, rustix::io::Errno::IO.into()));
        }
        recording.state.read(self.file, offset, buffer).map_err(|error| self.fail(CallKind::Read, error))
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        let mut recording = self.inner.pass(CallKind::Append, &self.name);
        let fault = recording.faults.strike(CallKind::Append, &self.name);
        let landed = match &fault {
            None => bytes.len(),
            Some(fault) => fault.landed(bytes.len()),
        };
        if landed > 0 {
            recording.perform(Call::Append { file: self.file, bytes: bytes[..landed].to_vec() });
        }
        fault.map_or(Ok(()), |fault| Err(self.fail(CallKind::Append, fault.error())))
    }

    fn sync(&self) -> Result<()> {
        let mut recording = self.inner.pass(CallKind::Sync, &self.name);
        if let Some(fault) = recording.faults.strike(CallKind::Sync, &self.name) {
            recording.perform(Call::FailToSync { file: self.file, after: fault.after_failed_sync });
            return Err(self.fail(CallKind::Sync, fault.error()));
        }
        recording.perform(Call::Sync { file: self.file });
        Ok(())
    }
}

/// Room is allocated for so many bytes at a time: less than some frames take.
const ROOM_BYTES: usize = 192;

/// A log with room allocated ahead, until that fails once.
struct SimLog {
    file: SimFile,
    has_room: AtomicBool,
}

impl SimLog {
    /// Sees to it that there is room for so many more bytes.
    fn make_room(&self, len: usize) {
        while self.has_room.load(Ordering::Relaxed) {
            let SimFile { inner, name, file } = &self.file;
            let mut recording = inner.pass(CallKind::Allocate, name);
            if recording.state.room(*file) >= len {
                return;
            }
            match recording.faults.strike(CallKind::Allocate, name) {
                Some(_) => self.has_room.store(false, Ordering::Relaxed),
                None => recording.perform(Call::Allocate { file: *file, bytes: ROOM_BYTES }),
            }
        }
    }
}

impl DiskFile for SimLog {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.make_room(bytes.len());
        self.file.append(bytes)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}
