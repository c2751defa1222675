//! A queue of jobs that several workers take from: each job is done once, the most urgent first.
//!
//! `cargo run --example jobs`

use std::cmp::Reverse;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use postcard_schema::Schema;
use profilestore::engine::{Database, Isolation, Options};
use profilestore::store::{self, AnyIndex, Collection, Index, Record};
use serde::{Deserialize, Serialize};

const JOBS: u64 = 500;
const WORKERS: u32 = 4;

#[derive(Debug, Clone, Serialize, Deserialize, Schema)]
struct Job {
    id: u64,
    urgency: u8,
    /// Nobody's until it is taken.
    worker: Option<u32>,
    done: bool,
}

#[derive(Deserialize)]
struct JobView {
    id: u64,
    urgency: u8,
    worker: Option<u32>,
    done: bool,
}

impl Job {
    /// Whose it is, and then the most urgent first.
    const WORKER: Index<Self, (Option<u32>, bool, Reverse<u8>)> =
        Index::new("worker", |job| (job.worker, job.done, Reverse(job.urgency)));
}

impl Record for Job {
    type Id = u64;
    type View<'a> = JobView;

    const COLLECTION: &'static str = "jobs";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::WORKER];

    fn view(&self) -> JobView {
        let Self { id, urgency, worker, done } = *self;
        JobView { id, urgency, worker, done }
    }

    fn id(job: &JobView) -> u64 {
        job.id
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let database = Arc::new(Database::open(&dir, Options::default())?);
    let jobs: Collection<Job, _> = Collection::open(Arc::clone(&database))?;
    for id in 0..JOBS {
        jobs.insert(&Job { id, urgency: (id * 7 % 5) as u8, worker: None, done: false })?;
    }

    let attempts = AtomicU64::new(0);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (jobs, attempts) = (&jobs, &attempts);
            scope.spawn(move || {
                while let Some(job) = take(jobs, worker, attempts).expect("the store takes it") {
                    jobs.modify(job.id, |job| job.done = true).expect("the store takes it");
                }
            });
        }
    });

    let mut done = 0;
    for worker in 0..WORKERS {
        let count = jobs.scan(Job::WORKER).prefix((Some(worker), true)).count()?;
        println!("worker {worker} did {count} jobs");
        done += count;
    }
    println!("{done} jobs were taken in {} attempts", attempts.into_inner());
    assert_eq!(done, JOBS);
    database.close()?;
    Ok(())
}

/// Takes the most urgent job that is nobody's. Two workers that choose the same one change the same record, so one of
/// them runs again, and finds another.
fn take(jobs: &Collection<Job, Database>, worker: u32, attempts: &AtomicU64) -> store::Result<Option<Job>> {
    let taken = jobs.kv().transact(Isolation::Snapshot, |transaction| {
        attempts.fetch_add(1, Ordering::Relaxed);
        let jobs = jobs.within(transaction);
        let Some(next) = jobs.scan(Job::WORKER).prefix((None, false)).first()? else { return Ok(None) };
        jobs.modify(next.id, |job| job.worker = Some(worker))
    });
    taken.map(|taken| taken.value)
}
