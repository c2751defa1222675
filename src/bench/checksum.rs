//! Folds answers into 64 bits, so that two stores that answered alike show the same number.
//!
//! FNV-1a in shape, but each step takes a whole 64-bit value. Order matters: it is part of every answer here.

use std::fmt;

use crate::store::ProfileView;

const START: u64 = 14_695_981_039_346_656_037;
const PRIME: u64 = 1_099_511_628_211;

/// A fold in progress. Shown as 16 upper-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(START)
    }
}

impl Checksum {
    /// Takes in one unsigned value; everything else comes down to this.
    #[inline]
    pub fn unsigned(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(PRIME);
    }

    /// Takes in the bits of a number, such as an id or a time.
    #[inline]
    pub fn number(&mut self, value: i64) {
        self.unsigned(value as u64);
    }

    /// Takes in text, one value for each UTF-16 unit.
    pub fn text(&mut self, text: &str) {
        if text.is_ascii() {
            text.bytes().for_each(|byte| self.unsigned(u64::from(byte)));
        } else {
            text.encode_utf16().for_each(|unit| self.unsigned(u64::from(unit)));
        }
    }

    /// Takes in the seven fields of the published checksum.
    pub fn profile(&mut self, profile: &ProfileView<'_>) {
        self.number(profile.user_id);
        self.text(profile.email);
        self.text(profile.country.as_str());
        self.text(profile.status.as_str());
        self.number(profile.created_at);
        self.number(profile.last_login);
        self.unsigned(u64::from(profile.reputation as u32));
    }

    /// Takes in all nine fields: a store that loses a name or a bio shows only here.
    pub fn all_fields(&mut self, profile: &ProfileView<'_>) {
        self.profile(profile);
        profile.display_name.each(|piece| self.text(piece));
        profile.bio.each(|piece| self.text(piece));
    }

    /// One checksum for the workers that had work, worker 0 first: the start value if there were none, the only one's
    /// own, or a fold of the digits of each.
    pub fn combined(workers: &[Self]) -> Self {
        match workers {
            [] => Self::default(),
            [only] => *only,
            several => several.iter().fold(Self::default(), |mut combined, worker| {
                combined.text(&worker.to_string());
                combined
            }),
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::generate;

    fn of(fold: impl FnOnce(&mut Checksum)) -> String {
        let mut checksum = Checksum::default();
        fold(&mut checksum);
        checksum.to_string()
    }

    #[test]
    fn nothing_taken_in_shows_the_start_value() {
        assert_eq!(of(|_| ()), "CBF29CE484222325");
        assert_eq!(Checksum::combined(&[]).to_string(), "CBF29CE484222325");
    }

    #[test]
    fn text_is_taken_in_by_utf16_unit() {
        let by_unit = |text: &str| of(|sum| text.encode_utf16().for_each(|unit| sum.unsigned(unit.into())));
        for text in ["", "plain", "Zoë", "😀"] {
            assert_eq!(of(|sum| sum.text(text)), by_unit(text), "{text}");
        }
        assert_eq!("😀".encode_utf16().count(), 2);
    }

    #[test]
    fn one_worker_shows_its_own_value_and_two_show_a_fold_of_their_digits() {
        let (mut one, mut two) = (Checksum::default(), Checksum::default());
        one.number(1);
        two.number(2);
        assert_eq!(Checksum::combined(&[one]), one);
        let digits = format!("{one}{two}");
        assert_eq!(Checksum::combined(&[one, two]).to_string(), of(|sum| sum.text(&digits)));
    }

    #[test]
    fn only_the_checksum_of_all_fields_sees_a_lost_bio() {
        let whole = generate::profile(1, 1);
        let mut lost = whole.clone();
        lost.bio.clear();
        assert_eq!(of(|sum| sum.profile(&whole.view())), of(|sum| sum.profile(&lost.view())));
        assert_ne!(of(|sum| sum.all_fields(&whole.view())), of(|sum| sum.all_fields(&lost.view())));
    }
}
