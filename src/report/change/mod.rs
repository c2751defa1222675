//! Pure: two results of the same work in, what became faster or slower from the first to the second out.
//!
//! The time of a phase is the median over the completed repetitions. How far the ratio of two medians may be off is found
//! by drawing the repetitions of both sides again and again, with replacement, from a fixed seed: the middle 95 % of the
//! ratios so made are its interval.
//!
//! ```text
//! too few  fewer than three repetitions on a side: what is noise is not known
//! same     the whole interval is within 5 % of equal
//! faster   the whole interval is below 1
//! slower   the whole interval is above 1
//! noisy    anything else: the repetitions differ too much to tell
//! ```
//!
//! Tried on times that did not change, with three repetitions on a side one phase in eleven is called faster or slower by
//! chance, with five one in twenty; with two it would be one in three, which is why two are too few. A machine that became
//! slower between the two results is no chance: the floor, where it took part, shows it.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use crate::bench::result::{EngineResult, RunResult, Workload};

use super::compare::{self, Contender};
use super::format;
use super::text::{MESSAGE_CHARS_MAX, NAME_CHARS_MAX, plain};
use super::verdict::verify;

pub use table::sentences;

/// Fewer repetitions say nothing about noise.
const REPETITIONS_MIN: usize = 3;
/// A ratio this close to equal is no change.
const SAME_SHARE: f64 = 0.05;
const RESAMPLES: usize = 2000;
const SEED: u64 = 0x0F1E_2D3C_4B5A_6978;
/// Title of the time of all phases together.
const ALL_PHASES: &str = "all phases";

/// What can be said of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The second result is faster, beyond noise.
    Faster,
    /// The second result is slower, beyond noise.
    Slower,
    /// As fast as before, give or take 5 %.
    Same,
    /// The repetitions differ too much to tell.
    Noisy,
    /// There are too few repetitions to tell.
    #[serde(rename = "too few")]
    TooFew,
}

impl Change {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Noisy => "noisy",
            Self::TooFew => "too few",
        }
    }
}

/// A median and the interval it lies in with 95 % confidence, as far as the repetitions tell: one alone has no width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// One phase of one contender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseChange {
    /// Its name, safe to print.
    pub phase: String,
    /// Milliseconds in the first result.
    pub before_ms: Estimate,
    /// Milliseconds in the second result.
    pub after_ms: Estimate,
    /// Time after, divided by time before: less than 1 is faster.
    pub ratio: Estimate,
    /// What that says.
    pub change: Change,
}

/// One contender that completed in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContenderChange {
    /// Its name, safe to print.
    pub contender: String,
    /// Completed repetitions in the first and in the second result.
    pub repetitions: [usize; 2],
    /// Every phase that took time in both, then all of them together.
    pub phases: Vec<PhaseChange>,
    /// What it answered differently, one sentence each: then its times mean nothing.
    pub wrong: Vec<String>,
}

/// Two results of the same work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Contenders that completed in both.
    pub contenders: Vec<ContenderChange>,
    /// What a reader should know, one sentence each: contenders left out, machines that differ.
    pub notes: Vec<String>,
}

/// Compares two results, or says what is different about the work they did.
pub fn compare(before: &RunResult, after: &RunResult) -> Result<Comparison, Vec<String>> {
    let (first, second) = (compare::contenders(before), compare::contenders(after));
    let mut differences = differences_of_work(&before.workload, &after.workload);
    differences.extend(differences_of_classes(&first, &second));
    differences.extend(difference("the build", before.environment.get("build"), after.environment.get("build")));
    if !differences.is_empty() {
        return Err(differences);
    }
    let mut comparison = Comparison { notes: differing_environment(before, after), ..Comparison::default() };
    for contender in &first {
        match counterpart(contender, &second).filter(|other| other.completed() && contender.completed()) {
            Some(other) => comparison.contenders.push(change_of([before, after], [contender, other])),
            None => comparison.notes.push(format!("{} did not complete in both, so it is left out", contender.label)),
        }
    }
    let new = second.iter().filter(|contender| counterpart(contender, &first).is_none());
    comparison.notes.extend(new.map(|contender| format!("{} is in the second result alone", contender.label)));
    comparison.notes.extend(drift(&comparison.contenders));
    if comparison.contenders.is_empty() {
        return Err(vec!["no engine completed in both results".to_owned()]);
    }
    Ok(comparison)
}

impl Comparison {
    /// Whether a contender answered differently, or wrongly.
    pub fn has_wrong_answers(&self) -> bool {
        self.contenders.iter().any(|contender| !contender.wrong.is_empty())
    }

    /// Whether a phase became slower, beyond noise.
    pub fn has_slower(&self) -> bool {
        self.contenders.iter().flat_map(|contender| &contender.phases).any(|phase| phase.change == Change::Slower)
    }
}

fn counterpart<'a, 'b>(contender: &Contender, others: &'b [Contender<'a>]) -> Option<&'b Contender<'a>> {
    let key = |one: &Contender| (one.shown.engine.clone(), one.shown.durability.clone());
    others.iter().find(|other| key(other) == key(contender))
}

fn differences_of_work(before: &Workload, after: &Workload) -> Vec<String> {
    let facts = |workload: &Workload| {
        let counts = [
            ("the number of profiles", workload.profiles),
            ("the number of workers", workload.workers),
            ("the number of reads", workload.reads),
            ("the number of e-mail lookups", workload.email_reads),
            ("the number of queries", workload.queries),
            ("the number of updates", workload.updates),
            ("the number of reads after the updates", workload.post_reads),
            ("the number of e-mail lookups after the updates", workload.post_email_reads),
            ("the number of queries after the updates", workload.post_queries),
            ("the query limit", workload.query_limit),
        ];
        let words = [
            ("the workload", plain(&workload.name, NAME_CHARS_MAX)),
            ("the data set", workload.dataset.to_string()),
            ("the seed", workload.seed.to_string()),
            (
                "the memory budget",
                workload.memory_bytes.map_or_else(|| "none".to_owned(), |bytes| format!("{bytes} bytes")),
            ),
        ];
        words.into_iter().chain(counts.map(|(name, count)| (name, count.to_string()))).collect::<Vec<_>>()
    };
    let pairs = facts(before).into_iter().zip(facts(after));
    pairs.filter_map(|((name, before), (_, after))| difference(name, Some(&before), Some(&after))).collect()
}

/// An engine that is in both results, but in no class in both.
fn differences_of_classes(before: &[Contender], after: &[Contender]) -> Vec<String> {
    let classes = |contenders: &[Contender]| {
        let mut classes = BTreeMap::<String, String>::new();
        for Contender { shown, .. } in contenders {
            let class = plain(&shown.durability, NAME_CHARS_MAX);
            let known = classes.entry(plain(&shown.engine, NAME_CHARS_MAX)).or_default();
            *known = if known.is_empty() { class } else { format!("{known} and {class}") };
        }
        classes
    };
    let (first, second) = (classes(before), classes(after));
    let common = |engine: &str| {
        let of_engine = before.iter().filter(|contender| plain(&contender.shown.engine, NAME_CHARS_MAX) == engine);
        of_engine.into_iter().any(|contender| counterpart(contender, after).is_some())
    };
    let apart = first.iter().filter(|(engine, _)| !common(engine));
    apart
        .filter_map(|(engine, class)| {
            difference(&format!("the durability class of {engine}"), Some(class), Some(second.get(engine)?))
        })
        .collect()
}

fn difference(name: &str, before: Option<&String>, after: Option<&String>) -> Option<String> {
    let (before, after) = before.zip(after).filter(|(before, after)| before != after)?;
    let [before, after] = [before, after].map(|value| plain(value, MESSAGE_CHARS_MAX));
    Some(format!("{name} is {before} in the first and {after} in the second"))
}

/// Facts of the machine that do not bear on what was done, but on how long it took.
fn differing_environment(before: &RunResult, after: &RunResult) -> Vec<String> {
    let names = ["cpu", "cores", "memory", "system", "kernel", "file system", "processes"];
    let differing = names
        .into_iter()
        .filter_map(|name| difference(name, before.environment.get(name), after.environment.get(name)));
    differing.map(|sentence| format!("another machine, or the same otherwise: {sentence}")).collect()
}

/// The floor does the same in both; where its time is another, so is that of all others.
fn drift(contenders: &[ContenderChange]) -> Option<String> {
    let floor = contenders.iter().find(|contender| contender.contender == compare::FLOOR)?;
    let ratio = floor.phases.iter().find(|phase| phase.phase == ALL_PHASES)?.ratio.median;
    (!is_same(ratio)).then(|| {
        let times = format::factor(Some(ratio));
        format!("the floor itself took {times} the time in the second: the machine or the harness changed, so distrust the rest")
    })
}

fn change_of(runs: [&RunResult; 2], [before, after]: [&Contender; 2]) -> ContenderChange {
    let phases = before.shown.phases.iter().filter(|phase| phase.operations > 0);
    let mut changes: Vec<PhaseChange> = phases
        .filter_map(|phase| phase_change(&phase.name, [before, after], |result| compare::phase_ms(result, &phase.name)))
        .collect();
    changes.extend(phase_change(ALL_PHASES, [before, after], compare::all_phases_ms));
    ContenderChange {
        contender: before.label.clone(),
        repetitions: [before, after].map(|contender| contender.completed_repetitions().count()),
        phases: changes,
        wrong: wrong_answers(runs, [before, after]),
    }
}

fn phase_change(
    name: &str,
    contenders: [&Contender; 2],
    ms: impl Fn(&EngineResult) -> Option<f64>,
) -> Option<PhaseChange> {
    let sound = |result: &EngineResult| ms(result).filter(|ms| ms.is_finite() && *ms > 0.0);
    let [before, after] =
        contenders.map(|contender| contender.completed_repetitions().filter_map(sound).collect::<Vec<f64>>());
    let [before_ms, after_ms, ratio] = estimates(&before, &after)?;
    let change = decide(before.len().min(after.len()), ratio);
    Some(PhaseChange { phase: plain(name, NAME_CHARS_MAX), before_ms, after_ms, ratio, change })
}

/// What an interval of the ratio says, with at least so many repetitions on either side.
fn decide(repetitions: usize, ratio: Estimate) -> Change {
    if repetitions < REPETITIONS_MIN {
        Change::TooFew
    } else if is_same(ratio.low) && is_same(ratio.high) {
        Change::Same
    } else if ratio.high < 1.0 {
        Change::Faster
    } else if ratio.low > 1.0 {
        Change::Slower
    } else {
        Change::Noisy
    }
}

fn is_same(ratio: f64) -> bool {
    (1.0 / (1.0 + SAME_SHARE)..=1.0 + SAME_SHARE).contains(&ratio)
}

/// Both medians and their ratio, each with its interval; `None` if a side is empty.
fn estimates(before: &[f64], after: &[f64]) -> Option<[Estimate; 3]> {
    let medians = [before, after].map(|times| compare::median(&mut times.to_vec()));
    let [first, second] = [medians[0]?, medians[1]?];
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut drawn = [(); 3].map(|()| Vec::with_capacity(RESAMPLES));
    for _ in 0..RESAMPLES {
        let [before, after] = [before, after].map(|times| resampled_median(times, &mut random));
        for (all, value) in drawn.iter_mut().zip([before, after, after / before]) {
            all.push(value);
        }
    }
    let [before_ms, after_ms, ratios] = drawn;
    Some([interval(first, before_ms), interval(second, after_ms), interval(second / first, ratios)])
}

fn resampled_median(times: &[f64], random: &mut impl Rng) -> f64 {
    let one = || times[((u64::from(random.next_u32()) * times.len() as u64) >> 32) as usize];
    let mut sample: Vec<f64> = std::iter::repeat_with(one).take(times.len()).collect();
    compare::median(&mut sample).expect("as many were drawn as there are, which is one at least")
}

/// The middle 95 % of what was drawn.
fn interval(median: f64, mut drawn: Vec<f64>) -> Estimate {
    drawn.sort_by(f64::total_cmp);
    let tail = drawn.len() / 40;
    Estimate { median, low: drawn[tail], high: drawn[drawn.len() - 1 - tail] }
}

/// The same work has the same answers; whoever gave others did something else.
fn wrong_answers([first, second]: [&RunResult; 2], [before, after]: [&Contender; 2]) -> Vec<String> {
    let doubted = [("first", first, before), ("second", second, after)]
        .into_iter()
        .filter(|(_, run, contender)| verify(run).doubts(run, contender))
        .map(|(which, _, _)| format!("its answers in the {which} result are wrong or disputed"));
    let [before, after] = [before.shown, after.shown];
    let phases = before.phases.iter().map(|phase| {
        let other = compare::phase(after, &phase.name).map(|other| &other.checksum);
        difference(&format!("the answer to {}", plain(&phase.name, NAME_CHARS_MAX)), Some(&phase.checksum), other)
    });
    let finals = [
        difference("the final checksum", before.verify_checksum.as_ref(), after.verify_checksum.as_ref()),
        difference(
            "the checksum of all fields",
            before.all_fields_checksum.as_ref(),
            after.all_fields_checksum.as_ref(),
        ),
    ];
    doubted.chain(phases.chain(finals).flatten()).collect()
}
