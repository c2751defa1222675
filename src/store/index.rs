//! Indexes: which entries a record has, and what a change to it does to them. Pure.
//!
//! The entries of an index are a tree of their own, `<collection>.<index>`:
//!
//! ```text
//! unique entry := key of the index -> id
//! other entry  := key of the index, id -> nothing
//! ```
//!
//! both in the encodings of [`keys`](super::keys), so other entries sort by key and then by id. Every key ends itself,
//! so the id is found behind it; where ids have a fixed width, it is simply the last bytes.

use std::marker::PhantomData;

use super::byte_list::ByteList;
use super::keys::{self, Key, KeyReader};
use super::record::Record;
use crate::engine::Field;

/// An index of `R` by keys of type `K`: a name, and the key of a record.
///
/// Declare it as a constant, and name it in [`Record::INDEXES`]. [`UniqueIndex`] is the one that holds each key once.
pub struct Index<R: Record, K: Key, const UNIQUE: bool = false> {
    name: &'static str,
    key: for<'a, 'v> fn(&'a R::View<'v>) -> K::Ref<'a>,
    record: PhantomData<fn() -> (R, K)>,
}

/// An index that refuses a second record with the same key.
pub type UniqueIndex<R, K> = Index<R, K, true>;

impl<R: Record, K: Key, const UNIQUE: bool> Index<R, K, UNIQUE> {
    /// An index called `name` (on disk: do not change; no dots) by what `key` takes from a record.
    pub const fn new(name: &'static str, key: for<'a, 'v> fn(&'a R::View<'v>) -> K::Ref<'a>) -> Self {
        Self { name, key, record: PhantomData }
    }
}

impl<R: Record, K: Key, const UNIQUE: bool> Clone for Index<R, K, UNIQUE> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Record, K: Key, const UNIQUE: bool> Copy for Index<R, K, UNIQUE> {}

impl<R: Record, K: Key, const UNIQUE: bool> std::fmt::Debug for Index<R, K, UNIQUE> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("name", &self.name).field("unique", &UNIQUE).finish_non_exhaustive()
    }
}

/// An index of `R` by keys of any type. [`Index`] is the only one.
pub trait AnyIndex<R: Record> {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Whether it holds each key once.
    fn is_unique(&self) -> bool;

    /// Appends the key of the entry that a record has in this index.
    fn write_entry(&self, view: &R::View<'_>, out: &mut Vec<u8>);

    /// The value of the entry of the record with this id.
    fn entry_value<'e>(&self, id: &'e [u8]) -> &'e [u8];

    /// Where the id is in every entry.
    fn id_place(&self) -> IdPlace;

    /// The id in an entry; `None` if it is no entry of this index.
    fn entry_id<'e>(&self, key: &'e [u8], value: &'e [u8]) -> Option<&'e [u8]>;

    /// Adds what a key, without an id, is made of to `fields`.
    fn put_key_fields(&self, fields: &mut Vec<Field>);

    /// The key of an entry, without the id, for a person.
    fn describe_entry(&self, key: &[u8]) -> String;
}

impl<R: Record, K: Key, const UNIQUE: bool> AnyIndex<R> for Index<R, K, UNIQUE> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_unique(&self) -> bool {
        UNIQUE
    }

    fn write_entry(&self, view: &R::View<'_>, out: &mut Vec<u8>) {
        K::encode((self.key)(view), out);
        if !UNIQUE {
            R::Id::encode(R::id(view), out);
        }
    }

    fn entry_value<'e>(&self, id: &'e [u8]) -> &'e [u8] {
        if UNIQUE { id } else { &[] }
    }

    fn id_place(&self) -> IdPlace {
        match R::Id::WIDTH {
            _ if UNIQUE => IdPlace::Value,
            Some(width) => IdPlace::Tail(width),
            None => IdPlace::BehindKey,
        }
    }

    fn entry_id<'e>(&self, key: &'e [u8], value: &'e [u8]) -> Option<&'e [u8]> {
        match self.id_place() {
            IdPlace::Key => Some(key),
            IdPlace::Value => Some(value),
            IdPlace::Tail(width) => key.len().checked_sub(width).map(|start| &key[start..]),
            IdPlace::BehindKey => {
                let mut reader = KeyReader::new(key);
                K::decode(&mut reader).map(|_| reader.rest())
            }
        }
    }

    fn put_key_fields(&self, fields: &mut Vec<Field>) {
        K::put_fields(fields);
    }

    fn describe_entry(&self, key: &[u8]) -> String {
        match K::decode(&mut KeyReader::new(key)) {
            Some(key) => K::describe(key.borrowed()),
            None => format!("the undecodable key {key:02X?}"),
        }
    }
}

/// Where the entries of an index have their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdPlace {
    /// It is the key.
    Key,
    /// It is the value.
    Value,
    /// It is this many bytes at the end of the key.
    Tail(usize),
    /// It is what the key has behind that of the index.
    BehindKey,
}

/// What a change to a record does to one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change<'a> {
    /// Position in [`Record::INDEXES`].
    pub(super) index: usize,
    /// Key of the entry that goes.
    pub(super) removed: Option<&'a [u8]>,
    /// Key of the entry that comes.
    pub(super) added: Option<&'a [u8]>,
}

/// Sets `entries` to the keys of all index entries of a record, in the order of [`Record::INDEXES`].
pub(super) fn write_entries<R: Record>(view: &R::View<'_>, entries: &mut ByteList) {
    entries.clear();
    for index in R::INDEXES {
        entries.push_with(|out| index.write_entry(view, out));
    }
}

/// What must change in the indexes when a record's entries go from `old` to `new`; no entries stand for no record.
pub(super) fn diff<'a>(old: &'a ByteList, new: &'a ByteList) -> impl Iterator<Item = Change<'a>> {
    (0..old.len().max(new.len()))
        .map(|index| Change { index, removed: old.get(index), added: new.get(index) })
        .filter(|change| change.removed != change.added)
}

/// The id for a person.
pub(super) fn describe_id<R: Record>(id: &[u8]) -> String {
    match keys::decode::<R::Id>(id) {
        Some(id) => R::Id::describe(id.borrowed()),
        None => format!("with the undecodable id {id:02X?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> ByteList {
        let mut list = ByteList::default();
        for entry in entries {
            list.push(entry.as_bytes());
        }
        list
    }

    fn change<'a>(index: usize, removed: Option<&'a str>, added: Option<&'a str>) -> Change<'a> {
        Change { index, removed: removed.map(str::as_bytes), added: added.map(str::as_bytes) }
    }

    #[test]
    fn only_entries_that_differ_change() {
        let (old, new) = (list(&["a", "b", "c"]), list(&["a", "x", "c"]));
        assert_eq!(diff(&old, &new).collect::<Vec<_>>(), [change(1, Some("b"), Some("x"))]);
        assert_eq!(diff(&old, &old).count(), 0);
    }

    #[test]
    fn no_record_has_no_entries() {
        let (none, some) = (list(&[]), list(&["a", "b"]));
        assert_eq!(diff(&none, &some).collect::<Vec<_>>(), [change(0, None, Some("a")), change(1, None, Some("b"))]);
        assert_eq!(diff(&some, &none).collect::<Vec<_>>(), [change(0, Some("a"), None), change(1, Some("b"), None)]);
    }
}
