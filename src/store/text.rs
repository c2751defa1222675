//! A text of a view that is put together when it is wanted.
//!
//! A store of columns keeps many texts as a phrase and the numbers in it. A view that asks for `&str` gets the text put
//! together; one that asks for [`Text`] gets the parts, and a reader that never looks at it pays for no text. From a
//! store of bytes it is the text where it lies.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::engine::{SLOTS_MAX, Template};

/// A text with numbers in it, in decimal. Cheap to copy; `to_string` and `==` give what it says.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    phrase: &'a str,
    /// Where the numbers go, as [`Template`] has it.
    slots: &'a [u8],
    numbers: [u64; SLOTS_MAX],
}

impl<'a> Text<'a> {
    /// Hands the text to `put`, piece by piece.
    pub fn each(&self, put: impl FnMut(&str)) {
        Template { phrase: self.phrase, slots: self.slots }.each(|slot| self.numbers[slot], put);
    }

    /// The text, if it lies in the store as it is.
    pub fn as_str(&self) -> Option<&'a str> {
        self.slots.is_empty().then_some(self.phrase)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        let mut len = 0;
        self.each(|piece| len += piece.len());
        len
    }

    /// Whether there is no character in it.
    pub fn is_empty(&self) -> bool {
        self.phrase.is_empty() && self.slots.is_empty()
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self { phrase: text, slots: &[], numbers: [0; SLOTS_MAX] }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut outcome = Ok(());
        self.each(|piece| outcome = outcome.and_then(|()| f.write_str(piece)));
        outcome
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        let mut rest = Some(other);
        self.each(|piece| rest = rest.and_then(|rest| rest.strip_prefix(piece)));
        rest == Some("")
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        match other.as_str() {
            Some(text) => self == text,
            None => *self == *other.to_string(),
        }
    }
}

impl Eq for Text<'_> {}

/// Name under which a deserializer is asked for a text in parts. To all but that of rows it is a struct around a text,
/// which is a text in the postcard encoding.
pub(super) const NAME: &str = "profilestore::Text";

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple_struct(NAME, 1, Parts)
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    /// A text, or a phrase, its slots, and a number for each.
    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text<'de>, A::Error> {
        let phrase: &str = parts.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let mut text = Text::from(phrase);
        if parts.size_hint().unwrap_or(0) > 0 {
            text.slots = parts.next_element()?.unwrap_or_default();
            for number in &mut text.numbers {
                let Some(given) = parts.next_element()? else { break };
                *number = given;
            }
        }
        Ok(text)
    }
}
