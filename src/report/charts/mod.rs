//! Six charts of a run, each as SVG and PNG: which panels a chart has, and what each bar says.
//!
//! A contender that was stopped or failed keeps the bars of the phases it finished and gets words, not a bar, for the
//! rest and for every total; one with wrong answers gets no bar at all. The floor is a dashed line where there is
//! something to compare it with.

mod bars;
mod palette;
mod scale;
mod scene;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bench::result::{EngineResult, RunResult, Status, Workload};

use self::bars::{Bar, Chart, Outcome, Panel};
use super::compare::{self, Better, Contender, Kind, POST_UPDATE};
use super::format::{self, Unit};
use super::text::{MESSAGE_CHARS_MAX, NAME_CHARS_MAX, plain};
use super::verdict::{Verdict, verify};

/// File names of the charts, without their ending, and their titles.
pub const CHARTS: [(&str, &str); 6] = [
    ("execution-time", "Execution Time"),
    ("write-throughput", "Write Throughput"),
    ("lookup-throughput", "Lookup Throughput"),
    ("index-scan-throughput", "Index Scan Throughput"),
    ("query-throughput", "Query Throughput"),
    ("resource-footprint", "Resource Footprint"),
];

/// Most contenders in one chart, and most rows of panels; beyond them a picture says nothing any more.
const CONTENDERS_MAX: usize = 24;
const ROWS_MAX: usize = 12;

/// Draws every chart into a directory that exists: `NAME.svg` and `NAME.png`.
pub fn draw(run: &RunResult, directory: &Path) -> Result<()> {
    for ((name, _), chart) in CHARTS.iter().zip(charts(run)) {
        let scene = bars::layout(&chart);
        let at = |ending: &str| directory.join(format!("{name}.{ending}"));
        super::write_whole(&at("svg"), scene.svg()?.as_bytes())?;
        // The encoder tells the format by the ending, so the unfinished file has it too.
        let unfinished = directory.join(format!(".{name}.unfinished.png"));
        scene.write_png(&unfinished)?;
        std::fs::rename(&unfinished, at("png")).with_context(|| format!("could not write {}", at("png").display()))?;
    }
    Ok(())
}

/// Every chart as SVG.
pub(super) fn texts(run: &RunResult) -> Result<Vec<String>> {
    charts(run).iter().map(|chart| bars::layout(chart).svg()).collect()
}

fn charts(run: &RunResult) -> Vec<Chart> {
    let view = View::new(run);
    let rows = [
        view.execution(),
        view.writes(),
        view.throughput(Kind::Lookup),
        view.throughput(Kind::Scan),
        view.throughput(Kind::Query),
        view.footprint(),
    ];
    CHARTS.iter().zip(rows).map(|((_, title), rows)| view.chart(title, rows)).collect()
}

/// A run as charts see it.
struct View<'a> {
    run: &'a RunResult,
    contenders: Vec<Contender<'a>>,
    /// Whether the floor is drawn as a line; alone it is a bar like any other.
    floor_line: bool,
    verdict: Verdict,
}

impl<'a> View<'a> {
    fn new(run: &'a RunResult) -> Self {
        let contenders = compare::contenders(run);
        let floor_line = contenders.len() > 1;
        Self { run, contenders, floor_line, verdict: verify(run) }
    }

    fn chart(&self, title: &'static str, mut rows: Vec<Vec<Panel>>) -> Chart {
        let has_line = rows.iter().flatten().any(|panel| panel.floor.is_some());
        let mut notes = self.notes(has_line);
        if rows.len() > ROWS_MAX {
            rows.truncate(ROWS_MAX);
            notes.push("More phases than fit here; all of them are in report.md.".to_owned());
        }
        let shown = self.drawn().filter(|contender| has_line || !self.is_line(contender));
        let legend = shown.map(|contender| (contender.label.clone(), color(contender))).collect();
        let uniform = rows.iter().flatten().all(|panel| panel.unit == Unit::Rate);
        Chart { title, subtitle: self.subtitle(), rows, uniform, legend, notes }
    }

    fn drawn(&self) -> impl Iterator<Item = &Contender<'a>> {
        self.contenders.iter().take(CONTENDERS_MAX)
    }

    fn execution(&self) -> Vec<Vec<Panel>> {
        let kind = |kind: Kind, title: &str| self.time(title, move |result| compare::kind_ms(result, kind));
        let mut parts = vec![
            kind(Kind::Write, "Inserts and updates"),
            kind(Kind::Lookup, "Reads and lookups"),
            kind(Kind::Scan, "Index scans"),
            kind(Kind::Query, "Queries"),
            self.time("Run, from open to verify", |result| result.run_ms.filter(|_| is_completed(result))),
            self.time("Stabilize, settle, reopen, verify", compare::upkeep_ms),
        ];
        parts.retain(has_values);
        let total = self.time("All phases", compare::all_phases_ms);
        let mut rows = vec![vec![Panel { wide: true, ..total }]];
        rows.extend(in_pairs(parts));
        rows
    }

    fn writes(&self) -> Vec<Vec<Panel>> {
        let (mut rows, mut singles) = (Vec::new(), Vec::new());
        for name in self.phases(Kind::Write) {
            let raw = self.rate(name);
            if self.contenders.iter().any(|contender| compare::stabilize_ms(contender.shown, name).is_some()) {
                let title = format!("{} + stabilize", title(name));
                rows.push(vec![raw, self.panel(title, Unit::Rate, |result| compare::ready_rate(result, name))]);
            } else {
                singles.push(raw);
            }
        }
        rows.extend(in_pairs(singles));
        rows
    }

    /// A phase and its twin after the updates beside each other; then those without a twin.
    fn throughput(&self, kind: Kind) -> Vec<Vec<Panel>> {
        let names = self.phases(kind);
        let (mut rows, mut singles) = (Vec::new(), Vec::new());
        for name in &names {
            let twin = format!("{POST_UPDATE}{name}");
            let before = name.strip_prefix(POST_UPDATE);
            if names.contains(&twin.as_str()) {
                rows.push(vec![self.rate(name), self.rate(&twin)]);
            } else if !before.is_some_and(|before| names.contains(&before)) {
                singles.push(self.rate(name));
            }
        }
        rows.extend(in_pairs(singles));
        rows
    }

    fn footprint(&self) -> Vec<Vec<Panel>> {
        let bytes = |value: Option<u64>| value.map(|value| value as f64);
        let profiles = Some(self.run.workload.profiles as f64);
        let data = self.contenders.iter().find_map(|contender| contender.median(compare::data_bytes));
        let mut panels = vec![
            self.bytes("Storage after settle", |result| bytes(result.storage_bytes))
                .with_notes(profiles, |each| format!("{each:.0} B/profile")),
            self.bytes("Written to storage in the whole run", |result| bytes(result.io_write_bytes))
                .with_notes(data, |times| format!("{} the data", format::factor(Some(times)))),
            self.bytes("Peak memory of the process", |result| bytes(result.peak_memory_bytes)),
            self.bytes("Peak memory over the baseline", compare::memory_over_baseline),
        ];
        panels.retain(has_values);
        in_pairs(panels)
    }

    fn phases(&self, kind: Kind) -> Vec<&'a str> {
        compare::phase_names(&self.contenders).into_iter().filter(|name| Kind::of(name) == kind).collect()
    }

    fn rate(&self, name: &str) -> Panel {
        self.panel(title(name), Unit::Rate, |result| compare::phase_rate(result, name))
    }

    fn time(&self, title: &str, value: impl Fn(&EngineResult) -> Option<f64>) -> Panel {
        self.panel(title.to_owned(), Unit::Millis, value)
    }

    /// The floor stores nothing: it has no line among bytes.
    fn bytes(&self, title: &str, value: impl Fn(&EngineResult) -> Option<f64>) -> Panel {
        let mut panel = self.panel(title.to_owned(), Unit::Bytes, value);
        panel.floor = None;
        panel
    }

    fn panel(&self, title: String, unit: Unit, value: impl Fn(&EngineResult) -> Option<f64>) -> Panel {
        let better = if unit == Unit::Rate { Better::Higher } else { Better::Lower };
        let sound: Vec<Contender> = self.contenders.iter().filter(|one| !self.is_doubtful(one)).cloned().collect();
        let best = compare::best_among_rivals(&sound, better, &value);
        let floor = self.drawn().find(|contender| self.is_line(contender)).and_then(|floor| floor.measured(&value));
        let bar = |contender: &Contender| Bar {
            label: if contender.completed() { contender.label.clone() } else { format!("{} †", contender.label) },
            color: color(contender),
            outcome: self.outcome(contender, &value, best.get(contender.shown.durability.as_str()).copied()),
        };
        let bars = self.drawn().filter(|contender| !self.is_line(contender)).map(bar).collect();
        Panel { title, unit, better, bars, floor: floor.map(|floor| floor.value), wide: false }
    }

    fn is_line(&self, contender: &Contender) -> bool {
        self.floor_line && contender.is_floor()
    }

    fn outcome(
        &self,
        contender: &Contender,
        value: impl Fn(&EngineResult) -> Option<f64>,
        best: Option<f64>,
    ) -> Outcome {
        if self.is_doubtful(contender) {
            return Outcome::Absent { reason: "wrong or disputed answers".to_owned(), alarm: true };
        }
        match contender.measured(value) {
            Some(measured) => Outcome::Measured {
                value: measured.value,
                spread: measured.spread,
                best: best == Some(measured.value),
                note: None,
            },
            None if contender.completed() => Outcome::Absent { reason: format::ABSENT.to_owned(), alarm: false },
            None => Outcome::Absent { reason: status_word(contender.shown.status).to_owned(), alarm: true },
        }
    }

    fn is_doubtful(&self, contender: &Contender) -> bool {
        self.verdict.doubts(self.run, contender)
    }

    fn subtitle(&self) -> String {
        let classes = if compare::has_several_classes(self.run) {
            "durability differs, see the names".to_owned()
        } else {
            let class = self.contenders.iter().find(|contender| !contender.is_floor() || !self.floor_line);
            class.map_or_else(String::new, |class| {
                format!("durability {}", plain(&class.shown.durability, NAME_CHARS_MAX))
            })
        };
        let parts = [workload(&self.run.workload), classes];
        parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" · ")
    }

    fn notes(&self, has_line: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let most = compare::repetitions_max(&self.contenders);
        if most > 1 {
            notes.push(format!(
                "Of {most} repetitions, the median of each number; whiskers span the least and the most."
            ));
        }
        if has_line {
            notes.push("floor: what the harness costs by itself, with no storage behind it.".to_owned());
        }
        if compare::has_several_classes(self.run) {
            notes.push(
                "In brackets, what survives. none: a clean close; process: a killed process; sync: a power loss. \
                 Bold is the best of a class."
                    .to_owned(),
            );
        }
        notes.extend(self.drawn().filter(|contender| !contender.completed()).map(|contender| {
            let message = contender.shown.message.as_deref().unwrap_or("no reason given");
            let status = status_word(contender.shown.status);
            format!("† {}: {status}: {}", contender.label, plain(message, MESSAGE_CHARS_MAX))
        }));
        if self.contenders.len() > CONTENDERS_MAX {
            let more = self.contenders.len() - CONTENDERS_MAX;
            notes.push(format!("{more} more contenders are in report.md."));
        }
        notes
    }
}

/// The workload in one line.
pub(super) fn workload(workload: &Workload) -> String {
    let workers = if workload.workers == 1 { "worker" } else { "workers" };
    let memory =
        workload.memory_bytes.map_or_else(String::new, |bytes| format!(" · {} of memory", format::bytes(bytes as f64)));
    format!(
        "{} · {} data · {} profiles · limit {} · {} {workers} · seed {}{memory}",
        plain(&workload.name, NAME_CHARS_MAX),
        workload.dataset,
        format::count(workload.profiles),
        format::grouped(workload.query_limit),
        format::grouped(workload.workers),
        workload.seed
    )
}

/// How a run ended, in a word.
pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Completed => "completed",
        Status::Timeout => "timeout",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted",
    }
}

fn is_completed(result: &EngineResult) -> bool {
    result.status == Status::Completed
}

fn has_values(panel: &Panel) -> bool {
    panel.bars.iter().any(|bar| matches!(bar.outcome, Outcome::Measured { .. }))
}

fn color(contender: &Contender) -> plotters::style::RGBColor {
    palette::color_of(&contender.shown.engine)
}

fn in_pairs(panels: Vec<Panel>) -> Vec<Vec<Panel>> {
    let mut rows: Vec<Vec<Panel>> = Vec::new();
    for panel in panels {
        match rows.last_mut() {
            Some(row) if row.len() < 2 => row.push(panel),
            _ => rows.push(vec![panel]),
        }
    }
    rows
}

/// A phase name as a title: safe to print, first letter large, without the word that every scan ends with.
fn title(name: &str) -> String {
    let name = plain(name.trim_end_matches(" index"), NAME_CHARS_MAX);
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
