//! Records for tests: profiles, and two types that have nothing in common with them.

use std::cmp::Reverse;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::key_as;
use crate::store::{AnyIndex, Country, Error, Index, Key, Profile, Record, Result, Status, UniqueIndex};

pub(crate) fn profile(user_id: i64) -> Profile {
    Profile {
        user_id,
        email: format!("user{user_id}@example.com"),
        country: Country::new("DE").expect("DE is a country"),
        status: Status::Active,
        created_at: 1_700_000_000_000 + user_id,
        last_login: 1_700_000_500_000,
        reputation: 500,
        display_name: format!("User {user_id}"),
        bio: "Likes long walks.".to_owned(),
    }
}

pub(crate) fn user_id_key(user_id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    i64::encode(user_id, &mut key);
    key
}

/// Where an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Schema)]
pub(crate) enum OrderStatus {
    Open,
    Paid,
    Shipped,
}

impl OrderStatus {
    pub(crate) const ALL: [Self; 3] = [Self::Open, Self::Paid, Self::Shipped];
}

key_as!(OrderStatus => u8, |status| status as u8, |number| OrderStatus::ALL.get(usize::from(number)).copied());

/// An order: a number for an id, text that is borrowed, a unique pair, and keys that descend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) customer: u64,
    pub(crate) status: OrderStatus,
    pub(crate) placed_at: i64,
    pub(crate) total_cents: i64,
    pub(crate) note: String,
}

/// An order whose note is still in the store.
#[derive(Deserialize)]
pub(crate) struct OrderView<'a> {
    pub(crate) id: u64,
    pub(crate) customer: u64,
    pub(crate) status: OrderStatus,
    pub(crate) placed_at: i64,
    pub(crate) total_cents: i64,
    pub(crate) note: &'a str,
}

impl Order {
    /// A customer places one order at a time.
    pub(crate) const PLACED: UniqueIndex<Self, (u64, i64)> =
        Index::new("placed", |order| (order.customer, order.placed_at));
    pub(crate) const STATUS_TOTAL: Index<Self, (OrderStatus, Reverse<i64>)> =
        Index::new("status_total", |order| (order.status, Reverse(order.total_cents)));
    pub(crate) const NOTE: Index<Self, String> = Index::new("note", |order| order.note);
}

impl Record for Order {
    type Id = u64;
    type View<'a> = OrderView<'a>;

    const COLLECTION: &'static str = "orders";
    const VERSION: u8 = 3;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::PLACED, &Self::STATUS_TOTAL, &Self::NOTE];

    fn view(&self) -> OrderView<'_> {
        let &Self { id, customer, status, placed_at, total_cents, ref note } = self;
        OrderView { id, customer, status, placed_at, total_cents, note }
    }

    fn id(order: &OrderView<'_>) -> u64 {
        order.id
    }

    fn validate(order: &OrderView<'_>) -> Result<()> {
        if order.total_cents < 0 {
            return Err(Error::invalid("total_cents", order.total_cents, "at least 0"));
        }
        Ok(())
    }
}

/// A page: text for an id, and its own view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) parent: Option<String>,
    pub(crate) hits: u64,
}

impl Page {
    pub(crate) const PARENT: Index<Self, Option<String>> = Index::new("parent", |page| page.parent.as_deref());
    pub(crate) const HITS: Index<Self, Reverse<u64>> = Index::new("hits", |page| Reverse(page.hits));
}

impl Record for Page {
    type Id = String;
    type View<'a> = Self;

    const COLLECTION: &'static str = "pages";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::PARENT, &Self::HITS];

    fn view(&self) -> Self {
        self.clone()
    }

    fn id(page: &Self) -> &str {
        &page.path
    }
}
