//! Snapshots with names, which outlive the process: states of a database that stay as they were.
//!
//! ```text
//! saved snapshot NAME := a backup in the subdirectory snapshots/NAME, with linked files
//! ```
//!
//! So saving one takes no longer than a flush, and no space until the database moves on: a segment that is merged away stays
//! there as long as a saved snapshot has it. Like any backup it is whole once its manifest is there, and no snapshot before;
//! removing one begins with the manifest.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::database::Database;
use super::disk::{Disk, LOCK, RealDisk};
use super::error::{Error, Result};
use super::manifest::{MANIFEST, Manifest};
use super::options::Options;

/// Longest name of a saved snapshot, in bytes.
pub const SNAPSHOT_NAME_BYTES_MAX: usize = 100;
const SNAPSHOTS: &str = "snapshots";

/// A saved snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSnapshot {
    /// Its name.
    pub name: String,
    /// Number of the last commit in it.
    pub sequence: u64,
    /// Length of its segments in bytes. What the database still has itself takes no space of its own.
    pub bytes: u64,
}

impl Database {
    /// Saves everything committed so far as a snapshot called `name`, which stays until it is removed: 1 to
    /// [`SNAPSHOT_NAME_BYTES_MAX`] letters of ASCII, digits, `-` and `_`. Fails if there is one of this name.
    ///
    /// On a file system without hard links all is copied.
    pub fn save_snapshot(&self, name: &str) -> Result<SavedSnapshot> {
        let dir = self.snapshot_dir(name)?;
        let all = self.snapshots_dir();
        let all = RealDisk::open(&all, true)?;
        match fs::symlink_metadata(&dir) {
            Ok(_) if is_whole(&dir) => return Err(taken(name)),
            // What a crash has left of one that was being saved or removed.
            Ok(_) => remove_dir(&dir)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("find", &dir, error)),
        }
        let report = self.backup_on(&RealDisk::open(&dir, true)?, None, true)?;
        all.sync_dir()?;
        Ok(SavedSnapshot { name: name.to_owned(), sequence: report.sequence, bytes: report.bytes })
    }

    /// The saved snapshots, by name.
    pub fn saved_snapshots(&self) -> Result<Vec<SavedSnapshot>> {
        let dir = self.snapshots_dir();
        let names = match RealDisk::open(&dir, false) {
            Ok(disk) => disk.list()?,
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut saved = Vec::new();
        for name in names.into_iter().filter(|name| check_name(name).is_ok() && is_whole(&dir.join(name))) {
            let manifest = Manifest::load(&RealDisk::open(&dir.join(&name), false)?)?;
            let bytes = manifest.segments().map(|segment| segment.file_bytes).sum();
            saved.push(SavedSnapshot { name, sequence: manifest.flushed, bytes });
        }
        saved.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(saved)
    }

    /// Opens a saved snapshot: a database of its own with what there was when it was saved, read-only, with the options of
    /// this one. It may be open once at a time, also when this one is closed.
    pub fn open_snapshot(&self, name: &str) -> Result<Self> {
        let dir = self.known(name)?;
        Self::open(dir, Options { read_only: true, ..self.shared.options.clone() })
    }

    /// Removes a saved snapshot, and with it what only it had. Fails while it is open.
    pub fn remove_snapshot(&self, name: &str) -> Result<()> {
        let dir = self.known(name)?;
        remove_dir(&dir)
    }

    fn snapshots_dir(&self) -> PathBuf {
        self.shared.disk.path().join(SNAPSHOTS)
    }

    fn snapshot_dir(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        Ok(self.snapshots_dir().join(name))
    }

    fn known(&self, name: &str) -> Result<PathBuf> {
        let dir = self.snapshot_dir(name)?;
        if is_whole(&dir) {
            return Ok(dir);
        }
        let found = format!("{}, and there is none", name.escape_debug());
        Err(Error::InvalidOption { option: "name", found, expected: "`saved_snapshots` lists those there are" })
    }
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=SNAPSHOT_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let expected = "a snapshot is named by 1 to 100 letters of ASCII, digits, `-` and `_`";
    let found = name.chars().take(SNAPSHOT_NAME_BYTES_MAX).collect::<String>().escape_debug().to_string();
    Err(Error::InvalidOption { option: "name", found, expected })
}

fn taken(name: &str) -> Error {
    let found = format!("{name}, and there is one of this name");
    Error::InvalidOption { option: "name", found, expected: "remove that snapshot first, or name another" }
}

fn is_whole(dir: &Path) -> bool {
    dir.join(MANIFEST).exists()
}

/// Removes a saved snapshot, or what is left of one. Once its manifest is gone, it is none.
fn remove_dir(dir: &Path) -> Result<()> {
    let disk = RealDisk::open(dir, false)?;
    let lock = disk.lock()?;
    if is_whole(dir) {
        disk.remove(MANIFEST)?;
        disk.sync_dir()?;
    }
    for name in disk.list()?.iter().filter(|name| *name != LOCK) {
        disk.remove(name)?;
    }
    disk.remove(LOCK)?;
    drop(lock);
    fs::remove_dir(dir).map_err(|error| Error::io("remove", dir, error))
}

#[cfg(test)]
mod tests;
