//! A column of texts, or of bytes that are taken for text where they are.
//!
//! ```text
//! texts    := 0 numbers blob:length-prefixed                      plain: one behind the other, and where each ends
//!           | 1 count:varint template{count} numbers fields:varint numbers{fields}
//!           | 2 symbols numbers codes:length-prefixed             as plain, but in the codes of symbols (symbols.rs)
//! template := text:length-prefixed slots:varint slot{slots}
//! slot     := at:varint width:u8
//! ```
//!
//! Many texts are a few phrases with numbers in them. A template is such a phrase; the first numbers column of the
//! second form counts to the template of a row, the others are what goes into its slots: in decimal, padded with zeros
//! to `width`, before the byte `at` of the phrase. A phrase without slots is a constant, several of them a dictionary. The
//! third form is for long texts of other kinds, which would make most of a block in memory.

use std::ops::Range;

use bumpalo::Bump;

use super::numbers::{Grid, GridHead};
use super::phrases::{Phrase, Phrases};
use super::symbols::{self, Coded, SYMBOL_BYTES_MAX};
use crate::engine::codec::Reader;
use crate::engine::segment::residency::allocated;

pub(super) const PLAIN: u8 = 0;
pub(super) const TEMPLATES: u8 = 1;
pub(super) const CODED: u8 = 2;

/// Templates of a block, at most.
pub(super) const TEMPLATES_MAX: usize = 256;
/// Numbers in a text, at most; later ones stay part of the phrase.
pub(super) const SLOTS_MAX: usize = 4;
/// Slots lie before this byte of the phrase.
pub(super) const AT_MAX: usize = 1 << 24;
/// Digits that always fit 64 bits.
pub(super) const DIGITS_MAX: usize = 19;

/// How a column of texts is stored; columns of numbers are named by their places.
#[derive(Debug)]
pub(super) enum Texts {
    Plain {
        ends: usize,
        blob: Blob,
    },
    /// The columns behind `choice` are the fields.
    Templates {
        choice: usize,
        templates: Phrases,
    },
    Coded {
        ends: usize,
        /// See [`Coded::symbols`].
        symbols: Box<[u8]>,
        codes: Box<[u8]>,
    },
}

/// Bytes that were looked at once to know whether they are text.
#[derive(Debug)]
pub(super) enum Blob {
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

/// What a row has in a column of texts.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    /// A text that lies in the block.
    Whole(&'a str),
    /// Bytes that are no text.
    Bytes(&'a [u8]),
    /// A text that is put together when it is wanted.
    Pieces(Pieces<'a>),
    /// The same of one in codes.
    Coded(Coded<'a>),
}

/// A text that is put together when it is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    phrase: Phrase<'a>,
    grid: &'a Grid,
    row: usize,
    /// The column of the number in the first slot.
    first: usize,
}

/// What a row has in a column of texts, before anybody looked at it.
#[derive(Clone, Copy)]
pub(crate) struct TextCell<'a> {
    texts: &'a Texts,
    grid: &'a Grid,
    row: usize,
}

impl Texts {
    /// Reads a column, and adds its numbers to `numbers`. It has to be sound before it is used.
    pub(super) fn decode(reader: &mut Reader<'_>, numbers: &mut GridHead) -> Option<Self> {
        match reader.u8()? {
            PLAIN => {
                let ends = numbers.decode(reader)?;
                Some(Self::Plain { ends, blob: Blob::new(reader.length_prefixed()?) })
            }
            TEMPLATES => {
                let count =
                    usize::try_from(reader.varint()?).ok().filter(|count| (1..=TEMPLATES_MAX).contains(count))?;
                let templates = Phrases::decode(reader, count)?;
                let choice = numbers.decode(reader)?;
                let fields = usize::try_from(reader.varint()?).ok().filter(|fields| *fields <= SLOTS_MAX)?;
                (0..fields).try_for_each(|_| numbers.decode(reader).map(|_| ()))?;
                let fits = templates.iter().all(|template| template.slots() <= fields);
                fits.then_some(Self::Templates { choice, templates })
            }
            CODED => {
                let symbols = symbols::decode_symbols(reader)?;
                let ends = numbers.decode(reader)?;
                Some(Self::Coded { ends, symbols, codes: reader.length_prefixed()?.into() })
            }
            _ => None,
        }
    }

    /// Whether every row has a text.
    pub(super) fn is_sound(&self, grid: &Grid) -> bool {
        match self {
            Self::Plain { ends, blob } => lie_end_to_end(grid, *ends, blob.len(), |range| blob.parts_at(range.end)),
            Self::Coded { ends, symbols, codes } => {
                lie_end_to_end(grid, *ends, codes.len(), |range| Coded { symbols, codes: &codes[range] }.is_text())
            }
            Self::Templates { choice, templates } => grid.each(*choice).all(|choice| choice < templates.len() as u64),
        }
    }

    /// Finds out which templates give texts of one length. Called once they are known to be sound.
    pub(super) fn fix_lengths(&mut self, grid: &Grid) {
        if let Self::Templates { choice, templates } = self {
            // One pass over the rows for all templates: the least and the largest number in each slot.
            let mut ranges = vec![[(u64::MAX, 0); SLOTS_MAX]; templates.len()];
            for row in 0..grid.len() {
                let template = grid.get(*choice, row) as usize;
                let slots = templates.get(template).slots();
                for (slot, (least, largest)) in ranges[template].iter_mut().take(slots).enumerate() {
                    let number = grid.get(*choice + 1 + slot, row);
                    (*least, *largest) = (number.min(*least), number.max(*largest));
                }
            }
            templates.fix_lengths(&ranges);
        }
    }

    /// What a row has here.
    #[inline(always)]
    pub(super) fn cell<'a>(&'a self, grid: &'a Grid, row: usize) -> TextCell<'a> {
        TextCell { texts: self, grid, row }
    }

    fn sole_template(&self) -> Option<(Phrase<'_>, usize)> {
        match self {
            Self::Templates { choice, templates } if templates.len() == 1 => Some((templates.get(0), *choice)),
            _ => None,
        }
    }

    /// The text that all rows have, if the form says so.
    pub(super) fn constant(&self) -> Option<&str> {
        self.sole_template()?.0.constant()
    }

    /// The beginning that all texts share, and the number behind it with its width, if the texts sort as that number
    /// does.
    pub(super) fn leading_number(&self, grid: &Grid) -> Option<(&[u8], usize, usize)> {
        let (template, choice) = self.sole_template()?;
        let (beginning, width) = template.beginning()?;
        let limit = 10_u64.checked_pow(width as u32)?;
        let fixed = grid.each(choice + 1).all(|number| number < limit);
        fixed.then_some((beginning, choice + 1, width))
    }

    /// What the texts of `rows` rows are not longer than together.
    pub(super) fn rendered_bytes_max(&self, rows: usize) -> usize {
        match self {
            Self::Plain { blob, .. } => blob.len(),
            Self::Coded { codes, .. } => codes.len() * SYMBOL_BYTES_MAX,
            Self::Templates { templates, .. } => {
                rows * templates.iter().map(|template| template.text_bytes_max()).max().unwrap_or_default()
            }
        }
    }

    pub(super) fn resident_bytes(&self) -> usize {
        match self {
            Self::Plain { blob, .. } => allocated(blob.len()),
            Self::Coded { symbols, codes, .. } => allocated(symbols.len()) + allocated(codes.len()),
            Self::Templates { templates, .. } => templates.resident_bytes(),
        }
    }
}

/// Where the text of a row lies: it begins where that of the row before ends.
#[inline]
fn range(grid: &Grid, ends: usize, row: usize) -> Range<usize> {
    let start = row.checked_sub(1).map_or(0, |before| grid.get(ends, before));
    start as usize..grid.get(ends, row) as usize
}

/// Whether the texts of all rows lie one behind the other in `len` bytes, and each of them is sound.
fn lie_end_to_end(grid: &Grid, ends: usize, len: usize, is_sound: impl Fn(Range<usize>) -> bool) -> bool {
    let mut start = 0;
    let ascends = grid.each(ends).all(|end| {
        let range = start..end;
        start = end;
        range.start <= end && end <= len as u64 && is_sound(range.start as usize..end as usize)
    });
    ascends && start == len as u64
}

impl<'a> TextCell<'a> {
    /// Whether it is a text, and not bytes that are none.
    #[inline]
    pub(crate) fn is_text(&self) -> bool {
        !matches!(self.texts, Texts::Plain { blob: Blob::Bytes(_), .. })
    }

    #[inline]
    pub(crate) fn get(&self) -> Text<'a> {
        let Self { texts, grid, row } = *self;
        match texts {
            Texts::Plain { ends, blob } => {
                let range = range(grid, *ends, row);
                match blob {
                    Blob::Text(text) => Text::Whole(&text[range]),
                    Blob::Bytes(bytes) => Text::Bytes(&bytes[range]),
                }
            }
            Texts::Coded { ends, symbols, codes } => {
                Text::Coded(Coded { symbols, codes: &codes[range(grid, *ends, row)] })
            }
            Texts::Templates { choice, templates } => {
                let place = if templates.len() == 1 { 0 } else { grid.get(*choice, row) as usize };
                let phrase = templates.get(place);
                match phrase.constant() {
                    Some(text) => Text::Whole(text),
                    None => Text::Pieces(Pieces { phrase, grid, row, first: choice + 1 }),
                }
            }
        }
    }
}

impl Pieces<'_> {
    /// The number in a slot.
    #[inline]
    fn number(&self, slot: usize) -> u64 {
        self.grid.get(self.first + slot, self.row)
    }

    /// The text, put together in `texts`; `None` never, unless the block was not sound.
    #[inline]
    pub(crate) fn put_in<'t>(&self, texts: &'t Bump) -> Option<&'t str> {
        self.phrase.put_in(|slot| self.number(slot), texts)
    }

    /// Hands the text to `put`, piece by piece.
    pub(crate) fn each(&self, put: impl FnMut(&str)) {
        self.phrase.each_text(|slot| self.number(slot), put);
    }

    /// The same, for those who do not care that it is text.
    pub(super) fn each_bytes(&self, put: impl FnMut(&[u8])) {
        self.phrase.each(|slot| self.number(slot), put);
    }

    #[inline]
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        self.phrase.append_to(|slot| self.number(slot), out);
    }

    /// Length of the text.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.phrase.text_bytes(|slot| self.number(slot))
    }
}

impl Blob {
    fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(_) => Self::Bytes(bytes.into()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether it may be cut there. Texts that are none by themselves may be one together: they are bytes.
    fn parts_at(&self, index: usize) -> bool {
        match self {
            Self::Text(text) => text.is_char_boundary(index),
            Self::Bytes(bytes) => index <= bytes.len(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::numbers::{Plan, put_rows};
    use super::super::text_plan::TextPlan;
    use super::*;

    /// The texts as they are after they were written and read, bits of a row, and the form.
    fn round_trip(texts: &[&[u8]]) -> Option<(Vec<Vec<u8>>, usize, u8)> {
        let (mut head, mut plans, mut bits) = (Vec::new(), Vec::new(), Vec::new());
        TextPlan::choose(texts, Some(&mut None))?.put(&mut head, &mut plans);
        put_rows(&plans, texts.len(), &mut bits);
        let (mut reader, mut numbers) = (Reader::new(&head), GridHead::default());
        let mut read = Texts::decode(&mut reader, &mut numbers).expect("sound");
        assert!(reader.is_empty());
        let grid = numbers.grid(texts.len(), &bits).expect("as many bits as the head says");
        assert!(grid.is_sound() && read.is_sound(&grid));
        read.fix_lengths(&grid);
        let stride = plans.iter().map(Plan::width).sum();
        let bump = Bump::new();
        let text = |row| {
            let mut out = Vec::new();
            match read.cell(&grid, row).get() {
                Text::Whole(text) => out.extend_from_slice(text.as_bytes()),
                Text::Bytes(bytes) => out.extend_from_slice(bytes),
                Text::Coded(coded) => {
                    coded.each(|piece| out.extend_from_slice(piece.as_bytes()));
                    assert_eq!((coded.put_in(&bump).as_bytes(), coded.len()), (out.as_slice(), out.len()));
                }
                Text::Pieces(pieces) => {
                    pieces.each(|piece| out.extend_from_slice(piece.as_bytes()));
                    assert_eq!(pieces.put_in(&bump).map(str::as_bytes), Some(out.as_slice()));
                    let mut appended = Vec::new();
                    pieces.append_to(&mut appended);
                    assert_eq!((appended.as_slice(), pieces.len()), (out.as_slice(), out.len()));
                }
            }
            out
        };
        Some(((0..texts.len()).map(text).collect(), stride, head[0]))
    }

    fn stored(texts: &[String]) -> (usize, u8) {
        let bytes: Vec<_> = texts.iter().map(String::as_bytes).collect();
        let (read, stride, form) = round_trip(&bytes).expect("text has a form");
        assert_eq!(read, bytes);
        (stride, form)
    }

    fn numbered(text: impl Fn(u64) -> String) -> Vec<String> {
        (0..256).map(|n| text(n * 7919 % 1009)).collect()
    }

    #[test]
    fn phrases_with_numbers_become_templates() {
        assert_eq!(stored(&numbered(|n| format!("order {n} of 2024"))), (10, TEMPLATES));
        assert_eq!(stored(&numbered(|n| format!("{n:04}"))), (10, TEMPLATES));
        assert_eq!(stored(&numbered(|n| format!("{n:04}{}", [".", "!"][n as usize % 2]))), (11, TEMPLATES));
        assert_eq!(stored(&vec!["always".to_owned(); 256]), (0, TEMPLATES));
        assert_eq!(stored(&vec![String::new(); 3]), (0, PLAIN));
        assert_eq!(stored(&numbered(|n| ["red", "green", "blue"][n as usize % 3].to_owned())), (2, TEMPLATES));
    }

    /// Words in an order that never comes again.
    pub(in super::super) fn prose(row: u64, words: u64) -> String {
        const WORDS: [&str; 9] =
            ["river ", "stones ", "walks ", "über ", "the ", "morning ", "of ", "\u{1F6B2} ", "light. "];
        let word = |n: u64| ((row * 97 + n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % WORDS.len();
        (0..words).map(|n| WORDS[word(n)]).collect()
    }

    #[test]
    fn long_texts_without_phrases_are_kept_in_codes() {
        assert_eq!(stored(&numbered(|n| prose(n, 10 + n % 30))).1, CODED);
        assert_eq!(stored(&(0..9).map(|n| prose(n, 500)).collect::<Vec<_>>()).1, CODED, "few of them, and longer ones");
        assert_eq!(stored(&numbered(|n| prose(n, 6))).1, PLAIN, "too short");
        let noise = |n: u64| (0..99_u64).map(|at| (b'!' + (prose(n * 99 + at, 9).len() % 90) as u8) as char).collect();
        assert!([PLAIN, CODED].contains(&stored(&numbered(noise)).1));
        let mut texts: Vec<_> = (0..256).map(|n| prose(n, 20).into_bytes()).collect();
        texts[9].push(0xFF);
        let bytes: Vec<_> = texts.iter().map(Vec::as_slice).collect();
        assert_eq!(round_trip(&bytes).map(|(read, _, form)| (read == texts, form)), Some((true, PLAIN)), "no text");
    }

    #[test]
    fn digits_that_no_number_renders_again_stay_text() {
        for texts in [
            vec!["07", "5", "09", "6"],
            vec!["007", "07"],
            vec!["99999999999999999999999", "00000000000000000000001"],
            vec!["1 2 3 4 5 6 7 8 9 10 11", "1 2 3 4 5 6 7 8 9 10 12"],
            vec!["\u{661}\u{662}", "\u{661}"],
        ] {
            stored(&texts.into_iter().map(str::to_owned).collect::<Vec<_>>());
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_plain_and_halves_of_characters_have_no_form() {
        let (read, _, form) = round_trip(&[b"\xFF\xFE", b"", b"a"]).expect("bytes have a form");
        assert_eq!((read, form), (vec![b"\xFF\xFE".to_vec(), vec![], b"a".to_vec()], PLAIN));
        assert!(round_trip(&["é".as_bytes().split_at(1).0, "é".as_bytes().split_at(1).1]).is_none());
    }

    #[test]
    fn columns_that_break_off_or_overreach_are_refused() {
        let sound = [TEMPLATES, 1, 2, b'a', b'b', 1, 1, 4, 0, 0, 0, 1, 0, 7, 0];
        assert!(Texts::decode(&mut Reader::new(&sound), &mut GridHead::default()).is_some());
        for (what, index, byte) in
            [("a slot outside", 6, 3), ("too wide", 7, 20), ("no field for the slot", 11, 0), ("no template", 1, 0)]
        {
            let mut bytes = sound;
            bytes[index] = byte;
            assert!(Texts::decode(&mut Reader::new(&bytes), &mut GridHead::default()).is_none(), "{what}");
        }
        for cut in 0..sound.len() {
            assert!(Texts::decode(&mut Reader::new(&sound[..cut]), &mut GridHead::default()).is_none(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(texts in proptest::collection::vec("[a-c0-2é]{0,12}", 1..60)) {
            stored(&texts);
        }

        #[test]
        fn all_bytes_come_back_or_have_no_form(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 1..60)
        ) {
            let bytes: Vec<_> = texts.iter().map(Vec::as_slice).collect();
            if let Some((read, ..)) = round_trip(&bytes) {
                prop_assert_eq!(read, texts);
            }
        }
    }
}
