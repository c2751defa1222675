//! Reads a record from the columns that a block keeps it in, without putting its bytes together.
//!
//! A type asks serde for one value after the other; each is the next column. What is not a column of its own (an
//! option, a list, an enum with data) lies in one as its postcard encoding. If a column is not what the type asks for,
//! the row was written for another type, or something is wrong: the caller then reads the bytes, which decide.

use std::fmt;
use std::marker::PhantomData;

use bumpalo::Bump;
use postcard::de_flavors::Slice;
use serde::Deserialize;
use serde::de::value::{BorrowedBytesDeserializer, BorrowedStrDeserializer, U64Deserializer};
use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, SeqAccess, Visitor};

use super::text;
use crate::engine::{Cells, ROW_NUMBERS_MAX, Row, Template, Text};

/// The columns do not make the type.
#[derive(Debug)]
pub(super) struct Mismatch;

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the columns of the row are of another type")
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Result<T> = std::result::Result<T, Mismatch>;

/// The record in `row`, if its version is `version`. Texts that do not lie in the block are put together in `texts`.
#[inline]
pub(super) fn read<'de, T: Deserialize<'de>>(row: Row<'de>, version: u8, texts: &'de Bump) -> Result<T> {
    let mut numbers = [0; ROW_NUMBERS_MAX];
    let cells = row.cells(&mut numbers).ok_or(Mismatch)?;
    if cells.big_endian(0) != Some((version.into(), 1)) {
        return Err(Mismatch);
    }
    let mut columns = Columns { cells, next: 1, bytes: 0, bytes_left: 0, texts };
    let record = T::deserialize(&mut columns)?;
    if columns.next == columns.cells.len() && columns.bytes_left == 0 { Ok(record) } else { Err(Mismatch) }
}

/// A place in a row.
struct Columns<'de, 'n> {
    cells: Cells<'de, 'n>,
    /// The column that is read next.
    next: usize,
    /// Of a column of several bytes that are read one by one: the number they are, and how many were not read yet.
    bytes: u64,
    bytes_left: u8,
    texts: &'de Bump,
}

impl<'de, 'n> Columns<'de, 'n> {
    /// What `get` makes of the next column.
    #[inline(always)]
    fn column<T>(&mut self, get: impl FnOnce(&Cells<'de, 'n>, usize) -> Option<T>) -> Result<T> {
        if self.bytes_left > 0 {
            return Err(Mismatch);
        }
        let column = get(&self.cells, self.next).ok_or(Mismatch)?;
        self.next = self.next.wrapping_add(1);
        Ok(column)
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64> {
        self.column(Cells::varint)
    }

    #[inline(always)]
    fn zigzag(&mut self) -> Result<i64> {
        self.column(Cells::zigzag)
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8> {
        if self.bytes_left == 0 {
            (self.bytes, self.bytes_left) = self.column(Cells::big_endian)?;
        }
        self.bytes_left -= 1;
        Ok((self.bytes >> (8 * self.bytes_left)) as u8)
    }

    fn little_endian(&mut self, expected: u8) -> Result<u64> {
        match self.column(Cells::little_endian)? {
            (number, width) if width == expected => Ok(number),
            _ => Err(Mismatch),
        }
    }

    #[inline(always)]
    fn text(&mut self) -> Result<&'de str> {
        match self.column(Cells::prefixed)? {
            Text::Whole(text) => Ok(text),
            Text::Pieces(pieces) => pieces.put_in(self.texts).ok_or(Mismatch),
            Text::Bytes(_) => Err(Mismatch),
        }
    }

    fn bytes(&mut self) -> Result<&'de [u8]> {
        let bytes = self.column(Cells::prefixed)?;
        self.bytes_of(&bytes)
    }

    /// What is not a column of its own, in the postcard encoding.
    fn nested(&mut self) -> Result<&'de [u8]> {
        let bytes = self.column(Cells::verbatim)?;
        self.bytes_of(&bytes)
    }

    fn bytes_of(&self, text: &Text<'de>) -> Result<&'de [u8]> {
        match text {
            Text::Whole(text) => Ok(text.as_bytes()),
            Text::Bytes(bytes) => Ok(bytes),
            Text::Pieces(pieces) => pieces.put_in(self.texts).map(str::as_bytes).ok_or(Mismatch),
        }
    }
}

macro_rules! read_as {
    ($($method:ident $visit:ident $read:ident;)*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            visitor.$visit(self.$read()?)
        }
    )*};
}

macro_rules! read_nested {
    ($($method:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let mut nested = postcard::Deserializer::from_bytes(self.nested()?);
            let value = nested.$method(visitor).map_err(|_| Mismatch)?;
            to_its_end(nested).map(|()| value)
        }
    )*};
}

macro_rules! refuse {
    ($($method:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value> {
            Err(Mismatch)
        }
    )*};
}

/// What a type leaves of a column belongs to the next one of its parts: it is not a column of that type.
fn to_its_end<'de>(nested: postcard::Deserializer<'de, Slice<'de>>) -> Result<()> {
    if nested.finalize().is_ok_and(<[u8]>::is_empty) { Ok(()) } else { Err(Mismatch) }
}

impl<'de> Deserializer<'de> for &mut Columns<'de, '_> {
    type Error = Mismatch;

    read_as! {
        deserialize_u8 visit_u8 byte;
        deserialize_u16 visit_u64 varint;
        deserialize_u32 visit_u64 varint;
        deserialize_u64 visit_u64 varint;
        deserialize_i16 visit_i64 zigzag;
        deserialize_i32 visit_i64 zigzag;
        deserialize_i64 visit_i64 zigzag;
        deserialize_str visit_borrowed_str text;
        deserialize_string visit_borrowed_str text;
        deserialize_bytes visit_borrowed_bytes bytes;
        deserialize_byte_buf visit_borrowed_bytes bytes;
    }

    read_nested! {
        deserialize_option;
        deserialize_seq;
        deserialize_map;
    }

    refuse! {
        deserialize_any;
        deserialize_u128;
        deserialize_i128;
        deserialize_identifier;
        deserialize_ignored_any;
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.byte()? {
            0 => visitor.visit_bool(false),
            1 => visitor.visit_bool(true),
            _ => Err(Mismatch),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_i8(self.byte()?.cast_signed())
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_f32(f32::from_bits(self.little_endian(4)? as u32))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_f64(f64::from_bits(self.little_endian(8)?))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut letters = self.text()?.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => visitor.visit_char(letter),
            _ => Err(Mismatch),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(InOrder { columns: self, left: len })
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(self, name: &'static str, len: usize, visitor: V) -> Result<V::Value> {
        if name != text::NAME {
            return self.deserialize_tuple(len, visitor);
        }
        match self.column(Cells::prefixed)? {
            Text::Whole(text) => visitor.visit_seq(Parts { text: Some(text), slots: &[], numbers: [].iter(), left: 0 }),
            Text::Pieces(pieces) => {
                let Template { phrase, slots } = pieces.template();
                let left = 1 + pieces.numbers.len();
                visitor.visit_seq(Parts { text: Some(phrase), slots, numbers: pieces.numbers.iter(), left })
            }
            Text::Bytes(_) => Err(Mismatch),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if let Ok(index) = self.varint() {
            return visitor.visit_enum(Unit(u32::try_from(index).map_err(|_| Mismatch)?));
        }
        let mut nested = postcard::Deserializer::from_bytes(self.nested()?);
        let value = nested.deserialize_enum(name, variants, visitor).map_err(|_| Mismatch)?;
        to_its_end(nested).map(|()| value)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The parts of a struct or tuple: columns side by side.
struct InOrder<'c, 'de, 'n> {
    columns: &'c mut Columns<'de, 'n>,
    left: usize,
}

impl<'de> SeqAccess<'de> for InOrder<'_, 'de, '_> {
    type Error = Mismatch;

    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.columns).map(Some)
    }

    #[inline(always)]
    fn next_element<T: Deserialize<'de>>(&mut self) -> Result<Option<T>> {
        self.next_element_seed(PhantomData)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A text in its parts: the phrase, then, if it has any, its slots and a number for each.
struct Parts<'de, 'n> {
    text: Option<&'de str>,
    slots: &'de [u8],
    numbers: std::slice::Iter<'n, u64>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Parts<'de, '_> {
    type Error = Mismatch;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if let Some(text) = self.text.take() {
            return seed.deserialize(BorrowedStrDeserializer::new(text)).map(Some);
        }
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        if !self.slots.is_empty() {
            return seed.deserialize(BorrowedBytesDeserializer::new(std::mem::take(&mut self.slots))).map(Some);
        }
        self.numbers.next().map(|number| seed.deserialize(U64Deserializer::new(*number))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left + usize::from(self.text.is_some()))
    }
}

/// A variant without data.
struct Unit(u32);

impl<'de> EnumAccess<'de> for Unit {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self)> {
        let index = de::value::U32Deserializer::<Mismatch>::new(self.0);
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Unit {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<()> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value> {
        Err(Mismatch)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value> {
        Err(Mismatch)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value> {
        Err(Mismatch)
    }
}
