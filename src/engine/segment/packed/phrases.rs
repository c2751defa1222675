//! The templates of a column of texts, in memory.
//!
//! Most columns have texts of one length for each template. Such a template is kept as one of its texts, with zeros for
//! the numbers: whoever wants a text copies that in whole words, and adds the digits. Any other is kept as its phrase,
//! and its texts are put together piece by piece. All templates of a column lie in a few arrays, so that a block is not
//! scattered over memory.

use bumpalo::Bump;

use super::texts::{AT_MAX, DIGITS_MAX, SLOTS_MAX};
use crate::engine::codec::Reader;
use crate::engine::segment::residency::allocated;

/// Digits that are put into a text at once, and the first number that has more.
const FIELD_BYTES: usize = 8;
const FIELD_LIMIT: u64 = 100_000_000;

/// Words of a text that is put together on the stack.
const SHORT_WORDS: usize = 12;

const ZEROS: &[u8] = b"00000000000000000000";

/// The least and the largest number in each slot of a template.
pub(super) type Ranges = [(u64, u64); SLOTS_MAX];

/// The templates of a column, each named by its place.
#[derive(Debug)]
pub(super) struct Phrases {
    heads: Box<[Head]>,
    /// Phrases, one behind the other.
    text: Box<str>,
    /// Texts of one length, each from the beginning of a word, with at least [`FIELD_BYTES`] zeros behind it.
    words: Box<[u128]>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    /// The first of its bytes in `text`, or of its `words`.
    start: u32,
    /// Bytes of it.
    len: u32,
    slots: [Slot; SLOTS_MAX],
    /// How many of them there are.
    count: u8,
    /// Whether it is a text of one length, and not a phrase.
    is_fixed: bool,
}

/// Where a number goes: before this byte of a phrase, with zeros up to `width` digits; or instead of `width` zeros from
/// this byte of a text on.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    at: [u8; 3],
    width: u8,
}

impl Slot {
    fn new(at: usize, width: u8) -> Option<Self> {
        let [a, b, c, ..] = at.to_le_bytes();
        (at < AT_MAX).then_some(Self { at: [a, b, c], width })
    }

    #[inline]
    fn at(self) -> usize {
        let [a, b, c] = self.at;
        u32::from_le_bytes([a, b, c, 0]) as usize
    }

    /// Makes the zeros at this place of a text the digits of `number`, which has no more of them.
    #[inline]
    fn put(self, mut number: u64, text: &mut [u8]) {
        let (at, mut width) = (self.at(), usize::from(self.width));
        while width > FIELD_BYTES {
            width -= FIELD_BYTES;
            add_digits((number % FIELD_LIMIT) as u32, FIELD_BYTES, &mut text[at + width..]);
            number /= FIELD_LIMIT;
        }
        add_digits(number as u32, width, &mut text[at..]);
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

impl Phrases {
    /// Reads `count` templates, as phrases.
    pub(super) fn decode(reader: &mut Reader<'_>, count: usize) -> Option<Self> {
        let (mut heads, mut text) = (Vec::with_capacity(count), String::new());
        for _ in 0..count {
            let phrase = std::str::from_utf8(reader.length_prefixed()?).ok()?;
            heads.push(Head::decode(reader, text.len(), phrase)?);
            text.push_str(phrase);
        }
        Some(Self { heads: heads.into(), text: text.into(), words: Box::default() })
    }

    /// Finds out which templates give texts of one length. `ranges` are those of each template.
    pub(super) fn fix_lengths(&mut self, ranges: &[Ranges]) {
        let (mut heads, mut text, mut words) = (Vec::with_capacity(self.len()), String::new(), Vec::new());
        for (place, ranges) in ranges.iter().enumerate() {
            let Phrase { head, .. } = self.get(place);
            let phrase = &self.text[head.start as usize..][..head.len as usize];
            heads.push(head.fixed(phrase, ranges, &mut words).unwrap_or_else(|| {
                let start = text.len() as u32;
                text.push_str(phrase);
                Head { start, ..*head }
            }));
        }
        *self = Self { heads: heads.into(), text: text.into(), words: words.into() };
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> Phrase<'_> {
        Phrase { phrases: self, head: &self.heads[place] }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Phrase<'_>> {
        (0..self.len()).map(|place| self.get(place))
    }

    pub(super) fn resident_bytes(&self) -> usize {
        [size_of_val(&*self.heads), self.text.len(), size_of_val(&*self.words)].map(allocated).iter().sum()
    }
}

impl Head {
    /// Reads the slots of `phrase`, which comes to lie at `start`.
    fn decode(reader: &mut Reader<'_>, start: usize, phrase: &str) -> Option<Self> {
        let count = reader.varint().and_then(|count| u8::try_from(count).ok())?;
        let mut slots = [Slot::default(); SLOTS_MAX];
        let mut last = 0;
        for slot in slots.get_mut(..usize::from(count))? {
            let (at, width) = (usize::try_from(reader.varint()?).ok()?, reader.u8()?);
            let fits = last <= at && phrase.is_char_boundary(at) && usize::from(width) <= DIGITS_MAX;
            fits.then_some(())?;
            *slot = Slot::new(at, width)?;
            last = at;
        }
        let (start, len) = (u32::try_from(start).ok()?, u32::try_from(phrase.len()).ok()?);
        Some(Self { start, len, slots, count, is_fixed: false })
    }

    #[inline]
    fn slots(&self) -> &[Slot] {
        &self.slots[..usize::from(self.count)]
    }

    /// The same as a text of one length, which is added to `words`; `None` if there are several, or none, or no numbers in
    /// it.
    fn fixed(&self, phrase: &str, ranges: &Ranges, words: &mut Vec<u128>) -> Option<Self> {
        let (mut text, mut start) = (String::with_capacity(phrase.len() + 16), 0);
        let mut slots = self.slots;
        for (slot, &(least, largest)) in slots[..self.count.into()].iter_mut().zip(ranges) {
            let digits = |number: u64| number.checked_ilog10().map_or(1, |log| log as u8 + 1);
            let width = |number: u64| digits(number).max(slot.width);
            if least > largest || width(least) != width(largest) {
                return None;
            }
            let width = width(least);
            text.push_str(&phrase[start..slot.at()]);
            start = slot.at();
            *slot = Slot::new(text.len(), width)?;
            text.extend(std::iter::repeat_n('0', width.into()));
        }
        text.push_str(&phrase[start..]);
        (self.count > 0).then_some(())?;
        let head = Self { start: words.len() as u32, len: text.len() as u32, slots, is_fixed: true, ..*self };
        words.resize(words.len() + head.words(), 0);
        let bytes: &mut [u8] = bytemuck::must_cast_slice_mut(&mut words[head.start as usize..]);
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(head)
    }

    /// How many words a text of one length takes.
    #[inline]
    fn words(&self) -> usize {
        (self.len as usize + FIELD_BYTES).div_ceil(size_of::<u128>())
    }
}

/// A template, lent by its column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phrase<'a> {
    phrases: &'a Phrases,
    head: &'a Head,
}

impl<'a> Phrase<'a> {
    /// The text of all rows with this template, if there are no numbers in it.
    #[inline]
    pub(super) fn constant(&self) -> Option<&'a str> {
        (self.head.count == 0).then(|| self.phrase())
    }

    #[inline]
    fn phrase(&self) -> &'a str {
        &self.phrases.text[self.head.start as usize..][..self.head.len as usize]
    }

    #[inline]
    fn words(&self) -> &'a [u128] {
        &self.phrases.words[self.head.start as usize..][..self.head.words()]
    }

    fn bytes(&self) -> &'a [u8] {
        if self.head.is_fixed {
            &bytemuck::must_cast_slice(self.words())[..self.head.len as usize]
        } else {
            self.phrase().as_bytes()
        }
    }

    /// How many numbers are in it.
    pub(super) fn slots(&self) -> usize {
        self.head.slots().len()
    }

    /// What comes before the first number, and how many digits that has at least.
    pub(super) fn beginning(&self) -> Option<(&'a [u8], usize)> {
        let first = self.head.slots().first()?;
        Some((&self.bytes()[..first.at()], first.width.max(1).into()))
    }

    /// What no text is longer than.
    pub(super) fn text_bytes_max(&self) -> usize {
        self.head.len as usize + self.slots() * (DIGITS_MAX + 1)
    }

    /// Hands the text with these numbers to `put`, piece by piece; each is whole characters.
    #[inline]
    pub(super) fn each(&self, number: impl Fn(usize) -> u64, mut put: impl FnMut(&[u8])) {
        let (bytes, mut start) = (self.bytes(), 0);
        for (index, slot) in self.head.slots().iter().enumerate() {
            put(&bytes[start..slot.at()]);
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(number(index)).as_bytes();
            put(&ZEROS[..usize::from(slot.width).saturating_sub(digits.len())]);
            put(digits);
            start = slot.at() + if self.head.is_fixed { slot.width.into() } else { 0 };
        }
        put(&bytes[start..]);
    }

    /// The same for those who want text: whole, if it has one length and is short, or else piece by piece.
    #[inline]
    pub(super) fn each_text(&self, number: impl Fn(usize) -> u64, mut put: impl FnMut(&str)) {
        let mut words = [0; SHORT_WORDS];
        match words.get_mut(..self.head.words()) {
            Some(words) if self.head.is_fixed => {
                words.copy_from_slice(self.words());
                let bytes: &mut [u8] = bytemuck::must_cast_slice_mut(words);
                self.put_numbers(number, bytes);
                put(sound(&bytes[..self.head.len as usize]));
            }
            _ => self.each(number, |piece| put(sound(piece))),
        }
    }

    /// The text with these numbers, put together in `texts`; `None` never, unless the block was not sound.
    #[inline]
    pub(super) fn put_in<'t>(&self, number: impl Fn(usize) -> u64, texts: &'t Bump) -> Option<&'t str> {
        if !self.head.is_fixed {
            let mut text = bumpalo::collections::Vec::with_capacity_in(64, texts);
            self.each(number, |piece| text.extend_from_slice(piece));
            return std::str::from_utf8(text.into_bump_slice()).ok();
        }
        // Aligned and in whole words, text is looked at many bytes at a time.
        let words = texts.alloc_slice_copy(self.words());
        let bytes: &mut [u8] = bytemuck::must_cast_slice_mut(words);
        self.put_numbers(number, bytes);
        std::str::from_utf8(bytes).ok()?.get(..self.head.len as usize)
    }

    /// Appends the text with these numbers.
    #[inline]
    pub(super) fn append_to(&self, number: impl Fn(usize) -> u64, out: &mut Vec<u8>) {
        if !self.head.is_fixed {
            return self.each(number, |piece| out.extend_from_slice(piece));
        }
        let start = out.len();
        out.extend_from_slice(bytemuck::must_cast_slice(self.words()));
        self.put_numbers(number, &mut out[start..]);
        out.truncate(start + self.head.len as usize);
    }

    #[inline]
    fn put_numbers(&self, number: impl Fn(usize) -> u64, text: &mut [u8]) {
        for (index, slot) in self.head.slots().iter().enumerate() {
            slot.put(number(index), text);
        }
    }

    /// Length of the text with these numbers.
    pub(super) fn text_bytes(&self, number: impl Fn(usize) -> u64) -> usize {
        if self.head.is_fixed {
            return self.head.len as usize;
        }
        let mut len = 0;
        self.each(number, |piece| len += piece.len());
        len
    }
}

/// What a sound block holds is text.
fn sound(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_those_of_the_number() {
        for number in (0..100_000_000).step_by(997).chain([9, 10, 99, 100, 9_999, 10_000, 99_999_999]) {
            let digits = eight_digits(number) | 0x3030_3030_3030_3030;
            assert_eq!(digits.to_le_bytes(), *format!("{number:08}").as_bytes());
        }
        for (number, width) in [(u64::MAX, 20), (7, 19), (1_234_567_890_123, 13), (0, 1), (98_765, 12), (12_345_678, 8)]
        {
            let mut text = format!("id{}x\0\0\0\0\0\0\0\0", "0".repeat(width)).into_bytes();
            Slot::new(2, width as u8).expect("within a text").put(number, &mut text);
            assert_eq!(text, format!("id{number:0width$}x\0\0\0\0\0\0\0\0").into_bytes());
        }
    }
}
