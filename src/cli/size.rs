//! Sizes in memory as people write them: `32MiB`, `1.5GiB`, `4_194_304`.

/// What a unit stands for; the largest first, so that [`short`] takes it.
const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
/// Less than every engine needs to get by, so that a forgotten unit is noticed.
const LEAST_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 1 << 40;

/// Reads a memory budget. `MB` is refused, since it is a million bytes to some and not to others.
pub(super) fn parse_budget(text: &str) -> Result<u64, String> {
    let bytes = exact(text).ok_or_else(|| {
        format!("{text:?} is no size; write bytes or a unit of KiB, MiB or GiB, such as 32MiB or 1.5GiB")
    })?;
    if !(LEAST_BYTES..=MOST_BYTES).contains(&bytes) {
        return Err(format!("{text:?} is {bytes} bytes; a memory budget is 1MiB to 1024GiB"));
    }
    Ok(bytes)
}

/// Writes a size so that [`parse_budget`] reads it back: `32MiB`, `1536KiB`.
pub(super) fn short(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

fn exact(text: &str) -> Option<u64> {
    let unit = UNITS.iter().find_map(|(name, unit)| {
        let at = text.len().checked_sub(name.len())?;
        text.get(at..)?.eq_ignore_ascii_case(name).then(|| (text[..at].trim_end(), *unit))
    });
    let (number, unit) = unit.unwrap_or((text, 1));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let tenths = fraction.len() == 1 && (unit > 1 || fraction == "0");
    let fraction = if tenths { digits(fraction)? } else { return None };
    digits(whole)?.checked_mul(unit)?.checked_add(fraction * unit / 10)
}

fn digits(text: &str) -> Option<u64> {
    let sound = text.starts_with(|first: char| first.is_ascii_digit()) && !text.ends_with('_');
    if sound { text.replace('_', "").parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("32MiB", 32 << 20),
            ("32mib", 32 << 20),
            ("32 MiB", 32 << 20),
            ("1.5GiB", 3 << 29),
            ("4_194_304", 4 << 20),
            ("2048KiB", 2 << 20),
            ("1MiB", 1 << 20),
        ] {
            assert_eq!(parse_budget(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_units() {
        for text in [
            "",
            "MiB",
            "32MB",
            "32M",
            "-1MiB",
            "+1MiB",
            "1.MiB",
            ".5GiB",
            "1.25GiB",
            "1e9",
            "many",
            "1_MiB",
            "1é",
            "4194304.5",
        ] {
            assert!(parse_budget(text).is_err_and(|error| error.contains("KiB, MiB or GiB")), "{text}");
        }
        assert!(parse_budget("99999999999GiB").is_err(), "an overflow is no size");
    }

    #[test]
    fn a_budget_that_no_engine_can_keep_to_is_refused() {
        for text in ["0", "32", "1023KiB", "2000GiB"] {
            assert!(parse_budget(text).is_err_and(|error| error.contains("1MiB to 1024GiB")), "{text}");
        }
    }

    #[test]
    fn a_short_size_reads_back() {
        for bytes in [1 << 20, 32 << 20, 3 << 29, (1 << 20) + 1, 1 << 40] {
            assert_eq!(parse_budget(&short(bytes)), Ok(bytes));
        }
        assert_eq!(short(32 << 20), "32MiB");
    }
}
