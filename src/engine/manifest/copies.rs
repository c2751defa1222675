//! The two copies of the state in a manifest file; the grammar is at the head of `manifest.rs`.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{MANIFEST, damaged};
use crate::engine::codec::Reader;
use crate::engine::error::{Error, Result};

const MAGIC: [u8; 8] = *b"PROFSTOR";
const VERSION: u32 = 3;
pub(super) const HEAD_BYTES: usize = 8 + 4 + 4 + 8;
/// The second copy begins at a multiple of it: no disk loses more at once where one sector goes bad.
const PLACE_BYTES: usize = 4096;

/// A file with `body` in it, twice.
pub(super) fn write(body: &[u8]) -> Vec<u8> {
    let second = place_behind(body);
    let mut bytes = Vec::with_capacity(second + HEAD_BYTES + body.len());
    for place in [0, second] {
        bytes.resize(place, 0);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&check(body, place).to_le_bytes());
        bytes.extend_from_slice(body);
    }
    bytes
}

/// What a file holds, if it is to the byte what [`write()`] made.
pub(super) fn read(bytes: &[u8]) -> Result<&[u8]> {
    let body = at(bytes, 0)?;
    let place = place_behind(body);
    let again = at(bytes, place)?;
    let padding = HEAD_BYTES + body.len()..place;
    if let Some(offset) = padding.clone().find(|&offset| bytes[offset] != 0) {
        return Err(damaged(offset as u64, "padding", "0", bytes[offset]));
    }
    if again != body {
        return Err(damaged(place as u64, "second copy", "the state in the first", "another one"));
    }
    let end = place + HEAD_BYTES + body.len();
    if bytes.len() > end {
        return Err(damaged(end as u64, "length of the file", end, bytes.len()));
    }
    Ok(body)
}

/// Where there may be a copy. If the first cannot say where the second begins, the length of the file does.
pub(super) fn places(bytes: &[u8]) -> [usize; 2] {
    [0, bytes.len().div_ceil(2).next_multiple_of(PLACE_BYTES)]
}

/// The body of the copy at `place`, whatever follows it.
pub(super) fn at(bytes: &[u8], place: usize) -> Result<&[u8]> {
    let bytes = bytes.get(place..).unwrap_or_default();
    let damaged = |offset: usize, what, expected: String, found: String| {
        Err(damaged((place + offset) as u64, what, expected, found))
    };
    let mut reader = Reader::new(bytes);
    if reader.bytes(8) != Some(&MAGIC) {
        let found = bytes[..bytes.len().min(8)].escape_ascii().to_string();
        return damaged(0, "magic", "PROFSTOR".to_owned(), found);
    }
    let head = (|| Some((reader.u32()?, reader.u32()?, reader.u64()?)))();
    let Some((version, length, stored_check)) = head else {
        return damaged(8, "head", format!("{HEAD_BYTES} bytes"), format!("{} bytes", bytes.len()));
    };
    if version != VERSION {
        return Err(Error::UnsupportedFormat {
            file: MANIFEST.to_owned(),
            found: version.to_string(),
            supported: VERSION.to_string(),
        });
    }
    let Some(body) = reader.bytes(length as usize) else {
        return damaged(12, "length", format!("at most {}", bytes.len() - HEAD_BYTES), length.to_string());
    };
    let computed = check(body, place);
    if computed != stored_check {
        return damaged(16, "checksum", format!("{stored_check:016X}"), format!("{computed:016X}"));
    }
    Ok(body)
}

/// Where the second copy begins.
fn place_behind(body: &[u8]) -> usize {
    (HEAD_BYTES + body.len()).next_multiple_of(PLACE_BYTES)
}

/// A copy in the place of the other is none.
fn check(body: &[u8], place: usize) -> u64 {
    xxh3_64_with_seed(body, u64::from_le_bytes(MAGIC).wrapping_add(place as u64))
}

/// A file of which the copies are whole, from one that may not be: the body is what lies behind the head of its last copy.
#[cfg(feature = "cli")]
pub(super) fn repair(bytes: &[u8]) -> Vec<u8> {
    let behind_head = places(bytes).into_iter().rev().find_map(|place| bytes.get(place + HEAD_BYTES..));
    write(behind_head.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies() -> Vec<Vec<u8>> {
        let lens = [0, 1, 300, PLACE_BYTES - HEAD_BYTES - 1, PLACE_BYTES - HEAD_BYTES, PLACE_BYTES - HEAD_BYTES + 1];
        lens.map(|len| (0..len).map(|at| at as u8).collect()).to_vec()
    }

    #[test]
    fn the_length_of_a_file_tells_where_its_second_copy_is() {
        for body in bodies() {
            let bytes = write(&body);
            assert_eq!(read(&bytes).expect("it is sound"), body);
            for place in places(&bytes) {
                assert!(place.is_multiple_of(PLACE_BYTES));
                assert_eq!(at(&bytes, place).expect("a copy"), body, "{} bytes", body.len());
            }
        }
    }

    #[test]
    fn a_copy_in_the_place_of_the_other_is_none() {
        let mut bytes = write(&bodies()[2]);
        let [first, second] = places(&bytes);
        let (before, behind) = bytes.split_at_mut(second);
        before[first..behind.len()].swap_with_slice(behind);
        assert!(places(&bytes).into_iter().all(|place| at(&bytes, place).is_err()));
    }

    #[test]
    fn damage_between_the_copies_and_behind_them_is_named_and_costs_neither() {
        let sound = write(&bodies()[2]);
        let mut padding = sound.clone();
        padding[2000] = 1;
        let longer = [sound.as_slice(), &[0; 512]].concat();
        for (bytes, offset) in [(padding, 2000), (longer, sound.len() as u64)] {
            let error = read(&bytes).expect_err("it is not what was written");
            assert!(matches!(error, Error::Corruption { offset: found, .. } if found == offset), "{error}");
            assert!(at(&bytes, 0).is_ok());
        }
    }

    #[test]
    fn copies_that_are_sound_and_differ_are_refused() {
        let (mut bytes, newer) = (write(&[1; 300]), write(&[2; 300]));
        let [_, second] = places(&bytes);
        bytes.truncate(second);
        bytes.extend_from_slice(&newer[second..]);
        let error = read(&bytes).expect_err("which of the two?");
        assert!(error.to_string().contains("second copy"), "{error}");
    }
}
