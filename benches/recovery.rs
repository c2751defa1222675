//! What an open after a crash costs: `cargo bench --bench recovery`.
//!
//! Logs of 256 MiB, of batches with ten values of 100 bytes, are replayed and flushed; so much is there only where
//! `delta_bytes` is raised to it, as here. As a measure of the machine, the same logs are read and their bytes hashed.
//!
//! Measured on ext4, as MiB of log a second: 379 for ascending keys, 136 for shuffled ones. With the options as they are by
//! default there is about a tenth of this to replay.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use profilestore::engine::{Batch, Database, Options};
use xxhash_rust::xxh3::xxh3_64;

const LOG_BYTES: u64 = 256 << 20;
const REPETITIONS: usize = 3;

fn main() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    println!("median of {REPETITIONS} opens, and of reading and hashing the same logs");
    let shuffled = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    report("ascending keys", &dir.path().join("ascending"), |number| number);
    report("shuffled keys", &dir.path().join("shuffled"), shuffled);
}

fn options() -> Options {
    Options { delta_bytes: 1 << 30, memory_bytes: 8 << 30, ..Options::default() }
}

fn report(name: &str, dir: &Path, key: impl Fn(u64) -> u64) {
    let database = Database::open(dir, options()).expect("opens");
    fill(&database, key);
    let (mut opens, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..REPETITIONS {
        let image = dir.with_extension("image");
        copy(dir, &image);
        reads.push(timed(|| read(&image)));
        opens.push(timed(|| {
            let recovered = Database::open(&image, options()).expect("opens");
            assert_eq!(recovered.recovery().last_sequence, database.stats().sequence);
        }));
        fs::remove_dir_all(&image).expect("removes");
    }
    let speed = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        (LOG_BYTES >> 20) as f64 / times[REPETITIONS / 2].as_secs_f64()
    };
    println!("{name:<15} open {:>6.0} MiB/s   read and hash {:>6.0} MiB/s", speed(&mut opens), speed(&mut reads));
}

fn fill(database: &Database, key: impl Fn(u64) -> u64) {
    let tree = database.tree("tree").expect("a tree");
    let mut numbers = 0..;
    while database.stats().log_bytes < LOG_BYTES {
        for _ in 0..100 {
            let mut batch = Batch::new();
            for number in numbers.by_ref().take(10) {
                batch.put(tree, &key(number).to_be_bytes(), &[number as u8; 100]);
            }
            database.commit(&batch).expect("commits");
        }
    }
}

/// What a crash of the process would leave.
fn copy(dir: &Path, image: &Path) {
    fs::create_dir(image).expect("makes");
    for file in fs::read_dir(dir).expect("lists") {
        let path = file.expect("an entry").path();
        fs::copy(&path, image.join(path.file_name().expect("a name"))).expect("copies");
    }
}

fn read(dir: &Path) -> u64 {
    let hash = |path| xxh3_64(&fs::read(path).expect("reads"));
    fs::read_dir(dir).expect("lists").fold(0, |all, file| all ^ hash(file.expect("an entry").path()))
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed()
}
