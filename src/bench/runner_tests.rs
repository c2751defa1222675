use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::bench::contenders::{self, floor::Floor};
use crate::bench::dataset::DataSet;
use crate::bench::result::{PhaseResult, Workload};
use crate::store::{Error, IndexCheck, Profile, ProfileQuery, ProfileView, Result as StoreResult};

/// Checksums of the published program, one for each phase of each configuration.
const VECTORS: &str = include_str!("vectors.csv");

/// The columns of a configuration, as written: profiles, seed, limit, workers, queries.
type Configuration = [i64; 5];

fn vectors() -> BTreeMap<Configuration, BTreeMap<String, String>> {
    let mut vectors = BTreeMap::<_, BTreeMap<_, _>>::new();
    for line in VECTORS.lines().skip(1) {
        let columns: Vec<_> = line.split(',').collect();
        let configuration = std::array::from_fn(|i| columns[i].parse().expect("a number"));
        vectors.entry(configuration).or_default().insert(columns[5].to_owned(), columns[6].to_owned());
    }
    vectors
}

fn workload([profiles, seed, limit, workers, queries]: Configuration) -> Workload {
    Workload {
        query_limit: limit as u64,
        workers: workers as u64,
        queries: queries as u64,
        post_queries: queries as u64,
        ..Workload::published(profiles as u64, seed as i32)
    }
}

/// What a run told, and how it ended.
struct Told {
    events: Vec<Event>,
    outcome: Result<()>,
}

impl Told {
    fn phases(&self) -> Vec<&PhaseResult> {
        let phases = self.events.iter().filter_map(|event| match event {
            Event::PhaseFinished { phase } => Some(phase),
            _ => None,
        });
        phases.collect()
    }

    /// Checksums by phase, the final one as `verify`.
    fn checksums(&self) -> BTreeMap<String, String> {
        let mut checksums: BTreeMap<_, _> =
            self.phases().into_iter().map(|phase| (phase.name.clone(), phase.checksum.clone())).collect();
        if let Some(Event::Finished { verify_checksum, .. }) = self.events.last() {
            checksums.insert("verify".to_owned(), verify_checksum.clone());
        }
        checksums
    }

    fn failure(&self) -> String {
        format!("{:#}", self.outcome.as_ref().expect_err("the run fails"))
    }
}

fn run_with(contender: &dyn Contender, workload: &Workload, on_event: impl Fn(&Event, &AtomicBool) + Sync) -> Told {
    let directory = tempfile::tempdir().expect("a directory");
    let stop = Arc::new(AtomicBool::new(false));
    let classes = contender.classes().iter().copied();
    let durability = classes.filter(|class| *class != Durability::Sync).max().expect("a class that does not sync");
    let settings = RunSettings { dir: directory.path().to_owned(), durability, stop: Arc::clone(&stop) };
    let plan = Plan::build(workload).expect("the workload is valid");
    let events = Mutex::new(Vec::new());
    let outcome = run(contender, &plan, &settings, &|event| {
        on_event(&event, &stop);
        events.lock().expect("nobody panics").push(event);
    });
    Told { events: events.into_inner().expect("nobody panics"), outcome }
}

fn run_whole(contender: &dyn Contender, workload: &Workload) -> Told {
    run_with(contender, workload, |_, _| ())
}

fn assert_reproduces(contender: &dyn Contender, configuration: Configuration, expected: &BTreeMap<String, String>) {
    let name = contender.name();
    let told = run_whole(contender, &workload(configuration));
    told.outcome.as_ref().unwrap_or_else(|error| panic!("{name} {configuration:?}: {error:#}"));
    assert_eq!(told.checksums(), *expected, "{name} {configuration:?}");
    let Some(Event::Finished { index_check, all_fields_checksum, .. }) = told.events.last() else {
        panic!("{name} does not finish");
    };
    assert_eq!(index_check.problems, Vec::<String>::new(), "{name} {configuration:?}");
    assert_eq!(all_fields_checksum.len(), 16);
}

#[test]
fn every_published_checksum_comes_out_of_plain_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.values().map(BTreeMap::len).sum::<usize>(), VECTORS.lines().count() - 1);
    for (configuration, expected) in vectors {
        assert_reproduces(&Floor::default(), configuration, &expected);
    }
}

#[test]
fn every_contender_reproduces_the_small_configurations() {
    let vectors = vectors();
    for contender in contenders::all() {
        for workers in [4, 16] {
            let configuration = [10, 570_123_434, 100, workers, 10];
            assert_reproduces(contender.as_ref(), configuration, &vectors[&configuration]);
        }
        for configuration in [[1000, 570_123_434, 100, 1, 1000], [1000, 42, 7, 3, 1000]] {
            assert_reproduces(contender.as_ref(), configuration, &vectors[&configuration]);
        }
    }
}

#[test]
fn all_fields_agree_between_contenders_and_workers() {
    let all_fields = |contender: &dyn Contender, workers| match run_whole(
        contender,
        &Workload { workers, ..Workload::published(200, 3) },
    )
    .events
    .pop()
    {
        Some(Event::Finished { all_fields_checksum, .. }) => all_fields_checksum,
        other => panic!("{} ends with {other:?}", contender.name()),
    };
    let expected = all_fields(&Floor::default(), 1);
    for contender in contenders::all() {
        assert_eq!(all_fields(contender.as_ref(), 1), expected, "{}", contender.name());
        assert_eq!(all_fields(contender.as_ref(), 2), expected, "{}", contender.name());
    }
}

#[test]
fn contenders_answer_alike_on_natural_data() {
    for workers in [1, 3] {
        let workload = Workload { workers, dataset: DataSet::Natural, ..Workload::published(600, 3) };
        let answers = |contender: &dyn Contender| {
            let told = run_whole(contender, &workload);
            let Some(Event::Finished { index_check, all_fields_checksum, .. }) = told.events.last() else {
                panic!("{} does not finish: {}", contender.name(), told.failure());
            };
            assert_eq!(index_check.problems, Vec::<String>::new(), "{}", contender.name());
            let data_bytes: Vec<_> = told.phases().iter().filter_map(|phase| phase.data_bytes).collect();
            (told.checksums(), all_fields_checksum.clone(), data_bytes)
        };
        let expected = answers(&Floor::default());
        assert_eq!(expected.2.len(), 2, "inserts and updates write");
        for contender in contenders::all() {
            assert_eq!(answers(contender.as_ref()), expected, "{} with {workers} workers", contender.name());
        }
    }
}

#[test]
fn events_tell_the_life_of_a_run_in_order() {
    let told = run_whole(&Floor::default(), &Workload::published(50, 1));
    let steps = told.events.iter().filter_map(|event| match event {
        Event::Opened { .. } => Some("opened".to_owned()),
        Event::PhaseFinished { phase } => Some(phase.name.clone()),
        Event::StepFinished { step, .. } => Some(format!("{step:?}")),
        Event::Finished { .. } => Some("finished".to_owned()),
        _ => None,
    });
    let mut expected: Vec<_> = PHASES.iter().map(|phase| phase.name.to_owned()).collect();
    expected.insert(10, "PostUpdateStabilize".to_owned());
    expected.insert(1, "PreReadStabilize".to_owned());
    expected.insert(0, "opened".to_owned());
    expected.extend(["Settle", "Reopen", "Verify", "Check", "finished"].map(str::to_owned));
    assert_eq!(steps.collect::<Vec<_>>(), expected);
    for phase in told.phases() {
        assert_eq!(phase.operations, 50, "{}", phase.name);
        assert!(phase.latency_us.is_some_and(|latency| latency.p50 > 0.0 && latency.max >= latency.p999));
    }
}

#[test]
fn a_phase_without_operations_shows_the_start_value_and_no_rate() {
    let workload = Workload { reads: 0, ..Workload::published(5, 1) };
    let told = run_whole(&Floor::default(), &workload);
    let reads = told.phases()[1];
    assert_eq!((reads.operations, reads.ops_per_s, reads.latency_us), (0, None, None));
    assert_eq!(reads.checksum, "CBF29CE484222325");
}

#[test]
fn a_stopped_run_keeps_its_finished_phases() {
    for workers in [1, 4] {
        let workload = Workload { workers, ..Workload::published(500, 1) };
        let told = run_with(&Floor::default(), &workload, |event, stop| {
            if matches!(event, Event::PhaseStarted { name, .. } if name == "query country/status") {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(told.outcome.as_ref().is_err_and(|error| error.downcast_ref::<Interrupted>().is_some()));
        assert_eq!(told.failure(), "phase `query country/status`: interrupted");
        assert_eq!(told.phases().len(), 4);
    }
}

/// What is wrong with a [`Faulty`] store.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    LosesProfile(i64),
    LosesEmail(&'static str),
    GivesAnother,
    OneTooMany,
    LosesUpdates,
    RefusesEverySecondUpdate,
    CountsWrong,
    Panics,
}

/// Plain vectors with a fault.
struct Faulty {
    floor: Floor,
    fault: Fault,
}

impl Contender for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn version(&self) -> String {
        self.floor.version()
    }

    fn classes(&self) -> &'static [Durability] {
        self.floor.classes()
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        Ok(Box::new(OpenFaulty { store: self.floor.open(dir, options)?, fault: self.fault }))
    }
}

struct OpenFaulty {
    store: Box<dyn OpenStore>,
    fault: Fault,
}

impl OpenStore for OpenFaulty {
    fn profiles(&self) -> &dyn ProfileStore {
        self
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.store.settings()
    }

    fn stabilize(&self) -> Result<bool> {
        self.store.stabilize()
    }

    fn settle(&self) -> Result<()> {
        self.store.settle()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.store.close()
    }
}

impl OpenFaulty {
    fn inner(&self) -> &dyn ProfileStore {
        self.store.profiles()
    }
}

impl ProfileStore for OpenFaulty {
    fn insert(&self, profile: Profile) -> StoreResult<()> {
        self.inner().insert(profile)
    }

    fn get(&self, user_id: i64, read: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<bool> {
        match self.fault {
            Fault::LosesProfile(id) if id == user_id => Ok(false),
            Fault::GivesAnother => self.inner().get(user_id % 3 + 1, read),
            Fault::Panics if user_id == 3 => panic!("a store that panics"),
            _ => self.inner().get(user_id, read),
        }
    }

    fn find_by_email(&self, email: &str, read: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<bool> {
        match self.fault {
            Fault::LosesEmail(lost) if lost == email => Ok(false),
            _ => self.inner().find_by_email(email, read),
        }
    }

    fn scan(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(i64)) -> StoreResult<()> {
        self.inner().scan(query, limit, visit)
    }

    fn query(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<()> {
        let is_due = self.fault == Fault::OneTooMany && matches!(query, ProfileQuery::CreatedAt { .. });
        self.inner().query(query, limit + usize::from(is_due), visit)
    }

    fn modify(
        &self,
        user_id: i64,
        change: &mut dyn FnMut(&ProfileView<'_>) -> Profile,
        read: &mut dyn FnMut(&ProfileView<'_>),
    ) -> StoreResult<bool> {
        let is_second = self.fault == Fault::RefusesEverySecondUpdate && user_id % 2 == 0;
        if is_second || self.fault == Fault::LosesUpdates {
            return Err(Error::Foreign { store: "faulty", message: "the disk is full".to_owned() });
        }
        self.inner().modify(user_id, change, read)
    }

    fn delete(&self, user_id: i64) -> StoreResult<bool> {
        self.inner().delete(user_id)
    }

    fn count(&self) -> StoreResult<u64> {
        Ok(self.inner().count()? + u64::from(self.fault == Fault::CountsWrong))
    }

    fn check_indexes(&self) -> StoreResult<IndexCheck> {
        self.inner().check_indexes()
    }
}

#[test]
fn a_fault_fails_the_run_and_is_told_with_its_phase() {
    let faults = [
        (Fault::LosesProfile(3), 1, "phase `read by user id`: profile 3 is missing"),
        (Fault::LosesEmail("user000000000003@example03.com"), 2, "phase `lookup by email`: profile 3 is missing"),
        (Fault::GivesAnother, 1, "phase `read by user id`: profile"),
        (Fault::OneTooMany, 6, "phase `query created-at range`: query 0 gave 6 profiles; the limit is 5"),
        (Fault::LosesUpdates, 9, "phase `update profiles`: updating profile"),
        (Fault::RefusesEverySecondUpdate, 9, "phase `update profiles`: updating profile"),
        (Fault::CountsWrong, 16, "verify: the store holds 31 profiles; 30 were inserted"),
        (Fault::Panics, 1, "phase `read by user id`: a worker panicked"),
    ];
    for (fault, finished, sentence) in faults {
        for workers in [1, 3] {
            let workload =
                Workload { workers, query_limit: 5, reads: 500, email_reads: 500, ..Workload::published(30, 1) };
            let told = run_whole(&Faulty { floor: Floor::default(), fault }, &workload);
            assert!(told.failure().starts_with(sentence), "{}", told.failure());
            assert_eq!(told.phases().len(), finished, "{sentence}");
        }
    }
}

/// Calls that fail are fast: counted with the others, they make a store look good.
#[test]
fn a_phase_in_which_calls_fail_has_no_times_and_tells_the_first_cause() {
    let workload = Workload { updates: 10_000, ..Workload::published(30, 1) };
    let told = run_whole(&Faulty { floor: Floor::default(), fault: Fault::RefusesEverySecondUpdate }, &workload);
    assert!(told.failure().contains("the disk is full"), "{}", told.failure());
    let phases = told.phases();
    assert!(phases.iter().all(|phase| phase.name != "update profiles"), "half of it was not done");
    assert!(phases.iter().all(|phase| !phase.name.starts_with("post-update")), "nor what comes after");
    assert_eq!(phases.len(), 9, "what came before stays");
}

#[test]
fn a_profile_that_is_only_lost_after_the_reopen_fails_verify() {
    let workload = Workload { reads: 0, post_reads: 0, ..Workload::published(30, 1) };
    let told = run_whole(&Faulty { floor: Floor::default(), fault: Fault::LosesProfile(15) }, &workload);
    assert_eq!(told.failure(), "verify: profile 15 is missing");
    let told = run_whole(&Faulty { floor: Floor::default(), fault: Fault::LosesProfile(14) }, &workload);
    assert_eq!(told.failure(), "checking every profile and index: profile 14 is missing");
    assert_eq!(told.phases().len(), 16);
}
