//! Do the indexes and the records agree?
//!
//! One walk over the records works out which entries each index must hold, one walk over each index reads those it
//! holds, and both are folded into a [`Fingerprint`] that does not depend on order. Equal fingerprints mean equal sets,
//! and no entry had to be looked up. Only an index whose fingerprints differ is walked again, both ways and entry by
//! entry, to say what is wrong.

use bumpalo::Bump;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::byte_list::ByteList;
use super::codec;
use super::collection::{Trees, missing_record};
use super::error::{Error, Result};
use super::index::{self, AnyIndex, describe_id};
use super::keys::Key;
use super::kv::{KvRead, Stored};
use super::record::Record;
use super::scan::bad_entry;
use super::walk::{self, PAGE_ENTRIES, Walk};

/// Problems that are listed; one more line says that there are more.
const PROBLEMS_MAX: usize = 100;

/// What a walk of every index against the primary, both ways, found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCheck {
    /// Records and index entries looked at.
    pub checked: u64,
    /// One sentence for each disagreement; empty when all agree. Long lists are cut, and say so.
    pub problems: Vec<String>,
}

impl IndexCheck {
    fn report(&mut self, problem: &impl ToString) {
        match self.problems.len() {
            ..PROBLEMS_MAX => self.problems.push(problem.to_string()),
            PROBLEMS_MAX => self.problems.push(format!("more than {PROBLEMS_MAX} problems; the rest is not listed")),
            _ => {}
        }
    }
}

/// Compares the indexes of `R` with its records in `reader`.
pub(super) fn check<R: Record>(reader: &impl KvRead, trees: &Trees) -> Result<IndexCheck> {
    let mut check = IndexCheck::default();
    let expected = expected::<R>(reader, trees, &mut check)?;
    for (i, &tree) in trees.indexes.iter().enumerate() {
        let (mut found, mut buffer) = (Fingerprint::default(), Vec::new());
        Walk::all(tree).visit(reader, usize::MAX, |key, value| {
            found.add(key, value.bytes(&mut buffer));
            Ok(())
        })?;
        check.checked += found.entries;
        if found != expected[i] {
            check_entries::<R>(reader, trees, i, &mut check)?;
            check_records::<R>(reader, trees, i, &mut check)?;
        }
    }
    Ok(check)
}

/// A set of entries in 24 bytes: how many, and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fingerprint {
    entries: u64,
    sum: u128,
}

impl Fingerprint {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        self.sum = self.sum.wrapping_add(xxh3_128_with_seed(key, xxh3_64(value)));
    }
}

/// The entries that each index must hold. Reports records that do not decode or lie under an id that is not theirs.
fn expected<R: Record>(reader: &impl KvRead, trees: &Trees, check: &mut IndexCheck) -> Result<Vec<Fingerprint>> {
    let mut expected = vec![Fingerprint::default(); R::INDEXES.len()];
    let mut entries = ByteList::default();
    Walk::all(trees.primary).visit(reader, usize::MAX, |id, stored| {
        check.checked += 1;
        match sound_record::<R>(id, stored, &mut entries) {
            Ok(()) => {
                for ((fingerprint, entry), index) in expected.iter_mut().zip(entries.iter()).zip(R::INDEXES) {
                    fingerprint.add(entry, index.entry_value(id));
                }
            }
            Err(error) => check.report(&error),
        }
        Ok(())
    })?;
    Ok(expected)
}

/// Sets `entries` to what a record calls for, if it decodes and has the id it is stored under.
fn sound_record<R: Record>(id: &[u8], stored: Stored<'_>, entries: &mut ByteList) -> Result<()> {
    let texts = Bump::new();
    let view = codec::view::<R>(id, stored, &texts)?;
    let mut own_id = Vec::new();
    R::Id::encode(R::id(&view), &mut own_id);
    if own_id != id {
        let (own_id, id) = (describe_id::<R>(&own_id), describe_id::<R>(id));
        return Err(Error::corruption::<R>(format!("record {own_id} is stored under id {id}")));
    }
    index::write_entries::<R>(&view, entries);
    Ok(())
}

/// Holds every entry of an index against the record it names.
fn check_entries<R: Record>(reader: &impl KvRead, trees: &Trees, i: usize, check: &mut IndexCheck) -> Result<()> {
    let index = R::INDEXES[i];
    let mut walk = Walk::all(trees.indexes[i]);
    let [mut keys, mut values, mut ids] = [const { ByteList::new() }; 3];
    let mut buffer = Vec::new();
    let mut more = true;
    while more {
        for list in [&mut keys, &mut values, &mut ids] {
            list.clear();
        }
        more = walk.page(reader, PAGE_ENTRIES, |key, value| {
            let value = value.bytes(&mut buffer);
            match index.entry_id(key, value) {
                Some(id) => {
                    keys.push(key);
                    values.push(value);
                    ids.push(id);
                }
                None => check.report(&bad_entry::<R>(i, key)),
            }
            Ok(())
        })?;
        let write_id = |n: usize, out: &mut Vec<u8>| out.extend_from_slice(&ids[n]);
        walk::get_many(reader, trees.primary, ids.len(), write_id, |n, stored| {
            if let Err(problem) = sound_entry::<R>(index, &keys[n], &values[n], &ids[n], stored) {
                check.report(&problem);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn sound_entry<R: Record>(
    index: &dyn AnyIndex<R>,
    key: &[u8],
    value: &[u8],
    id: &[u8],
    stored: Option<Stored<'_>>,
) -> Result<()> {
    let stored = stored.ok_or_else(|| missing_record::<R>(index.name(), id))?;
    let (texts, mut entry) = (Bump::new(), Vec::new());
    index.write_entry(&codec::view::<R>(id, stored, &texts)?, &mut entry);
    let (name, record) = (index.name(), describe_id::<R>(id));
    if entry != key {
        let (listed, own) = (index.describe_entry(key), index.describe_entry(&entry));
        return Err(Error::corruption::<R>(format!("index {name} lists record {record} under {listed}, not {own}")));
    }
    if index.entry_value(id) != value {
        return Err(Error::corruption::<R>(format!(
            "index {name} has a value that is not its own for record {record}"
        )));
    }
    Ok(())
}

/// Looks up the entry of every record in an index. Records that are not sound were reported before.
fn check_records<R: Record>(reader: &impl KvRead, trees: &Trees, i: usize, check: &mut IndexCheck) -> Result<()> {
    let index = R::INDEXES[i];
    let mut walk = Walk::all(trees.primary);
    let [mut ids, mut entries, mut all_entries] = [const { ByteList::new() }; 3];
    let mut more = true;
    while more {
        ids.clear();
        entries.clear();
        more = walk.page(reader, PAGE_ENTRIES, |id, stored| {
            if sound_record::<R>(id, stored, &mut all_entries).is_ok() {
                ids.push(id);
                entries.push(&all_entries[i]);
            }
            Ok(())
        })?;
        let write_entry = |n: usize, out: &mut Vec<u8>| out.extend_from_slice(&entries[n]);
        walk::get_many(reader, trees.indexes[i], ids.len(), write_entry, |n, value| {
            if let Err(problem) = listed_record::<R>(index, &entries[n], value, &ids[n]) {
                check.report(&problem);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn listed_record<R: Record>(index: &dyn AnyIndex<R>, entry: &[u8], value: Option<Stored<'_>>, id: &[u8]) -> Result<()> {
    let (name, record, key) = (index.name(), describe_id::<R>(id), index.describe_entry(entry));
    match value {
        None => Err(Error::corruption::<R>(format!("index {name} does not list record {record} under {key}"))),
        Some(owner) => match owner.to_vec() {
            owner if index.is_unique() && owner != id => {
                let owner = describe_id::<R>(&owner);
                Err(Error::corruption::<R>(format!("index {name} gives {key} of record {record} to record {owner}")))
            }
            _ => Ok(()),
        },
    }
}
