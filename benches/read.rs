//! Reads of a settled store of profiles: `cargo bench --bench read`.
//!
//! A record by its id and by its e-mail, a hundred ids of an index, and a hundred records by ids that lie together or
//! apart: what the phases of the profile-store workload are made of, without the harness around them.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use profilestore::bench::generate;
use profilestore::engine::{Database, Options};
use profilestore::store::{Country, Profile, ProfileQuery, ProfileStore, Repository, Status};

const PROFILES: i64 = 100_000;
const SEED: i32 = 570_123_434;
const ROWS: usize = 100;

struct Settled {
    _dir: tempfile::TempDir,
    profiles: Repository<Database>,
}

static STORE: LazyLock<Settled> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let database = Arc::new(Database::open(&dir, Options::default()).expect("a new database"));
    let profiles = Repository::open(Arc::clone(&database)).expect("a new collection");
    for id in 1..=PROFILES {
        Repository::insert(&profiles, &generate::profile(id, SEED)).expect("a new profile");
    }
    database.settle().expect("it settles");
    Settled { _dir: dir, profiles }
});

/// Ids in no order, without end.
fn next_id() -> i64 {
    static STEP: AtomicU64 = AtomicU64::new(0);
    let step = STEP.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (step % PROFILES as u64) as i64 + 1
}

fn main() {
    LazyLock::force(&STORE);
    divan::main();
}

#[divan::bench]
fn get(bencher: Bencher) {
    let read = |id| STORE.profiles.get_with(id, |profile| black_box(profile.reputation)).expect("it reads");
    bencher.with_inputs(next_id).bench_values(read);
}

#[divan::bench]
fn find_by_email(bencher: Bencher) {
    let email = || {
        let mut email = String::new();
        generate::email(next_id(), &mut email);
        email
    };
    let find = |email: &String| {
        STORE.profiles.find_with(Profile::EMAIL, email, |profile| black_box(profile.reputation)).expect("it reads")
    };
    bencher.with_inputs(email).bench_refs(|email| find(email));
}

fn queries() -> [ProfileQuery; 3] {
    let (country, status) = (Country::new("DE").expect("a code"), Status::Active);
    let from = generate::created_at(40_000, SEED);
    [
        ProfileQuery::CountryStatus { country, status },
        ProfileQuery::CreatedAt { from, to: from + 5_000_000 },
        ProfileQuery::TopReputation,
    ]
}

#[divan::bench(args = [0, 1, 2])]
fn scan(bencher: Bencher, query: usize) {
    let query = queries()[query];
    bencher.counter(ItemsCount::new(ROWS)).bench(|| {
        let mut sum = 0;
        ProfileStore::scan(&STORE.profiles, &query, ROWS, &mut |id| sum += id).expect("it reads");
        sum
    });
}

#[divan::bench(args = [0, 1, 2])]
fn query(bencher: Bencher, query: usize) {
    let query = queries()[query];
    bencher.counter(ItemsCount::new(ROWS)).bench(|| {
        let mut sum = 0;
        let mut read =
            |profile: &profilestore::store::ProfileView<'_>| sum += profile.reputation + profile.email.len() as i32;
        ProfileStore::query(&STORE.profiles, &query, ROWS, &mut read).expect("it reads");
        sum
    });
}
