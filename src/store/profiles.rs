//! The profile operations every store offers, whether it keeps its indexes itself (SQL) or runs on [`Repository`].
//!
//! [`Repository`]: super::Repository

use super::check::IndexCheck;
use super::error::Result;
use super::profile::{Country, Profile, ProfileView, Status};

/// An ordered, limited read of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileQuery {
    /// Profiles of one country and status, by user id.
    CountryStatus {
        /// Exactly this country.
        country: Country,
        /// Exactly this status.
        status: Status,
    },
    /// Profiles with `from <= created_at <= to`, by `(created_at, user_id)`.
    CreatedAt {
        /// First instant, Unix milliseconds, inclusive.
        from: i64,
        /// Last instant, Unix milliseconds, inclusive.
        to: i64,
    },
    /// All profiles, by reputation descending, then user id ascending.
    TopReputation,
}

/// A store of profiles with a unique index on e-mail and ordered indexes on country and status, creation time
/// and reputation. Every change to a profile and its index entries is atomic.
pub trait ProfileStore: Send + Sync {
    /// Adds a profile. Fails if its id or its e-mail is taken.
    fn insert(&self, profile: Profile) -> Result<()>;

    /// Hands the profile to `read`; `false` if there is none.
    fn get(&self, user_id: i64, read: &mut dyn FnMut(&ProfileView<'_>)) -> Result<bool>;

    /// Hands the profile with this e-mail to `read`; `false` if there is none.
    fn find_by_email(&self, email: &str, read: &mut dyn FnMut(&ProfileView<'_>)) -> Result<bool>;

    /// Hands the ids of the first `limit` profiles of `query` to `visit`, in order, from the index alone.
    fn scan(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(i64)) -> Result<()>;

    /// Hands the first `limit` profiles of `query` to `visit`, in order. An index entry without its profile is an error.
    fn query(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(&ProfileView<'_>)) -> Result<()>;

    /// Reads a profile, stores what `change` makes of it, and hands that to `read`; `false` if there is none.
    /// No other change to the profile comes between. `change` may not change the user id.
    fn modify(
        &self,
        user_id: i64,
        change: &mut dyn FnMut(&ProfileView<'_>) -> Profile,
        read: &mut dyn FnMut(&ProfileView<'_>),
    ) -> Result<bool>;

    /// Removes a profile and its index entries; `false` if there is none.
    fn delete(&self, user_id: i64) -> Result<bool>;

    /// Number of profiles.
    fn count(&self) -> Result<u64>;

    /// Walks every index against the primary and the primary against every index.
    fn check_indexes(&self) -> Result<IndexCheck>;
}
