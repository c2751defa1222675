//! Builds indexes that do not hold every record yet: those that are declared for the first time, or again.
//!
//! ```text
//! tree <collection>.   name of an index -> "index of records"     the indexes that every change has kept
//! ```
//!
//! An index has a name, so no index's tree is called that. The value tells it from a tree that somebody else made and
//! named so: only what is marked like that is taken for an index, and built anew when it is salvaged. An index is entered
//! when it is built and taken out when the collection is opened without it, for from then on changes pass it by. A crash
//! while it is built leaves it out, and the next open builds it anew.

use std::collections::BTreeSet;

use bumpalo::Bump;

use super::byte_list::ByteList;
use super::codec;
use super::collection::Trees;
use super::error::{Error, Result};
use super::index::AnyIndex;
use super::kv::{Batch, Kv, KvRead, KvWriter, TreeId};
use super::record::Record;
use super::walk::{PAGE_ENTRIES, Walk};

/// What marks a name as that of an index. On disk: do not change.
const MARK: &[u8] = b"index of records";

/// Makes the indexes of `R` hold every record, and remembers which ones do.
pub(super) fn build_indexes<R: Record>(kv: &impl Kv, trees: &Trees) -> Result<()> {
    let kept_tree = kv.tree(&format!("{}.", R::COLLECTION))?;
    let kv = &kv.writer();
    let kept = kept(kv, kept_tree)?;
    forget_undeclared::<R>(kv, kept_tree, &kept)?;
    for (i, index) in R::INDEXES.iter().enumerate() {
        if !kept.contains(index.name().as_bytes()) {
            clear(kv, trees.indexes[i])?;
            build(kv, trees.primary, trees.indexes[i], *index)?;
            let mut batch = Batch::new();
            batch.put(kept_tree, index.name().as_bytes(), MARK);
            kv.commit(&batch)?;
        }
    }
    Ok(())
}

fn kept(kv: &impl KvRead, tree: TreeId) -> Result<BTreeSet<Vec<u8>>> {
    let mut names = BTreeSet::new();
    Walk::all(tree).visit(kv, usize::MAX, |name, stored| {
        if stored.to_vec() == MARK {
            names.insert(name.to_vec());
        }
        Ok(())
    })?;
    Ok(names)
}

/// Of a collection that may be one: forgets which indexes it has kept, so that its next open builds them. Answers which
/// they are.
pub(super) fn forget(kv: &impl Kv, tree: TreeId) -> Result<BTreeSet<Vec<u8>>> {
    let kv = &kv.writer();
    let kept = kept(kv, tree)?;
    forget_names(kv, tree, kept.iter())?;
    Ok(kept)
}

fn forget_undeclared<R: Record>(kv: &impl KvWriter, tree: TreeId, kept: &BTreeSet<Vec<u8>>) -> Result<()> {
    let is_declared = |name: &[u8]| R::INDEXES.iter().any(|index| index.name().as_bytes() == name);
    forget_names(kv, tree, kept.iter().filter(|name| !is_declared(name)))
}

fn forget_names<'a>(kv: &impl KvWriter, tree: TreeId, names: impl Iterator<Item = &'a Vec<u8>>) -> Result<()> {
    let mut batch = Batch::new();
    names.for_each(|name| batch.delete(tree, name));
    if batch.is_empty() { Ok(()) } else { kv.commit(&batch) }
}

/// Removes all that a tree holds: of an index, what is from the time before it was left out.
fn clear(kv: &impl KvWriter, tree: TreeId) -> Result<()> {
    let mut walk = Walk::all(tree);
    let mut more = true;
    while more {
        let mut batch = Batch::new();
        more = walk.page(kv, PAGE_ENTRIES, |key, _| {
            batch.delete(tree, key);
            Ok(())
        })?;
        if !batch.is_empty() {
            kv.commit(&batch)?;
        }
    }
    Ok(())
}

/// Enters every record in an index that holds none.
fn build<R: Record>(kv: &impl KvWriter, primary: TreeId, tree: TreeId, index: &dyn AnyIndex<R>) -> Result<()> {
    let mut walk = Walk::all(primary);
    let [mut ids, mut entries] = [const { ByteList::new() }; 2];
    let mut more = true;
    while more {
        ids.clear();
        entries.clear();
        more = walk.page(kv, PAGE_ENTRIES, |id, stored| {
            let texts = Bump::new();
            let view = codec::view::<R>(id, stored, &texts)?;
            ids.push(id);
            entries.push_with(|out| index.write_entry(&view, out));
            Ok(())
        })?;
        let mut batch = Batch::new();
        let mut of_this_page = BTreeSet::new();
        for (id, entry) in ids.iter().zip(entries.iter()) {
            if index.is_unique() && (!of_this_page.insert(entry) || kv.get(tree, entry, |_| ())?.is_some()) {
                let key = index.describe_entry(entry);
                return Err(Error::DuplicateKey { collection: R::COLLECTION, index: index.name(), key });
            }
            batch.put(tree, entry, index.entry_value(id));
        }
        if !batch.is_empty() {
            kv.commit(&batch)?;
        }
    }
    Ok(())
}
