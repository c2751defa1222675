//! Columns as fields of a type that serde reads; see `columns.rs`.

use std::fmt;
use std::marker::PhantomData;

use postcard::de_flavors::Slice;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, SeqAccess, Visitor};

use super::columns::Columns;

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

pub(super) type Result<T> = std::result::Result<T, Mismatch>;

/// The columns that come next, for serde.
pub(super) struct Fields<'c, 'de>(pub(super) &'c mut Columns<'de>);

macro_rules! read_as {
    ($($method:ident $visit:ident $read:ident;)*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            visitor.$visit(self.0.$read()?)
        }
    )*};
}

macro_rules! read_nested {
    ($($method:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let mut nested = postcard::Deserializer::from_bytes(self.0.nested()?);
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

impl<'de> Deserializer<'de> for Fields<'_, 'de> {
    type Error = Mismatch;

    read_as! {
        deserialize_u8 visit_u8 byte;
        deserialize_u16 visit_u64 varint;
        deserialize_u32 visit_u64 varint;
        deserialize_u64 visit_u64 varint;
        deserialize_i16 visit_i64 zigzag;
        deserialize_i32 visit_i64 zigzag;
        deserialize_i64 visit_i64 zigzag;
        deserialize_str visit_borrowed_str str;
        deserialize_string visit_borrowed_str str;
        deserialize_bytes visit_borrowed_bytes byte_slice;
        deserialize_byte_buf visit_borrowed_bytes byte_slice;
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
        match self.0.byte()? {
            0 => visitor.visit_bool(false),
            1 => visitor.visit_bool(true),
            _ => Err(Mismatch),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_i8(self.0.byte()?.cast_signed())
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_f32(f32::from_bits(self.0.little_endian(4)? as u32))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_f64(f64::from_bits(self.0.little_endian(8)?))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut letters = self.0.str()?.chars();
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
        visitor.visit_seq(InOrder { columns: self.0, left: len })
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_tuple(len, visitor)
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
        if let Ok(index) = self.0.varint() {
            return visitor.visit_enum(Unit(u32::try_from(index).map_err(|_| Mismatch)?));
        }
        let mut nested = postcard::Deserializer::from_bytes(self.0.nested()?);
        let value = nested.deserialize_enum(name, variants, visitor).map_err(|_| Mismatch)?;
        to_its_end(nested).map(|()| value)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The parts of a struct or tuple: columns side by side.
struct InOrder<'c, 'de> {
    columns: &'c mut Columns<'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for InOrder<'_, 'de> {
    type Error = Mismatch;

    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(Fields(self.columns)).map(Some)
    }

    #[inline(always)]
    fn next_element<T: Deserialize<'de>>(&mut self) -> Result<Option<T>> {
        self.next_element_seed(PhantomData)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
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
