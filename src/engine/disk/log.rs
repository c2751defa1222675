//! A log on the real disk: room is allocated ahead and mapped, and an append is a copy into memory.
//!
//! ```text
//! log file := appended bytes, zeros up to what is allocated
//! ```
//!
//! The memory is the page cache's: what was copied survives the process just as what was written does. `fdatasync` makes
//! it durable, because the pages of a shared mapping are dirty pages of the file like any others. An append costs a copy
//! where `write` costs a system call and the file system's work for it.
//!
//! # Full and broken disks
//!
//! Storing to a mapped page kills the process where `write` would fail, so no page is stored to before the file system
//! has promised it a place: room is really allocated, not a hole; it is made ready by writing the zeros, and by
//! `MADV_POPULATE_WRITE`, which fails where a store would be fatal. (Without the zeros that alone would do, but the file
//! system then prepares page by page, which takes three times as long.) That promise holds only on file systems that overwrite a page where it is;
//! one that copies on write needs room again when a page that has reached the disk is stored to once more. So logs are
//! mapped on those of [`IN_PLACE`], and written everywhere else.
//!
//! Whatever goes wrong on the way, be it that the disk is full, that the file system cannot allocate, or that there is no
//! memory to map: the log is written from there on, and if that fails too, the append has an error to tell.
//!
//! What is left is a disk that breaks between the moment a page was made ready and the store, or a stranger who cuts the
//! file short: both end the process with a signal, as they end every program that maps files. It is then a killed
//! process, whose log is read at the next open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memmap2::{Advice, MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, FsWord, fallocate, fstatfs};
use rustix::io::Errno;

/// Bytes that are allocated and mapped at a time. More: fewer system calls, and more disk for a small log.
const WINDOW_BYTES: u64 = 1 << 20;
/// Bytes that are made ready at a time. More: fewer system calls, and a longer one now and then.
const READY_BYTES: usize = 64 << 10;
static ZEROS: [u8; READY_BYTES] = [0; READY_BYTES];

/// File systems that overwrite in place what is allocated: ext2 to ext4, and memory. XFS does, unless a copy of the file
/// shares its blocks, which anybody can make.
const IN_PLACE: [FsWord; 2] = [0xEF53, 0x0102_1994];

/// The end of a log, where appends go.
pub(super) struct LogTail {
    /// Bytes appended so far.
    end: u64,
    /// Where the next ones go, if they are copied.
    window: Option<Window>,
    /// Whether there is another window behind this one.
    is_mapped: bool,
}

impl LogTail {
    /// The end of a new, empty file.
    pub(super) fn new(file: &File) -> Self {
        let is_mapped = fstatfs(file).is_ok_and(|found| IN_PLACE.contains(&found.f_type));
        Self { end: 0, window: None, is_mapped }
    }

    /// Appends all of `bytes`. After an error an unknown part of them is there.
    pub(super) fn append(&mut self, file: &File, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let Some(room) = self.room(file) else {
                file.write_all_at(bytes, self.end)?;
                self.end += bytes.len() as u64;
                break;
            };
            let (now, later) = bytes.split_at(room.len().min(bytes.len()));
            room[..now.len()].copy_from_slice(now);
            self.end += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Memory for the next bytes; `None` if they are to be written.
    fn room(&mut self, file: &File) -> Option<&mut [u8]> {
        if self.is_mapped && self.prepare(file).is_err() {
            self.is_mapped = false;
            self.window = None;
        }
        let at = self.end;
        self.window.as_mut().map(|window| window.room(at))
    }

    /// Sees to it that the window has room that is ready.
    fn prepare(&mut self, file: &File) -> io::Result<()> {
        if self.window.as_ref().is_none_or(|window| window.end() == self.end) {
            self.window = None;
            self.window = Some(Window::open(file, self.end)?);
        }
        self.window.as_mut().map_or(Ok(()), |window| window.make_ready(file, self.end))
    }
}

/// A part of the file, allocated and in memory.
struct Window {
    /// Where it begins in the file.
    start: u64,
    memory: MmapMut,
    /// Bytes that can be stored to.
    ready: usize,
}

impl Window {
    #[expect(unsafe_code, reason = "maps a file that nobody else changes")]
    fn open(file: &File, start: u64) -> io::Result<Self> {
        fallocate(file, FallocateFlags::empty(), start, WINDOW_BYTES)?;
        let mut options = MmapOptions::new();
        options.offset(start).len(WINDOW_BYTES as usize);
        // SAFETY: The file is new, private to its owner and in a directory that is locked; nothing of ours cuts it short,
        // or writes to a part of it that is mapped. Others who do in spite of that change bytes, and any byte will do.
        // The only reference to the memory is lent by `room`, for one copy.
        let memory = unsafe { options.map_mut(file) }?;
        Ok(Self { start, memory, ready: 0 })
    }

    fn end(&self) -> u64 {
        self.start + self.memory.len() as u64
    }

    /// Makes more of it ready if what is there is used up.
    fn make_ready(&mut self, file: &File, at: u64) -> io::Result<()> {
        if at < self.start + self.ready as u64 {
            return Ok(());
        }
        let len = READY_BYTES.min(self.memory.len() - self.ready);
        file.write_all_at(&ZEROS[..len], self.start + self.ready as u64)?;
        match self.memory.advise_range(Advice::PopulateWrite, self.ready, len) {
            // Linux before 5.14 does not know the advice: pages become ready when they are stored to.
            Err(error) if error.raw_os_error() != Some(Errno::INVAL.raw_os_error()) => Err(error),
            _ => {
                self.ready += len;
                Ok(())
            }
        }
    }

    fn room(&mut self, at: u64) -> &mut [u8] {
        &mut self.memory[(at - self.start) as usize..self.ready]
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::PathBuf;

    use super::*;

    struct Appended {
        dir: tempfile::TempDir,
        file: File,
        tail: LogTail,
        expected: Vec<u8>,
    }

    impl Appended {
        fn new(can_be_read: bool) -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let mut options = OpenOptions::new();
            let file = options.create_new(true).read(can_be_read).write(true).open(path(&dir)).expect("a new file");
            let tail = LogTail::new(&file);
            Self { dir, file, tail, expected: Vec::new() }
        }

        fn append(&mut self, len: usize) {
            let bytes: Vec<_> = (0..len).map(|at| (self.expected.len() + at) as u8 | 1).collect();
            self.tail.append(&self.file, &bytes).expect("there is room");
            self.expected.extend(bytes);
        }

        /// The file holds what was appended, and zeros.
        fn check(&self) -> usize {
            let found = fs::read(path(&self.dir)).expect("it is there");
            let (appended, unused) = found.split_at(self.expected.len());
            assert!(appended == self.expected);
            assert!(unused.iter().all(|&byte| byte == 0));
            unused.len()
        }
    }

    fn path(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join("log")
    }

    #[test]
    fn appends_of_any_length_go_on_across_windows() {
        let mut log = Appended::new(true);
        for len in [1, 190, READY_BYTES - 191, 1, 3 * WINDOW_BYTES as usize, 7, WINDOW_BYTES as usize - 8, 190] {
            log.append(len);
            log.check();
        }
        if log.tail.is_mapped {
            let end = log.expected.len() as u64;
            assert_eq!(log.check() as u64, end.next_multiple_of(WINDOW_BYTES) - end);
        }
    }

    #[test]
    fn a_log_that_cannot_be_mapped_is_written() {
        let mut log = Appended::new(false);
        log.append(190);
        log.append(2 * WINDOW_BYTES as usize);
        assert!(!log.tail.is_mapped, "a file that cannot be read cannot be mapped");
        log.check();
    }

    #[test]
    fn a_log_that_runs_out_of_windows_is_written_on() {
        for copied in [190, READY_BYTES, WINDOW_BYTES as usize] {
            let mut log = Appended::new(true);
            log.append(copied);
            (log.tail.is_mapped, log.tail.window) = (false, None);
            for written in [190, WINDOW_BYTES as usize, 1] {
                log.append(written);
                log.check();
            }
        }
    }

    #[test]
    fn a_file_system_that_is_not_known_to_overwrite_in_place_is_written_to() {
        let file = File::open("/proc/self/status").expect("every process has one");
        assert!(!LogTail::new(&file).is_mapped);
    }
}
