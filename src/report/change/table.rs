//! A comparison of two results for the terminal: a table for each contender, then what a reader should know.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Cell, CellAlignment, Table};

use super::{Change, Comparison, ContenderChange, PhaseChange, REPETITIONS_MIN, SAME_SHARE};
use crate::report::format::{self, ABSENT, Unit};

/// The comparison as text, one piece for each line or table.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut text = Vec::new();
    for contender in &comparison.contenders {
        text.push(format!("{}: {}", contender.contender, repetitions(contender)));
        if contender.wrong.is_empty() {
            text.push(table(contender));
            text.extend(too_few(contender));
        } else {
            text.push("not compared, because the answers differ:".to_owned());
            text.extend(contender.wrong.iter().cloned());
        }
        text.push(String::new());
    }
    text.extend(comparison.notes.iter().cloned());
    text.push(summary(comparison));
    text
}

fn repetitions(contender: &ContenderChange) -> String {
    let [before, after] = contender.repetitions;
    let plural = if after == 1 { "repetition" } else { "repetitions" };
    format!("{before} and {after} {plural}; medians, and the interval of their ratio")
}

fn too_few(contender: &ContenderChange) -> Option<String> {
    let fewest = contender.repetitions.into_iter().min()?;
    (fewest < REPETITIONS_MIN).then(|| {
        let what = if fewest == 1 { "one repetition" } else { "two repetitions" };
        format!(
            "Nothing can be said about noise with {what}, so none of this is called faster or slower; run both with \
             --repeat {REPETITIONS_MIN}, better 5."
        )
    })
}

fn table(contender: &ContenderChange) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(
        [Cell::new("phase")].into_iter().chain(["first", "second", "second / first", "95 %", ""].map(right)),
    );
    for phase in &contender.phases {
        table.add_row(row(phase));
    }
    table.trim_fmt()
}

fn row(phase: &PhaseChange) -> Vec<Cell> {
    let interval = match phase.change {
        Change::TooFew => ABSENT.to_owned(),
        _ => format!("{:.2} to {:.2}", phase.ratio.low, phase.ratio.high),
    };
    vec![
        Cell::new(&phase.phase),
        right(&Unit::Millis.short(phase.before_ms.median)),
        right(&Unit::Millis.short(phase.after_ms.median)),
        right(&format::factor(Some(phase.ratio.median))),
        right(&interval),
        Cell::new(phase.change.as_str()),
    ]
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// How many phases of all contenders came out how; the totals are not counted again.
fn summary(comparison: &Comparison) -> String {
    let count = |change: Change| {
        let sound = comparison.contenders.iter().filter(|contender| contender.wrong.is_empty());
        let phases =
            sound.flat_map(|contender| contender.phases.iter().filter(|phase| phase.phase != super::ALL_PHASES));
        let count = phases.filter(|phase| phase.change == change).count();
        (count > 0).then(|| format!("{count} {}", change.as_str()))
    };
    let all = [Change::Faster, Change::Slower, Change::Same, Change::Noisy, Change::TooFew];
    let counts: Vec<String> = all.into_iter().filter_map(count).collect();
    let counts = if counts.is_empty() { "none compared".to_owned() } else { counts.join(", ") };
    format!("Phases: {counts}. Same is within {:.0} %.", SAME_SHARE * 100.0)
}
