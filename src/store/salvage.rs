//! Salvages collections: their records. Indexes are made of records, so they are built anew and lose nothing.

use std::collections::HashSet;
use std::path::Path;

use super::build;
use super::error::Result;
use super::kv::Kv;
use crate::engine::{self, Database, LostPart, Options, SalvageReport};

/// Copies what is left of the collections in the damaged database `from` into a new one in `to`; see [`engine::salvage`].
///
/// Indexes are built from the records when their collection is opened, which fails if the loss of a change brings back an
/// older record with a unique key that another one has since. The report does not name what indexes lost. Trees that
/// belong to no collection are copied as they are, whatever their names, and their losses are named.
pub fn salvage(from: impl AsRef<Path>, to: impl AsRef<Path>, options: Options) -> Result<(Database, SalvageReport)> {
    let (database, mut report) = engine::salvage(from, to, options)?;
    let indexes = forget_indexes(&database)?;
    report.lost.retain(|lost| !matches!(&lost.what, LostPart::Entries { tree, .. } if indexes.contains(tree)));
    Ok((database, report))
}

/// Lets all indexes be built anew. Answers the names of their trees, and of those that say which indexes there are.
fn forget_indexes(database: &Database) -> Result<HashSet<String>> {
    let names: HashSet<String> = database.tree_names().into_iter().collect();
    let mut of_indexes = HashSet::new();
    for kept in names.iter().filter(|name| name.strip_suffix('.').is_some_and(|it| names.contains(it))) {
        let indexes = build::forget(database, Kv::tree(database, kept)?)?;
        let trees = indexes.iter().map(|index| format!("{kept}{}", String::from_utf8_lossy(index)));
        of_indexes.extend(trees.filter(|tree| names.contains(tree)));
        if !indexes.is_empty() {
            of_indexes.insert(kept.clone());
        }
    }
    Ok(of_indexes)
}
