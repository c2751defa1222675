//! Collections as text: JSON lines and CSV, out and in again.
//!
//! ```
//! # use std::sync::Arc;
//! # use profilestore::engine::{Database, Options};
//! # use profilestore::store::{Country, Profile, Repository, Status};
//! use profilestore::store::transfer::{Format, ImportOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let open = |name| Repository::open(Arc::new(Database::open(dir.path().join(name), Options::default())?));
//! # let (profiles, copy): (Repository<Database>, Repository<Database>) = (open("from")?, open("to")?);
//! # profiles.insert(&Profile {
//! #     user_id: 1,
//! #     email: "ada@example.com".to_owned(),
//! #     country: Country::new("GB")?,
//! #     status: Status::Active,
//! #     created_at: 0,
//! #     last_login: 0,
//! #     reputation: 10,
//! #     display_name: String::new(),
//! #     bio: "first, and \"only\"".to_owned(),
//! # })?;
//! let mut text = Vec::new();
//! assert_eq!(profiles.export(Format::Csv, &mut text)?, 1);
//! let report = copy.import(Format::Csv, &text[..], &ImportOptions::default())?;
//! assert_eq!((report.entered, copy.get(1)?), (1, profiles.get(1)?));
//! # Ok(())
//! # }
//! ```
//!
//! # Forms
//!
//! *JSON lines* hold one object a line, of any record that `serde_json` can write. *CSV* has the names of the fields in its
//! first line and is for flat records: numbers, texts, booleans, enumerations without content, and optional ones of these.
//! Fields are named as the record's `Serialize` names them.
//!
//! A text must lead back to the record that it was made of. So an export reads each record back from its text before it
//! writes it, and refuses one that would come back as another: a number that is none (JSON has no word for it), an optional
//! text that is there and empty (CSV has no way to tell). For the same reason texts that a spreadsheet would take for a
//! formula are written as they are: do not open an export there that strangers have contributed to.

mod export;
mod import;
mod lines;

use std::io;

use super::error::Error;

pub use import::{ImportOptions, ImportReport, OnConflict};

/// How records are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An object a line.
    JsonLines,
    /// A line with the names of the fields, then a record a line.
    Csv,
}

/// What an export or import fails with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The text could not be written. The export is not whole.
    #[error("could not write the export: {0}")]
    Write(#[source] io::Error),
    /// The text could not be read. What [`ImportStop::entered`] counts is there.
    #[error("could not read the import: {source}; {stop}")]
    Read {
        /// What the system said.
        source: io::Error,
        /// How far it got.
        stop: ImportStop,
    },
    /// A record that its text would not lead back to. The export is not whole.
    #[error("{collection}: record {id} cannot be written in this form: {reason}")]
    NotWritten {
        /// The collection.
        collection: &'static str,
        /// The id, for a person.
        id: String,
        /// Why.
        reason: String,
    },
    /// A line that is no record, or one that the collection refuses.
    #[error("line {line}: {reason}; {stop}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
        /// How far the import got.
        stop: ImportStop,
    },
}

/// How far an import got that did not reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportStop {
    /// Records that were entered and stay.
    pub entered: u64,
    /// Where to go on, with [`ImportOptions::from_line`].
    pub from_line: u64,
}

impl std::fmt::Display for ImportStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} records were entered; go on from line {}", self.entered, self.from_line)
    }
}

#[cfg(test)]
mod tests;
