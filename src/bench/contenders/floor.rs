//! Plain vectors in memory: what the harness itself costs. Nothing is stored, and nothing is copied.
//!
//! Each ordered index is one vector. A change appends its new entry and leaves the old one; a vector whose end is out
//! of order is put right when it is next read, or by *stabilize*: sorted, and rid of entries that no longer agree with
//! their profile. E-mails are found by a 64-bit hash and compared in the profile. Closing hands the vectors back to
//! the contender, under the name of the directory; the directory itself stays empty.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use xxhash_rust::xxh3::xxh3_64;

use super::{Contender, Durability, OpenOptions, OpenStore, settings};
use crate::store::{
    Country, Error, IndexCheck, Profile, ProfileQuery, ProfileStore, ProfileView, Result as StoreResult, Status,
};

const NAME: &str = "floor";
const COLLECTION: &str = "profiles";

/// The contender; holds what its closed stores held.
#[derive(Default)]
pub struct Floor {
    closed: Arc<Mutex<HashMap<PathBuf, Tables>>>,
}

impl Contender for Floor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn classes(&self) -> &'static [Durability] {
        &[Durability::None]
    }

    fn open(&self, dir: &Path, options: &OpenOptions) -> Result<Box<dyn OpenStore>> {
        let reopened = self.closed.lock().remove(dir);
        let tables = RwLock::new(reopened.unwrap_or_else(|| Tables::for_ids_to(options.profiles)));
        Ok(Box::new(OpenFloor { closed: Arc::clone(&self.closed), dir: dir.to_owned(), store: FloorStore { tables } }))
    }
}

struct OpenFloor {
    closed: Arc<Mutex<HashMap<PathBuf, Tables>>>,
    dir: PathBuf,
    store: FloorStore,
}

impl OpenStore for OpenFloor {
    fn profiles(&self) -> &dyn ProfileStore {
        &self.store
    }

    fn settings(&self) -> Result<BTreeMap<String, String>> {
        Ok(settings([("storage", "none: vectors in memory, which no budget bounds".to_owned())]))
    }

    fn stabilize(&self) -> Result<bool> {
        self.store.tables.write().put_in_order();
        Ok(true)
    }

    fn settle(&self) -> Result<()> {
        self.store.tables.write().put_in_order();
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.closed.lock().insert(self.dir, self.store.tables.into_inner());
        Ok(())
    }
}

/// The store itself. Readers share the lock; a change, or putting an index right, holds it alone.
struct FloorStore {
    tables: RwLock<Tables>,
}

/// Number of country and status lists: two letters and a status.
const LISTS: usize = 26 * 26 * Status::ALL.len();

struct Tables {
    /// By id; slot 0 is not used.
    profiles: Vec<Option<Profile>>,
    count: u64,
    by_email: HashMap<u64, u32, BuildHasherDefault<HashedAlready>>,
    /// Ids, one list for each country and status.
    by_country_status: Vec<Sorted<u32>>,
    by_created_at: Sorted<(i64, u32)>,
    by_reputation: Sorted<(Reverse<i32>, u32)>,
}

/// A vector that is in order unless a change since the last look made it otherwise.
struct Sorted<Entry> {
    entries: Vec<Entry>,
    is_dirty: bool,
}

impl<Entry: Ord + Copy> Sorted<Entry> {
    fn new() -> Self {
        Self { entries: Vec::new(), is_dirty: false }
    }

    fn add(&mut self, entry: Entry) {
        self.is_dirty |= self.entries.last().is_some_and(|&last| last >= entry);
        self.entries.push(entry);
    }

    /// Sorts what was added and drops what `is_current` denies.
    fn put_in_order(&mut self, is_current: impl Fn(Entry) -> bool) {
        if self.is_dirty {
            self.entries.retain(|&entry| is_current(entry));
            self.entries.sort_unstable();
            self.entries.dedup();
            self.is_dirty = false;
        }
    }
}

fn list_of(country: Country, status: Status) -> usize {
    let [first, second] = <[u8; 2]>::from(country).map(|letter| usize::from(letter - b'A'));
    (first * 26 + second) * Status::ALL.len() + status as usize
}

impl Tables {
    fn for_ids_to(profiles: u64) -> Self {
        Self {
            profiles: vec![None; profiles as usize + 1],
            count: 0,
            by_email: HashMap::with_capacity_and_hasher(profiles as usize, BuildHasherDefault::default()),
            by_country_status: (0..LISTS).map(|_| Sorted::new()).collect(),
            by_created_at: Sorted::new(),
            by_reputation: Sorted::new(),
        }
    }

    #[inline]
    fn profile(&self, user_id: i64) -> Option<&Profile> {
        self.profiles.get(usize::try_from(user_id).ok()?)?.as_ref()
    }

    fn insert(&mut self, profile: Profile) -> StoreResult<()> {
        let id = self.id_of(&profile)?;
        if self.profiles[id as usize].is_some() {
            return Err(Error::DuplicateId { collection: COLLECTION, id: id.to_string() });
        }
        self.claim_email(&profile, id)?;
        self.by_country_status[list_of(profile.country, profile.status)].add(id);
        self.by_created_at.add((profile.created_at, id));
        self.by_reputation.add((Reverse(profile.reputation), id));
        self.profiles[id as usize] = Some(profile);
        self.count += 1;
        Ok(())
    }

    fn id_of(&self, profile: &Profile) -> StoreResult<u32> {
        let is_in_range = (1..self.profiles.len() as i64).contains(&profile.user_id);
        let id = u32::try_from(profile.user_id).ok().filter(|_| is_in_range);
        id.ok_or_else(|| foreign(format!("ids go from 1 to {}, not {}", self.profiles.len() - 1, profile.user_id)))
    }

    fn claim_email(&mut self, profile: &Profile, id: u32) -> StoreResult<()> {
        let Some(holder) = self.by_email.insert(xxh3_64(profile.email.as_bytes()), id) else {
            return Ok(());
        };
        self.by_email.insert(xxh3_64(profile.email.as_bytes()), holder);
        match self.profile(i64::from(holder)) {
            Some(held) if held.email == profile.email => {
                Err(Error::DuplicateKey { collection: COLLECTION, index: "email", key: profile.email.clone() })
            }
            _ => Err(foreign(format!("{} hashes like the e-mail of {holder}", profile.email))),
        }
    }

    /// Puts `new` in place of the profile with its id, and adds the index entries that differ.
    fn replace(&mut self, new: Profile) -> StoreResult<()> {
        let id = self.id_of(&new)?;
        let Some(old) = self.profiles[id as usize].take() else {
            return Err(Error::NotFound { collection: COLLECTION, id: id.to_string() });
        };
        if new.email != old.email {
            if let Err(error) = self.claim_email(&new, id) {
                self.profiles[id as usize] = Some(old);
                return Err(error);
            }
            self.by_email.remove(&xxh3_64(old.email.as_bytes()));
        }
        self.move_entries(&old, &new, id);
        self.profiles[id as usize] = Some(new);
        Ok(())
    }

    fn move_entries(&mut self, old: &Profile, new: &Profile, id: u32) {
        let (old_list, new_list) = (list_of(old.country, old.status), list_of(new.country, new.status));
        if new_list != old_list {
            self.by_country_status[old_list].is_dirty = true;
            self.by_country_status[new_list].add(id);
        }
        if new.created_at != old.created_at {
            self.by_created_at.is_dirty = true;
            self.by_created_at.add((new.created_at, id));
        }
        if new.reputation != old.reputation {
            self.by_reputation.is_dirty = true;
            self.by_reputation.add((Reverse(new.reputation), id));
        }
    }

    fn delete(&mut self, user_id: i64) -> bool {
        let slot = usize::try_from(user_id).ok().and_then(|id| self.profiles.get_mut(id));
        let Some(old) = slot.and_then(Option::take) else {
            return false;
        };
        self.by_email.remove(&xxh3_64(old.email.as_bytes()));
        self.by_country_status[list_of(old.country, old.status)].is_dirty = true;
        self.by_created_at.is_dirty = true;
        self.by_reputation.is_dirty = true;
        self.count -= 1;
        true
    }

    fn is_in_order_for(&self, query: &ProfileQuery) -> bool {
        !match *query {
            ProfileQuery::CountryStatus { country, status } => {
                self.by_country_status[list_of(country, status)].is_dirty
            }
            ProfileQuery::CreatedAt { .. } => self.by_created_at.is_dirty,
            ProfileQuery::TopReputation => self.by_reputation.is_dirty,
        }
    }

    fn put_in_order(&mut self) {
        let profile = |id: u32| self.profiles[id as usize].as_ref();
        for (number, list) in self.by_country_status.iter_mut().enumerate() {
            list.put_in_order(|id| profile(id).is_some_and(|p| list_of(p.country, p.status) == number));
        }
        self.by_created_at.put_in_order(|(created_at, id)| profile(id).is_some_and(|p| p.created_at == created_at));
        self.by_reputation.put_in_order(|(reputation, id)| profile(id).is_some_and(|p| p.reputation == reputation.0));
    }

    /// Hands the first `limit` ids of `query` to `visit`; the index must be in order.
    fn scan(&self, query: &ProfileQuery, limit: usize, visit: impl FnMut(u32)) {
        match *query {
            ProfileQuery::CountryStatus { country, status } => {
                self.by_country_status[list_of(country, status)].entries.iter().copied().take(limit).for_each(visit);
            }
            ProfileQuery::CreatedAt { from, to } => {
                let entries = &self.by_created_at.entries;
                let start = entries.partition_point(|&(created_at, _)| created_at < from);
                let inside = entries[start..].iter().take_while(|&&(created_at, _)| created_at <= to);
                inside.map(|&(_, id)| id).take(limit).for_each(visit);
            }
            ProfileQuery::TopReputation => {
                self.by_reputation.entries.iter().map(|&(_, id)| id).take(limit).for_each(visit);
            }
        }
    }

    fn check(&self) -> IndexCheck {
        let mut check = IndexCheck::default();
        for profile in self.profiles.iter().flatten() {
            check.checked += 1;
            self.check_profile(profile, &mut check.problems);
        }
        let entries: usize = self.by_country_status.iter().map(|list| list.entries.len()).sum();
        let sizes = [
            ("email", self.by_email.len()),
            ("country/status", entries),
            ("created-at", self.by_created_at.entries.len()),
            ("reputation", self.by_reputation.entries.len()),
        ];
        for (index, size) in sizes {
            check.checked += size as u64;
            if size as u64 != self.count {
                check.problems.push(format!("{index} has {size} entries for {} profiles", self.count));
            }
        }
        check
    }

    /// Entries are unique, so if each profile has its own and there are no more, none is left over.
    fn check_profile(&self, profile: &Profile, problems: &mut Vec<String>) {
        let id = profile.user_id as u32;
        let list = &self.by_country_status[list_of(profile.country, profile.status)].entries;
        let found = [
            ("email", self.by_email.get(&xxh3_64(profile.email.as_bytes())) == Some(&id)),
            ("country/status", list.binary_search(&id).is_ok()),
            ("created-at", self.by_created_at.entries.binary_search(&(profile.created_at, id)).is_ok()),
            ("reputation", self.by_reputation.entries.binary_search(&(Reverse(profile.reputation), id)).is_ok()),
        ];
        let missing = found.into_iter().filter(|(_, is_found)| !is_found);
        problems.extend(missing.map(|(index, _)| format!("{index} has no entry for profile {id}")));
    }
}

impl FloorStore {
    fn in_order_for(&self, query: &ProfileQuery) -> RwLockReadGuard<'_, Tables> {
        let tables = self.tables.read();
        if tables.is_in_order_for(query) {
            return tables;
        }
        drop(tables);
        let mut tables = self.tables.write();
        tables.put_in_order();
        RwLockWriteGuard::downgrade(tables)
    }
}

impl ProfileStore for FloorStore {
    fn insert(&self, profile: Profile) -> StoreResult<()> {
        self.tables.write().insert(profile)
    }

    fn get(&self, user_id: i64, read: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<bool> {
        let tables = self.tables.read();
        let profile = tables.profile(user_id);
        Ok(profile.map(|profile| read(&profile.view())).is_some())
    }

    fn find_by_email(&self, email: &str, read: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<bool> {
        let tables = self.tables.read();
        let id = tables.by_email.get(&xxh3_64(email.as_bytes()));
        let profile = id.and_then(|&id| tables.profile(i64::from(id))).filter(|profile| profile.email == email);
        Ok(profile.map(|profile| read(&profile.view())).is_some())
    }

    fn scan(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(i64)) -> StoreResult<()> {
        self.in_order_for(query).scan(query, limit, |id| visit(i64::from(id)));
        Ok(())
    }

    fn query(&self, query: &ProfileQuery, limit: usize, visit: &mut dyn FnMut(&ProfileView<'_>)) -> StoreResult<()> {
        let tables = self.in_order_for(query);
        let mut missing = None;
        tables.scan(query, limit, |id| match tables.profile(i64::from(id)) {
            Some(profile) => visit(&profile.view()),
            None => missing = Some(id),
        });
        missing.map_or(Ok(()), |id| {
            Err(Error::Corruption { collection: COLLECTION, what: format!("an index names {id}, which is missing") })
        })
    }

    fn modify(
        &self,
        user_id: i64,
        change: &mut dyn FnMut(&ProfileView<'_>) -> Profile,
        read: &mut dyn FnMut(&ProfileView<'_>),
    ) -> StoreResult<bool> {
        let mut tables = self.tables.write();
        let Some(old) = tables.profile(user_id) else {
            return Ok(false);
        };
        let new = change(&old.view());
        if new.user_id != user_id {
            return Err(Error::invalid("user_id", new.user_id, "the id of the profile that is changed"));
        }
        tables.replace(new)?;
        if let Some(stored) = tables.profile(user_id) {
            read(&stored.view());
        }
        Ok(true)
    }

    fn delete(&self, user_id: i64) -> StoreResult<bool> {
        Ok(self.tables.write().delete(user_id))
    }

    fn count(&self) -> StoreResult<u64> {
        Ok(self.tables.read().count)
    }

    fn check_indexes(&self) -> StoreResult<IndexCheck> {
        let mut tables = self.tables.write();
        tables.put_in_order();
        Ok(tables.check())
    }
}

fn foreign(message: String) -> Error {
    Error::Foreign { store: NAME, message }
}

/// Passes a hash on as it is.
#[derive(Default)]
struct HashedAlready(u64);

impl Hasher for HashedAlready {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole 64-bit hashes are keys")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
