//! How `RocksDB` is set, what it says it runs with, and which version it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, io, process, thread};

use anyhow::{Context, Result};
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType, LogLevel, Options};

use crate::bench::contenders::{Durability, OpenOptions};

/// Blocks of all trees together; more where there is more data.
const CACHE_BYTES: u64 = 512 << 20;
/// The library writes down that there is a filter, and not how large.
pub(super) const FILTER_BITS_PER_KEY: f64 = 10.0;
/// Part of a memtable's room that is a filter of its keys.
const MEMTABLE_FILTER: f64 = 0.02;
/// What the tuning guide advises, so that a file's last sync is short.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// Settings that are read back, as the options file names them.
const READ_BACK: [&str; 17] = [
    "atomic_flush",
    "block_restart_interval",
    "block_size",
    "bottommost_compression",
    "bytes_per_sync",
    "cache_index_and_filter_blocks",
    "compaction_style",
    "compression",
    "data_block_hash_table_util_ratio",
    "data_block_index_type",
    "db_write_buffer_size",
    "format_version",
    "level_compaction_dynamic_level_bytes",
    "max_background_jobs",
    "memtable_whole_key_filtering",
    "whole_key_filtering",
    "write_buffer_size",
];

/// The same for every database and column family, by the tuning guide, for data that fits into memory. With a memory
/// budget, the memtables of a database share what the cache leaves of it. Indexes and filters stay beside the cache, as
/// they do by default: with them in it, each of its many misses would read the filter of a whole file.
pub(super) fn database_options(open: &OpenOptions) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(open.cache_bytes(CACHE_BYTES) as usize));
    blocks.set_bloom_filter(FILTER_BITS_PER_KEY, false);
    blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    blocks.set_format_version(5);
    let mut options = Options::default();
    if open.memory_bytes.is_some() {
        options.set_db_write_buffer_size(open.write_buffer_bytes(u64::MAX) as usize);
    }
    options.create_if_missing(true);
    options.increase_parallelism(thread::available_parallelism().map_or(1, usize::from) as i32);
    options.set_atomic_flush(open.durability == Durability::None);
    options.set_block_based_table_factory(&blocks);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options.set_bytes_per_sync(BYTES_PER_SYNC);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_keep_log_file_num(1);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_log_level(LogLevel::Warn);
    options.set_memtable_prefix_bloom_ratio(MEMTABLE_FILTER);
    options.set_memtable_whole_key_filtering(true);
    options
}

/// Settings of the database in `dir` as the library wrote them down.
pub(super) fn read_back(dir: &Path) -> Result<impl Iterator<Item = (String, String)>> {
    Ok(written_options(dir)?.into_iter().filter(|(name, _)| READ_BACK.contains(&name.as_str())))
}

/// Asks the library in the only way there is: makes a database, and reads who wrote it.
pub(super) fn version_that_runs() -> Result<String> {
    let dir = env::temp_dir().join(format!("profilebench-rocksdb-version-{}", process::id()));
    let mut options = Options::default();
    options.create_if_missing(true);
    let written = DB::open(&options, &dir).map_err(Into::into).and_then(|_| written_options(&dir));
    fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))?;
    written?.remove("rocksdb_version").context("the options file tells no version")
}

/// What the library wrote into the newest options file of a database, by name; all column families have the same.
fn written_options(dir: &Path) -> Result<BTreeMap<String, String>> {
    let names = fs::read_dir(dir)?.map(|file| Ok(file?.file_name())).collect::<io::Result<Vec<_>>>()?;
    let newest = names.iter().filter(|name| name.to_string_lossy().starts_with("OPTIONS-")).max();
    let file = dir.join(newest.with_context(|| format!("{} has no options file", dir.display()))?);
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(name, value)| (name.trim().to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_that_is_shown_is_read_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = database_options(&OpenOptions::new(Durability::None, 1));
        DB::open(&options, &directory).expect("it opens");
        let settings: BTreeMap<_, _> = read_back(directory.path()).expect("its settings").collect();
        assert_eq!(settings.keys().collect::<Vec<_>>(), READ_BACK.iter().collect::<Vec<_>>());
        assert_eq!(settings["atomic_flush"], "true");
        assert_eq!(settings["bottommost_compression"], "kZSTD");
    }

    #[test]
    fn the_version_is_the_one_that_wrote_a_database_and_nothing_is_left_of_it() {
        let version = version_that_runs().expect("a version");
        assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
        assert_eq!(version_that_runs().expect("a version again"), version);
    }
}
