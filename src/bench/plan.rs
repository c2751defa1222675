//! What every worker will do in every phase: drawn before the phase's clock starts, from one stream of random numbers.
//!
//! The order of the draws is the order published; changing it changes every checksum. A plan holds no operations but
//! the place in the stream at which those of each phase begin, so that one buffer, as long as the longest list, serves
//! all phases: 4 bytes for each operation. Both the buffer and the memory behind it are there before the store is opened,
//! and stay as they are while it lives, so that what a run reports above its baseline is the store's alone.

use std::ops::Range;

use anyhow::{Result, ensure};

use super::dataset::DataSet;
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
            dataset: DataSet::Published,
            memory_bytes: None,
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

/// A workload, and where in the stream of random numbers each list of operations begins.
pub struct Plan {
    workload: Workload,
    begins: [DotnetRandom; List::ALL.len()],
}

/// What is drawn once, in this order. Phases that ask the same questions share a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Ids(Part),
    EmailIds(Part),
    CountryStatus(Part),
    CreatedAt,
    Updates,
}

impl List {
    const ALL: [Self; 8] = [
        Self::Ids(Part::First),
        Self::EmailIds(Part::First),
        Self::CountryStatus(Part::First),
        Self::CreatedAt,
        Self::Updates,
        Self::Ids(Part::PostUpdate),
        Self::EmailIds(Part::PostUpdate),
        Self::CountryStatus(Part::PostUpdate),
    ];

    /// The list of a phase; inserts and top reputation queries need none.
    fn of(phase: &Phase) -> Option<Self> {
        match phase.operation {
            Operation::Insert | Operation::Scan(Index::TopReputation) | Operation::Query(Index::TopReputation) => None,
            Operation::Read => Some(Self::Ids(phase.part)),
            Operation::FindByEmail => Some(Self::EmailIds(phase.part)),
            Operation::Scan(Index::CountryStatus) | Operation::Query(Index::CountryStatus) => {
                Some(Self::CountryStatus(phase.part))
            }
            Operation::Scan(Index::CreatedAt) | Operation::Query(Index::CreatedAt) => Some(Self::CreatedAt),
            Operation::Update => Some(Self::Updates),
        }
    }

    /// Its place in [`Self::ALL`].
    fn place(self) -> usize {
        Self::ALL.iter().position(|other| *other == self).expect("every list is there")
    }

    fn count(self, workload: &Workload) -> u64 {
        match self {
            Self::Ids(Part::First) => workload.reads,
            Self::Ids(Part::PostUpdate) => workload.post_reads,
            Self::EmailIds(Part::First) => workload.email_reads,
            Self::EmailIds(Part::PostUpdate) => workload.post_email_reads,
            Self::CountryStatus(Part::First) | Self::CreatedAt => workload.queries,
            Self::CountryStatus(Part::PostUpdate) => workload.post_queries,
            Self::Updates => workload.updates,
        }
    }

    /// Numbers that one operation takes in the buffer.
    fn width(self) -> u64 {
        if self == Self::CreatedAt { CREATED_AT_WIDTH as u64 } else { 1 }
    }
}

/// The operations of one phase, drawn.
pub struct Operations {
    numbers: Vec<u32>,
    /// Where the updates of each worker begin, and their end. An id is always updated by the same worker.
    updates: Vec<usize>,
}

/// Numbers of a created-at query: both ends, each its upper and its lower half.
const CREATED_AT_WIDTH: usize = 4;

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
    /// One of these each time: `country_status` tells which.
    CountryStatus(&'a [u32]),
    /// One of these each time.
    CreatedAt(&'a [[u32; CREATED_AT_WIDTH]]),
    /// The same, so many times.
    TopReputation(usize),
}

impl Plan {
    /// The plan of a valid workload. Goes through all its draws once.
    pub fn build(workload: &Workload) -> Result<Self> {
        workload.validate()?;
        let mut random = DotnetRandom::new(workload.seed);
        let begins = List::ALL.map(|list| {
            let begin = random.clone();
            draw(workload, list, &mut random, |_| ());
            begin
        });
        Ok(Self { workload: workload.clone(), begins })
    }

    /// What the plan was made for.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Room for the operations of any phase, all of it in memory.
    pub fn room(&self) -> Operations {
        let longest = List::ALL.map(|list| list.count(&self.workload) * list.width()).into_iter().max();
        // Zeros would be memory that the system has only promised.
        Operations { numbers: vec![u32::MAX; longest.unwrap_or(0) as usize], updates: Vec::new() }
    }

    /// Draws the operations of `phase` in place of what is in `operations`.
    pub fn draw(&self, phase: &Phase, operations: &mut Operations) {
        let Some(list) = List::of(phase) else { return };
        let stream = || self.begins[list.place()].clone();
        let numbers = &mut operations.numbers;
        if list == List::Updates {
            operations.updates = draw_updates(&self.workload, stream, numbers);
            return;
        }
        numbers.clear();
        draw(&self.workload, list, &mut stream(), |drawn| numbers.extend_from_slice(drawn));
    }

    /// What `worker`, counted from 0, does in `phase`, whose operations were drawn last.
    pub fn work<'a>(&self, phase: &Phase, operations: &'a Operations, worker: u64) -> Work<'a> {
        let share = share(phase.operations(&self.workload), self.workload.workers, worker);
        let slice = share.start as usize..share.end as usize;
        match phase.operation {
            Operation::Insert => Work::Insert(share.start + 1..share.end + 1),
            Operation::Read => Work::Read(&operations.numbers[slice]),
            Operation::FindByEmail => Work::FindByEmail(&operations.numbers[slice]),
            Operation::Scan(index) => Work::Scan(operations.queries(index, slice)),
            Operation::Query(index) => Work::Query(operations.queries(index, slice)),
            Operation::Update => Work::Update(operations.updates_of(worker as usize)),
        }
    }
}

impl Operations {
    fn queries(&self, index: Index, slice: Range<usize>) -> Queries<'_> {
        match index {
            Index::CountryStatus => Queries::CountryStatus(&self.numbers[slice]),
            Index::CreatedAt => Queries::CreatedAt(&self.numbers.as_chunks().0[slice]),
            Index::TopReputation => Queries::TopReputation(slice.len()),
        }
    }

    fn updates_of(&self, worker: usize) -> &[u32] {
        &self.numbers[self.updates[worker]..self.updates[worker + 1]]
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
                let (country, status) = country_status(queries[i]);
                ProfileQuery::CountryStatus { country, status }
            }
            Self::CreatedAt(queries) => {
                let [from_upper, from_lower, to_upper, to_lower] = queries[i];
                ProfileQuery::CreatedAt { from: joined(from_upper, from_lower), to: joined(to_upper, to_lower) }
            }
            Self::TopReputation(_) => ProfileQuery::TopReputation,
        }
    }
}

/// Draws a list and hands each operation, as it is kept in the buffer, to `take`.
fn draw(workload: &Workload, list: List, random: &mut DotnetRandom, mut take: impl FnMut(&[u32])) {
    let profiles = workload.profiles as i64;
    for _ in 0..list.count(workload) {
        match list {
            List::Ids(_) | List::EmailIds(_) | List::Updates => take(&[draw_id(random, profiles)]),
            List::CountryStatus(_) => take(&[draw_country_status(random)]),
            List::CreatedAt => take(&draw_created_at(random, workload)),
        }
    }
}

fn draw_id(random: &mut DotnetRandom, profiles: i64) -> u32 {
    random.range(1, profiles + 1) as u32
}

const STATUSES: u32 = Status::ALL.len() as u32;

fn draw_country_status(random: &mut DotnetRandom) -> u32 {
    let country = random.below(generate::COUNTRY_COUNT as i32) as u32;
    country * STATUSES + random.below(STATUSES as i32) as u32
}

/// The country and status that a number in the buffer stands for.
fn country_status(number: u32) -> (Country, Status) {
    (generate::country(u64::from(number / STATUSES)), generate::status(u64::from(number % STATUSES)))
}

fn draw_created_at(random: &mut DotnetRandom, workload: &Workload) -> [u32; CREATED_AT_WIDTH] {
    let profiles = workload.profiles as i64;
    let start = random.range(1, (profiles - CREATED_AT_SPAN).max(2));
    let end = profiles.min(start + CREATED_AT_SPAN);
    let [from, to] = [start, end].map(|id| workload.dataset.created_at(id, workload.seed) as u64);
    [(from >> 32) as u32, from as u32, (to >> 32) as u32, to as u32]
}

/// One number of two halves, as [`draw_created_at`] takes it apart.
fn joined(upper: u32, lower: u32) -> i64 {
    (u64::from(upper) << 32 | u64::from(lower)) as i64
}

/// Draws the updates of each worker behind those of the one before it, each in the order drawn; gives where each
/// worker's begin, and the end. Drawing them twice, to count and to place them, takes no second buffer.
fn draw_updates(workload: &Workload, stream: impl Fn() -> DotnetRandom, numbers: &mut Vec<u32>) -> Vec<usize> {
    let workers = workload.workers as usize;
    let worker_of = |id: u32| id as usize % workers;
    let mut begins = vec![0; workers + 1];
    draw(workload, List::Updates, &mut stream(), |drawn| begins[worker_of(drawn[0]) + 1] += 1);
    for worker in 0..workers {
        begins[worker + 1] += begins[worker];
    }
    let mut free = begins.clone();
    numbers.resize(workload.updates as usize, 0);
    draw(workload, List::Updates, &mut stream(), |drawn| {
        let place = &mut free[worker_of(drawn[0])];
        numbers[*place] = drawn[0];
        *place += 1;
    });
    begins
}

/// The contiguous share of `total` that falls to `worker`; the first workers take what does not divide.
fn share(total: u64, workers: u64, worker: u64) -> Range<u64> {
    let (each, rest) = (total / workers, total % workers);
    let start = worker * each + worker.min(rest);
    start..start + each + u64::from(worker < rest)
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
            let mut operations = plan.room();
            for phase in PHASES {
                plan.draw(&phase, &mut operations);
                let planned: usize = (0..workers).map(|worker| plan.work(&phase, &operations, worker).len()).sum();
                assert_eq!(planned as u64, phase.operations(&workload), "{}", phase.name);
            }
        }
    }

    #[test]
    fn updates_of_one_id_stay_with_one_worker_in_the_order_drawn() {
        let updates = |workers: usize| {
            let workload = Workload { workers: workers as u64, updates: 500, ..Workload::published(20, 5) };
            let plan = Plan::build(&workload).expect("the workload is valid");
            let mut operations = plan.room();
            plan.draw(&PHASES[9], &mut operations);
            (0..workers).map(|worker| operations.updates_of(worker).to_vec()).collect::<Vec<_>>()
        };
        let [drawn] = updates(1).try_into().expect("one worker");
        for (worker, ids) in updates(3).iter().enumerate() {
            let expected: Vec<u32> = drawn.iter().copied().filter(|id| *id as usize % 3 == worker).collect();
            assert_eq!(*ids, expected);
        }
    }

    #[test]
    fn phases_can_be_drawn_in_any_order_and_again_into_the_same_room() {
        for dataset in DataSet::ALL {
            let workload = Workload { workers: 2, dataset, ..Workload::published(300, -5) };
            let plan = Plan::build(&workload).expect("the workload is valid");
            let mut operations = plan.room();
            let room = operations.numbers.capacity();
            let mut draw = |phase| {
                plan.draw(phase, &mut operations);
                assert_eq!(operations.numbers.capacity(), room, "nothing is allocated while a store is open");
                format!("{:?}", [0, 1].map(|worker| plan.work(phase, &operations, worker)))
            };
            let forward: Vec<String> = PHASES.iter().map(&mut draw).collect();
            let backward: Vec<String> = PHASES.iter().rev().map(&mut draw).collect();
            assert!(forward.iter().eq(backward.iter().rev()), "{dataset}");
            assert!(forward[1] != forward[2] && forward[1] != forward[10], "each list is drawn by itself");
        }
    }

    #[test]
    fn both_halves_of_a_time_come_back() {
        for time in [0, -1, i64::MAX, i64::MIN, 1_672_531_200_000] {
            assert_eq!(joined((time as u64 >> 32) as u32, time as u64 as u32), time);
        }
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
