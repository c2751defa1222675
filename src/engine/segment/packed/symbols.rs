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
//! neighbours. A symbol has 1 to 8 bytes. That codes make text is checked when a block is read, and leaves nothing to go
//! wrong later: at a glance where each symbol is text by itself, and by putting all texts together where symbols cut
//! characters, as they do in writings of two and more bytes a letter. Symbols are found by the crate `fsst`, which also
//! writes the codes. It trusts what it reads, so reading is done here.

use bumpalo::Bump;
use fsst::{Compressor, Symbol};

use crate::engine::codec::Reader;

const ESCAPE: u8 = u8::MAX;
/// Bytes of a symbol, at most.
pub(super) const SYMBOL_BYTES_MAX: usize = 8;
/// What a symbol takes in memory: its bytes, padded, and how many they are.
const ENTRY_BYTES: usize = SYMBOL_BYTES_MAX + 1;
/// Bytes of a character, at most.
const CHARACTER_BYTES_MAX: usize = 4;
/// A text is put together in pieces of about this length.
const PIECE_BYTES: usize = 256;

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

    /// Whether every code has a symbol or a byte, and together they make text; `whole` says whether each symbol does.
    pub(super) fn is_text(&self, whole: bool) -> bool {
        let (count, mut rest) = (self.entries().len(), self.codes);
        while let Some(at) = first_without_symbol(rest, count) {
            rest = &rest[at..];
            let behind = if whole { behind_character(rest) } else { behind_byte(rest) };
            let Some(behind) = behind else { return false };
            rest = behind;
        }
        whole || {
            let mut len = 0;
            self.each(|piece| len += piece.len());
            len == self.len()
        }
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

/// Whether each symbol is text by itself.
pub(super) fn are_text(symbols: &[u8]) -> bool {
    let (entries, _) = symbols.as_chunks::<ENTRY_BYTES>();
    entries.iter().all(|[bytes @ .., len]| std::str::from_utf8(&bytes[..usize::from(*len)]).is_ok())
}

/// What follows the byte at the front of `codes` that is written as it is.
fn behind_byte(codes: &[u8]) -> Option<&[u8]> {
    codes.strip_prefix(&[ESCAPE])?.get(1..)
}

/// What follows the character at the front of `codes`, of which every byte is written as it is.
fn behind_character(mut codes: &[u8]) -> Option<&[u8]> {
    let mut character = [0; CHARACTER_BYTES_MAX];
    for index in 0..CHARACTER_BYTES_MAX {
        let behind = behind_byte(codes)?;
        character[index] = codes[1];
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
        symbols.extend_from_slice(symbol);
        symbols.resize(symbols.len().next_multiple_of(ENTRY_BYTES) - 1, 0);
        symbols.push(*len);
    }
    Some(symbols.into())
}

/// Writes texts in the codes of symbols that were found once.
pub(super) struct Coder {
    compressor: Compressor,
}

impl Coder {
    /// Finds symbols that suit `texts`, and others like them: whole characters, if those do about as well as others.
    pub(super) fn train(texts: &[&[u8]]) -> Self {
        let all = Self { compressor: Compressor::train(&texts.to_vec()) };
        let is_whole = |symbol: &[u8]| std::str::from_utf8(symbol).is_ok();
        let (symbols, lens) = all
            .table()
            .filter(|(symbol, len)| is_whole(&symbol.to_u64().to_le_bytes()[..*len]))
            .map(|(s, len)| (s, len as u8))
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let whole = Self { compressor: Compressor::rebuild_from(symbols, lens) };
        let bytes = |coder: &Self| texts.iter().map(|text| coder.compressor.compress(text).len()).sum::<usize>();
        if bytes(&whole) / 11 <= bytes(&all) / 10 { whole } else { all }
    }

    fn table(&self) -> impl Iterator<Item = (Symbol, usize)> {
        let lens = self.compressor.symbol_lengths().iter().map(|len| usize::from(*len));
        self.compressor.symbol_table().iter().copied().zip(lens)
    }

    /// Appends the symbols to `out`.
    pub(super) fn put_symbols(&self, out: &mut Vec<u8>) {
        out.push(self.compressor.symbol_table().len() as u8);
        out.extend_from_slice(self.compressor.symbol_lengths());
        self.table().for_each(|(symbol, len)| out.extend_from_slice(&symbol.to_u64().to_le_bytes()[..len]));
    }

    /// Appends the codes of `text` to `codes`.
    pub(super) fn encode(&self, text: &[u8], codes: &mut Vec<u8>) {
        codes.extend_from_slice(&self.compressor.compress(text));
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
        assert!(lent.is_text(are_text(symbols)) && lent.is_text(false));
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
    fn symbols_that_break_off_or_are_too_long_are_refused() {
        assert!(symbols(&[2, 1, 8, b'a', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8']).is_some());
        assert!(symbols(&[0]).is_some());
        for bytes in [&[][..], &[1], &[1, 0], &[1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, b'a']] {
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
            assert!(!coded.is_text(true) && !coded.is_text(false), "{codes:?}");
        }
    }

    #[test]
    fn symbols_that_cut_characters_make_text_in_the_right_order_only() {
        let symbols = symbols(&[3, 1, 2, 1, 0xC3, 0xA9, 0xC3, 0xA8]).expect("é and è, cut");
        assert!(!are_text(&symbols));
        let long = [&[0], vec![1; 500].as_slice(), &[2, ESCAPE, b'!']].concat();
        assert_eq!(read(&symbols, &long), "é".repeat(500) + "è!");
        for codes in [&[0][..], &[2], &[0, 1], &[1, 2], &long[1..], &long[..501]] {
            assert!(!Coded { symbols: &symbols, codes }.is_text(false), "{codes:?}");
        }
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
            if coded.is_text(false) {
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
