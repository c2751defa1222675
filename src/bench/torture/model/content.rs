//! What the trees of a list of steps are made of: layouts, and keys and values that follow them, mostly.

use super::step::Key;
use crate::engine::disk::sim::Random;
use crate::engine::{Field, Layout};

/// What the keys of a tree are, by the number of the tree.
#[derive(Clone, Copy)]
enum Family {
    /// Numbers of eight bytes, in a row and far apart.
    Numbers,
    /// Texts with decimal numbers in them, and a number of two bytes behind.
    Texts,
    /// Three numbers.
    Composite,
    /// Anything awkward.
    Awkward,
}

/// Draws layouts, keys and values. Keys are few, so that they meet.
pub(super) struct Content {
    families: [Family; 4],
    /// Whether some keys and values are of another family than the others of their tree.
    has_strays: bool,
}

impl Content {
    pub(super) fn new(random: &mut Random) -> Self {
        use Family::{Awkward, Composite, Numbers, Texts};
        let mut families = [Numbers, Texts, Composite, Awkward];
        families.rotate_left(random.below(4));
        Self { families, has_strays: random.once_in(2) }
    }

    /// One that fits the keys of a tree, or any.
    pub(super) fn layout(&self, random: &mut Random, tree: usize) -> Layout {
        let layouts = layouts();
        let fitting: &[usize] = match self.families[tree % 4] {
            Family::Numbers => &[1, 2],
            Family::Texts => &[3, 4],
            Family::Composite => &[5, 6],
            Family::Awkward => &[7, 8],
        };
        let index = if random.once_in(4) { random.below(layouts.len()) } else { *random.pick(fitting) };
        layouts[index].clone()
    }

    pub(super) fn key(&self, random: &mut Random, tree: usize) -> Key {
        match self.family(random, tree) {
            Family::Numbers => number(random).to_be_bytes().to_vec(),
            Family::Texts => {
                let number = random.below(120);
                let text = match random.below(8) {
                    0 => format!("user{number}\0"),
                    1 => format!("user{number:03}x7\0"),
                    _ => format!("user{number:03}\0"),
                };
                [text.as_bytes(), &[0, random.below(2) as u8]].concat()
            }
            Family::Composite => {
                let place = [*random.pick(&[b"DE", b"FR", b"JP"]), &[0, random.below(3) as u8][1..]].concat();
                [place.as_slice(), &(random.below(40) as u64).to_be_bytes()].concat()
            }
            Family::Awkward => awkward(random),
        }
    }

    pub(super) fn value(&self, random: &mut Random, tree: usize) -> Vec<u8> {
        if random.once_in(60) {
            return random.bytes(700);
        }
        match self.family(random, tree) {
            Family::Numbers => record(random),
            Family::Texts if random.once_in(2) => number(random).to_be_bytes().to_vec(),
            Family::Texts | Family::Composite => Vec::new(),
            Family::Awkward => {
                let len = random.below(30);
                if random.once_in(2) { phrase(random).into_bytes() } else { random.bytes(len) }
            }
        }
    }

    /// Bytes of any family, of keys or of values.
    pub(super) fn stray(&self, random: &mut Random) -> Vec<u8> {
        let tree = random.below(self.families.len());
        if random.once_in(2) { self.key(random, tree) } else { record(random) }
    }

    fn family(&self, random: &mut Random, tree: usize) -> Family {
        if self.has_strays && random.once_in(20) { *random.pick(&self.families) } else { self.families[tree % 4] }
    }
}

fn layouts() -> [Layout; 9] {
    let (eight, rest) = (Field::BigEndian(8), Field::Rest);
    let option = Field::Option(Box::new(Field::Group(vec![Field::Varint])));
    let columns = |key: &[Field], value: &[Field]| Layout { key: key.to_vec(), value: value.to_vec() };
    let record = [Field::BigEndian(1), Field::Varint, Field::ZigZag, Field::Prefixed, option];
    [
        Layout::opaque(),
        columns(std::slice::from_ref(&eight), &record),
        columns(&[Field::BigEndian(3), Field::BigEndian(5)], std::slice::from_ref(&rest)),
        columns(&[Field::Terminated(0), Field::BigEndian(2)], std::slice::from_ref(&rest)),
        columns(&[Field::Terminated(b'0'), rest.clone()], std::slice::from_ref(&rest)),
        columns(&[Field::BigEndian(2), Field::BigEndian(1), eight], &[]),
        columns(&[Field::BigEndian(2), Field::LittleEndian(4), Field::BigEndian(5)], std::slice::from_ref(&rest)),
        columns(std::slice::from_ref(&rest), std::slice::from_ref(&rest)),
        columns(&[Field::OneOf(vec![rest.clone(); 0xFF])], std::slice::from_ref(&rest)),
    ]
}

fn number(random: &mut Random) -> u64 {
    let number = random.below(60) as u64;
    match random.below(4) {
        0 => number * 1_000_003,
        1 => u64::MAX - number,
        _ => number,
    }
}

/// A value of five columns.
fn record(random: &mut Random) -> Vec<u8> {
    let text = if random.once_in(9) { random.bytes(5) } else { phrase(random).into_bytes() };
    let mut value = vec![1];
    for number in [number(random), number(random), text.len() as u64] {
        put_varint(number, &mut value);
    }
    value.extend(text);
    value.extend_from_slice(if random.once_in(2) { &[0] } else { &[1, 0x80, 7] });
    value
}

/// Texts that are templates, in part: with numbers at both ends, of too many digits, and none at all.
fn phrase(random: &mut Random) -> String {
    let number = number(random);
    match random.below(8) {
        0 => String::new(),
        1 => format!("{number}"),
        2 => format!("{number:020} é {number}"),
        3 => format!("{number:019}"),
        4 => format!("{}{number}", u64::MAX),
        5 => "1 2 3 4 5 6 7 8 9".to_owned(),
        _ => format!("likes tea since {}, {number:04} times", 1990 + number % 30),
    }
}

fn awkward(random: &mut Random) -> Key {
    let number = random.below(60) as u8;
    match random.below(14) {
        0 => vec![0xFF; random.below(10)],
        1 => vec![0; random.below(3)],
        2 => [vec![b'p'; 300], vec![number % 6]].concat(),
        3 => vec![5, number / 6 * 25, 0xFF],
        4 => format!("user/{number}").into_bytes(),
        _ => format!("user/{number:03}").into_bytes(),
    }
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
