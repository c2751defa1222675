//! What a collection must know about a type to store it.

use postcard_schema::Schema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::columns::Columns;
use super::error::Result;
use super::index::AnyIndex;
use super::keys::Key;

/// A type that a [`Collection`](super::Collection) can store: named fields with an id among them, and the indexes
/// that find it.
///
/// The layout of its fields is stated once, by the derives: `Serialize` writes it, `Deserialize` reads it, and
/// `Schema` describes it to a store that packs columns.
pub trait Record: Serialize + DeserializeOwned + Schema + Send + Sync + 'static {
    /// Type of the id. Ids are unique, and records are kept in their order.
    type Id: Key;

    /// The same fields in the same order, with text and bytes borrowed from the stored record: reads need no copy.
    /// A record without text, or one that may be copied, can be its own view. Debug builds panic when a record is stored
    /// whose view does not read what the record writes.
    type View<'a>: Deserialize<'a>;

    /// Name of the collection, on disk: do not change. No dots.
    const COLLECTION: &'static str;

    /// Version of the layout, on disk: raise it when the fields change. Records of another version are refused.
    const VERSION: u8;

    /// Every index, in any order. An index that is not named here is not kept; one that is named for the first time, or
    /// again, is built when the collection is opened.
    const INDEXES: &'static [&'static dyn AnyIndex<Self>];

    /// The same record, borrowed.
    fn view(&self) -> Self::View<'_>;

    /// Its id. It must not depend on anything but the record.
    fn id<'a>(view: &'a Self::View<'_>) -> IdRef<'a, Self>;

    /// Reads a view from the columns of a stored record, one for each field, in the order of the fields; `None` if they
    /// are not what the view holds. What is written here asks serde for the view. A view written out by hand, one
    /// [`field`](Columns::field) or [`text`](Columns::text) after the other, is read faster, and can leave texts for later.
    fn read_columns<'a>(columns: &mut Columns<'a>) -> Option<Self::View<'a>> {
        columns.field()
    }

    /// Refuses a record that must not be stored.
    fn validate(view: &Self::View<'_>) -> Result<()> {
        let _ = view;
        Ok(())
    }
}

/// The id of an `R` as it is passed around: itself for a number, `&str` for a `String`.
pub type IdRef<'a, R> = <<R as Record>::Id as Key>::Ref<'a>;
