//! Service times of sampled operations, and what a run costs in memory and on disk.
//!
//! A sample reads the clock twice and records a value, 80 to 160 ns together. Timing every operation would treble an
//! operation of 50 ns, so each worker spaces its samples by time: one every 40 µs costs at most 0.4 % of the phase.
//! Operations slower than that are all timed. The spacing follows the mean of the phase so far and not the last
//! sample, so a slow operation does not draw more samples to its neighbours; it is odd, so it does not fall into
//! step with what an engine does every 256 records.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::result::Latency;

/// Time between two samples of one worker.
const SPACING: Duration = Duration::from_micros(40);
/// Longest service time that is told apart from longer ones.
const SERVICE_NS_MAX: u64 = 3600 * 1_000_000_000;
/// Two significant digits keep a histogram at 16 KiB, so that those of many workers do not show in peak memory.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Times a few of one worker's operations.
pub struct Sampler {
    begun: Instant,
    /// The operation to time next, counted from 0.
    next: u64,
    service_ns: Histogram<u32>,
}

impl Sampler {
    /// Begins now, with the first operation.
    pub fn begin() -> Self {
        Self { begun: Instant::now(), next: 0, service_ns: histogram() }
    }

    /// Starts over now, with nothing recorded.
    pub fn restart(&mut self) {
        self.begun = Instant::now();
    }

    /// When it began.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Whether the operation numbered `index` is to be timed.
    #[inline]
    pub fn is_due(&self, index: u64) -> bool {
        index == self.next
    }

    /// Records the operation numbered `index`, which started at `started` and has just ended.
    pub fn record(&mut self, index: u64, started: Instant) {
        let now = Instant::now();
        self.service_ns.saturating_record(nanoseconds(now - started));
        self.next = index + spacing(index + 1, now - self.begun);
    }

    /// Gives up what was recorded.
    pub fn into_histogram(self) -> Histogram<u32> {
        self.service_ns
    }
}

/// Operations from one sample to the next, after `done` operations took `elapsed`.
fn spacing(done: u64, elapsed: Duration) -> u64 {
    let operations = u128::from(done) * SPACING.as_nanos() / elapsed.as_nanos().max(1);
    if operations <= 1 { 1 } else { operations as u64 | 1 }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, SERVICE_NS_MAX, SIGNIFICANT_DIGITS).expect("the bounds are in order")
}

/// Percentiles over the samples of all workers; `None` if there are none.
pub(super) fn latency(workers: impl IntoIterator<Item = Histogram<u32>>) -> Option<Latency> {
    let mut all = histogram();
    for worker in workers {
        all.add(&worker).expect("every histogram has the same bounds");
    }
    let us = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1000.0;
    (!all.is_empty()).then(|| Latency {
        p50: us(0.50),
        p90: us(0.90),
        p99: us(0.99),
        p999: us(0.999),
        max: all.max() as f64 / 1000.0,
    })
}

/// Resident set of this process; `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:").map(|kib| kib * 1024)
}

/// Largest resident set of this process so far; `None` where the system does not tell.
pub fn peak_resident_bytes() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:").map(|kib| kib * 1024)
}

/// Bytes this process caused to be written to storage so far; `None` where the system does not tell.
pub fn written_bytes() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/io").ok()?, "write_bytes:")
}

/// The number after `name`, which includes its colon, at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Size of a directory's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectorySize {
    /// Sum of their lengths.
    pub apparent_bytes: u64,
    /// Blocks they occupy; less than their lengths where they have holes.
    pub allocated_bytes: u64,
}

/// Adds up the files under `directory`; links are not followed.
pub fn directory_size(directory: &Path) -> io::Result<DirectorySize> {
    let mut size = DirectorySize::default();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let part = if metadata.is_dir() {
            directory_size(&entry.path())?
        } else {
            DirectorySize { apparent_bytes: metadata.len(), allocated_bytes: metadata.blocks() * 512 }
        };
        size.apparent_bytes += part.apparent_bytes;
        size.allocated_bytes += part.allocated_bytes;
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_forty_microseconds_apart_at_any_speed() {
        let spacing_at = |ns_per_operation: u64| spacing(1000, Duration::from_nanos(1000 * ns_per_operation));
        assert_eq!(spacing_at(20), 2001);
        assert_eq!(spacing_at(50), 801);
        assert_eq!(spacing_at(10_000), 5);
        assert_eq!(spacing_at(40_000), 1);
        assert_eq!(spacing_at(1_000_000), 1);
        assert_eq!(spacing(1, Duration::ZERO), 40_001);
    }

    #[test]
    fn the_largest_sample_survives_merging() {
        let (mut one, mut two) = (histogram(), histogram());
        (0..999).for_each(|_| one.saturating_record(1000));
        two.saturating_record(5_000_000);
        let latency = latency([one, two]).expect("there are samples");
        assert!((latency.p50 - 1.0).abs() < 0.02 && (latency.p99 - 1.0).abs() < 0.02);
        assert!((latency.max - 5000.0).abs() < 50.0, "{}", latency.max);
    }

    #[test]
    fn no_samples_have_no_percentiles() {
        assert_eq!(latency([histogram()]), None);
    }

    #[test]
    fn a_sparse_file_is_long_and_occupies_little() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("inner")).expect("a directory inside");
        fs::write(directory.path().join("inner/small"), [1; 10]).expect("a file");
        fs::File::create(directory.path().join("sparse"))
            .and_then(|file| file.set_len(1 << 20))
            .expect("a sparse file");
        let size = directory_size(directory.path()).expect("both are readable");
        assert_eq!(size.apparent_bytes, (1 << 20) + 10);
        assert!(size.allocated_bytes < 1 << 20);
    }

    #[test]
    fn memory_of_this_process_is_told_and_its_peak_is_no_less() {
        let resident = resident_bytes().expect("the system tells");
        assert!(resident > 100 << 10);
        assert!(peak_resident_bytes().expect("the system tells") >= resident);
    }
}
