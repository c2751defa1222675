//! Copies of a database that is in use, and back.
//!
//! ```text
//! backup := the segments that a manifest names, then that manifest, without logs
//! ```
//!
//! Segments never change, so a copy of a durable state is a copy of the files that its manifest names, and the version that
//! goes with it keeps them there until all are copied; commits, flushes and merges go on meanwhile. The manifest is
//! written last, when everything that it names is durable under its name: a directory with segments and no manifest is the
//! rest of a copy that was not finished, which nothing opens.
//!
//! A file that is linked and not copied is the same file twice: it takes its space once, and damage to it is damage to
//! both. Files of an earlier backup are linked only if they hold to the byte what the database holds: their number says
//! little once somebody has written to that backup.

use std::path::{Path, PathBuf};

use super::database::Database;
use super::disk::{self, Disk, DiskFile, RealDisk, lock_to_read};
use super::error::{Error, Result};
use super::manifest::{MANIFEST_NEW, Manifest};
use super::options::Options;
use super::recovery::check_directory;
use super::segment::{self, SegmentMeta};
use super::target::check_target;

/// Bytes that are copied or compared at a time.
const PIECE_BYTES: usize = 1 << 20;

/// How to back up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupOptions {
    /// An earlier backup of the same database, on the same file system as the new one. What both hold is linked from
    /// there and takes no more space; each of them stays whole when the other is removed. It is read and compared, so this
    /// spares space and writing, not reading. Default: none.
    pub base: Option<PathBuf>,
    /// Whether files of the database itself may be linked, where the new directory is on the same file system: a backup in
    /// no time, against mistakes and not against the loss of the disk. Default: false, all is copied.
    pub link: bool,
}

/// What a backup or restore wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Number of the last commit in it.
    pub sequence: u64,
    /// Its segments.
    pub segments: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Of these, bytes that are linked and take no space of their own.
    pub linked_bytes: u64,
}

impl Database {
    /// Makes a backup of everything committed so far in the new directory `to`, while others go on reading and writing.
    /// What they commit meanwhile is in it as far as it was flushed, commits never in part and never without those before
    /// them.
    ///
    /// A backup is a database without logs. Open it with [`Options::read_only`] to look at it or to
    /// [`verify`](Self::verify) it, and bring it back with [`restore()`].
    ///
    /// Fails if `to` is there and not empty or lies in the database. What was written until a failure is removed as far
    /// as that is possible; whatever is left then, also by a crash, does not open as a database.
    pub fn backup(&self, to: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupReport> {
        let to = to.as_ref();
        check_target(self.shared.disk.path(), to)?;
        let base = options.base.as_deref().map(|base| Base::open(base, self.shared.database_id)).transpose()?;
        self.backup_on(&RealDisk::open(to, true)?, base.as_ref(), options.link)
    }

    /// As [`Self::backup`], to an empty disk.
    pub(crate) fn backup_on(&self, to: &dyn Disk, base: Option<&Base>, link: bool) -> Result<BackupReport> {
        if !self.shared.options.read_only {
            self.flush()?;
        }
        let _lock = to.lock()?;
        check_directory(to, true)?;
        // The version keeps the files there.
        let (manifest, _version) = self.shared.durable_state();
        let from = &*self.shared.disk;
        let mut copy = Copy { from, to, base, link, report: BackupReport::default() };
        copy.report.sequence = manifest.flushed;
        copy.all(&manifest.without_logs()).inspect_err(|_| copy.discard())
    }
}

/// Makes a database in the new directory `to` from the backup in the directory `from`, which is read whole, checked, and
/// left as it is.
///
/// Fails if anything is wrong with the backup, see [`salvage()`](super::salvage()) for what is left of one then, and if `to`
/// is there and not empty or lies in `from`.
pub fn restore(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<BackupReport> {
    let backup = Database::open(from, Options { read_only: true, ..Options::default() })?;
    let verified = backup.verify()?;
    match verified.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => backup.backup(to, &BackupOptions::default()),
    }
}

/// An earlier backup.
pub(crate) struct Base {
    disk: RealDisk,
    manifest: Manifest,
    /// Nobody may take a file away.
    _lock: Box<dyn Send + Sync>,
}

impl Base {
    fn open(dir: &Path, database_id: u128) -> Result<Self> {
        let disk = RealDisk::open(dir, false)?;
        check_directory(&disk, false)?;
        let lock = lock_to_read(&disk)?;
        let manifest = Manifest::load(&disk)?;
        if manifest.database_id != database_id {
            let found = format!("{}, which holds another database", dir.display());
            return Err(Error::InvalidOption { option: "base", found, expected: "name an earlier backup of this one" });
        }
        Ok(Self { disk, manifest, _lock: lock })
    }

    /// Whether it holds a segment to the byte.
    fn holds(&self, segment: &SegmentMeta, from: &dyn Disk) -> Result<bool> {
        if !self.manifest.segments().any(|other| other == segment) {
            return Ok(false);
        }
        let name = segment::file_name(segment.number);
        let (ours, theirs) = (from.open(&name)?, self.disk.open(&name)?);
        if theirs.len()? != segment.file_bytes {
            return Ok(false);
        }
        let mut other = Vec::new();
        for_each_piece(&*ours, segment, |offset, piece| {
            disk::resize(&mut other, piece.len(), &name)?;
            theirs.read_at(offset, &mut other)?;
            Ok(other == piece)
        })
    }
}

struct Copy<'a> {
    from: &'a dyn Disk,
    to: &'a dyn Disk,
    base: Option<&'a Base>,
    link: bool,
    report: BackupReport,
}

impl Copy<'_> {
    fn all(&mut self, manifest: &Manifest) -> Result<BackupReport> {
        for segment in manifest.segments() {
            self.segment(segment)?;
        }
        // Names are durable before the manifest names them.
        self.to.sync_dir()?;
        manifest.prepare(self.to)?;
        Manifest::replace(self.to)?;
        self.to.sync_dir()?;
        Ok(self.report)
    }

    fn segment(&mut self, segment: &SegmentMeta) -> Result<()> {
        let name = segment::file_name(segment.number);
        let bytes = segment.file_bytes;
        self.report.segments += 1;
        self.report.bytes += bytes;
        let base = self.base.map_or(Ok(None), |base| Ok(base.holds(segment, self.from)?.then_some(base)))?;
        let is_linked = match base {
            Some(base) if self.to.link(&name, &base.disk)? => true,
            _ => self.link && self.to.link(&name, self.from)?,
        };
        if is_linked {
            self.report.linked_bytes += bytes;
            return Ok(());
        }
        let copy = self.to.create(&name)?;
        for_each_piece(&*self.from.open(&name)?, segment, |_, piece| copy.append(piece).map(|()| true))?;
        copy.sync()
    }

    /// Removes what a failed copy has written. It is of no use, and may be all that the disk had room for; what cannot be
    /// removed does not open as a database.
    fn discard(&self) {
        let Ok(names) = self.to.list() else { return };
        for name in names.iter().filter(|name| name.ends_with(segment::ENDING) || *name == MANIFEST_NEW) {
            let _ = self.to.remove(name);
        }
    }
}

/// Hands the content of a segment file to `visit`, with the offset of each piece, until it answers no. Answers whether it
/// never did.
fn for_each_piece(
    file: &dyn DiskFile,
    segment: &SegmentMeta,
    mut visit: impl FnMut(u64, &[u8]) -> Result<bool>,
) -> Result<bool> {
    let name = segment::file_name(segment.number);
    let found = file.len()?;
    if found != segment.file_bytes {
        return Err(Error::corruption(&name, found, "length of the file", segment.file_bytes, found));
    }
    let mut piece = Vec::new();
    let mut offset = 0;
    while offset < found {
        disk::resize(&mut piece, (found - offset).min(PIECE_BYTES as u64) as usize, &name)?;
        file.read_at(offset, &mut piece)?;
        if !visit(offset, &piece)? {
            return Ok(false);
        }
        offset += piece.len() as u64;
    }
    Ok(true)
}

#[cfg(all(test, feature = "cli"))]
mod tests;
