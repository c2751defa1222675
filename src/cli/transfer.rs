//! `profilebench export` and `import`: the profiles of a database as text, out and in.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::engine::{Database, Options};
use crate::store::Repository;
use crate::store::transfer::{Format, ImportOptions, TransferError};

use super::Terminal;
use super::check::{find, holds_profiles};
use super::exit::{self, Exit, Usage};

/// Stands for standard input in place of a file.
const STANDARD_INPUT: &str = "-";

/// Writes the profiles of the database in `dir` to a new file, or to standard output.
pub(super) fn export(dir: &Path, format: Format, out: Option<&Path>, terminal: &mut Terminal) -> Result<Exit> {
    let dir = find(dir);
    let database = open(&dir, false)?;
    if !holds_profiles(&database) {
        return Err(Usage(format!("{} holds no profiles to export", dir.display())).into());
    }
    let profiles: Repository<Database> = Repository::open(database)?;
    let Some(out) = out else {
        let exported = profiles.export(format, BufWriter::new(&mut *terminal.out));
        exit::unless_closed(exported.map(drop).map_err(Into::into))?;
        return Ok(Exit::Done);
    };
    let file = File::create_new(out).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Usage(format!("{} is there already; name a new file", out.display())).into(),
        _ => anyhow::Error::from(error).context(format!("could not make {}", out.display())),
    })?;
    let exported = profiles.export(format, BufWriter::new(&file)).map_err(anyhow::Error::from);
    let whole = exported.and_then(|records| {
        file.sync_all().with_context(|| format!("could not write {}", out.display()))?;
        Ok(records)
    });
    match whole {
        Ok(records) => writeln!(terminal.err, "{}: {records} profiles", out.display())?,
        // A part of an export is not left where a whole one is looked for.
        Err(error) => {
            std::fs::remove_file(out).with_context(|| format!("{error:#}; and could not remove {}", out.display()))?;
            return Err(error);
        }
    }
    Ok(Exit::Done)
}

/// Enters the profiles in `file` into the database in `dir`, which is made if it is not there.
pub(super) fn import(
    dir: &Path,
    file: &PathBuf,
    format: Format,
    options: &ImportOptions,
    terminal: &mut Terminal,
) -> Result<Exit> {
    let imported = if file.as_os_str() == STANDARD_INPUT {
        let input = io::stdin();
        if input.is_terminal() {
            bail!(Usage("standard input is a screen; name a file, or pipe one in".to_owned()));
        }
        enter(dir, input.lock(), format, options)
    } else {
        let text = File::open(file).map_err(|error| Usage(format!("could not open {}: {error}", file.display())))?;
        enter(dir, BufReader::new(text), format, options)
    }?;
    writeln!(terminal.err, "{}: {imported}", dir.display())?;
    Ok(Exit::Done)
}

/// Answers what was done, once it is safe; also of an import that stopped, whose batches before that stay.
fn enter(dir: &Path, text: impl io::BufRead, format: Format, options: &ImportOptions) -> Result<String> {
    let database = open(&find(dir), true)?;
    let profiles: Repository<Database> = Repository::open(Arc::clone(&database))?;
    let imported = profiles.import(format, text, options);
    database.close().context("what was entered may not be safe")?;
    match imported {
        Ok(report) => Ok(format!("{} profiles entered, {} skipped", report.entered, report.skipped)),
        Err(error @ (TransferError::Line { .. } | TransferError::Read { .. })) => Err(Usage(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

fn open(dir: &Path, create: bool) -> Result<Arc<Database>> {
    let database = Database::open(dir, Options { create, ..Options::default() });
    database.map(Arc::new).map_err(|error| Usage(error.to_string()).into())
}
