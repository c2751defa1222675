//! Reads every live file from disk and checks all there is to check.

use super::database::Database;
use super::error::{Error, Result};
use super::manifest::Manifest;

/// What [`Database::verify`] looked at and found.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Segments read whole.
    pub segments: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Versions in them.
    pub entries: u64,
    /// Everything that is wrong; empty for a sound database.
    pub problems: Vec<Error>,
}

impl Database {
    /// Reads the manifest and every segment from disk and checks checksums, order, bounds and counts. Goes on after a
    /// problem, so that the report names all of them. Fails only where it cannot look.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let (manifest, version) = self.shared.durable_state();
        match Manifest::load(&*self.shared.disk) {
            Ok(stored) if stored.database_id == manifest.database_id => {}
            Ok(stored) => report.problems.push(Error::corruption(
                super::manifest::MANIFEST,
                0,
                "database id",
                format!("{:032X}", manifest.database_id),
                format!("{:032X}", stored.database_id),
            )),
            Err(error) => report.problems.push(error),
        }
        for segment in version.trees.iter().flat_map(|tree| tree.runs()).flat_map(super::run::Run::segments) {
            report.segments += 1;
            report.bytes += segment.meta().file_bytes;
            report.entries += segment.meta().entries;
            if let Err(error) = segment.verify() {
                report.problems.push(error);
            }
        }
        Ok(report)
    }
}
