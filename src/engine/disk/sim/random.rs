//! Seeded random numbers: the same seed draws the same ones on every machine and in every release.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Where the numbers come from.
#[derive(Clone, Debug)]
pub(crate) struct Random(Source);

#[derive(Clone, Debug)]
enum Source {
    Seeded(Box<ChaCha8Rng>),
    /// What is left of given bytes, last byte first.
    Given(Vec<u8>),
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Source::Seeded(Box::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// Draws from given bytes, one for most numbers: who changes a byte changes a choice. Once there are no more, every
    /// number is 0.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(Source::Given(bytes.iter().rev().copied().collect()))
    }

    /// Whether all given bytes are used.
    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(&self.0, Source::Given(left) if left.is_empty())
    }

    pub(crate) fn next(&mut self) -> u64 {
        match &mut self.0 {
            Source::Seeded(numbers) => numbers.next_u64(),
            Source::Given(_) => (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    fn byte(&mut self) -> u8 {
        match &mut self.0 {
            Source::Seeded(numbers) => numbers.next_u64() as u8,
            Source::Given(left) => left.pop().unwrap_or_default(),
        }
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        assert!(end > 0, "there is no number below 0");
        if matches!(self.0, Source::Given(_)) {
            let number = if end <= 256 { self.byte().into() } else { self.next() };
            return (number % end as u64) as usize;
        }
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}
