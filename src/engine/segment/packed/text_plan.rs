//! Chooses how a column of texts is written; see `texts.rs` for what the forms look like.
//!
//! Every text is taken apart into a phrase and the numbers in it. If phrases come again and again, they are templates;
//! otherwise the texts are written one behind the other: long ones in codes, if that makes a block a good deal shorter in
//! memory. In the file it makes little difference: general compression finds in codes what it finds in text.
//!
//! Symbols are found in the first long texts of a segment and serve all its blocks, each of which holds a copy: finding
//! them takes milliseconds, and a copy takes some hundred bytes of a file.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::numbers::{Plan, Sign};
use super::symbols::Coder;
use super::texts::{AT_MAX, CODED, DIGITS_MAX, PLAIN, SLOTS_MAX, TEMPLATES, TEMPLATES_MAX};
use crate::engine::codec::{put_length_prefixed, put_varint};

/// Bytes of all texts of a block for which codes are tried: shorter texts are better lent as they are, and a value that is
/// a block of its own may be too.
const CODED_BYTES: RangeInclusive<usize> = 16 << 10..=1 << 20;

/// A column that is to be written: its head, and the numbers that go into the rows.
pub(super) struct TextPlan {
    head: Vec<Part>,
}

/// What a head is made of, in its order.
enum Part {
    Bytes(Vec<u8>),
    Numbers(Plan),
}

impl TextPlan {
    /// The shorter form for at least one text. `None` if there is none: bytes that are text together, and not one by one.
    /// Codes are those of `encoder`, which is made for the first texts that want one; no place for it is no codes.
    pub(super) fn choose(texts: &[&[u8]], encoder: Option<&mut Option<Coder>>) -> Option<Self> {
        let plain = plain(texts);
        let templates = Self::of_all(texts).filter(|all| plain.as_ref().is_none_or(|plain| all.bytes < plain.bytes));
        let whole = templates.or(plain)?;
        let shorter = encoder.and_then(|encoder| coded(texts, whole.memory_bytes, encoder));
        Some(Self { head: shorter.unwrap_or(whole.head) })
    }

    /// Appends the head to `out`, and the numbers to `plans`.
    pub(super) fn put(self, out: &mut Vec<u8>, plans: &mut Vec<Plan>) {
        for part in self.head {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(&bytes),
                Part::Numbers(plan) => {
                    out.extend_from_slice(plan.head());
                    plans.push(plan);
                }
            }
        }
    }
}

/// A form, and what it takes.
struct Form {
    head: Vec<Part>,
    /// About how long it will be in the file: general compression, which comes behind, makes half or less of plain text,
    /// and leaves little of phrases that resemble each other.
    bytes: usize,
    /// About what its texts take in memory.
    memory_bytes: usize,
}

fn plain(texts: &[&[u8]]) -> Option<Form> {
    let blob = texts.concat();
    let is_text = std::str::from_utf8(&blob).is_ok();
    if is_text && texts.iter().any(|text| std::str::from_utf8(text).is_err()) {
        return None;
    }
    let ends = ends(texts.iter().map(|text| text.len()));
    let bytes = ends.bytes() + blob.len() / 2;
    let mut tail = Vec::with_capacity(blob.len() + 4);
    put_length_prefixed(&mut tail, &blob);
    let head = vec![Part::Bytes(vec![PLAIN]), Part::Numbers(ends), Part::Bytes(tail)];
    Some(Form { head, bytes, memory_bytes: blob.len() })
}

/// Where texts of these lengths end, one behind the other.
fn ends(lens: impl Iterator<Item = usize>) -> Plan {
    let ends = lens.scan(0, |end, len| {
        *end += len as u64;
        Some(*end)
    });
    Plan::choose(&ends.collect::<Vec<_>>(), Sign::Unsigned)
}

/// Long texts in codes, if that takes at most three quarters of the memory that they take otherwise.
fn coded(texts: &[&[u8]], memory_bytes: usize, encoder: &mut Option<Coder>) -> Option<Vec<Part>> {
    let fit = CODED_BYTES.contains(&memory_bytes) && texts.iter().all(|text| std::str::from_utf8(text).is_ok());
    fit.then_some(())?;
    let encoder = encoder.get_or_insert_with(|| Coder::train(texts));
    let (mut codes, mut lens) = (Vec::new(), Vec::with_capacity(texts.len()));
    for text in texts {
        let start = codes.len();
        encoder.encode(text, &mut codes);
        lens.push(codes.len() - start);
    }
    let mut head = vec![CODED];
    encoder.put_symbols(&mut head);
    (codes.len() + head.len() <= memory_bytes / 4 * 3).then_some(())?;
    let mut tail = Vec::with_capacity(codes.len() + 4);
    put_length_prefixed(&mut tail, &codes);
    Some(vec![Part::Bytes(head), Part::Numbers(ends(lens.into_iter())), Part::Bytes(tail)])
}

/// Texts taken apart, one after the other.
#[derive(Default)]
struct Parsed {
    templates: Vec<Template>,
    /// The template with a hash.
    known: HashMap<u64, usize>,
    /// The template of each row.
    choice: Vec<u64>,
    /// The numbers of all rows, and where those of each row end.
    digits: Vec<Digits>,
    ends: Vec<usize>,
    /// What the text at hand is without its numbers, and where they were.
    phrase: String,
    places: Vec<usize>,
}

struct Template {
    phrase: String,
    places: Vec<usize>,
}

struct Digits {
    number: u64,
    len: usize,
    padded: bool,
}

impl Parsed {
    /// All of the texts; `None` if some are no text, or if they have too little in common.
    fn new(texts: &[&[u8]]) -> Option<Self> {
        let mut parsed = Self::default();
        for text in texts {
            parsed.take_apart(std::str::from_utf8(text).ok()?);
            let template = parsed.template()?;
            parsed.choice.push(template as u64);
            parsed.ends.push(parsed.digits.len());
            // Phrases that hardly ever come twice are no phrases, and that shows soon.
            let templates = parsed.templates.len();
            (templates <= TEMPLATES_MAX && templates <= 16 + parsed.choice.len() / 2).then_some(())?;
        }
        Some(parsed)
    }

    fn take_apart(&mut self, text: &str) {
        self.phrase.clear();
        self.places.clear();
        let mut rest = text;
        while let Some(start) = rest.bytes().position(|byte| byte.is_ascii_digit()) {
            let (before, from) = rest.split_at(start);
            let digits = from.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(from.len());
            let (digits, behind) = from.split_at(digits);
            self.phrase.push_str(before);
            match digits.parse() {
                Ok(number)
                    if digits.len() <= DIGITS_MAX && self.places.len() < SLOTS_MAX && self.phrase.len() < AT_MAX =>
                {
                    let padded = digits.len() > 1 && digits.starts_with('0');
                    self.places.push(self.phrase.len());
                    self.digits.push(Digits { number, len: digits.len(), padded });
                }
                _ => self.phrase.push_str(digits),
            }
            rest = behind;
        }
        self.phrase.push_str(rest);
    }

    /// The template of the text at hand. `None` for two with one hash, which no texts have but those made for it.
    fn template(&mut self) -> Option<usize> {
        let places = self.places.iter().fold(0, |hash: u64, place| hash.rotate_left(16) ^ *place as u64);
        let hash = xxh3_64_with_seed(self.phrase.as_bytes(), places);
        let next = self.templates.len();
        let index = *self.known.entry(hash).or_insert(next);
        if index == next {
            self.templates.push(Template { phrase: self.phrase.clone(), places: self.places.clone() });
        }
        let Template { phrase, places } = &self.templates[index];
        (*phrase == self.phrase && *places == self.places).then_some(index)
    }

    fn row(&self, row: usize) -> &[Digits] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.digits[start..self.ends[row]]
    }

    /// Appends the templates. `None` if numbers of one slot are not rendered alike.
    fn put_templates(&self, out: &mut Vec<u8>) -> Option<()> {
        let mut members = vec![Vec::new(); self.templates.len()];
        for (row, template) in self.choice.iter().enumerate() {
            members[*template as usize].push(row);
        }
        put_varint(out, self.templates.len() as u64);
        for (Template { phrase, places }, rows) in self.templates.iter().zip(&members) {
            put_length_prefixed(out, phrase.as_bytes());
            put_varint(out, places.len() as u64);
            for (slot, at) in places.iter().enumerate() {
                put_varint(out, *at as u64);
                out.push(width_of(rows.iter().map(|row| &self.row(*row)[slot]))?);
            }
        }
        Some(())
    }

    /// The numbers in a slot. A row without this slot has the number of the row before: it costs nothing in most forms.
    fn numbers(&self, slot: usize) -> Vec<u64> {
        let rows = (0..self.ends.len()).map(|row| self.row(row).get(slot).map(|digits| digits.number));
        let mut last = rows.clone().flatten().next().unwrap_or_default();
        rows.map(|number| {
            last = number.unwrap_or(last);
            last
        })
        .collect()
    }
}

impl TextPlan {
    /// All texts as templates and numbers; `None` where that is no gain or does not give the same texts again.
    fn of_all(texts: &[&[u8]]) -> Option<Form> {
        let parsed = Parsed::new(texts)?;
        let mut head = vec![TEMPLATES];
        parsed.put_templates(&mut head)?;
        let fields = parsed.templates.iter().map(|template| template.places.len()).max().unwrap_or_default();
        let mut parts = vec![Part::Bytes(head), Part::Numbers(Plan::choose(&parsed.choice, Sign::Unsigned))];
        parts.push(Part::Bytes(vec![fields as u8]));
        for field in 0..fields {
            parts.push(Part::Numbers(Plan::choose(&parsed.numbers(field), Sign::Unsigned)));
        }
        let numbers = parts.iter().map(|part| if let Part::Numbers(plan) = part { plan.bytes() } else { 0 });
        let phrases = parsed.templates.iter().map(|template| template.phrase.len()).sum::<usize>();
        let bytes = numbers.sum::<usize>() + phrases / 4;
        Some(Form { head: parts, bytes, memory_bytes: phrases })
    }
}

/// The width that renders all of these digits as they are: `None` if there is none.
fn width_of<'a>(digits: impl Iterator<Item = &'a Digits> + Clone) -> Option<u8> {
    let width = digits.clone().find(|digits| digits.padded).map_or(1, |digits| digits.len);
    let mut fits = digits.map(|digits| if digits.padded { digits.len == width } else { digits.len >= width });
    fits.all(|fits| fits).then_some(width as u8)
}
