use super::memory_kv::MemoryKv;
use super::records::{profile, user_id_key};
use super::{assert_sound, open};
use crate::store::kv::{Batch, Kv, KvRead, TreeId};
use crate::store::{Error, Key, Profile, Repository};

fn profiles() -> Repository<MemoryKv> {
    let profiles = open::<Profile>();
    for id in 0..5 {
        profiles.insert(&profile(id)).expect("the profile is new");
    }
    assert_sound(&profiles);
    profiles
}

fn plant(profiles: &Repository<MemoryKv>, tree: TreeId, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, key, value);
    profiles.kv().commit(&batch).expect("a map takes everything");
}

fn remove(profiles: &Repository<MemoryKv>, tree: TreeId, key: &[u8]) {
    let mut batch = Batch::new();
    batch.delete(tree, key);
    profiles.kv().commit(&batch).expect("a map takes everything");
}

fn created_at_entry(created_at: i64, user_id: i64) -> Vec<u8> {
    let mut key = user_id_key(created_at);
    i64::encode(user_id, &mut key);
    key
}

fn email_entry(email: &str) -> Vec<u8> {
    let mut key = Vec::new();
    String::encode(email, &mut key);
    key
}

#[track_caller]
fn assert_problems(profiles: &Repository<MemoryKv>, expected: &[&str]) {
    assert_eq!(profiles.check().expect("the check runs").problems, expected);
}

#[track_caller]
fn assert_corruption<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str) {
    match result {
        Err(error @ Error::Corruption { .. }) => assert_eq!(error.to_string(), expected),
        other => panic!("{other:?} is no corruption"),
    }
}

#[test]
fn an_entry_without_a_record_is_found_and_fails_a_query() {
    let profiles = profiles();
    plant(&profiles, profiles.trees.indexes[2], &created_at_entry(5, 99), b"");
    let missing = "profiles: index created_at names record 99, which is not there";
    assert_problems(&profiles, &[missing]);
    assert_corruption(profiles.scan(Profile::CREATED_AT).records(), missing);
    assert_eq!(profiles.scan(Profile::CREATED_AT).limit(2).ids().expect("the index is read alone"), [99, 0]);
}

#[test]
fn a_unique_entry_without_a_record_is_found_and_fails_a_find() {
    let profiles = profiles();
    plant(&profiles, profiles.trees.indexes[0], &email_entry("ghost@example.com"), &user_id_key(99));
    let missing = "profiles: index email names record 99, which is not there";
    assert_problems(&profiles, &[missing]);
    assert_corruption(profiles.find(Profile::EMAIL, "ghost@example.com"), missing);
}

#[test]
fn a_stray_entry_of_a_record_is_found() {
    let profiles = profiles();
    plant(&profiles, profiles.trees.indexes[2], &created_at_entry(5, 3), b"");
    assert_problems(&profiles, &["profiles: index created_at lists record 3 under 5, not 1700000000003"]);
}

#[test]
fn a_missing_entry_is_found() {
    let profiles = profiles();
    remove(&profiles, profiles.trees.indexes[2], &created_at_entry(1_700_000_000_003, 3));
    assert_problems(&profiles, &["profiles: index created_at does not list record 3 under 1700000000003"]);
}

#[test]
fn a_unique_key_that_names_another_record_is_found() {
    let profiles = profiles();
    plant(&profiles, profiles.trees.indexes[0], &email_entry("user3@example.com"), &user_id_key(4));
    let entry = "profiles: index email lists record 4 under user3@example.com, not user4@example.com";
    let record = "profiles: index email gives user3@example.com of record 3 to record 4";
    assert_problems(&profiles, &[entry, record]);
}

#[test]
fn an_entry_that_is_none_is_found_and_fails_a_scan() {
    let profiles = profiles();
    plant(&profiles, profiles.trees.indexes[2], &[1, 2, 3], b"");
    let bad = "profiles: index created_at holds an entry that names no id, [01, 02, 03]";
    assert_problems(&profiles, &[bad]);
    assert_corruption(profiles.scan(Profile::CREATED_AT).ids(), bad);
}

#[test]
fn a_value_where_there_should_be_none_is_found() {
    let profiles = profiles();
    plant(&profiles, profiles.trees.indexes[2], &created_at_entry(1_700_000_000_003, 3), b"x");
    assert_problems(&profiles, &["profiles: index created_at has a value that is not its own for record 3"]);
}

#[test]
fn a_damaged_record_fails_every_read_of_it_and_every_change_to_it() {
    let profiles = profiles();
    plant(&profiles, profiles.trees.primary, &user_id_key(3), &[9, 1, 2]);
    let damage = "profiles: record 3 has version 9; this program reads 1";
    assert_corruption(profiles.get(3), damage);
    assert_corruption(profiles.get_with(3, |_| ()), damage);
    assert_corruption(profiles.find(Profile::EMAIL, "user3@example.com"), damage);
    assert_corruption(profiles.all().records(), damage);
    assert_corruption(profiles.scan(Profile::REPUTATION).for_each(|_| ()), damage);
    assert_corruption(profiles.update(&profile(3)), damage);
    assert_corruption(profiles.upsert(&profile(3)), damage);
    assert_corruption(profiles.modify(3, |_| ()), damage);
    assert_corruption(profiles.delete(3), damage);
    assert_eq!(profiles.check().expect("the check runs").problems[0], damage);
}

#[test]
fn a_record_under_the_id_of_another_is_found() {
    let profiles = profiles();
    let stored = KvRead::get(&**profiles.kv(), profiles.trees.primary, &user_id_key(3), |stored| stored.to_vec());
    plant(&profiles, profiles.trees.primary, &user_id_key(8), &stored.expect("reads").expect("is there"));
    assert_problems(&profiles, &["profiles: record 3 is stored under id 8"]);
}

#[test]
fn a_long_list_of_problems_is_cut_and_says_so() {
    let profiles = profiles();
    for id in 100..400 {
        plant(&profiles, profiles.trees.indexes[2], &created_at_entry(5, id), b"");
    }
    let problems = profiles.check().expect("the check runs").problems;
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100], "more than 100 problems; the rest is not listed");
}
