//! Collections inside of transactions.

use std::sync::Arc;
use std::thread;

use super::records::profile;
use crate::engine::{self, Database, Isolation, Options};
use crate::store::{Country, Error, Profile, Repository, Result, Status};

const ALL: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];

fn open() -> (tempfile::TempDir, Repository<Database>) {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { delta_bytes: 16 << 10, ..Options::default() };
    let database = Database::open(dir.path().join("database"), options).expect("opens");
    (dir, Repository::open(Arc::new(database)).expect("opens"))
}

fn is_conflict<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(Error::Engine(engine::Error::Conflict { .. })))
}

#[test]
fn a_collection_sees_the_changes_of_its_transaction_in_every_index() {
    let (_dir, profiles) = open();
    profiles.insert(&profile(1)).expect("inserts");
    for isolation in ALL {
        let transaction = profiles.kv().begin(isolation);
        let within = profiles.within(&transaction);
        within.insert(&Profile { email: "new@example.com".to_owned(), ..profile(2) }).expect("inserts");
        within.modify(1, |profile| profile.reputation = 999).expect("changes");
        assert_eq!(within.find(Profile::EMAIL, "new@example.com").expect("finds").map(|new| new.user_id), Some(2));
        let best = within.scan(Profile::REPUTATION).limit(1).records().expect("scans");
        assert_eq!(best[0].user_id, 1);
        assert_eq!((within.count().expect("counts"), profiles.count().expect("counts")), (2, 1));
        let taken = within.insert(&Profile { user_id: 3, ..within.get(2).expect("reads").expect("is there") });
        assert!(matches!(taken, Err(Error::DuplicateKey { index: "email", .. })), "{taken:?}");
        assert!(within.delete(2).expect("deletes"));
        assert_eq!(within.find(Profile::EMAIL, "new@example.com").expect("finds"), None);
        assert!(within.check().expect("checks").problems.is_empty());
        drop(transaction);
        assert_eq!(profiles.get(1).expect("reads"), Some(profile(1)));
    }
}

#[test]
fn one_key_of_a_unique_index_is_entered_once_whoever_is_first() {
    for isolation in ALL {
        let (_dir, profiles) = open();
        let insert = |id| {
            let transaction = profiles.kv().begin(isolation);
            let record = Profile { email: "same@example.com".to_owned(), ..profile(id) };
            profiles.within(&transaction).insert(&record).expect("nobody else is seen");
            transaction
        };
        let transactions = [insert(1), insert(2)];
        let told = transactions.map(|transaction| transaction.commit().map_err(Error::from));
        assert!(told[0].is_ok() && is_conflict(&told[1]), "{isolation:?}: {told:?}");
        assert!(profiles.check().expect("checks").problems.is_empty());
        assert_eq!(profiles.count().expect("counts"), 1);
    }
}

/// Whatever two transactions do to the same records, and whoever else changes them outside of one.
#[test]
fn indexes_agree_with_their_records_under_every_isolation() {
    for isolation in ALL {
        let (_dir, profiles) = open();
        thread::scope(|scope| {
            for number in 0..4_i64 {
                let profiles = &profiles;
                scope.spawn(move || {
                    let mut state = number;
                    let mut draw = |end: i64| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        (state >> 33).rem_euclid(end)
                    };
                    for _ in 0..150 {
                        let (id, other, email) = (draw(12), draw(12), draw(16));
                        let changed = Profile {
                            email: format!("user{email}@example.com"),
                            country: Country::new(["DE", "FR"][draw(2) as usize]).expect("they are countries"),
                            status: Status::ALL[draw(4) as usize],
                            reputation: draw(5) as i32,
                            ..profile(id)
                        };
                        let outcome = if draw(4) == 0 {
                            profiles.upsert(&changed)
                        } else {
                            let attempt = profiles.kv().transact(isolation, |transaction| {
                                let within = profiles.within(transaction);
                                within.upsert(&changed)?;
                                within.modify(other, |profile| profile.reputation += 1)?;
                                within.delete((id + 5) % 12).map(|_| ())
                            });
                            attempt.map(|_| ())
                        };
                        if let Err(error) = outcome {
                            assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
                        }
                    }
                });
            }
        });
        let check = profiles.check().expect("checks");
        assert!(check.problems.is_empty(), "{isolation:?}: {check:?}");
    }
}

/// At least one profile stays active: each of two transactions sees the other one's and lets its own go.
#[test]
fn a_rule_over_several_records_holds_where_transactions_are_serializable() {
    for isolation in ALL {
        let (_dir, profiles) = open();
        for id in [1, 2] {
            profiles.insert(&profile(id)).expect("inserts");
        }
        let suspend = |id| {
            let transaction = profiles.kv().begin(isolation);
            let within = profiles.within(&transaction);
            let country = Country::new("DE").expect("DE is a country");
            let active = within.scan(Profile::COUNTRY_STATUS).equals((country, Status::Active)).count();
            assert_eq!(active.expect("counts"), 2);
            within.modify(id, |profile| profile.status = Status::Suspended).expect("changes");
            transaction
        };
        let told = [suspend(1), suspend(2)].map(|transaction| transaction.commit().map_err(Error::from));
        assert_eq!(is_conflict(&told[1]), isolation == Isolation::Serializable, "{isolation:?}: {told:?}");
    }
}
