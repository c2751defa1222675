//! Pure: results in, what they say about each other out.
//!
//! A [`Contender`] is one engine in one durability class with all its repetitions. Each number shown for it is the median
//! of that number over its completed repetitions, and the spread over them goes beside it: a phase that was disturbed
//! once does not speak for the others. Numbers therefore need not add up; totals are medians of totals. Ratios and
//! winners are taken inside one durability class, and the floor, which stores nothing, never wins.

use std::collections::BTreeMap;

use crate::bench::result::{EngineResult, PhaseResult, RunResult, Status};

use super::text::{NAME_CHARS_MAX, plain};

/// Name of the contender that is the harness alone.
pub const FLOOR: &str = "floor";

/// Start of the names of the phases after the updates.
pub const POST_UPDATE: &str = "post-update ";

/// One engine in one durability class.
#[derive(Clone, Debug)]
pub struct Contender<'a> {
    /// Name for people, safe to print; names the class where the run has several.
    pub label: String,
    /// The repetition whose words are shown, such as settings and answers: the first that completed, or else the one that
    /// got furthest.
    pub shown: &'a EngineResult,
    /// All repetitions, in order.
    pub repetitions: Vec<&'a EngineResult>,
}

/// A number of a contender, over its completed repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The median.
    pub value: f64,
    /// Smallest and largest, where repetitions differ.
    pub spread: Option<(f64, f64)>,
}

/// Which end of a scale is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Time, storage, memory.
    Lower,
}

/// What a phase does, told by its name, so that other workloads than the published one find their place as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Inserts, updates, deletions.
    Write,
    /// Point reads and lookups by a unique key.
    Lookup,
    /// Index scans that fetch no record.
    Scan,
    /// Scans that fetch every record they find, and whatever else asks a question.
    Query,
}

impl Kind {
    /// Every kind, in the order of the report.
    pub const ALL: [Self; 4] = [Self::Write, Self::Lookup, Self::Scan, Self::Query];

    /// The kind of a phase.
    pub fn of(phase: &str) -> Self {
        let name = phase.strip_prefix(POST_UPDATE).unwrap_or(phase).to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if name.starts_with("scan") {
            Self::Scan
        } else if name.starts_with("query") || name.starts_with("count") {
            Self::Query
        } else if has(&["insert", "update", "delet", "overwrite", "ingest", "write", "put", "transfer", "increment"]) {
            Self::Write
        } else if has(&["read", "lookup", "get", "point"]) {
            Self::Lookup
        } else {
            Self::Query
        }
    }
}

impl Contender<'_> {
    /// Whether this is the harness alone.
    pub fn is_floor(&self) -> bool {
        self.shown.engine == FLOOR
    }

    /// Whether the shown repetition did every phase.
    pub fn completed(&self) -> bool {
        self.shown.status == Status::Completed
    }

    /// A number over the completed repetitions, or of what was reached where none completed. `None` for what is absent,
    /// negative, or not finite.
    pub fn measured(&self, value: impl Fn(&EngineResult) -> Option<f64>) -> Option<Measured> {
        let sound = |result: &EngineResult| value(result).filter(|value| value.is_finite() && *value >= 0.0);
        let mut all: Vec<f64> = self.completed_repetitions().filter_map(sound).collect();
        if !self.completed() {
            all.extend(sound(self.shown));
        }
        let median = median(&mut all)?;
        let (low, high) = (all[0], all[all.len() - 1]);
        Some(Measured { value: median, spread: (low < high).then_some((low, high)) })
    }

    /// The median of a number over the completed repetitions.
    pub fn median(&self, value: impl Fn(&EngineResult) -> Option<f64>) -> Option<f64> {
        self.measured(value).map(|measured| measured.value)
    }

    /// The largest of a number over the completed repetitions.
    pub fn largest(&self, value: impl Fn(&EngineResult) -> Option<f64>) -> Option<f64> {
        self.measured(value).map(|measured| measured.spread.map_or(measured.value, |(_, high)| high))
    }

    /// Repetitions that did every phase.
    pub fn completed_repetitions(&self) -> impl Iterator<Item = &EngineResult> {
        self.repetitions.iter().copied().filter(|result| result.status == Status::Completed)
    }
}

/// The middle value, or the mean of the middle two; leaves `values` in order. `None` if there are none.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (lower, upper) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*lower, *upper))
}

/// The contenders of a run, in the order they were asked for.
pub fn contenders(run: &RunResult) -> Vec<Contender<'_>> {
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&EngineResult>> = Vec::new();
    for result in &run.engines {
        let place = *places.entry((&result.engine, &result.durability)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(result);
    }
    let mixed = has_several_classes(run);
    groups.into_iter().map(|repetitions| contender(repetitions, mixed)).collect()
}

fn contender(repetitions: Vec<&EngineResult>, mixed: bool) -> Contender<'_> {
    let completed = || repetitions.iter().copied().find(|result| result.status == Status::Completed);
    let furthest = || repetitions.iter().copied().max_by_key(|result| result.phases.len());
    let shown = completed().or_else(furthest).expect("a contender has at least one repetition");
    Contender { label: label(shown, mixed), shown, repetitions }
}

/// The name a result goes by in this run.
fn label(result: &EngineResult, mixed: bool) -> String {
    let name = if result.engine.is_empty() { "unnamed".to_owned() } else { plain(&result.engine, NAME_CHARS_MAX) };
    if mixed && result.engine != FLOOR {
        format!("{name} ({})", plain(&result.durability, NAME_CHARS_MAX))
    } else {
        name
    }
}

/// Whether the stores of a run promise different things. The floor stores nothing, so it does not count.
pub fn has_several_classes(run: &RunResult) -> bool {
    let mut classes = run.engines.iter().filter(|result| result.engine != FLOOR).map(|result| &result.durability);
    let first = classes.next();
    classes.any(|class| Some(class) != first)
}

/// A phase of a result.
pub fn phase<'a>(result: &'a EngineResult, name: &str) -> Option<&'a PhaseResult> {
    result.phases.iter().find(|phase| phase.name == name)
}

/// Time of a phase.
pub fn phase_ms(result: &EngineResult, name: &str) -> Option<f64> {
    Some(phase(result, name)?.elapsed_ms)
}

/// Operations per second of a phase.
pub fn phase_rate(result: &EngineResult, name: &str) -> Option<f64> {
    phase(result, name)?.ops_per_s
}

/// Time of all phases; only a completed run has one.
pub fn all_phases_ms(result: &EngineResult) -> Option<f64> {
    result.completed_phase_ms.filter(|_| result.status == Status::Completed)
}

/// Time of all phases of one kind; only a completed run has one.
pub fn kind_ms(result: &EngineResult, kind: Kind) -> Option<f64> {
    let mut phases = result.phases.iter().filter(|phase| Kind::of(&phase.name) == kind).peekable();
    phases.peek()?;
    (result.status == Status::Completed).then(|| phases.map(|phase| phase.elapsed_ms).sum())
}

/// Time outside the phases: stabilize, settle, reopen and verify.
pub fn upkeep_ms(result: &EngineResult) -> Option<f64> {
    let steps = [
        result.pre_read_stabilize_ms,
        result.post_update_stabilize_ms,
        result.settle_ms,
        result.reopen_ms,
        result.verify_ms,
    ];
    (result.status == Status::Completed && steps.iter().any(Option::is_some)).then(|| steps.iter().flatten().sum())
}

/// The stabilize step that follows a write phase.
pub fn stabilize_ms(result: &EngineResult, phase: &str) -> Option<f64> {
    match phase {
        "insert profiles" => result.pre_read_stabilize_ms,
        "update profiles" => result.post_update_stabilize_ms,
        _ => None,
    }
}

/// Time of a write phase until its reads are at full speed. An engine that needs no stabilize step is ready at once.
pub fn ready_ms(result: &EngineResult, name: &str) -> Option<f64> {
    let written = phase(result, name)?.elapsed_ms;
    let reads_followed =
        result.status == Status::Completed || result.phases.last().is_some_and(|last| last.name != name);
    match stabilize_ms(result, name) {
        Some(stabilize) => Some(written + stabilize),
        None => reads_followed.then_some(written),
    }
}

/// Throughput of a write phase with its stabilize step.
pub fn ready_rate(result: &EngineResult, name: &str) -> Option<f64> {
    let ms = ready_ms(result, name)?;
    (ms > 0.0).then(|| phase(result, name).map(|phase| phase.operations as f64 * 1000.0 / ms)).flatten()
}

/// Bytes of user data that were inserted or updated.
pub fn data_bytes(result: &EngineResult) -> Option<f64> {
    let counted: u64 = result.phases.iter().filter_map(|phase| phase.data_bytes).sum();
    (result.status == Status::Completed && counted > 0).then_some(counted as f64)
}

/// Bytes that the process caused to be written for each byte of user data that was inserted or updated, up to the end
/// of verify. `None` where the system does not tell, as on a file system in memory.
pub fn write_amplification(result: &EngineResult) -> Option<f64> {
    let written = result.io_write_bytes.filter(|bytes| *bytes > 0)?;
    Some(written as f64 / data_bytes(result)?)
}

/// Peak memory that the engine added to the operations and the harness.
pub fn memory_over_baseline(result: &EngineResult) -> Option<f64> {
    Some(result.peak_memory_bytes?.saturating_sub(result.baseline_memory_bytes?) as f64)
}

/// Names of all phases of a run, in the order they were first done.
pub fn phase_names<'a>(contenders: &[Contender<'a>]) -> Vec<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    let all = contenders.iter().flat_map(|contender| &contender.shown.phases);
    all.map(|phase| phase.name.as_str()).filter(|name| seen.insert(*name)).collect()
}

/// The best value of each durability class in which two or more have one. The floor is left out.
pub fn best_among_rivals<'a>(
    contenders: &[Contender<'a>],
    better: Better,
    value: impl Fn(&EngineResult) -> Option<f64>,
) -> BTreeMap<&'a str, f64> {
    let mut rivals: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for contender in contenders.iter().filter(|contender| !contender.is_floor()) {
        if let Some(measured) = contender.measured(&value) {
            rivals.entry(&contender.shown.durability).or_default().push(measured.value);
        }
    }
    let best = |values: Vec<f64>| match better {
        Better::Higher => values.into_iter().fold(0.0, f64::max),
        Better::Lower => values.into_iter().fold(f64::INFINITY, f64::min),
    };
    rivals.into_iter().filter(|(_, values)| values.len() > 1).map(|(class, values)| (class, best(values))).collect()
}

/// How many times as long, or as large, as the best of the class. `None` where there is nothing to divide by.
pub fn times_of_best(value: f64, best: f64) -> Option<f64> {
    (best > 0.0).then(|| value / best).filter(|ratio| ratio.is_finite())
}

/// Time of the engine alone: a phase, or all phases, without what the harness itself costs.
pub fn above_floor(value: Option<f64>, floor: Option<f64>) -> Option<f64> {
    Some((value? - floor?).max(0.0))
}

/// What share of a time the harness itself costs.
pub fn floor_share(value: Option<f64>, floor: Option<f64>) -> Option<f64> {
    times_of_best(floor?, value?)
}

/// Most completed repetitions of a contender.
pub fn repetitions_max(contenders: &[Contender]) -> usize {
    contenders.iter().map(|contender| contender.completed_repetitions().count()).max().unwrap_or(0)
}

/// Completed contenders that gave different answers to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Name of the phase, `final checksum`, or `all fields`.
    pub question: String,
    /// Each run by name, and its answer.
    pub answers: Vec<(String, String)>,
}

/// Question of the final checksum.
pub const FINAL_CHECKSUM: &str = "final checksum";

/// Question of the checksum over all nine fields.
pub const ALL_FIELDS: &str = "all fields";

/// Every question that the completed runs of one result answer differently.
pub fn disagreements(run: &RunResult) -> Vec<Disagreement> {
    let completed: Vec<&EngineResult> =
        run.engines.iter().filter(|result| result.status == Status::Completed).collect();
    let names: Vec<String> = completed.iter().map(|result| run_label(run, result)).collect();
    let mut questions: BTreeMap<&str, usize> = BTreeMap::new();
    for phase in completed.iter().flat_map(|result| &result.phases) {
        let place = questions.len();
        questions.entry(&phase.name).or_insert(place);
    }
    let mut questions: Vec<(&str, usize)> = questions.into_iter().collect();
    questions.sort_by_key(|(_, place)| *place);
    let phases =
        questions.iter().map(|(name, _)| (*name, column(&completed, |result| Some(answer_of_phase(result, name)))));
    let finals = [
        (FINAL_CHECKSUM, column(&completed, |result| Some(known(result.verify_checksum.as_ref())))),
        (ALL_FIELDS, column(&completed, |result| result.all_fields_checksum.clone())),
    ];
    phases.chain(finals).filter_map(|(question, answers)| disagreement(question, &names, answers)).collect()
}

fn column(results: &[&EngineResult], answer: impl Fn(&EngineResult) -> Option<String>) -> Vec<Option<String>> {
    results.iter().map(|result| answer(result)).collect()
}

fn answer_of_phase(result: &EngineResult, name: &str) -> String {
    known(phase(result, name).map(|phase| &phase.checksum))
}

/// An answer that should be there, in words where it is not.
pub fn known(answer: Option<&String>) -> String {
    answer.map_or_else(|| "missing".to_owned(), |answer| plain(answer, NAME_CHARS_MAX))
}

fn disagreement(question: &str, names: &[String], answers: Vec<Option<String>>) -> Option<Disagreement> {
    let answers: Vec<(String, String)> =
        names.iter().zip(answers).filter_map(|(name, answer)| Some((name.clone(), answer?))).collect();
    let differ = answers.iter().any(|(_, answer)| *answer != answers[0].1);
    differ.then(|| Disagreement { question: plain(question, NAME_CHARS_MAX), answers })
}

/// The name of one run: the contender's label, and the repetition where there are several.
pub fn run_label(run: &RunResult, result: &EngineResult) -> String {
    let label = label(result, has_several_classes(run));
    let repeated = run.engines.iter().any(|other| other.repetition > 1);
    if repeated { format!("{label} #{}", result.repetition) } else { label }
}

impl Disagreement {
    /// The runs that are in doubt: those outside a strict majority, or all where there is none.
    pub fn in_doubt(&self) -> Vec<&str> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, answer) in &self.answers {
            *votes.entry(answer).or_default() += 1;
        }
        let majority = votes.iter().find(|(_, count)| **count * 2 > self.answers.len()).map(|(answer, _)| *answer);
        let doubted = self.answers.iter().filter(|(_, answer)| Some(answer.as_str()) != majority);
        doubted.map(|(name, _)| name.as_str()).collect()
    }
}
