//! Under what a list of steps is run. None of it may change an answer.

use std::sync::LazyLock;

use crate::bench::torture::history::tiny;
use crate::engine::{Compression, Durability, Options};

/// Options, and what else can be turned without a change of an answer.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) name: &'static str,
    pub(super) options: Options,
    /// Whether every tree is kept as bytes, whatever its layout would be.
    pub(super) opaque: bool,
    /// The class of every commit, whatever it would be.
    pub(super) class: Option<Durability>,
}

pub(super) fn configurations() -> &'static [Configuration] {
    static ALL: LazyLock<Vec<Configuration>> = LazyLock::new(all);
    &ALL
}

/// Zstandard, in a build that has it.
fn default_compression() -> Compression {
    Options::default().compression
}

fn all() -> Vec<Configuration> {
    let with = |name, options| Configuration { name, options, opaque: false, class: None };
    let smallest =
        Options { memory_bytes: 0, block_bytes: 64, delta_bytes: 1 << 10, runs_max: 1, sealed_max: 1, ..tiny() };
    vec![
        with("default", Options::default()),
        with("tiny", tiny()),
        with("smallest", smallest.clone()),
        // Deltas.
        with("delta of 1 KiB", Options { delta_bytes: 1 << 10, ..tiny() }),
        with("delta of 16 KiB", Options { delta_bytes: 16 << 10, ..tiny() }),
        with("delta that is never full", Options { delta_bytes: 64 << 20, memory_bytes: 1 << 30, ..tiny() }),
        with("one sealed delta", Options { sealed_max: 1, ..tiny() }),
        with("many sealed deltas", Options { sealed_max: 16, ..tiny() }),
        // Blocks and segments.
        with("blocks of 64 bytes", Options { block_bytes: 64, ..tiny() }),
        with("blocks of 1 KiB", Options { block_bytes: 1 << 10, ..tiny() }),
        with("blocks of 64 KiB", Options { block_bytes: 64 << 10, segment_bytes: 1 << 20, ..tiny() }),
        with("segments of 1 MiB in small blocks", Options { segment_bytes: 1 << 20, ..tiny() }),
        // Compression.
        with("LZ4", Options { compression: Compression::Lz4, block_bytes: 512, ..tiny() }),
        with("LZ4 in large blocks", Options { compression: Compression::Lz4, block_bytes: 16 << 10, ..tiny() }),
        with("default compression", Options { compression: default_compression(), block_bytes: 256, ..tiny() }),
        with(
            "default compression without memory",
            Options { compression: default_compression(), block_bytes: 1 << 10, memory_bytes: 0, ..tiny() },
        ),
        // Memory.
        with("no memory", Options { memory_bytes: 0, ..tiny() }),
        with("memory for a few blocks", Options { memory_bytes: 16 << 10, ..tiny() }),
        with("memory for everything", Options { memory_bytes: 1 << 30, ..tiny() }),
        // Runs and files.
        with("one run", Options { runs_max: 1, ..tiny() }),
        with("many runs", Options { runs_max: 64, ..tiny() }),
        with("one open file", Options { open_files_max: 1, ..tiny() }),
        with("four threads that settle", Options { settle_threads: 4, ..tiny() }),
        // Layouts.
        Configuration { opaque: true, ..with("trees of bytes", tiny()) },
        Configuration { opaque: true, ..with("trees of bytes, smallest", smallest.clone()) },
        Configuration { opaque: true, ..with("trees of bytes, default", Options::default()) },
        // Classes.
        Configuration { class: Some(Durability::None), ..with("without a log", tiny()) },
        Configuration { class: Some(Durability::Process), ..with("logged", tiny()) },
        Configuration { class: Some(Durability::Sync), ..with("synced", tiny()) },
        Configuration { class: Some(Durability::Sync), ..with("synced, smallest", smallest) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_least_25_and_no_two_are_alike() {
        let all = configurations();
        assert!(all.len() >= 25);
        for (index, one) in all.iter().enumerate() {
            let like = |other: &Configuration| {
                (&other.options, other.opaque, other.class) == (&one.options, one.opaque, one.class)
            };
            assert!(!all[..index].iter().any(like), "{} is like another", one.name);
        }
    }
}
