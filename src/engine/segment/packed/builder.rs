//! Collects the entries of one block of columns, and writes it if they follow the layout of their tree.

use super::numbers::{self, Plan, Sign};
use super::text_plan::TextPlan;
use super::{Packed, ROWS_MAX, Rendering};
use crate::engine::codec::put_varint;
use crate::engine::layout::{Field, Layout, Part, split};
use crate::engine::segment::frame::RAW_BYTES_MAX;

/// Entries that may become a block of columns, in order.
#[derive(Default)]
pub(in crate::engine::segment) struct PackedBuilder {
    /// Key and value of each entry, one after the other.
    bytes: Vec<u8>,
    /// Where the key and where the value of each entry ends.
    ends: Vec<(usize, usize)>,
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

    /// The key added last.
    pub(in crate::engine::segment) fn last_key(&self) -> &[u8] {
        self.entries().next_back().map_or(&[], |(key, _)| key)
    }

    /// Keys and values, in order.
    pub(in crate::engine::segment) fn entries(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        (0..self.ends.len()).map(|row| {
            let start = row.checked_sub(1).map_or(0, |before| self.ends[before].1);
            let (key_end, end) = self.ends[row];
            (&self.bytes[start..key_end], &self.bytes[key_end..end])
        })
    }

    /// Replaces `raw` with the block; `false`, and nothing useful in `raw`, if the entries do not follow the layout, if
    /// their columns do not render every byte of them again, or if they are too long for a block.
    pub(in crate::engine::segment) fn write(&self, layout: &Layout, raw: &mut Vec<u8>) -> bool {
        raw.clear();
        self.write_columns(layout, raw).is_some() && raw.len() <= RAW_BYTES_MAX && self.reads_back(raw)
    }

    fn write_columns(&self, layout: &Layout, raw: &mut Vec<u8>) -> Option<()> {
        let rows = self.ends.len();
        let fields: Vec<_> = layout.key.iter().chain(&layout.value).collect();
        let parts = self.parts(layout)?;
        for number in [rows, layout.key.len(), fields.len()] {
            put_varint(raw, number as u64);
        }
        let mut plans = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let column = parts.iter().skip(index).step_by(fields.len());
            put_column(field, column, raw, &mut plans)?;
        }
        numbers::put_rows(&plans, rows, raw);
        Some(())
    }

    /// The parts of all entries, row after row.
    fn parts(&self, layout: &Layout) -> Option<Vec<Part<'_>>> {
        let mut parts = Vec::with_capacity(self.ends.len() * (layout.key.len() + layout.value.len()));
        let follow = self
            .entries()
            .all(|(key, value)| split(&layout.key, key, &mut parts) && split(&layout.value, value, &mut parts));
        follow.then_some(parts)
    }

    fn reads_back(&self, raw: &[u8]) -> bool {
        let Ok(block) = Packed::decode(raw) else { return false };
        let mut rendered = Vec::new();
        block.len() == self.ends.len()
            && self.entries().enumerate().all(|(row, (key, value))| {
                block.write_key(row, &mut rendered);
                let is_same = rendered == key;
                block.write_value(row, &mut rendered);
                is_same && rendered == value
            })
    }
}

fn put_column<'p>(
    field: &Field,
    column: impl Iterator<Item = &'p Part<'p>>,
    raw: &mut Vec<u8>,
    plans: &mut Vec<Plan>,
) -> Option<()> {
    let (rendering, sign) = match field {
        Field::BigEndian(width) => (Rendering::BigEndian(*width), Sign::Unsigned),
        Field::LittleEndian(width) => (Rendering::LittleEndian(*width), Sign::Unsigned),
        Field::Varint => (Rendering::Varint, Sign::Unsigned),
        Field::ZigZag => (Rendering::ZigZag, Sign::Signed),
        Field::Prefixed => return put_texts(Rendering::Prefixed, column, raw, plans),
        _ => return put_texts(Rendering::Verbatim, column, raw, plans),
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
    raw: &mut Vec<u8>,
    plans: &mut Vec<Plan>,
) -> Option<()> {
    let texts = column.map(|part| if let Part::Bytes(bytes) = part { Some(*bytes) } else { None });
    let plan = TextPlan::choose(&texts.collect::<Option<Vec<_>>>()?)?;
    rendering.encode(raw);
    plan.put(raw, plans);
    Some(())
}
