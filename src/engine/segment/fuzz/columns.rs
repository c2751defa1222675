//! Blocks of columns: what is packed comes back byte for byte, and a row read column by column is the row.
//!
//! ```text
//! input := layout:length-prefixed entry*        a layout as at the head of `layout.rs`
//! entry := key:length-prefixed value:length-prefixed
//! ```

use std::collections::BTreeMap;

use bumpalo::Bump;

use super::super::block::Block;
use super::super::packed::{Packed, PackedBuilder, ROWS_MAX, Row, Text, TextCell};
use super::{Version, blocks, settled};
use crate::engine::codec::{self, Reader, put_varint};
use crate::engine::layout::{Field, Layout, fold};
use crate::engine::stored::Stored;

type Entries<'a> = BTreeMap<&'a [u8], &'a [u8]>;
/// A layout, and keys and values that follow it.
type Sample = (Layout, Vec<(Vec<u8>, Vec<u8>)>);

pub(crate) fn run(input: &[u8]) {
    let Some((layout, entries)) = decode(input) else { return };
    if let Some(raw) = packed(&layout, entries.iter().map(|(key, value)| (*key, *value))) {
        let block = Packed::decode(&raw).expect("what was packed is a block");
        let found = blocks::check(&Block::Packed(block), raw.len());
        let same =
            |((key, value), found): ((&&[u8], &&[u8]), &Version)| found.0 == *key && found.2.as_deref() == Some(*value);
        assert_eq!(found.len(), entries.len());
        assert!(entries.iter().zip(&found).all(same), "what was packed is not what comes back");
    }
}

/// At most as many entries as a block has rows, each key once.
fn decode(input: &[u8]) -> Option<(Layout, Entries<'_>)> {
    let mut reader = Reader::new(input);
    let layout = Layout::decode(reader.length_prefixed()?).filter(Layout::is_columns)?;
    let mut entries = BTreeMap::new();
    while let Some(key) = reader.length_prefixed() {
        if entries.len() == ROWS_MAX {
            break;
        }
        entries.insert(key, reader.length_prefixed().unwrap_or_default());
    }
    (!entries.is_empty()).then_some((layout, entries))
}

/// The raw block of entries in order; `None` if they do not follow the layout.
fn packed<'a>(layout: &Layout, entries: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<Vec<u8>> {
    let (mut builder, mut raw) = (PackedBuilder::default(), Vec::new());
    entries.for_each(|(key, value)| builder.push(key, value));
    let runs = builder.runs(layout);
    assert!(runs.first().is_some_and(|run| run.rows.start == 0), "runs begin late");
    assert!(runs.last().is_some_and(|run| run.rows.end == builder.len()), "runs end early");
    assert!(runs.array_windows().all(|[one, next]| one.rows.end == next.rows.start), "runs leave entries out");
    builder.write(&(0..builder.len()), layout, &mut raw).then_some(raw)
}

/// Hands entries in order to `read` as rows of columns; nothing happens if they do not follow the layout.
pub(crate) fn read_as_rows(layout: &Layout, entries: &[(Vec<u8>, Vec<u8>)], mut read: impl FnMut(usize, Stored<'_>)) {
    let borrowed = entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
    let Some(raw) = packed(layout, borrowed) else { return };
    let block = Packed::decode(&raw).expect("what was packed is a block");
    (0..block.len()).for_each(|row| read(row, block.value(row)));
}

/// Every other way to read the entries gives the same.
pub(super) fn check(block: &Packed, entries: &[Version]) {
    let mut key = Vec::new();
    for (row, (expected, _, value)) in entries.iter().enumerate() {
        assert_eq!(block.find(expected), Ok(row), "{expected:?}");
        let value = value.as_deref().unwrap_or_default();
        if let Some(found) = block.get_dense(expected) {
            assert_eq!(found.to_vec(), value);
        }
        if let Stored::Row(row) = block.value(row) {
            assert_eq!(rendered(&row), value, "the columns are not the value");
        }
        check_tails(block, row, expected, &mut key);
    }
}

fn check_tails(block: &Packed, row: usize, expected: &[u8], key: &mut Vec<u8>) {
    block.write_key(0, key);
    block.rewrite_key(row, block.varying(None), key);
    assert_eq!(key, expected, "a key that is written over another");
    for tail in (1..=expected.len().min(16)).rev() {
        let end = &expected[expected.len() - tail..];
        block.write_key(0, key);
        block.rewrite_key(row, block.varying(Some(tail)), key);
        assert!(key.ends_with(end), "the last {tail} bytes of a key");
        if let Some(place) = block.tail_number(tail) {
            assert_eq!(block.number(place, row).to_be_bytes()[8 - tail..], *end, "the number that a key ends with");
        }
    }
}

/// The value, put together from what the columns say they are.
fn rendered(row: &Row<'_>) -> Vec<u8> {
    let (mut out, texts) = (Vec::new(), Bump::new());
    for index in 0..row.len() {
        let (big, little) = (row.big_endian(index), row.little_endian(index));
        let (varint, zigzag) = (row.varint(index), row.zigzag(index));
        let (prefixed, verbatim) = (row.prefixed(index), row.verbatim(index));
        let known = [big.is_some(), little.is_some(), varint.is_some(), zigzag.is_some()];
        let known = known.into_iter().chain([prefixed.is_some(), verbatim.is_some()]).filter(|is| *is).count();
        assert_eq!(known, 1, "a column is of one kind");
        if let Some((number, width)) = big {
            out.extend_from_slice(&number.to_be_bytes()[8 - usize::from(width)..]);
        } else if let Some((number, width)) = little {
            out.extend_from_slice(&number.to_le_bytes()[..usize::from(width)]);
        }
        if let Some(number) = varint.or(zigzag.map(fold)) {
            put_varint(&mut out, number);
        }
        if let Some(cell) = prefixed {
            codec::put_length_prefixed(&mut out, bytes_of(&cell, &texts));
        }
        if let Some(cell) = verbatim {
            out.extend_from_slice(bytes_of(&cell, &texts));
        }
    }
    assert!(row.big_endian(row.len()).is_none() && row.prefixed(row.len() + 1).is_none(), "a column that is none");
    out
}

fn bytes_of<'a>(cell: &TextCell<'a>, texts: &'a Bump) -> &'a [u8] {
    match cell.get() {
        Text::Whole(text) => text.as_bytes(),
        Text::Bytes(bytes) => {
            assert!(!cell.is_text(), "bytes that are said to be text");
            bytes
        }
        Text::Coded(coded) => {
            let mut together = String::new();
            coded.each(|piece| together.push_str(piece));
            let whole = coded.put_in(texts);
            assert_eq!(whole, together, "a text put together in two ways");
            whole.as_bytes()
        }
        Text::Pieces(pieces) => {
            let mut together = String::new();
            pieces.each(|piece| together.push_str(piece));
            let whole = pieces.put_in(texts).expect("the block is sound");
            assert_eq!(whole, together, "a text put together in two ways");
            whole.as_bytes()
        }
    }
}

/// Layouts, and entries that follow them.
fn samples() -> Vec<Sample> {
    let option = Field::Option(Box::new(Field::Group(vec![Field::Varint])));
    let record =
        vec![Field::BigEndian(1), Field::Varint, Field::ZigZag, Field::Prefixed, option, Field::LittleEndian(4)];
    let numbers = (0..40_u64).map(|n| {
        let mut value = vec![1];
        put_varint(&mut value, n * n * 77);
        put_varint(&mut value, fold(5 - n as i64));
        codec::put_length_prefixed(&mut value, format!("likes tea since {}, {:04} times", 1990 + n % 9, n).as_bytes());
        value.extend_from_slice(if n % 2 == 0 { &[0] } else { &[1, 7] });
        value.extend_from_slice(&(n as u32 * 3).to_le_bytes());
        (n.to_be_bytes().to_vec(), value)
    });
    let texts = settled().into_iter().filter(|(key, ..)| key != b"user07");
    let texts = texts.map(|(key, _, value)| (key, value.unwrap_or_default()));
    let pairs = (0..30_u16).map(|n| ([&(n / 5).to_be_bytes()[..], &(n % 5 * 1000).to_be_bytes()].concat(), Vec::new()));
    let bytes = (0..20_u8).map(|n| (vec![n, 0xFF, n], vec![0xFE; usize::from(n) % 4]));
    let words = ["zebra", "été", "", "quince and pear", "rye"];
    let words = (0..25_u8).map(|n| {
        let (one, other) = (words[usize::from(n) % 5], words[usize::from(n / 3) % 5]);
        (vec![n], [&[one.len() as u8], one.as_bytes(), other.as_bytes(), &[n ^ b'q'; 2]].concat())
    });
    let rest = || vec![Field::Rest];
    vec![
        (Layout { key: vec![Field::BigEndian(8)], value: record }, numbers.collect()),
        (Layout { key: vec![Field::Terminated(0), Field::BigEndian(2)], value: rest() }, texts.collect()),
        (Layout { key: vec![Field::BigEndian(2); 2], value: Vec::new() }, pairs.collect()),
        (Layout { key: rest(), value: rest() }, bytes.collect()),
        (Layout { key: vec![Field::BigEndian(1)], value: vec![Field::Prefixed, Field::Rest] }, words.collect()),
    ]
}

/// Blocks, for [`blocks::run_packed`].
pub(crate) fn block_seeds() -> Vec<Vec<u8>> {
    let block = |(layout, entries): Sample| {
        let entries = entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
        packed(&layout, entries).expect("it follows its layout")
    };
    samples().into_iter().map(block).chain([coded_block()]).collect()
}

/// Three rows with a text in codes, of which the first is put together in pieces. The encoder makes none that short.
fn coded_block() -> Vec<u8> {
    let accent = [0xFF, 0xC3, 0xFF, 0xA9];
    let texts = [[&[0; 100][..], &accent, &accent].concat(), vec![0xFF, b'x'], [&[1, 0][..], &accent].concat()];
    let codes = texts.concat();
    // Three rows, a column for keys, one for values; keys are 5, 6 and 7.
    let mut raw = vec![3, 1, 2, 1, 1, 0, 5];
    put_varint(&mut raw, fold(1 << 16));
    raw.extend_from_slice(b"\x06\x02\x02\x03\x01teas");
    // A dictionary of the ends, two bits for each row.
    raw.extend_from_slice(&[0x82, 3, 108, 110, codes.len() as u8, codes.len() as u8]);
    raw.extend_from_slice(&codes);
    raw.push(0b10_01_00);
    assert!(Packed::decode(&raw).is_ok(), "it is written as the grammar says");
    raw
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let input = |(layout, entries): Sample| {
        let (mut encoded, mut input) = (Vec::new(), Vec::new());
        layout.encode(&mut encoded);
        codec::put_length_prefixed(&mut input, &encoded);
        for (key, value) in &entries {
            codec::put_length_prefixed(&mut input, key);
            codec::put_length_prefixed(&mut input, value);
        }
        input
    };
    samples().into_iter().map(input).collect()
}
