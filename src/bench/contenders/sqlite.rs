//! `SQLite`, with its own indexes, through prepared statements.
//!
//! A connection serves one thread at a time; a pool holds as many as ever ran at once. Writers take turns at a lock
//! of ours before they reach the one of `SQLite`, whose waiting is by sleeping. Every class runs with a write-ahead
//! log: `none` with `synchronous = OFF`, `process` with `NORMAL` (a checkpoint syncs, a commit does not), `sync` with
//! `FULL`. Indexes end in the row id, which is the user id, so each yields ids in the order promised without naming
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error as SqlError, ErrorCode, Row, ffi, params};

use super::{Contender, Durability, OpenOptions, OpenStore};
use crate::store::{
    Country, Error, IndexCheck, Profile, ProfileQuery, ProfileStore, ProfileView, Result as StoreResult, Status,
};

const NAME: &str = "sqlite";
const COLLECTION: &str = "profiles";
const FILE: &str = "profiles.sqlite";
/// Of each connection.
const CACHE_KIB: u64 = 64 << 10;
const MAP_BYTES: u64 = 1 << 30;
const BUSY_TIMEOUT: Duration = Duration::from_mins(1);
/// More than there are statements below.
const STATEMENTS: usize = 32;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS profiles (
        user_id INTEGER PRIMARY KEY,
        email TEXT NOT NULL,
        country TEXT NOT NULL,
        status TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        last_login INTEGER NOT NULL,
        reputation INTEGER NOT NULL,
        display_name TEXT NOT NULL,
        bio TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX IF NOT EXISTS by_email ON profiles (email);
    CREATE INDEX IF NOT EXISTS by_country_status ON profiles (country, status);
    CREATE INDEX IF NOT EXISTS by_created_at ON profiles (created_at);
    CREATE INDEX IF NOT EXISTS by_reputation ON profiles (reputation DESC);";

const INSERT: &str = "INSERT INTO profiles VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const UPDATE: &str = "UPDATE profiles SET email = ?2, country = ?3, status = ?4, created_at = ?5, last_login = ?6,
    reputation = ?7, display_name = ?8, bio = ?9 WHERE user_id = ?1";
const DELETE: &str = "DELETE FROM profiles WHERE user_id = ?1";
const COUNT: &str = "SELECT count(*) FROM profiles";

/// A statement that reads profiles, all nine columns, in the order [`view`] expects.
macro_rules! profiles_where {
    ($tail:literal) => {
        concat!(
            "SELECT user_id, email, country, status, created_at, last_login, reputation, display_name, bio ",
            "FROM profiles ",
            $tail
        )
    };
}

/// A statement that reads ids.
macro_rules! ids_where {
    ($tail:literal) => {
        concat!("SELECT user_id FROM profiles ", $tail)
    };
}

/// The same tail behind both: ids alone, and whole profiles.
macro_rules! scan_and_query {
    ($tail:literal) => {
        [ids_where!($tail), profiles_where!($tail)]
    };
}

const GET: &str = profiles_where!("WHERE user_id = ?1");
const FIND_BY_EMAIL: &str = profiles_where!("WHERE email = ?1");
const COUNTRY_STATUS: [&str; 2] = scan_and_query!("WHERE country = ?1 AND status = ?2 ORDER BY user_id LIMIT ?3");
const CREATED_AT: [&str; 2] =
    scan_and_query!("WHERE created_at BETWEEN ?1 AND ?2 ORDER BY created_at, user_id LIMIT ?3");
const TOP_REPUTATION: [&str; 2] = scan_and_query!("ORDER BY reputation DESC, user_id LIMIT ?1");

/// Each index, and the columns it holds besides the user id.
const INDEXES: [(&str, &[&str]); 4] = [
    ("by_email", &["email"]),
    ("by_country_status", &["country", "status"]),
    ("by_created_at", &["created_at"]),
    ("by_reputation", &["reputation"]),
];

/// The contender.
pub struct Sqlite;

impl Contender for Sqlite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        rusqlite::version().to_owned()
    }

    fn classes(&self) -> &'static [Durability] {
        &[Durability::None, Durability::Process, Durability::Sync]
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        let store = SqliteStore {
            file: dir.join(FILE),
            durability: options.durability,
            memory: MemorySettings::of(options),
            idle: Mutex::default(),
            writer: Mutex::new(()),
        };
        store.with(|connection| connection.execute_batch(SCHEMA))?;
        Ok(Box::new(store))
    }
}

struct SqliteStore {
    file: PathBuf,
    durability: Durability,
    memory: MemorySettings,
    /// Connections nobody uses at this moment. Held only to take or return one.
    idle: Mutex<Vec<Connection>>,
    /// Whose turn it is to write; held for a whole transaction.
    writer: Mutex<()>,
}

/// What a memory budget changes, for each connection.
#[derive(Clone, Copy)]
struct MemorySettings {
    cache_kib: u64,
    map_bytes: u64,
}

impl MemorySettings {
    /// The map is of the page cache, which no budget bounds: with one, pages are read into the cache of the connection,
    /// and every worker has a connection.
    fn of(options: &OpenOptions) -> Self {
        match options.memory_bytes {
            Some(budget) => Self { cache_kib: (budget / options.workers.max(1)) >> 10, map_bytes: 0 },
            None => Self { cache_kib: CACHE_KIB, map_bytes: MAP_BYTES },
        }
    }
}

impl OpenStore for SqliteStore {
    fn profiles(&self) -> &dyn ProfileStore {
        self
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        let names = [
            "auto_vacuum",
            "busy_timeout",
            "cache_size",
            "journal_mode",
            "mmap_size",
            "page_size",
            "synchronous",
            "temp_store",
            "wal_autocheckpoint",
        ];
        let read = |connection: &Connection| {
            names.into_iter().map(|name| Ok((name.to_owned(), pragma(connection, name)?))).collect()
        };
        let mut settings: BTreeMap<_, _> = self.with(read)?;
        settings.insert("connections".to_owned(), "one for each worker".to_owned());
        Ok(settings)
    }

    fn stabilize(&self) -> Result<bool> {
        Ok(false)
    }

    fn settle(&self) -> Result<()> {
        let _turn = self.writer.lock();
        self.with(|connection| {
            connection.execute_batch("PRAGMA optimize")?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        for connection in self.idle.into_inner() {
            connection.close().map_err(|(_, error)| error).context("closing a connection")?;
        }
        Ok(())
    }
}

impl SqliteStore {
    /// Runs `act` on a connection nobody else uses.
    fn with<T>(&self, act: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> StoreResult<T> {
        let idle = self.idle.lock().pop();
        let connection = idle.map_or_else(|| self.connect(), Ok).map_err(foreign)?;
        let done = act(&connection);
        self.idle.lock().push(connection);
        done.map_err(foreign)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.file)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let synchronous = match self.durability {
            Durability::None => "OFF",
            Durability::Process => "NORMAL",
            Durability::Sync => "FULL",
        };
        let MemorySettings { cache_kib, map_bytes } = self.memory;
        // A checkpoint costs syncs: one for each 16 MiB of log instead of each 4 leaves the log short enough to read.
        connection.execute_batch(&format!(
            "PRAGMA page_size = 4096;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = {synchronous};
             PRAGMA cache_size = -{cache_kib};
             PRAGMA mmap_size = {map_bytes};
             PRAGMA temp_store = MEMORY;
             PRAGMA wal_autocheckpoint = 4000;"
        ))?;
        Ok(connection)
    }

    /// Runs a query of one kind: the ids alone or whole profiles.
    fn select(
        &self,
        query: &ProfileQuery,
        kind: usize,
        limit: usize,
        mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> StoreResult<()> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.with(|connection| {
            let sql = match query {
                ProfileQuery::CountryStatus { .. } => COUNTRY_STATUS[kind],
                ProfileQuery::CreatedAt { .. } => CREATED_AT[kind],
                ProfileQuery::TopReputation => TOP_REPUTATION[kind],
            };
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = match query {
                ProfileQuery::CountryStatus { country, status } => {
                    statement.query(params![country.as_str(), status.as_str(), limit])?
                }
                ProfileQuery::CreatedAt { from, to } => statement.query(params![from, to, limit])?,
                ProfileQuery::TopReputation => statement.query(params![limit])?,
            };
            while let Some(row) = rows.next()? {
                visit(row)?;
            }
            Ok(())
        })
    }

    fn modify_in_transaction(
        connection: &Connection,
        user_id: i64,
        change: &mut dyn FnMut(&ProfileView<'_>) -> Profile,
    ) -> rusqlite::Result<Option<Profile>> {
        let transaction = Transaction::begin(connection)?;
        let mut changed = None;
        read_one(connection, GET, params![user_id], &mut |profile| changed = Some(change(profile)))?;
        if let Some(profile) = &changed {
            write(connection, UPDATE, profile)?;
        }
        transaction.commit()?;
        Ok(changed)
    }
}

impl ProfileStore for SqliteStore {
    fn insert(&self, profile: Profile) -> StoreResult<()> {
        let _turn = self.writer.lock();
        self.with(|connection| Ok(write(connection, INSERT, &profile)))?.map_err(|error| refusal(&error, &profile))
    }

    fn get(&self, user_id: i64, read: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<bool> {
        self.with(|connection| read_one(connection, GET, params![user_id], read))
    }

    fn find_by_email(&self, email: &str, read: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<bool> {
        self.with(|connection| read_one(connection, FIND_BY_EMAIL, params![email], read))
    }

    fn scan(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(i64)) -> StoreResult<()> {
        self.select(query, 0, limit, |row| {
            visit(row.get(0)?);
            Ok(())
        })
    }

    fn query(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<()> {
        self.select(query, 1, limit, |row| {
            visit(&view(row)?);
            Ok(())
        })
    }

    fn modify(
        &self,
        user_id: i64,
        change: &mut dyn FnMut(&ProfileView<'_>) -> Profile,
        read: &mut dyn FnMut(&ProfileView<'_>),
    ) -> StoreResult<bool> {
        let _turn = self.writer.lock();
        let changed = self.with(|connection| Self::modify_in_transaction(connection, user_id, change))?;
        Ok(changed.map(|profile| read(&profile.view())).is_some())
    }

    fn delete(&self, user_id: i64) -> StoreResult<bool> {
        let _turn = self.writer.lock();
        Ok(self.with(|connection| connection.prepare_cached(DELETE)?.execute(params![user_id]))? > 0)
    }

    fn count(&self) -> StoreResult<u64> {
        let count: i64 = self.with(|connection| connection.prepare_cached(COUNT)?.query_row([], |row| row.get(0)))?;
        Ok(count as u64)
    }

    fn check_indexes(&self) -> StoreResult<IndexCheck> {
        self.with(|connection| {
            let mut check = IndexCheck::default();
            let rows = count_of(connection, "SELECT count(*) FROM profiles NOT INDEXED")?;
            check.checked += rows;
            for (index, columns) in INDEXES {
                check.checked += check_index(connection, index, columns, rows, &mut check.problems)?;
            }
            let mut statement = connection.prepare("PRAGMA integrity_check")?;
            let sentences = statement.query_map([], |row| row.get::<_, String>(0))?;
            for sentence in sentences {
                check.problems.push(sentence?);
            }
            check.problems.retain(|sentence| sentence != "ok");
            Ok(check)
        })
    }
}

/// Joins the entries of an index with the rows they name. Each row has as many entries as it should when the index
/// has as many entries as there are rows and every entry agrees with its own.
fn check_index(
    connection: &Connection,
    index: &str,
    columns: &[&str],
    rows: u64,
    problems: &mut Vec<String>,
) -> rusqlite::Result<u64> {
    let listed = columns.join(", ");
    let agree: Vec<_> = columns.iter().map(|column| format!("entry.{column} IS stored.{column}")).collect();
    // MATERIALIZED keeps the planner from reading the columns in the table instead.
    let entries = format!(
        "WITH entry AS MATERIALIZED (SELECT user_id, {listed} FROM profiles INDEXED BY {index})
         SELECT count(*), count(DISTINCT entry.user_id), count(stored.user_id)
         FROM entry LEFT JOIN profiles AS stored NOT INDEXED ON stored.user_id = entry.user_id AND {}",
        agree.join(" AND ")
    );
    let (entries, named, agreeing) = connection
        .query_row(&entries, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
    let (entries, named, agreeing) = (entries as u64, named as u64, agreeing as u64);
    if agreeing != entries {
        problems.push(format!("{index}: {} of {entries} entries name no row, or one that differs", entries - agreeing));
    }
    if named != rows {
        problems.push(format!("{index}: names {named} of {rows} rows"));
    }
    Ok(entries)
}

/// A transaction that is undone unless it is committed.
struct Transaction<'a> {
    connection: &'a Connection,
    is_open: bool,
}

impl<'a> Transaction<'a> {
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection, is_open: true })
    }

    fn commit(mut self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // If this fails too, the connection refuses the next BEGIN, which is told.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

fn write(connection: &Connection, sql: &str, profile: &Profile) -> rusqlite::Result<()> {
    let values = params![
        profile.user_id,
        profile.email,
        profile.country.as_str(),
        profile.status.as_str(),
        profile.created_at,
        profile.last_login,
        profile.reputation,
        profile.display_name,
        profile.bio,
    ];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn read_one(
    connection: &Connection,
    sql: &str,
    key: &[&dyn rusqlite::ToSql],
    read: &mut dyn FnMut(&ProfileView<'_>),
) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(key)?;
    let Some(row) = rows.next()? else {
        return Ok(false);
    };
    read(&view(row)?);
    Ok(true)
}

/// A row of all nine columns; its text stays where `SQLite` has it.
fn view<'a>(row: &'a Row<'_>) -> rusqlite::Result<ProfileView<'a>> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(SqlError::from);
    Ok(ProfileView {
        user_id: row.get(0)?,
        email: text(1)?,
        country: Country::new(text(2)?).map_err(|error| not_a_value(2, error))?,
        status: Status::new(text(3)?).map_err(|error| not_a_value(3, error))?,
        created_at: row.get(4)?,
        last_login: row.get(5)?,
        reputation: row.get(6)?,
        display_name: text(7)?.into(),
        bio: text(8)?.into(),
    })
}

fn not_a_value(column: usize, error: Error) -> SqlError {
    SqlError::FromSqlConversionFailure(column, Type::Text, error.into())
}

fn count_of(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|count| count as u64)
}

/// A setting as text; each is a number or a word.
fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<String> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| match row.get_ref(0)? {
        ValueRef::Integer(number) => Ok(number.to_string()),
        word => Ok(word.as_str()?.to_owned()),
    })
}

fn refusal(error: &SqlError, profile: &Profile) -> Error {
    match error {
        SqlError::SqliteFailure(failure, _) if failure.code == ErrorCode::ConstraintViolation => {
            match failure.extended_code {
                ffi::SQLITE_CONSTRAINT_UNIQUE => {
                    Error::DuplicateKey { collection: COLLECTION, index: "email", key: profile.email.clone() }
                }
                _ => Error::DuplicateId { collection: COLLECTION, id: profile.user_id.to_string() },
            }
        }
        other => foreign(other),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
fn foreign(error: impl ToString) -> Error {
    Error::Foreign { store: NAME, message: error.to_string() }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
