//! Salvages collections: their records. Indexes are made of records, so they are built anew and lose nothing.

use std::path::Path;

use super::build;
use super::error::Result;
use super::kv::Kv;
use crate::engine::{self, Database, LostPart, Options, SalvageReport};

/// Copies what is left of the collections in the damaged database `from` into a new one in `to`; see [`engine::salvage`].
///
/// Indexes are built from the records when their collection is opened, which fails if the loss of a change brings back an
/// older record with a unique key that another one has since. The report does not name what indexes lost.
pub fn salvage(from: impl AsRef<Path>, to: impl AsRef<Path>, options: Options) -> Result<(Database, SalvageReport)> {
    let (database, mut report) = engine::salvage(from, to, options)?;
    let names = database.tree_names();
    let is_of_index = |tree: &str| tree.split_once('.').is_some_and(|(it, _)| names.iter().any(|name| name == it));
    for name in names.iter().filter(|name| name.ends_with('.') && is_of_index(name)) {
        // What has no built indexes builds them at its next open.
        build::clear(&database, Kv::tree(&database, name)?)?;
    }
    report.lost.retain(|lost| !matches!(&lost.what, LostPart::Entries { tree, .. } if is_of_index(tree)));
    Ok((database, report))
}
