//! `profilebench check`: reads everything in a database, and tells what is wrong with it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use crate::engine::{Database, Error, Options};
use crate::store::{Profile, Record, Repository};

use super::Terminal;
use super::exit::{self, Exit, Usage};

/// Directory of our store below the `--data` of a run.
const STORE: &str = "profilestore";
/// A directory with this file holds a database.
const MANIFEST: &str = "MANIFEST";

/// Checks the database in `dir`, or in the store that a run left there.
pub(super) fn run(dir: &Path, terminal: &mut Terminal) -> Result<Exit> {
    let dir = find(dir);
    let mut findings = Findings::default();
    match Database::open(&dir, Options { create: false, ..Options::default() }) {
        Ok(database) => check(&Arc::new(database), &mut findings)?,
        Err(error) if is_damage(&error, &dir) => findings.problems.push(error.to_string()),
        Err(error) => return Err(Usage(error.to_string()).into()),
    }
    exit::unless_closed(findings.tell(&dir, terminal))?;
    Ok(if findings.problems.is_empty() { Exit::Done } else { Exit::EngineFailed })
}

/// The database meant by a directory: the store that a run left below it, if it holds none itself.
pub(super) fn find(dir: &Path) -> PathBuf {
    let below = dir.join(STORE);
    if !dir.join(MANIFEST).exists() && below.is_dir() { below } else { dir.to_path_buf() }
}

/// Whether a database that does not open is damaged, rather than none, in use, or out of reach.
fn is_damage(error: &Error, dir: &Path) -> bool {
    match error {
        Error::Corruption { .. } => true,
        Error::Io { path, source, .. } => {
            path != dir && matches!(source.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof)
        }
        _ => false,
    }
}

/// What was looked at, and what is wrong.
#[derive(Default)]
struct Findings {
    looked_at: Vec<String>,
    problems: Vec<String>,
}

impl Findings {
    fn tell(&self, dir: &Path, terminal: &mut Terminal) -> Result<()> {
        for problem in &self.problems {
            writeln!(terminal.out, "{problem}")?;
        }
        let verdict = match self.problems.len() {
            0 => "no problem found".to_owned(),
            1 => "1 problem".to_owned(),
            several => format!("{several} problems"),
        };
        let looked_at =
            if self.looked_at.is_empty() { "it does not open".to_owned() } else { self.looked_at.join(", ") };
        writeln!(terminal.out, "{}: {looked_at}: {verdict}", dir.display())?;
        Ok(())
    }
}

fn check(database: &Arc<Database>, findings: &mut Findings) -> Result<()> {
    let recovery = database.recovery();
    if let Some((log, offset)) = &recovery.dropped_from {
        let dropped = recovery.dropped_bytes;
        findings.looked_at.push(format!("{dropped} bytes of log dropped from byte {offset} of {log} on"));
    }
    let report = database.verify()?;
    let (segments, bytes, entries) = (report.segments, report.bytes, report.entries);
    findings.looked_at.push(format!("{segments} segments of {bytes} bytes with {entries} entries"));
    findings.problems.extend(report.problems.iter().map(ToString::to_string));
    if !holds_profiles(database) {
        findings.looked_at.push("no collection of profiles, so no index to compare".to_owned());
        return Ok(());
    }
    match check_profiles(database) {
        Ok((records, index_entries, problems)) => {
            findings.looked_at.push(format!("{records} records and {index_entries} index entries compared"));
            findings.problems.extend(problems);
        }
        Err(error) => {
            findings.looked_at.push("indexes not compared".to_owned());
            let error = error.to_string();
            if !findings.problems.contains(&error) {
                findings.problems.push(error);
            }
        }
    }
    Ok(())
}

/// Whether all trees of the profiles are there; opening the collection would make those that are missing.
pub(super) fn holds_profiles(database: &Database) -> bool {
    let names = database.tree_names();
    let is_there = |name: &str| names.iter().any(|there| there == name);
    let collection = Profile::COLLECTION;
    is_there(collection) && Profile::INDEXES.iter().all(|index| is_there(&format!("{collection}.{}", index.name())))
}

/// Records, index entries, and where they disagree.
pub(super) fn check_profiles(database: &Arc<Database>) -> crate::store::Result<(u64, u64, Vec<String>)> {
    let profiles: Repository<Database> = Repository::open(Arc::clone(database))?;
    let records = profiles.count()?;
    let checked = profiles.check()?;
    Ok((records, checked.checked.saturating_sub(records), checked.problems))
}
