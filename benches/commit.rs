//! What commits of class `sync` cost together: `cargo bench --bench commit`.
//!
//! A sync of the disk is measured first, as an append and an fdatasync in turn, by one thread. Then 1, 16 and 128 threads
//! commit, each as soon as its last commit is durable: a batch of one key, and a profile with its four index entries,
//! which is read, checked and written in one turn. If every sync served all threads, and nothing else took time, they would
//! make as many commits as there are threads in the time of a sync: the share is of that. Disks differ, and the fastest
//! sync in less time than it takes to wake some threads, so the same is done with a sync that takes two milliseconds more,
//! which is what disks without a battery take.
//!
//! Measured on two cores, as shares for one key and for one profile. With a sync of 0.12 ms: 117 and 99 % (a log with room
//! is faster than the file it is compared with), of 16 threads 51 and 48 %, of 128 threads 18 and 13 %: every sync serves all
//! 16, but to wake them and let them commit takes as long as the sync. With one of 2.1 ms: 94 and 96 %, 91 and 89 %, 73 and
//! 71 %.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use profilestore::engine::disk::{Disk, DiskFile, RealDisk};
use profilestore::engine::{Batch, Database, Durability, Options, Result};
use profilestore::store::{Country, Profile, Repository, Status};

const TIME: Duration = Duration::from_secs(3);
const WRITERS: [usize; 3] = [1, 16, 128];
const DELAYS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(2)];

/// A disk whose logs take so much longer to sync.
struct Delayed {
    disk: RealDisk,
    delay: Duration,
}

struct DelayedLog {
    log: Box<dyn DiskFile>,
    delay: Duration,
}

impl Disk for Delayed {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        self.disk.lock()
    }

    fn list(&self) -> Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.disk.create(name)
    }

    fn create_log(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let log = self.disk.create_log(name)?;
        Ok(if self.delay.is_zero() { log } else { Box::new(DelayedLog { log, delay: self.delay }) })
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.disk.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.disk.sync_dir()
    }

    fn boot_id(&self) -> Result<Option<u128>> {
        self.disk.boot_id()
    }
}

impl DiskFile for DelayedLog {
    fn len(&self) -> Result<u64> {
        self.log.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.log.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.log.append(bytes)
    }

    fn sync(&self) -> Result<()> {
        thread::sleep(self.delay);
        self.log.sync()
    }
}

fn main() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    for (writers, delay) in WRITERS.into_iter().flat_map(|writers| DELAYS.map(|delay| (writers, delay))) {
        let sync = sync_time(dir.path()) + delay;
        println!("{writers:>3} writers; a sync takes {:.0} us", sync.as_secs_f64() * 1e6);
        let open = |name: &str| {
            let dir = dir.path().join(format!("{name}-{writers}-{}", delay.as_millis()));
            let disk = Delayed { disk: RealDisk::open(&dir, true).expect("a new directory"), delay };
            let options = Options { durability: Durability::Sync, ..Options::default() };
            Arc::new(Database::open_on(Arc::new(disk), options).expect("opens"))
        };

        let database = open("keys");
        let tree = database.tree("tree").expect("a tree");
        report("one key", writers, sync, |number| {
            let mut batch = Batch::new();
            batch.put(tree, &number.to_be_bytes(), &[7; 100]);
            database.commit(&batch).expect("commits");
        });

        let profiles = Repository::open(open("profiles")).expect("opens");
        report("one profile", writers, sync, |number| profiles.insert(&profile(number)).expect("inserts"));
    }
}

/// The median of appends that are synced.
fn sync_time(dir: &Path) -> Duration {
    let mut file = File::create(dir.join("calibration")).expect("creates");
    let mut times = histogram();
    for _ in 0..2_000 {
        let started = Instant::now();
        file.write_all(&[7; 200]).expect("writes");
        file.sync_data().expect("syncs");
        times.saturating_record(started.elapsed().as_nanos() as u64);
    }
    Duration::from_nanos(times.value_at_quantile(0.5))
}

fn report(name: &str, writers: usize, sync: Duration, commit: impl Fn(i64) + Sync) {
    let (next, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    let times = thread::scope(|scope| {
        let work = || {
            let mut times = histogram();
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                commit(next.fetch_add(1, Ordering::Relaxed));
                times.saturating_record(begun.elapsed().as_nanos() as u64);
            }
            times
        };
        let threads: Vec<_> = (0..writers).map(|_| scope.spawn(work)).collect();
        thread::sleep(TIME);
        is_over.store(true, Ordering::Relaxed);
        let mut all = histogram();
        for thread in threads {
            all.add(thread.join().expect("no panic")).expect("they fit");
        }
        all
    });
    let rate = times.len() as f64 / started.elapsed().as_secs_f64();
    let share = 100.0 * rate * sync.as_secs_f64() / writers as f64;
    let [p50, p99] = [0.5, 0.99].map(|quantile| times.value_at_quantile(quantile) / 1_000);
    println!("    {name:<12} {rate:>8.0} commits/s, {share:>3.0} % of writers a sync; p50 {p50} us, p99 {p99} us");
}

fn profile(number: i64) -> Profile {
    Profile {
        user_id: number,
        email: format!("user{number}@example.com"),
        country: Country::try_from(*b"DE").expect("a country"),
        status: Status::ALL[number as usize % Status::ALL.len()],
        created_at: number,
        last_login: number,
        reputation: (number % 1_000) as i32,
        display_name: format!("User {number}"),
        bio: String::new(),
    }
}

/// Of nanoseconds, up to a minute.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(60_000_000_000, 3).expect("three digits")
}
