//! Pure: values to places on an axis, and the ticks of that axis.

use crate::report::format::Unit;

/// A span above which a linear axis would hide the smaller values.
const SPAN_MAX: f64 = 60.0;

/// Most decades that get a tick of their own.
const DECADE_TICKS_MAX: i32 = 6;

/// An axis; places run from 0 (at the names) to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From zero to the largest value.
    Linear {
        /// Largest value.
        max: f64,
    },
    /// Between two powers of ten.
    Log {
        /// Exponent of the lower end.
        low: i32,
        /// Exponent of the upper end.
        high: i32,
    },
}

/// Whether values are too far apart for a linear axis. Zeros do not count: they have no place on the other one either.
pub(super) fn needs_log(values: &[f64]) -> bool {
    let positive = || values.iter().copied().filter(|value| *value > 0.0);
    let smallest = positive().fold(f64::INFINITY, f64::min);
    positive().fold(0.0, f64::max) > smallest * SPAN_MAX
}

impl Scale {
    /// An axis that holds all the values.
    pub(super) fn new(values: &[f64], log: bool) -> Self {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let smallest = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        if !log || largest <= 0.0 {
            return Self::Linear { max: if largest > 0.0 { largest } else { 1.0 } };
        }
        let low = (smallest.log10() - 0.001).floor() as i32;
        let high = (largest.log10().ceil() as i32).max(low + 1);
        Self::Log { low, high }
    }

    /// The place of a value.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear { max } => value / max,
            Self::Log { .. } if value <= 0.0 => 0.0,
            Self::Log { low, high } => (value.log10() - f64::from(low)) / f64::from(high - low),
        };
        place.clamp(0.0, 1.0)
    }

    /// Values that get a label, smallest first; two at least.
    pub(super) fn ticks(self, unit: Unit) -> Vec<f64> {
        match self {
            Self::Linear { max } => linear_ticks(max, unit),
            Self::Log { low, high } => {
                let step = ((high - low) / DECADE_TICKS_MAX + 1) as usize;
                let ticks = (low..=high).step_by(step).map(|exponent| 10_f64.powi(exponent));
                if unit == Unit::Bytes { round_bytes(ticks, 10_f64.powi(high)) } else { ticks.collect() }
            }
        }
    }
}

/// The tick of each decade, moved up to the next 1, 10 or 100 of the size it is written in: `10 MB`, not `9.5 MB`.
fn round_bytes(decades: impl Iterator<Item = f64>, end: f64) -> Vec<f64> {
    let round = |decade: f64| {
        let size = 1024_f64.powi((decade.max(1.0).log2() / 10.0 + 0.02).floor() as i32);
        size * 10_f64.powi((decade / size).log10().round() as i32)
    };
    let ticks = decades.map(|decade| if decade < 1.0 { decade } else { round(decade) });
    let mut ticks: Vec<_> = ticks.filter(|&tick| tick <= end).collect();
    if ticks.len() < 2 {
        ticks.push(end);
    }
    ticks
}

/// Multiples of 1, 2 or 5 times a power of ten; of bytes, in the size they are written in.
fn linear_ticks(max: f64, unit: Unit) -> Vec<f64> {
    let size = if unit == Unit::Bytes { 1024_f64.powi((max.max(1.0).log2() / 10.0).floor() as i32) } else { 1.0 };
    let rough = max / size / 5.0;
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough).unwrap_or(10.0) * power * size;
    // Next to the smallest numbers there are, the step itself comes out as zero.
    let count = if step.is_normal() { (max * 1.000_1 / step) as usize } else { 0 };
    if count == 0 { vec![0.0, max] } else { (0..=count).map(|index| index as f64 * step).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_has_two_ticks_within_its_ends() {
        let cases: [&[f64]; 8] =
            [&[], &[0.0], &[1.0], &[1.0, 1.0], &[2.0, 8.0], &[1e-9, 1e12], &[0.0, 5e-324], &[1e300, 1.0]];
        for values in cases {
            for log in [false, true] {
                for unit in [Unit::Rate, Unit::Millis, Unit::Bytes] {
                    let scale = Scale::new(values, log);
                    let ticks = scale.ticks(unit);
                    assert!((2..=8).contains(&ticks.len()), "{values:?} {scale:?} {ticks:?}");
                    assert!(ticks.iter().all(|tick| tick.is_finite()), "{values:?} {scale:?} {ticks:?}");
                    let places = values.iter().map(|value| scale.place(*value));
                    assert!(places.into_iter().all(|place| (0.0..=1.0).contains(&place)), "{values:?} {scale:?}");
                }
            }
        }
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_keeps_proportions() {
        let scale = Scale::new(&[50.0, 100.0], false);
        assert_eq!([0.0, 50.0, 100.0].map(|value| scale.place(value)).to_vec(), [0.0, 0.5, 1.0]);
        assert_eq!(scale.ticks(Unit::Rate), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn only_wide_spans_ask_for_a_log_axis() {
        assert!(needs_log(&[1.0, 100.0]));
        assert!(!needs_log(&[0.0, 2.0, 8.0]));
        assert!(!needs_log(&[]));
    }

    #[test]
    fn byte_ticks_are_whole_in_their_size() {
        const MEBIBYTE: f64 = 1024.0 * 1024.0;
        let ticks = Scale::new(&[33.0 * MEBIBYTE], false).ticks(Unit::Bytes);
        assert!(ticks.iter().all(|tick| tick % MEBIBYTE == 0.0), "{ticks:?}");
        let ticks = Scale::new(&[60.0 * MEBIBYTE, 5800.0 * MEBIBYTE], true).ticks(Unit::Bytes);
        assert_eq!(ticks[..3], [10.0 * MEBIBYTE, 100.0 * MEBIBYTE, 1024.0 * MEBIBYTE]);
    }
}
