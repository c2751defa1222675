//! What failed, in which file, at which offset.

use std::io;
use std::path::{Path, PathBuf};

/// Result of an engine call.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything an engine call can fail with.
///
/// `Display` is a sentence for a person: what happened, where, and what to do next where that is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a call.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// The call, as a verb: `read`, `sync`, `rename`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Bytes on disk are not what was written.
    #[error("{file} is damaged at byte {offset}: {what}: expected {expected}, found {found}")]
    Corruption {
        /// File name inside the database directory.
        file: String,
        /// Offset of the damaged part, in bytes from the start of the file.
        offset: u64,
        /// The part: `frame checksum`, `block header`.
        what: &'static str,
        /// What a sound file would hold.
        expected: String,
        /// What was found.
        found: String,
    },
    /// Another handle owns the directory.
    #[error("{} is already open{}; close that handle first, or open another directory", dir.display(), owner(*.pid))]
    AlreadyOpen {
        /// The database directory.
        dir: PathBuf,
        /// Process id its owner left in the lock file, if readable.
        pid: Option<u32>,
    },
    /// A log write or sync failed earlier. What reached the disk is unknown, so writes wait for a reopen.
    #[error("writes are refused until the database is reopened, after an earlier failure: {cause}")]
    Poisoned {
        /// The first failure.
        cause: String,
    },
    /// A flush or merge failed in the background. See [`Database::resume`](super::Database::resume).
    #[error(
        "background work failed: {cause}; writes are refused until the cause is gone and `resume` or a reopen succeeds"
    )]
    Background {
        /// The first failure, or that of the last try to resume.
        cause: String,
    },
    /// Background work panicked. Reads go on, writes wait for a reopen.
    #[error("{cause}; writes are refused until the database is reopened")]
    Panicked {
        /// What the panic said.
        cause: String,
    },
    /// A key, value, name or batch over its documented limit. Nothing was written.
    #[error("{what} is {len} bytes long; the limit is {max}")]
    TooLarge {
        /// What is too large: `key`, `value`, `batch`, `tree name`.
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// Numbers that each file and each commit has one of are used up. Nothing was changed. See
    /// [`salvage`](super::salvage()).
    #[error(
        "the {what} of this database are used up, and none is larger than {max}; what is in it can be read, and \
         `salvage` copies it to a new one"
    )]
    UsedUp {
        /// Numbers of what: `file numbers`, `commit numbers`.
        what: &'static str,
        /// The largest there is.
        max: u64,
    },
    /// A new tree in a database that has as many as it can. Nothing was changed.
    #[error("the database has {max} trees, which is the limit; keep several in one, under keys that begin differently")]
    TooManyTrees {
        /// The limit, [`TREES_MAX`](super::TREES_MAX).
        max: usize,
    },
    /// An option or a layout outside its range. Nothing was opened or made.
    #[error("option {option} is {found}; {expected}")]
    InvalidOption {
        /// Name of the field of `Options`, or `layout`.
        option: &'static str,
        /// What was given.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// The files were written by a format this version does not read. Nothing was changed.
    #[error("{file} has format version {found}; this build reads version {supported}")]
    UnsupportedFormat {
        /// File name inside the database directory.
        file: String,
        /// Version or feature found in the file.
        found: String,
        /// What this build reads.
        supported: String,
    },
    /// The directory holds files, but not a database.
    #[error("{} is not a profilestore database: {reason}", dir.display())]
    NotADatabase {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Something was committed since a transaction began that it depends on. It has changed nothing.
    #[error("{what} changed since the transaction began, which has done nothing; run it again")]
    Conflict {
        /// What was changed.
        what: String,
    },
    /// A value that is to be counted up is none of [`Database::increment`](super::Database::increment)'s. Nothing was
    /// changed.
    #[error("a counter is 8 bytes long, and this value {len}; count under a key of its own")]
    NotACounter {
        /// Length of the value in bytes.
        len: u64,
    },
    /// A counter does not go so far. Nothing was changed.
    #[error("a counter goes from {} to {}, and the sum is outside of that", i64::MIN, i64::MAX)]
    CounterOverflow,
    /// A tree handle that this database did not give out.
    #[error("tree {id} does not exist in this database")]
    UnknownTree {
        /// The number in the handle.
        id: u32,
    },
    /// A change to a database that was opened with [`Options::read_only`](super::Options::read_only).
    #[error("the database was opened read-only; open it without the option `read_only` to change it")]
    ReadOnly,
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" by process {pid}"))
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers hand over what they have just made")]
    pub(crate) fn corruption(
        file: &str,
        offset: u64,
        what: &'static str,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self::Corruption {
            file: file.to_owned(),
            offset,
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}
