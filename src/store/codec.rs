//! Records as bytes.
//!
//! ```text
//! stored := version:u8 fields        version is Record::VERSION, fields are in the postcard encoding
//! ```
//!
//! Bytes of another version, that do not decode, or that go on behind the record are damage.

use bumpalo::Bump;
use postcard::ser_flavors::Flavor;
use serde::Deserialize;

use super::columns::{self, Columns};
use super::error::{Error, Result};
use super::index::describe_id;
use super::kv::Stored;
use super::record::Record;

/// Appends `record`.
pub(super) fn encode<R: Record>(record: &R, out: &mut Vec<u8>) -> Result<()> {
    out.push(R::VERSION);
    postcard::serialize_with_flavor(record, Append(out)).map_err(|error| Error::Invalid {
        field: R::COLLECTION,
        found: error.to_string(),
        expected: "a record of fields that postcard can encode",
    })
}

/// The record with this id, borrowed from where it is stored, and from `texts` what is put together to be read.
#[inline]
pub(super) fn view<'a, R: Record>(id: &[u8], stored: Stored<'a>, texts: &'a Bump) -> Result<R::View<'a>> {
    decode::<R, R::View<'a>>(id, stored, texts, R::read_columns)
}

/// The record with this id, owned.
pub(super) fn record<R: Record>(id: &[u8], stored: Stored<'_>) -> Result<R> {
    decode::<R, R>(id, stored, &Bump::new(), Columns::field)
}

#[inline]
fn decode<'a, R: Record, T: Deserialize<'a>>(
    id: &[u8],
    stored: Stored<'a>,
    texts: &'a Bump,
    read: impl FnOnce(&mut Columns<'a>) -> Option<T>,
) -> Result<T> {
    match stored {
        Stored::Bytes(bytes) => decode_bytes::<R, T>(id, bytes),
        Stored::Row(row) => match columns::read(row, R::VERSION, texts, read) {
            Some(record) => Ok(record),
            None => decode_bytes::<R, T>(id, texts.alloc_slice_copy(&stored.to_vec())),
        },
    }
}

fn decode_bytes<'a, R: Record, T: Deserialize<'a>>(id: &[u8], stored: &'a [u8]) -> Result<T> {
    let damaged = |what: String| Error::corruption::<R>(format!("record {} {what}", describe_id::<R>(id)));
    match stored.split_first() {
        Some((&version, fields)) if version == R::VERSION => match postcard::take_from_bytes(fields) {
            Ok((record, [])) => Ok(record),
            Ok((_, rest)) => Err(damaged(format!("is followed by {} bytes that are not its own", rest.len()))),
            Err(error) => Err(damaged(format!("does not decode: {error}"))),
        },
        Some((version, _)) => Err(damaged(format!("has version {version}; this program reads {}", R::VERSION))),
        None => Err(damaged("is empty".to_owned())),
    }
}

struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(data);
        Ok(())
    }

    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.0.push(data);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::records::{profile, user_id_key};
    use crate::store::{Profile, ProfileView};

    fn stored() -> Vec<u8> {
        let mut out = Vec::new();
        encode(&profile(7), &mut out).expect("a profile encodes");
        out
    }

    fn problem(stored: &[u8]) -> String {
        let owned =
            record::<Profile>(&user_id_key(7), Stored::Bytes(stored)).expect_err("damage is refused").to_string();
        let borrowed = view::<Profile>(&user_id_key(7), Stored::Bytes(stored), &Bump::new())
            .expect_err("damage is refused")
            .to_string();
        assert_eq!(owned, borrowed);
        owned
    }

    #[test]
    fn decode_undoes_encode_owned_and_borrowed() {
        let stored = stored();
        assert_eq!(record::<Profile>(&user_id_key(7), Stored::Bytes(&stored)).expect("decodes"), profile(7));
        let texts = Bump::new();
        let view: ProfileView<'_> = view::<Profile>(&user_id_key(7), Stored::Bytes(&stored), &texts).expect("decodes");
        assert_eq!(view.to_profile(), profile(7));
    }

    #[test]
    fn another_version_is_refused_and_named() {
        let mut stored = stored();
        stored[0] = 9;
        assert_eq!(problem(&stored), "profiles: record 7 has version 9; this program reads 1");
    }

    #[test]
    fn every_cut_and_every_tail_is_refused() {
        let mut stored = stored();
        for cut in 0..stored.len() {
            problem(&stored[..cut]);
        }
        stored.push(0);
        assert_eq!(problem(&stored), "profiles: record 7 is followed by 1 bytes that are not its own");
    }

    #[test]
    fn a_country_that_is_none_is_refused() {
        let mut stored = stored();
        let country = stored.windows(2).position(|pair| pair == b"DE").expect("the profile lives in DE");
        stored[country] = b'd';
        assert!(problem(&stored).starts_with("profiles: record 7 does not decode"));
    }
}
