//! Copies what is left of a damaged database into a new one.
//!
//! Nothing of the damaged one is changed, and nothing of it is trusted that its checksums do not vouch for. Only one copy
//! of the manifest has to be sound: it alone says what a file holds. From every segment the blocks that are whole are
//! taken, oldest run first, then the batches of the logs that are; so what is newer wins, as it did before. What cannot
//! be read is lost as if it were damaged, whole files or single sectors; only a failure of the new database is final.
//!
//! # What a loss means
//!
//! In the ranges of keys that a [`SalvageReport`] names, entries may be missing, and there may be older ones in their
//! place: a lost block may have held a change or a deletion. Outside of them every entry is what it was.

use std::path::Path;

use super::batch::{Batch, TreeId};
use super::database::Database;
use super::disk::{Disk, RealDisk, lock_to_read};
use super::error::Result;
use super::manifest::{Damage, MANIFEST, Manifest, TreeManifest};
use super::options::{Durability, Options};
use super::readable::Readable;
use super::recovery::{check_directory, log_numbers};
use super::segment::{self, read_survivors};
use super::target::check_target;
use super::wal::{self, LogImage};

/// Bytes of the batches in which entries are copied, about.
const BATCH_BYTES: usize = 1 << 20;

/// What [`salvage`] copied and what was lost.
#[derive(Debug, Default)]
pub struct SalvageReport {
    /// Versions and deletions that were read from segments.
    pub entries: u64,
    /// Batches that were read from logs.
    pub batches: u64,
    /// Everything that could not be read. Empty if nothing was lost.
    pub lost: Vec<Lost>,
}

/// A part of a database that could not be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// File name inside the damaged directory.
    pub file: String,
    /// Where the damage begins in it.
    pub offset: u64,
    /// What the system said, if it could not be read; what can be read and is wrong has no other reason.
    pub reason: Option<String>,
    /// What was there.
    pub what: LostPart,
}

/// What damage took away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostPart {
    /// Entries of one tree.
    Entries {
        /// Name of the tree.
        tree: String,
        /// From this key to this key, both included, some entries are missing or older than they were.
        between: (Vec<u8>, Vec<u8>),
        /// How many are missing in all ranges of this file together.
        entries: u64,
    },
    /// Batches of a log, if there were any: a log that was torn by a crash ends like this too, with nothing acknowledged in
    /// what is missing.
    Batches,
    /// One of the two copies of the manifest, or what is between them: nothing is missing, for the other is sound.
    Manifest,
}

/// Copies what is left of the database in the directory `from` into a new one in the directory `to`, tree by tree. `from`
/// must not be open; it is only read.
///
/// Fails if no copy of the manifest of `from` is sound, or if `to` is there and not empty or lies in `from`, and then makes
/// nothing. What was copied is safe once a flush or close of the new database returned.
pub fn salvage(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    mut options: Options,
) -> Result<(Database, SalvageReport)> {
    let disk = RealDisk::open(from.as_ref(), false)?;
    let source = Source::new(&disk)?;
    check_target(from.as_ref(), to.as_ref())?;
    options.create = true;
    let database = Database::open(to, options)?;
    let report = source.copy_to(&database)?;
    Ok((database, report))
}

/// As [`salvage`], from a disk of the caller's into a database that is open and empty.
#[cfg(feature = "cli")]
pub(crate) fn salvage_on(from: &dyn Disk, to: &Database) -> Result<SalvageReport> {
    Source::new(from)?.copy_to(to)
}

/// What there is to salvage.
struct Source<'a> {
    disk: &'a dyn Disk,
    manifest: Manifest,
    /// Of the manifest, if there is any.
    lost: Option<Lost>,
    _lock: Box<dyn Send + Sync>,
}

impl<'a> Source<'a> {
    fn new(disk: &'a dyn Disk) -> Result<Self> {
        check_directory(disk, false)?;
        let lock = lock_to_read(disk)?;
        let (manifest, damage) = Manifest::salvage(disk)?;
        let lost = damage.map(|Damage { offset, reason }| Lost {
            file: MANIFEST.to_owned(),
            offset,
            reason,
            what: LostPart::Manifest,
        });
        Ok(Self { disk, manifest, lost, _lock: lock })
    }

    fn copy_to(self, to: &Database) -> Result<SalvageReport> {
        let report = SalvageReport { lost: self.lost.into_iter().collect(), ..SalvageReport::default() };
        let mut copy = Copy { to, batch: Batch::new(), report };
        copy.all(self.disk, &self.manifest)?;
        Ok(copy.report)
    }
}

struct Copy<'a> {
    to: &'a Database,
    batch: Batch,
    report: SalvageReport,
}

impl Copy<'_> {
    fn all(&mut self, disk: &dyn Disk, manifest: &Manifest) -> Result<()> {
        let mut trees = Vec::with_capacity(manifest.trees.len());
        for tree in &manifest.trees {
            let new = self.to.tree_with(&tree.name, &tree.layout)?;
            self.tree(disk, manifest.database_id, tree, new)?;
            trees.push(new);
        }
        self.logs(disk, manifest, &trees)?;
        self.commit()
    }

    fn tree(&mut self, disk: &dyn Disk, database_id: u128, tree: &TreeManifest, new: TreeId) -> Result<()> {
        for meta in tree.runs.iter().rev().flatten() {
            let mut value = Vec::new();
            let loss = read_survivors(disk, database_id, meta, |key, stored| {
                self.report.entries += 1;
                self.enter(new, key, stored.map(|stored| stored.bytes(&mut value)))
            })?;
            self.report.lost.extend(loss.gaps.into_iter().map(|gap| Lost {
                file: segment::file_name(meta.number),
                offset: gap.bytes.start as u64,
                reason: gap.reason,
                what: LostPart::Entries { tree: tree.name.clone(), between: gap.between, entries: loss.entries },
            }));
        }
        Ok(())
    }

    fn logs(&mut self, disk: &dyn Disk, manifest: &Manifest, trees: &[TreeId]) -> Result<()> {
        for number in log_numbers(&disk.list()?, manifest) {
            let name = wal::file_name(number);
            let mut file = Readable::read(disk, &name, u64::MAX);
            let lost = |offset, reason| Lost { file: name.clone(), offset, reason, what: LostPart::Batches };
            if file.bytes.is_empty()
                && let Some(reason) = file.reason(&(0..0))
            {
                self.report.lost.push(lost(0, Some(reason)));
            }
            let log = LogImage { number, bytes: std::mem::take(&mut file.bytes) };
            let gaps = wal::survivors(&log, manifest.database_id, trees.len(), |sequence, operations| {
                if sequence <= manifest.flushed {
                    return Ok(());
                }
                for operation in operations {
                    self.enter(trees[operation.tree.0 as usize], operation.key, operation.value)?;
                }
                self.report.batches += 1;
                Ok(())
            })?;
            self.report.lost.extend(gaps.into_iter().map(|gap| lost(gap.start as u64, file.reason(&gap))));
        }
        Ok(())
    }

    fn enter(&mut self, new: TreeId, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        match value {
            Some(value) => self.batch.put(new, key, value),
            None => self.batch.delete(new, key),
        }
        if self.batch.as_bytes().len() < BATCH_BYTES { Ok(()) } else { self.commit() }
    }

    /// Without a log: the new database is of use only once all of it is there and flushed.
    fn commit(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.to.commit_with(&self.batch, Durability::None)?;
            self.batch.clear();
        }
        Ok(())
    }
}

#[cfg(feature = "cli")]
pub(crate) mod fuzz;
#[cfg(all(test, feature = "cli"))]
mod tests;
