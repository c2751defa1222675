//! `profilebench salvage`: copies what is left of a damaged database, and tells what is lost.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::engine::{self, Database, Lost, LostPart, Options, SalvageReport};
use crate::store::{self, Error};

use super::exit::{self, Exit, Usage};
use super::{Terminal, check};

/// Copies the database in `from`, or the store that a run left there, to the new directory `to`.
pub(super) fn run(from: &Path, to: &Path, terminal: &mut Terminal) -> Result<Exit> {
    let from = check::find(from);
    let (database, report) =
        store::salvage(&from, to, Options::default()).map_err(|error| failure(error, &from, to))?;
    // What was copied is safe before anything else is tried with it.
    database.flush()?;
    exit::unless_closed(tell_losses(&report, terminal))?;
    let database = Arc::new(database);
    let built = build_indexes(&database)?;
    database.settle()?;
    database.close()?;
    exit::unless_closed(tell(&report, &built, to, terminal))?;
    Ok(if report.lost.is_empty() && built.is_ok() { Exit::Done } else { Exit::EngineFailed })
}

/// What is told of the indexes that were built from the copied records; or why that cannot be, where it is the records
/// that do not allow it.
fn build_indexes(database: &Arc<Database>) -> Result<Result<String, Error>> {
    if !check::holds_profiles(database) {
        return Ok(Ok(String::new()));
    }
    let (records, entries, problems) = match check::check_profiles(database) {
        Ok(checked) => checked,
        Err(error @ (Error::DuplicateKey { .. } | Error::Corruption { .. })) => return Ok(Err(error)),
        Err(error) => return Err(error).context("the records were copied, but their indexes cannot be built"),
    };
    anyhow::ensure!(problems.is_empty(), "the copy is not sound: {}", problems.join("; "));
    Ok(Ok(format!(", {records} profiles with {entries} index entries built from them")))
}

/// That the copy cannot be written, for want of room say, is a failure; that there is nothing to copy, or no place for it,
/// is one of what was typed.
fn failure(error: Error, from: &Path, to: &Path) -> anyhow::Error {
    match &error {
        Error::Engine(engine::Error::Io { path, .. }) if path.parent() == Some(to) && path != from => error.into(),
        Error::Engine(engine::Error::Poisoned { .. } | engine::Error::Background { .. }) => error.into(),
        _ => Usage(error.to_string()).into(),
    }
}

fn tell_losses(report: &SalvageReport, terminal: &mut Terminal) -> Result<()> {
    for lost in &report.lost {
        writeln!(terminal.out, "{}", describe(lost))?;
    }
    Ok(())
}

fn tell(report: &SalvageReport, built: &Result<String, Error>, to: &Path, terminal: &mut Terminal) -> Result<()> {
    let holds_entries = |lost: &Lost| lost.what != LostPart::Manifest;
    let verdict = if report.lost.iter().any(holds_entries) { "the rest is lost" } else { "nothing lost" };
    let SalvageReport { entries, batches, .. } = report;
    let built = match built {
        Ok(built) => built.clone(),
        Err(error) => format!(", but the indexes of these records cannot be built: {error}"),
    };
    writeln!(terminal.out, "{}: {entries} entries and {batches} batches of logs{built}: {verdict}", to.display())?;
    Ok(())
}

fn describe(Lost { file, offset, reason, what }: &Lost) -> String {
    let place = match reason {
        Some(reason) => format!("{file} cannot be read at byte {offset} ({reason})"),
        None if *what == LostPart::Batches => format!("{file} is damaged or torn at byte {offset}"),
        None => format!("{file} is damaged at byte {offset}"),
    };
    match what {
        LostPart::Entries { tree, between: (first, last), entries } => format!(
            "{place}: between \"{}\" and \"{}\" entries of tree {} are missing or older than they were ({entries} of \
             this file in all)",
            first.escape_ascii(),
            last.escape_ascii(),
            tree.escape_debug(),
        ),
        LostPart::Batches => format!("{place}: batches that were only there are lost"),
        LostPart::Manifest => format!("{place}: what it holds was read from its other copy"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_copy_that_cannot_be_written_is_no_bad_argument() {
        let exit = |error: engine::Error| Exit::of(&failure(error.into(), Path::new("new/old"), Path::new("new")));
        let full = |path: &str| engine::Error::Io {
            action: "append to",
            path: PathBuf::from(path),
            source: IoError::from(ErrorKind::StorageFull),
        };
        assert_eq!(exit(full("new/00000000000000000001.wal")), Exit::Failed);
        assert_eq!(exit(engine::Error::Background { cause: full("new/1.seg").to_string() }), Exit::Failed);
        assert_eq!(exit(full("new/old/00000000000000000001.wal")), Exit::BadArguments);
        assert_eq!(exit(full("new/old")), Exit::BadArguments, "it is the one to salvage");
        assert_eq!(exit(full("new")), Exit::BadArguments, "no directory can be made there");
        assert_eq!(exit(engine::Error::NotADatabase { dir: "old".into(), reason: "empty".into() }), Exit::BadArguments);
    }
}
