//! The entries of one data block, column by column: the layout `columns`.
//!
//! ```text
//! raw    := rows:varint keys:varint columns:varint column{columns} bits
//! column := rendering numbers                      rendering 1 w:u8, 2 w:u8, 3 or 4 (see [`Rendering`])
//!         | rendering texts                        rendering 5 or 6
//! bits   := the bits of all numbers (numbers.rs), row after row, then zeros to the next byte
//! ```
//!
//! The first `keys` columns make the key of an entry, the others its value: rendered one behind the other, they are the
//! bytes that were stored. A block in this layout holds settled entries only, values that every reader sees, in the order
//! of their keys. Every row is addressed directly: nothing is unpacked to reach it, and in memory a block is not much
//! longer than in the file; put together, its entries are at most as long as any block may be. The pass that checks a
//! block when it is first read looks at every number and every key; after it nothing about an entry can fail.

mod builder;
mod numbers;
mod phrases;
mod search;
mod symbols;
#[cfg(test)]
mod tests;
mod text_plan;
mod texts;

use super::block::Lookup;
use super::frame::{Flaw, RAW_BYTES_MAX};
use crate::engine::batch::KEY_BYTES_MAX;
use crate::engine::codec::{Reader, put_varint};
use crate::engine::layout::{COLUMNS_MAX, fold};
use crate::engine::segment::residency::allocated;
use crate::engine::stored::Stored;

pub(super) use builder::{PackedBuilder, Run};
use numbers::{Grid, GridHead};
use search::Search;
use texts::Texts;
pub(crate) use texts::{Text, TextCell};

/// Rows of a block, at most: a row is found by its number, so this is also how far a search goes.
pub(super) const ROWS_MAX: usize = 512;

/// Bytes of a number, however it is written.
const VARINT_BYTES_MAX: usize = 10;

/// A decoded block. Sound by construction: it holds at least one entry, and they are in order.
#[derive(Debug)]
pub(crate) struct Packed {
    /// Columns of the key.
    keys: usize,
    /// Of those, how many come first and are the same for all rows, and how many bytes they make.
    constant: (usize, usize),
    columns: Box<[Column]>,
    cells: Cells,
    search: Search,
    /// The first key, if keys are one number of eight bytes and each is one more than the one before.
    dense: Option<u64>,
}

/// What the columns hold.
#[derive(Debug)]
struct Cells {
    grid: Grid,
    texts: Box<[Texts]>,
}

#[derive(Debug)]
struct Column {
    rendering: Rendering,
    data: Data,
}

/// The place among the numbers of a block, or among its texts.
#[derive(Clone, Copy, Debug)]
enum Data {
    Numbers(u16),
    Texts(u16),
}

/// How a column is written in a key or value. The tags are on disk: do not renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rendering {
    /// 1, width: a number, most significant byte first.
    BigEndian(u8),
    /// 2, width: a number, least significant byte first.
    LittleEndian(u8),
    /// 3: a number as LEB128.
    Varint,
    /// 4: a signed number, folded, as LEB128.
    ZigZag,
    /// 5: the length as LEB128, and the bytes.
    Prefixed,
    /// 6: the bytes.
    Verbatim,
}

/// One entry of a block: its value, column by column.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    block: &'a Packed,
    index: usize,
}

impl Packed {
    /// Checks all there is to check inside one block.
    pub(super) fn decode(raw: &[u8]) -> Result<Self, Flaw> {
        let mut reader = Reader::new(raw);
        let flaw = |found: &str| Flaw::new("block of columns", "rows, columns and their bits", found);
        let mut number = |max: usize| reader.varint().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= max);
        let head = (|| Some((number(ROWS_MAX)?, number(COLUMNS_MAX)?, number(COLUMNS_MAX)?)))();
        let (len, keys, count) = head.ok_or_else(|| flaw("no head"))?;
        if len == 0 || keys == 0 || keys > count {
            return Err(flaw(&format!("{len} rows and {keys} of {count} columns for keys")));
        }
        let (mut numbers, mut texts) = (GridHead::default(), Vec::new());
        let columns = (0..count).map(|_| Column::decode(&mut reader, &mut numbers, &mut texts));
        let columns: Box<[_]> = columns.collect::<Option<_>>().ok_or_else(|| flaw("a column that is none"))?;
        let bits = reader.bytes(reader.remaining()).unwrap_or_default();
        let grid = numbers
            .grid(len, bits)
            .ok_or_else(|| flaw(&format!("{} bytes of bits that are not {len} rows", bits.len())))?;
        let mut cells = Cells { grid, texts: texts.into() };
        if !cells.grid.is_sound() || !columns.iter().all(|column| column.is_sound(&cells)) {
            return Err(flaw("a row without a value in a column"));
        }
        // A long phrase that all rows share takes few bytes in a file, and as many as it has for every row that is read.
        let rendered: usize = columns.iter().map(|column| column.rendered_bytes_max(&cells)).sum();
        if rendered > RAW_BYTES_MAX {
            return Err(flaw(&format!("entries of up to {rendered} bytes")));
        }
        cells.texts.iter_mut().for_each(|texts| texts.fix_lengths(&cells.grid));
        let mut block = Self { keys, constant: (0, 0), columns, cells, search: Search::none(), dense: None };
        block.check_keys()?;
        block.constant = block.constant_columns();
        block.search = Search::of(&block);
        block.dense = block.sole_number().and_then(|place| block.cells.grid.consecutive(place));
        Ok(block)
    }

    /// At least one column varies, or keys would not differ.
    fn constant_columns(&self) -> (usize, usize) {
        let count = self.columns[..self.keys - 1].iter().take_while(|column| column.is_constant(&self.cells)).count();
        let mut key = Vec::new();
        self.render(&self.columns[..count], 0, &mut key);
        (count, key.len())
    }

    fn check_keys(&self) -> Result<(), Flaw> {
        let (mut last, mut key) = (Vec::new(), Vec::new());
        for row in 0..self.len() {
            self.write_key(row, &mut key);
            if key.len() > KEY_BYTES_MAX {
                return Err(Flaw::new("length of a key", format!("at most {KEY_BYTES_MAX}"), key.len()));
            }
            if row > 0 && last >= key {
                return Err(Flaw::new("order of entries", "ascending keys", format!("entry {row} before its place")));
            }
            std::mem::swap(&mut last, &mut key);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.cells.grid.len()
    }

    /// Replaces `key` with the key of a row.
    #[inline]
    pub(super) fn write_key(&self, row: usize, key: &mut Vec<u8>) {
        key.clear();
        self.render(&self.columns[..self.keys], row, key);
    }

    /// What differs from key to key: the columns from the first number on, and the bytes before them. If only the last
    /// `tail` bytes are wanted, the columns that make exactly these, and no bytes before them, where there are any.
    pub(super) fn varying(&self, tail: Option<usize>) -> (usize, usize) {
        let width = |columns: &[Column]| {
            columns.iter().map(|column| column.rendering.fixed_width().map(usize::from)).sum::<Option<usize>>()
        };
        let first =
            tail.and_then(|tail| (0..self.keys).find(|first| width(&self.columns[*first..self.keys]) == Some(tail)));
        first.map_or(self.constant, |first| (first, 0))
    }

    /// The column of numbers that make the last `tail` bytes of every key.
    #[inline]
    pub(super) fn tail_number(&self, tail: usize) -> Option<usize> {
        match &self.columns[self.keys - 1] {
            Column { rendering: Rendering::BigEndian(width), data: Data::Numbers(place) }
                if usize::from(*width) == tail =>
            {
                Some(usize::from(*place))
            }
            _ => None,
        }
    }

    /// The number of a row in the column at `place`.
    #[inline(always)]
    pub(super) fn number(&self, place: usize, row: usize) -> u64 {
        self.cells.grid.get(place, row)
    }

    /// Makes the key of another row of this block that of `row`; see [`Self::varying`].
    #[inline(always)]
    pub(super) fn rewrite_key(&self, row: usize, (columns, bytes): (usize, usize), key: &mut Vec<u8>) {
        key.truncate(bytes);
        self.render(&self.columns[columns..self.keys], row, key);
    }

    /// Replaces `value` with the value of a row.
    pub(super) fn write_value(&self, row: usize, value: &mut Vec<u8>) {
        value.clear();
        self.render(&self.columns[self.keys..], row, value);
    }

    /// Whether values have any bytes.
    #[inline]
    pub(super) fn has_values(&self) -> bool {
        self.keys < self.columns.len()
    }

    /// The value of a row. Entries of most indexes are keys alone.
    #[inline]
    pub(super) fn value(&self, row: usize) -> Stored<'_> {
        if self.has_values() { Stored::Row(self.row(row)) } else { Stored::Bytes(&[]) }
    }

    /// As `Block::lookup`: settled entries are seen at every sequence number.
    #[inline]
    pub(super) fn lookup(&self, key: &[u8]) -> Lookup<'_> {
        match self.find(key) {
            Ok(row) => Lookup::Found(Some(self.value(row))),
            Err(row) if row == self.len() => Lookup::Before,
            Err(_) => Lookup::Absent,
        }
    }

    /// The value of `key`, if keys are numbers in a row and it is among them: the answer that needs no search.
    #[inline]
    pub(super) fn get_dense(&self, key: &[u8]) -> Option<Stored<'_>> {
        let row = u64::from_be_bytes(key.try_into().ok()?).wrapping_sub(self.dense?);
        (row < self.len() as u64).then(|| self.value(row as usize))
    }

    #[inline]
    fn row(&self, index: usize) -> Row<'_> {
        Row { block: self, index }
    }

    #[inline]
    fn render(&self, columns: &[Column], row: usize, out: &mut Vec<u8>) {
        for column in columns {
            column.render(&self.cells, row, out);
        }
    }

    /// Memory it takes.
    pub(super) fn resident_bytes(&self) -> u64 {
        let texts: usize = self.cells.texts.iter().map(Texts::resident_bytes).sum();
        let parts = [size_of::<Self>(), size_of_val(&*self.columns), size_of_val(&*self.cells.texts)];
        let parts: usize = parts.map(allocated).iter().sum();
        (parts + texts + self.cells.grid.resident_bytes() + self.search.resident_bytes()) as u64
    }
}

impl<'a> Row<'a> {
    /// Appends the value as the bytes that were stored.
    #[inline]
    pub fn write_to(&self, out: &mut Vec<u8>) {
        self.block.render(&self.block.columns[self.block.keys..], self.index, out);
    }

    /// Number of columns of the value.
    pub(crate) fn len(&self) -> usize {
        self.block.columns.len() - self.block.keys
    }

    #[inline(always)]
    fn column(&self, index: usize) -> Option<&'a Column> {
        self.block.columns.get(self.block.keys.wrapping_add(index))
    }

    #[inline(always)]
    fn number(&self, place: u16) -> u64 {
        self.block.cells.grid.get(place.into(), self.index)
    }

    /// A number as a column of the value, and how many bytes it takes, if that is how it is written.
    #[inline(always)]
    pub(crate) fn big_endian(&self, index: usize) -> Option<(u64, u8)> {
        match self.column(index)? {
            Column { rendering: Rendering::BigEndian(width), data: Data::Numbers(place) } => {
                Some((self.number(*place), *width))
            }
            _ => None,
        }
    }

    /// The same of one that is written least significant byte first.
    pub(crate) fn little_endian(&self, index: usize) -> Option<(u64, u8)> {
        match self.column(index)? {
            Column { rendering: Rendering::LittleEndian(width), data: Data::Numbers(place) } => {
                Some((self.number(*place), *width))
            }
            _ => None,
        }
    }

    /// The same of one that is written as a varint.
    #[inline(always)]
    pub(crate) fn varint(&self, index: usize) -> Option<u64> {
        match self.column(index)? {
            Column { rendering: Rendering::Varint, data: Data::Numbers(place) } => Some(self.number(*place)),
            _ => None,
        }
    }

    /// The same of one with a sign.
    #[inline(always)]
    pub(crate) fn zigzag(&self, index: usize) -> Option<i64> {
        match self.column(index)? {
            Column { rendering: Rendering::ZigZag, data: Data::Numbers(place) } => {
                Some(self.number(*place).cast_signed())
            }
            _ => None,
        }
    }

    /// A column of what is written behind its length.
    #[inline(always)]
    pub(crate) fn prefixed(&self, index: usize) -> Option<TextCell<'a>> {
        self.text(index, Rendering::Prefixed)
    }

    /// A column of what is written without one.
    pub(crate) fn verbatim(&self, index: usize) -> Option<TextCell<'a>> {
        self.text(index, Rendering::Verbatim)
    }

    #[inline(always)]
    fn text(&self, index: usize, expected: Rendering) -> Option<TextCell<'a>> {
        match self.column(index)? {
            Column { rendering, data: Data::Texts(place) } if *rendering == expected => {
                Some(self.block.cells.text(*place, self.index))
            }
            _ => None,
        }
    }
}

impl Cells {
    #[inline(always)]
    fn text(&self, place: u16, row: usize) -> TextCell<'_> {
        self.texts[usize::from(place)].cell(&self.grid, row)
    }
}

impl Column {
    fn decode(reader: &mut Reader<'_>, numbers: &mut GridHead, texts: &mut Vec<Texts>) -> Option<Self> {
        let rendering = Rendering::decode(reader)?;
        let data = match rendering {
            Rendering::Prefixed | Rendering::Verbatim => {
                texts.push(Texts::decode(reader, numbers)?);
                Data::Texts(u16::try_from(texts.len() - 1).ok()?)
            }
            _ => Data::Numbers(u16::try_from(numbers.decode(reader)?).ok()?),
        };
        Some(Self { rendering, data })
    }

    fn is_constant(&self, cells: &Cells) -> bool {
        match self.data {
            Data::Numbers(place) => cells.grid.constant(place.into()).is_some(),
            Data::Texts(place) => cells.texts[usize::from(place)].constant().is_some(),
        }
    }

    /// Whether every row has a value that can be rendered.
    fn is_sound(&self, cells: &Cells) -> bool {
        match self.data {
            Data::Texts(place) => cells.texts[usize::from(place)].is_sound(&cells.grid),
            Data::Numbers(place) => {
                let width = self.rendering.fixed_width().map_or(64, |width| u32::from(width) * 8);
                let fits = |number: u64| number.checked_shr(width).is_none_or(|above| above == 0);
                match cells.grid.constant(place.into()) {
                    Some(number) => fits(number),
                    None => cells.grid.each(place.into()).all(fits),
                }
            }
        }
    }

    /// What the bytes of all rows are not longer than together.
    fn rendered_bytes_max(&self, cells: &Cells) -> usize {
        let rows = cells.grid.len();
        match self.data {
            Data::Numbers(_) => rows * VARINT_BYTES_MAX,
            Data::Texts(place) => cells.texts[usize::from(place)].rendered_bytes_max(rows) + rows * VARINT_BYTES_MAX,
        }
    }

    #[inline(always)]
    fn render(&self, cells: &Cells, row: usize, out: &mut Vec<u8>) {
        match self.data {
            Data::Numbers(place) => self.rendering.put_number(cells.grid.get(place.into(), row), out),
            Data::Texts(place) => self.rendering.put_text(&cells.text(place, row).get(), out),
        }
    }
}

impl Rendering {
    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let width = |reader: &mut Reader<'_>| reader.u8().filter(|width| (1..=8).contains(width));
        Some(match reader.u8()? {
            1 => Self::BigEndian(width(reader)?),
            2 => Self::LittleEndian(width(reader)?),
            3 => Self::Varint,
            4 => Self::ZigZag,
            5 => Self::Prefixed,
            6 => Self::Verbatim,
            _ => return None,
        })
    }

    fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::BigEndian(width) => out.extend_from_slice(&[1, width]),
            Self::LittleEndian(width) => out.extend_from_slice(&[2, width]),
            Self::Varint => out.push(3),
            Self::ZigZag => out.push(4),
            Self::Prefixed => out.push(5),
            Self::Verbatim => out.push(6),
        }
    }

    #[inline]
    fn fixed_width(self) -> Option<u8> {
        match self {
            Self::BigEndian(width) | Self::LittleEndian(width) => Some(width),
            _ => None,
        }
    }

    #[inline(always)]
    fn put_number(self, number: u64, out: &mut Vec<u8>) {
        match self {
            // The usual widths, in one store each.
            Self::BigEndian(8) => out.extend_from_slice(&number.to_be_bytes()),
            Self::BigEndian(4) => out.extend_from_slice(&(number as u32).to_be_bytes()),
            Self::BigEndian(2) => out.extend_from_slice(&(number as u16).to_be_bytes()),
            Self::BigEndian(1) => out.push(number as u8),
            Self::BigEndian(width) => out.extend_from_slice(&number.to_be_bytes()[8 - usize::from(width)..]),
            Self::LittleEndian(width) => out.extend_from_slice(&number.to_le_bytes()[..usize::from(width)]),
            Self::ZigZag => put_varint(out, fold(number.cast_signed())),
            // Texts are not numbers: this is how a varint is put.
            Self::Varint | Self::Prefixed | Self::Verbatim => put_varint(out, number),
        }
    }

    fn put_text(self, text: &Text<'_>, out: &mut Vec<u8>) {
        match text {
            Text::Whole(text) => self.put_bytes(text.as_bytes(), out),
            Text::Bytes(bytes) => self.put_bytes(bytes, out),
            Text::Pieces(pieces) => {
                if self == Self::Prefixed {
                    put_varint(out, pieces.len() as u64);
                }
                pieces.append_to(out);
            }
            Text::Coded(coded) => {
                if self == Self::Prefixed {
                    put_varint(out, coded.len() as u64);
                }
                coded.each(|piece| out.extend_from_slice(piece.as_bytes()));
            }
        }
    }

    fn put_bytes(self, bytes: &[u8], out: &mut Vec<u8>) {
        if self == Self::Prefixed {
            put_varint(out, bytes.len() as u64);
        }
        out.extend_from_slice(bytes);
    }
}
