//! The directory the stores are in, and the promise never to delete what we did not make.
//!
//! A directory we use holds a marker file, `.profilebench`:
//!
//! ```text
//! marker := first line, for people; then one line for each store we made in it: its directory's name
//! ```
//!
//! A name is entered before its directory is made, so after a crash the marker names at least what is there. Emptying
//! removes the directories the marker names and nothing else: a directory without a marker, or with anything beside
//! what its marker names, is refused whole. Links are never followed. The marker is locked while a run lasts, so
//! neither can two runs share a directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const MARKER: &str = ".profilebench";
const MARKER_HEAD: &str = "profilebench made the directories below and may delete them";
/// No marker of ours is longer.
const MARKER_BYTES_MAX: u64 = 1 << 16;

/// Why a directory is not used. `Display` is a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A directory nobody should give away.
    #[error("{} is {what}; name a directory of its own with --data", path.display())]
    Protected {
        /// The directory.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Something in it, and no marker.
    #[error(
        "{} is not empty and was not made by profilebench, so nothing in it is touched; name an empty or new directory \
         with --data", path.display()
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// A marker, and something that it does not name.
    #[error(
        "{} holds {entry:?}, which profilebench did not make, so nothing in it is touched; move that away first",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first such entry.
        entry: String,
    },
    /// Stores of an earlier run.
    #[error("{} holds the stores of an earlier run; add --clean to remove them", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Another run is using it.
    #[error("{} is in use by another run; wait for it, or name another directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// Too little room.
    #[error(
        "{} has {} MiB free, and the run may need {} MiB ({why}); free some, use fewer profiles, or name a directory \
         on a larger disk with --data", path.display(), free >> 20, (needed >> 20) + 1
    )]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Bytes free.
        free: u64,
        /// Bytes estimated.
        needed: u64,
        /// How they were estimated.
        why: String,
    },
    /// The operating system refused a call.
    #[error("could not {action} {}: {source}; name a directory you may write to", path.display())]
    Unusable {
        /// The call, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Refusal {
    /// Whether the path itself is wrong, rather than what is there.
    pub fn is_unusable(&self) -> bool {
        matches!(self, Self::Unusable { .. })
    }
}

/// Result of a call on a data directory.
pub type Result<T> = std::result::Result<T, Refusal>;

/// A marked directory, ours as long as this lives.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// Locked.
    marker: File,
    stores: Vec<String>,
}

impl DataDirectory {
    /// Makes `path` ours: creates it, takes it if it is empty, or, with `clean`, empties it of an earlier run.
    pub fn prepare(path: &Path, clean: bool) -> Result<Self> {
        fs::create_dir_all(path).map_err(unusable("create", path))?;
        let path = fs::canonicalize(path).map_err(unusable("find", path))?;
        refuse_protected(&path)?;
        let entries = entries(&path)?;
        if !entries.is_empty() && !is_plain_file(&path.join(MARKER)) {
            return Err(Refusal::NotOurs { path });
        }
        let mut directory = Self::lock(path)?;
        directory.refuse_foreign(&entries)?;
        if !clean && entries.iter().any(|entry| entry != MARKER) {
            return Err(Refusal::NotEmpty { path: directory.path });
        }
        directory.empty()?;
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new, empty directory for a store; one of that name from before is removed.
    ///
    /// # Panics
    ///
    /// If `store` is not made of small letters, digits and `-`.
    pub fn fresh(&mut self, store: &str) -> Result<PathBuf> {
        assert!(is_store_name(store), "{store:?} is no name for a store's directory");
        let path = self.path.join(store);
        if self.stores.iter().any(|name| name == store) {
            remove(&path)?;
        } else {
            self.marker
                .write_all(format!("{store}\n").as_bytes())
                .map_err(unusable("write", &self.path.join(MARKER)))?;
            self.stores.push(store.to_owned());
        }
        fs::create_dir(&path).map_err(unusable("create", &path))?;
        Ok(path)
    }

    /// Removes one store.
    pub fn discard(&self, store: &str) -> Result<()> {
        if self.stores.iter().any(|name| name == store) { remove(&self.path.join(store)) } else { Ok(()) }
    }

    /// Removes the stores, the marker, and the directory if nothing else is in it.
    pub fn remove(mut self) -> Result<()> {
        self.empty()?;
        let marker = self.path.join(MARKER);
        fs::remove_file(&marker).map_err(unusable("remove", &marker))?;
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                Err(unusable("remove", &self.path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Refuses if fewer than `needed` bytes are free; `why` says where the number comes from.
    pub fn require_space(&self, needed: u64, why: &str) -> Result<()> {
        let found = rustix::fs::statvfs(&self.path)
            .map_err(|error| unusable("ask for free space of", &self.path)(error.into()))?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if free >= needed {
            return Ok(());
        }
        Err(Refusal::NoSpace { path: self.path.clone(), free, needed, why: why.to_owned() })
    }

    fn lock(path: PathBuf) -> Result<Self> {
        let file = path.join(MARKER);
        let mut marker =
            OpenOptions::new().read(true).append(true).create(true).open(&file).map_err(unusable("open", &file))?;
        match marker.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refusal::InUse { path }),
            Err(TryLockError::Error(error)) => return Err(unusable("lock", &file)(error)),
        }
        let mut text = Vec::new();
        (&mut marker).take(MARKER_BYTES_MAX).read_to_end(&mut text).map_err(unusable("read", &file))?;
        let stores = decode_marker(&String::from_utf8_lossy(&text));
        Ok(Self { path, marker, stores })
    }

    fn refuse_foreign(&self, entries: &[String]) -> Result<()> {
        let ours = |entry: &String| {
            entry == MARKER || (self.stores.contains(entry) && is_plain_directory(&self.path.join(entry)))
        };
        match entries.iter().find(|entry| !ours(entry)) {
            Some(entry) => Err(Refusal::Foreign { path: self.path.clone(), entry: entry.clone() }),
            None => Ok(()),
        }
    }

    /// Removes every store and starts the marker anew.
    fn empty(&mut self) -> Result<()> {
        for store in &self.stores {
            remove(&self.path.join(store))?;
        }
        self.stores.clear();
        let file = self.path.join(MARKER);
        self.marker.set_len(0).map_err(unusable("write", &file))?;
        self.marker.write_all(format!("{MARKER_HEAD}\n").as_bytes()).map_err(unusable("write", &file))
    }
}

/// Names of the stores a marker enters. Lines that are no store's name are not ours to act on.
fn decode_marker(text: &str) -> Vec<String> {
    text.lines().skip(1).filter(|line| is_store_name(line)).map(str::to_owned).collect()
}

/// No separator, no dot: such a name cannot lead out of the directory.
fn is_store_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=80).contains(&name.len()) && name.bytes().all(plain)
}

fn refuse_protected(path: &Path) -> Result<()> {
    let same = |other: Option<PathBuf>| {
        other.and_then(|other| fs::canonicalize(other).ok()).is_some_and(|other| other == path)
    };
    let what = if path.parent().is_none() {
        "the root of the file system"
    } else if same(std::env::home_dir()) {
        "your home directory"
    } else if same(std::env::current_dir().ok()) {
        "the current directory"
    } else {
        return Ok(());
    };
    Err(Refusal::Protected { path: path.to_owned(), what })
}

fn entries(path: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(unusable("read", path))? {
        names.push(entry.map_err(unusable("read", path))?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

fn is_plain_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Removes a store's directory and all in it. A link in its place is removed itself, never what it leads to.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable("remove", path)(error)),
        _ => Ok(()),
    }
}

fn unusable(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Refusal {
    let path = path.to_owned();
    move |source| Refusal::Unusable { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_is_made_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let mut data = DataDirectory::prepare(&path, false).unwrap();
        fs::write(data.fresh("floor").unwrap().join("file"), "bytes").unwrap();
        assert_eq!(fs::read_dir(data.fresh("floor").unwrap()).unwrap().count(), 0, "fresh means empty");
        data.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_of_somebody_else_survives_clean() {
        let photos = tempfile::tempdir().unwrap();
        fs::create_dir(photos.path().join("sqlite")).unwrap();
        fs::write(photos.path().join("sqlite/holiday.jpg"), "sea").unwrap();
        for clean in [false, true] {
            let refusal = DataDirectory::prepare(photos.path(), clean).unwrap_err();
            assert!(matches!(refusal, Refusal::NotOurs { .. }), "{refusal}");
            assert_eq!(fs::read_to_string(photos.path().join("sqlite/holiday.jpg")).unwrap(), "sea");
            assert!(!photos.path().join(MARKER).exists(), "it must not become ours");
        }
    }

    #[test]
    fn stores_of_an_earlier_run_need_clean() {
        let parent = tempfile::tempdir().unwrap();
        let mut data = DataDirectory::prepare(parent.path(), false).unwrap();
        fs::write(data.fresh("sqlite").unwrap().join("db"), "rows").unwrap();
        drop(data);
        assert!(matches!(DataDirectory::prepare(parent.path(), false), Err(Refusal::NotEmpty { .. })));
        assert!(parent.path().join("sqlite/db").exists());
        DataDirectory::prepare(parent.path(), true).unwrap();
        assert!(!parent.path().join("sqlite").exists());
    }

    #[test]
    fn a_foreign_file_beside_our_stores_keeps_everything() {
        let parent = tempfile::tempdir().unwrap();
        drop(DataDirectory::prepare(parent.path(), false).unwrap().fresh("floor").unwrap());
        fs::write(parent.path().join("notes"), "mine").unwrap();
        let refusal = DataDirectory::prepare(parent.path(), true).unwrap_err();
        assert!(matches!(&refusal, Refusal::Foreign { entry, .. } if entry == "notes"), "{refusal}");
        assert!(parent.path().join("floor").exists());
    }

    #[test]
    fn a_link_in_the_place_of_a_store_is_not_followed() {
        let (parent, photos) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(photos.path().join("holiday.jpg"), "sea").unwrap();
        let store = DataDirectory::prepare(parent.path(), false).unwrap().fresh("floor").unwrap();
        fs::remove_dir(&store).unwrap();
        std::os::unix::fs::symlink(photos.path(), &store).unwrap();
        assert!(matches!(DataDirectory::prepare(parent.path(), true), Err(Refusal::Foreign { .. })));
        assert!(photos.path().join("holiday.jpg").exists());
    }

    #[test]
    fn a_marker_cannot_name_a_way_out() {
        let text = "head\n../photos\nfloor\n/etc\n.\n..\na/b\n\nsqlite\n";
        assert_eq!(decode_marker(text), ["floor", "sqlite"]);
    }

    #[test]
    fn root_home_and_the_current_directory_are_refused() {
        for path in [PathBuf::from("/"), std::env::home_dir().unwrap(), std::env::current_dir().unwrap()] {
            let refusal = DataDirectory::prepare(&path, true).unwrap_err();
            assert!(matches!(refusal, Refusal::Protected { .. }), "{refusal}");
        }
    }

    #[test]
    fn two_runs_cannot_share_a_directory() {
        let parent = tempfile::tempdir().unwrap();
        let first = DataDirectory::prepare(parent.path(), false).unwrap();
        assert!(matches!(DataDirectory::prepare(parent.path(), true), Err(Refusal::InUse { .. })));
        drop(first);
        DataDirectory::prepare(parent.path(), true).unwrap();
    }

    #[test]
    fn too_little_room_is_refused_with_the_estimate() {
        let parent = tempfile::tempdir().unwrap();
        let data = DataDirectory::prepare(parent.path(), false).unwrap();
        data.require_space(1, "one byte").unwrap();
        let refusal = data.require_space(u64::MAX, "1 KiB a profile").unwrap_err().to_string();
        assert!(refusal.contains("1 KiB a profile"), "{refusal}");
    }
}
