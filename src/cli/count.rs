//! Counts as people write them: `100K`, `1.5M`, `100_000`.

/// Reads a count: digits with `_` between them, a fraction where the product is whole, and `K` (thousand) or `M`
/// (million) in any case.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    exact(text).ok_or_else(|| format!("{text:?} is no count; write a whole number such as 250, 100_000, 100K or 1.5M"))
}

/// The same, at least 1.
pub(super) fn parse_positive(text: &str) -> Result<u64, String> {
    match parse(text)? {
        _ if text.starts_with("00") => {
            Err(format!("a comma separates counts, and {text:?} is none; write ten thousand as 10K, 10_000 or 10000"))
        }
        0 => Err("it must be at least 1".to_owned()),
        count => Ok(count),
    }
}

/// Writes a count so that [`parse`] reads it back: `100K`, `1500`, `1M`.
pub(super) fn short(count: u64) -> String {
    match count {
        count if count >= 1_000_000 && count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        count if count >= 1_000 && count.is_multiple_of(1_000) => format!("{}K", count / 1_000),
        count => count.to_string(),
    }
}

fn exact(text: &str) -> Option<u64> {
    let (number, factor) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1), |number| (number, 1_000_000)),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (digits(whole)?, fraction),
        None => (digits(number)?, "0"),
    };
    // More decimals than the factor has zeros can only be zeros.
    let fraction = fraction.trim_end_matches('0');
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts = if fraction.is_empty() { 0 } else { digits(fraction)?.checked_mul(factor)? };
    if !parts.is_multiple_of(scale) {
        return None;
    }
    whole.checked_mul(factor)?.checked_add(parts / scale)
}

fn digits(text: &str) -> Option<u64> {
    let inner = !text.starts_with('_') && !text.ends_with('_');
    let text: String = text.chars().filter(|letter| *letter != '_').collect();
    let sound = inner && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        for (text, count) in [
            ("0", 0),
            ("250", 250),
            ("100K", 100_000),
            ("100k", 100_000),
            ("1M", 1_000_000),
            ("1.5M", 1_500_000),
            ("0.25k", 250),
            ("2.0", 2),
            ("100_000", 100_000),
            ("1_0.5K", 10_500),
        ] {
            assert_eq!(parse(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn what_is_no_whole_number_is_refused() {
        for text in [
            "",
            "K",
            "-5",
            "+5",
            "1.5",
            "1.0005K",
            "_1",
            "1_",
            "1e5",
            "10G",
            "ten",
            "99999999999999999999",
            "1K5",
            ".5M",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("18446744073709551615M").is_err(), "an overflow is no count");
        assert!(parse_positive("0").is_err());
        assert!(parse_positive("000").is_err_and(|text| text.contains("10_000")), "of 10,000");
    }

    #[test]
    fn a_short_count_reads_back() {
        for count in [0, 1, 999, 1_000, 1_500, 100_000, 1_000_000, 2_500_000, u64::MAX] {
            assert_eq!(parse(&short(count)), Ok(count));
        }
        assert_eq!(short(100_000), "100K");
    }
}
