//! What commits of class `sync` cost together: `cargo bench --bench commit`.
//!
//! A sync of the disk is measured first, as an append and an fdatasync in turn, by one thread. Then 1, 16 and 128 threads
//! commit, each as soon as its last commit is durable: a batch of one key, and a profile with its four index entries,
//! which is read, checked and written in one turn. If every sync served all threads, and nothing else took time, they would
//! make as many commits as there are threads in the time of a sync: the share is of that.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use profilestore::engine::{Batch, Database, Durability, Options};
use profilestore::store::{Country, Profile, Repository, Status};

const TIME: Duration = Duration::from_secs(3);
const WRITERS: [usize; 3] = [1, 16, 128];

fn main() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    for writers in WRITERS {
        let sync = sync_time(dir.path());
        println!("{writers:>3} writers; a sync takes {:.0} us", sync.as_secs_f64() * 1e6);
        let options = || Options { durability: Durability::Sync, ..Options::default() };
        let open = |name: String| Arc::new(Database::open(dir.path().join(name), options()).expect("opens"));

        let database = open(format!("keys-{writers}"));
        let tree = database.tree("tree").expect("a tree");
        report("one key", writers, sync, |number| {
            let mut batch = Batch::new();
            batch.put(tree, &number.to_be_bytes(), &[7; 100]);
            database.commit(&batch).expect("commits");
        });

        let profiles = Repository::open(open(format!("profiles-{writers}"))).expect("opens");
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
