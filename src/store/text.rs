//! A text of a view that is put together when it is wanted.
//!
//! A store of columns keeps many texts as a phrase and the numbers in it, and long ones in codes. A view that asks for
//! `&str` gets the text put together; one that reads its columns itself can have a [`Text`], which costs nothing until
//! somebody looks at it. From a store of bytes it is the text where it lies.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::engine::{self, TextCell};

/// A text of a record. Cheap to copy; `to_string` and `==` give what it says.
#[derive(Clone, Copy)]
pub struct Text<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    Whole(&'a str),
    /// Of a column of texts.
    Cell(TextCell<'a>),
}

impl<'a> Text<'a> {
    /// `None` for bytes that are no text.
    #[inline(always)]
    pub(super) fn of_cell(cell: TextCell<'a>) -> Option<Self> {
        cell.is_text().then_some(Self(Form::Cell(cell)))
    }

    /// Hands the text to `put`, piece by piece.
    pub fn each(&self, mut put: impl FnMut(&str)) {
        match &self.0 {
            Form::Whole(text) => put(text),
            Form::Cell(cell) => match cell.get() {
                engine::Text::Whole(text) => put(text),
                engine::Text::Pieces(pieces) => pieces.each(put),
                engine::Text::Coded(coded) => coded.each(put),
                engine::Text::Bytes(_) => {}
            },
        }
    }

    /// The text, if it lies in the store as it is.
    pub fn as_str(&self) -> Option<&'a str> {
        match &self.0 {
            Form::Whole(text) => Some(text),
            Form::Cell(cell) => match cell.get() {
                engine::Text::Whole(text) => Some(text),
                engine::Text::Pieces(_) | engine::Text::Coded(_) | engine::Text::Bytes(_) => None,
            },
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        let mut len = 0;
        self.each(|piece| len += piece.len());
        len
    }

    /// Whether there is no character in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Form::Whole(text))
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

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&str>::deserialize(deserializer).map(Self::from)
    }
}
