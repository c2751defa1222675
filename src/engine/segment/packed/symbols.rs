//! Texts in codes of one byte: the frequent pieces of a column, its symbols, have one each.
//!
//! ```text
//! symbols := count:u8 len:u8{count} symbol{count}
//! codes   := code*
//! code    := below `count`, the symbol with this number
//!          | 255 byte                                       a byte that no symbol covers
//! ```
//!
//! This is FSST: a text stays in its codes, in memory too, until somebody looks at it, and is read without its
//! neighbours. A symbol is text by itself, of 1 to 8 bytes, and bytes without a symbol make whole characters, so that any
//! row of codes is text; that is checked when a block is read, and leaves nothing to go wrong later.
//!
//! Symbols are found as the paper does it (Boncz, Neumann, Leis 2020), but out of characters instead of bytes: what they
//! cover is written in codes again and again, and each time those symbols stay, or come, that would save most. The crate
//! `fsst-rs` was tried: its symbols cut characters, which had to be checked text by text or given up, it takes 6 MB while
//! it looks for symbols, and its codes were longer.

use std::cmp::Reverse;
use std::collections::HashMap;

use bumpalo::Bump;

use crate::engine::codec::Reader;
use crate::engine::segment::heads::head_u64;

const ESCAPE: u8 = u8::MAX;
/// Bytes of a symbol, at most.
pub(super) const SYMBOL_BYTES_MAX: usize = 8;
/// What a symbol takes in memory: its bytes, padded, and how many they are.
const ENTRY_BYTES: usize = SYMBOL_BYTES_MAX + 1;
/// Bytes of a character, at most.
const CHARACTER_BYTES_MAX: usize = 4;
/// A text is put together in pieces of about this length.
const PIECE_BYTES: usize = 256;
/// Symbols there may be: one code is taken.
const SYMBOLS_MAX: usize = 255;
/// Bytes of texts that symbols are found in, about.
const SAMPLE_BYTES: usize = 32 << 10;
/// How often symbols are chosen anew: those of 8 bytes come up the third time at the earliest.
const ROUNDS: usize = 5;
/// What a character alone counts: without a symbol it takes two codes for each byte.
const CHARACTER_WEIGHT: usize = 8;

/// A text in codes, as it lies in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coded<'a> {
    /// Nine bytes for each symbol: eight that begin with it, and its length.
    pub(crate) symbols: &'a [u8],
    pub(crate) codes: &'a [u8],
}

impl<'a> Coded<'a> {
    /// Hands the text to `put`, piece by piece.
    pub(crate) fn each(&self, mut put: impl FnMut(&str)) {
        let (mut piece, mut len) = ([0; PIECE_BYTES + SYMBOL_BYTES_MAX], 0);
        self.each_symbol(|bytes, symbol_len| {
            if len > PIECE_BYTES {
                let whole = whole_characters(&piece[..len]);
                put(whole);
                // The beginning of a character that goes on.
                let rest = whole.len()..len;
                len = rest.len().min(CHARACTER_BYTES_MAX);
                piece.copy_within(rest.start..rest.start + len, 0);
            }
            if let Some(place) = piece[len..].first_chunk_mut() {
                *place = bytes;
                len += symbol_len;
            }
        });
        put(whole_characters(&piece[..len]));
    }

    /// The text, put together in `texts`.
    pub(crate) fn put_in<'t>(&self, texts: &'t Bump) -> &'t str {
        let mut whole = bumpalo::collections::String::with_capacity_in(self.codes.len() * 3, texts);
        self.each(|piece| whole.push_str(piece));
        whole.into_bump_str()
    }

    /// Length of the text in bytes.
    pub(super) fn len(&self) -> usize {
        let mut len = 0;
        self.each_symbol(|_, symbol_len| len += symbol_len);
        len
    }

    /// Whether every code has a symbol or a byte, and the bytes make whole characters.
    pub(super) fn is_text(&self) -> bool {
        let (count, mut rest) = (self.entries().len(), self.codes);
        while let Some(at) = first_without_symbol(rest, count) {
            match behind_character(&rest[at..]) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        true
    }

    /// Bytes and length of each symbol, or of what has none.
    #[inline(always)]
    fn each_symbol(&self, mut visit: impl FnMut([u8; SYMBOL_BYTES_MAX], usize)) {
        let (entries, mut codes) = (self.entries(), self.codes.iter());
        while let Some(code) = codes.next() {
            match entries.get(usize::from(*code)) {
                Some([bytes @ .., len]) => visit(*bytes, (*len).into()),
                None => visit([codes.next().copied().unwrap_or_default(), 0, 0, 0, 0, 0, 0, 0], 1),
            }
        }
    }

    fn entries(&self) -> &'a [[u8; ENTRY_BYTES]] {
        self.symbols.as_chunks().0
    }
}

/// The characters that are there whole.
#[inline]
fn whole_characters(bytes: &[u8]) -> &str {
    let whole = std::str::from_utf8(bytes).or_else(|error| std::str::from_utf8(&bytes[..error.valid_up_to()]));
    whole.unwrap_or_default()
}

/// The first code that is not below `count`. Most are, so they are looked at many at a time.
fn first_without_symbol(codes: &[u8], count: usize) -> Option<usize> {
    let limit = count as u8;
    let have_symbols = |codes: &&[u8; 16]| codes.iter().filter(|code| **code >= limit).count() == 0;
    let passed = 16 * codes.as_chunks().0.iter().take_while(have_symbols).count();
    codes[passed..].iter().position(|code| usize::from(*code) >= count).map(|at| passed + at)
}

/// What follows the character at the front of `codes`, of which every byte is written as it is.
fn behind_character(mut codes: &[u8]) -> Option<&[u8]> {
    let mut character = [0; CHARACTER_BYTES_MAX];
    for index in 0..CHARACTER_BYTES_MAX {
        let (&[escape, byte], behind) = codes.split_first_chunk()?;
        character[index] = byte;
        if escape != ESCAPE {
            return None;
        }
        if std::str::from_utf8(&character[..=index]).is_ok() {
            return Some(behind);
        }
        codes = behind;
    }
    None
}

/// Reads symbols as [`Coded::symbols`] has them.
pub(super) fn decode_symbols(reader: &mut Reader<'_>) -> Option<Box<[u8]>> {
    let count = usize::from(reader.u8()?);
    let lens = reader.bytes(count)?;
    let mut symbols = Vec::with_capacity(count * ENTRY_BYTES);
    for len in lens {
        let symbol = reader.bytes((*len).into()).filter(|symbol| (1..=SYMBOL_BYTES_MAX).contains(&symbol.len()))?;
        std::str::from_utf8(symbol).ok()?;
        symbols.extend_from_slice(symbol);
        symbols.resize(symbols.len().next_multiple_of(ENTRY_BYTES) - 1, 0);
        symbols.push(*len);
    }
    Some(symbols.into())
}

/// Writes texts in the codes of symbols that were found once.
pub(super) struct Coder {
    /// By their first bytes, the longest of each first.
    symbols: Vec<Piece>,
    /// For each byte, the first symbol that begins with it or a larger one.
    starts: [u8; 257],
}

/// A few bytes of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Piece {
    /// The bytes and zeros, the first byte least significant.
    word: u64,
    len: usize,
}

impl Piece {
    /// The first `len` bytes of `text`.
    fn of(text: &[u8], len: usize) -> Self {
        Self { word: head(text) & mask(len), len }
    }

    fn first(&self) -> u8 {
        self.word as u8
    }

    /// What it would save as a symbol that is used `count` times.
    fn gain(&self, count: usize) -> usize {
        let weight = if self.len == character_len(self.first()) { CHARACTER_WEIGHT } else { 1 };
        weight * count * self.len
    }
}

impl Coder {
    /// Finds symbols that suit `texts`, which are text, and others like them.
    pub(super) fn train(texts: &[&[u8]]) -> Self {
        (0..ROUNDS).fold(Self::new(Vec::new()), |coder, _| {
            let mut gains: Vec<_> =
                coder.count(texts).into_iter().map(|(piece, count)| (Reverse(piece.gain(count)), piece)).collect();
            gains.sort_unstable();
            gains.truncate(SYMBOLS_MAX);
            Self::new(gains.into_iter().map(|(_, piece)| piece).collect())
        })
    }

    fn new(mut symbols: Vec<Piece>) -> Self {
        symbols.sort_unstable_by_key(|symbol| (symbol.first(), Reverse(symbol.len), symbol.word));
        let before = |byte: usize| symbols.partition_point(|symbol| usize::from(symbol.first()) < byte) as u8;
        Self { starts: std::array::from_fn(before), symbols }
    }

    /// How often each symbol is used for a sample of `texts`, and each two of them one behind the other.
    fn count(&self, texts: &[&[u8]]) -> HashMap<Piece, usize> {
        let (mut counts, mut left) = (HashMap::new(), SAMPLE_BYTES);
        for text in texts {
            let mut before = None;
            let mut rest = *text;
            while let Some(first) = rest.first()
                && left > 0
            {
                let len = self.longest(rest).map_or(character_len(*first), |code| self.symbols[code].len);
                *counts.entry(Piece::of(rest, len)).or_default() += 1;
                if let Some((begin, begin_len)) = before
                    && begin_len + len <= SYMBOL_BYTES_MAX
                {
                    *counts.entry(Piece::of(begin, begin_len + len)).or_default() += 1;
                }
                before = Some((rest, len));
                rest = &rest[len..];
                left = left.saturating_sub(len);
            }
        }
        counts
    }

    /// The code of the longest symbol that `text` begins with.
    #[inline]
    fn longest(&self, text: &[u8]) -> Option<usize> {
        let word = head(text);
        let first = usize::from(word as u8);
        (self.starts[first].into()..self.starts[first + 1].into()).find(|code| {
            let Piece { word: symbol, len } = self.symbols[*code];
            (word ^ symbol) & mask(len) == 0 && len <= text.len()
        })
    }

    /// Appends the symbols to `out`.
    pub(super) fn put_symbols(&self, out: &mut Vec<u8>) {
        out.push(self.symbols.len() as u8);
        out.extend(self.symbols.iter().map(|symbol| symbol.len as u8));
        self.symbols.iter().for_each(|symbol| out.extend_from_slice(&symbol.word.to_le_bytes()[..symbol.len]));
    }

    /// Appends the codes of `text` to `codes`.
    pub(super) fn encode(&self, mut text: &[u8], codes: &mut Vec<u8>) {
        while let Some((first, behind)) = text.split_first() {
            if let Some(code) = self.longest(text) {
                codes.push(code as u8);
                text = &text[self.symbols[code].len..];
            } else {
                codes.extend_from_slice(&[ESCAPE, *first]);
                text = behind;
            }
        }
    }
}

/// The first eight bytes; what is missing counts as zero.
#[inline]
fn head(text: &[u8]) -> u64 {
    head_u64(text).swap_bytes()
}

/// Ones for the first `len` bytes, of which there are 1 to 8.
#[inline]
fn mask(len: usize) -> u64 {
    u64::MAX >> (8 * (SYMBOL_BYTES_MAX - len))
}

/// Bytes of the character that begins with `first`.
fn character_len(first: u8) -> usize {
    match first {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn symbols(written: &[u8]) -> Option<Box<[u8]>> {
        let mut reader = Reader::new(written);
        decode_symbols(&mut reader).filter(|_| reader.is_empty())
    }

    fn read(symbols: &[u8], codes: &[u8]) -> String {
        let (lent, bump, mut text) = (Coded { symbols, codes }, Bump::new(), String::new());
        assert!(lent.is_text());
        lent.each(|piece| text.push_str(piece));
        assert_eq!((lent.len(), lent.put_in(&bump)), (text.len(), text.as_str()));
        text
    }

    fn assert_come_back(sample: &[&[u8]], texts: &[&str]) -> usize {
        let (encoder, mut written) = (Coder::train(sample), Vec::new());
        encoder.put_symbols(&mut written);
        let symbols = symbols(&written).expect("what was written is sound");
        let mut all = 0;
        for text in texts {
            let mut codes = Vec::new();
            encoder.encode(text.as_bytes(), &mut codes);
            assert_eq!(read(&symbols, &codes), *text);
            all += codes.len();
        }
        all
    }

    #[test]
    fn texts_come_back_whatever_their_symbols_were_made_for() {
        let words = ["the morning ", "über the river ", "自転車 ", "\u{1F6B2}\u{1F6B2} "];
        let texts: Vec<_> = (0..400).map(|n| words[n % 4].repeat(1 + n % 23) + words[n / 7 % 4]).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        let bytes: Vec<_> = texts.iter().map(|text| text.as_bytes()).collect();
        let len: usize = texts.iter().map(|text| text.len()).sum();
        assert!(assert_come_back(&bytes, &texts) < len / 3);
        assert_come_back(&[b"quite other texts"], &texts);
        assert_come_back(&[], &["", "no symbols at all é", &"\u{1F6B2}é\0".repeat(300)]);
    }

    #[test]
    fn symbols_that_break_off_or_are_no_text_are_refused() {
        assert!(symbols(&[2, 1, 8, b'a', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8']).is_some());
        assert!(symbols(&[0]).is_some());
        for bytes in [&[][..], &[1], &[1, 0], &[1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, b'a'], &[1, 1, 0xC3]] {
            assert_eq!(symbols(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn codes_without_a_symbol_and_pieces_of_characters_are_no_text() {
        let symbols = symbols(&[2, 1, 2, b'a', 0xC3, 0xA9]).expect("a and é");
        assert_eq!(read(&symbols, &[0, 1, ESCAPE, b'x', ESCAPE, 0xC3, ESCAPE, 0xA8, 0]), "aéxèa");
        let cases: [&[u8]; 6] =
            [&[2], &[ESCAPE], &[0, ESCAPE], &[ESCAPE, 0xC3], &[ESCAPE, 0xC3, 1], &[ESCAPE, 0xA9, ESCAPE, 0xC3]];
        for codes in cases {
            let coded = Coded { symbols: &symbols, codes };
            assert!(!coded.is_text(), "{codes:?}");
        }
    }

    #[test]
    fn the_most_frequent_pieces_become_symbols_whatever_the_writing() {
        let codes = |text: &str| assert_come_back(&[text.as_bytes(); 50], &[text]);
        assert_eq!(codes("once up"), 1);
        assert_eq!(codes("\u{43C}\u{438}\u{440} "), 1);
        assert!(codes("the quick brown fox ") <= 5);
    }

    proptest! {
        #[test]
        fn any_codes_are_read_without_a_panic_and_sound_ones_are_whole(
            codes in proptest::collection::vec(prop_oneof![0..4_u8, Just(ESCAPE), any::<u8>()], 0..400)
        ) {
            let symbols = symbols(&[4, 1, 3, 8, 2, b'a', b'b', b'c', b'd', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8', 0xC3, 0xA9])
                .expect("four of them");
            let (coded, mut len) = (Coded { symbols: &symbols, codes: &codes }, 0);
            coded.each(|piece| len += piece.len());
            if coded.is_text() {
                prop_assert_eq!(coded.len(), len);
            }
        }

        #[test]
        fn every_text_comes_back(texts in proptest::collection::vec("[a-cé0🚲 ]{0,40}|\\PC{0,40}", 1..40)) {
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            let bytes: Vec<_> = texts.iter().step_by(2).map(|text| text.as_bytes()).collect();
            assert_come_back(&bytes, &texts);
        }
    }
}
