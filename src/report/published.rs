//! The published "Profile Store" results that this build carries, and the comparison with them.
//!
//! Each file of `reference-results/` is a table with the columns
//! `section,engine,name,operations,time_ms,throughput_per_s,checksum,value`; the sections read here are `total`,
//! `phase`, `config`, `env` and `settings`. All engines of a file, and all files of one configuration, agree on every
//! checksum (tested below), so any of them can serve as the published answer; the first in the list does.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};

use crate::bench::dataset::DataSet;
use crate::bench::result::{EngineResult, PhaseResult, Published, RunResult, SCHEMA, Status, Workload};

use super::{compare, csv, format};

/// Name of the published workload.
pub const WORKLOAD: &str = "profile-store";

const HEADER: [&str; 8] =
    ["section", "engine", "name", "operations", "time_ms", "throughput_per_s", "checksum", "value"];

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../reference-results/", $name, ".csv")))),*] };
}

/// Name and text of every published result, in the order of `reference-results/index.csv`.
const FILES: &[(&str, &str)] = files! {
    "100k-linux" "100k-windows-v1" "500k-windows" "1m-linux" "1m-windows" "2m-linux" "2m-windows-v1" "5m-windows"
    "5m-linux-v1" "10m-linux" "10m-windows" "20m-windows" "50m-linux" "50m-windows" "100m-linux" "100m-windows"
    "100k-p1-q50-windows" "1m-p1-q50-windows" "10m-p1-q50-windows" "100k-p16-q50-windows" "5m-p16-q50-windows"
    "10m-p16-q50-windows"
};

/// A published result.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedResult {
    /// Such as `100k-linux`.
    pub name: String,
    /// Its numbers, in the form of our own.
    pub run: RunResult,
}

/// A checksum that differs from the published one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The run.
    pub contender: String,
    /// Name of the phase, or `final checksum`.
    pub question: String,
    /// As published.
    pub expected: String,
    /// As found, or `missing`.
    pub found: String,
}

/// Names of all published results.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The same results under the name of the file they came from: `published 100k-linux`.
pub fn named(mut run: RunResult, path: &std::path::Path) -> RunResult {
    let name = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    run.workload.name = format!("published {name}");
    run
}

/// A published result by name.
pub fn load(name: &str) -> Option<PublishedResult> {
    let (name, text) = FILES.iter().find(|(known, _)| *known == name)?;
    Some(parse_embedded(name, text))
}

/// The published result of exactly this workload, whatever its name and its memory budget, which change no answer; where
/// there are several, the first of [`names`].
pub fn find(workload: &Workload) -> Option<PublishedResult> {
    let asked = Workload { name: WORKLOAD.to_owned(), memory_bytes: None, ..workload.clone() };
    let mut results = FILES.iter().map(|(name, text)| parse_embedded(name, text));
    results.find(|result| result.run.workload == asked)
}

fn parse_embedded(name: &str, text: &str) -> PublishedResult {
    let run = parse(text).expect("every embedded file is read by a test");
    PublishedResult { name: name.to_owned(), run }
}

/// Compares every completed run with the published result of its workload, if there is one: the checksum of each
/// phase, and the final one.
pub fn compare(run: &RunResult) -> Option<(Published, Vec<Mismatch>)> {
    let published = find(&run.workload)?;
    let expected = published.checksums();
    let completed = run.engines.iter().filter(|result| result.status == Status::Completed);
    let by_run: Vec<Vec<Mismatch>> = completed.map(|result| mismatches(run, result, &expected)).collect();
    let worst = by_run.iter().map(Vec::len).max()?;
    let of = expected.len() as u64;
    let summary = Published { name: published.name, equal: of - worst as u64, of };
    Some((summary, by_run.into_iter().flatten().collect()))
}

fn mismatches(run: &RunResult, result: &EngineResult, expected: &[(String, String)]) -> Vec<Mismatch> {
    let differing = expected.iter().filter_map(|(question, expected)| {
        let found = compare::known(answer(result, question));
        (found != *expected).then(|| Mismatch {
            contender: compare::run_label(run, result),
            question: question.clone(),
            expected: expected.clone(),
            found,
        })
    });
    differing.collect()
}

fn answer<'a>(result: &'a EngineResult, question: &str) -> Option<&'a String> {
    match question {
        compare::FINAL_CHECKSUM => result.verify_checksum.as_ref(),
        phase => compare::phase(result, phase).map(|phase| &phase.checksum),
    }
}

impl PublishedResult {
    /// Each question and its published answer: the phases in order, then the final checksum.
    pub fn checksums(&self) -> Vec<(String, String)> {
        let Some(engine) = self.run.engines.first() else { return Vec::new() };
        let phases = engine.phases.iter().map(|phase| (phase.name.clone(), phase.checksum.clone()));
        let last = engine.verify_checksum.iter().map(|checksum| (compare::FINAL_CHECKSUM.to_owned(), checksum.clone()));
        phases.chain(last).collect()
    }
}

/// Whether a text starts like a published result.
pub fn is_published(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim_end() == HEADER.join(","))
}

/// Reads a published result.
pub fn parse(text: &str) -> Result<RunResult> {
    let records = csv::read(text)?;
    let (header, records) = records.split_first().context("the file is empty")?;
    ensure!(header == &HEADER, "the first line is not {}", HEADER.join(","));
    let mut reader = Reader::default();
    for record in records {
        reader.take(record).with_context(|| format!("in the line {}", record.join(",")))?;
    }
    reader.finish()
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    engines: Vec<EngineResult>,
    config: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
}

impl Reader {
    fn take(&mut self, record: &[String]) -> Result<()> {
        let [section, engine, name, operations, time_ms, per_s, checksum, value] = record else {
            bail!("{} fields instead of {}", record.len(), HEADER.len());
        };
        match section.as_str() {
            "total" => set_total(self.engine(engine), name, optional(time_ms)?, checksum, value)?,
            "phase" => {
                let phase = PhaseResult {
                    name: name.clone(),
                    operations: operations.parse().context("operations are no whole number")?,
                    elapsed_ms: optional(time_ms)?.context("a phase without a time")?,
                    ops_per_s: optional(per_s)?,
                    checksum: checksum.clone(),
                    data_bytes: None,
                    latency_us: None,
                };
                self.engine(engine).phases.push(phase);
            }
            "settings" => {
                self.engine(engine).settings.insert(name.clone(), value.clone());
            }
            "config" => {
                self.config.insert(name.clone(), value.clone());
            }
            "env" => {
                self.environment.insert(name.clone(), value.clone());
            }
            // Insert + stabilize and update + stabilize: sums of what is read above.
            "write_readiness" => {}
            other => bail!("unknown section {other}"),
        }
        Ok(())
    }

    fn engine(&mut self, name: &str) -> &mut EngineResult {
        let place = self.engines.iter().position(|engine| engine.engine == name).unwrap_or_else(|| {
            self.engines.push(EngineResult::unmeasured(name, published_class(name), Status::Completed));
            self.engines.len() - 1
        });
        &mut self.engines[place]
    }

    fn finish(self) -> Result<RunResult> {
        ensure!(!self.engines.is_empty(), "no engine");
        let count = |name: &str| -> Result<u64> {
            let text = self.config.get(name).with_context(|| format!("no configuration of {name}"))?;
            text.parse().with_context(|| format!("{name} is {text}, no whole number"))
        };
        let workload = Workload {
            name: WORKLOAD.to_owned(),
            profiles: count("Profiles")?,
            // Files with one worker may leave it out.
            workers: if self.config.contains_key("Parallelism") { count("Parallelism")? } else { 1 },
            reads: count("UserId reads")?,
            email_reads: count("Email lookups")?,
            queries: count("Query count")?,
            updates: count("Profile updates")?,
            post_reads: count("Post-update UserId reads")?,
            post_email_reads: count("Post-update email lookups")?,
            post_queries: count("Post-update query count")?,
            query_limit: count("Query limit")?,
            seed: i32::try_from(count("Seed")?).context("the seed is too large")?,
            dataset: DataSet::Published,
            memory_bytes: None,
        };
        let environment = self.environment;
        Ok(RunResult { schema: SCHEMA, workload, environment, engines: self.engines, published: None })
    }
}

fn set_total(engine: &mut EngineResult, name: &str, ms: Option<f64>, checksum: &str, value: &str) -> Result<()> {
    match name {
        "status" => engine.status = parse_status(value)?,
        "run time" => engine.run_ms = ms,
        "completed phase time" => engine.completed_phase_ms = ms,
        "pre-read stabilize" => engine.pre_read_stabilize_ms = ms,
        "post-update stabilize" => engine.post_update_stabilize_ms = ms,
        "settle" => engine.settle_ms = ms,
        "reopen" => engine.reopen_ms = ms,
        "verify" => engine.verify_ms = ms,
        "storage" => engine.storage_bytes = format::parse_bytes(value),
        "process peak memory" => engine.peak_memory_bytes = format::parse_bytes(value),
        "final checksum" => engine.verify_checksum = Some(checksum.to_owned()).filter(|checksum| !checksum.is_empty()),
        other => bail!("unknown total {other}"),
    }
    Ok(())
}

fn parse_status(text: &str) -> Result<Status> {
    Ok(match text {
        "Completed" => Status::Completed,
        "TimedOut" | "Timeout" => Status::Timeout,
        "Failed" => Status::Failed,
        other => bail!("unknown status {other}"),
    })
}

/// A number, or nothing for an empty field and `n/a`.
fn optional(text: &str) -> Result<Option<f64>> {
    match text {
        "" | format::ABSENT => Ok(None),
        text => {
            let value: f64 = text.parse().with_context(|| format!("{text} is no number"))?;
            ensure!(value.is_finite() && value >= 0.0, "{text} is out of range");
            Ok(Some(value))
        }
    }
}

/// The class that the published settings amount to. `ZoneTree`'s log was asynchronous: a killed process loses recent
/// writes. The others handed every write to the system, and none synced it.
fn published_class(engine: &str) -> &'static str {
    if engine == "ZoneTree" { "none" } else { "process" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn every_file_has_seventeen_checksums_on_which_its_engines_agree() {
        for name in names() {
            let result = load(name).expect("a name of the list");
            assert_eq!(result.checksums().len(), 17, "{name}");
            assert!(result.checksums().iter().all(|(_, checksum)| checksum.len() == 16), "{name}");
            assert_eq!(compare::disagreements(&result.run), [], "{name}");
            for engine in &result.run.engines {
                assert_eq!(engine.status, Status::Completed, "{name}");
                assert!(engine.storage_bytes.is_some() && engine.peak_memory_bytes.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn files_of_one_configuration_agree() {
        let results: Vec<PublishedResult> = names().filter_map(load).collect();
        let mut pairs = 0;
        for (index, one) in results.iter().enumerate() {
            for other in results[..index].iter().filter(|other| other.run.workload == one.run.workload) {
                assert_eq!(one.checksums(), other.checksums(), "{} and {}", one.name, other.name);
                pairs += 1;
            }
        }
        assert_eq!(pairs, 7);
    }

    #[test]
    fn the_list_is_that_of_the_index() {
        let index = csv::read(include_str!("../../reference-results/index.csv")).unwrap();
        assert_eq!(index.len() - 1, FILES.len());
        for (row, name) in index[1..].iter().zip(names()) {
            let workload = load(name).expect("a name of the list").run.workload;
            let numbers = [workload.profiles, workload.query_limit, workload.workers].map(|number| number.to_string());
            assert_eq!(row[0], format!("{name}.csv"));
            assert_eq!(row[1..4], numbers, "{name}");
            assert_eq!(row[4], workload.seed.to_string(), "{name}");
        }
    }

    #[test]
    fn a_workload_finds_its_published_result_and_no_other() {
        let found =
            |profiles, limit, workers| find(&samples::workload(profiles, limit, workers)).map(|found| found.name);
        assert_eq!(found(100_000, 100, 1).as_deref(), Some("100k-linux"));
        assert_eq!(found(100_000, 50, 16).as_deref(), Some("100k-p16-q50-windows"));
        assert_eq!(found(1_000_000, 100, 1).as_deref(), Some("1m-linux"));
        assert_eq!(found(100_000, 100, 16), None);
        let mut other = samples::workload(100_000, 100, 1);
        other.post_queries += 1;
        assert_eq!(find(&other), None);
    }

    #[test]
    fn a_wrong_checksum_is_named_with_both_values() {
        let mut run = load("100k-linux").expect("a name of the list").run;
        assert_eq!(compare(&run).unwrap(), (Published { name: "100k-linux".to_owned(), equal: 17, of: 17 }, vec![]));
        run.engines[1].phases[4].checksum = "0123456789ABCDEF".to_owned();
        run.engines[1].verify_checksum = None;
        let (summary, mismatches) = compare(&run).unwrap();
        assert_eq!((summary.equal, summary.of), (15, 17));
        assert_eq!(mismatches[0].question, "query country/status");
        assert_eq!(mismatches[0].expected, "8A71BD4E88816061");
        assert_eq!(mismatches[0].found, "0123456789ABCDEF");
        assert_eq!(mismatches[0].contender, "RocksDB (process)");
        assert_eq!((&mismatches[1].question[..], &mismatches[1].found[..]), (compare::FINAL_CHECKSUM, "missing"));
    }

    #[test]
    fn a_run_that_was_stopped_is_not_compared() {
        let mut run = load("100k-linux").expect("a name of the list").run;
        run.engines.iter_mut().for_each(|engine| engine.status = Status::Timeout);
        assert_eq!(compare(&run), None);
    }

    #[test]
    fn damage_in_a_published_file_is_an_error() {
        let text = FILES[0].1;
        assert!(parse(&text.replace(",528,", ",NaN,")).is_err());
        assert!(parse(&text.replace("phase,", "faze,")).is_err());
        assert!(parse(&text.replace("config,,Seed", "config,,Sead")).is_err());
        assert!(parse("").is_err());
    }
}
