//! Random changes to a collection and to a plain list, which must agree.

use std::cmp::Reverse;

use proptest::prelude::*;

use super::memory_kv::MemoryKv;
use super::records::{Order, OrderStatus};
use super::{assert_sound, open};
use crate::store::{Collection, Error, Result};

#[derive(Clone, Debug)]
enum Step {
    Insert(Order),
    Update(Order),
    Upsert(Order),
    Modify(Order),
    Delete(u64),
}

/// Few values for each field, so that ids and unique keys meet.
fn order() -> impl Strategy<Value = Order> {
    let status = prop::sample::select(OrderStatus::ALL.to_vec());
    (0..8_u64, 0..3_u64, status, -2..2_i64, -1..3_i64, "[a\u{0}]{0,2}").prop_map(
        |(id, customer, status, placed_at, total_cents, note)| Order {
            id,
            customer,
            status,
            placed_at,
            total_cents,
            note,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => order().prop_map(Step::Insert),
        2 => order().prop_map(Step::Update),
        2 => order().prop_map(Step::Upsert),
        2 => order().prop_map(Step::Modify),
        1 => (0..8_u64).prop_map(Step::Delete),
    ]
}

/// What a change came to, without its words.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done,
    Invalid,
    DuplicateId,
    DuplicateKey,
    NotFound,
}

#[derive(Default)]
struct Model {
    orders: Vec<Order>,
}

impl Model {
    fn apply(&mut self, step: &Step) -> Outcome {
        let invalid = |order: &Order| order.total_cents < 0;
        match step {
            Step::Modify(order) if !self.holds(order.id) => Outcome::NotFound,
            Step::Insert(order) | Step::Update(order) | Step::Upsert(order) | Step::Modify(order) if invalid(order) => {
                Outcome::Invalid
            }
            Step::Insert(order) if self.holds(order.id) => Outcome::DuplicateId,
            Step::Update(order) if !self.holds(order.id) => Outcome::NotFound,
            Step::Insert(order) | Step::Update(order) | Step::Upsert(order) | Step::Modify(order) => self.put(order),
            Step::Delete(id) if !self.holds(*id) => Outcome::NotFound,
            Step::Delete(id) => {
                self.orders.retain(|order| order.id != *id);
                Outcome::Done
            }
        }
    }

    fn holds(&self, id: u64) -> bool {
        self.orders.iter().any(|order| order.id == id)
    }

    fn put(&mut self, order: &Order) -> Outcome {
        let placed = |order: &Order| (order.customer, order.placed_at);
        if self.orders.iter().any(|other| other.id != order.id && placed(other) == placed(order)) {
            return Outcome::DuplicateKey;
        }
        self.orders.retain(|other| other.id != order.id);
        self.orders.push(order.clone());
        Outcome::Done
    }

    fn ids<K: Ord>(&self, holds: impl Fn(&Order) -> bool, key: impl Fn(&Order) -> K) -> Vec<u64> {
        let mut found: Vec<_> = self.orders.iter().filter(|order| holds(order)).collect();
        found.sort_by_key(|order| (key(order), order.id));
        found.iter().map(|order| order.id).collect()
    }
}

fn apply(orders: &Collection<Order, MemoryKv>, step: &Step) -> Outcome {
    let found = |found| if found { Ok(()) } else { Err(Error::NotFound { collection: "orders", id: String::new() }) };
    let result: Result<()> = match step {
        Step::Insert(order) => orders.insert(order),
        Step::Update(order) => orders.update(order),
        Step::Upsert(order) => orders.upsert(order),
        Step::Modify(new) => orders.modify(new.id, |order| *order = new.clone()).and_then(|it| found(it.is_some())),
        Step::Delete(id) => orders.delete(*id).and_then(found),
    };
    match result {
        Ok(()) => Outcome::Done,
        Err(Error::Invalid { .. }) => Outcome::Invalid,
        Err(Error::DuplicateId { .. }) => Outcome::DuplicateId,
        Err(Error::DuplicateKey { index: "placed", .. }) => Outcome::DuplicateKey,
        Err(Error::NotFound { .. }) => Outcome::NotFound,
        Err(other) => panic!("{other}"),
    }
}

macro_rules! assert_same {
    ($scan:expr, $expected:expr, $limit:expr) => {{
        let mut expected: Vec<u64> = $expected;
        assert_eq!($scan.count().expect("counts"), expected.len() as u64);
        assert_eq!($scan.ids().expect("scans"), expected);
        let ids = |orders: Vec<Order>| orders.iter().map(|order| order.id).collect::<Vec<_>>();
        assert_eq!(ids($scan.limit($limit).records().expect("scans")), expected[..$limit.min(expected.len())]);
        expected.reverse();
        assert_eq!(ids($scan.descending().records().expect("scans")), expected);
        expected.truncate($limit);
        assert_eq!($scan.descending().limit($limit).ids().expect("scans"), expected);
    }};
}

/// Every index, whole and narrowed down around `probe`.
fn assert_scans_agree(orders: &Collection<Order, MemoryKv>, model: &Model, probe: &Order, limit: usize) {
    let &Order { id, customer, status, placed_at, total_cents, ref note } = probe;
    assert_same!(orders.all(), model.ids(|_| true, |_| ()), limit);
    assert_same!(orders.all().range(id..), model.ids(|order| order.id >= id, |_| ()), limit);

    let placed = |order: &Order| (order.customer, order.placed_at);
    assert_same!(orders.scan(Order::PLACED), model.ids(|_| true, placed), limit);
    assert_same!(
        orders.scan(Order::PLACED).prefix((customer,)),
        model.ids(|it| it.customer == customer, placed),
        limit
    );
    let (from, to) = ((customer, placed_at), (customer + 1, placed_at));
    let inside = |order: &Order| (from..=to).contains(&placed(order));
    assert_same!(orders.scan(Order::PLACED).range(from..=to), model.ids(inside, placed), limit);

    let total = |order: &Order| (order.status, Reverse(order.total_cents));
    let key = (status, Reverse(total_cents));
    assert_same!(orders.scan(Order::STATUS_TOTAL), model.ids(|_| true, total), limit);
    assert_same!(orders.scan(Order::STATUS_TOTAL).equals(key), model.ids(|it| total(it) == key, total), limit);
    assert_same!(orders.scan(Order::STATUS_TOTAL).range(..key), model.ids(|it| total(it) < key, total), limit);
    assert_same!(orders.scan(Order::STATUS_TOTAL).range(..=key), model.ids(|it| total(it) <= key, total), limit);

    let text = |order: &Order| order.note.clone();
    assert_same!(orders.scan(Order::NOTE).equals(note), model.ids(|it| it.note == *note, text), limit);
    assert_same!(orders.scan(Order::NOTE).starts_with(note), model.ids(|it| it.note.starts_with(note), text), limit);
    assert_same!(orders.scan(Order::NOTE).range(note.as_str()..), model.ids(|it| it.note >= *note, text), limit);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_collection_does_what_a_list_does(
        steps in prop::collection::vec((step(), order()), 1..40),
        limit in 0..4_usize,
    ) {
        let orders = open::<Order>();
        let mut model = Model::default();
        for (step, probe) in &steps {
            prop_assert_eq!(apply(&orders, step), model.apply(step), "{:?}", step);
            for order in &model.orders {
                prop_assert_eq!(&orders.get(order.id).expect("reads"), &Some(order.clone()));
                let found = orders.find(Order::PLACED, (order.customer, order.placed_at)).expect("reads");
                prop_assert_eq!(found.as_ref(), Some(order));
            }
            assert_scans_agree(&orders, &model, probe, limit);
            assert_sound(&orders);
        }
    }
}
