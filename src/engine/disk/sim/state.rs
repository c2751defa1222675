//! What is in a directory: as the running system sees it, and as much of it as is on the disk.
//!
//! The rules are those at the head of `disk.rs`, read to the letter: what was not synced may be there or not, each name
//! on its own, each file cut at any byte or with any of its pages missing.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::random::Random;

/// A file, whatever its name is by now.
pub(crate) type FileId = usize;

/// A call that changes something, or a note between two of them.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Create {
        name: String,
        file: FileId,
    },
    Append {
        file: FileId,
        bytes: Vec<u8>,
    },
    /// Room for so many bytes more, behind all there is.
    Allocate {
        file: FileId,
        bytes: usize,
    },
    Sync {
        file: FileId,
    },
    FailToSync {
        file: FileId,
        after: AfterFailedSync,
    },
    Rename {
        from: String,
        to: String,
    },
    Remove {
        name: String,
    },
    SyncDir,
    /// Some of the names reach the disk, some never will.
    FailToSyncDir {
        seed: u64,
    },
    Mark(u64),
}

/// What later reads of a file find after its sync failed. On the disk is the old content in any case, and no later
/// sync brings the new one there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFailedSync {
    CacheKeepsNew,
    OldComesBack,
    ReadsFail,
}

/// One directory at one moment.
#[derive(Clone, Default)]
pub(crate) struct State {
    files: Vec<Arc<FileState>>,
    names: BTreeMap<String, FileId>,
    names_on_disk: BTreeMap<String, FileId>,
    unsynced_names: Vec<NameChange>,
    restarts: u128,
}

#[derive(Clone, Default)]
struct FileState {
    /// What reads find: what was appended, and zeros where room is allocated.
    cached: Vec<u8>,
    /// Where appends go.
    end: usize,
    on_disk: Vec<u8>,
    /// The part of `cached` that the next sync writes.
    unsynced: Range<usize>,
    unreadable: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Created { name: String, file: FileId },
    Renamed { from: String, to: String, file: FileId },
    Removed { name: String },
}

/// What a power loss does to unsynced names and to unsynced content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PowerLoss {
    pub(crate) names: NameLoss,
    pub(crate) content: ContentLoss,
}

/// What becomes of names that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameLoss {
    All,
    Nothing,
    /// Each change is kept or lost on its own.
    Some,
}

/// What becomes of the bytes of a file that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentLoss {
    All,
    Nothing,
    /// The file ends anywhere in them.
    Cut,
    /// It ends anywhere in them, and goes on with bytes nobody wrote.
    Garbage,
    /// Some pages of this size are there; the others read as zeros.
    Pages(usize),
    /// The file has its length, and reads as zeros.
    Zeros,
    /// One of the others, for each file anew.
    Mixed,
}

impl PowerLoss {
    /// The four extremes, which draw nothing at random.
    pub(crate) const EXTREMES: [Self; 4] = [
        Self { names: NameLoss::All, content: ContentLoss::All },
        Self { names: NameLoss::All, content: ContentLoss::Nothing },
        Self { names: NameLoss::Nothing, content: ContentLoss::All },
        Self { names: NameLoss::Nothing, content: ContentLoss::Nothing },
    ];

    /// Those in between.
    pub(crate) const DRAWN: [Self; 8] = [
        Self { names: NameLoss::Nothing, content: ContentLoss::Cut },
        Self { names: NameLoss::Nothing, content: ContentLoss::Garbage },
        Self { names: NameLoss::Nothing, content: ContentLoss::Zeros },
        Self { names: NameLoss::Nothing, content: ContentLoss::Pages(64) },
        Self { names: NameLoss::Nothing, content: ContentLoss::Pages(512) },
        Self { names: NameLoss::Some, content: ContentLoss::Pages(4096) },
        Self { names: NameLoss::Some, content: ContentLoss::Nothing },
        Self { names: NameLoss::Some, content: ContentLoss::Mixed },
    ];
}

impl State {
    pub(crate) fn apply(&mut self, call: &Call) {
        match call {
            Call::Create { name, file } => self.create(name, *file),
            Call::Append { file, bytes } => self.file_mut(*file).append(bytes),
            Call::Allocate { file, bytes } => self.file_mut(*file).allocate(*bytes),
            Call::Sync { file } => self.file_mut(*file).sync(),
            Call::FailToSync { file, after } => self.file_mut(*file).fail_to_sync(*after),
            Call::Rename { from, to } => self.rename(from, to),
            Call::Remove { name } => {
                self.names.remove(name);
                self.unsynced_names.push(NameChange::Removed { name: name.clone() });
            }
            Call::SyncDir => self.sync_names(|_| true),
            Call::FailToSyncDir { seed } => {
                let mut random = Random::new(*seed);
                self.sync_names(|_| random.once_in(2));
            }
            Call::Mark(_) => {}
        }
    }

    fn create(&mut self, name: &str, file: FileId) {
        assert_eq!(file, self.next_file(), "a trace is applied to the state it began in");
        self.files.push(Arc::default());
        self.names.insert(name.to_owned(), file);
        self.unsynced_names.push(NameChange::Created { name: name.to_owned(), file });
    }

    fn rename(&mut self, from: &str, to: &str) {
        let file = self.names.remove(from).expect("only files that are there are renamed");
        self.names.insert(to.to_owned(), file);
        self.unsynced_names.push(NameChange::Renamed { from: from.to_owned(), to: to.to_owned(), file });
    }

    fn sync_names(&mut self, mut reaches_disk: impl FnMut(&NameChange) -> bool) {
        for change in std::mem::take(&mut self.unsynced_names) {
            if reaches_disk(&change) {
                change.apply(&mut self.names_on_disk);
            }
        }
    }

    fn file_mut(&mut self, file: FileId) -> &mut FileState {
        Arc::make_mut(&mut self.files[file])
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// What the next new file will be.
    pub(crate) fn next_file(&self) -> FileId {
        self.files.len()
    }

    pub(crate) fn file(&self, name: &str) -> Option<FileId> {
        self.names.get(name).copied()
    }

    pub(crate) fn len(&self, file: FileId) -> usize {
        self.files[file].cached.len()
    }

    /// Bytes that are allocated and not used.
    pub(crate) fn room(&self, file: FileId) -> usize {
        self.files[file].cached.len() - self.files[file].end
    }

    pub(crate) fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let file = &self.files[file];
        if file.unreadable {
            return Err(rustix::io::Errno::IO.into());
        }
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = file.cached.get(offset..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Changes with every power loss.
    pub(crate) fn boot_id(&self) -> u128 {
        self.restarts + 1
    }

    /// Every file by name, with its content.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        self.names.iter().map(|(name, &file)| (name.clone(), self.files[file].cached.clone())).collect()
    }

    /// Puts a content in the place of a file or beside the others, on the disk and in the cache: damage that no call of
    /// ours did.
    pub(crate) fn overwrite(&mut self, name: &str, content: Vec<u8>) {
        let file = self.file(name).unwrap_or_else(|| {
            let file = self.next_file();
            self.files.push(Arc::default());
            self.names.insert(name.to_owned(), file);
            self.names_on_disk.insert(name.to_owned(), file);
            file
        });
        *self.file_mut(file) = FileState::settled(content);
    }

    /// Takes a file away, on the disk and in the cache: damage that no call of ours did.
    pub(crate) fn lose(&mut self, name: &str) {
        self.names.remove(name);
        self.names_on_disk.remove(name);
        self.unsynced_names
            .retain(|change| !matches!(change, NameChange::Created { name: created, .. } if created == name));
    }

    /// The system restarted, and lost nothing.
    pub(crate) fn restarted(&self) -> Self {
        let nothing = PowerLoss { names: NameLoss::Nothing, content: ContentLoss::Nothing };
        self.after_power_loss(nothing, &mut Random::new(0))
    }

    /// One of the states that a power loss now may leave.
    pub(crate) fn after_power_loss(&self, loss: PowerLoss, random: &mut Random) -> Self {
        let mut names = self.names_on_disk.clone();
        for change in &self.unsynced_names {
            change.apply_after_loss(&mut names, loss.names, random);
        }
        let mut left = Self { restarts: self.restarts + 1, ..Self::default() };
        let mut moved = BTreeMap::new();
        for (name, file) in names {
            let id = *moved.entry(file).or_insert_with(|| {
                let content = self.files[file].after_power_loss(loss.content, random);
                left.files.push(Arc::new(FileState::settled(content)));
                left.files.len() - 1
            });
            left.names.insert(name.clone(), id);
            left.names_on_disk.insert(name, id);
        }
        left
    }
}

impl FileState {
    /// A file that is on the disk as it is.
    fn settled(content: Vec<u8>) -> Self {
        Self { on_disk: content.clone(), end: content.len(), cached: content, ..Self::default() }
    }

    fn append(&mut self, bytes: &[u8]) {
        let start = self.end;
        self.end += bytes.len();
        write_at(&mut self.cached, start, bytes);
        self.changed(start..self.end);
    }

    fn allocate(&mut self, bytes: usize) {
        let start = self.cached.len();
        self.cached.resize(start + bytes, 0);
        self.changed(start..start + bytes);
    }

    fn changed(&mut self, range: Range<usize>) {
        let Range { start, end } = self.unsynced;
        self.unsynced = if start == end { range } else { start.min(range.start)..end.max(range.end) };
    }

    fn sync(&mut self) {
        let range = std::mem::take(&mut self.unsynced);
        write_at(&mut self.on_disk, range.start, &self.cached[range]);
    }

    fn fail_to_sync(&mut self, after: AfterFailedSync) {
        let lost = std::mem::take(&mut self.unsynced);
        match after {
            AfterFailedSync::CacheKeepsNew => {}
            AfterFailedSync::OldComesBack => self.cached[lost].fill(0),
            AfterFailedSync::ReadsFail => self.unreadable = true,
        }
    }

    fn after_power_loss(&self, loss: ContentLoss, random: &mut Random) -> Vec<u8> {
        let mut left = self.on_disk.clone();
        let unsynced = self.unsynced.clone();
        if unsynced.is_empty() {
            return left;
        }
        match loss {
            ContentLoss::All => {}
            ContentLoss::Nothing => self.keep(&mut left, unsynced),
            ContentLoss::Cut => {
                let end = unsynced.start + random.below(unsynced.len() + 1);
                self.keep(&mut left, unsynced.start..end);
            }
            ContentLoss::Garbage => {
                let end = unsynced.start + random.below(unsynced.len() + 1);
                self.keep(&mut left, unsynced.start..end);
                let len = 1 + random.below(200);
                let mut garbage = random.bytes(len);
                if left.len() > unsynced.end {
                    // What is behind it was synced.
                    garbage.truncate(unsynced.end - end);
                }
                write_at(&mut left, end, &garbage);
            }
            ContentLoss::Pages(page) => {
                left.resize(left.len().max(unsynced.end), 0);
                for start in (unsynced.start / page * page..unsynced.end).step_by(page) {
                    if random.once_in(2) {
                        self.keep(&mut left, start.max(unsynced.start)..(start + page).min(unsynced.end));
                    }
                }
            }
            ContentLoss::Zeros => left.resize(left.len().max(unsynced.end), 0),
            ContentLoss::Mixed => {
                let kinds = PowerLoss::EXTREMES.iter().chain(&PowerLoss::DRAWN[..6]);
                let kinds: Vec<_> = kinds.map(|loss| loss.content).collect();
                let kind = *random.pick(&kinds);
                left = self.after_power_loss(kind, random);
            }
        }
        left
    }

    fn keep(&self, left: &mut Vec<u8>, range: Range<usize>) {
        write_at(left, range.start, &self.cached[range]);
    }
}

fn write_at(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    file.resize(file.len().max(end), 0);
    file[offset..end].copy_from_slice(bytes);
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, FileId>) {
        match self {
            Self::Created { name, file } => drop(names.insert(name.clone(), *file)),
            Self::Removed { name } => drop(names.remove(name)),
            Self::Renamed { from, to, file } => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
        }
    }

    /// A rename shows the old file or the new one under its target; the old name may be left over beside it.
    fn apply_after_loss(&self, names: &mut BTreeMap<String, FileId>, loss: NameLoss, random: &mut Random) {
        let kept = match loss {
            NameLoss::All => false,
            NameLoss::Nothing => true,
            NameLoss::Some => random.once_in(2),
        };
        match self {
            Self::Renamed { to, file, .. } if kept && loss == NameLoss::Some && random.once_in(4) => {
                names.insert(to.clone(), *file);
            }
            change if kept => change.apply(names),
            _ => {}
        }
    }
}
