//! Records in, batches out. Knows no files and no threads.

mod error;
pub mod keys;
pub mod kv;
mod profile;
mod profiles;

pub use error::{Error, Result};
pub use keys::{Key, KeyPrefix, KeyReader};
pub use profile::{Country, Profile, ProfileView, REPUTATION_MAX, Status, TEXT_BYTES_MAX};
pub use profiles::{IndexCheck, ProfileQuery, ProfileStore};

#[cfg(test)]
mod tests;
