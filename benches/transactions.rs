//! What transactions cost beside those of others: `cargo bench --bench transactions --features peers,rocksdb`; without the
//! features, beside fjall and `SQLite`.
//!
//! 16 threads, each with the next transaction as soon as the last one is committed. A transfer reads two of 10,000 accounts,
//! drawn at random, and moves one unit; a count adds one to the same counter. Nothing is synced: what was committed survives
//! the process (`process`), or for redb, which has no such class, nothing but memory (`none`). All take turns, a second
//! each, three times; after each turn the accounts must add up, and the counter must have counted every count.
//!
//! Measured on two cores, medians, as commits a second divided by those of profilestore under `Snapshot`. Transfers:
//! `Serializable` 0.98, `RocksDB` 7.8 0.35, `SQLite` 0.18, redb 0.12, fjall 0.02. Counts: `RocksDB` 0.18, `SQLite` 0.09,
//! redb 0.05, fjall below 0.01.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fjall::{KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, Readable};
use profilestore::engine::{Database, Direction, Isolation, KeyRange, Options, Transaction, TreeId};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

const THREADS: u64 = 16;
const ACCOUNTS: u64 = 10_000;
const BALANCE: i64 = 1_000;
const TURN: Duration = Duration::from_secs(1);
const TURNS: usize = 3;
const COUNTER: u64 = ACCOUNTS;

/// A store that is open.
trait Store: Sync {
    fn client(&self) -> Box<dyn Client + '_>;
}

/// What one thread works with. Each call is one transaction, run until it is committed.
trait Client {
    fn transfer(&mut self, from: u64, to: u64);
    fn count(&mut self);
    /// Of all accounts together.
    fn total(&mut self) -> i64;
    fn counter(&mut self) -> i64;
}

fn main() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let stores: [(&str, Box<dyn Store>); 4] = [
        ("profilestore, snapshot", Box::new(Ours::open(&path("snapshot"), Isolation::Snapshot))),
        ("profilestore, serializable", Box::new(Ours::open(&path("serializable"), Isolation::Serializable))),
        ("fjall, optimistic", Box::new(Fjall::open(&path("fjall")))),
        ("SQLite, WAL", Box::new(Sqlite::open(&path("sqlite")))),
    ];
    let stores: Vec<_> = stores
        .into_iter()
        .chain(
            #[cfg(feature = "peers")]
            Some::<(&str, Box<dyn Store>)>(("redb, none", Box::new(peers::Redb::open(&path("redb"))))),
            #[cfg(not(feature = "peers"))]
            None,
        )
        .chain(
            #[cfg(feature = "rocksdb")]
            Some::<(&str, Box<dyn Store>)>(("RocksDB, optimistic", Box::new(rocks::Rocks::open(&path("rocksdb"))))),
            #[cfg(not(feature = "rocksdb"))]
            None,
        )
        .collect();
    race("transfers", &stores, |client, random| {
        let (from, to) = (random() % ACCOUNTS, random() % ACCOUNTS);
        if from != to {
            client.transfer(from, to);
        }
    });
    race("counts", &stores, |client, _| client.count());
}

fn race(what: &str, stores: &[(&str, Box<dyn Store>)], work: impl Fn(&mut dyn Client, &mut dyn FnMut() -> u64) + Sync) {
    let mut rates = vec![Vec::new(); stores.len()];
    for _ in 0..TURNS {
        for ((name, store), rates) in stores.iter().zip(&mut rates) {
            let before = store.client().counter();
            let (done, took) = turn(&**store, &work);
            let mut client = store.client();
            assert_eq!(client.total(), ACCOUNTS as i64 * BALANCE, "{name}: the accounts do not add up");
            if what == "counts" {
                assert_eq!(client.counter() - before, done as i64, "{name}: a count was lost");
            }
            rates.push(done as f64 / took.as_secs_f64());
        }
    }
    let medians: Vec<f64> = rates
        .into_iter()
        .map(|mut rates| {
            rates.sort_unstable_by(f64::total_cmp);
            rates[TURNS / 2]
        })
        .collect();
    for ((name, _), rate) in stores.iter().zip(&medians) {
        println!("{what:<10} {name:<28} {rate:>9.0} a second, {:.2}", rate / medians[0]);
    }
}

/// How many transactions were committed, and in what time.
fn turn(store: &dyn Store, work: &(impl Fn(&mut dyn Client, &mut dyn FnMut() -> u64) + Sync)) -> (u64, Duration) {
    let (done, is_over, started) = (AtomicU64::new(0), AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (done, is_over) = (&done, &is_over);
            scope.spawn(move || {
                let (mut client, mut state, mut count) = (store.client(), number + 1, 0);
                let mut random = || {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    state >> 33
                };
                while !is_over.load(Ordering::Relaxed) {
                    work(&mut *client, &mut random);
                    count += 1;
                }
                done.fetch_add(count, Ordering::Relaxed);
            });
        }
        thread::sleep(TURN);
        is_over.store(true, Ordering::Relaxed);
    });
    (done.into_inner(), started.elapsed())
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

struct Ours {
    database: Database,
    tree: TreeId,
    isolation: Isolation,
}

impl Ours {
    fn open(dir: &Path, isolation: Isolation) -> Self {
        let database = Database::open(dir, Options::default()).expect("opens");
        let tree = database.tree("accounts").expect("a tree");
        for account in 0..ACCOUNTS {
            database.increment(tree, &account.to_be_bytes(), BALANCE).expect("commits");
        }
        Self { database, tree, isolation }
    }
}

impl Store for Ours {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(self)
    }
}

impl Client for &Ours {
    fn transfer(&mut self, from: u64, to: u64) {
        let Ours { database, tree, isolation } = *self;
        let transfer = |transaction: &Transaction<'_>| {
            for (account, by) in [(from, -1), (to, 1)] {
                let key = account.to_be_bytes();
                let balance = transaction.get(*tree, &key)?.map_or(0, |value| number(&value));
                transaction.put(*tree, &key, &(balance + by).to_le_bytes())?;
            }
            Ok::<_, profilestore::engine::Error>(())
        };
        database.transact(*isolation, transfer).expect("commits");
    }

    fn count(&mut self) {
        self.database.increment(self.tree, &COUNTER.to_be_bytes(), 1).expect("commits");
    }

    fn total(&mut self) -> i64 {
        let accounts = KeyRange::of(..COUNTER.to_be_bytes().as_slice());
        let mut scan = self.database.scan(self.tree, accounts, Direction::Forward).expect("scans");
        let mut total = 0;
        while let Some((_, value)) = scan.next().expect("goes on") {
            total += number(value);
        }
        total
    }

    fn counter(&mut self) -> i64 {
        self.database.counter(self.tree, &COUNTER.to_be_bytes()).expect("reads")
    }
}

struct Fjall {
    database: OptimisticTxDatabase,
    accounts: OptimisticTxKeyspace,
}

impl Fjall {
    fn open(dir: &Path) -> Self {
        let database = OptimisticTxDatabase::builder(dir).open().expect("opens");
        let accounts = database.keyspace("accounts", KeyspaceCreateOptions::default).expect("a keyspace");
        for account in 0..ACCOUNTS {
            accounts.insert(account.to_be_bytes(), BALANCE.to_le_bytes()).expect("commits");
        }
        Self { database, accounts }
    }
}

impl Store for Fjall {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(self)
    }
}

impl Client for &Fjall {
    fn transfer(&mut self, from: u64, to: u64) {
        loop {
            let mut transaction = self.database.write_tx().expect("begins");
            for (account, by) in [(from, -1), (to, 1)] {
                let key = account.to_be_bytes();
                let balance = transaction.get(&self.accounts, key).expect("reads").map_or(0, |value| number(&value));
                transaction.insert(&self.accounts, key, (balance + by).to_le_bytes());
            }
            if transaction.commit().expect("no failure").is_ok() {
                return;
            }
        }
    }

    fn count(&mut self) {
        let add =
            |value: Option<&fjall::UserValue>| Some((value.map_or(0, |value| number(value)) + 1).to_le_bytes().into());
        self.accounts.fetch_update(COUNTER.to_be_bytes(), add).expect("commits");
    }

    fn total(&mut self) -> i64 {
        let snapshot = self.database.read_tx();
        let entries = snapshot.range(&self.accounts, ..COUNTER.to_be_bytes());
        entries.map(|entry| number(&entry.value().expect("reads"))).sum()
    }

    fn counter(&mut self) -> i64 {
        self.accounts.get(COUNTER.to_be_bytes()).expect("reads").map_or(0, |value| number(&value))
    }
}

struct Sqlite {
    path: std::path::PathBuf,
}

impl Sqlite {
    fn open(path: &Path) -> Self {
        let store = Self { path: path.to_owned() };
        let mut connection = store.connect();
        connection.execute_batch("create table accounts (id integer primary key, balance integer)").expect("creates");
        let transaction = connection.transaction().expect("begins");
        for account in 0..ACCOUNTS {
            transaction.execute("insert into accounts values (?, ?)", [account as i64, BALANCE]).expect("inserts");
        }
        transaction.commit().expect("commits");
        drop(connection);
        store
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(&self.path).expect("opens");
        connection.busy_timeout(Duration::from_mins(1)).expect("is set");
        let pragmas = "pragma journal_mode = wal; pragma synchronous = off; pragma mmap_size = 268435456";
        connection.execute_batch(pragmas).expect("is set");
        connection
    }
}

impl Store for Sqlite {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(self.connect())
    }
}

impl Client for Connection {
    fn transfer(&mut self, from: u64, to: u64) {
        let transaction = self.transaction_with_behavior(TransactionBehavior::Immediate).expect("begins");
        for (account, by) in [(from, -1), (to, 1)] {
            let account = account as i64;
            let mut read = transaction.prepare_cached("select balance from accounts where id = ?").expect("prepares");
            let balance: i64 = read.query_one([account], |row| row.get(0)).expect("reads");
            drop(read);
            let mut write =
                transaction.prepare_cached("update accounts set balance = ? where id = ?").expect("prepares");
            write.execute([balance + by, account]).expect("updates");
        }
        transaction.commit().expect("commits");
    }

    fn count(&mut self) {
        let add = "insert into accounts values (?, 1) on conflict (id) do update set balance = balance + 1";
        let mut statement = self.prepare_cached(add).expect("prepares");
        statement.execute([COUNTER as i64]).expect("counts");
    }

    fn total(&mut self) -> i64 {
        let sum = "select sum(balance) from accounts where id < ?";
        self.query_one(sum, [COUNTER as i64], |row| row.get(0)).expect("reads")
    }

    fn counter(&mut self) -> i64 {
        let read = "select balance from accounts where id = ?";
        self.query_row(read, [COUNTER as i64], |row| row.get(0)).optional().expect("reads").unwrap_or(0)
    }
}

#[cfg(feature = "peers")]
mod peers {
    use redb::{Durability, ReadableDatabase, ReadableTable, TableDefinition};

    use super::{ACCOUNTS, BALANCE, COUNTER, Client, Path, Store};

    const TABLE: TableDefinition<'_, u64, i64> = TableDefinition::new("accounts");

    pub(super) struct Redb(redb::Database);

    impl Redb {
        pub(super) fn open(path: &Path) -> Self {
            let store = Self(redb::Database::create(path).expect("creates"));
            store.change(|table| {
                for account in 0..ACCOUNTS {
                    table.insert(account, BALANCE).expect("inserts");
                }
            });
            store
        }

        fn change(&self, change: impl FnOnce(&mut redb::Table<'_, u64, i64>)) {
            let mut transaction = self.0.begin_write().expect("begins");
            transaction.set_durability(Durability::None).expect("is set");
            change(&mut transaction.open_table(TABLE).expect("opens"));
            transaction.commit().expect("commits");
        }
    }

    impl Store for Redb {
        fn client(&self) -> Box<dyn Client + '_> {
            Box::new(self)
        }
    }

    impl Client for &Redb {
        fn transfer(&mut self, from: u64, to: u64) {
            self.change(|table| {
                for (account, by) in [(from, -1), (to, 1)] {
                    let balance = table.get(account).expect("reads").map_or(0, |value| value.value());
                    table.insert(account, balance + by).expect("inserts");
                }
            });
        }

        fn count(&mut self) {
            self.change(|table| {
                let count = table.get(COUNTER).expect("reads").map_or(0, |value| value.value());
                table.insert(COUNTER, count + 1).expect("inserts");
            });
        }

        fn total(&mut self) -> i64 {
            let table = self.0.begin_read().expect("begins").open_table(TABLE).expect("opens");
            table.range(..COUNTER).expect("reads").map(|entry| entry.expect("reads").1.value()).sum()
        }

        fn counter(&mut self) -> i64 {
            let table = self.0.begin_read().expect("begins").open_table(TABLE).expect("opens");
            table.get(COUNTER).expect("reads").map_or(0, |value| value.value())
        }
    }
}

#[cfg(feature = "rocksdb")]
mod rocks {
    use rocksdb::{IteratorMode, OptimisticTransactionDB, Options};

    use super::{ACCOUNTS, BALANCE, COUNTER, Client, Path, Store, number};

    pub(super) struct Rocks(OptimisticTransactionDB);

    impl Rocks {
        pub(super) fn open(path: &Path) -> Self {
            let mut options = Options::default();
            options.create_if_missing(true);
            let store = Self(OptimisticTransactionDB::open(&options, path).expect("opens"));
            for account in 0..ACCOUNTS {
                store.0.put(account.to_be_bytes(), BALANCE.to_le_bytes()).expect("commits");
            }
            store
        }

        fn add(&self, changes: &[(u64, i64)]) {
            loop {
                let transaction = self.0.transaction();
                for (account, by) in changes {
                    let key = account.to_be_bytes();
                    let value = transaction.get_for_update(key, true).expect("reads");
                    let sum = value.map_or(0, |value| number(&value)) + by;
                    transaction.put(key, sum.to_le_bytes()).expect("changes");
                }
                if transaction.commit().is_ok() {
                    return;
                }
            }
        }
    }

    impl Store for Rocks {
        fn client(&self) -> Box<dyn Client + '_> {
            Box::new(self)
        }
    }

    impl Client for &Rocks {
        fn transfer(&mut self, from: u64, to: u64) {
            self.add(&[(from, -1), (to, 1)]);
        }

        fn count(&mut self) {
            self.add(&[(COUNTER, 1)]);
        }

        fn total(&mut self) -> i64 {
            let entries = self.0.iterator(IteratorMode::Start).map(|entry| entry.expect("reads"));
            let end = COUNTER.to_be_bytes();
            entries.take_while(|(key, _)| **key < end[..]).map(|(_, value)| number(&value)).sum()
        }

        fn counter(&mut self) -> i64 {
            self.0.get(COUNTER.to_be_bytes()).expect("reads").map_or(0, |value| number(&value))
        }
    }
}
