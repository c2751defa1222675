//! Reads a record from the columns that a block keeps it in, without putting its bytes together.
//!
//! A reader asks for one field after the other; each is the next column. What is not a column of its own (an option, a
//! list, an enum with data) lies in one as its postcard encoding. If a column is not what is asked for, the row was
//! written for another type, or something is wrong: the record is then read from its bytes, which decide.

use bumpalo::Bump;
use serde::Deserialize;

use super::fields::{Fields, Mismatch, Result};
use super::text;
use crate::engine::{Row, Text, TextCell};

/// The record in `row` that `read` makes of its columns, if its version is `version`. Texts that do not lie in the block
/// are put together in `texts`.
#[inline]
pub(super) fn read<'a, T>(
    row: Row<'a>,
    version: u8,
    texts: &'a Bump,
    read: impl FnOnce(&mut Columns<'a>) -> Option<T>,
) -> Option<T> {
    if row.big_endian(0) != Some((version.into(), 1)) {
        return None;
    }
    let mut columns = Columns { row, next: 1, bytes: 0, bytes_left: 0, texts };
    read(&mut columns).filter(|_| columns.next == row.len() && columns.bytes_left == 0)
}

/// The columns of a stored record, to be read one after the other, in the order in which the record writes its fields.
///
/// See [`Record::read_columns`](super::Record::read_columns) for when to use it. All columns have to be read; a
/// [`text`](Self::text) that nobody looks at costs next to nothing. A field that is not what the column holds gives
/// `None`, and so must the reader then: the record is read from its bytes instead.
pub struct Columns<'a> {
    row: Row<'a>,
    /// The column that is read next.
    next: usize,
    /// Of a column of several bytes that are read one by one: the number they are, and how many were not read yet.
    bytes: u64,
    bytes_left: u8,
    texts: &'a Bump,
}

impl<'a> Columns<'a> {
    /// The next field, of any type that serde reads.
    #[inline(always)]
    pub fn field<T: Deserialize<'a>>(&mut self) -> Option<T> {
        T::deserialize(Fields(self)).ok()
    }

    /// The next field, a text that is put together when somebody looks at it.
    #[inline(always)]
    pub fn text(&mut self) -> Option<text::Text<'a>> {
        let cell = self.row.prefixed(self.place().ok()?);
        self.took(cell).ok().and_then(text::Text::of_cell)
    }

    /// The next field, a few bytes such as `[u8; 2]`.
    #[inline(always)]
    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let cell = self.row.big_endian(self.place().ok()?);
        let (number, width) = self.took(cell).ok()?;
        number.to_be_bytes().last_chunk().copied().filter(|_| usize::from(width) == N)
    }

    /// The column that is read next; none begins inside another.
    #[inline(always)]
    fn place(&self) -> Result<usize> {
        if self.bytes_left == 0 { Ok(self.next) } else { Err(Mismatch) }
    }

    /// Moves on, if the column was what was asked for.
    #[inline(always)]
    fn took<T>(&mut self, cell: Option<T>) -> Result<T> {
        let cell = cell.ok_or(Mismatch)?;
        self.next = self.next.wrapping_add(1);
        Ok(cell)
    }

    #[inline(always)]
    pub(super) fn varint(&mut self) -> Result<u64> {
        let cell = self.row.varint(self.place()?);
        self.took(cell)
    }

    #[inline(always)]
    pub(super) fn zigzag(&mut self) -> Result<i64> {
        let cell = self.row.zigzag(self.place()?);
        self.took(cell)
    }

    #[inline(always)]
    pub(super) fn byte(&mut self) -> Result<u8> {
        if self.bytes_left == 0 {
            let cell = self.row.big_endian(self.next);
            (self.bytes, self.bytes_left) = self.took(cell)?;
        }
        self.bytes_left -= 1;
        Ok((self.bytes >> (8 * self.bytes_left)) as u8)
    }

    pub(super) fn little_endian(&mut self, expected: u8) -> Result<u64> {
        let cell = self.row.little_endian(self.place()?);
        match self.took(cell)? {
            (number, width) if width == expected => Ok(number),
            _ => Err(Mismatch),
        }
    }

    #[inline(always)]
    pub(super) fn str(&mut self) -> Result<&'a str> {
        let cell = self.row.prefixed(self.place()?);
        let cell = self.took(cell)?.get();
        self.text_of(cell).ok_or(Mismatch)
    }

    pub(super) fn byte_slice(&mut self) -> Result<&'a [u8]> {
        let cell = self.row.prefixed(self.place()?);
        self.took(cell).and_then(|cell| self.bytes_of(&cell))
    }

    /// What is not a column of its own, in the postcard encoding.
    pub(super) fn nested(&mut self) -> Result<&'a [u8]> {
        let cell = self.row.verbatim(self.place()?);
        self.took(cell).and_then(|cell| self.bytes_of(&cell))
    }

    fn bytes_of(&self, cell: &TextCell<'a>) -> Result<&'a [u8]> {
        match cell.get() {
            Text::Bytes(bytes) => Ok(bytes),
            text => self.text_of(text).map(str::as_bytes).ok_or(Mismatch),
        }
    }

    /// `None` for bytes that are no text.
    #[inline(always)]
    fn text_of(&self, text: Text<'a>) -> Option<&'a str> {
        match text {
            Text::Whole(text) => Some(text),
            Text::Pieces(pieces) => pieces.put_in(self.texts),
            Text::Coded(coded) => Some(coded.put_in(self.texts)),
            Text::Bytes(_) => None,
        }
    }
}
