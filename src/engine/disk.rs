//! Everything the engine does to a file system, and nothing more: one directory of append-only files.
//!
//! The crash, fault and corruption tests stand on this seam, so nothing in the engine touches a file except through it.
//! Names are file names inside the directory, always formatted by the engine and never read from a file's content.
//!
//! # What a disk promises
//!
//! - After `DiskFile::sync` returned, the bytes appended so far survive a power loss. The *name* of a new, renamed or
//!   removed file survives once `Disk::sync_dir` returned.
//! - Without them any subset of the bytes and names may survive, cut at any byte, in any order; a grown file may read
//!   as zeros or garbage.
//! - A log may be longer than what was appended to it: it goes on with zeros, for which there is room on the disk. Appended
//!   bytes are stored there in any order, so a process that dies in the middle of an append may leave any of them.
//! - After a failed sync nothing is known about unsynced bytes: it is never retried.
//! - A process that dies loses nothing that a call returned for; only a power loss does. The two are told apart by
//!   [`Disk::boot_id`].
//!
//! Tests and torture run on `disk/sim.rs`, a disk in memory that promises this and not one byte more.

#[cfg(target_os = "linux")]
mod log;
#[cfg(feature = "cli")]
pub(crate) mod sim;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::error::{Error, Result};
#[cfg(target_os = "linux")]
use super::sync::Mutex;

#[cfg(target_os = "linux")]
use self::log::LogTail;

/// Name of the lock file.
pub const LOCK: &str = "LOCK";

/// One directory of a file system.
pub trait Disk: Send + Sync {
    /// The directory, for messages.
    fn path(&self) -> &Path;

    /// Takes exclusive ownership until the guard is dropped; [`Error::AlreadyOpen`] if another handle has it.
    fn lock(&self) -> Result<Box<dyn Send + Sync>>;

    /// Names of all entries, in no order.
    fn list(&self) -> Result<Vec<String>>;

    /// Makes a new, empty file for appending and reading. Fails if the name is taken.
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>>;

    /// Makes a new, empty file for a log: many small appends. It may be longer than what was appended to it, and go on
    /// with zeros. A disk that knows no better makes a file like any other.
    fn create_log(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.create(name)
    }

    /// Opens a regular file for reading.
    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>>;

    /// Renames a file, replacing the target.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> Result<()>;

    /// Gives the file `name` of the disk `from` the same name here as well, without a copy of its content. `false` where
    /// that cannot be: on another file system, say, or because there is no such file. A disk that knows no better never
    /// can. Fails if the name is taken.
    fn link(&self, name: &str, from: &dyn Disk) -> Result<bool> {
        let _ = (name, from);
        Ok(false)
    }

    /// The open directory that it is, if it is one of the operating system.
    fn directory(&self) -> Option<&File> {
        None
    }

    /// Makes names durable.
    fn sync_dir(&self) -> Result<()>;

    /// Changes whenever writes that were not synced may have been lost since: on Linux the kernel's boot id. `None`
    /// where there is no telling, which is taken as a change at every open.
    fn boot_id(&self) -> Result<Option<u128>>;
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty")]
pub trait DiskFile: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> Result<u64>;

    /// Fills `buffer` from `offset`; an error if the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Appends all of `bytes`. After an error an unknown part of them is there.
    fn append(&self, bytes: &[u8]) -> Result<()>;

    /// Makes content and length durable.
    fn sync(&self) -> Result<()>;
}

/// Makes `buffer` have `len` bytes to read those of the file `name` into; what is in it is to be overwritten.
///
/// # Errors
/// Where there is no memory for them: anybody can make a sparse file of any length, which is no reason to abort.
pub(super) fn resize(buffer: &mut Vec<u8>, len: usize, name: &str) -> Result<()> {
    buffer.truncate(len);
    buffer
        .try_reserve_exact(len - buffer.len())
        .map_err(|_| Error::io("find memory to read", Path::new(name), io::ErrorKind::OutOfMemory.into()))?;
    buffer.resize(len, 0);
    Ok(())
}

/// The lock of a disk that is only read, unless it cannot be written to: then nobody has it open for writing.
pub(super) fn lock_to_read(disk: &dyn Disk) -> Result<Box<dyn Send + Sync>> {
    match disk.lock() {
        Err(Error::Io { source, .. })
            if matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok(Box::new(()))
        }
        locked => locked,
    }
}

/// A directory of the operating system. Files are private to their owner (0600, directory 0700) whatever the umask.
///
/// Files are named relative to the open directory: it stays the same one when it is moved, and when the process changes
/// its working directory.
pub struct RealDisk {
    /// As it was named when it was opened, for messages.
    dir: PathBuf,
    handle: File,
}

impl RealDisk {
    /// Opens `dir`, making it if it is not there and `create` says so.
    pub fn open(dir: &Path, create: bool) -> Result<Self> {
        if create {
            match fs::DirBuilder::new().mode(0o700).create(dir) {
                Ok(()) => sync_parent(dir)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("create directory", dir, error)),
            }
        }
        Ok(Self { dir: dir.to_path_buf(), handle: open_directory(dir)? })
    }

    fn open_with(&self, name: &str, action: &'static str, flags: OFlags) -> Result<(PathBuf, File)> {
        let path = self.dir.join(name);
        match self.open_regular(name, flags) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(Error::io(action, &path, error)),
        }
    }

    fn open_regular(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // A symlink is refused, and a FIFO in place of a file must not block.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = File::from(retry_on_intr(|| rustix::fs::openat(&self.handle, name, flags, mode))?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(file)
    }

    /// Locks the directory itself, for the case that somebody removes the lock file of a database that is open. A second
    /// lock on what the first one guards already, so a file system that cannot lock directories does without.
    fn lock_directory(&self) -> Result<File> {
        let directory = open_directory_at(&self.handle).map_err(|error| Error::io("lock", &self.dir, error))?;
        match directory.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::AlreadyOpen { dir: self.dir.clone(), pid: None }),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(directory),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = Dir::read_from(&self.handle)?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.filter(|name| !matches!(name.as_deref(), Ok("." | ".."))).collect()
    }
}

fn open_directory(dir: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECTORY.bits().cast_signed())
        .open(dir)
        .map_err(|error| Error::io("open directory", dir, error))
}

/// A handle of the same directory that is locked and closed by itself.
fn open_directory_at(handle: &File) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(retry_on_intr(|| rustix::fs::openat(handle, ".", flags, Mode::empty()))?))
}

/// Makes the name of a new directory durable.
fn sync_parent(dir: &Path) -> Result<()> {
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    open_directory(parent)?.sync_all().map_err(|error| Error::io("sync directory", parent, error))
}

impl Disk for RealDisk {
    fn path(&self) -> &Path {
        &self.dir
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        let (path, mut file) = self.open_with(LOCK, "lock", OFlags::RDWR | OFlags::CREATE)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(Error::AlreadyOpen { dir: self.dir.clone(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, error)),
        }
        let directory = self.lock_directory()?;
        write_pid(&mut file).map_err(|error| Error::io("write", &path, error))?;
        Ok(Box::new((file, directory)))
    }

    fn list(&self) -> Result<Vec<String>> {
        self.names().map_err(|error| Error::io("list", &self.dir, error))
    }

    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let (path, file) = self.open_with(name, "create", flags)?;
        Ok(Box::new(RealFile { path, file }))
    }

    #[cfg(target_os = "linux")]
    fn create_log(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let (path, file) = self.open_with(name, "create", OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let tail = Mutex::new(LogTail::new(&file));
        Ok(Box::new(RealLog { file: RealFile { path, file }, tail }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let (path, file) = self.open_with(name, "open", OFlags::RDONLY)?;
        Ok(Box::new(RealFile { path, file }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        rustix::fs::renameat(&self.handle, from, &self.handle, to)
            .map_err(|error| Error::io("rename", &self.dir.join(from), error.into()))
    }

    fn remove(&self, name: &str) -> Result<()> {
        rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())
            .map_err(|error| Error::io("remove", &self.dir.join(name), error.into()))
    }

    fn link(&self, name: &str, from: &dyn Disk) -> Result<bool> {
        let Some(directory) = from.directory() else { return Ok(false) };
        match rustix::fs::linkat(directory, name, &self.handle, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(Error::io("link", &self.dir.join(name), error.into())),
        }
    }

    fn directory(&self) -> Option<&File> {
        Some(&self.handle)
    }

    fn sync_dir(&self) -> Result<()> {
        self.handle.sync_all().map_err(|error| Error::io("sync directory", &self.dir, error))
    }

    fn boot_id(&self) -> Result<Option<u128>> {
        let path = Path::new("/proc/sys/kernel/random/boot_id");
        match fs::read_to_string(path) {
            Ok(text) => {
                let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
                Ok(u128::from_str_radix(&digits, 16).ok())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", path, error)),
        }
    }
}

/// Tells the next opener who has the lock. A lock file that has another name belongs to somebody else too, and is left as
/// it is.
fn write_pid(file: &mut File) -> io::Result<()> {
    if file.metadata()?.nlink() > 1 {
        return Ok(());
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

struct RealFile {
    path: PathBuf,
    file: File,
}

impl DiskFile for RealFile {
    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|metadata| metadata.size()).map_err(|error| Error::io("stat", &self.path, error))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| Error::io("read", &self.path, error))
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        (&self.file).write_all(bytes).map_err(|error| Error::io("append to", &self.path, error))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::io("sync", &self.path, error))
    }
}

/// A log, see `disk/log.rs`.
#[cfg(target_os = "linux")]
struct RealLog {
    file: RealFile,
    /// Held for one append, and never waited for: there is one writer at a time.
    tail: Mutex<LogTail>,
}

#[cfg(target_os = "linux")]
impl DiskFile for RealLog {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        let RealFile { path, file } = &self.file;
        self.tail.lock().append(file, bytes).map_err(|error| Error::io("append to", path, error))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}
