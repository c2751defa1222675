//! Every target keeps its promises on its corpus, and on what becomes of its seeds.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::bench::torture::{fuzz, sound_cases};

/// What a file of a corpus is called that a seed was written to; any other is an input that once broke a promise.
const SEED: &str = "seed-";

/// `None` in the package, which comes without `fuzz/`.
fn corpus_directory(target: &Target) -> Option<PathBuf> {
    let fuzz = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    fuzz.is_dir().then(|| fuzz.join("corpus").join(target.name))
}

fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let Some(directory) = corpus_directory(target) else { return Vec::new() };
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let file = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        (name, fs::read(path).expect("it can be read"))
    };
    let mut files: Vec<_> = paths.map(file).collect();
    files.sort();
    files
}

fn keeps_its_promises(name: &str, inputs: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let corpus: Vec<_> = corpus(target).into_iter().map(|(_, input)| input).collect();
    let tried = sound_cases(|session| fuzz::replay(session, target, &corpus, inputs));
    assert_eq!(tried, corpus.len() as u64 + inputs);
}

macro_rules! targets {
    ($($test:ident $name:literal $tried:literal)*) => {
        $(
            #[test]
            fn $test() {
                keeps_its_promises($name, $tried);
            }
        )*

        #[test]
        fn every_target_has_a_test_and_a_program() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$($name),*]);
            let fuzz = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz");
            let Ok(programs) = fs::read_to_string(fuzz.join("Cargo.toml")) else { return };
            let readme = fs::read_to_string(fuzz.join("README.md")).expect("it says how to run them");
            for target in TARGETS {
                assert!(programs.contains(&format!("name = \"{}\"", target.name)), "{} has no program", target.name);
                let row = format!("| `{}` | {} |", target.name, target.takes);
                assert!(readme.contains(&row), "the readme lacks {row}");
            }
        }
    };
}

// Each with as many inputs as are tried in about a second.
targets! {
    logs "log" 5_000
    manifests "manifest" 200_000
    segments "segment" 4_000
    blocks_of_bytes "block-opaque" 15_000
    blocks_of_columns "block-packed" 10_000
    columns "columns" 5_000
    filters "filter" 200_000
    batches "batch" 300_000
    directories "directory" 2_000
    records "record" 25_000
    keys "key" 40_000
    steps_and_faults "model" 1_500
    results "result" 150
    labels "label" 100_000
    command_lines "arguments" 8_000
    workload_files "workload" 150_000
}

/// Seeds are what the encoders of this build make. After a change of a format: `cargo test --lib write_the_corpora -- --ignored`.
#[cfg(feature = "zstd")]
#[test]
fn the_corpora_are_current() {
    for target in TARGETS.iter().filter(|target| corpus_directory(target).is_some()) {
        let written = corpus(target).into_iter().filter(|(name, _)| name.starts_with(SEED));
        let written: Vec<_> = written.map(|(_, input)| input).collect();
        assert!(written == (target.seeds)(), "the corpus of {} is not what its seeds are now", target.name);
    }
}

#[test]
#[ignore = "writes the corpora"]
fn write_the_corpora() {
    for target in TARGETS {
        let directory = corpus_directory(target).expect("only in the repository");
        fs::create_dir_all(&directory).expect("it can be made");
        for (name, _) in corpus(target).iter().filter(|(name, _)| name.starts_with(SEED)) {
            fs::remove_file(directory.join(name)).expect("it is there");
        }
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(directory.join(format!("{SEED}{number:02}")), seed).expect("it can be written");
        }
    }
}
