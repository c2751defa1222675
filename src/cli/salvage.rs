//! `profilebench salvage`: copies what is left of a damaged database, and tells what is lost.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::engine::{self, Lost, LostPart, Options, SalvageReport};
use crate::store::{self, Error, Profile, Record};

use super::exit::{self, Exit, Usage};
use super::{Terminal, check};

/// Copies the database in `from`, or the store that a run left there, to the new directory `to`.
pub(super) fn run(from: &Path, to: &Path, terminal: &mut Terminal) -> Result<Exit> {
    let from = check::find(from);
    let (database, report) = store::salvage(&from, to, Options::default()).map_err(|error| failure(error, to))?;
    // What was copied is safe before anything else is tried with it.
    database.flush()?;
    let database = Arc::new(database);
    let holds_profiles = database.tree_names().iter().any(|name| name == Profile::COLLECTION);
    let built = if holds_profiles {
        let checked = check::check_profiles(&database);
        if checked.is_err() {
            tell_losses(&report, terminal)?;
        }
        let (records, entries, problems) =
            checked.context("the records were copied, but their indexes cannot be built")?;
        anyhow::ensure!(problems.is_empty(), "the copy is not sound: {}", problems.join("; "));
        format!(", {records} profiles with {entries} index entries built from them")
    } else {
        String::new()
    };
    database.settle()?;
    database.close()?;
    let copied = format!("{} entries and {} batches of logs{built}", report.entries, report.batches);
    exit::unless_closed(tell(&report, &copied, to, terminal))?;
    Ok(if report.lost.is_empty() { Exit::Done } else { Exit::EngineFailed })
}

/// That the copy cannot be written, for want of room say, is a failure; that there is nothing to copy, or no place for it,
/// is one of what was typed.
fn failure(error: Error, to: &Path) -> anyhow::Error {
    match &error {
        Error::Engine(engine::Error::Io { path, .. }) if path.parent() == Some(to) => error.into(),
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

fn tell(report: &SalvageReport, copied: &str, to: &Path, terminal: &mut Terminal) -> Result<()> {
    tell_losses(report, terminal)?;
    let verdict = if report.lost.is_empty() { "nothing lost" } else { "the rest is lost" };
    writeln!(terminal.out, "{}: {copied}: {verdict}", to.display())?;
    Ok(())
}

fn describe(Lost { file, offset, what }: &Lost) -> String {
    match what {
        LostPart::Entries { tree, between: (first, last), entries } => format!(
            "{file} is damaged at byte {offset}: between \"{}\" and \"{}\" entries of tree {} are missing or older than \
             they were ({entries} of this file in all)",
            first.escape_ascii(),
            last.escape_ascii(),
            tree.escape_debug(),
        ),
        LostPart::Batches => {
            format!("{file} is damaged or torn at byte {offset}: batches that were only there are lost")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_copy_that_cannot_be_written_is_no_bad_argument() {
        let exit = |error: engine::Error| Exit::of(&failure(error.into(), Path::new("new")));
        let full = |path: &str| engine::Error::Io {
            action: "append to",
            path: PathBuf::from(path),
            source: IoError::from(ErrorKind::StorageFull),
        };
        assert_eq!(exit(full("new/00000000000000000001.wal")), Exit::Failed);
        assert_eq!(exit(engine::Error::Background { cause: full("new/1.seg").to_string() }), Exit::Failed);
        assert_eq!(exit(full("old/00000000000000000001.wal")), Exit::BadArguments);
        assert_eq!(exit(full("new")), Exit::BadArguments, "no directory can be made there");
        assert_eq!(exit(engine::Error::NotADatabase { dir: "old".into(), reason: "empty".into() }), Exit::BadArguments);
    }
}
