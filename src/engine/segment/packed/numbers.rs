//! A column of numbers, packed into the bits of the rows.
//!
//! ```text
//! numbers := width:u8 base:varint slope:zigzag          value = base + (slope * row >> 16) + the bits of the row
//!          | 128+width:u8 count:varint value:varint{count}      value = the one that the bits of the row count to
//! ```
//!
//! The first form is a constant (no bits, no slope), a frame of reference (no slope) or a line with residuals, whichever
//! is shortest; `slope` is in 1/65536 a row, and all arithmetic wraps. The second is a dictionary. A row has `width` bits
//! of each column, one column behind the other, so that a row is found by one multiplication and lies in few cache lines.

use crate::engine::codec::{Reader, put_varint};
use crate::engine::layout::{fold, unfold};
use crate::engine::segment::residency::allocated;

/// A number in the bits of a row has at most this many of them.
const WIDTH_MAX: u32 = 64;
/// Set in `width` of a dictionary.
const DICTIONARY: u8 = 0x80;
/// Values of a dictionary, at most.
const DICTIONARY_MAX: usize = 128;
/// Bytes behind the bits, so that any number can be read by reading whole words.
const PADDING: usize = 9;

/// The bits of all rows of a block.
#[derive(Debug)]
struct Rows {
    bytes: Box<[u8]>,
    /// Bits of a row.
    stride: usize,
}

impl Rows {
    /// `None` if `bits` are not exactly those of `rows` rows.
    fn decode(rows: usize, stride: usize, bits: &[u8]) -> Option<Self> {
        if bits.len() != (rows * stride).div_ceil(8) {
            return None;
        }
        let mut bytes = Vec::with_capacity(bits.len() + PADDING);
        bytes.extend_from_slice(bits);
        bytes.resize(bits.len() + PADDING, 0);
        Some(Self { bytes: bytes.into_boxed_slice(), stride })
    }

    /// The bits that a row has of a column; it has at least one.
    #[inline(always)]
    fn read(&self, row: usize, column: &Numbers) -> u64 {
        let bit = row.wrapping_mul(self.stride).wrapping_add(column.at as usize);
        let (word, beyond) = self.bytes[bit / 8..].split_first_chunk().expect("padded behind the last row");
        let low = u64::from_le_bytes(*word) >> (bit % 8);
        let mask = u64::MAX >> (WIDTH_MAX - u32::from(column.width));
        if mask <= u64::MAX >> 8 || bit.is_multiple_of(8) {
            return low & mask;
        }
        let beyond = u64::from(beyond.first().copied().unwrap_or_default());
        (low | beyond << (64 - bit % 8)) & mask
    }
}

/// All numbers of a block: the columns of them, and the bits of the rows. A column is named by its place.
#[derive(Debug)]
pub(super) struct Grid {
    columns: Box<[Numbers]>,
    /// The dictionaries of all columns, one behind the other.
    values: Box<[u64]>,
    rows: Rows,
    /// Number of rows.
    len: usize,
}

/// The columns of a grid, while those before the bits of the rows are read.
#[derive(Debug, Default)]
pub(super) struct GridHead {
    columns: Vec<Numbers>,
    values: Vec<u64>,
}

impl GridHead {
    /// Reads a column; its bits come behind those of the columns before it. Answers its place.
    pub(super) fn decode(&mut self, reader: &mut Reader<'_>) -> Option<usize> {
        let tag = reader.u8()?;
        let width = u32::from(tag & !DICTIONARY);
        (width <= WIDTH_MAX).then_some(())?;
        let form = if tag & DICTIONARY == 0 {
            Form::Line { base: reader.varint()?, slope: unfold(reader.varint()?) }
        } else {
            self.decode_dictionary(reader, width)?
        };
        let at = u32::try_from(self.stride()).ok()?;
        self.columns.push(Numbers { at, width: width as u8, form });
        Some(self.columns.len() - 1)
    }

    fn decode_dictionary(&mut self, reader: &mut Reader<'_>, width: u32) -> Option<Form> {
        let count = usize::try_from(reader.varint()?).ok().filter(|count| (1..=DICTIONARY_MAX).contains(count))?;
        let start = u32::try_from(self.values.len()).ok()?;
        for _ in 0..count {
            self.values.push(reader.varint()?);
        }
        // Rows without bits all have the first one.
        let first = self.values[start as usize];
        Some(if width == 0 {
            Form::Line { base: first, slope: 0 }
        } else {
            Form::Dictionary { start, count: count as u32 }
        })
    }

    /// Bits of a row.
    fn stride(&self) -> usize {
        self.columns.last().map_or(0, |column| column.at as usize + usize::from(column.width))
    }

    /// `None` if `bits` are not exactly those of `len` rows of these columns.
    pub(super) fn grid(self, len: usize, bits: &[u8]) -> Option<Grid> {
        let rows = Rows::decode(len, self.stride(), bits)?;
        Some(Grid { columns: self.columns.into(), values: self.values.into(), rows, len })
    }
}

impl Grid {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of a row; what a dictionary does not have is refused once, by [`Self::is_sound`].
    #[inline(always)]
    pub(super) fn get(&self, column: usize, row: usize) -> u64 {
        self.number(&self.columns[column], row)
    }

    #[inline(always)]
    fn number(&self, column: &Numbers, row: usize) -> u64 {
        match column.form {
            Form::Line { base, slope } => {
                let on_line = base.wrapping_add(line(slope, row));
                if column.width == 0 { on_line } else { on_line.wrapping_add(self.rows.read(row, column)) }
            }
            Form::Dictionary { start, .. } => self.values[(u64::from(start) + self.rows.read(row, column)) as usize],
        }
    }

    /// The numbers of a column.
    #[inline]
    pub(super) fn each(&self, column: usize) -> impl Iterator<Item = u64> {
        let column = &self.columns[column];
        (0..self.len).map(
            #[inline(always)]
            move |row| self.number(column, row),
        )
    }

    /// The first number of a column, if each of the others is one more than the one before.
    pub(super) fn consecutive(&self, column: usize) -> Option<u64> {
        match self.columns[column] {
            Numbers { width: 0, form: Form::Line { base, slope: ONE }, .. } => {
                base.checked_add(self.len as u64).map(|_| base)
            }
            _ => None,
        }
    }

    /// The number that all rows have in a column, if its form says so.
    pub(super) fn constant(&self, column: usize) -> Option<u64> {
        match self.columns[column] {
            Numbers { width: 0, form: Form::Line { base, slope: 0 }, .. } => Some(base),
            _ => None,
        }
    }

    /// Whether every row has a number in every column.
    pub(super) fn is_sound(&self) -> bool {
        self.columns.iter().all(|column| match column.form {
            Form::Line { .. } => true,
            Form::Dictionary { count, .. } => (0..self.len).all(|row| self.rows.read(row, column) < count.into()),
        })
    }

    pub(super) fn resident_bytes(&self) -> usize {
        let parts = [size_of_val(&*self.columns), size_of_val(&*self.values), self.rows.bytes.len()];
        parts.map(allocated).iter().sum()
    }
}

/// How a column of numbers is stored.
#[derive(Debug)]
struct Numbers {
    /// The first bit that a row has of it, and how many.
    at: u32,
    width: u8,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Line {
        base: u64,
        slope: i64,
    },
    /// `count` of the grid's values.
    Dictionary {
        start: u32,
        count: u32,
    },
}

/// The slope of numbers in a row.
const ONE: i64 = 1 << 16;

/// How far the line has risen at a row.
#[inline]
fn line(slope: i64, row: usize) -> u64 {
    (slope.wrapping_mul(row as i64) >> 16).cast_unsigned()
}

/// Whether the numbers of a column are meant with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Unsigned,
    Signed,
}

/// A column that is to be written: the shortest form that holds its numbers, and what the rows hold of them.
#[derive(Debug)]
pub(super) struct Plan {
    head: Vec<u8>,
    width: u32,
    /// The bits of each row; none if rows have no bits of it.
    bits: Vec<u64>,
}

/// Numbers as a line and what they rise above it.
struct Line {
    base: u64,
    slope: i64,
    width: u32,
}

impl Line {
    fn through(values: &[u64], sign: Sign, slope: i64) -> Self {
        // Wrapping differences sort by size once the smallest is taken off them.
        let flip = if sign == Sign::Signed { 1 << 63 } else { 0 };
        let above = |(row, value): (usize, &u64)| value.wrapping_sub(line(slope, row)) ^ flip;
        let rises = values.iter().enumerate().map(above);
        let (least, largest) = rises.fold((u64::MAX, 0), |(least, largest), rise| (rise.min(least), rise.max(largest)));
        Self { base: least ^ flip, slope, width: width(largest.wrapping_sub(least)) }
    }

    fn or_narrower(self, other: Self, rows: usize) -> Self {
        if other.bytes(rows) < self.bytes(rows) { other } else { self }
    }

    fn head(&self) -> Vec<u8> {
        let mut head = vec![self.width as u8];
        put_varint(&mut head, self.base);
        put_varint(&mut head, fold(self.slope));
        head
    }

    /// What it takes in a block.
    fn bytes(&self, rows: usize) -> usize {
        self.head().len() + (self.width as usize * rows).div_ceil(8)
    }

    fn plan(self, values: &[u64]) -> Plan {
        let above = |(row, value): (usize, &u64)| value.wrapping_sub(line(self.slope, row)).wrapping_sub(self.base);
        let bits = if self.width == 0 { Vec::new() } else { values.iter().enumerate().map(above).collect() };
        Plan { head: self.head(), width: self.width, bits }
    }
}

/// Slots of [`Distinct`]: a power of two, and more than twice the values.
const SLOTS: usize = 512;

/// The different numbers among some, each with the index at which it was first met.
struct Distinct {
    values: Vec<u64>,
    /// By hash: one more than the index of a value, or zero.
    slots: [u16; SLOTS],
}

impl Default for Distinct {
    fn default() -> Self {
        Self { values: Vec::new(), slots: [0; SLOTS] }
    }
}

impl Distinct {
    /// There is a free slot as long as the caller stops at [`DICTIONARY_MAX`] values.
    fn index(&mut self, value: u64) -> usize {
        let mut slot = (value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize;
        loop {
            match usize::from(self.slots[slot]) {
                0 => {
                    self.values.push(value);
                    self.slots[slot] = self.values.len() as u16;
                    return self.values.len() - 1;
                }
                next if self.values[next - 1] == value => return next - 1,
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }

    /// Sorts the values, and answers where each index is then.
    fn sort(&mut self) -> Vec<u64> {
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_unstable_by_key(|index| self.values[*index]);
        let mut places = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(index, place)| places[*index] = place);
        self.values.sort_unstable();
        places
    }
}

impl Plan {
    /// The shortest form for at least one number.
    pub(super) fn choose(values: &[u64], sign: Sign) -> Self {
        let straight = Line::through(values, sign, 0);
        let shortest = match slope(values) {
            Some(slope) if slope != 0 && straight.width > 0 => {
                straight.or_narrower(Line::through(values, sign, slope), values.len())
            }
            _ => straight,
        };
        let bytes_max = shortest.bytes(values.len());
        let dictionary = if shortest.width < 2 { None } else { Self::dictionary(values, bytes_max) };
        dictionary.unwrap_or_else(|| shortest.plan(values))
    }

    /// `None` if it is not shorter than `bytes_max`.
    fn dictionary(values: &[u64], bytes_max: usize) -> Option<Self> {
        let mut distinct = Distinct::default();
        let mut bits = Vec::with_capacity(values.len());
        for value in values {
            bits.push(distinct.index(*value) as u64);
            // Every value takes a byte in the head, besides the bits in the rows.
            let count = distinct.values.len();
            let least = count + (width(count as u64 - 1) as usize * values.len()).div_ceil(8);
            if count > DICTIONARY_MAX || least >= bytes_max {
                return None;
            }
        }
        let places = distinct.sort();
        for bits in &mut bits {
            *bits = places[*bits as usize];
        }
        let count = distinct.values.len() as u64;
        let width = width(count - 1);
        let mut head = vec![DICTIONARY | width as u8];
        put_varint(&mut head, count);
        for value in &distinct.values {
            put_varint(&mut head, *value);
        }
        let plan = Self { head, width, bits };
        (plan.bytes() < bytes_max).then_some(plan)
    }

    /// What it takes in a block.
    pub(super) fn bytes(&self) -> usize {
        self.head.len() + (self.width as usize * self.bits.len()).div_ceil(8)
    }

    /// Bits of it in a row.
    #[cfg(test)]
    pub(super) fn width(&self) -> usize {
        self.width as usize
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }
}

/// From the first number straight to the last; `None` if that is too steep to be worth a try.
fn slope(values: &[u64]) -> Option<i64> {
    let (&first, &last) = (values.first()?, values.last()?);
    let rise = i128::from(last.wrapping_sub(first).cast_signed()) << 16;
    let slope = i64::try_from(rise.checked_div(values.len() as i128 - 1)?).ok()?;
    (slope.unsigned_abs() < 1 << 48).then_some(slope)
}

/// Bits of the number.
fn width(number: u64) -> u32 {
    WIDTH_MAX - number.leading_zeros()
}

/// Appends the bits of all rows: those of one row end to end, in the order of `plans`, and the rows end to end.
pub(super) fn put_rows(plans: &[Plan], rows: usize, out: &mut Vec<u8>) {
    let plans: Vec<_> = plans.iter().filter(|plan| plan.width > 0).map(|plan| (plan.width, &*plan.bits)).collect();
    let stride: usize = plans.iter().map(|(width, _)| *width as usize).sum();
    out.reserve((rows * stride).div_ceil(8));
    // Bits that are not out yet, fewer than a word before each step.
    let (mut held, mut count) = (0_u128, 0);
    for row in 0..rows {
        for (width, bits) in &plans {
            held |= u128::from(bits[row]) << count;
            count += width;
            if count >= u64::BITS {
                out.extend_from_slice(&(held as u64).to_le_bytes());
                held >>= u64::BITS;
                count -= u64::BITS;
            }
        }
    }
    out.extend_from_slice(&held.to_le_bytes()[..count.div_ceil(8) as usize]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The columns as they are after they were written and read.
    fn round_trip(columns: &[(Vec<u64>, Sign)]) -> (Vec<Vec<u64>>, usize) {
        let rows = columns[0].0.len();
        let plans: Vec<_> = columns.iter().map(|(values, sign)| Plan::choose(values, *sign)).collect();
        let heads: Vec<u8> = plans.iter().flat_map(|plan| plan.head().to_vec()).collect();
        let mut bits = Vec::new();
        put_rows(&plans, rows, &mut bits);
        let (mut reader, mut head) = (Reader::new(&heads), GridHead::default());
        for place in 0..columns.len() {
            assert_eq!(head.decode(&mut reader), Some(place));
        }
        assert!(reader.is_empty());
        let stride = head.stride();
        let grid = head.grid(rows, &bits).expect("as many bits as the heads say");
        assert!(grid.is_sound());
        ((0..columns.len()).map(|column| grid.each(column).collect()).collect(), stride)
    }

    fn stride(values: impl IntoIterator<Item = u64>, sign: Sign) -> usize {
        let values: Vec<_> = values.into_iter().collect();
        let (read, stride) = round_trip(&[(values.clone(), sign)]);
        assert_eq!(read, [values]);
        stride
    }

    #[test]
    fn the_shortest_form_is_chosen() {
        assert_eq!(stride([7; 256], Sign::Unsigned), 0, "a constant");
        assert_eq!(stride((0..256).map(|n| u64::MAX - 10 + n * 7 % 4), Sign::Unsigned), 2, "a frame of reference");
        assert_eq!(stride((0..256).map(|n| 1_000 + n), Sign::Unsigned), 0, "a line");
        assert_eq!(
            stride((0..256).map(|n| 5_000_000 - n * 1000 + n * 7919 % 400), Sign::Unsigned),
            10,
            "around a line"
        );
        assert_eq!(stride((0..256).map(|n| [3, 1 << 60, 77][n % 3]), Sign::Unsigned), 2, "a dictionary");
        assert_eq!(stride((0..256).map(|n| n % 2 * u64::MAX), Sign::Signed), 1, "0 and -1");
        let random = (0..256_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        assert_eq!(stride(random, Sign::Unsigned), 64, "no order at all");
    }

    #[test]
    fn a_dictionary_that_lacks_a_number_is_not_sound() {
        let grid = |len: usize, bits: &[u8]| {
            let mut head = GridHead::default();
            head.decode(&mut Reader::new(&[DICTIONARY | 2, 3, 5, 6, 7])).expect("a column");
            head.grid(len, bits)
        };
        assert!(grid(3, &[0b11_10_01_00]).expect("three rows of two bits").is_sound());
        assert!(!grid(4, &[0b11_10_01_00]).expect("four rows of two bits").is_sound());
        assert!(grid(5, &[0]).is_none());
    }

    #[test]
    fn heads_that_break_off_or_overreach_are_refused() {
        for bytes in
            [&[65][..], &[1], &[1, 0x80], &[DICTIONARY | 1, 0], &[DICTIONARY | 1, 2, 9], &[DICTIONARY | 1, 129]]
        {
            assert_eq!(GridHead::default().decode(&mut Reader::new(bytes)), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn every_number_comes_back(
            columns in (1..40_usize).prop_flat_map(|rows| {
                let numbers = prop_oneof![any::<u64>(), 0..300_u64, Just(u64::MAX), Just(1 << 63)];
                let sign = prop_oneof![Just(Sign::Unsigned), Just(Sign::Signed)];
                proptest::collection::vec((proptest::collection::vec(numbers, rows), sign), 1..5)
            })
        ) {
            let (read, _) = round_trip(&columns);
            prop_assert_eq!(read, columns.into_iter().map(|(values, _)| values).collect::<Vec<_>>());
        }
    }
}
