//! Transactions: what each isolation promises, for the anomalies by name and for histories that are drawn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::engine::disk::sim::{Random, SimDisk};
use crate::engine::{
    Batch, Database, Direction, Durability, Error, Isolation, KeyRange, Options, Result, Transaction, TreeId,
};

use Isolation::{ReadCommitted, Serializable, Snapshot};

const ALL: [Isolation; 3] = [ReadCommitted, Snapshot, Serializable];

fn open() -> (Database, TreeId) {
    let database = Database::open_on(Arc::new(SimDisk::new()), Options::default()).expect("opens");
    let tree = database.tree("tree").expect("a tree");
    for key in [b"a", b"b"] {
        put(&database, tree, key, b"0");
    }
    (database, tree)
}

fn put(database: &Database, tree: TreeId, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, key, value);
    database.commit(&batch).expect("commits");
}

fn keys(transaction: &Transaction<'_>, tree: TreeId, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scan = transaction.scan(tree, KeyRange::all(), direction).expect("scans");
    let mut found = Vec::new();
    while let Some((key, value)) = scan.next().expect("goes on") {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

fn conflicts(outcome: Result<()>) -> bool {
    match outcome {
        Ok(()) => false,
        Err(Error::Conflict { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_transaction_reads_its_own_changes_and_nobody_else_does_before_it_commits() {
    for isolation in ALL {
        // Of versions that are in memory, and of settled ones.
        for settled in [false, true] {
            let (database, tree) = open();
            if settled {
                database.settle().expect("settles");
            }
            let transaction = database.begin(isolation);
            transaction.put(tree, b"a", b"1").expect("changes");
            transaction.put(tree, b"a", b"2").expect("changes");
            transaction.delete(tree, b"b").expect("changes");
            transaction.put(tree, b"c", b"3").expect("changes");
            let expected = [(b"a".to_vec(), b"2".to_vec()), (b"c".to_vec(), b"3".to_vec())];
            assert_eq!(keys(&transaction, tree, Direction::Forward), expected);
            assert_eq!(keys(&transaction, tree, Direction::Reverse), [expected[1].clone(), expected[0].clone()]);
            assert_eq!(transaction.count(tree, &KeyRange::all()).expect("counts"), 2);
            assert_eq!(transaction.get(tree, b"a").expect("reads"), Some(b"2".to_vec()));
            assert_eq!(transaction.get(tree, b"b").expect("reads"), None);
            assert_eq!(database.get(tree, b"a").expect("reads"), Some(b"0".to_vec()));
            transaction.commit().expect("nobody else is there");
            assert_eq!(database.get(tree, b"a").expect("reads"), Some(b"2".to_vec()));
            assert_eq!(database.get(tree, b"b").expect("reads"), None);
        }
    }
}

#[test]
fn a_transaction_that_is_dropped_changes_nothing() {
    let (database, tree) = open();
    let before = database.stats().sequence;
    let transaction = database.begin(Snapshot);
    transaction.put(tree, b"a", b"1").expect("changes");
    drop(transaction);
    assert_eq!(database.stats().sequence, before);
}

/// Two read the same value and each writes what follows from it.
#[test]
fn no_update_is_lost() {
    for isolation in [Snapshot, Serializable] {
        let (database, tree) = open();
        let [one, other] = [(); 2].map(|()| database.begin(isolation));
        for transaction in [&one, &other] {
            assert_eq!(transaction.get(tree, b"a").expect("reads"), Some(b"0".to_vec()));
            transaction.put(tree, b"a", b"1").expect("changes");
        }
        assert!(!conflicts(one.commit()) && conflicts(other.commit()), "{isolation:?}");
    }
}

/// Also for what was flushed and settled in between, where versions carry no numbers any more.
#[test]
fn a_change_is_known_whatever_became_of_the_delta_it_was_in() {
    let (database, tree) = open();
    let transaction = database.begin(Snapshot);
    transaction.put(tree, b"a", b"1").expect("changes");
    put(&database, tree, b"a", b"2");
    database.settle().expect("settles");
    put(&database, tree, b"b", b"2");
    database.flush().expect("flushes");
    assert!(conflicts(transaction.commit()));
    assert_eq!(database.get(tree, b"a").expect("reads"), Some(b"2".to_vec()));
}

/// Each reads what the other one writes.
#[test]
fn only_serializable_transactions_have_no_write_skew() {
    for isolation in ALL {
        let (database, tree) = open();
        let [one, other] = [(); 2].map(|()| database.begin(isolation));
        assert!(one.get(tree, b"a").and(other.get(tree, b"b")).is_ok());
        one.put(tree, b"b", b"1").expect("changes");
        other.put(tree, b"a", b"1").expect("changes");
        assert!(!conflicts(one.commit()));
        assert_eq!(conflicts(other.commit()), isolation == Serializable, "{isolation:?}");
    }
}

/// Each counts, finds room for one, and enters it.
#[test]
fn only_serializable_transactions_see_no_phantoms() {
    for isolation in ALL {
        let (database, tree) = open();
        let range = || KeyRange::prefix(b"x");
        let [one, other] = [(); 2].map(|()| database.begin(isolation));
        for (transaction, key) in [(&one, b"x1"), (&other, b"x2")] {
            assert_eq!(transaction.count(tree, &range()).expect("counts"), 0);
            transaction.put(tree, key, b"").expect("changes");
        }
        assert!(!conflicts(one.commit()));
        assert_eq!(conflicts(other.commit()), isolation == Serializable, "{isolation:?}");
    }
}

#[test]
fn a_key_that_was_looked_for_in_vain_was_read_too() {
    let (database, tree) = open();
    let transaction = database.begin(Serializable);
    assert_eq!(transaction.get(tree, b"not there").expect("reads"), None);
    transaction.put(tree, b"a", b"1").expect("changes");
    put(&database, tree, b"not there", b"");
    assert!(conflicts(transaction.commit()));
}

#[test]
fn what_a_transaction_does_not_depend_on_is_no_conflict() {
    let (database, tree) = open();
    let other_tree = database.tree("other").expect("a tree");
    let transaction = database.begin(Serializable);
    assert_eq!(transaction.count(tree, &KeyRange::prefix(b"x")).expect("counts"), 0);
    transaction.put(tree, b"a", b"1").expect("changes");
    put(&database, tree, b"w", b"below the range");
    put(&database, tree, b"y", b"above it");
    put(&database, other_tree, b"x1", b"in another tree");
    assert!(!conflicts(transaction.commit()));
}

#[test]
fn reads_of_a_snapshot_repeat_and_those_of_what_is_committed_go_on() {
    for isolation in ALL {
        let (database, tree) = open();
        let transaction = database.begin(isolation);
        transaction.put(tree, b"b", b"own").expect("changes");
        assert_eq!(transaction.get(tree, b"a").expect("reads"), Some(b"0".to_vec()));
        put(&database, tree, b"a", b"1");
        put(&database, tree, b"b", b"1");
        put(&database, tree, b"c", b"1");
        let sees_it = isolation == ReadCommitted;
        let expected = if sees_it { b"1" } else { b"0" };
        assert_eq!(transaction.get(tree, b"a").expect("reads"), Some(expected.to_vec()), "{isolation:?}");
        assert_eq!(transaction.get(tree, b"b").expect("reads"), Some(b"own".to_vec()), "{isolation:?}");
        for direction in [Direction::Forward, Direction::Reverse] {
            let found = keys(&transaction, tree, direction);
            assert_eq!(found.len(), if sees_it { 3 } else { 2 });
            assert!(found.contains(&(b"b".to_vec(), b"own".to_vec())), "{found:?}");
        }
        assert_eq!(conflicts(transaction.commit()), isolation != ReadCommitted);
    }
}

#[test]
fn a_transaction_that_is_open_for_too_long_is_refused_and_a_new_one_is_not() {
    let (database, tree) = open();
    let transaction = database.begin(Snapshot);
    transaction.put(tree, b"mine alone", b"1").expect("changes");
    for round in 0..40_u8 {
        put(&database, tree, b"a", &[round]);
        database.flush().expect("flushes");
    }
    let refused = transaction.commit().expect_err("not all that came since is known");
    assert!(refused.to_string().contains("more than is kept"), "{refused}");
    let mut runs = 0;
    database
        .transact(Snapshot, |transaction| {
            runs += 1;
            transaction.put(tree, b"mine alone", b"1")
        })
        .expect("a new one is none the worse");
    assert_eq!(runs, 1);
}

#[test]
fn what_is_too_large_is_refused_at_once() {
    let (database, tree) = open();
    let transaction = database.begin(Snapshot);
    let refused = transaction.put(tree, &vec![0; crate::engine::KEY_BYTES_MAX + 1], b"");
    assert!(matches!(refused, Err(Error::TooLarge { what: "key", .. })), "{refused:?}");
    let refused = transaction.put(TreeId(9), b"a", b"");
    assert!(matches!(refused, Err(Error::UnknownTree { id: 9 })), "{refused:?}");
    transaction.commit().expect("it changes nothing");
}

#[test]
fn a_closure_runs_again_until_its_transaction_commits_or_it_has_run_often_enough() {
    let (database, tree) = open();
    let mut left = 3;
    let done = database.transact(Snapshot, |transaction| -> Result<u32> {
        transaction.put(tree, b"a", b"mine")?;
        if left > 0 {
            left -= 1;
            put(&database, tree, b"a", b"theirs");
        }
        Ok(7)
    });
    let done = done.expect("commits in the end");
    assert_eq!((done.value, done.attempts), (7, 4));
    let mut runs = 0;
    let refused = database.transact(Snapshot, |transaction| -> Result<()> {
        runs += 1;
        put(&database, tree, b"a", b"theirs");
        transaction.put(tree, b"a", b"mine")
    });
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    assert_eq!(runs, crate::engine::ATTEMPTS_MAX);
    let failed = database.transact(Snapshot, |transaction| -> Result<()> {
        transaction.put(tree, b"a", b"never")?;
        Err(Error::Closed)
    });
    assert!(matches!(failed, Err(Error::Closed)));
    assert_eq!(database.get(tree, b"a").expect("reads"), Some(b"theirs".to_vec()));
}

#[test]
fn counters_count_every_increment_and_conflict_with_none() {
    let (database, tree) = open();
    assert_eq!(database.increment(tree, b"n", 5).expect("adds"), 5);
    let transaction = database.begin(Serializable);
    transaction.increment(tree, b"n", 10).expect("adds");
    transaction.increment(tree, b"n", 1).expect("adds");
    assert_eq!(database.increment(tree, b"n", -7).expect("adds"), -2);
    assert_eq!(transaction.get(tree, b"n").expect("reads"), Some(16_i64.to_le_bytes().to_vec()));
    // That it was read makes it something that must not change.
    assert!(conflicts(transaction.commit()));
    let transaction = database.begin(Serializable);
    transaction.increment(tree, b"n", 10).expect("adds");
    database.increment(tree, b"n", 2).expect("adds");
    assert!(!conflicts(transaction.commit()));
    assert_eq!(database.counter(tree, b"n").expect("reads"), 10);
    let transaction = database.begin(Snapshot);
    transaction.put(tree, b"m", &1_i64.to_le_bytes()).expect("changes");
    transaction.increment(tree, b"m", 1).expect("adds to its own");
    transaction.increment(tree, b"n", 1).expect("adds");
    transaction.delete(tree, b"n").expect("changes");
    transaction.commit().expect("nobody else is there");
    assert_eq!((database.counter(tree, b"m").ok(), database.get(tree, b"n").ok()), (Some(2), Some(None)));
    assert!(matches!(database.increment(tree, b"a", 1), Err(Error::NotACounter { len: 1 })));
    database.increment(tree, b"n", i64::MAX).expect("adds");
    assert!(matches!(database.increment(tree, b"n", 1), Err(Error::CounterOverflow)));
}

#[test]
fn a_value_is_updated_with_nobody_in_between() {
    let (database, tree) = open();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let update = |value: Option<&[u8]>| Some([value.unwrap_or_default(), b"."].concat());
                    database.fetch_update(tree, b"dots", update).expect("commits");
                    database.increment(tree, b"n", 1).expect("adds");
                    let add = |transaction: &Transaction<'_>| transaction.increment(tree, b"n", 1);
                    assert_eq!(database.transact(Serializable, add).expect("commits").attempts, 1);
                }
            });
        }
    });
    assert_eq!(database.get(tree, b"dots").expect("reads").map(|dots| dots.len()), Some(1_600));
    assert_eq!(database.counter(tree, b"n").expect("reads"), 3_200);
    assert_eq!(database.fetch_update(tree, b"dots", |_| None).expect("commits").map(|dots| dots.len()), Some(1_600));
    assert_eq!(database.get(tree, b"dots").expect("reads"), None);
}

/// What one transaction that was committed read and wrote.
struct Done {
    isolation: Isolation,
    /// The commits that it saw, and its own.
    begun: u64,
    committed: u64,
    reads: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

const THREADS: u64 = 8;
const KEYS: usize = 16;

fn draw_key(random: &mut Random) -> Vec<u8> {
    format!("key {:02}", random.below(KEYS)).into_bytes()
}

/// A few reads, scans and changes. No value is written twice, so that what is read tells who wrote it.
fn run(transaction: &Transaction<'_>, tree: TreeId, random: &mut Random, value: &AtomicU64) -> Result<Done> {
    let (mut reads, mut writes) = (Vec::new(), BTreeMap::new());
    for _ in 0..=random.below(4) {
        let key = draw_key(random);
        if random.once_in(4) {
            let found: BTreeMap<_, _> = keys(transaction, tree, Direction::Forward).into_iter().collect();
            let all = (0..KEYS).map(|number| format!("key {number:02}").into_bytes());
            let others = all.filter(|key| !writes.contains_key(key)).map(|key| (key.clone(), found.get(&key).cloned()));
            reads.extend(others);
        } else if !writes.contains_key(&key) {
            reads.push((key.clone(), transaction.get(tree, &key)?));
        }
        thread::yield_now();
        let key = draw_key(random);
        let value = (!random.once_in(5)).then(|| value.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec());
        match &value {
            Some(value) => transaction.put(tree, &key, value)?,
            None => transaction.delete(tree, &key)?,
        }
        writes.insert(key, value);
    }
    Ok(Done { isolation: Snapshot, begun: transaction.begun(), committed: 0, reads, writes })
}

/// Lets threads run transactions, and answers those that were committed.
fn draw_history(database: &Database, tree: TreeId, seed: u64, value: &AtomicU64) -> Vec<Done> {
    let history = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let history = &history;
            scope.spawn(move || {
                let mut random = Random::new(seed << 8 | number);
                for _ in 0..300 {
                    let isolation = if random.once_in(2) { Snapshot } else { Serializable };
                    let transaction = database.begin(isolation);
                    let done = run(&transaction, tree, &mut random, value).expect("reads and changes");
                    if random.once_in(50) {
                        database.flush().expect("flushes");
                    } else if random.once_in(100) {
                        database.settle().expect("settles");
                    }
                    let durability = *random.pick(&[Durability::Process, Durability::Sync]);
                    match transaction.commit_numbered(durability) {
                        Ok(committed) => {
                            let committed = committed.expect("it changes something");
                            let done = Done { isolation, committed, ..done };
                            history.lock().unwrap_or_else(PoisonError::into_inner).push(done);
                        }
                        Err(error) => assert!(matches!(error, Error::Conflict { .. }), "{error}"),
                    }
                }
            });
        }
    });
    history.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Every value that a key ever had, by the commit that it is from.
type Versions = BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>>;

fn value_at(versions: &Versions, key: &[u8], sequence: u64) -> Option<Vec<u8>> {
    versions.get(key)?.range(..=sequence).next_back()?.1.clone()
}

/// Holds every transaction against all others.
fn check_history(history: &[Done], versions: &mut Versions) {
    for done in history {
        for (key, value) in &done.writes {
            let others = versions.entry(key.clone()).or_default().insert(done.committed, value.clone());
            assert!(others.is_none(), "two commits have the number {}", done.committed);
        }
    }
    for Done { isolation, begun, committed, reads, writes } in history {
        assert!(begun < committed);
        for (key, value) in reads {
            assert_eq!(*value, value_at(versions, key, *begun), "{isolation:?} read another moment");
            if *isolation == Serializable {
                assert_eq!(*value, value_at(versions, key, committed - 1), "what it read changed before it committed");
            }
        }
        for key in writes.keys() {
            let between = versions[key].range(begun + 1..*committed).next();
            assert!(between.is_none(), "{isolation:?} overwrote what it had not seen");
        }
    }
}

/// Eight threads on sixteen keys, over two crashes of the process: no anomaly above what was promised.
#[test]
fn histories_of_transactions_are_what_their_isolation_promises() {
    let (mut disk, value) = (SimDisk::new(), AtomicU64::new(1));
    let mut versions = Versions::new();
    let mut committed = 0;
    for round in 0..3 {
        let options = Options { delta_bytes: 16 << 10, ..Options::default() };
        let database = Database::open_on(Arc::new(disk.clone()), options).expect("opens");
        let tree = database.tree("tree").expect("a tree");
        for key in versions.keys() {
            let found = database.get(tree, key).expect("reads");
            assert_eq!(found, value_at(&versions, key, u64::MAX), "what was acknowledged is there after a crash");
        }
        let history = draw_history(&database, tree, round, &value);
        check_history(&history, &mut versions);
        committed += history.len();
        disk = SimDisk::from_state(disk.state());
    }
    assert!(committed > 1_000, "only {committed} of 7,200 were committed");
}
