//! How the program ends: the exit codes, and what is wrong with what was typed.

use std::io;
use std::process::ExitCode;

use crate::bench::directory::Refusal;

/// Text of `--help` about [`Exit`].
pub(super) const HELP: &str = "\
Exit codes:
    0  every phase of every engine completed and all checksums agree
    1  a requirement failed, or results could not be written
    2  bad arguments, workload file or result file
    3  checksum mismatch, between engines or with a published result
    4  an engine failed, and the results of the others are written; check found
       damage; torture found a violation
    5  an engine ran into --timeout; finished phases are written
    6  environment refused: not enough free disk, a data directory that is not
       ours or not empty, a durability class the engine does not offer
  130  interrupted; finished phases are written
When several happened, the first of 3, 4, 5, 130 counts.";

/// Text of `compare --help` about [`Exit`].
pub(super) const HELP_OF_COMPARE: &str = "\
Exit codes:
    0  the two were compared, and no phase became slower beyond noise
    2  not two result files, or results of different work; it says what differs
    3  the same engine gave different answers, or wrong ones
    7  at least one phase became slower beyond noise";

/// Text of `check --help` about [`Exit`].
pub(super) const HELP_OF_CHECK: &str = "\
Exit codes:
    0  everything was read, and nothing is wrong
    2  it cannot be checked: not a database, in use, or not to be read
    4  damage: a file that is not what was written, or an index that disagrees
       with the records; each problem has a line of its own";

/// Text of `inspect --help` about [`Exit`].
pub(super) const HELP_OF_INSPECT: &str = "\
Exit codes:
    0  it was told
    2  it does not open: not a database, in use, damaged, or not to be read;
       check says what is wrong with it";

/// Text of `salvage --help` about [`Exit`].
pub(super) const HELP_OF_SALVAGE: &str = "\
Exit codes:
    0  everything was copied
    1  the copy could not be written
    2  nothing can be salvaged: not a database, in use, no sound copy of its
       manifest, or a new directory that is not empty
    4  damage: each part that is lost has a line of its own; what is left was
       copied, although indexes may not be built from it where a unique key
       belongs to two of the copied records";

/// Text of `backup --help` about [`Exit`].
pub(super) const HELP_OF_BACKUP: &str = "\
Exit codes:
    0  the backup is there, was read, and is sound
    1  the backup could not be written
    2  not a database, in use, an earlier backup of something else, or a new
       directory that is not empty
    4  what was written does not read back; each problem has a line of its own";

/// Text of `restore --help` about [`Exit`].
pub(super) const HELP_OF_RESTORE: &str = "\
Exit codes:
    0  the database is there, was read, and is sound
    1  it could not be written
    2  not a backup, in use, not finished, or a new directory that is not empty
    4  the backup is damaged, and nothing was made; salvage copies what is left";

/// Text of `export --help` about [`Exit`].
pub(super) const HELP_OF_EXPORT: &str = "\
Exit codes:
    0  every profile was written
    1  the text could not be written, or a profile cannot be written in this
       form; a file that was begun is removed again
    2  it does not open, or holds no profiles; the file is there already";

/// Text of `import --help` about [`Exit`].
pub(super) const HELP_OF_IMPORT: &str = "\
Exit codes:
    0  every profile was entered, or skipped as --on-conflict says
    1  the database could not be written
    2  bad arguments, a file or database that does not open, or a line that is
       not entered; it says how many profiles were, and where to go on";

/// Text of `torture --help` about [`Exit`].
pub(super) const HELP_OF_TORTURE: &str = "\
Exit codes:
    0  all was tried, and every promise was kept
    2  bad arguments
    4  a violation, told on standard error; after ten of them a kind gives up
    6  --dir is not ours or not empty, or --schedules in a build without them
  130  interrupted; what was tried until then is told";

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Done,
    /// A requirement failed, or something that should not fail did.
    Failed,
    /// What was typed, or a file that was named, cannot be used.
    BadArguments,
    /// Checksums differ.
    Mismatch,
    /// An engine failed, or a database is damaged.
    EngineFailed,
    /// An engine was stopped by `--timeout`.
    Timeout,
    /// The machine or a directory is not fit for the run.
    Refused,
    /// Stopped by the user.
    Interrupted,
    /// A phase became slower from one result to another.
    Slower,
}

impl Exit {
    /// The exit an error asks for. A reader that closed our pipe has seen enough: that is no failure.
    pub fn of(error: &anyhow::Error) -> Self {
        if error.is::<Usage>() {
            return Self::BadArguments;
        }
        if error.is::<Refused>() {
            return Self::Refused;
        }
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return if refusal.is_unusable() { Self::BadArguments } else { Self::Refused };
        }
        let closed = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        if error.chain().any(closed) { Self::Done } else { Self::Failed }
    }

    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::BadArguments => 2,
            Self::Mismatch => 3,
            Self::EngineFailed => 4,
            Self::Timeout => 5,
            Self::Refused => 6,
            Self::Slower => 7,
            Self::Interrupted => 130,
        }
    }

    /// The one of two exits that counts: a mismatch is never masked, a failure only by it.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        if self.rank() <= other.rank() { self } else { other }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Mismatch => 0,
            Self::EngineFailed => 1,
            Self::Timeout => 2,
            Self::Interrupted => 3,
            Self::Refused => 4,
            Self::BadArguments => 5,
            Self::Failed => 6,
            Self::Slower => 7,
            Self::Done => 8,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What was printed, unless its reader has gone: then there is nobody to tell, and nothing that counts is lost.
pub(super) fn unless_closed(told: anyhow::Result<()>) -> anyhow::Result<()> {
    told.or_else(|error| if Exit::of(&error) == Exit::Done { Ok(()) } else { Err(error) })
}

/// What is wrong with the arguments or a file they name: one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);

/// Why this machine or this build cannot do what was asked: one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(pub(super) String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_is_never_masked() {
        let all = [
            Exit::Done,
            Exit::Failed,
            Exit::BadArguments,
            Exit::EngineFailed,
            Exit::Timeout,
            Exit::Refused,
            Exit::Interrupted,
            Exit::Slower,
        ];
        for other in all {
            assert_eq!(Exit::Mismatch.or_worse(other), Exit::Mismatch);
            assert_eq!(other.or_worse(Exit::Mismatch), Exit::Mismatch);
            assert_eq!(Exit::Done.or_worse(other), other);
        }
        assert_eq!(Exit::Timeout.or_worse(Exit::EngineFailed), Exit::EngineFailed);
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let closed = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("could not print");
        assert_eq!(Exit::of(&closed), Exit::Done);
        let full = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(Exit::of(&full), Exit::Failed);
    }
}
