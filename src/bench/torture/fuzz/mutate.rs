//! Small changes to bytes that may mean anything.

use crate::engine::disk::sim::Random;

/// Numbers at which readers change their minds.
const INTERESTING: [u64; 20] = [
    0,
    1,
    7,
    8,
    63,
    64,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0xFFFF,
    0x1_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    1 << 62,
    u64::MAX >> 1,
    1 << 63,
    u64::MAX,
];
/// Longest part that is copied or left out.
const PART_BYTES_MAX: usize = 64;

/// Changes `input` once; `corpus` is what it may take parts from.
pub(super) fn mutate(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let at = random.below(input.len() + 1);
    let part = at..(at + 1 + random.below(PART_BYTES_MAX)).min(input.len());
    match random.below(12) {
        0 => input.truncate(at),
        1 => drop(input.drain(part)),
        2 => {
            let copy = input[part].to_vec();
            drop(input.splice(at..at, copy));
        }
        3 => {
            let piece = piece(random, corpus);
            drop(input.splice(at..at, piece));
        }
        4 => {
            let piece = piece(random, corpus);
            let end = (at + piece.len()).min(input.len());
            drop(input.splice(at..end, piece));
        }
        5 => {
            let bytes = random.bytes(part.len().min(4));
            drop(input.splice(at..at, bytes));
        }
        6 => overwrite(input, at, &fixed(random)),
        7 => {
            // The varint that is there, or one byte, becomes another.
            let end = input[at..].iter().take(10).position(|byte| byte & 0x80 == 0).map_or(at, |len| at + len + 1);
            let varint = varint(*random.pick(&INTERESTING));
            drop(input.splice(at..end, varint));
        }
        _ if input.is_empty() => input.push(random.next() as u8),
        8 => {
            let at = at.min(input.len() - 1);
            input[at] = random.next() as u8;
        }
        9 => {
            let at = at.min(input.len() - 1);
            input[at] = if random.once_in(2) { input[at].wrapping_add(1) } else { input[at].wrapping_sub(1) };
        }
        _ => {
            let at = at.min(input.len() - 1);
            input[at] ^= 1 << random.below(8);
        }
    }
}

/// A part of any seed.
fn piece(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let seed = random.pick(corpus);
    let at = random.below(seed.len() + 1);
    seed[at..(at + 1 + random.below(PART_BYTES_MAX)).min(seed.len())].to_vec()
}

/// A number of one to eight bytes.
fn fixed(random: &mut Random) -> Vec<u8> {
    let number = random.pick(&INTERESTING).to_le_bytes();
    let mut bytes = number[..*random.pick(&[1, 2, 4, 8])].to_vec();
    if random.once_in(3) {
        bytes.reverse();
    }
    bytes
}

fn overwrite(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = (at + bytes.len()).min(input.len());
    drop(input.splice(at..end, bytes.iter().copied()));
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
