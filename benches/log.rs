//! What a log costs: `cargo bench --bench log`. A log that is mapped, one that is written, and none.
//!
//! An append is a frame of 190 bytes; an insert and an update are of a record with four indexes, one of them unique. All
//! three do the same in turn, so that other work on the machine disturbs them alike.
//!
//! Measured on ext4, as the median of a written log divided by that of a mapped one: append 9, insert 1.7, update 1.3.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use profilestore::engine::disk::{Disk, DiskFile, RealDisk};
use profilestore::engine::{Database, Durability, Options, Result};
use profilestore::store::{Country, Profile, Repository, Status};

const APPENDS: usize = 400_000;
const RECORDS: i64 = 100_000;
const GROUP: usize = 500;
const FRAME: [u8; 190] = [7; 190];

/// A disk whose logs are files like any other.
struct Written(RealDisk);

impl Disk for Written {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        self.0.lock()
    }

    fn list(&self) -> Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.0.create(name)
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.0.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.0.sync_dir()
    }

    fn boot_id(&self) -> Result<Option<u128>> {
        self.0.boot_id()
    }
}

fn main() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    println!("median, and mean, of groups of {GROUP} calls in turn");
    appends(dir.path());
    changes(dir.path());
}

fn appends(dir: &Path) {
    let disk = RealDisk::open(dir, false).expect("it is there");
    let (mapped, written) = (disk.create_log("mapped").expect("create"), disk.create("written").expect("create"));
    let append = |file: &dyn DiskFile| file.append(&FRAME).expect("there is room");
    race("append", APPENDS, &mut [("mapped", &mut |_| append(&*mapped)), ("written", &mut |_| append(&*written))]);
}

fn changes(dir: &Path) {
    let open = |name: &str, durability| {
        let disk = RealDisk::open(&dir.join(name), true).expect("a new directory");
        let disk: Arc<dyn Disk> = if name == "by write" { Arc::new(Written(disk)) } else { Arc::new(disk) };
        // Nothing is flushed meanwhile.
        let options = Options { durability, delta_bytes: 1 << 30, ..Options::default() };
        Repository::open(Arc::new(Database::open_on(disk, options).expect("opens"))).expect("opens")
    };
    let mapped = open("mapped log", Durability::Process);
    let written = open("by write", Durability::Process);
    let unlogged = open("no log", Durability::None);
    let records: Vec<_> = (0..RECORDS).map(record).collect();
    let insert = |store: &Repository<Database>, at: usize| store.insert(&records[at]).expect("a new one");
    race(
        "insert",
        records.len(),
        &mut [
            ("mapped", &mut |at| insert(&mapped, at)),
            ("written", &mut |at| insert(&written, at)),
            ("no log", &mut |at| insert(&unlogged, at)),
        ],
    );
    let updated: Vec<_> = (0..RECORDS).map(|at| update(record(scatter(at) % RECORDS))).collect();
    let update = |store: &Repository<Database>, at: usize| store.update(&updated[at]).expect("it is there");
    race(
        "update",
        updated.len(),
        &mut [
            ("mapped", &mut |at| update(&mapped, at)),
            ("written", &mut |at| update(&written, at)),
            ("no log", &mut |at| update(&unlogged, at)),
        ],
    );
}

fn record(id: i64) -> Profile {
    Profile {
        user_id: id,
        email: format!("user{id:012}@example.com"),
        country: Country::new(["DE", "FR", "GB", "US"][scatter(id) as usize % 4]).expect("those are country codes"),
        status: Status::ALL[scatter(id) as usize / 4 % 4],
        created_at: 1_700_000_000_000 + id,
        last_login: 1_700_000_000_000 + scatter(id) % 1_000_000,
        reputation: (scatter(id) % 1_000_000) as i32,
        display_name: format!("User {id}"),
        bio: format!("Profile {id} is one of many that are made for this."),
    }
}

/// Two of its four index entries change.
fn update(record: Profile) -> Profile {
    Profile { status: record.status.next(), reputation: 1_000_000 - record.reputation, ..record }
}

/// Spreads consecutive numbers over all that are not negative.
fn scatter(number: i64) -> i64 {
    let mixed = (number as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 3) as i64
}

/// Times all of them in turn, and prints each beside the first.
fn race(name: &str, calls: usize, contestants: &mut [(&str, &mut dyn FnMut(usize))]) {
    let mut times = vec![Vec::new(); contestants.len()];
    for start in (0..calls).step_by(GROUP) {
        for ((_, call), times) in contestants.iter_mut().zip(&mut times) {
            let group = start..calls.min(start + GROUP);
            let len = group.len();
            let begun = Instant::now();
            group.for_each(&mut **call);
            times.push(begun.elapsed().as_nanos() as f64 / len as f64);
        }
    }
    let summaries: Vec<_> = times.into_iter().map(|times| (mean(&times), median(times))).collect();
    for ((contestant, _), (mean, median)) in contestants.iter().zip(&summaries) {
        println!(
            "  {name} {contestant:8} {median:6.0} ns   mean {mean:6.0} ns   {:.2} times the first",
            median / summaries[0].1
        );
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
