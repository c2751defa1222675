//! Reads a file as far as the disk gives it back, for salvage: a sector that cannot be read costs what lies in it, and not
//! the file.

use std::ops::Range;

use super::disk::{self, Disk, DiskFile};
use super::error::Error;

/// Read at a time. Where that fails, it is tried again by [`SECTOR_BYTES`].
const PIECE_BYTES: usize = 1 << 20;
/// What is lost at once where a disk goes bad: a page of the system, or a sector.
const SECTOR_BYTES: usize = 4096;
/// What is put in the place of bytes that cannot be read. Neither a block nor a frame begins like that, and they do not
/// look like unused room.
const FILLER: u8 = 0xFF;

/// What can be read of a file.
#[derive(Default)]
pub(crate) struct Readable {
    /// All of it, with filler where it cannot be read; nothing if it cannot be opened.
    pub(crate) bytes: Vec<u8>,
    /// The first failure.
    pub(crate) error: Option<Error>,
    /// Where the filler is.
    pub(crate) unreadable: Vec<Range<usize>>,
}

impl Readable {
    /// The first `len_max` bytes of a file.
    pub(crate) fn read(disk: &dyn Disk, name: &str, len_max: u64) -> Self {
        let mut readable = Self::default();
        let opened = disk.open(name).and_then(|file| {
            let len = usize::try_from(file.len()?.min(len_max)).expect("64-bit systems only");
            disk::resize(&mut readable.bytes, len, name)?;
            Ok(file)
        });
        match opened {
            Ok(file) => readable.fill(&*file),
            Err(error) => {
                readable.error = Some(error);
                readable.unreadable.push(0..usize::MAX);
            }
        }
        readable
    }

    /// What the system said about bytes in `range`, or the one where it is empty, if they could not be read.
    pub(crate) fn reason(&self, range: &Range<usize>) -> Option<String> {
        let end = range.end.max(range.start + 1);
        let touches = |bad: &Range<usize>| bad.start < end && range.start < bad.end;
        self.error.as_ref().filter(|_| self.unreadable.iter().any(touches)).map(|error| match error {
            Error::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        })
    }

    /// Anybody can make a sparse file of any length: memory that is not there is an error, not an abort.
    fn fill(&mut self, file: &dyn DiskFile) {
        for piece in parts(0..self.bytes.len(), PIECE_BYTES) {
            if file.read_at(piece.start as u64, &mut self.bytes[piece.clone()]).is_err() {
                parts(piece, SECTOR_BYTES).for_each(|sector| self.fill_sector(file, sector));
            }
        }
    }

    fn fill_sector(&mut self, file: &dyn DiskFile, sector: Range<usize>) {
        let bytes = &mut self.bytes[sector.clone()];
        if let Err(error) = file.read_at(sector.start as u64, bytes) {
            bytes.fill(FILLER);
            self.error.get_or_insert(error);
            self.unreadable.push(sector);
        }
    }
}

/// `range` in parts of so many bytes.
fn parts(range: Range<usize>, bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(bytes).map(move |start| start..end.min(start + bytes))
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;
    use crate::engine::disk::sim::{CallKind, Fault, SimDisk};

    fn disk_with(content: &[u8]) -> SimDisk {
        let disk = SimDisk::new();
        disk.create("file").expect("new").append(content).expect("memory has room");
        disk
    }

    #[test]
    fn bad_sectors_cost_what_lies_in_them() {
        let content: Vec<u8> = (0..3 * SECTOR_BYTES + 100).map(|at| at as u8 | 1).collect();
        let disk = disk_with(&content);
        disk.break_sector("file", SECTOR_BYTES + 7..SECTOR_BYTES + 8);
        disk.break_sector("file", 3 * SECTOR_BYTES + 50..3 * SECTOR_BYTES + 51);
        let readable = Readable::read(&disk, "file", u64::MAX);
        for sector in [1..2, 3..4] {
            let bad = sector.start * SECTOR_BYTES..content.len().min(sector.end * SECTOR_BYTES);
            assert!(readable.bytes[bad.clone()].iter().all(|byte| *byte == FILLER));
            assert!(readable.reason(&(bad.start..bad.start + 1)).is_some());
        }
        for sound in [0..SECTOR_BYTES, 2 * SECTOR_BYTES..3 * SECTOR_BYTES] {
            assert_eq!(readable.bytes[sound.clone()], content[sound.clone()]);
            assert_eq!(readable.reason(&sound), None);
        }
        assert_eq!(readable.bytes.len(), content.len());
    }

    /// The cause may be gone by the time the sectors are tried.
    #[test]
    fn what_can_be_read_the_second_time_is_no_loss() {
        let disk = disk_with(b"content");
        disk.inject(Fault::once(CallKind::Read, 0));
        let readable = Readable::read(&disk, "file", u64::MAX);
        assert_eq!((readable.bytes.as_slice(), readable.error.is_none()), (&b"content"[..], true));
    }

    #[test]
    fn a_file_that_cannot_be_opened_says_why() {
        let disk = disk_with(b"content");
        disk.inject(Fault { error: rustix::io::Errno::ACCESS, ..Fault::once(CallKind::Open, 0) });
        let readable = Readable::read(&disk, "file", u64::MAX);
        assert!(readable.bytes.is_empty());
        let reason = readable.reason(&(0..0)).expect("it is told");
        assert!(reason.contains("ermission denied"), "{reason}");
    }
}
