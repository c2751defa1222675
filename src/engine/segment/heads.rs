//! Searching sorted keys by their heads: the first bytes of a key as a number that sorts as they do.
//!
//! A head is compared without leaving its array, and most searches are decided by heads alone; only keys with equal
//! heads are compared whole. Keys are often spread evenly, so a search begins where an even spread puts the key, and
//! widens from there: close to one step for numbers in a row, and no more than twice a binary search for any keys.

/// The first four bytes; what is missing counts as zero.
#[inline]
pub(super) fn head_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(padded(bytes))
}

/// The first eight bytes; what is missing counts as zero.
#[inline]
pub(super) fn head_u64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(padded(bytes))
}

#[inline]
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut head = [0; N];
        head[..bytes.len()].copy_from_slice(bytes);
        head
    })
}

pub(super) fn common_prefix_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// How many of `len` sorted keys come before the one looked for: one with head `target`, which `is_before` compares
/// with the keys that have the same head.
#[inline]
pub(super) fn rank(len: usize, head: impl Fn(usize) -> u64, target: u64, is_before: impl Fn(usize) -> bool) -> usize {
    let below = rank_of_head(len, &head, target);
    if below == len || head(below) != target {
        return below;
    }
    let mut step = 1;
    while below + step < len && head(below + step) == target {
        step *= 2;
    }
    bisect(below, len.min(below + step), |index| head(index) == target && is_before(index))
}

/// How many of `len` sorted heads are below `target`.
#[inline]
pub(super) fn rank_of_head(len: usize, head: impl Fn(usize) -> u64, target: u64) -> usize {
    if len == 0 || target <= head(0) {
        return 0;
    }
    let (first, last) = (head(0), head(len - 1));
    if last < target {
        return len;
    }
    let share = (target - first) as f64 / (last - first) as f64;
    let guess = ((share * (len - 1) as f64) as usize).min(len - 1);
    // Evenly spread keys are found at once, give or take one for rounding.
    if head(guess) < target && head(guess + 1) >= target {
        return guess + 1;
    }
    let mut step = 8;
    if head(guess) < target {
        let mut low = guess + 1;
        while low + step < len && head(low + step) < target {
            low += step;
            step *= 2;
        }
        return bisect(low, len.min(low + step), |index| head(index) < target);
    }
    let mut high = guess;
    while high > step && head(high - step) >= target {
        high -= step;
        step *= 2;
    }
    bisect(high.saturating_sub(step), high, |index| head(index) < target)
}

/// The first of `low..high` that is not `before`, when all that are come first; `high` if there is none.
#[inline]
pub(super) fn bisect(mut low: usize, mut high: usize, before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_ranks(keys: &[Vec<u8>], target: &[u8]) {
        let expected = keys.partition_point(|key| key.as_slice() < target);
        let before = |index: usize| keys[index].as_slice() < target;
        let short = rank(keys.len(), |index| head_u32(&keys[index]).into(), head_u32(target).into(), before);
        let long = rank(keys.len(), |index| head_u64(&keys[index]), head_u64(target), before);
        assert_eq!((short, long), (expected, expected), "{target:?} in {keys:?}");
    }

    #[test]
    fn missing_bytes_sort_as_the_shorter_key_does() {
        assert_eq!(head_u32(b""), 0);
        assert_eq!(head_u32(b"ab"), 0x6162_0000);
        assert_eq!(head_u64(b"abcdefghi"), 0x6162_6364_6566_6768);
    }

    #[test]
    fn keys_of_uneven_spread_are_found() {
        let doubling: Vec<_> = (0..64).map(|shift| (1_u64 << shift).to_be_bytes().to_vec()).collect();
        for target in 0..64 {
            assert_ranks(&doubling, &(1_u64 << target).to_be_bytes());
            assert_ranks(&doubling, &((1_u64 << target) - 1).to_be_bytes());
        }
    }

    proptest! {
        #[test]
        fn rank_is_how_many_keys_are_less(
            mut keys in proptest::collection::vec(proptest::collection::vec(0..3_u8, 0..10), 0..200),
            numbers in proptest::collection::vec(any::<u64>(), 0..200),
            target in proptest::collection::vec(0..3_u8, 0..10),
        ) {
            keys.extend(numbers.iter().map(|number| number.to_be_bytes().to_vec()));
            keys.sort();
            keys.dedup();
            assert_ranks(&keys, &target);
            for key in &keys {
                assert_ranks(&keys, key);
                assert_ranks(&keys, &[key.as_slice(), b"\0"].concat());
            }
        }
    }
}
