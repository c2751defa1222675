//! A store of users with a unique index on e-mail and an ordered index on country and score.
//!
//! `cargo run --example users`

use std::cmp::Reverse;
use std::error::Error;
use std::sync::Arc;

use postcard_schema::Schema;
use profilestore::engine::{Database, Options};
use profilestore::store::{AnyIndex, Collection, Index, Record, UniqueIndex};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Schema)]
struct User {
    id: u64,
    email: String,
    country: String,
    score: i32,
}

/// The same fields, with the text still in the store: reads copy nothing.
#[derive(Deserialize)]
struct UserView<'a> {
    id: u64,
    email: &'a str,
    country: &'a str,
    score: i32,
}

impl User {
    const EMAIL: UniqueIndex<Self, String> = Index::new("email", |user| user.email);
    /// By country; within a country, highest score first.
    const COUNTRY_SCORE: Index<Self, (String, Reverse<i32>)> =
        Index::new("country_score", |user| (user.country, Reverse(user.score)));
}

impl Record for User {
    type Id = u64;
    type View<'a> = UserView<'a>;

    const COLLECTION: &'static str = "users";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::EMAIL, &Self::COUNTRY_SCORE];

    fn view(&self) -> UserView<'_> {
        UserView { id: self.id, email: &self.email, country: &self.country, score: self.score }
    }

    fn id(user: &UserView<'_>) -> u64 {
        user.id
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let database = Arc::new(Database::open(&dir, Options::default())?);
    let users: Collection<User, _> = Collection::open(Arc::clone(&database))?;

    for (id, name, country, score) in [(1, "ada", "GB", 90), (2, "emmy", "DE", 95), (3, "kurt", "DE", 80)] {
        users.insert(&User { id, email: format!("{name}@example.com"), country: country.into(), score })?;
    }

    println!("who is emmy@example.com? {:?}", users.find(User::EMAIL, "emmy@example.com")?);

    users.modify(3, |user| user.score += 20)?;
    println!("best of DE, after kurt gained 20:");
    users.scan(User::COUNTRY_SCORE).prefix(("DE",)).limit(10).for_each(|user| {
        println!("  {:>3} {}", user.score, user.email);
    })?;

    let taken = User { id: 4, email: "ada@example.com".into(), country: "FR".into(), score: 1 };
    if let Err(refused) = users.insert(&taken) {
        println!("refused: {refused}");
    }

    let check = users.check()?;
    println!("{} records and index entries looked at, {} problems", check.checked, check.problems.len());
    database.close()?;
    Ok(())
}
