//! Which keys a scan visits, and in which direction.

use std::borrow::Cow;
use std::ops::Bound;

/// A range of keys, in byte order. Owns its bounds.
///
/// A range whose lower bound lies above its upper bound holds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Where it begins.
    pub lower: Bound<Vec<u8>>,
    /// Where it ends.
    pub upper: Bound<Vec<u8>>,
}

/// The order a scan goes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    #[default]
    Forward,
    /// Largest key first.
    Reverse,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// The keys that begin with `prefix`. Right for prefixes that end in 0xFF, and for nothing but 0xFF.
    pub fn prefix(prefix: &[u8]) -> Self {
        let upper = match prefix.iter().rposition(|&byte| byte != 0xFF) {
            Some(last) => {
                let mut upper = prefix[..=last].to_vec();
                upper[last] += 1;
                Bound::Excluded(upper)
            }
            None => Bound::Unbounded,
        };
        Self { lower: Bound::Included(prefix.to_vec()), upper }
    }

    /// The keys inside a Rust range of byte strings: `KeyRange::of(from.as_slice()..=to.as_slice())`.
    pub fn of<'a>(range: impl std::ops::RangeBounds<&'a [u8]>) -> Self {
        let owned = |bound: Bound<&&'a [u8]>| bound.map(|key| key.to_vec());
        Self { lower: owned(range.start_bound()), upper: owned(range.end_bound()) }
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        !self.is_below(key) && !self.is_above(key)
    }

    /// The same range as keys that are at least the first of these and, if there is one, less than the second.
    pub(crate) fn half_open(&self) -> (Cow<'_, [u8]>, Option<Cow<'_, [u8]>>) {
        let behind = |key: &Vec<u8>| Cow::Owned([key.as_slice(), &[0]].concat());
        let from = match &self.lower {
            Bound::Included(key) => Cow::Borrowed(key.as_slice()),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => Cow::Borrowed(&[][..]),
        };
        let to = match &self.upper {
            Bound::Included(key) => Some(behind(key)),
            Bound::Excluded(key) => Some(Cow::Borrowed(key.as_slice())),
            Bound::Unbounded => None,
        };
        (from, to)
    }

    /// Whether `key` lies before the range.
    pub fn is_below(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Included(lower) => key < lower.as_slice(),
            Bound::Excluded(lower) => key <= lower.as_slice(),
            Bound::Unbounded => false,
        }
    }

    /// Whether `key` lies after the range.
    pub fn is_above(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Included(upper) => key > upper.as_slice(),
            Bound::Excluded(upper) => key >= upper.as_slice(),
            Bound::Unbounded => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_0xff_reaches_to_the_end() {
        assert_eq!(KeyRange::prefix(&[0xFF; 8]).upper, Bound::Unbounded);
        assert_eq!(KeyRange::prefix(&[5, 0xFF]).upper, Bound::Excluded(vec![6]));
        assert_eq!(KeyRange::prefix(&[0, 5]).upper, Bound::Excluded(vec![0, 6]));
        assert_eq!(KeyRange::prefix(&[]), KeyRange { lower: Bound::Included(vec![]), upper: Bound::Unbounded });
        assert!(KeyRange::prefix(&[0xFF; 8]).contains(&[0xFF; 9]));
        assert!(!KeyRange::prefix(&[0xFF; 8]).contains(&[0xFF; 7]));
    }

    #[test]
    fn reversed_bounds_hold_nothing() {
        let range = KeyRange::of(&b"x"[..]..&b"a"[..]);
        for key in [&b"a"[..], b"m", b"x", b""] {
            assert!(!range.contains(key));
        }
    }
}
