//! Collects the entries of one block of columns, and writes it if they follow the layout of their tree.
//!
//! A stray, an entry that does not follow it or is very long, parts the others: those before and those behind it are
//! blocks of their own, as long as strays are rare (see [`runs`]).

use std::ops::Range;

use super::numbers::{self, Plan, Sign};
use super::symbols::Coder;
use super::text_plan::TextPlan;
use super::{Packed, ROWS_MAX, Rendering};
use crate::engine::codec::put_varint;
use crate::engine::layout::{Field, Layout, Part, split};
use crate::engine::segment::frame::RAW_BYTES_MAX;

/// A run of entries between strays is worth a block of columns if it has at least this part of the rows there are. That
/// also bounds how many blocks strays make of one.
const RUN_SHARE: usize = 8;
/// Where entries have to part, one goes by itself that has more bytes than the longest block has for so many entries for
/// each row: every row counts as the longest text of its columns, which several entries may hold.
const ENTRY_SHARE: usize = 2;

/// Entries that may become a block of columns, in order.
#[derive(Default)]
pub(in crate::engine::segment) struct PackedBuilder {
    /// Key and value of each entry, one after the other.
    bytes: Vec<u8>,
    /// Where the key and where the value of each entry ends.
    ends: Vec<(usize, usize)>,
    /// For each column of the value, what its texts are written with. They stay from block to block.
    coders: Vec<Option<Coder>>,
}

impl PackedBuilder {
    pub(in crate::engine::segment) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(in crate::engine::segment) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether another entry of `entry_bytes` would make it a block too large: more than [`ROWS_MAX`] rows, or than
    /// `bytes_max` bytes as they come.
    pub(in crate::engine::segment) fn is_full(&self, entry_bytes: usize, bytes_max: usize) -> bool {
        self.ends.len() == ROWS_MAX || !self.is_empty() && self.bytes.len() + entry_bytes > bytes_max
    }

    /// Bytes of its entries as they came.
    pub(in crate::engine::segment) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds an entry that sorts behind all others.
    pub(in crate::engine::segment) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(in crate::engine::segment) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Key and value of the entry at `row`.
    pub(in crate::engine::segment) fn entry(&self, row: usize) -> (&[u8], &[u8]) {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let (key_end, end) = self.ends[row];
        (&self.bytes[start..key_end], &self.bytes[key_end..end])
    }

    fn entries(&self, rows: Range<usize>) -> impl Iterator<Item = (&[u8], &[u8])> {
        rows.map(|row| self.entry(row))
    }

    /// How the entries are to be written where they cannot all be one block of columns: because some do not follow the
    /// layout, or are so long that a block of rows like them could not be read.
    pub(in crate::engine::segment) fn runs(&self, layout: &Layout) -> Vec<Run> {
        let (mut parts, entry_bytes_max) = (Vec::new(), RAW_BYTES_MAX / (ENTRY_SHARE * self.len().max(1)));
        let follows = self.entries(0..self.len()).map(|(key, value)| {
            parts.clear();
            key.len() + value.len() <= entry_bytes_max
                && split(&layout.key, key, &mut parts)
                && split(&layout.value, value, &mut parts)
        });
        runs(&follows.collect::<Vec<_>>())
    }

    /// Replaces `raw` with the block of these rows; `false`, and nothing useful in `raw`, if they do not follow the layout,
    /// if their columns do not render every byte of them again, or if they are too long for a block.
    pub(in crate::engine::segment) fn write(
        &mut self,
        rows: &Range<usize>,
        layout: &Layout,
        raw: &mut Vec<u8>,
    ) -> bool {
        raw.clear();
        let mut coders = std::mem::take(&mut self.coders);
        coders.resize_with(layout.value.len(), || None);
        let is_written = self.write_columns(rows, layout, &mut coders, raw).is_some();
        self.coders = coders;
        is_written && raw.len() <= RAW_BYTES_MAX && self.reads_back(rows, raw)
    }

    fn write_columns(
        &self,
        rows: &Range<usize>,
        layout: &Layout,
        coders: &mut [Option<Coder>],
        raw: &mut Vec<u8>,
    ) -> Option<()> {
        let fields: Vec<_> = layout.key.iter().chain(&layout.value).collect();
        let parts = self.parts(rows, layout)?;
        for number in [rows.len(), layout.key.len(), fields.len()] {
            put_varint(raw, number as u64);
        }
        let mut plans = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let column = parts.iter().skip(index).step_by(fields.len());
            // Keys are compared, and so stay as they are.
            let coder = index.checked_sub(layout.key.len()).map(|value| &mut coders[value]);
            put_column(field, column, coder, raw, &mut plans)?;
        }
        numbers::put_rows(&plans, rows.len(), raw);
        Some(())
    }

    /// The parts of the entries, row after row.
    fn parts(&self, rows: &Range<usize>, layout: &Layout) -> Option<Vec<Part<'_>>> {
        let mut parts = Vec::with_capacity(rows.len() * (layout.key.len() + layout.value.len()));
        let follow = self
            .entries(rows.clone())
            .all(|(key, value)| split(&layout.key, key, &mut parts) && split(&layout.value, value, &mut parts));
        follow.then_some(parts)
    }

    fn reads_back(&self, rows: &Range<usize>, raw: &[u8]) -> bool {
        let Ok(block) = Packed::decode(raw) else { return false };
        let mut rendered = Vec::new();
        block.len() == rows.len()
            && self.entries(rows.clone()).enumerate().all(|(row, (key, value))| {
                block.write_key(row, &mut rendered);
                let is_same = rendered == key;
                block.write_value(row, &mut rendered);
                is_same && rendered == value
            })
    }
}

/// Entries one behind the other that are written alike.
#[derive(Debug, PartialEq)]
pub(in crate::engine::segment) struct Run {
    pub(in crate::engine::segment) rows: Range<usize>,
    /// By columns, and not as bytes.
    pub(in crate::engine::segment) packed: bool,
}

/// Parts entries, of which some follow their layout and others do not, into runs. What lies between strays that are close
/// to each other goes with them: where they are frequent, all of it is bytes.
fn runs(follows: &[bool]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut start = 0;
    for alike in follows.chunk_by(|left, right| left == right) {
        let rows = start..start + alike.len();
        let packed = alike[0] && alike.len() * RUN_SHARE >= follows.len();
        start = rows.end;
        match runs.last_mut() {
            Some(last) if last.packed == packed => last.rows.end = rows.end,
            _ => runs.push(Run { rows, packed }),
        }
    }
    runs
}

fn put_column<'p>(
    field: &Field,
    column: impl Iterator<Item = &'p Part<'p>>,
    coder: Option<&mut Option<Coder>>,
    raw: &mut Vec<u8>,
    plans: &mut Vec<Plan>,
) -> Option<()> {
    let (rendering, sign) = match field {
        Field::BigEndian(width) => (Rendering::BigEndian(*width), Sign::Unsigned),
        Field::LittleEndian(width) => (Rendering::LittleEndian(*width), Sign::Unsigned),
        Field::Varint => (Rendering::Varint, Sign::Unsigned),
        Field::ZigZag => (Rendering::ZigZag, Sign::Signed),
        Field::Prefixed => return put_texts(Rendering::Prefixed, column, coder, raw, plans),
        _ => return put_texts(Rendering::Verbatim, column, coder, raw, plans),
    };
    let numbers = column.map(|part| if let Part::Number(number) = part { Some(*number) } else { None });
    let plan = Plan::choose(&numbers.collect::<Option<Vec<_>>>()?, sign);
    rendering.encode(raw);
    raw.extend_from_slice(plan.head());
    plans.push(plan);
    Some(())
}

fn put_texts<'p>(
    rendering: Rendering,
    column: impl Iterator<Item = &'p Part<'p>>,
    coder: Option<&mut Option<Coder>>,
    raw: &mut Vec<u8>,
    plans: &mut Vec<Plan>,
) -> Option<()> {
    let texts = column.map(|part| if let Part::Bytes(bytes) = part { Some(*bytes) } else { None });
    let plan = TextPlan::choose(&texts.collect::<Option<Vec<_>>>()?, coder)?;
    rendering.encode(raw);
    plan.put(raw, plans);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which rows of `len` are packed, if those in `strays` do not follow: from and to, and the number of all runs.
    fn packed(len: usize, strays: impl IntoIterator<Item = usize>) -> (Vec<(usize, usize)>, usize) {
        let mut follows = vec![true; len];
        strays.into_iter().for_each(|row| follows[row] = false);
        let runs = runs(&follows);
        let ends = runs.iter().scan(0, |end, run| Some((std::mem::replace(end, run.rows.end), run.rows.start)));
        assert!(ends.into_iter().all(|(end, start)| end == start), "{runs:?} lie end to end");
        assert_eq!(runs.last().map(|run| run.rows.end), Some(len));
        let all = runs.len();
        (runs.into_iter().filter(|run| run.packed).map(|run| (run.rows.start, run.rows.end)).collect(), all)
    }

    #[test]
    fn strays_part_a_block_as_long_as_they_are_rare() {
        assert_eq!(packed(256, []), (vec![(0, 256)], 1));
        assert_eq!(packed(256, [0]), (vec![(1, 256)], 2));
        assert_eq!(packed(256, [255]), (vec![(0, 255)], 2));
        assert_eq!(packed(256, [100]), (vec![(0, 100), (101, 256)], 3));
        assert_eq!(packed(256, 100..103), (vec![(0, 100), (103, 256)], 3), "next to each other");
        assert_eq!(packed(256, [100, 120]), (vec![(0, 100), (121, 256)], 3), "close to each other");
        assert_eq!(packed(256, 0..256), (vec![], 1), "nothing else");
        assert_eq!(packed(256, (0..256).step_by(2)), (vec![], 1), "every other one");
        assert_eq!(packed(256, (0..256).step_by(32)), (vec![], 1), "frequent");
        assert_eq!(packed(256, (0..256).step_by(33)).1, 15, "as many blocks as it gets");
        assert_eq!(packed(8, [3]), (vec![(0, 3), (4, 8)], 3), "few large entries");
        assert_eq!((packed(1, []), packed(1, [0])), ((vec![(0, 1)], 1), (vec![], 1)));
    }
}
