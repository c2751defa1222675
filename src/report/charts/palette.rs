//! Colours: the same for a contender in every chart, told apart by people who do not see all colours alike.

use plotters::style::RGBColor;

/// Text and axis lines.
pub(super) const INK: RGBColor = RGBColor(0x1B, 0x22, 0x2C);
/// Secondary text.
pub(super) const MUTED: RGBColor = RGBColor(0x5F, 0x6B, 0x7A);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xE3, 0xE7, 0xEC);
/// The axis at zero.
pub(super) const AXIS: RGBColor = RGBColor(0xA9, 0xB2, 0xBD);
/// What is wrong or was stopped.
pub(super) const ALARM: RGBColor = RGBColor(0xB4, 0x23, 0x18);
/// Page.
pub(super) const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);

/// Contenders we know, by lower-case name.
const KNOWN: [(&str, RGBColor); 9] = [
    ("profilestore", RGBColor(0x00, 0x5F, 0xB8)),
    ("floor", RGBColor(0x7A, 0x82, 0x8C)),
    ("fjall", RGBColor(0xE6, 0x9F, 0x00)),
    ("sqlite", RGBColor(0x56, 0xB4, 0xE9)),
    ("redb", RGBColor(0xD5, 0x5E, 0x00)),
    ("lmdb", RGBColor(0x00, 0x9E, 0x73)),
    ("rocksdb", RGBColor(0xCC, 0x79, 0xA7)),
    ("mysql", RGBColor(0x99, 0x99, 0x33)),
    ("zonetree", RGBColor(0x88, 0x22, 0x55)),
];

/// For everyone else.
const OTHERS: [RGBColor; 6] = [
    RGBColor(0x33, 0x22, 0x88),
    RGBColor(0x44, 0xAA, 0x99),
    RGBColor(0xAA, 0x44, 0x99),
    RGBColor(0x11, 0x77, 0x33),
    RGBColor(0xB8, 0x9C, 0x2A),
    RGBColor(0x66, 0x33, 0x1F),
];

/// The colour of a contender, from nothing but its name.
pub(super) fn color_of(engine: &str) -> RGBColor {
    let name = engine.to_lowercase();
    let known = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, color)| *color);
    known.unwrap_or_else(|| {
        let sum = name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        OTHERS[sum % OTHERS.len()]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_keeps_its_colour_and_its_spelling_does_not_matter() {
        assert_eq!(color_of("RocksDB"), color_of("rocksdb"));
        assert_eq!(color_of("unheard-of"), color_of("unheard-of"));
        assert_eq!(color_of(""), OTHERS[0]);
    }

    #[test]
    fn no_two_contenders_share_a_colour() {
        let mut colors: Vec<_> = KNOWN.iter().map(|(_, color)| color).chain(&OTHERS).map(|c| (c.0, c.1, c.2)).collect();
        colors.sort_unstable();
        colors.dedup();
        assert_eq!(colors.len(), KNOWN.len() + OTHERS.len());
    }
}
