//! What we benchmark: one file per contender; native types never leave it.

#[cfg(feature = "fjall")]
pub mod fjall;
pub mod floor;
#[cfg(all(test, any(feature = "fjall", feature = "peers", feature = "rocksdb")))]
mod kv_tests;
#[cfg(feature = "peers")]
pub mod lmdb;
#[cfg(any(feature = "fjall", feature = "peers", feature = "rocksdb"))]
mod ordered;
pub mod profilestore;
#[cfg(feature = "peers")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::store::ProfileStore;

/// What survives what: the class a contender runs in. Results are ranked inside one class only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Data is safe after a flush or close.
    None,
    /// Acknowledged data survives a killed process; a power loss may drop the newest of it.
    Process,
    /// Acknowledged data survives a power loss.
    Sync,
}

impl Durability {
    /// As shown in results and given on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Process => "process",
            Self::Sync => "sync",
        }
    }
}

/// Every contender that was compiled in, in the order they are shown.
pub fn all() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(profilestore::Profilestore),
        Box::new(floor::Floor::default()),
        #[cfg(feature = "fjall")]
        Box::new(fjall::Fjall),
        #[cfg(feature = "sqlite")]
        Box::new(sqlite::Sqlite),
        #[cfg(feature = "peers")]
        Box::new(lmdb::Lmdb),
        #[cfg(feature = "peers")]
        Box::new(redb::Redb),
        #[cfg(feature = "rocksdb")]
        Box::new(rocksdb::Rocksdb::ONE),
        #[cfg(feature = "rocksdb")]
        Box::new(rocksdb::Rocksdb::MANY),
    ]
}

/// The contender called `name`, if it was compiled in.
pub fn by_name(name: &str) -> Option<Box<dyn Contender>> {
    all().into_iter().find(|contender| contender.name() == name)
}

/// More than the blocks of a profile and its index entries take in any engine, uncompressed.
const CACHE_BYTES_PER_PROFILE: u64 = 1 << 10;
/// What part of a memory budget is for write buffers, where an engine does not divide it itself.
#[cfg(any(feature = "fjall", feature = "peers", feature = "rocksdb"))]
const WRITE_BUFFER_PART: u64 = 4;

/// How a store is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Class to run in; one of [`Contender::classes`].
    pub durability: Durability,
    /// Number of profiles the run will hold, for engines that must be told a size.
    pub profiles: u64,
    /// Threads that will use the store at the same time, for engines with a cache for each.
    pub workers: u64,
    /// Memory for caches and write buffers together; `None` is what the engine's documentation advises for data that
    /// fits into memory.
    pub memory_bytes: Option<u64>,
}

impl OpenOptions {
    /// A store of one worker without a memory budget.
    pub const fn new(durability: Durability, profiles: u64) -> Self {
        Self { durability, profiles, workers: 1, memory_bytes: None }
    }

    /// Room for all data of the run, and at least `least`.
    fn all_bytes(&self, least: u64) -> u64 {
        least.max(self.profiles.saturating_mul(CACHE_BYTES_PER_PROFILE))
    }
}

#[cfg(any(feature = "fjall", feature = "peers", feature = "rocksdb"))]
impl OpenOptions {
    /// What the budget gives an engine's cache; room for all data without one, and at least `least`.
    fn cache_bytes(&self, least: u64) -> u64 {
        self.memory_bytes.map_or_else(|| self.all_bytes(least), |budget| budget - budget / WRITE_BUFFER_PART)
    }

    /// What the budget gives an engine's write buffers, at most `most`; that much without one.
    fn write_buffer_bytes(&self, most: u64) -> u64 {
        self.memory_bytes.map_or(most, |budget| most.min(budget / WRITE_BUFFER_PART))
    }
}

/// A store that can take part.
pub trait Contender: Send + Sync {
    /// As given on the command line.
    fn name(&self) -> &'static str;

    /// Version of the engine that is linked, asked of the engine where it can tell.
    fn version(&self) -> String;

    /// Durability classes it offers.
    fn classes(&self) -> &'static [Durability];

    /// Opens the store in `dir`, which exists; again after a close to reopen it.
    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>>;
}

/// An open store, and the steps of its life that the benchmark times.
pub trait OpenStore: Send + Sync {
    /// The operations.
    fn profiles(&self) -> &dyn ProfileStore;

    /// Settings as read back from the engine, by name.
    fn settings(&self) -> Result<BTreeMap<String, String>>;

    /// Makes the store ready for reads after many writes; `false` if it needs no such step.
    fn stabilize(&self) -> Result<bool>;

    /// Flush, compaction, checkpoint: everything the engine would do before it is put away.
    fn settle(&self) -> Result<()>;

    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Settings by name, as [`OpenStore::settings`] gives them.
fn settings<const N: usize>(settings: [(&str, String); N]) -> BTreeMap<String, String> {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
