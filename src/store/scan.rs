//! Scans: a part of an index, or of the ids, in either direction, up to a limit.
//!
//! A scan that asks for ids or a number reads the index alone. One that asks for records collects a page of ids from
//! the index, fetches their records together, and goes on, all on one snapshot.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use bumpalo::Bump;

use super::codec;
use super::collection::{Collection, missing_record};
use super::error::{Error, Result};
use super::index::IdPlace;
use super::keys::{self, Key, KeyPrefix};
use super::kv::{Direction, KeyRange, Kv, Stored};
use super::record::Record;
use super::scratch::{self, Scratch};
use super::walk::{self, PAGE_ENTRIES, Walk};
use crate::engine::KEY_BYTES_MAX;

/// A scan of the records of `R` by keys of type `K`: all of them in ascending order, until narrowed down.
///
/// Records with the same key come in the order of their ids. Of [`equals`](Self::equals), [`prefix`](Self::prefix),
/// [`range`](Self::range) and [`starts_with`](Self::starts_with), the last one given counts.
#[must_use = "a scan does nothing until it is asked for ids, records or a count"]
pub struct Scan<'c, R: Record, V: Kv, K> {
    collection: &'c Collection<R, V>,
    source: Source,
    walk: Walk,
    after: Option<Vec<u8>>,
    limit: usize,
    key: PhantomData<fn(K)>,
}

/// Where a scan finds ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Primary,
    /// Position in [`Record::INDEXES`].
    Index(usize),
}

impl<'c, R: Record, V: Kv, K> Scan<'c, R, V, K> {
    pub(super) fn new(collection: &'c Collection<R, V>, source: Source) -> Self {
        let tree = match source {
            Source::Primary => collection.trees.primary,
            Source::Index(index) => collection.trees.indexes[index],
        };
        Self { collection, source, walk: Walk::all(tree), after: None, limit: usize::MAX, key: PhantomData }
    }

    /// Last key first, and for one key last id first.
    pub fn descending(mut self) -> Self {
        self.walk.direction = Direction::Reverse;
        self
    }

    /// No more than `limit` records.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Only what comes behind this record, in the scan's direction: the next page, given the last record of this one.
    pub fn after(mut self, last: &R::View<'_>) -> Self {
        let mut entry = Vec::new();
        match self.source {
            Source::Primary => R::Id::encode(R::id(last), &mut entry),
            Source::Index(index) => R::INDEXES[index].write_entry(last, &mut entry),
        }
        self.after = Some(entry);
        self
    }

    /// The ids.
    pub fn ids(self) -> Result<Vec<R::Id>> {
        let mut ids = Vec::new();
        self.for_each_id(|id| ids.push(id))?;
        Ok(ids)
    }

    /// Hands each id to `visit`, which must not call back into the store.
    pub fn for_each_id(self, mut visit: impl FnMut(R::Id)) -> Result<()> {
        let kv = &*self.collection.kv;
        let limit = self.limit;
        let source = self.source;
        let place = source.id_place::<R>();
        if let IdPlace::Tail(width) = place {
            return self.into_walk().visit_tails(kv, limit, width, |id| {
                visit(keys::decode::<R::Id>(id).ok_or_else(|| source.bad_entry::<R>(id))?);
                Ok(())
            });
        }
        let mut buffer = Vec::new();
        let visit_entry = |key: &[u8], value: Stored<'_>| {
            let id = source.id::<R>(place, key, value, &mut buffer)?;
            visit(keys::decode::<R::Id>(id).ok_or_else(|| source.bad_entry::<R>(key))?);
            Ok(())
        };
        self.into_walk().visit(kv, limit, visit_entry).map(|_| ())
    }

    /// The records.
    pub fn records(self) -> Result<Vec<R>> {
        let mut records = Vec::new();
        self.for_each_stored(|id, stored| {
            records.push(codec::record(id, stored)?);
            Ok(())
        })?;
        Ok(records)
    }

    /// Hands each record to `visit` without a copy. `visit` must not call back into the store.
    pub fn for_each(self, mut visit: impl FnMut(&R::View<'_>)) -> Result<()> {
        let mut texts = Bump::new();
        self.for_each_stored(|id, stored| {
            texts.reset();
            visit(&codec::view::<R>(id, stored, &texts)?);
            Ok(())
        })
    }

    /// The first record.
    pub fn first(self) -> Result<Option<R>> {
        Ok(self.limit(1).records()?.pop())
    }

    /// Number of records.
    pub fn count(self) -> Result<u64> {
        let kv = &*self.collection.kv;
        let limit = self.limit as u64;
        let walk = self.into_walk();
        Ok(kv.count(walk.tree, &walk.range)?.min(limit))
    }

    /// The same scan without the type of its keys, so that scans of different indexes are of one type.
    pub(super) fn any_key(self) -> Scan<'c, R, V, ()> {
        let Self { collection, source, walk, after, limit, .. } = self;
        Scan { collection, source, walk, after, limit, key: PhantomData }
    }

    fn into_walk(self) -> Walk {
        let mut walk = self.walk;
        if let Some(after) = self.after {
            walk.move_behind(after);
        }
        walk
    }

    fn for_each_stored(self, mut visit: impl FnMut(&[u8], Stored<'_>) -> Result<()>) -> Result<()> {
        let Self { collection: Collection { kv, trees, .. }, source, limit: mut left, .. } = self;
        let mut walk = self.into_walk();
        let Source::Index(index) = source else {
            return walk.visit(&**kv, left, visit).map(|_| ());
        };
        let snapshot = kv.snapshot()?;
        scratch::with(|Scratch { ids, .. }| {
            let (place, mut more, mut buffer) = (source.id_place::<R>(), left > 0, Vec::new());
            while more {
                ids.clear();
                more = match place {
                    // The last page: nobody will ask where it ended.
                    IdPlace::Tail(width) if left <= PAGE_ENTRIES => {
                        walk.visit_tails(&snapshot, left, width, |id| {
                            ids.push(id);
                            Ok(())
                        })?;
                        false
                    }
                    _ => walk.page(&snapshot, left.min(PAGE_ENTRIES), |key, value| {
                        ids.push(source.id::<R>(place, key, value, &mut buffer)?);
                        Ok(())
                    })?,
                };
                let write_id = |i: usize, out: &mut Vec<u8>| out.extend_from_slice(&ids[i]);
                walk::get_many(&snapshot, trees.primary, ids.len(), write_id, |i, stored| {
                    visit(&ids[i], stored.ok_or_else(|| missing_record::<R>(R::INDEXES[index].name(), &ids[i]))?)
                })?;
                left -= ids.len();
                more &= left > 0;
            }
            Ok(())
        })
    }
}

impl<R: Record, V: Kv, K: Key> Scan<'_, R, V, K> {
    /// Only records with exactly this key.
    pub fn equals(mut self, key: K::Ref<'_>) -> Self {
        self.walk.range = KeyRange::prefix(&encoded::<K>(key));
        self
    }

    /// Only records whose key begins with these components: `(country,)` of `(country, status)`.
    pub fn prefix(mut self, components: impl KeyPrefix<K>) -> Self {
        let mut prefix = Vec::new();
        components.encode(&mut prefix);
        self.walk.range = KeyRange::prefix(&prefix);
        self
    }

    /// Only records with a key in this range: `10..20`, `10..=20`, `..20`, `10..`.
    pub fn range<'k>(mut self, keys: impl RangeBounds<K::Ref<'k>>) -> Self {
        let lower = match keys.start_bound() {
            Bound::Included(key) => Bound::Included(encoded::<K>(*key)),
            Bound::Excluded(key) => behind(&encoded::<K>(*key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let upper = match keys.end_bound() {
            Bound::Included(key) => KeyRange::prefix(&encoded::<K>(*key)).upper,
            Bound::Excluded(key) => Bound::Excluded(encoded::<K>(*key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        self.walk.range = KeyRange { lower, upper };
        self
    }
}

impl<R: Record, V: Kv> Scan<'_, R, V, String> {
    /// Only records whose key begins with this text.
    pub fn starts_with(mut self, text: &str) -> Self {
        let mut prefix = Vec::new();
        keys::escape(text.as_bytes(), &mut prefix);
        self.walk.range = KeyRange::prefix(&prefix);
        self
    }
}

impl Source {
    /// Where entries have their id; looked up once for all of a scan.
    fn id_place<R: Record>(self) -> IdPlace {
        match self {
            Self::Primary => IdPlace::Key,
            Self::Index(index) => R::INDEXES[index].id_place(),
        }
    }

    /// The id in an entry, which may be put together in `buffer`.
    #[inline]
    fn id<'e, R: Record>(
        self,
        place: IdPlace,
        key: &'e [u8],
        value: Stored<'e>,
        buffer: &'e mut Vec<u8>,
    ) -> Result<&'e [u8]> {
        let id = match (place, self) {
            (IdPlace::Tail(width), _) => key.len().checked_sub(width).map(|start| &key[start..]),
            (IdPlace::Key, _) | (_, Self::Primary) => Some(key),
            (_, Self::Index(index)) => R::INDEXES[index].entry_id(key, value.bytes(buffer)),
        };
        id.ok_or_else(|| self.bad_entry::<R>(key))
    }

    fn bad_entry<R: Record>(self, key: &[u8]) -> Error {
        match self {
            Self::Primary => Error::corruption::<R>(format!("the key {key:02X?} is no id")),
            Self::Index(index) => bad_entry::<R>(index, key),
        }
    }
}

/// An index entry without an id.
pub(super) fn bad_entry<R: Record>(index: usize, key: &[u8]) -> Error {
    Error::corruption::<R>(format!("index {} holds an entry that names no id, {key:02X?}", R::INDEXES[index].name()))
}

fn encoded<K: Key>(key: K::Ref<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    K::encode(key, &mut bytes);
    bytes
}

/// Behind every entry that begins with `key`. Behind a key of nothing but 0xFF there is only what begins with more of
/// them than any entry has: a key is at most [`KEY_BYTES_MAX`] long.
fn behind(key: &[u8]) -> Bound<Vec<u8>> {
    match KeyRange::prefix(key).upper {
        Bound::Excluded(next) => Bound::Included(next),
        _ => Bound::Excluded(vec![0xFF; KEY_BYTES_MAX]),
    }
}
