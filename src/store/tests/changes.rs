use std::sync::{Arc, Barrier};
use std::thread;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use super::memory_kv::MemoryKv;
use super::records::{Order, OrderStatus, Page, profile};
use super::{assert_sound, open};
use crate::store::kv::TreeId;
use crate::store::{
    AnyIndex, Collection, Error, Index, Profile, ProfileQuery, ProfileStore, ProfileView, Record, Repository,
};

fn profiles(ids: std::ops::Range<i64>) -> Repository<MemoryKv> {
    let profiles = open::<Profile>();
    for id in ids {
        profiles.insert(&profile(id)).expect("the profile is new");
    }
    profiles
}

/// The trees that the last commit touched, each time it did.
fn touched<R: Record>(collection: &Collection<R, MemoryKv>) -> Vec<TreeId> {
    collection.kv().last_batch().iter().map(|operation| operation.tree).collect()
}

#[test]
fn a_taken_id_is_refused_and_nothing_changes() {
    let profiles = profiles(0..3);
    let mut second = profile(1);
    second.email = "new@example.com".to_owned();
    let error = profiles.insert(&second).expect_err("id 1 is taken");
    assert_eq!(error.to_string(), "profiles already holds a record with id 1");
    assert_eq!(profiles.get(1).expect("reads"), Some(profile(1)));
    assert_eq!(profiles.find(Profile::EMAIL, "new@example.com").expect("reads"), None);
    assert_sound(&profiles);
}

#[test]
fn a_taken_email_is_refused_by_every_write_and_nothing_changes() {
    let profiles = profiles(0..3);
    let mut thief = profile(2);
    thief.email = profile(1).email;
    let expected = "profiles: another record already has email user1@example.com";
    assert_eq!(profiles.update(&thief).expect_err("taken").to_string(), expected);
    assert_eq!(profiles.upsert(&thief).expect_err("taken").to_string(), expected);
    assert_eq!(profiles.modify(2, |it| it.email = profile(1).email).expect_err("taken").to_string(), expected);
    thief.user_id = 9;
    assert_eq!(profiles.insert(&thief).expect_err("taken").to_string(), expected);
    assert_eq!(profiles.upsert(&thief).expect_err("taken").to_string(), expected);
    assert_eq!(profiles.all().records().expect("reads"), [profile(0), profile(1), profile(2)]);
    assert_sound(&profiles);
}

#[test]
fn an_update_that_keeps_its_email_touches_only_what_differs() {
    let profiles = profiles(0..3);
    let trees = &profiles.trees;
    let mut changed = profile(1);
    changed.last_login += 1;
    profiles.update(&changed).expect("its own e-mail is no conflict");
    assert_eq!(touched(&profiles), [trees.primary]);
    changed.reputation += 1;
    profiles.upsert(&changed).expect("its own e-mail is no conflict");
    assert_eq!(touched(&profiles), [trees.indexes[3], trees.indexes[3], trees.primary]);
    changed.status = changed.status.next();
    profiles.modify(1, |it| it.status = it.status.next()).expect("its own e-mail is no conflict");
    assert_eq!(touched(&profiles), [trees.indexes[1], trees.indexes[1], trees.primary]);
    assert_eq!(profiles.get(1).expect("reads"), Some(changed));
    assert_sound(&profiles);
}

#[test]
fn an_insert_and_a_delete_touch_every_tree_once() {
    let profiles = profiles(0..1);
    assert_eq!(touched(&profiles).len(), 5);
    profiles.delete(0).expect("deletes");
    assert_eq!(touched(&profiles).len(), 5);
    assert_eq!(profiles.check().expect("checks").checked, 0);
}

#[test]
fn a_delete_frees_the_email() {
    let profiles = profiles(0..3);
    assert!(profiles.delete(1).expect("deletes"));
    assert!(!profiles.delete(1).expect("deletes"));
    let mut heir = profile(9);
    heir.email = profile(1).email;
    profiles.insert(&heir).expect("the e-mail is free");
    assert_eq!(profiles.find(Profile::EMAIL, &heir.email).expect("reads"), Some(heir));
    assert_sound(&profiles);
}

#[test]
fn a_record_that_is_not_there_is_not_updated() {
    let profiles = profiles(0..1);
    let error = profiles.update(&profile(5)).expect_err("there is no 5");
    assert_eq!(error.to_string(), "profiles holds no record with id 5");
    assert_eq!(profiles.modify(5, |it| it.reputation = 1).expect("reads"), None);
    assert_eq!(profiles.count().expect("counts"), 1);
}

#[test]
fn an_invalid_record_reaches_no_tree() {
    let profiles = profiles(0..1);
    let mut bad = profile(1);
    bad.reputation = -1;
    assert!(matches!(profiles.insert(&bad), Err(Error::Invalid { field: "reputation", .. })));
    assert!(matches!(profiles.modify(0, |it| it.email.clear()), Err(Error::Invalid { field: "email", .. })));
    assert_eq!(profiles.all().records().expect("reads"), [profile(0)]);
}

#[test]
fn a_modify_may_not_move_a_record_to_another_id() {
    let profiles = profiles(0..2);
    let error = profiles.modify(0, |it| it.user_id = 7).expect_err("the id moves");
    assert_eq!(error.to_string(), "id is \"7\"; expected the id that the record had");
    assert_sound(&profiles);
}

#[test]
fn one_of_four_threads_gets_the_email() {
    const ROUNDS: i64 = 200;
    let profiles = profiles(0..0);
    let start = Barrier::new(4);
    let insert_all = &|thread: i64| {
        let insert = |round| {
            start.wait();
            let email = format!("wanted{round}@example.com");
            profiles.insert(&Profile { email, ..profile(thread * ROUNDS + round) })
        };
        (0..ROUNDS).map(insert).map(|result| i64::from(result.is_ok())).sum::<i64>()
    };
    let won: i64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || insert_all(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    });
    assert_eq!(won, ROUNDS);
    assert_eq!(profiles.count().expect("counts"), ROUNDS as u64);
    assert_sound(&profiles);
}

#[test]
fn no_hit_of_four_threads_is_lost() {
    let pages = open::<Page>();
    pages.insert(&Page { path: "/".to_owned(), parent: None, hits: 0 }).expect("the page is new");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250).for_each(|_| drop(pages.modify("/", |page| page.hits += 1).expect("counts"))));
        }
    });
    assert_eq!(pages.get("/").expect("reads").expect("is there").hits, 1000);
    assert_sound(&pages);
}

#[test]
fn a_call_inside_another_does_not_disturb_it() {
    let (profiles, other) = (profiles(0..3), profiles(5..6));
    let mut seen = Vec::new();
    let scan = profiles.scan(Profile::CREATED_AT);
    scan.for_each(|it| seen.push((it.user_id, other.get(5).expect("reads").is_some()))).expect("scans");
    assert_eq!(seen, [(0, true), (1, true), (2, true)]);
}

#[test]
fn collections_share_a_store_and_nothing_else() {
    let kv = Arc::new(MemoryKv::default());
    let profiles: Repository<_> = Collection::open(Arc::clone(&kv)).expect("opens");
    let orders: Collection<Order, _> = Collection::open(Arc::clone(&kv)).expect("opens");
    profiles.insert(&profile(1)).expect("the profile is new");
    let note = "call first".to_owned();
    let order = Order { id: 1, customer: 1, status: OrderStatus::Open, placed_at: 5, total_cents: 995, note };
    orders.insert(&order).expect("the order is new");
    let again: Collection<Order, _> = Collection::open(kv).expect("opens again");
    assert_eq!(again.get(1).expect("reads"), Some(order));
    assert_eq!(profiles.count().expect("counts"), 1);
    assert_sound(&again);
}

#[test]
fn a_repository_is_a_profile_store() {
    let profiles = profiles(0..5);
    let store: &dyn ProfileStore = &profiles;
    let bump = &mut |it: &ProfileView<'_>| Profile { reputation: 900, ..it.to_profile() };
    let mut reputation = 0;
    assert!(store.modify(3, bump, &mut |it| reputation = it.reputation).expect("modifies"));
    assert_eq!(reputation, 900);
    let ids = |query: ProfileQuery, limit| {
        let (mut scanned, mut queried) = (Vec::new(), Vec::new());
        store.scan(&query, limit, &mut |id| scanned.push(id)).expect("scans");
        store.query(&query, limit, &mut |it| queried.push(it.user_id)).expect("queries");
        assert_eq!(scanned, queried);
        scanned
    };
    let (country, status) = (profile(0).country, profile(0).status);
    assert_eq!(ids(ProfileQuery::TopReputation, 3), [3, 0, 1]);
    assert_eq!(ids(ProfileQuery::CountryStatus { country, status }, 2), [0, 1]);
    assert_eq!(ids(ProfileQuery::CountryStatus { country, status: status.next() }, 2), [0; 0]);
    let (from, to) = (profile(1).created_at, profile(3).created_at);
    assert_eq!(ids(ProfileQuery::CreatedAt { from, to }, 9), [1, 2, 3]);
    assert_eq!(ids(ProfileQuery::CreatedAt { from: to, to: from }, 9), [0; 0]);
    assert!(store.find_by_email("user4@example.com", &mut |it| assert_eq!(it.user_id, 4)).expect("reads"));
    assert!(!store.get(9, &mut |_| ()).expect("reads"));
    assert!(store.delete(4).expect("deletes"));
    assert_eq!(store.check_indexes().expect("checks").checked, 4 * 5);
}

#[test]
#[should_panic(expected = "may not contain a dot")]
fn a_name_with_a_dot_does_not_open() {
    open::<Dotted>();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "the View of swaps does not read what the record writes")]
fn a_view_with_its_fields_in_another_order_is_caught() {
    let _ = open::<Swapped>().insert(&Swapped { id: 1, rank: 2 });
}

/// A record whose collection could be taken for an index of another.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Dotted(u8);

impl Record for Dotted {
    type Id = u8;
    type View<'a> = Self;

    const COLLECTION: &'static str = "profiles.email";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[];

    fn view(&self) -> Self {
        self.clone()
    }

    fn id(dotted: &Self) -> u8 {
        dotted.0
    }
}

/// A record whose view has the right fields in the wrong order.
#[derive(Serialize, Deserialize, Schema)]
struct Swapped {
    id: u8,
    rank: u8,
}

#[derive(Deserialize)]
struct SwappedView {
    rank: u8,
    id: u8,
}

impl Swapped {
    const RANK: Index<Self, u8> = Index::new("rank", |swapped| swapped.rank);
}

impl Record for Swapped {
    type Id = u8;
    type View<'a> = SwappedView;

    const COLLECTION: &'static str = "swaps";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::RANK];

    fn view(&self) -> SwappedView {
        SwappedView { rank: self.rank, id: self.id }
    }

    fn id(swapped: &SwappedView) -> u8 {
        swapped.id
    }
}
