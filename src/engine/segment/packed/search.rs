//! Finding a key among the rows of a block without rendering the keys that are passed by.
//!
//! Most keys of a block begin alike; what comes behind is often a number, in bytes or in decimal digits. A search compares
//! the beginning once, then looks for the number as `heads.rs` does, and compares whole keys only among equal numbers.
//! Where it is no number, the heads of some keys are kept: they say between which two of them a key lies, so that few
//! others, each of which lies elsewhere in memory, are compared.

use std::cmp::Ordering;
use std::ops::Range;

use super::{Cells, Column, Data, Packed, Rendering, Text};
use crate::engine::segment::heads::{bisect, common_prefix_len, head_u64, rank, rank_of_head};
use crate::engine::segment::residency::allocated;

/// Of so many keys that are no numbers, one has its head kept.
const SAMPLED: usize = 4;

/// What can be known about the keys of a block before any of them is looked for.
#[derive(Debug)]
pub(super) struct Search {
    /// What every key begins with.
    prefix: Box<[u8]>,
    head: Head,
}

/// What comes behind the prefix, as a number that sorts as the keys do.
#[derive(Debug)]
enum Head {
    /// Nothing of the kind: the heads of the keys of every [`SAMPLED`]th row.
    Sampled(Box<[u64]>),
    /// These key columns: numbers of `width` bytes together.
    Binary { columns: Range<usize>, width: usize },
    /// The number in the column at `place`, in `width` decimal digits.
    Decimal { place: usize, width: usize },
}

impl Search {
    pub(super) fn none() -> Self {
        Self { prefix: Box::default(), head: Head::Sampled(Box::default()) }
    }

    pub(super) fn of(block: &Packed) -> Self {
        let (mut prefix, keys) = (Vec::new(), &block.columns[..block.keys]);
        let constant = keys.iter().take_while(|column| column.is_constant(&block.cells)).count();
        block.render(&keys[..constant], 0, &mut prefix);
        let number = match keys.get(constant) {
            Some(Column { data: Data::Numbers(_), rendering: Rendering::BigEndian(_) }) => {
                Some(Self::binary(keys, constant))
            }
            Some(Column { data: Data::Texts(place), rendering: Rendering::Verbatim }) => {
                let texts = &block.cells.texts[usize::from(*place)];
                texts.leading_number(&block.cells.grid).map(|(beginning, place, width)| {
                    prefix.extend_from_slice(beginning);
                    Head::Decimal { place, width }
                })
            }
            _ => None,
        };
        match number {
            Some(head) => Self { prefix: prefix.into(), head },
            None => Self::sampled(block),
        }
    }

    /// Keys are in order, so what the first and the last have in common at the front, all have.
    fn sampled(block: &Packed) -> Self {
        let (mut prefix, mut key) = (Vec::new(), Vec::new());
        block.write_key(0, &mut prefix);
        block.write_key(block.len() - 1, &mut key);
        prefix.truncate(common_prefix_len(&prefix, &key));
        let head = |row| {
            block.write_key(row, &mut key);
            head_u64(&key[prefix.len()..])
        };
        let heads = (0..block.len()).step_by(SAMPLED).map(head).collect();
        Self { prefix: prefix.into(), head: Head::Sampled(heads) }
    }

    pub(super) fn resident_bytes(&self) -> usize {
        let heads = if let Head::Sampled(heads) = &self.head { allocated(size_of_val(&**heads)) } else { 0 };
        allocated(self.prefix.len()) + heads
    }

    /// As many columns of numbers as one number holds.
    fn binary(keys: &[Column], first: usize) -> Head {
        let (mut columns, mut width) = (first..first, 0);
        for column in &keys[first..] {
            match column.rendering {
                Rendering::BigEndian(more) if width + usize::from(more) <= size_of::<u64>() => {
                    width += usize::from(more);
                    columns.end += 1;
                }
                _ => break,
            }
        }
        Head::Binary { columns, width }
    }
}

impl Packed {
    /// How many rows come before `key`.
    #[inline]
    pub(in crate::engine::segment) fn rank(&self, key: &[u8]) -> usize {
        let is_before = |row: usize| self.compare(row, key) == Ordering::Less;
        let Search { prefix, head } = &self.search;
        let rest = if prefix.is_empty() {
            key
        } else {
            match key.strip_prefix(&**prefix) {
                Some(rest) => rest,
                None => return if key < &**prefix { 0 } else { self.len() },
            }
        };
        match head {
            Head::Binary { columns, width } => {
                let target = head_u64(rest) >> (64 - 8 * width);
                // A key that ends here is no larger than those that begin with it.
                let ends = rest.len() <= *width;
                rank(self.len(), |row| self.head(columns, row), target, |row| !ends && is_before(row))
            }
            Head::Decimal { place, width } => match decimal_head(rest, *width) {
                Some(target) => rank(self.len(), |row| self.number(*place, row), target, is_before),
                None => bisect(0, self.len(), is_before),
            },
            Head::Sampled(heads) => {
                let (low, high) = between(heads, head_u64(rest), self.len());
                bisect(low, high, is_before)
            }
        }
    }

    #[inline]
    fn head(&self, columns: &Range<usize>, row: usize) -> u64 {
        self.columns[columns.clone()].iter().fold(0, |head, column| match (&column.data, column.rendering) {
            (Data::Numbers(place), Rendering::BigEndian(width)) if width < 8 => {
                head << (8 * width) | self.number(usize::from(*place), row)
            }
            (Data::Numbers(place), _) => self.number(usize::from(*place), row),
            (Data::Texts(_), _) => head,
        })
    }

    /// The row with exactly this key, or else the first with a larger one.
    #[inline]
    pub(in crate::engine::segment) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        if let Some(place) = self.sole_number()
            && let Ok(target) = key.try_into().map(u64::from_be_bytes)
        {
            if let Some(first) = self.dense {
                let row = target.checked_sub(first).ok_or(0_usize)?;
                return if row < self.len() as u64 { Ok(row as usize) } else { Err(self.len()) };
            }
            let row = rank(self.len(), |row| self.number(place, row), target, |_| false);
            let is_there = row < self.len() && self.number(place, row) == target;
            return if is_there { Ok(row) } else { Err(row) };
        }
        let row = self.rank(key);
        let is_there = row < self.len() && self.compare(row, key) == Ordering::Equal;
        if is_there { Ok(row) } else { Err(row) }
    }

    /// The column of numbers that are the keys, whole.
    #[inline]
    pub(super) fn sole_number(&self) -> Option<usize> {
        match &self.columns[..self.keys] {
            [Column { rendering: Rendering::BigEndian(8), data: Data::Numbers(place) }] => Some(usize::from(*place)),
            _ => None,
        }
    }

    /// How the key of a row stands to `key`.
    #[inline]
    fn compare(&self, row: usize, key: &[u8]) -> Ordering {
        let mut rest = Rest { bytes: key, ordering: Ordering::Equal };
        for column in &self.columns[..self.keys] {
            column.compare(&self.cells, row, &mut rest);
            if rest.ordering != Ordering::Equal {
                return rest.ordering;
            }
        }
        if rest.bytes.is_empty() { Ordering::Equal } else { Ordering::Less }
    }
}

impl Column {
    #[inline]
    fn compare(&self, cells: &Cells, row: usize, rest: &mut Rest<'_>) {
        match self.data {
            Data::Numbers(place) => match self.rendering {
                Rendering::BigEndian(width) => rest.take_number(cells.grid.get(place.into(), row), width.into()),
                _ => self.compare_rendered(cells, row, rest),
            },
            Data::Texts(place) if self.rendering == Rendering::Verbatim => match cells.text(place, row).get() {
                Text::Whole(text) => rest.take(text.as_bytes()),
                Text::Bytes(bytes) => rest.take(bytes),
                Text::Pieces(pieces) => pieces.each_bytes(|piece| rest.take(piece)),
                Text::Coded(coded) => coded.each(|piece| rest.take(piece.as_bytes())),
            },
            Data::Texts(_) => self.compare_rendered(cells, row, rest),
        }
    }

    /// For renderings whose order is not that of what they render, which keys hardly ever have.
    fn compare_rendered(&self, cells: &Cells, row: usize, rest: &mut Rest<'_>) {
        let mut rendered = Vec::new();
        self.render(cells, row, &mut rendered);
        rest.take(&rendered);
    }
}

/// Between which of `len` rows a key with the head `target` belongs, if every [`SAMPLED`]th of them has one of `heads`.
#[inline]
fn between(heads: &[u64], target: u64, len: usize) -> (usize, usize) {
    let below = rank_of_head(heads.len(), |sample| heads[sample], target);
    let low = below.checked_sub(1).map_or(0, |sample| sample * SAMPLED + 1);
    // Keys with the same head can be smaller or larger.
    let same = heads[below..].partition_point(|head| *head == target);
    (low, len.min((below + same) * SAMPLED))
}

/// What is left of the key that is compared, and how the pieces so far stand to it.
struct Rest<'a> {
    bytes: &'a [u8],
    ordering: Ordering,
}

impl Rest<'_> {
    /// The same for a number of `width` bytes, most significant first.
    #[inline]
    fn take_number(&mut self, number: u64, width: usize) {
        if self.ordering != Ordering::Equal {
            return;
        }
        self.ordering = number.cmp(&(head_u64(self.bytes) >> (64 - 8 * width)));
        match self.bytes.get(width..) {
            Some(rest) => self.bytes = rest,
            // What is missing counted as zeros, and the longer one is the larger.
            None => self.ordering = self.ordering.then(Ordering::Greater),
        }
    }

    /// Compares one piece, as long as those before it were equal.
    #[inline]
    fn take(&mut self, piece: &[u8]) {
        if self.ordering != Ordering::Equal {
            return;
        }
        match self.bytes.strip_prefix(piece) {
            Some(rest) => self.bytes = rest,
            // Where one begins with the other, the longer piece is the larger.
            None => self.ordering = piece.cmp(self.bytes),
        }
    }
}

/// The number that the first `width` bytes are in decimal; `None` if they are none, or fewer.
fn decimal_head(bytes: &[u8], width: usize) -> Option<u64> {
    bytes
        .get(..width)?
        .iter()
        .try_fold(0_u64, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}
