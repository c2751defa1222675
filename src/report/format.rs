//! Numbers as people read them: whole numbers grouped with `_`, bytes in steps of 1024 with one decimal, and short
//! forms with three significant digits for charts and the terminal. What is absent or not finite is `n/a`.

/// Shown for what was not measured or does not apply.
pub const ABSENT: &str = "n/a";

/// What a number counts, and so how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Operations per second.
    Rate,
    /// Milliseconds.
    Millis,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The short form: `1.40 M/s`, `310 ms`, `7.4 MB`.
    pub fn short(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => ABSENT.to_owned(),
            Self::Rate => short_rate(value),
            Self::Millis => short_millis(value),
            Self::Bytes => bytes(value),
        }
    }
}

/// `1_403_521`.
pub fn grouped(value: u64) -> String {
    group_digits(&value.to_string())
}

fn group_digits(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// A number in full, with the decimals that still mean something: `8_378`, `41.7`, `0.052`.
pub fn decimal(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return ABSENT.to_owned() };
    let size = value.abs();
    match size {
        _ if size == 0.0 => "0".to_owned(),
        _ if !(0.001..1e15).contains(&size) => format!("{value:.2e}"),
        _ if size < 10.0 => format!("{value:.3}"),
        _ if size < 100.0 => format!("{value:.1}"),
        _ => format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped(size.round() as u64)),
    }
}

/// A factor: `1.00x`, `26.9x`.
pub fn factor(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or_else(|| ABSENT.to_owned(), |value| format!("{}x", significant(value)))
}

/// A share of one: `14.8%`.
pub fn percent(share: Option<f64>) -> String {
    share.filter(|share| share.is_finite()).map_or_else(|| ABSENT.to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// Bytes in full, or [`ABSENT`].
pub fn optional_bytes(value: Option<u64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| bytes(value as f64))
}

/// `7.4 MB`: steps of 1024, one decimal.
pub fn bytes(value: f64) -> String {
    const NAMES: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if value.abs() < 1024.0 {
        return format!("{value:.0} B");
    }
    let mut scaled = value / 1024.0;
    let mut name = 0;
    // 1023.95 would be written as 1024.0.
    while scaled.abs() >= 1023.95 && name + 1 < NAMES.len() {
        scaled /= 1024.0;
        name += 1;
    }
    format!("{scaled:.1} {}", NAMES[name])
}

/// Bytes out of a text such as `7.4 MB`, steps of 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, name) = text.trim().split_once(' ')?;
    let power = ["B", "KB", "MB", "GB", "TB"].iter().position(|known| *known == name)?;
    let value = number.parse::<f64>().ok()? * 1024_f64.powi(power as i32);
    (value.is_finite() && value >= 0.0).then_some(value.round() as u64)
}

/// `100 K`, `1.5 M`: a round count, short; every other count in full.
pub fn count(value: u64) -> String {
    match value {
        1_000_000.. if value.is_multiple_of(100_000) => format!("{} M", trimmed(value as f64 / 1e6)),
        1_000.. if value.is_multiple_of(100) => format!("{} K", trimmed(value as f64 / 1e3)),
        _ => grouped(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), ToOwned::to_owned)
}

fn short_rate(value: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, " T/s"), (1e9, " G/s"), (1e6, " M/s"), (1e3, " K/s")];
    // A value that would be written as 1000 belongs to the next step.
    for (size, name) in STEPS {
        if value >= size * 0.9995 {
            return format!("{}{name}", significant(value / size));
        }
    }
    format!("{}/s", significant(value))
}

fn short_millis(value: f64) -> String {
    match value {
        0.0 => "0 ms".to_owned(),
        _ if value < 0.000_999_5 => format!("{} ns", significant(value * 1e6)),
        _ if value < 0.999_5 => format!("{} µs", significant(value * 1e3)),
        _ if value < 999.5 => format!("{} ms", significant(value)),
        _ => format!("{} s", significant(value / 1e3)),
    }
}

/// Three significant digits: `0`, `0.0523`, `1.40`, `26.9`, `310`, `15_212`.
fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(0.000_1..1e6).contains(&size) => format!("{value:.2e}"),
        size if size < 0.009_995 => format!("{value:.5}"),
        size if size < 0.099_95 => format!("{value:.4}"),
        size if size < 0.999_5 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        size => grouped(size.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_grouped_from_the_right() {
        assert_eq!(
            ["0", "999", "1_000", "1_403_521"],
            [0, 999, 1000, 1_403_521].map(grouped).each_ref().map(|s| &s[..])
        );
    }

    #[test]
    fn short_forms_keep_three_digits_and_never_say_a_thousand() {
        assert_eq!(Unit::Rate.short(1_403_521.0), "1.40 M/s");
        assert_eq!(Unit::Rate.short(999_999.0), "1.00 M/s");
        assert_eq!(Unit::Rate.short(46_497.0), "46.5 K/s");
        assert_eq!(Unit::Rate.short(1e-9), "1.00e-9/s");
        assert_eq!(Unit::Millis.short(310.0), "310 ms");
        assert_eq!(Unit::Millis.short(999.7), "1.00 s");
        assert_eq!(Unit::Millis.short(15_211_870.0), "15_212 s");
        assert_eq!(Unit::Millis.short(0.052), "52.0 µs");
        assert_eq!(Unit::Bytes.short(1024.0 * 1023.97), "1.0 MB");
    }

    #[test]
    fn what_is_not_a_number_is_not_shown_as_one() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Unit::Rate.short(value), ABSENT);
            assert_eq!(decimal(Some(value)), ABSENT);
            assert_eq!(factor(Some(value)), ABSENT);
            assert_eq!(percent(Some(value)), ABSENT);
        }
        assert_eq!(decimal(None), ABSENT);
    }

    #[test]
    fn published_sizes_are_read_in_steps_of_1024() {
        assert_eq!(parse_bytes("7.4 MB"), Some(7_759_462));
        assert_eq!(parse_bytes("1.0 GB"), Some(1 << 30));
        assert_eq!([parse_bytes("7.4"), parse_bytes("x MB"), parse_bytes("-1 MB"), parse_bytes("1 XB")], [None; 4]);
        assert_eq!(bytes(7_759_462.0), "7.4 MB");
    }

    #[test]
    fn round_counts_are_short() {
        assert_eq!([100_000, 1_500_000, 12_345, 50].map(count), ["100 K", "1.5 M", "12_345", "50"]);
    }
}
