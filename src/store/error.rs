//! What a store call can fail with.

use crate::engine;

use super::record::Record;

/// Result of a store call.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything a store call can fail with. Nothing was changed unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Our engine failed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// Another store behind the [`Kv`](super::kv::Kv) seam, or a SQL store, failed.
    #[error("{store}: {message}")]
    Foreign {
        /// Its name.
        store: &'static str,
        /// What it said.
        message: String,
    },
    /// A record with this id is there already.
    #[error("{collection} already holds a record with id {id}")]
    DuplicateId {
        /// The collection.
        collection: &'static str,
        /// The id, for a person.
        id: String,
    },
    /// Another record holds this key of a unique index.
    #[error("{collection}: another record already has {index} {key}")]
    DuplicateKey {
        /// The collection.
        collection: &'static str,
        /// The unique index.
        index: &'static str,
        /// The key, for a person.
        key: String,
    },
    /// No record with this id.
    #[error("{collection} holds no record with id {id}")]
    NotFound {
        /// The collection.
        collection: &'static str,
        /// The id, for a person.
        id: String,
    },
    /// A field with a value it may not have.
    #[error("{field} is {found:?}; expected {expected}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What was given.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// Stored bytes that are no record or no index entry: the store was damaged, or written by something else.
    #[error("{collection}: {what}")]
    Corruption {
        /// The collection.
        collection: &'static str,
        /// What was found, and where.
        what: String,
    },
}

impl Error {
    #[expect(clippy::needless_pass_by_value, reason = "callers give numbers and words")]
    pub(crate) fn invalid(field: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self::Invalid { field, found: found.to_string(), expected }
    }
    pub(super) fn corruption<R: Record>(what: String) -> Self {
        Self::Corruption { collection: R::COLLECTION, what }
    }
}
