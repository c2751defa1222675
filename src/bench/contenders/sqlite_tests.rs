use super::*;
use crate::bench::generate;

const OPTIONS: OpenOptions = OpenOptions::new(Durability::Process, 100);

fn with_profiles(ids: std::ops::RangeInclusive<i64>) -> (tempfile::TempDir, Box<dyn OpenStore>) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Sqlite.open(directory.path(), &OPTIONS).expect("a new store opens");
    for id in ids {
        store.profiles().insert(generate::profile(id, 1)).expect("a new profile");
    }
    (directory, store)
}

fn in_directory(directory: &tempfile::TempDir) -> Connection {
    Connection::open(directory.path().join(FILE)).expect("the file opens")
}

/// Before 3.51.3, two connections that wrote and checkpointed at once could damage the file when the log was reset.
#[test]
fn the_linked_version_has_the_repaired_log_reset() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn scans_read_an_index_alone_and_sort_nothing() {
    let (directory, _store) = with_profiles(1..=10);
    let connection = in_directory(&directory);
    for statement in [COUNTRY_STATUS, CREATED_AT, TOP_REPUTATION].concat().into_iter().chain([GET, FIND_BY_EMAIL]) {
        let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).expect("it prepares");
        let values = vec![rusqlite::types::Null; explained.parameter_count()];
        let steps = explained.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3));
        let steps: Vec<_> = steps.expect("it explains").map(|step| step.expect("a step")).collect();
        assert_eq!(steps.len(), 1, "{statement}: {steps:?}");
        let is_scan = statement.starts_with("SELECT user_id FROM");
        assert_eq!(steps[0].contains("USING COVERING INDEX"), is_scan, "{statement}: {steps:?}");
        assert!(steps[0].contains("USING"), "{statement}: {steps:?}");
    }
}

#[test]
fn settings_are_those_asked_for() {
    for (durability, synchronous) in [(Durability::None, "0"), (Durability::Process, "1"), (Durability::Sync, "2")] {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Sqlite.open(directory.path(), &OpenOptions { durability, ..OPTIONS }).expect("a new store opens");
        let settings = store.settings().expect("they are told");
        assert_eq!(settings["synchronous"], synchronous);
        assert_eq!(settings["journal_mode"], "wal");
        assert_eq!(settings["cache_size"], "-65536");
        assert_eq!(settings["mmap_size"], "1073741824");
        assert_eq!(settings["wal_autocheckpoint"], "4000");
        assert_eq!(settings["busy_timeout"], "60000");
    }
}

#[test]
fn a_taken_id_and_a_taken_email_are_refused_by_name() {
    let (_directory, store) = with_profiles(1..=2);
    let again = generate::profile(1, 1);
    assert!(matches!(store.profiles().insert(again.clone()), Err(Error::DuplicateId { .. })));
    let same_email = Profile { user_id: 3, ..again };
    assert!(matches!(store.profiles().insert(same_email), Err(Error::DuplicateKey { index: "email", .. })));
    assert_eq!(store.profiles().count().expect("it counts"), 2);
}

#[test]
fn a_change_that_is_refused_is_undone_and_the_next_one_works() {
    let (_directory, store) = with_profiles(1..=2);
    let takes_email = |_: &ProfileView<'_>| generate::profile(2, 1);
    let refused = store.profiles().modify(1, &mut |old| Profile { user_id: 1, ..takes_email(old) }, &mut |_| ());
    assert!(refused.is_err());
    let updated = store.profiles().modify(1, &mut |old| generate::updated(old, 1), &mut |_| ());
    assert!(updated.expect("the next change works"));
}

#[test]
fn an_index_that_disagrees_with_its_table_is_told() {
    let (directory, store) = with_profiles(1..=50);
    assert_eq!(store.profiles().check_indexes().expect("it checks").problems, Vec::<String>::new());
    store.close().expect("it closes");
    // Makes the index another one behind SQLite's back, so that rows change without it.
    let connection = in_directory(&directory);
    connection
        .execute_batch(
            "PRAGMA writable_schema = ON;
             CREATE TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = 'by_created_at';
             UPDATE sqlite_schema SET sql = 'CREATE INDEX by_created_at ON profiles (created_at) WHERE user_id < 0'
                 WHERE name = 'by_created_at';
             PRAGMA schema_version = 1000;",
        )
        .expect("the schema is writable");
    drop(connection);
    let connection = in_directory(&directory);
    connection
        .execute_batch(
            "UPDATE profiles SET created_at = 1 WHERE user_id = 7;
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = (SELECT sql FROM kept) WHERE name = 'by_created_at';
             DROP TABLE kept;
             PRAGMA schema_version = 1001;",
        )
        .expect("a row changes without its index");
    drop(connection);
    let store = Sqlite.open(directory.path(), &OPTIONS).expect("it opens");
    let problems = store.profiles().check_indexes().expect("it checks").problems;
    let expected = "by_created_at: 1 of 50 entries name no row, or one that differs";
    assert!(problems.iter().any(|problem| problem == expected), "{problems:?}");
}
