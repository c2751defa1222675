//! `profilebench backup` and `restore`: a checked copy of a database, and back.

use std::path::Path;

use anyhow::{Context, Result};

use crate::engine::{self, BackupOptions, BackupReport, Database, Error, Options};
use crate::report::format;

use super::Terminal;
use super::check::find;
use super::exit::{self, Exit, Usage};

/// Backs the database in `dir` up to the new directory `to`, and reads what was written.
pub(super) fn backup(dir: &Path, to: &Path, options: &BackupOptions, terminal: &mut Terminal) -> Result<Exit> {
    let database = Database::open(find(dir), Options { create: false, ..Options::default() })
        .map_err(|error| Usage(error.to_string()))?;
    let report = database.backup(to, options).map_err(|error| failure(error, to))?;
    database.close()?;
    tell(&report, to, terminal)
}

/// Makes a database in the new directory `to` from the backup in `from`.
pub(super) fn restore(from: &Path, to: &Path, terminal: &mut Terminal) -> Result<Exit> {
    let report = match engine::restore(from, to) {
        Ok(report) => report,
        Err(error @ Error::Corruption { .. }) => {
            let hint =
                format!("the backup is damaged; `profilebench salvage {} --to NEW` copies the rest", from.display());
            exit::unless_closed(writeln!(terminal.out, "{error}").map_err(Into::into))?;
            writeln!(terminal.err, "{hint}")?;
            return Ok(Exit::EngineFailed);
        }
        Err(error) => return Err(failure(error, to)),
    };
    tell(&report, to, terminal)
}

/// Reads the copy as a whole before anybody relies on it.
fn tell(report: &BackupReport, to: &Path, terminal: &mut Terminal) -> Result<Exit> {
    let copy =
        Database::open(to, Options { read_only: true, ..Options::default() }).context("the copy does not open")?;
    let verified = copy.verify()?;
    for problem in &verified.problems {
        writeln!(terminal.out, "{problem}")?;
    }
    let verdict = if verified.problems.is_empty() { "read and sound" } else { "damaged; remove it" };
    let linked = match report.linked_bytes {
        0 => String::new(),
        bytes => format!(", {} of them linked", format::bytes(bytes as f64)),
    };
    let line = format!(
        "{}: {} segments of {}{linked}, up to commit {}: {verdict}",
        to.display(),
        report.segments,
        format::bytes(report.bytes as f64),
        format::grouped(report.sequence),
    );
    exit::unless_closed(writeln!(terminal.out, "{line}").map_err(Into::into))?;
    Ok(if verified.problems.is_empty() { Exit::Done } else { Exit::EngineFailed })
}

/// That a copy cannot be written is a failure; anything else is one of what was typed.
fn failure(error: Error, to: &Path) -> anyhow::Error {
    match &error {
        Error::Io { path, .. } if path.starts_with(to) => error.into(),
        Error::Poisoned { .. } | Error::Background { .. } | Error::Panicked { .. } => error.into(),
        _ => Usage(error.to_string()).into(),
    }
}
