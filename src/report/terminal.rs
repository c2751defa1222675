//! The summary at the end of a run, as text of at most 100 columns: one row a phase, one column a contender, then a
//! sentence for everything that is wrong or surprising. Escape sequences only where the caller asked for colour.

use std::ops::Range;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Cell, CellAlignment, Table};

use crate::bench::result::{EngineResult, RunResult};

use super::charts::{status_word, workload};
use super::compare::{self, Better, Contender, POST_UPDATE};
use super::format::{self, ABSENT, Unit};
use super::notes;
use super::text::plain;
use super::verdict::{Verdict, verify};

/// Width of a table; contenders that do not fit go into a table below.
const WIDTH_MAX: usize = 100;

/// Characters of a contender's name, and of a row's title.
const NAME_CHARS: usize = 12;
const TITLE_CHARS: usize = 30;

/// After the best value of its class.
const BEST: char = '*';

/// The whole summary.
pub fn summary(run: &RunResult, color: bool) -> String {
    let contenders = compare::contenders(run);
    let verdict = verify(run);
    let rows = rows(run, &contenders, &verdict);
    let mut text = workload(&run.workload) + "\n";
    for columns in tables(&contenders, &rows) {
        text += &(painted(&table(&contenders[columns.clone()], &rows, columns), color) + "\n");
    }
    text += &legend(run, &contenders);
    text + &sentences(run, &verdict, color)
}

/// A title, and a cell for each contender.
type Row = (String, Vec<String>);

fn rows(run: &RunResult, contenders: &[Contender], verdict: &Verdict) -> Vec<Row> {
    let view = View { run, contenders, verdict };
    let mut rows = Vec::new();
    if compare::has_several_classes(run) {
        rows.push(("durability".to_owned(), view.words(|contender| plain(&contender.shown.durability, NAME_CHARS))));
    }
    for phase in compare::phase_names(contenders) {
        rows.push((title(phase), view.row(Unit::Rate, |result| compare::phase_rate(result, phase))));
    }
    let bytes = |value: Option<u64>| value.map(|value| value as f64);
    rows.extend([
        ("all phases".to_owned(), view.row(Unit::Millis, compare::all_phases_ms)),
        ("reopen".to_owned(), view.row(Unit::Millis, |result| result.reopen_ms)),
        ("storage".to_owned(), view.row(Unit::Bytes, |result| bytes(result.storage_bytes))),
        ("peak memory".to_owned(), view.row(Unit::Bytes, |result| bytes(result.peak_memory_bytes))),
        ("peak over baseline".to_owned(), view.row(Unit::Bytes, compare::memory_over_baseline)),
    ]);
    rows.extend(view.floor_share());
    if contenders.iter().any(|contender| contender.median(compare::write_amplification).is_some()) {
        rows.push(("write amplification".to_owned(), view.factors(compare::write_amplification)));
    }
    rows
}

/// What the rows are made of.
struct View<'a> {
    run: &'a RunResult,
    contenders: &'a [Contender<'a>],
    verdict: &'a Verdict,
}

impl View<'_> {
    fn words(&self, word: impl Fn(&Contender) -> String) -> Vec<String> {
        self.contenders.iter().map(word).collect()
    }

    fn row(&self, unit: Unit, value: impl Fn(&EngineResult) -> Option<f64>) -> Vec<String> {
        let better = if unit == Unit::Rate { Better::Higher } else { Better::Lower };
        let sound: Vec<Contender> =
            self.contenders.iter().filter(|one| !self.verdict.doubts(self.run, one)).cloned().collect();
        let best = compare::best_among_rivals(&sound, better, &value);
        self.words(|contender| {
            if self.verdict.doubts(self.run, contender) {
                return "wrong".to_owned();
            }
            let Some(measured) = contender.measured(&value) else { return absent(contender) };
            let is_best = best.get(contender.shown.durability.as_str()) == Some(&measured.value);
            let mark = if is_best && !contender.is_floor() { BEST } else { ' ' };
            format!("{}{}{mark}", unit.short(measured.value), half_spread(measured))
        })
    }

    /// What share of each contender's time the harness takes, where the floor ran too.
    fn floor_share(&self) -> Option<Row> {
        let total = |contender: &Contender| contender.median(compare::all_phases_ms);
        let floor = self.contenders.iter().find(|contender| contender.is_floor()).and_then(total)?;
        let share = |contender: &Contender| match total(contender) {
            Some(_) if contender.is_floor() => format!("{ABSENT} "),
            Some(own) => format::percent(compare::floor_share(Some(own), Some(floor))) + " ",
            None => absent(contender),
        };
        Some(("floor share".to_owned(), self.words(share)))
    }

    fn factors(&self, value: impl Fn(&EngineResult) -> Option<f64>) -> Vec<String> {
        self.words(|contender| match contender.median(&value) {
            Some(factor) if !contender.is_floor() => format::factor(Some(factor)) + " ",
            _ => absent(contender),
        })
    }
}

/// ` ±3%`: half of the distance from the least to the most, where repetitions differ.
fn half_spread(measured: compare::Measured) -> String {
    let half = |(low, high): (f64, f64)| (high - low) / 2.0 / measured.value;
    let share = measured.spread.map(half).filter(|share| share.is_finite());
    share.map_or_else(String::new, |share| format!(" ±{:.0}%", (share * 100.0).ceil()))
}

fn absent(contender: &Contender) -> String {
    if contender.completed() { format!("{ABSENT} ") } else { format!("{} ", status_word(contender.shown.status)) }
}

/// `after: ` is shorter than the prefix of the phases after the updates.
fn title(phase: &str) -> String {
    let short = phase.strip_prefix(POST_UPDATE).map_or_else(|| phase.to_owned(), |name| format!("after: {name}"));
    plain(short.trim_end_matches(" index"), TITLE_CHARS)
}

/// Which contenders stand beside each other: as many as fit.
fn tables(contenders: &[Contender], rows: &[Row]) -> Vec<Range<usize>> {
    let used_by_titles = TITLE_CHARS + 5;
    let mut tables: Vec<Range<usize>> = Vec::new();
    let mut used = WIDTH_MAX;
    for (place, contender) in contenders.iter().enumerate() {
        let name = plain(&contender.shown.engine, NAME_CHARS).chars().count();
        let width = rows.iter().map(|(_, cells)| cells[place].chars().count()).fold(name, usize::max) + 3;
        match tables.last_mut() {
            Some(table) if used + width <= WIDTH_MAX => table.end = place + 1,
            _ => {
                tables.push(place..place + 1);
                used = used_by_titles;
            }
        }
        used += width;
    }
    tables
}

fn table(contenders: &[Contender], rows: &[Row], columns: Range<usize>) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    let names = contenders.iter().map(|contender| plain(&contender.shown.engine, NAME_CHARS));
    table.set_header(std::iter::once(Cell::new("operations per second")).chain(names.map(right)));
    for (title, cells) in rows {
        let cells = cells[columns.clone()].iter().cloned().map(right);
        table.add_row(std::iter::once(Cell::new(title)).chain(cells));
    }
    table.trim_fmt()
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Makes the best values bold.
fn painted(table: &str, color: bool) -> String {
    if !color {
        return table.to_owned();
    }
    let cell = |cell: &str| if cell.contains(BEST) { format!("\x1b[1m{cell}\x1b[0m") } else { cell.to_owned() };
    let line = |line: &str| line.split('|').map(cell).collect::<Vec<_>>().join("|");
    table.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn legend(run: &RunResult, contenders: &[Contender]) -> String {
    let mut parts = vec![format!("{BEST} best of its durability class")];
    if !compare::has_several_classes(run)
        && let Some(contender) = contenders.iter().find(|contender| !contender.is_floor())
    {
        parts.push(format!("durability {}", plain(&contender.shown.durability, NAME_CHARS)));
    }
    let repetitions = compare::repetitions_max(contenders);
    if repetitions > 1 {
        let repetitions = format::grouped(repetitions as u64);
        parts.push(format!("of {repetitions} repetitions, the median of each number ± half of the spread"));
    }
    parts.join("; ") + "\n"
}

fn sentences(run: &RunResult, verdict: &Verdict, color: bool) -> String {
    let (start, end) = match (color, verdict.is_sound()) {
        (true, true) => ("\x1b[32m", "\x1b[0m"),
        (true, false) => ("\x1b[31m", "\x1b[0m"),
        (false, _) => ("", ""),
    };
    let checked = verdict.sentences().into_iter().map(|sentence| format!("{start}{sentence}{end}\n"));
    checked.chain(notes::surprises(run).into_iter().map(|sentence| sentence + "\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    const EVERYONE: [&str; 9] =
        ["profilestore", "floor", "fjall", "sqlite", "redb", "lmdb", "rocksdb", "mysql", "zonetree"];

    #[test]
    fn a_phase_is_a_row_and_the_best_is_marked() {
        let text = summary(&samples::run(&["profilestore", "floor", "fjall"]), false);
        let row = text.lines().find(|line| line.contains("query top reputation")).expect("a row of that phase");
        assert_eq!(row.matches('*').count(), 1, "{row}");
        assert!(row.find('*') < row.find("/s  "), "ours comes first and is the best store: {row}");
        for title in
            ["after: scan country/status", "all phases", "reopen", "storage", "peak over baseline", "floor share"]
        {
            assert!(text.contains(title), "{text}");
        }
        assert!(text.contains("\n17/17 checksums equal the published 100k-linux\n"), "{text}");
    }

    #[test]
    fn nine_contenders_fit_into_a_hundred_columns() {
        let text = summary(&samples::run(&EVERYONE), false);
        let table = text.lines().filter(|line| line.starts_with('|'));
        assert!(table.clone().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(table.filter(|line| line.contains("all phases")).count(), 2);
    }

    #[test]
    fn long_names_and_words_fit_as_well() {
        let mut run =
            samples::run(&["a-very-long-engine-name-0", "a-very-long-engine-name-1", "redb", "lmdb", "fjall"]);
        for engine in &mut run.engines {
            *engine = samples::stopped(engine.clone(), 1);
            engine.status = crate::bench::result::Status::Interrupted;
            engine.phases[0].name = "a phase with a name that is far too long for a row".to_owned();
        }
        let text = summary(&run, false);
        assert!(text.lines().filter(|line| line.starts_with('|')).all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn control_characters_come_only_with_colour() {
        let mut run = samples::run(&["profilestore"]);
        run.engines.extend(samples::hostile().iter().map(|label| samples::engine(label, 2.0)));
        run.engines[2].message = Some("\x1b[2J".to_owned());
        run.engines[2].status = crate::bench::result::Status::Failed;
        let text = summary(&run, false);
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'));
        assert!(summary(&run, true).contains("\x1b[1m"));
    }

    #[test]
    fn faults_and_stops_are_told_in_sentences() {
        let mut run = samples::run(&["profilestore", "fjall", "sqlite"]);
        run.engines[1].phases[4].checksum = "BAD0BAD0BAD0BAD0".to_owned();
        run.engines[2] = samples::stopped(run.engines[2].clone(), 2);
        let text = summary(&run, false);
        assert!(text.contains("16/17 checksums equal the published 100k-linux"), "{text}");
        assert!(text.contains("disagree on query country/status"), "{text}");
        assert!(text.contains("sqlite ran out of time after 2 finished phases"), "{text}");
        assert!(text.contains("wrong") && text.contains("timeout"), "{text}");
    }

    #[test]
    fn nobody_is_summed_up_too() {
        assert!(summary(&samples::run(&[]), true).contains("no engine completed"));
    }
}
