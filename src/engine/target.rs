//! Where a copy of a database may be made: in a directory that is empty or not there yet, and not in the database itself.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::{Error, Result};

/// Refuses `to` as the directory of a copy of the database in `from`. Nothing is made.
pub(super) fn check_target(from: &Path, to: &Path) -> Result<()> {
    let refused = |found: &str, expected| {
        Err(Error::InvalidOption { option: "to", found: format!("{}, {found}", to.display()), expected })
    };
    if resolved(to)?.starts_with(resolved(from)?) {
        return refused("which lies in the database", "name a directory outside of it");
    }
    match fs::read_dir(to).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => refused("which is not empty", "name an empty directory or one that does not exist yet"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("list", to, error)),
    }
}

/// Where `path` leads: without links and `..` as far as it is there, and what is to be made behind that.
fn resolved(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path).map_err(|error| Error::io("find", path, error))?;
    let mut behind = Vec::new();
    for ancestor in absolute.ancestors() {
        match fs::canonicalize(ancestor) {
            Ok(there) => return Ok(behind.iter().rev().fold(there, |path, name| path.join(name))),
            Err(error) if error.kind() == ErrorKind::NotFound => behind.extend(ancestor.file_name()),
            Err(error) => return Err(Error::io("find", path, error)),
        }
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(from: &Path, to: impl AsRef<Path>) -> bool {
        match check_target(from, to.as_ref()) {
            Ok(()) => false,
            Err(Error::InvalidOption { option: "to", .. }) => true,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_target_is_empty_and_outside_of_the_database() {
        let dir = tempfile::tempdir().expect("a directory");
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("deep")).expect("made");
        fs::create_dir(dir.path().join("empty")).expect("made");
        for refused in ["from", "from/deep", "from/new", "from/new/newer", "empty/../from/new", "", "from/../from"] {
            assert!(is_refused(&from, dir.path().join(refused)), "{refused}");
        }
        for free in ["new", "new/newer", "empty", "from-new"] {
            assert!(!is_refused(&from, dir.path().join(free)), "{free}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_into_the_database_is_seen_through() {
        let dir = tempfile::tempdir().expect("a directory");
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("deep")).expect("made");
        std::os::unix::fs::symlink(from.join("deep"), dir.path().join("link")).expect("made");
        assert!(is_refused(&from, dir.path().join("link")));
        assert!(is_refused(&from, dir.path().join("link/new")));
    }
}
