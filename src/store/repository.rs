//! The profile operations on a [`Collection`] of profiles, over any key-value engine.

use super::check::IndexCheck;
use super::collection::Collection;
use super::error::Result;
use super::kv::Kv;
use super::profile::{Profile, ProfileView};
use super::profiles::{ProfileQuery, ProfileStore};
use super::scan::Scan;

/// The profiles in the store `V`.
pub type Repository<V> = Collection<Profile, V>;

impl<V: Kv> Repository<V> {
    fn select(&self, query: &ProfileQuery, limit: usize) -> Scan<'_, Profile, V, ()> {
        let scan = match *query {
            ProfileQuery::CountryStatus { country, status } => {
                Self::scan(self, Profile::COUNTRY_STATUS).equals((country, status)).any_key()
            }
            ProfileQuery::CreatedAt { from, to } => Self::scan(self, Profile::CREATED_AT).range(from..=to).any_key(),
            ProfileQuery::TopReputation => Self::scan(self, Profile::REPUTATION).any_key(),
        };
        scan.limit(limit)
    }
}

impl<V: Kv + Send + Sync> ProfileStore for Repository<V> {
    fn insert(&self, profile: Profile) -> Result<()> {
        Self::insert(self, &profile)
    }

    fn get(&self, user_id: i64, read: &mut dyn FnMut(&ProfileView<'_>)) -> Result<bool> {
        self.get_with(user_id, read).map(|found| found.is_some())
    }

    fn find_by_email(&self, email: &str, read: &mut dyn FnMut(&ProfileView<'_>)) -> Result<bool> {
        self.find_with(Profile::EMAIL, email, read).map(|found| found.is_some())
    }

    fn scan(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(i64)) -> Result<()> {
        self.select(query, limit).for_each_id(visit)
    }

    fn query(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(&ProfileView<'_>)) -> Result<()> {
        self.select(query, limit).for_each(visit)
    }

    fn modify(
        &self,
        user_id: i64,
        change: &mut dyn FnMut(&ProfileView<'_>) -> Profile,
        read: &mut dyn FnMut(&ProfileView<'_>),
    ) -> Result<bool> {
        let changed = self.modify_with(user_id, change)?;
        Ok(changed.map(|profile| read(&profile.view())).is_some())
    }

    fn delete(&self, user_id: i64) -> Result<bool> {
        Self::delete(self, user_id)
    }

    fn count(&self) -> Result<u64> {
        Self::count(self)
    }

    fn check_indexes(&self) -> Result<IndexCheck> {
        self.check()
    }
}
