//! The seeded random numbers of .NET: Knuth's subtractive generator, as the published plan was drawn with it.
//!
//! It is kept exactly as it is, quirks included, because the published checksums depend on every draw: the state
//! wraps in 32 bits, the last slot may be negative, and the smallest seed counts as the largest.

const SLOTS: usize = 55;

/// A generator; equal seeds give equal numbers. A clone goes on as the original would have.
#[derive(Clone)]
pub struct DotnetRandom {
    /// Slots 1 to 55; slot 0 is not used.
    slots: [i32; SLOTS + 1],
    first: usize,
    second: usize,
}

impl DotnetRandom {
    /// Starts the stream of `seed`. A seed and its negative have the same stream.
    pub fn new(seed: i32) -> Self {
        let mut slots = [0; SLOTS + 1];
        let mut previous = 161_803_398 - seed.checked_abs().unwrap_or(i32::MAX);
        slots[SLOTS] = previous;
        let mut current = 1;
        for i in 1..SLOTS {
            let slot = 21 * i % SLOTS;
            slots[slot] = current;
            current = wrapped_difference(previous, current);
            previous = slots[slot];
        }
        for _ in 0..4 {
            for k in 1..=SLOTS {
                slots[k] = wrapped_difference(slots[k], slots[1 + (k + 30) % SLOTS]);
            }
        }
        Self { slots, first: 0, second: 21 }
    }

    /// A number from `lo` up to, and without, `hi`; `lo`, without drawing, if there is no other.
    pub fn range(&mut self, lo: i64, hi: i64) -> i64 {
        let width = hi - lo;
        if width <= 1 {
            return lo;
        }
        let width = width as u64;
        let shift = (width - 1).leading_zeros();
        loop {
            let drawn = self.u64() >> shift;
            if drawn < width {
                return lo + drawn as i64;
            }
        }
    }

    /// A number from 0 up to, and without, `n`.
    pub fn below(&mut self, n: i32) -> i32 {
        (f64::from(self.sample()) * (1.0 / f64::from(i32::MAX)) * f64::from(n)) as i32
    }

    fn u64(&mut self) -> u64 {
        let low = self.below(1 << 22) as u64;
        let middle = self.below(1 << 22) as u64;
        let high = self.below(1 << 20) as u64;
        low | middle << 22 | high << 44
    }

    fn sample(&mut self) -> i32 {
        self.first = self.first % SLOTS + 1;
        self.second = self.second % SLOTS + 1;
        let mut drawn = self.slots[self.first].wrapping_sub(self.slots[self.second]);
        if drawn == i32::MAX {
            drawn -= 1;
        }
        if drawn < 0 {
            drawn = drawn.wrapping_add(i32::MAX);
        }
        self.slots[self.first] = drawn;
        drawn
    }
}

/// `a - b`, brought back by the modulus once if it is negative. May still be negative: .NET leaves it so.
fn wrapped_difference(a: i32, b: i32) -> i32 {
    let difference = a.wrapping_sub(b);
    if difference < 0 { difference.wrapping_add(i32::MAX) } else { difference }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_well_known_seeds_come_out() {
        let first = |seed: i32| DotnetRandom::new(seed).sample();
        assert_eq!(first(0), 1_559_595_546);
        assert_eq!(first(1), 534_011_718);
        assert_eq!(first(42), 1_434_747_710);
    }

    #[test]
    fn a_seed_and_its_negative_have_the_same_stream() {
        let stream = |seed: i32| {
            let mut random = DotnetRandom::new(seed);
            (0..200).map(|_| random.u64()).collect::<Vec<_>>()
        };
        assert_eq!(stream(7), stream(-7));
        assert_eq!(stream(i32::MIN), stream(i32::MAX));
        assert_ne!(stream(1), stream(2));
    }

    #[test]
    fn a_range_of_one_draws_nothing() {
        let (mut drawn, mut fresh) = (DotnetRandom::new(5), DotnetRandom::new(5));
        assert_eq!(drawn.range(3, 4), 3);
        assert_eq!(drawn.range(3, 3), 3);
        assert_eq!(drawn.sample(), fresh.sample());
    }

    #[test]
    fn a_range_reaches_both_ends_and_stays_inside() {
        let mut random = DotnetRandom::new(9);
        let drawn: Vec<_> = (0..2000).map(|_| random.range(-2, 3)).collect();
        assert_eq!(drawn.iter().min(), Some(&-2));
        assert_eq!(drawn.iter().max(), Some(&2));
    }
}
