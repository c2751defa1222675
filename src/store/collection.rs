//! A collection: the records of one type, and their indexes, in an ordered key-value store.
//!
//! ```text
//! tree <collection>           id -> record       (see keys, codec)
//! tree <collection>.<index>   one for each index (see index)
//! tree <collection>.          names of the indexes that hold every record (see build)
//! ```
//!
//! A change to a record and to all its index entries is one batch: it is there whole, or it is not. Only index entries
//! that differ are touched. A change has the store's turn to write from the reads it depends on to its commit, so no other
//! change comes between; what can be worked out before is worked out before. Reads take no lock, and a read that needs
//! two trees sees both on one snapshot.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bumpalo::Bump;

use super::build;
use super::check::{self, IndexCheck};
use super::codec;
use super::error::{Error, Result};
use super::index::{self, AnyIndex, Index, UniqueIndex, describe_id};
use super::keys::Key;
use super::kv::{Kv, KvRead, KvWriter, Stored, TreeId};
use super::layout;
use super::record::{IdRef, Record};
use super::scan::{Scan, Source};
use super::scratch::{self, Scratch};
use super::within::Within;
use crate::engine::{Database, Transaction};

/// The records of type `R` in the store `V`, with their indexes.
pub struct Collection<R: Record, V: Kv> {
    pub(super) kv: Arc<V>,
    pub(super) trees: Arc<Trees>,
    record: PhantomData<fn() -> R>,
}

/// The trees of a collection.
pub(super) struct Trees {
    pub(super) primary: TreeId,
    /// In the order of [`Record::INDEXES`].
    pub(super) indexes: Vec<TreeId>,
}

impl<R: Record, V: Kv> Collection<R, V> {
    /// The collection of `R` in `kv`, made if it is not there.
    ///
    /// An index that was not declared at the last open is built from the records, which takes a pass over them. Fails if
    /// a new unique index finds a key twice; nothing but that index was changed then.
    ///
    /// # Panics
    ///
    /// If the names in `R` cannot be told apart: one with a dot, an index without a name, or two of one name.
    pub fn open(kv: Arc<V>) -> Result<Self> {
        check_names::<R>();
        let primary = kv.tree_with(R::COLLECTION, &layout::of_records::<R>())?;
        let index_tree = |index: &&dyn AnyIndex<R>| {
            kv.tree_with(&format!("{}.{}", R::COLLECTION, index.name()), &layout::of_index(*index))
        };
        let indexes = R::INDEXES.iter().map(index_tree).collect::<Result<_>>()?;
        let trees = Trees { primary, indexes };
        build::build_indexes::<R>(&*kv, &trees)?;
        Ok(Self { kv, trees: Arc::new(trees), record: PhantomData })
    }

    /// The store it lives in.
    pub fn kv(&self) -> &Arc<V> {
        &self.kv
    }

    /// Adds a record. Fails if its id or one of its unique keys is taken.
    pub fn insert(&self, record: &R) -> Result<()> {
        scratch::with(|scratch| {
            scratch.set_new(record)?;
            let writer = self.kv.writer();
            if writer.get(self.trees.primary, &scratch.id, |_| ())?.is_some() {
                return Err(Error::DuplicateId { collection: R::COLLECTION, id: describe_id::<R>(&scratch.id) });
            }
            self.commit(writer, scratch)
        })
    }

    /// Replaces the record with the same id. Fails if there is none, or if another record has one of its unique keys.
    pub fn update(&self, record: &R) -> Result<()> {
        scratch::with(|scratch| {
            scratch.set_new(record)?;
            let writer = self.kv.writer();
            if !self.load_old(&writer, scratch)? {
                return Err(Error::NotFound { collection: R::COLLECTION, id: describe_id::<R>(&scratch.id) });
            }
            self.commit(writer, scratch)
        })
    }

    /// Adds a record, or replaces the one with the same id. Fails if another record has one of its unique keys.
    pub fn upsert(&self, record: &R) -> Result<()> {
        scratch::with(|scratch| {
            scratch.set_new(record)?;
            let writer = self.kv.writer();
            self.load_old(&writer, scratch)?;
            self.commit(writer, scratch)
        })
    }

    /// Removes the record with this id; `false` if there is none.
    pub fn delete(&self, id: IdRef<'_, R>) -> Result<bool> {
        scratch::with(|scratch| {
            scratch.set_id::<R>(id);
            let writer = self.kv.writer();
            let found = self.load_old(&writer, scratch)?;
            if found {
                self.commit(writer, scratch)?;
            }
            Ok(found)
        })
    }

    /// Changes the record with this id in place and gives the changed record; `None` if there is none.
    ///
    /// No other change comes between: `|page| page.hits += 1` counts every hit. `change` must not call back into the
    /// store, and must leave the id as it is.
    pub fn modify(&self, id: IdRef<'_, R>, change: impl FnOnce(&mut R)) -> Result<Option<R>> {
        self.replace(id, |id, stored, _| {
            let mut record = codec::record::<R>(id, stored)?;
            change(&mut record);
            Ok(record)
        })
    }

    /// Like [`modify`](Self::modify), for a change that makes a new record from the borrowed old one.
    pub fn modify_with(&self, id: IdRef<'_, R>, change: impl FnOnce(&R::View<'_>) -> R) -> Result<Option<R>> {
        self.replace(id, |_, _, view| Ok(change(view)))
    }

    /// The record with this id.
    pub fn get(&self, id: IdRef<'_, R>) -> Result<Option<R>> {
        scratch::with(|scratch| {
            scratch.set_id::<R>(id);
            let decode = |stored: Stored<'_>| codec::record(&scratch.id, stored);
            self.kv.get(self.trees.primary, &scratch.id, decode)?.transpose()
        })
    }

    /// Hands the record with this id to `read` without a copy; `None` if there is none.
    ///
    /// `read` must not call back into the store.
    pub fn get_with<T>(&self, id: IdRef<'_, R>, read: impl FnOnce(&R::View<'_>) -> T) -> Result<Option<T>> {
        scratch::with(|scratch| {
            scratch.set_id::<R>(id);
            let decode =
                |stored: Stored<'_>| codec::view::<R>(&scratch.id, stored, &scratch.texts).map(|view| read(&view));
            self.kv.get(self.trees.primary, &scratch.id, decode)?.transpose()
        })
    }

    /// The record with this key in a unique index. Other indexes have no one record to a key, and do not compile:
    ///
    /// ```compile_fail,E0308
    /// # use profilestore::store::{Profile, Repository, kv::Kv};
    /// fn born_at_five<V: Kv>(profiles: &Repository<V>) -> Option<Profile> {
    ///     profiles.find(Profile::CREATED_AT, 5).ok()?
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// If `index` is not named in [`Record::INDEXES`].
    pub fn find<K: Key>(&self, index: UniqueIndex<R, K>, key: K::Ref<'_>) -> Result<Option<R>> {
        self.find_stored(index, key, |id, stored, _| codec::record::<R>(id, stored))
    }

    /// Hands the record with this key in a unique index to `read` without a copy; `None` if there is none.
    ///
    /// `read` must not call back into the store.
    ///
    /// # Panics
    ///
    /// If `index` is not named in [`Record::INDEXES`].
    pub fn find_with<K: Key, T>(
        &self,
        index: UniqueIndex<R, K>,
        key: K::Ref<'_>,
        read: impl FnOnce(&R::View<'_>) -> T,
    ) -> Result<Option<T>> {
        self.find_stored(index, key, |id, stored, texts| codec::view::<R>(id, stored, texts).map(|view| read(&view)))
    }

    /// The records in the order of an index: a scan to be narrowed down, and then run.
    ///
    /// # Panics
    ///
    /// If `index` is not named in [`Record::INDEXES`].
    pub fn scan<K: Key, const UNIQUE: bool>(&self, index: Index<R, K, UNIQUE>) -> Scan<'_, R, V, K> {
        Scan::new(self, Source::Index(position(&index)))
    }

    /// The records in the order of their ids: a scan to be narrowed down, and then run.
    pub fn all(&self) -> Scan<'_, R, V, R::Id> {
        Scan::new(self, Source::Primary)
    }

    /// Number of records.
    pub fn count(&self) -> Result<u64> {
        self.all().count()
    }

    /// Walks every index against the records and the records against every index, on one snapshot.
    pub fn check(&self) -> Result<IndexCheck> {
        check::check::<R>(&self.kv.snapshot()?, &self.trees)
    }

    fn find_stored<K: Key, T>(
        &self,
        index: UniqueIndex<R, K>,
        key: K::Ref<'_>,
        decode: impl FnOnce(&[u8], Stored<'_>, &Bump) -> Result<T>,
    ) -> Result<Option<T>> {
        scratch::with(|Scratch { key: entry, id, texts, .. }| {
            K::encode(key, entry);
            let snapshot = self.kv.snapshot()?;
            if snapshot.get(self.trees.indexes[position(&index)], entry, |found| found.write_to(id))?.is_none() {
                return Ok(None);
            }
            match snapshot.get(self.trees.primary, id, |stored| decode(id, stored, texts))? {
                Some(record) => record.map(Some),
                None => Err(missing_record::<R>(index.name(), id)),
            }
        })
    }

    /// Stores what `make` makes of the stored record with this id.
    fn replace(
        &self,
        id: IdRef<'_, R>,
        make: impl FnOnce(&[u8], Stored<'_>, &R::View<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        scratch::with(|scratch| {
            scratch.set_id::<R>(id);
            let writer = self.kv.writer();
            let Scratch { id, key, old, texts, .. } = scratch;
            let replacement = writer.get(self.trees.primary, id, |stored| {
                let view = codec::view::<R>(id, stored, texts)?;
                index::write_entries::<R>(&view, old);
                make(id, stored, &view)
            })?;
            let Some(record) = replacement.transpose()? else { return Ok(None) };
            key.extend_from_slice(id);
            scratch.set_new(&record)?;
            if scratch.id != scratch.key {
                return Err(Error::invalid("id", describe_id::<R>(&scratch.id), "the id that the record had"));
            }
            self.commit(writer, scratch)?;
            Ok(Some(record))
        })
    }

    /// Sets `old` to the index entries of the stored record; `false` if there is none.
    fn load_old(&self, writer: &V::Writer<'_>, Scratch { id, old, texts, .. }: &mut Scratch) -> Result<bool> {
        let load =
            |stored: Stored<'_>| codec::view::<R>(id, stored, texts).map(|view| index::write_entries::<R>(&view, old));
        Ok(writer.get(self.trees.primary, id, load)?.transpose()?.is_some())
    }

    /// Commits the step from the old record to the new one, and ends the turn in which the old one was read.
    fn commit(&self, writer: V::Writer<'_>, Scratch { id, value, old, new, batch, .. }: &mut Scratch) -> Result<()> {
        for change in index::diff(old, new) {
            let index = R::INDEXES[change.index];
            let tree = self.trees.indexes[change.index];
            if let Some(entry) = change.removed {
                batch.delete(tree, entry);
            }
            if let Some(entry) = change.added {
                if index.is_unique() {
                    refuse_taken(&writer, index, tree, entry, id)?;
                }
                batch.put(tree, entry, index.entry_value(id));
            }
        }
        if value.is_empty() {
            batch.delete(self.trees.primary, id);
        } else {
            batch.put(self.trees.primary, id, value);
        }
        writer.finish(batch)
    }
}

impl<R: Record> Collection<R, Database> {
    /// The same collection inside of a transaction: its changes are those of the transaction, and its reads see them.
    /// See [`Within`].
    pub fn within<'t, 'd>(&self, transaction: &'t Transaction<'d>) -> Collection<R, Within<'t, 'd>> {
        let kv = Arc::new(Within::new(transaction));
        Collection { kv, trees: Arc::clone(&self.trees), record: PhantomData }
    }
}

impl<R: Record, V: Kv> fmt::Debug for Collection<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection").field("name", &R::COLLECTION).finish_non_exhaustive()
    }
}

fn refuse_taken<R: Record>(
    kv: &impl KvRead,
    index: &dyn AnyIndex<R>,
    tree: TreeId,
    entry: &[u8],
    id: &[u8],
) -> Result<()> {
    match kv.get(tree, entry, |owner| owner.to_vec() != id)? {
        Some(true) => Err(Error::DuplicateKey {
            collection: R::COLLECTION,
            index: index.name(),
            key: index.describe_entry(entry),
        }),
        _ => Ok(()),
    }
}

/// An index entry whose record is not there.
pub(super) fn missing_record<R: Record>(index: &str, id: &[u8]) -> Error {
    Error::corruption::<R>(format!("index {index} names record {}, which is not there", describe_id::<R>(id)))
}

fn position<R: Record, K: Key, const UNIQUE: bool>(index: &Index<R, K, UNIQUE>) -> usize {
    R::INDEXES
        .iter()
        .position(|known| known.name() == index.name())
        .unwrap_or_else(|| panic!("index {} is not in the INDEXES of {}", index.name(), R::COLLECTION))
}

fn check_names<R: Record>() {
    let names: Vec<_> = R::INDEXES.iter().map(|index| index.name()).collect();
    for name in names.iter().chain([&R::COLLECTION]) {
        assert!(!name.contains('.'), "{name:?} names a collection or an index, so it may not contain a dot");
    }
    assert!(!names.contains(&""), "an index of {} has no name", R::COLLECTION);
    let distinct: BTreeSet<_> = names.iter().collect();
    assert!(distinct.len() == names.len(), "two indexes of {} have the same name: {names:?}", R::COLLECTION);
}
