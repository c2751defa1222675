//! What can be done to the files of a specimen.

use std::collections::BTreeMap;
use std::fmt;

use super::specimen::Specimen;
use crate::engine::disk::LOCK;
use crate::engine::disk::sim::{SimDisk, State};

pub(super) const MANIFEST: &str = "MANIFEST";
/// Disks write and lose whole sectors.
const SECTOR: usize = 512;

/// The files of a directory by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// The files a damage changes, with their new content; `None` for one that is gone.
pub(super) type Changes = BTreeMap<String, Option<Vec<u8>>>;

/// One damage, to one file or to a pair.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    Flipped {
        file: String,
        bit: usize,
    },
    Cut {
        file: String,
        len: usize,
    },
    /// Bytes behind its end.
    Extended {
        file: String,
        filler: u8,
    },
    /// A sector reads as zeros.
    Zeroed {
        file: String,
        at: usize,
    },
    /// A sector that the disk does not give back.
    Unreadable {
        file: String,
        at: usize,
    },
    /// A sector was written to the place of another one.
    Misplaced {
        file: String,
        from: usize,
        to: usize,
    },
    /// Each has the other's content.
    Swapped {
        file: String,
        other: String,
    },
    Deleted {
        file: String,
    },
    /// The file of that name of another database.
    Foreign {
        file: String,
    },
    /// The manifest as it was earlier, by its place in the list of those.
    Older {
        manifest: usize,
    },
    /// A file nobody wrote.
    Added {
        file: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flipped { file, bit } => write!(f, "bit {} of byte {} of {file} flipped", bit % 8, bit / 8),
            Self::Cut { file, len } => write!(f, "{file} cut to {len} bytes"),
            Self::Extended { file, filler } => write!(f, "{file} continued with {SECTOR} bytes {filler:02X}"),
            Self::Zeroed { file, at } => write!(f, "sector at {at} of {file} zeroed"),
            Self::Unreadable { file, at } => write!(f, "sector at {at} of {file} unreadable"),
            Self::Misplaced { file, from, to } => write!(f, "sector at {from} of {file} written to {to}"),
            Self::Swapped { file, other } => write!(f, "{file} and {other} swapped"),
            Self::Deleted { file } => write!(f, "{file} deleted"),
            Self::Foreign { file } => write!(f, "{file} of another database"),
            Self::Older { manifest } => write!(f, "older manifest {manifest} put back"),
            Self::Added { file } => write!(f, "{file} added"),
        }
    }
}

impl Damage {
    /// Whether files are there that should not be, or not there that should.
    pub(super) fn is_of_files(&self) -> bool {
        match self {
            Self::Swapped { .. }
            | Self::Deleted { .. }
            | Self::Foreign { .. }
            | Self::Older { .. }
            | Self::Added { .. } => true,
            Self::Flipped { .. }
            | Self::Cut { .. }
            | Self::Extended { .. }
            | Self::Zeroed { .. }
            | Self::Unreadable { .. }
            | Self::Misplaced { .. } => false,
        }
    }

    /// Everything that can be done to `files`.
    pub(super) fn all(files: &Files, foreign: &Files, older_manifests: usize) -> Vec<Self> {
        let mut all: Vec<_> = files.iter().flat_map(|(file, content)| to_one(file, content.len())).collect();
        for file in files.keys() {
            let kind = file.rsplit('.').next();
            let others = files.keys().filter(|other| *other > file && other.rsplit('.').next() == kind);
            all.extend(others.map(|other| Self::Swapped { file: file.clone(), other: other.clone() }));
        }
        let shared = files.keys().filter(|file| foreign.contains_key(*file));
        all.extend(shared.map(|file| Self::Foreign { file: file.clone() }));
        all.extend((0..older_manifests).map(|manifest| Self::Older { manifest }));
        let strangers =
            ["MANIFEST.new", "00000000000000000000.seg", "00000000000000009999.seg", "00000000000000009999.wal"];
        all.extend(strangers.map(|file| Self::Added { file: file.to_owned() }));
        all
    }

    /// What it does to a specimen.
    pub(super) fn changes(&self, specimen: &Specimen) -> Changes {
        let Specimen { files, foreign, older, .. } = specimen;
        let edited = |file: &String, edit: &dyn Fn(&mut Vec<u8>)| {
            let mut content = files[file].clone();
            edit(&mut content);
            BTreeMap::from([(file.clone(), Some(content))])
        };
        match self {
            Self::Flipped { file, bit } => edited(file, &|content| content[bit / 8] ^= 1 << (bit % 8)),
            Self::Cut { file, len } => edited(file, &|content| content.truncate(*len)),
            Self::Extended { file, filler } => edited(file, &|content| content.extend([*filler; SECTOR])),
            Self::Zeroed { file, at } => edited(file, &|content| {
                let end = content.len().min(at + SECTOR);
                content[*at..end].fill(0);
            }),
            Self::Unreadable { .. } => BTreeMap::new(),
            Self::Misplaced { file, from, to } => edited(file, &|content| {
                let len = SECTOR.min(content.len() - from.max(to));
                content.copy_within(*from..from + len, *to);
            }),
            Self::Swapped { file, other } => {
                BTreeMap::from([(file.clone(), Some(files[other].clone())), (other.clone(), Some(files[file].clone()))])
            }
            Self::Deleted { file } => BTreeMap::from([(file.clone(), None)]),
            Self::Foreign { file } => BTreeMap::from([(file.clone(), Some(foreign[file].clone()))]),
            Self::Older { manifest } => BTreeMap::from([(MANIFEST.to_owned(), Some(older[*manifest].0.clone()))]),
            Self::Added { file } => BTreeMap::from([(file.clone(), Some(b"nobody wrote this".to_vec()))]),
        }
    }

    /// The disk with `left` in it.
    pub(super) fn disk(&self, left: State) -> SimDisk {
        let disk = SimDisk::from_state(left);
        if let Self::Unreadable { file, at } = self {
            disk.break_sector(file, *at..*at + SECTOR);
        }
        disk
    }

    /// Whether it leaves one of the two copies of the manifest alone, and all other files.
    pub(super) fn spares_a_copy(&self) -> bool {
        match self {
            Self::Flipped { file, .. }
            | Self::Extended { file, .. }
            | Self::Zeroed { file, .. }
            | Self::Unreadable { file, .. }
            | Self::Misplaced { file, .. } => file == MANIFEST,
            _ => false,
        }
    }
}

/// Everything that can be done to one file alone.
fn to_one(file: &str, len: usize) -> Vec<Damage> {
    let name = || file.to_owned();
    if file == LOCK {
        return vec![Damage::Deleted { file: name() }, Damage::Extended { file: name(), filler: 0xFF }];
    }
    let sectors = || (0..len).step_by(SECTOR);
    let mut all: Vec<_> = (0..8 * len).map(|bit| Damage::Flipped { file: name(), bit }).collect();
    all.extend((0..len).map(|len| Damage::Cut { file: name(), len }));
    all.extend([0, 0xFF].map(|filler| Damage::Extended { file: name(), filler }));
    all.extend(sectors().map(|at| Damage::Zeroed { file: name(), at }));
    all.extend(sectors().map(|at| Damage::Unreadable { file: name(), at }));
    let pairs = sectors().flat_map(|from| sectors().map(move |to| (from, to))).filter(|(from, to)| from != to);
    all.extend(pairs.map(|(from, to)| Damage::Misplaced { file: name(), from, to }));
    all.push(Damage::Deleted { file: name() });
    all
}
