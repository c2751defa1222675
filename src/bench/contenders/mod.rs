//! What we benchmark: one file per contender; native types never leave it.

#[cfg(feature = "fjall")]
pub mod fjall;
pub mod floor;
#[cfg(all(test, any(feature = "fjall", feature = "peers")))]
mod kv_tests;
#[cfg(feature = "peers")]
pub mod lmdb;
pub mod profilestore;
#[cfg(feature = "peers")]
pub mod redb;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::collections::BTreeMap;
#[cfg(any(feature = "fjall", feature = "peers"))]
use std::ops::Bound;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::store::ProfileStore;
#[cfg(any(feature = "fjall", feature = "peers"))]
use crate::store::kv::KeyRange;

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
    ]
}

/// The contender called `name`, if it was compiled in.
pub fn by_name(name: &str) -> Option<Box<dyn Contender>> {
    all().into_iter().find(|contender| contender.name() == name)
}

/// How a store is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Class to run in; one of [`Contender::classes`].
    pub durability: Durability,
    /// Number of profiles the run will hold, for engines that must be told a size.
    pub profiles: u64,
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

/// Whether the bounds lie the wrong way round, which the seam allows and other engines do not promise to bear.
#[cfg(any(feature = "fjall", feature = "peers"))]
fn holds_nothing(range: &KeyRange) -> bool {
    match (&range.lower, &range.upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => {
            lower >= upper
        }
    }
}

/// The bounds of `range` as other engines take them. No key is empty, and an empty bound bounds nothing: LMDB refuses
/// one.
#[cfg(any(feature = "fjall", feature = "peers"))]
fn borrowed_bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let lower = match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) if key.is_empty() => Bound::Unbounded,
        lower => lower.as_ref().map(Vec::as_slice),
    };
    (lower, range.upper.as_ref().map(Vec::as_slice))
}
