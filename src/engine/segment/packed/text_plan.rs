//! Chooses how a column of texts is written; see `texts.rs` for what the forms look like.
//!
//! Every text is taken apart into a phrase and the numbers in it. If phrases come again and again, they are templates;
//! otherwise the texts are written one behind the other.

use std::collections::HashMap;

use super::numbers::{Plan, Sign};
use super::texts::{AT_MAX, DIGITS_MAX, PLAIN, SLOTS_MAX, TEMPLATES, TEMPLATES_MAX};
use crate::engine::codec::{put_length_prefixed, put_varint};

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
    pub(super) fn choose(texts: &[&[u8]]) -> Option<Self> {
        let plain = plain(texts);
        let templates = Self::of_all(texts).filter(|(_, bytes)| *bytes < plain.as_ref().map_or(usize::MAX, |p| p.1));
        templates.or(plain).map(|(head, _)| Self { head })
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

/// A form, and about how long it will be in the file: general compression, which comes behind, makes half or less of
/// plain text, and leaves little of phrases that resemble each other.
type Sized = (Vec<Part>, usize);

fn plain(texts: &[&[u8]]) -> Option<Sized> {
    let blob = texts.concat();
    let is_text = std::str::from_utf8(&blob).is_ok();
    if is_text && texts.iter().any(|text| std::str::from_utf8(text).is_err()) {
        return None;
    }
    let ends = texts.iter().scan(0, |end, text| {
        *end += text.len() as u64;
        Some(*end)
    });
    let ends = Plan::choose(&ends.collect::<Vec<_>>(), Sign::Unsigned);
    let bytes = ends.bytes() + blob.len() / 2;
    let mut tail = Vec::with_capacity(blob.len() + 4);
    put_length_prefixed(&mut tail, &blob);
    Some((vec![Part::Bytes(vec![PLAIN]), Part::Numbers(ends), Part::Bytes(tail)], bytes))
}

/// A text taken apart.
struct Parsed {
    phrase: String,
    slots: Vec<(usize, Digits)>,
}

struct Digits {
    number: u64,
    len: usize,
    padded: bool,
}

impl Parsed {
    fn new(text: &str) -> Self {
        let mut parsed = Self { phrase: String::with_capacity(text.len()), slots: Vec::new() };
        let mut rest = text;
        while let Some(start) = rest.bytes().position(|byte| byte.is_ascii_digit()) {
            let (before, from) = rest.split_at(start);
            let digits = from.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(from.len());
            let (digits, behind) = from.split_at(digits);
            parsed.phrase.push_str(before);
            match digits.parse() {
                Ok(number)
                    if digits.len() <= DIGITS_MAX && parsed.slots.len() < SLOTS_MAX && parsed.phrase.len() < AT_MAX =>
                {
                    let padded = digits.len() > 1 && digits.starts_with('0');
                    parsed.slots.push((parsed.phrase.len(), Digits { number, len: digits.len(), padded }));
                }
                _ => parsed.phrase.push_str(digits),
            }
            rest = behind;
        }
        parsed.phrase.push_str(rest);
        parsed
    }
}

impl TextPlan {
    /// All texts as templates and numbers; `None` where that is no gain or does not give the same texts again.
    fn of_all(texts: &[&[u8]]) -> Option<Sized> {
        let mut parsed = Vec::with_capacity(texts.len());
        let mut known: HashMap<(String, Vec<usize>), u64> = HashMap::new();
        let mut choice = Vec::with_capacity(texts.len());
        for text in texts {
            let Parsed { phrase, slots } = Parsed::new(std::str::from_utf8(text).ok()?);
            let places = slots.iter().map(|(at, _)| *at).collect();
            let next = known.len() as u64;
            choice.push(*known.entry((phrase, places)).or_insert(next));
            parsed.push(slots);
            // Phrases that hardly ever come twice are no phrases, and that shows soon.
            if known.len() > TEMPLATES_MAX || known.len() > 16 + choice.len() / 2 {
                return None;
            }
        }
        let mut templates: Vec<_> = known.into_iter().collect();
        templates.sort_unstable_by_key(|(_, index)| *index);
        let (mut head, mut phrases) = (vec![TEMPLATES], 0);
        put_varint(&mut head, templates.len() as u64);
        let mut members = vec![Vec::new(); templates.len()];
        for (row, template) in choice.iter().enumerate() {
            members[*template as usize].push(row);
        }
        for (((phrase, places), _), rows) in templates.iter().zip(&members) {
            put_length_prefixed(&mut head, phrase.as_bytes());
            put_varint(&mut head, places.len() as u64);
            for (slot, at) in places.iter().enumerate() {
                put_varint(&mut head, *at as u64);
                head.push(width_of(rows.iter().map(|row| &parsed[*row][slot].1))?);
            }
            phrases += phrase.len();
        }
        let fields = templates.iter().map(|((_, places), _)| places.len()).max().unwrap_or_default();
        let mut parts = vec![Part::Bytes(head), Part::Numbers(Plan::choose(&choice, Sign::Unsigned))];
        parts.push(Part::Bytes(vec![fields as u8]));
        for field in 0..fields {
            parts.push(Part::Numbers(Plan::choose(&field_numbers(&parsed, field), Sign::Unsigned)));
        }
        let numbers = parts.iter().map(|part| if let Part::Numbers(plan) = part { plan.bytes() } else { 0 });
        let bytes = numbers.sum::<usize>() + phrases / 4;
        Some((parts, bytes))
    }
}

/// The width that renders all of these digits as they are: `None` if there is none.
fn width_of<'a>(digits: impl Iterator<Item = &'a Digits> + Clone) -> Option<u8> {
    let width = digits.clone().find(|digits| digits.padded).map_or(1, |digits| digits.len);
    let mut fits = digits.map(|digits| if digits.padded { digits.len == width } else { digits.len >= width });
    fits.all(|fits| fits).then_some(width as u8)
}

/// A row without this field has the number of the row before: it costs nothing in most forms.
fn field_numbers(rows: &[Vec<(usize, Digits)>], field: usize) -> Vec<u64> {
    let first = rows.iter().find_map(|slots| slots.get(field)).map_or(0, |(_, digits)| digits.number);
    let numbers = rows.iter().scan(first, |last, slots| {
        *last = slots.get(field).map_or(*last, |(_, digits)| digits.number);
        Some(*last)
    });
    numbers.collect()
}
