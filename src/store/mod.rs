//! Records in, batches out. Knows no files and no threads.
//!
//! A type becomes a [`Record`] by naming its id and its indexes; a [`Collection`] then stores it. Every change to a
//! record and to all its index entries is one atomic batch, so an index never disagrees with the records. Keys are
//! typed: a scan by country and status takes a country and a status, and `find` takes unique indexes only.
//!
//! ```
//! use std::cmp::Reverse;
//! use std::sync::Arc;
//!
//! use postcard_schema::Schema;
//! use profilestore::engine::{Database, Options};
//! use profilestore::store::{AnyIndex, Collection, Index, Record, UniqueIndex};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize, Schema)]
//! struct User {
//!     id: u64,
//!     email: String,
//!     country: String,
//!     score: i32,
//! }
//!
//! /// The same fields, with the text still in the store: reads copy nothing.
//! #[derive(Deserialize)]
//! struct UserView<'a> {
//!     id: u64,
//!     email: &'a str,
//!     country: &'a str,
//!     score: i32,
//! }
//!
//! impl User {
//!     const EMAIL: UniqueIndex<Self, String> = Index::new("email", |user| user.email);
//!     /// By country; within a country, highest score first.
//!     const COUNTRY_SCORE: Index<Self, (String, Reverse<i32>)> =
//!         Index::new("country_score", |user| (user.country, Reverse(user.score)));
//! }
//!
//! impl Record for User {
//!     type Id = u64;
//!     type View<'a> = UserView<'a>;
//!
//!     const COLLECTION: &'static str = "users";
//!     const VERSION: u8 = 1;
//!     const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::EMAIL, &Self::COUNTRY_SCORE];
//!
//!     fn view(&self) -> UserView<'_> {
//!         UserView { id: self.id, email: &self.email, country: &self.country, score: self.score }
//!     }
//!
//!     fn id(user: &UserView<'_>) -> u64 {
//!         user.id
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let database = Arc::new(Database::open(&dir, Options::default())?);
//! let users: Collection<User, _> = Collection::open(database)?;
//!
//! for (id, name, country, score) in [(1, "ada", "GB", 90), (2, "emmy", "DE", 95), (3, "kurt", "DE", 80)] {
//!     users.insert(&User { id, email: format!("{name}@example.com"), country: country.into(), score })?;
//! }
//!
//! let ada = users.find(User::EMAIL, "ada@example.com")?.expect("ada was inserted");
//! assert_eq!(ada.id, 1);
//!
//! // One atomic step: the record, and the index entry that moves with it.
//! users.modify(3, |user| user.score += 20)?;
//! let best = users.scan(User::COUNTRY_SCORE).prefix(("DE",)).limit(10).ids()?;
//! assert_eq!(best, [3, 2]);
//!
//! // A taken e-mail is refused, and nothing has changed.
//! assert!(users.modify(2, |user| user.email = "ada@example.com".into()).is_err());
//! assert!(users.check()?.problems.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! | to read | write |
//! |---|---|
//! | one record | [`get`](Collection::get), [`get_with`](Collection::get_with), [`find`](Collection::find), [`find_with`](Collection::find_with) |
//! | many | [`scan`](Collection::scan) or [`all`](Collection::all), narrowed down by `equals`, `prefix`, `range`, `starts_with`, `descending`, `limit`, `after`; run by `ids`, `records`, `for_each`, `first`, `count` |
//!
//! What changes together is changed in a transaction of the database, in which a collection is what
//! [`Collection::within`] answers: its changes become visible, and durable, with those of all others in it, and its reads
//! see them. It is run again if it conflicts.
//!
//! ```
//! # use std::sync::Arc;
//! # use profilestore::engine::{Database, Isolation, Options};
//! # use profilestore::store::{Country, Error, Profile, Repository, Status};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let database = Arc::new(Database::open(&dir, Options::default())?);
//! # let profiles = Repository::open(Arc::clone(&database))?;
//! # for user_id in [1, 2] {
//! #     profiles.insert(&Profile {
//! #         user_id,
//! #         email: format!("user{user_id}@example.com"),
//! #         country: Country::new("DE").expect("DE is a country"),
//! #         status: Status::Active,
//! #         created_at: 0,
//! #         last_login: 0,
//! #         reputation: 10,
//! #         display_name: String::new(),
//! #         bio: String::new(),
//! #     })?;
//! # }
//! // Reputation goes from one to the other; nobody ever sees it gone, or there twice.
//! let moved = database.transact(Isolation::Snapshot, |transaction| {
//!     let profiles = profiles.within(transaction);
//!     profiles.modify(1, |giver| giver.reputation -= 3)?;
//!     profiles.modify(2, |taker| taker.reputation += 3)?;
//!     profiles.scan(Profile::REPUTATION).ids()
//! })?;
//! assert_eq!((moved.value, moved.attempts), (vec![2, 1], 1));
//! # Ok(())
//! # }
//! ```
//!
//! A store of columns reads a view field by field. [`Record::read_columns`] may be written out for it: a [`Text`] in place
//! of a `&str` is then put together only when it is looked at.
//!
//! Other key-value engines stand behind the same records through [`kv::Kv`].

mod build;
mod byte_list;
mod check;
mod codec;
mod collection;
mod columns;
mod database;
mod error;
mod fields;
#[cfg(feature = "cli")]
pub(crate) mod fuzz;
mod index;
pub mod keys;
pub mod kv;
mod layout;
mod profile;
mod profiles;
mod record;
mod repository;
mod salvage;
mod scan;
mod scratch;
mod text;
#[cfg(feature = "transfer")]
pub mod transfer;
mod walk;
mod within;

#[cfg(test)]
pub(crate) mod tests;

pub use check::IndexCheck;
pub use collection::Collection;
pub use columns::Columns;
pub use error::{Error, Result};
pub use index::{AnyIndex, IdPlace, Index, UniqueIndex};
pub use keys::{Key, KeyPrefix, KeyReader};
pub use profile::{Country, Profile, ProfileView, REPUTATION_MAX, Status, TEXT_BYTES_MAX};
pub use profiles::{ProfileQuery, ProfileStore};
pub use record::{IdRef, Record};
pub use repository::Repository;
pub use salvage::salvage;
pub use scan::Scan;
pub use text::Text;
pub use within::Within;
