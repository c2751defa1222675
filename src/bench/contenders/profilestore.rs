//! Our engine: the repository on `engine::Database`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::{Contender, Durability, OpenOptions, OpenStore, settings};
use crate::engine::{self, Database, Options};
use crate::store::{ProfileStore, Repository};

/// The contender.
pub struct Profilestore;

impl Contender for Profilestore {
    fn name(&self) -> &'static str {
        "profilestore"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn classes(&self) -> &'static [Durability] {
        &[Durability::None, Durability::Process, Durability::Sync]
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        let durability = match options.durability {
            Durability::None => engine::Durability::None,
            Durability::Process => engine::Durability::Process,
            Durability::Sync => engine::Durability::Sync,
        };
        let usual = Options::default();
        let all = || options.all_bytes(usual.memory_bytes as u64);
        let memory_bytes = options.memory_bytes.unwrap_or_else(all) as usize;
        let options = Options { durability, memory_bytes, ..usual };
        let repository = Repository::open(Arc::new(Database::open(dir, options.clone())?))?;
        Ok(Box::new(OpenProfilestore { repository, options }))
    }
}

struct OpenProfilestore {
    repository: Repository<Database>,
    options: Options,
}

impl OpenStore for OpenProfilestore {
    fn profiles(&self) -> &dyn ProfileStore {
        &self.repository
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        let options = &self.options;
        Ok(settings([
            ("durability", format!("{:?}", options.durability).to_lowercase()),
            ("delta_bytes", options.delta_bytes.to_string()),
            ("memory_bytes", options.memory_bytes.to_string()),
            ("block_bytes", options.block_bytes.to_string()),
            ("segment_bytes", options.segment_bytes.to_string()),
            ("compression", options.compression.to_string()),
            ("runs_max", options.runs_max.to_string()),
            ("sealed_max", options.sealed_max.to_string()),
            ("settle_threads", options.settle_threads.to_string()),
            ("atomicity", "record and index entries in one batch, one checksummed log frame".to_owned()),
        ]))
    }

    fn stabilize(&self) -> Result<bool> {
        self.repository.kv().settle()?;
        Ok(true)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.repository.kv().settle()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.repository.kv().close()?)
    }
}
