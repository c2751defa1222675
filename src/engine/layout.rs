//! How the keys and values of a tree split into columns: a grammar over their bytes.
//!
//! The engine stays bytes in, bytes out. A layout tells it what the bytes are made of, so that a block of them can be
//! stored column by column (`segment/packed/`) and rendered again, byte for byte. A layout is advice: bytes that do not
//! follow it are stored as they are, and what is on disk says for itself how it was written.
//!
//! ```text
//! layout := count:varint field{count} count:varint field{count}       of keys, then of values
//! field  := tag:u8                        3 varint, 4 zigzag, 5 length-prefixed, 7 rest
//!         | tag:u8 width:u8               1 big-endian, 2 little-endian
//!         | 6 end:u8                      terminated
//!         | tag:u8 field                  8 option, 9 sequence
//!         | tag:u8 count:varint field{count}              10 group, 11 one of
//! ```
//!
//! Tags are on disk, in the manifest: do not renumber.

use super::codec::{Reader, put_varint, varint_bytes};

/// What the bytes of one column of a key or value look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A number in this many bytes, 1 to 8, most significant first: sorts as its bytes do.
    BigEndian(u8),
    /// A number in this many bytes, 1 to 8, least significant first.
    LittleEndian(u8),
    /// A number of at most 64 bits as LEB128.
    Varint,
    /// A signed number of at most 64 bits, folded to an unsigned one (0, -1, 1, -2, ..), as LEB128.
    ZigZag,
    /// A length as LEB128, and that many bytes: text, mostly.
    Prefixed,
    /// Bytes up to and with the first one of this value.
    Terminated(u8),
    /// Everything that is left.
    Rest,
    /// A byte 0, or a byte 1 and the field.
    Option(Box<Field>),
    /// A count as LEB128, and that many of the field.
    Sequence(Box<Field>),
    /// One field after the other, kept together as one column.
    Group(Vec<Field>),
    /// An index as LEB128, and the field with that index.
    OneOf(Vec<Field>),
}

/// The columns of the keys and of the values of a tree. No key columns stand for bytes of no known structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Columns of a key, in the order of their bytes.
    pub key: Vec<Field>,
    /// Columns of a value, in the order of their bytes.
    pub value: Vec<Field>,
}

/// The contents of one column of one key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Columns of a key and a value together.
pub(crate) const COLUMNS_MAX: usize = 64;
/// Fields within fields.
const DEPTH_MAX: usize = 32;

impl Layout {
    /// Bytes of no known structure.
    pub fn opaque() -> Self {
        Self::default()
    }

    /// Whether a manifest can hold it: numbers have 1 to 8 bytes, and fields lie at most 32 deep in one another.
    pub fn is_sound(&self) -> bool {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        Self::decode(&bytes).is_some()
    }

    /// Whether it names columns, and no more of them than there may be.
    pub(crate) fn is_columns(&self) -> bool {
        !self.key.is_empty() && self.key.len() + self.value.len() <= COLUMNS_MAX
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_fields(out, &self.key);
        put_fields(out, &self.value);
    }

    /// `None` if the bytes are no layout.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let layout = Self { key: read_fields(&mut reader, 0)?, value: read_fields(&mut reader, 0)? };
        reader.is_empty().then_some(layout)
    }
}

/// Appends the columns of `bytes` to `parts`; `false` if the bytes do not follow the fields to their end, or not as the
/// columns would be written again. In time proportional to the bytes, whatever they are.
pub(crate) fn split<'a>(fields: &[Field], bytes: &'a [u8], parts: &mut Vec<Part<'a>>) -> bool {
    let mut reader = Reader::new(bytes);
    fields.iter().all(|field| read_part(field, &mut reader).map(|part| parts.push(part)).is_some()) && reader.is_empty()
}

fn read_part<'a>(field: &Field, reader: &mut Reader<'a>) -> Option<Part<'a>> {
    Some(match field {
        Field::BigEndian(width) => {
            Part::Number(reader.bytes(usize::from(*width))?.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)))
        }
        Field::LittleEndian(width) => {
            Part::Number(reader.bytes(usize::from(*width))?.iter().rfold(0, |n, &byte| n << 8 | u64::from(byte)))
        }
        Field::Varint => Part::Number(shortest_varint(reader)?),
        Field::ZigZag => Part::Number(unfold(shortest_varint(reader)?).cast_unsigned()),
        Field::Prefixed => {
            let len = usize::try_from(shortest_varint(reader)?).ok()?;
            Part::Bytes(reader.bytes(len)?)
        }
        verbatim => {
            let mut behind = reader.clone();
            pass(verbatim, &mut behind)?;
            Part::Bytes(reader.bytes(reader.remaining() - behind.remaining())?)
        }
    })
}

/// A varint as it is written: one that goes on in zeros reads as the same number, and would come back shorter.
fn shortest_varint(reader: &mut Reader<'_>) -> Option<u64> {
    let before = reader.remaining();
    let number = reader.varint()?;
    (before - reader.remaining() == varint_bytes(number)).then_some(number)
}

/// Moves behind one field.
fn pass(field: &Field, reader: &mut Reader<'_>) -> Option<()> {
    match field {
        Field::BigEndian(width) | Field::LittleEndian(width) => reader.bytes(usize::from(*width)).map(|_| ()),
        Field::Varint | Field::ZigZag => reader.varint().map(|_| ()),
        Field::Prefixed => reader.length_prefixed().map(|_| ()),
        Field::Terminated(end) => reader.through(*end).map(|_| ()),
        Field::Rest => reader.bytes(reader.remaining()).map(|_| ()),
        Field::Option(field) => match reader.u8()? {
            0 => Some(()),
            1 => pass(field, reader),
            _ => None,
        },
        Field::Sequence(field) => {
            let count = reader.varint()?;
            (count <= reader.remaining() as u64).then_some(())?;
            for _ in 0..count {
                let before = reader.remaining();
                pass(field, reader)?;
                // Where one item has no bytes, none has: counting them, in lists of lists, would take time without end.
                if reader.remaining() == before {
                    break;
                }
            }
            Some(())
        }
        Field::Group(fields) => fields.iter().try_for_each(|field| pass(field, reader)),
        Field::OneOf(fields) => pass(fields.get(usize::try_from(reader.varint()?).ok()?)?, reader),
    }
}

/// The signed number that was folded.
pub(crate) fn unfold(folded: u64) -> i64 {
    (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed()
}

/// Folds a signed number so that small ones of either sign are short.
pub(crate) fn fold(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn put_fields(out: &mut Vec<u8>, fields: &[Field]) {
    put_varint(out, fields.len() as u64);
    for field in fields {
        put_field(out, field);
    }
}

fn put_field(out: &mut Vec<u8>, field: &Field) {
    match field {
        Field::BigEndian(width) => out.extend_from_slice(&[1, *width]),
        Field::LittleEndian(width) => out.extend_from_slice(&[2, *width]),
        Field::Varint => out.push(3),
        Field::ZigZag => out.push(4),
        Field::Prefixed => out.push(5),
        Field::Terminated(end) => out.extend_from_slice(&[6, *end]),
        Field::Rest => out.push(7),
        Field::Option(field) => {
            out.push(8);
            put_field(out, field);
        }
        Field::Sequence(field) => {
            out.push(9);
            put_field(out, field);
        }
        Field::Group(fields) => {
            out.push(10);
            put_fields(out, fields);
        }
        Field::OneOf(fields) => {
            out.push(11);
            put_fields(out, fields);
        }
    }
}

fn read_fields(reader: &mut Reader<'_>, depth: usize) -> Option<Vec<Field>> {
    let count = reader.varint()?;
    (count <= reader.remaining() as u64).then_some(())?;
    (0..count).map(|_| read_field(reader, depth)).collect()
}

fn read_field(reader: &mut Reader<'_>, depth: usize) -> Option<Field> {
    (depth < DEPTH_MAX).then_some(())?;
    let width = |reader: &mut Reader<'_>| reader.u8().filter(|width| (1..=8).contains(width));
    Some(match reader.u8()? {
        1 => Field::BigEndian(width(reader)?),
        2 => Field::LittleEndian(width(reader)?),
        3 => Field::Varint,
        4 => Field::ZigZag,
        5 => Field::Prefixed,
        6 => Field::Terminated(reader.u8()?),
        7 => Field::Rest,
        8 => Field::Option(Box::new(read_field(reader, depth + 1)?)),
        9 => Field::Sequence(Box::new(read_field(reader, depth + 1)?)),
        10 => Field::Group(read_fields(reader, depth + 1)?),
        11 => Field::OneOf(read_fields(reader, depth + 1)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_field() -> Vec<Field> {
        let option = Field::Option(Box::new(Field::ZigZag));
        let pairs = Field::Sequence(Box::new(Field::Group(vec![Field::Varint, Field::Prefixed])));
        vec![
            Field::BigEndian(2),
            Field::LittleEndian(4),
            Field::Varint,
            Field::ZigZag,
            Field::Prefixed,
            Field::Terminated(0),
            option.clone(),
            pairs,
            Field::OneOf(vec![Field::Group(vec![]), option]),
            Field::Rest,
        ]
    }

    #[test]
    fn decode_undoes_encode_and_every_cut_is_refused() {
        let layout = Layout { key: every_field(), value: every_field() };
        let mut bytes = Vec::new();
        layout.encode(&mut bytes);
        assert_eq!(Layout::decode(&bytes), Some(layout));
        for cut in 0..bytes.len() {
            assert_eq!(Layout::decode(&bytes[..cut]), None, "cut at {cut}");
        }
        let nested = |depth: usize| [&[1][..], &vec![8; depth - 1], &[3, 0]].concat();
        assert!(Layout::decode(&nested(DEPTH_MAX)).is_some_and(|layout| layout.is_sound()));
        assert_eq!(Layout::decode(&nested(DEPTH_MAX + 1)), None, "too deep");
        assert_eq!(Layout::decode(&[255, 255, 255, 255, 15]), None, "more fields than bytes");
    }

    #[test]
    fn bytes_split_into_their_columns() {
        let bytes = [1, 2, 1, 0, 0, 0, 0x81, 1, 3, 2, b'h', b'i', b'k', 0, 1, 4, 1, 7, 1, b'x', 1, 0, 9, 9];
        let mut parts = Vec::new();
        assert!(split(&every_field(), &bytes, &mut parts));
        let expected = [
            Part::Number(0x0102),
            Part::Number(1),
            Part::Number(129),
            Part::Number((-2_i64).cast_unsigned()),
            Part::Bytes(b"hi"),
            Part::Bytes(b"k\0"),
            Part::Bytes(&[1, 4]),
            Part::Bytes(&[1, 7, 1, b'x']),
            Part::Bytes(&[1, 0]),
            Part::Bytes(&[9, 9]),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn bytes_that_break_off_or_go_on_do_not_split() {
        let fields = [Field::BigEndian(8), Field::Prefixed];
        assert!(split(&fields, &[0, 0, 0, 0, 0, 0, 0, 1, 0], &mut Vec::new()));
        assert!(!split(&fields, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0], &mut Vec::new()));
        assert!(!split(&fields, &[0, 0, 0, 0, 0, 0, 0, 1], &mut Vec::new()));
        assert!(!split(&[Field::Terminated(0)], b"no end", &mut Vec::new()));
        let empty = Field::Sequence(Box::new(Field::Group(vec![])));
        assert!(!split(&[empty], &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F], &mut Vec::new()), "an endless count of nothing");
    }

    #[test]
    fn numbers_that_are_written_longer_than_they_are_do_not_split() {
        for field in [Field::Varint, Field::ZigZag, Field::Prefixed] {
            assert!(split(std::slice::from_ref(&field), &[0], &mut Vec::new()));
            assert!(!split(std::slice::from_ref(&field), &[0x80, 0], &mut Vec::new()), "{field:?}");
        }
        assert!(split(&[Field::Varint], &[0x80, 1], &mut Vec::new()));
    }

    /// A list of lists of nothing was counted to the end, list by list: hours for a value of this length.
    #[test]
    fn lists_of_lists_of_nothing_take_no_longer_than_their_bytes() {
        let nothing = || Box::new(Field::Sequence(Box::new(Field::Group(vec![]))));
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 1 << 20);
        (0..1 << 20).for_each(|_| put_varint(&mut bytes, 1 << 20));
        bytes.resize(bytes.len() + (1 << 20), 0);
        assert!(split(&[Field::Sequence(nothing()), Field::Rest], &bytes, &mut Vec::new()));
        assert!(!split(&[Field::Sequence(nothing())], &bytes, &mut Vec::new()), "zeros that belong to nothing");
    }

    #[test]
    fn fold_and_unfold_are_inverse() {
        for number in [0, -1, 1, i64::MIN, i64::MAX, -77] {
            assert_eq!(unfold(fold(number)), number);
        }
        assert_eq!([0, -1, 1, -2].map(fold), [0, 1, 2, 3]);
    }
}
