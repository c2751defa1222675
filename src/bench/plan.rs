//! What every worker will do in every phase, drawn before any clock starts.
//!
//! The order of the draws is the order published; changing it changes every checksum. Ids are kept as `u32`, because
//! the plan is part of the memory each run reports.

use std::ops::Range;

use anyhow::{Result, ensure};

use super::dotnet::DotnetRandom;
use super::generate;
use super::phase::{Index, Operation, Part, Phase};
use super::result::Workload;
use crate::store::{Country, ProfileQuery, Status};

/// Name of the workload in results.
pub const WORKLOAD_NAME: &str = "profile-store";
/// Most workers a run may have; each is a thread.
pub const WORKERS_MAX: u64 = 1024;
/// Up to this many profiles, there are as many queries as profiles; above it, a quarter.
const PROFILES_WITH_A_QUERY_EACH: u64 = 10_000;
/// Ids a created-at query spans.
const CREATED_AT_SPAN: i64 = 5000;

impl Workload {
    /// The published workload of `profiles` profiles: one worker, and every count as it follows from that number.
    pub fn published(profiles: u64, seed: i32) -> Self {
        let queries = if profiles <= PROFILES_WITH_A_QUERY_EACH { profiles } else { profiles / 4 };
        Self {
            name: WORKLOAD_NAME.to_owned(),
            profiles,
            workers: 1,
            reads: profiles,
            email_reads: profiles,
            queries,
            updates: profiles,
            post_reads: profiles,
            post_email_reads: profiles,
            post_queries: queries,
            query_limit: 100,
            seed,
        }
    }

    /// Refuses what cannot be run.
    pub fn validate(&self) -> Result<()> {
        let ids = u64::from(u32::MAX);
        ensure!((1..=ids).contains(&self.profiles), "the number of profiles is {}; expected 1 to {ids}", self.profiles);
        ensure!(
            (1..=WORKERS_MAX).contains(&self.workers),
            "the number of workers is {}; expected 1 to {WORKERS_MAX}",
            self.workers
        );
        ensure!(self.query_limit >= 1, "the query limit is 0; expected at least 1");
        Ok(())
    }
}

/// Every operation of a run.
pub struct Plan {
    workload: Workload,
    first: Reads,
    created_at: Vec<CreatedAt>,
    /// One list for each worker: an id is always updated by the same worker, in the order drawn.
    updates: Vec<Vec<u32>>,
    post_update: Reads,
}

/// What is drawn once for the phases up to the updates and once for those after them.
struct Reads {
    ids: Vec<u32>,
    email_ids: Vec<u32>,
    country_status: Vec<(Country, Status)>,
}

/// Both ends of a created-at query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedAt {
    from: i64,
    to: i64,
}

/// What one worker does in one phase.
#[derive(Clone, Debug)]
pub enum Work<'a> {
    /// Insert the profiles of these ids.
    Insert(Range<u64>),
    /// Read these ids.
    Read(&'a [u32]),
    /// Find the e-mails of these ids.
    FindByEmail(&'a [u32]),
    /// Scan the index for each of these.
    Scan(Queries<'a>),
    /// Scan the index for each of these, and read every profile.
    Query(Queries<'a>),
    /// Update these ids.
    Update(&'a [u32]),
}

/// Queries of one index.
#[derive(Clone, Copy, Debug)]
pub enum Queries<'a> {
    /// One of these each time.
    CountryStatus(&'a [(Country, Status)]),
    /// One of these each time.
    CreatedAt(&'a [CreatedAt]),
    /// The same, so many times.
    TopReputation(usize),
}

impl Plan {
    /// Draws the plan of a valid workload.
    pub fn build(workload: &Workload) -> Result<Self> {
        workload.validate()?;
        let mut random = DotnetRandom::new(workload.seed);
        let profiles = workload.profiles as i64;
        let first = Reads::draw(&mut random, profiles, [workload.reads, workload.email_reads, workload.queries]);
        let created_at = draw(workload.queries, || draw_created_at(&mut random, profiles, workload.seed));
        let updates = draw(workload.updates, || draw_id(&mut random, profiles));
        let counts = [workload.post_reads, workload.post_email_reads, workload.post_queries];
        let post_update = Reads::draw(&mut random, profiles, counts);
        let updates = by_worker(updates, workload.workers as usize);
        Ok(Self { workload: workload.clone(), first, created_at, updates, post_update })
    }

    /// What the plan was drawn for.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// What `worker`, counted from 0, does in `phase`.
    pub fn work(&self, phase: &Phase, worker: u64) -> Work<'_> {
        let share = share(phase.operations(&self.workload), self.workload.workers, worker);
        let slice = share.start as usize..share.end as usize;
        let reads = match phase.part {
            Part::First => &self.first,
            Part::PostUpdate => &self.post_update,
        };
        match phase.operation {
            Operation::Insert => Work::Insert(share.start + 1..share.end + 1),
            Operation::Read => Work::Read(&reads.ids[slice]),
            Operation::FindByEmail => Work::FindByEmail(&reads.email_ids[slice]),
            Operation::Scan(index) => Work::Scan(self.queries(reads, index, slice)),
            Operation::Query(index) => Work::Query(self.queries(reads, index, slice)),
            Operation::Update => Work::Update(&self.updates[worker as usize]),
        }
    }

    fn queries<'a>(&'a self, reads: &'a Reads, index: Index, slice: Range<usize>) -> Queries<'a> {
        match index {
            Index::CountryStatus => Queries::CountryStatus(&reads.country_status[slice]),
            Index::CreatedAt => Queries::CreatedAt(&self.created_at[slice]),
            Index::TopReputation => Queries::TopReputation(slice.len()),
        }
    }
}

impl Reads {
    fn draw(random: &mut DotnetRandom, profiles: i64, [ids, email_ids, queries]: [u64; 3]) -> Self {
        Self {
            ids: draw(ids, || draw_id(random, profiles)),
            email_ids: draw(email_ids, || draw_id(random, profiles)),
            country_status: draw(queries, || draw_country_status(random)),
        }
    }
}

impl Work<'_> {
    /// Number of operations.
    pub fn len(&self) -> usize {
        match self {
            Self::Insert(ids) => (ids.end - ids.start) as usize,
            Self::Read(ids) | Self::FindByEmail(ids) | Self::Update(ids) => ids.len(),
            Self::Scan(queries) | Self::Query(queries) => queries.len(),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Queries<'_> {
    fn len(&self) -> usize {
        match self {
            Self::CountryStatus(queries) => queries.len(),
            Self::CreatedAt(queries) => queries.len(),
            Self::TopReputation(times) => *times,
        }
    }

    /// The query of the `i`-th operation.
    #[inline]
    pub fn get(&self, i: usize) -> ProfileQuery {
        match self {
            Self::CountryStatus(queries) => {
                let (country, status) = queries[i];
                ProfileQuery::CountryStatus { country, status }
            }
            Self::CreatedAt(queries) => {
                let CreatedAt { from, to } = queries[i];
                ProfileQuery::CreatedAt { from, to }
            }
            Self::TopReputation(_) => ProfileQuery::TopReputation,
        }
    }
}

fn draw<T>(count: u64, draw_one: impl FnMut() -> T) -> Vec<T> {
    std::iter::repeat_with(draw_one).take(count as usize).collect()
}

fn draw_id(random: &mut DotnetRandom, profiles: i64) -> u32 {
    random.range(1, profiles + 1) as u32
}

fn draw_country_status(random: &mut DotnetRandom) -> (Country, Status) {
    let country = generate::country(random.below(generate::COUNTRY_COUNT as i32) as u64);
    let status = generate::status(random.below(Status::ALL.len() as i32) as u64);
    (country, status)
}

fn draw_created_at(random: &mut DotnetRandom, profiles: i64, seed: i32) -> CreatedAt {
    let start = random.range(1, (profiles - CREATED_AT_SPAN).max(2));
    let end = profiles.min(start + CREATED_AT_SPAN);
    CreatedAt { from: generate::created_at(start, seed), to: generate::created_at(end, seed) }
}

/// The contiguous share of `total` that falls to `worker`; the first workers take what does not divide.
fn share(total: u64, workers: u64, worker: u64) -> Range<u64> {
    let (each, rest) = (total / workers, total % workers);
    let start = worker * each + worker.min(rest);
    start..start + each + u64::from(worker < rest)
}

fn by_worker(ids: Vec<u32>, workers: usize) -> Vec<Vec<u32>> {
    if workers == 1 {
        return vec![ids];
    }
    let mut counts = vec![0; workers];
    for &id in &ids {
        counts[id as usize % workers] += 1;
    }
    let mut buckets: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
    for id in ids {
        buckets[id as usize % workers].push(id);
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::phase::PHASES;

    #[test]
    fn shares_are_contiguous_and_the_first_take_the_rest() {
        assert_eq!((0..4).map(|w| share(10, 4, w)).collect::<Vec<_>>(), [0..3, 3..6, 6..8, 8..10]);
        assert_eq!(share(2, 16, 1), 1..2);
        assert!(share(2, 16, 2).is_empty());
        assert_eq!(share(2, 16, 15), 2..2);
    }

    #[test]
    fn every_phase_gets_all_its_operations_whatever_the_number_of_workers() {
        for workers in [1, 3, 16] {
            let workload = Workload { workers, queries: 7, ..Workload::published(100, 5) };
            let plan = Plan::build(&workload).expect("the workload is valid");
            for phase in PHASES {
                let planned: usize = (0..workers).map(|worker| plan.work(&phase, worker).len()).sum();
                assert_eq!(planned as u64, phase.operations(&workload), "{}", phase.name);
            }
        }
    }

    #[test]
    fn updates_of_one_id_stay_with_one_worker_in_the_order_drawn() {
        let buckets = by_worker(vec![5, 2, 4, 5, 1, 2], 2);
        assert_eq!(buckets, [vec![2, 4, 2], vec![5, 5, 1]]);
    }

    #[test]
    fn counts_follow_from_the_number_of_profiles() {
        assert_eq!(Workload::published(10_000, 1).queries, 10_000);
        assert_eq!(Workload::published(10_001, 1).post_queries, 2500);
        assert_eq!(Workload::published(1, 1).queries, 1);
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_a_sentence() {
        let refusal = |workload: Workload| Plan::build(&workload).err().expect("refused").to_string();
        let good = Workload::published(10, 1);
        assert_eq!(refusal(Workload::published(0, 1)), "the number of profiles is 0; expected 1 to 4294967295");
        assert!(refusal(Workload { profiles: 1 << 32, ..good.clone() }).starts_with("the number of profiles"));
        assert!(refusal(Workload { workers: 0, ..good.clone() }).starts_with("the number of workers is 0"));
        assert!(refusal(Workload { workers: 5000, ..good.clone() }).starts_with("the number of workers is 5000"));
        assert_eq!(refusal(Workload { query_limit: 0, ..good }), "the query limit is 0; expected at least 1");
    }
}
