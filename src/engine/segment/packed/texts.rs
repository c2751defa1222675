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

use super::numbers::{Grid, Numbers};
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
/// Bytes of a slot in memory.
const SLOT_BYTES: usize = 4;
/// Slots lie before this byte of the phrase.
pub(super) const AT_MAX: usize = 1 << 24;
/// Digits that always fit 64 bits.
pub(super) const DIGITS_MAX: usize = 19;

/// Digits that are put into a text at once, and the first number that has more.
const FIELD_BYTES: usize = 8;
const FIELD_LIMIT: u64 = 100_000_000;

const ZEROS: &str = "0000000000000000000";

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
        templates: Box<[Phrase]>,
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

/// A phrase, and where the numbers of a text go in it.
#[derive(Debug)]
pub(super) struct Phrase {
    text: Box<str>,
    /// See [`Template::slots`].
    slots: Box<[u8]>,
    /// The same when all texts have one length: with digits in place of the numbers, and the slots around them.
    fixed: Option<Fixed>,
}

/// A text of one length: with zeros for the numbers, and where those are.
#[derive(Debug)]
struct Fixed {
    /// The bytes of the text, and at least [`FIELD_BYTES`] zeros behind it.
    words: Box<[u128]>,
    /// Bytes of the text.
    len: usize,
    slots: Box<[Slot]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Slot {
    at: usize,
    width: u8,
}

/// A phrase as it is lent to readers, who bring the numbers.
#[derive(Clone, Copy, Debug)]
struct Template<'a> {
    phrase: &'a str,
    /// Four bytes for each slot: the low three of `at`, and `width`.
    slots: &'a [u8],
}

impl Template<'_> {
    /// Hands the text with these numbers to `put`, piece by piece.
    #[inline]
    fn each(&self, number: impl Fn(usize) -> u64, mut put: impl FnMut(&str)) {
        let mut start = 0;
        for (index, slot) in self.slots().enumerate() {
            put(&self.phrase[start..slot.at]);
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(number(index));
            put(&ZEROS[..usize::from(slot.width).saturating_sub(digits.len())]);
            put(digits);
            start = slot.at;
        }
        put(&self.phrase[start..]);
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        let (slots, _) = self.slots.as_chunks();
        slots.iter().map(|&[a, b, c, width]| Slot { at: u32::from_le_bytes([a, b, c, 0]) as usize, width })
    }
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
    phrase: &'a Phrase,
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
    /// Reads a column, and adds its numbers to `columns`. It has to be sound before it is used.
    pub(super) fn decode(reader: &mut Reader<'_>, columns: &mut Vec<Numbers>) -> Option<Self> {
        match reader.u8()? {
            PLAIN => {
                let ends = Numbers::decode(reader, columns)?;
                Some(Self::Plain { ends, blob: Blob::new(reader.length_prefixed()?) })
            }
            TEMPLATES => {
                let count =
                    usize::try_from(reader.varint()?).ok().filter(|count| (1..=TEMPLATES_MAX).contains(count))?;
                let templates = (0..count).map(|_| Phrase::decode(reader)).collect::<Option<Box<[_]>>>()?;
                let choice = Numbers::decode(reader, columns)?;
                let fields = usize::try_from(reader.varint()?).ok().filter(|fields| *fields <= SLOTS_MAX)?;
                (0..fields).try_for_each(|_| Numbers::decode(reader, columns).map(|_| ()))?;
                let fits = templates.iter().all(|template| template.slots.len() <= fields * SLOT_BYTES);
                fits.then_some(Self::Templates { choice, templates })
            }
            CODED => {
                let symbols = symbols::decode_symbols(reader)?;
                let ends = Numbers::decode(reader, columns)?;
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
                let slots = templates[template].slots.len() / SLOT_BYTES;
                for (slot, (least, largest)) in ranges[template].iter_mut().take(slots).enumerate() {
                    let number = grid.get(*choice + 1 + slot, row);
                    (*least, *largest) = (number.min(*least), number.max(*largest));
                }
            }
            for (template, ranges) in templates.iter_mut().zip(&ranges) {
                template.fixed = Fixed::of(template.template(), ranges);
            }
        }
    }

    /// What a row has here.
    #[inline(always)]
    pub(super) fn cell<'a>(&'a self, grid: &'a Grid, row: usize) -> TextCell<'a> {
        TextCell { texts: self, grid, row }
    }

    /// The text that all rows have, if the form says so.
    pub(super) fn constant(&self) -> Option<&str> {
        match self {
            Self::Templates { templates, .. } if templates.len() == 1 && templates[0].slots.is_empty() => {
                Some(&templates[0].text)
            }
            _ => None,
        }
    }

    /// The beginning that all texts share, and the number behind it with its width, if the texts sort as that number
    /// does.
    pub(super) fn leading_number(&self, grid: &Grid) -> Option<(&str, usize, usize)> {
        let Self::Templates { choice, templates } = self else { return None };
        let [phrase] = &**templates else { return None };
        let Slot { at, width } = phrase.template().slots().next()?;
        let width = usize::from(width.max(1));
        let limit = 10_u64.checked_pow(width as u32)?;
        let fixed = grid.each(choice + 1).all(|number| number < limit);
        fixed.then_some((&phrase.text[..at], choice + 1, width))
    }

    /// What the texts of `rows` rows are not longer than together.
    pub(super) fn rendered_bytes_max(&self, rows: usize) -> usize {
        match self {
            Self::Plain { blob, .. } => blob.len(),
            Self::Coded { codes, .. } => codes.len() * SYMBOL_BYTES_MAX,
            Self::Templates { templates, .. } => {
                let len = |phrase: &Phrase| phrase.text.len() + phrase.slots.len() / SLOT_BYTES * (DIGITS_MAX + 1);
                rows * templates.iter().map(len).max().unwrap_or_default()
            }
        }
    }

    pub(super) fn resident_bytes(&self) -> usize {
        let phrase = |phrase: &Phrase| {
            let fixed = phrase.fixed.as_ref();
            let fixed =
                fixed.map_or(0, |fixed| allocated(size_of_val(&*fixed.words)) + allocated(size_of_val(&*fixed.slots)));
            size_of::<Phrase>() + allocated(phrase.text.len()) + allocated(phrase.slots.len()) + fixed
        };
        match self {
            Self::Plain { blob, .. } => blob.len(),
            Self::Coded { symbols, codes, .. } => symbols.len() + codes.len(),
            Self::Templates { templates, .. } => templates.iter().map(phrase).sum(),
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
                let phrase = match &**templates {
                    [only] => only,
                    several => &several[grid.get(*choice, row) as usize],
                };
                if phrase.slots.is_empty() {
                    return Text::Whole(&phrase.text);
                }
                Text::Pieces(Pieces { phrase, grid, row, first: choice + 1 })
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
        let Some(Fixed { words, len, slots }) = &self.phrase.fixed else {
            let mut text = bumpalo::collections::String::with_capacity_in(64, texts);
            self.each(|piece| text.push_str(piece));
            return Some(text.into_bump_str());
        };
        // Aligned and in whole words, text is looked at many bytes at a time.
        let words = texts.alloc_slice_copy(words);
        let bytes: &mut [u8] = bytemuck::must_cast_slice_mut(words);
        for (index, slot) in slots.iter().enumerate() {
            slot.put(self.number(index), bytes);
        }
        std::str::from_utf8(bytes).ok()?.get(..*len)
    }

    /// Hands the text to `put`, piece by piece.
    pub(crate) fn each(&self, put: impl FnMut(&str)) {
        self.phrase.template().each(|slot| self.number(slot), put);
    }
}

impl Fixed {
    /// `ranges` are the least and the largest number of each slot; a template that no row has needs no text.
    fn of(template: Template<'_>, ranges: &[(u64, u64)]) -> Option<Self> {
        let phrase = template.phrase;
        let (mut text, mut fixed, mut start) = (String::with_capacity(phrase.len() + 16), Vec::new(), 0);
        for (slot, &(least, largest)) in template.slots().zip(ranges) {
            let digits = |number: u64| number.checked_ilog10().map_or(1, |log| log as usize + 1);
            let width = |number: u64| digits(number).max(slot.width.into());
            if least > largest || width(least) != width(largest) {
                return None;
            }
            let least = width(least);
            text.push_str(&phrase[start..slot.at]);
            start = slot.at;
            fixed.push(Slot { at: text.len(), width: least as u8 });
            text.extend(std::iter::repeat_n('0', least));
        }
        text.push_str(&phrase[start..]);
        let mut words = vec![0_u128; (text.len() + FIELD_BYTES).div_ceil(size_of::<u128>())];
        bytemuck::must_cast_slice_mut::<_, u8>(&mut words)[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { words: words.into(), len: text.len(), slots: fixed.into() })
    }
}

impl Slot {
    /// Makes the zeros at this place of a text the digits of `number`, which has no more of them.
    #[inline]
    fn put(self, mut number: u64, text: &mut [u8]) {
        let mut width = usize::from(self.width);
        while width > FIELD_BYTES {
            width -= FIELD_BYTES;
            add_digits((number % FIELD_LIMIT) as u32, FIELD_BYTES, &mut text[self.at + width..]);
            number /= FIELD_LIMIT;
        }
        add_digits(number as u32, width, &mut text[self.at..]);
    }
}

/// Adds `width` digits to as many zeros; what comes behind them is read and left as it is.
#[inline]
fn add_digits(number: u32, width: usize, text: &mut [u8]) {
    if number == 0 {
        return;
    }
    let field: &mut [u8; FIELD_BYTES] = text.first_chunk_mut().expect("there are zeros behind the text");
    let digits = eight_digits(number) >> (8 * (FIELD_BYTES - width));
    *field = (u64::from_le_bytes(*field) | digits).to_le_bytes();
}

/// The digits of a number as bytes of a word, the first one lowest. Halves the number three times, all halves at once:
/// four digits, two, one. Multiplying by 10486 / 2^20 and 103 / 2^10 divides numbers of four and two digits by 100 and 10.
#[inline]
fn eight_digits(number: u32) -> u64 {
    let number = u64::from(number);
    let fours = (number / 10_000) | (number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (twos - tens * 10) << 8
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

impl Phrase {
    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let text: Box<str> = std::str::from_utf8(reader.length_prefixed()?).ok()?.into();
        let count = usize::try_from(reader.varint()?).ok().filter(|slots| *slots <= SLOTS_MAX)?;
        let (mut start, mut slots) = (0, Vec::with_capacity(count * SLOT_BYTES));
        for _ in 0..count {
            let (at, width) = (usize::try_from(reader.varint()?).ok()?, reader.u8()?);
            let fits = start <= at && text.is_char_boundary(at) && at < AT_MAX && usize::from(width) <= DIGITS_MAX;
            fits.then_some(())?;
            slots.extend_from_slice(&(at as u32).to_le_bytes()[..3]);
            slots.push(width);
            start = at;
        }
        Some(Self { text, slots: slots.into(), fixed: None })
    }

    #[inline]
    fn template(&self) -> Template<'_> {
        Template { phrase: &self.text, slots: &self.slots }
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
        let (mut reader, mut columns) = (Reader::new(&head), Vec::new());
        let mut read = Texts::decode(&mut reader, &mut columns).expect("sound");
        assert!(reader.is_empty());
        let grid = Grid::new(columns, texts.len(), &bits).expect("as many bits as the head says");
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
    fn eight_digits_are_those_of_the_number() {
        for number in (0..100_000_000).step_by(997).chain([9, 10, 99, 100, 9_999, 10_000, 99_999_999]) {
            let digits = eight_digits(number) | 0x3030_3030_3030_3030;
            assert_eq!(digits.to_le_bytes(), *format!("{number:08}").as_bytes());
        }
        for (number, width) in [(u64::MAX, 20), (7, 19), (1_234_567_890_123, 13), (0, 1), (98_765, 12), (12_345_678, 8)]
        {
            let mut text = format!("id{}x\0\0\0\0\0\0\0\0", "0".repeat(width)).into_bytes();
            Slot { at: 2, width: width as u8 }.put(number, &mut text);
            assert_eq!(text, format!("id{number:0width$}x\0\0\0\0\0\0\0\0").into_bytes());
        }
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
        assert!(Texts::decode(&mut Reader::new(&sound), &mut Vec::new()).is_some());
        for (what, index, byte) in
            [("a slot outside", 6, 3), ("too wide", 7, 20), ("no field for the slot", 11, 0), ("no template", 1, 0)]
        {
            let mut bytes = sound;
            bytes[index] = byte;
            assert!(Texts::decode(&mut Reader::new(&bytes), &mut Vec::new()).is_none(), "{what}");
        }
        for cut in 0..sound.len() {
            assert!(Texts::decode(&mut Reader::new(&sound[..cut]), &mut Vec::new()).is_none(), "cut at {cut}");
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
