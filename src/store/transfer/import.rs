//! Records in, batch by batch.

use std::io::BufRead;

use super::lines::{self, Line};
use super::{Format, ImportStop, TransferError};
use crate::engine::{self, Database, Isolation};
use crate::store::collection::Collection;
use crate::store::error::Error;
use crate::store::record::Record;

/// What becomes of a record whose id is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The import stops.
    #[default]
    Refuse,
    /// What is there stays.
    Skip,
    /// It takes the place of what is there.
    Replace,
}

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// What becomes of a record whose id is there already. A key of a unique index that another record has stops the
    /// import in any case. Default: it stops.
    pub on_conflict: OnConflict,
    /// Passes over records that begin before this line, from 1: where an import that stopped goes on. Default: 1.
    pub from_line: u64,
    /// Records that are entered together, or not at all, at least 1. More of them make it faster and hold more memory.
    /// Default: 1,000.
    pub batch_records: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { on_conflict: OnConflict::default(), from_line: 1, batch_records: 1000 }
    }
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Records that were entered, in place of others or not.
    pub entered: u64,
    /// Records that were not, because their id is there.
    pub skipped: u64,
}

impl<R: Record> Collection<R, Database> {
    /// Enters the records of `text`. Each batch of them is one transaction: when a line stops the import, batches before
    /// it stay, and the error tells from which line to go on.
    pub fn import(
        &self,
        format: Format,
        text: impl BufRead,
        options: &ImportOptions,
    ) -> Result<ImportReport, TransferError> {
        if options.batch_records == 0 {
            return Err(Error::invalid("batch_records", 0, "at least 1").into());
        }
        let mut report = ImportReport::default();
        let mut next_line = options.from_line;
        let mut lines = lines::read::<R>(text, format).filter(|line| is_wanted(line, options.from_line)).peekable();
        while lines.peek().is_some() {
            let stop = ImportStop { entered: report.entered, from_line: next_line };
            let (batch, last) = next_batch(&mut lines, options.batch_records, stop)?;
            let entered = self.enter(&batch, options.on_conflict, stop)?;
            report.entered += entered;
            report.skipped += batch.len() as u64 - entered;
            next_line = last + 1;
        }
        Ok(report)
    }

    /// Enters all of `batch`, each with its line, or none. Answers how many were not there.
    fn enter(&self, batch: &[(u64, R)], on_conflict: OnConflict, stop: ImportStop) -> Result<u64, TransferError> {
        let entered = self.kv().transact(Isolation::Snapshot, |transaction| {
            let collection = self.within(transaction);
            let mut entered = 0;
            for (line, record) in batch {
                let outcome = match on_conflict {
                    OnConflict::Replace => collection.upsert(record),
                    OnConflict::Refuse | OnConflict::Skip => collection.insert(record),
                };
                match outcome {
                    Ok(()) => entered += 1,
                    Err(Error::DuplicateId { .. }) if on_conflict == OnConflict::Skip => {}
                    Err(error) => return Err(Refusal::of(*line, error)),
                }
            }
            Ok(entered)
        });
        entered.map(|entered| entered.value).map_err(|refusal| match refusal {
            Refusal::Line(line, reason) => TransferError::Line { line, reason, stop },
            Refusal::Failed(error) => error.into(),
        })
    }
}

fn is_wanted<R>(line: &std::io::Result<Line<R>>, from_line: u64) -> bool {
    line.as_ref().map_or(true, |line| line.number >= from_line)
}

/// Up to `count` records with their lines, and the line of the last.
fn next_batch<R>(
    lines: impl Iterator<Item = std::io::Result<Line<R>>>,
    count: usize,
    stop: ImportStop,
) -> Result<(Vec<(u64, R)>, u64), TransferError> {
    let mut batch = Vec::new();
    for line in lines.take(count) {
        let Line { number, record } = line.map_err(|source| TransferError::Read { source, stop })?;
        match record {
            Ok(record) => batch.push((number, record)),
            Err(reason) => return Err(TransferError::Line { line: number, reason, stop }),
        }
    }
    let last = batch.last().map_or(stop.from_line, |(line, _)| *line);
    Ok((batch, last))
}

/// Why a batch is not entered.
enum Refusal {
    Line(u64, String),
    Failed(Error),
}

impl Refusal {
    fn of(line: u64, error: Error) -> Self {
        match error {
            Error::DuplicateId { .. } | Error::DuplicateKey { .. } | Error::Invalid { .. } => {
                Self::Line(line, error.to_string())
            }
            Error::Engine(engine::Error::TooLarge { .. }) => Self::Line(line, error.to_string()),
            _ => Self::Failed(error),
        }
    }
}

impl From<engine::Error> for Refusal {
    fn from(error: engine::Error) -> Self {
        Self::Failed(error.into())
    }
}
