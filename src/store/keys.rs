//! Keys: bytes that sort as their values do.
//!
//! Every key ends itself: it says where it stops, so a key can be followed by another (a tuple, or the id at the end
//! of an index entry), no key is a prefix of a different one, and `("US", "A1")`, `("USA", "1")` and `("U", "SA1")`
//! stay apart.
//!
//! ```text
//! u8 u16 u32 u64     big-endian
//! i8 i16 i32 i64     big-endian, sign bit flipped: negative numbers come first
//! bool               0x00 false, 0x01 true
//! [u8; N]            as it is
//! text, bytes        0x00 as 0x01 0x01, 0x01 as 0x01 0x02, every other byte as it is; then 0x00
//! Option<T>          0x00 none, 0x01 T
//! Reverse<T>         T with every bit inverted: descends where T ascends
//! (A, B, ..)         A B ..; compared component by component
//! key_as!(T => S)    S
//! ```
//!
//! The escape keeps the order because what it replaces sorts below every byte it leaves alone: "a" (61 00) comes
//! before "a\0" (61 01 01 00) comes before "ab" (61 62 00). Decoders are total: bytes that are no key give `None`.

use std::cmp::Reverse;
use std::fmt;

use super::layout;
use crate::engine::Field;

const END: u8 = 0x00;
const ESCAPE: u8 = 0x01;

/// A value that can be an id or a key of an index: its encoding sorts as the value does.
///
/// Own types become keys with [`key_as!`](crate::key_as).
pub trait Key: Sized + 'static {
    /// The key as it is passed around: itself for a number, `&str` for a `String`.
    type Ref<'a>: Copy + fmt::Debug;

    /// Length of the encoding in bytes, if all have the same.
    const WIDTH: Option<usize>;

    /// The key as it is passed around.
    fn borrowed(&self) -> Self::Ref<'_>;

    /// Appends the encoding of `key`.
    fn encode(key: Self::Ref<'_>, out: &mut Vec<u8>);

    /// Reads a key off the front; `None` if the bytes do not begin with one.
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self>;

    /// The key for a person, as error messages show it.
    fn describe(key: Self::Ref<'_>) -> String {
        format!("{key:?}")
    }

    /// Adds what the encoding is made of to `fields`, for an engine that stores columns; anything at all, if it is not
    /// said.
    fn put_fields(fields: &mut Vec<Field>) {
        layout::put(Field::Rest, fields);
    }
}

/// The leading components of a tuple key, such as `(country,)` of `(country, status)`.
pub trait KeyPrefix<K: Key> {
    /// Appends the encoding of the components that are given.
    fn encode(self, out: &mut Vec<u8>);
}

/// The key that `bytes` are, whole.
#[inline]
pub fn decode<K: Key>(bytes: &[u8]) -> Option<K> {
    let mut reader = KeyReader::new(bytes);
    K::decode(&mut reader).filter(|_| reader.rest.is_empty())
}

/// Reads keys off the front of a slice.
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
    /// 0xFF inside an odd number of [`Reverse`], else 0.
    inversion: u8,
}

impl<'a> KeyReader<'a> {
    /// At the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, inversion: 0 }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first ^ self.inversion)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        if self.inversion == 0 { Some(head) } else { Some(head.map(|byte| !byte)) }
    }

    fn inverted<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.inversion = !self.inversion;
        let value = read(self);
        self.inversion = !self.inversion;
        value
    }
}

macro_rules! integer_keys {
    ($($integer:ty, $sign_bit:expr;)*) => {$(
        impl Key for $integer {
            type Ref<'a> = $integer;
            const WIDTH: Option<usize> = Some(size_of::<$integer>());

            fn borrowed(&self) -> $integer {
                *self
            }

            fn encode(key: $integer, out: &mut Vec<u8>) {
                out.extend_from_slice(&(key ^ $sign_bit).to_be_bytes());
            }

            #[inline]
            fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
                reader.array().map(|bytes| <$integer>::from_be_bytes(bytes) ^ $sign_bit)
            }

            fn put_fields(fields: &mut Vec<Field>) {
                layout::put(Field::BigEndian(size_of::<$integer>() as u8), fields);
            }
        }
    )*};
}

integer_keys! {
    u8, 0; u16, 0; u32, 0; u64, 0;
    i8, i8::MIN; i16, i16::MIN; i32, i32::MIN; i64, i64::MIN;
}

impl Key for bool {
    type Ref<'a> = bool;
    const WIDTH: Option<usize> = Some(1);

    fn borrowed(&self) -> bool {
        *self
    }

    fn encode(key: bool, out: &mut Vec<u8>) {
        out.push(u8::from(key));
    }

    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        match reader.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn put_fields(fields: &mut Vec<Field>) {
        layout::put(Field::BigEndian(1), fields);
    }
}

impl<const N: usize> Key for [u8; N] {
    type Ref<'a> = [u8; N];
    const WIDTH: Option<usize> = Some(N);

    fn borrowed(&self) -> [u8; N] {
        *self
    }

    fn encode(key: [u8; N], out: &mut Vec<u8>) {
        out.extend_from_slice(&key);
    }

    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        reader.array()
    }

    fn put_fields(fields: &mut Vec<Field>) {
        // As few numbers as there can be, of 8 bytes each but the last.
        let widths = (0..N).step_by(8).map(|start| (N - start).min(8) as u8);
        widths.for_each(|width| layout::put(Field::BigEndian(width), fields));
    }
}

impl Key for Vec<u8> {
    type Ref<'a> = &'a [u8];
    const WIDTH: Option<usize> = None;

    fn borrowed(&self) -> &[u8] {
        self
    }

    fn encode(key: &[u8], out: &mut Vec<u8>) {
        escape(key, out);
        out.push(END);
    }

    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        let mut bytes = Vec::new();
        loop {
            match reader.byte()? {
                END => return Some(bytes),
                ESCAPE => bytes.push(reader.byte()?.checked_sub(1).filter(|&byte| byte <= ESCAPE)?),
                byte => bytes.push(byte),
            }
        }
    }

    fn put_fields(fields: &mut Vec<Field>) {
        layout::put(Field::Terminated(END), fields);
    }
}

impl Key for String {
    type Ref<'a> = &'a str;
    const WIDTH: Option<usize> = None;

    fn borrowed(&self) -> &str {
        self
    }

    fn encode(key: &str, out: &mut Vec<u8>) {
        Vec::encode(key.as_bytes(), out);
    }

    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        Self::from_utf8(Vec::decode(reader)?).ok()
    }

    fn put_fields(fields: &mut Vec<Field>) {
        Vec::put_fields(fields);
    }

    fn describe(key: &str) -> String {
        key.to_owned()
    }
}

/// Appends text without its end: what the keys of all longer texts begin with.
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 1);
    for part in text.split_inclusive(|&byte| byte <= ESCAPE) {
        match part {
            [plain @ .., low] if *low <= ESCAPE => {
                out.extend_from_slice(plain);
                out.extend_from_slice(&[ESCAPE, low + 1]);
            }
            plain => out.extend_from_slice(plain),
        }
    }
}

impl<T: Key> Key for Option<T> {
    type Ref<'a> = Option<T::Ref<'a>>;
    const WIDTH: Option<usize> = None;

    fn borrowed(&self) -> Option<T::Ref<'_>> {
        self.as_ref().map(T::borrowed)
    }

    fn encode(key: Option<T::Ref<'_>>, out: &mut Vec<u8>) {
        bool::encode(key.is_some(), out);
        if let Some(value) = key {
            T::encode(value, out);
        }
    }

    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        if bool::decode(reader)? { T::decode(reader).map(Some) } else { Some(None) }
    }

    fn put_fields(fields: &mut Vec<Field>) {
        let mut inner = Vec::new();
        T::put_fields(&mut inner);
        layout::put(Field::Option(Box::new(Field::Group(inner))), fields);
    }

    fn describe(key: Option<T::Ref<'_>>) -> String {
        key.map_or_else(|| "none".to_owned(), T::describe)
    }
}

impl<T: Key> Key for Reverse<T> {
    type Ref<'a> = Reverse<T::Ref<'a>>;
    const WIDTH: Option<usize> = T::WIDTH;

    fn borrowed(&self) -> Reverse<T::Ref<'_>> {
        Reverse(self.0.borrowed())
    }

    fn encode(key: Reverse<T::Ref<'_>>, out: &mut Vec<u8>) {
        let start = out.len();
        T::encode(key.0, out);
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }

    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        reader.inverted(T::decode).map(Reverse)
    }

    fn put_fields(fields: &mut Vec<Field>) {
        let mut inner = Vec::new();
        T::put_fields(&mut inner);
        for field in inner {
            let inverted = match field {
                Field::BigEndian(width) => Field::BigEndian(width),
                Field::Terminated(end) => Field::Terminated(!end),
                _ => Field::Rest,
            };
            layout::put(inverted, fields);
        }
    }

    fn describe(key: Reverse<T::Ref<'_>>) -> String {
        T::describe(key.0)
    }
}

const fn sum(widths: &[Option<usize>]) -> Option<usize> {
    let mut total = 0;
    let mut i = 0;
    while i < widths.len() {
        match widths[i] {
            Some(width) => total += width,
            None => return None,
        }
        i += 1;
    }
    Some(total)
}

macro_rules! tuple_key {
    ($($part:ident $name:ident),+) => {
        impl<$($part: Key),+> Key for ($($part,)+) {
            type Ref<'a> = ($($part::Ref<'a>,)+);
            const WIDTH: Option<usize> = sum(&[$($part::WIDTH),+]);

            fn borrowed(&self) -> Self::Ref<'_> {
                let ($($name,)+) = self;
                ($($name.borrowed(),)+)
            }

            fn encode(($($name,)+): Self::Ref<'_>, out: &mut Vec<u8>) {
                $($part::encode($name, out);)+
            }

            fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
                Some(($($part::decode(reader)?,)+))
            }

            fn put_fields(fields: &mut Vec<Field>) {
                $($part::put_fields(fields);)+
            }

            fn describe(($($name,)+): Self::Ref<'_>) -> String {
                format!("({})", [$($part::describe($name)),+].join(", "))
            }
        }
    };
}

tuple_key!(A a, B b);
tuple_key!(A a, B b, C c);
tuple_key!(A a, B b, C c, D d);

macro_rules! tuple_prefix {
    ($($part:ident $name:ident),+ of $($all:ident),+) => {
        impl<'a, $($all: Key),+> KeyPrefix<($($all,)+)> for ($($part::Ref<'a>,)+) {
            fn encode(self, out: &mut Vec<u8>) {
                let ($($name,)+) = self;
                $($part::encode($name, out);)+
            }
        }
    };
}

tuple_prefix!(A a of A, B);
tuple_prefix!(A a of A, B, C);
tuple_prefix!(A a, B b of A, B, C);
tuple_prefix!(A a of A, B, C, D);
tuple_prefix!(A a, B b of A, B, C, D);
tuple_prefix!(A a, B b, C c of A, B, C, D);

/// Makes a small `Copy` type a [`Key`](crate::store::Key), stored as a number or an array of bytes:
/// the type, what it is stored as, how it becomes that, and how it comes back (`None` for what is none).
///
/// Keys sort by what they are stored as.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Level { Low, High }
///
/// profilestore::key_as!(Level => u8, |level| level as u8, |number| [Level::Low, Level::High].get(usize::from(number)).copied());
/// ```
#[macro_export]
macro_rules! key_as {
    ($type:ty => $stored:ty, $store:expr, $restore:expr) => {
        impl $crate::store::Key for $type {
            type Ref<'a> = $type;
            const WIDTH: Option<usize> = <$stored as $crate::store::Key>::WIDTH;

            fn borrowed(&self) -> $type {
                *self
            }

            fn encode(key: $type, out: &mut Vec<u8>) {
                let store: fn($type) -> $stored = $store;
                <$stored as $crate::store::Key>::encode(store(key), out);
            }

            fn decode(reader: &mut $crate::store::KeyReader<'_>) -> Option<Self> {
                let restore: fn($stored) -> Option<$type> = $restore;
                restore(<$stored as $crate::store::Key>::decode(reader)?)
            }

            fn put_fields(fields: &mut Vec<$crate::engine::Field>) {
                <$stored as $crate::store::Key>::put_fields(fields);
            }
        }
    };
}
