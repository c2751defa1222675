//! `report.md`: the sections of the published report, and what we add to them: latencies, the share of the floor, and
//! the verdict. Foreign text is escaped cell by cell.

mod relative;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::bench::result::{EngineResult, Latency, PhaseResult, RunResult, Workload};

use super::charts::{CHARTS, status_word, workload};
use super::compare::{self, Contender, Kind};
use super::format::{self, ABSENT};
use super::notes;
use super::text::{MESSAGE_CHARS_MAX, NAME_CHARS_MAX, markdown as escaped};
use super::verdict::{Verdict, verify};

/// The text of `report.md`.
pub fn report(run: &RunResult) -> String {
    let contenders = compare::contenders(run);
    let verdict = verify(run);
    let mut page = format!("# {}\n\n", message(&workload(&run.workload)));
    let sections = [
        ("Charts", charts()),
        ("Total By Engine", totals(&contenders)),
        ("Correctness", correctness(run, &contenders, &verdict)),
        ("Interpretation Notes", bullets(notes::interpretation(run).into_iter().chain(notes::surprises(run)))),
        ("Write Readiness", write_readiness(&contenders)),
        ("Phase Results", phase_results(&contenders)),
        ("Floor And Write Amplification", relative::costs(&contenders)),
        ("Relative Results", relative::relative(run, &contenders, &verdict)),
        ("Configuration", configuration(&run.workload)),
        ("Environment", settings_table(&run.environment)),
        ("Engine Settings", engine_settings(&contenders)),
        ("Durability Settings", durability_settings(&contenders)),
    ];
    for (title, body) in sections {
        let _ = write!(page, "## {title}\n\n{}\n\n", body.trim_end());
    }
    page.trim_end().to_owned() + "\n"
}

fn charts() -> String {
    CHARTS.iter().fold(String::new(), |text, (file, title)| text + &format!("![{title}](charts/{file}.svg)\n\n"))
}

fn totals(contenders: &[Contender]) -> String {
    let mut table = Table::new(&[
        "Engine",
        "Version",
        "Durability",
        "Status",
        "Run time ms",
        "Completed phase time ms",
        "Pre-read stabilize ms",
        "Post-update stabilize ms",
        "Settle ms",
        "Reopen ms",
        "Verify ms",
        "Storage",
        "Allocated",
        "Written",
        "Process peak memory",
        "Baseline memory",
        "Peak over baseline",
        "Final checksum",
    ]);
    for contender in contenders {
        let shown = contender.shown;
        let ms = |of: fn(&EngineResult) -> Option<f64>| number(contender.median(of));
        let bytes = |of: fn(&EngineResult) -> Option<u64>| {
            median_bytes(contender, |result| of(result).map(|bytes| bytes as f64))
        };
        table.row([
            name(&contender.label),
            name(&shown.version),
            name(&shown.durability),
            status(contender),
            spread_ms(contender, |result| result.run_ms),
            spread_ms(contender, |result| result.completed_phase_ms),
            ms(|result| result.pre_read_stabilize_ms),
            ms(|result| result.post_update_stabilize_ms),
            ms(|result| result.settle_ms),
            ms(|result| result.reopen_ms),
            ms(|result| result.verify_ms),
            bytes(|result| result.storage_bytes),
            bytes(|result| result.storage_allocated_bytes),
            bytes(|result| result.io_write_bytes),
            bytes(|result| result.peak_memory_bytes),
            bytes(|result| result.baseline_memory_bytes),
            median_bytes(contender, compare::memory_over_baseline),
            shown.verify_checksum.as_deref().map_or_else(|| ABSENT.to_owned(), name),
        ]);
    }
    table.text
}

fn status(contender: &Contender) -> String {
    let word = status_word(contender.shown.status);
    let (done, all) = (contender.completed_repetitions().count(), contender.repetitions.len());
    if all > 1 { format!("{word}, {done} of {all} repetitions") } else { word.to_owned() }
}

fn median_bytes(contender: &Contender, value: impl Fn(&EngineResult) -> Option<f64>) -> String {
    contender.median(value).map_or_else(|| s(ABSENT), format::bytes)
}

/// A time, and in brackets its spread where there are several repetitions.
fn spread_ms(contender: &Contender, value: impl Fn(&EngineResult) -> Option<f64>) -> String {
    let Some(measured) = contender.measured(value) else { return ABSENT.to_owned() };
    let spread = measured
        .spread
        .map_or_else(String::new, |(low, high)| format!(" ({} to {})", number(Some(low)), number(Some(high))));
    format!("{}{spread}", number(Some(measured.value)))
}

fn correctness(run: &RunResult, contenders: &[Contender], verdict: &Verdict) -> String {
    let mut table = Table::of_words(&["Engine", "Final checksum", "All fields", "Index check", "Answers"]);
    for contender in contenders {
        let shown = contender.shown;
        let index_check = shown.index_check.as_ref().map_or_else(
            || "not done".to_owned(),
            |check| match check.problems.len() {
                0 => format!("{} entries, no problem", format::grouped(check.checked)),
                problems => format!("{} entries, **{problems} problems**", format::grouped(check.checked)),
            },
        );
        let checksum = |of: &Option<String>| of.as_deref().map_or_else(|| ABSENT.to_owned(), name);
        let answers = match (contender.completed(), verdict.doubts(run, contender)) {
            (_, true) => "**wrong or disputed**",
            (true, false) => "not contradicted",
            (false, false) => "not compared",
        };
        table.row([
            name(&contender.label),
            checksum(&shown.verify_checksum),
            checksum(&shown.all_fields_checksum),
            index_check,
            answers.to_owned(),
        ]);
    }
    bullets(verdict.sentences().into_iter()) + "\n" + &table.text
}

fn write_readiness(contenders: &[Contender]) -> String {
    let writes: Vec<&str> =
        compare::phase_names(contenders).into_iter().filter(|name| Kind::of(name) == Kind::Write).collect();
    let mut table = Table::new(&["Engine", "Phase", "Write ms", "Stabilize ms", "Ready ms", "Ready throughput /s"]);
    for contender in contenders {
        for phase in &writes {
            let median =
                |of: fn(&EngineResult, &str) -> Option<f64>| number(contender.median(|result| of(result, phase)));
            table.row([
                name(&contender.label),
                name(phase),
                median(compare::phase_ms),
                median(compare::stabilize_ms),
                median(compare::ready_ms),
                median(compare::ready_rate),
            ]);
        }
    }
    table.text
}

fn phase_results(contenders: &[Contender]) -> String {
    let mut text = String::new();
    for contender in contenders {
        let _ = write!(text, "### {}\n\n", name(&contender.label));
        if contender.shown.phases.is_empty() {
            text += "No phase was finished.\n\n";
            continue;
        }
        let mut table = Table::new(&[
            "Phase",
            "Operations",
            "Time ms",
            "Throughput /s",
            "p50 µs",
            "p90 µs",
            "p99 µs",
            "p99.9 µs",
            "max µs",
            "Checksum",
        ]);
        for phase in &contender.shown.phases {
            table.row(phase_row(contender, phase));
        }
        text += &(table.text + "\n");
    }
    text
}

fn phase_row(contender: &Contender, phase: &PhaseResult) -> [String; 10] {
    let latency = |of: fn(&Latency) -> f64| {
        move |result: &EngineResult| compare::phase(result, &phase.name)?.latency_us.as_ref().map(of)
    };
    let percentile = |of: fn(&Latency) -> f64| number(contender.median(latency(of)));
    [
        name(&phase.name),
        format::grouped(phase.operations),
        spread_ms(contender, |result| compare::phase_ms(result, &phase.name)),
        number(contender.median(|result| compare::phase_rate(result, &phase.name))),
        percentile(|latency| latency.p50),
        percentile(|latency| latency.p90),
        percentile(|latency| latency.p99),
        percentile(|latency| latency.p999),
        number(contender.largest(latency(|latency| latency.max))),
        name(&phase.checksum),
    ]
}

fn configuration(workload: &Workload) -> String {
    let mut table = Table::of_words(&["Setting", "Value"]);
    table.row([s("Workload"), name(&workload.name)]);
    table.row([s("Data set"), workload.dataset.to_string()]);
    let counts = [
        ("Profiles", workload.profiles),
        ("Workers", workload.workers),
        ("UserId reads", workload.reads),
        ("Email lookups", workload.email_reads),
        ("Query count", workload.queries),
        ("Profile updates", workload.updates),
        ("Post-update UserId reads", workload.post_reads),
        ("Post-update email lookups", workload.post_email_reads),
        ("Post-update query count", workload.post_queries),
        ("Query limit", workload.query_limit),
    ];
    for (setting, count) in counts {
        table.row([s(setting), format::grouped(count)]);
    }
    table.row([s("Seed"), workload.seed.to_string()]);
    if let Some(bytes) = workload.memory_bytes {
        table.row([s("Memory budget of each engine"), format::bytes(bytes as f64)]);
    }
    table.text
}

fn engine_settings(contenders: &[Contender]) -> String {
    contenders.iter().fold(String::new(), |text, contender| {
        let settings = settings_table(&contender.shown.settings);
        text + &format!("### {} settings\n\n{settings}\n", name(&contender.label))
    })
}

fn durability_settings(contenders: &[Contender]) -> String {
    let mut table = Table::of_words(&["Engine", "Class", "What survives"]);
    for contender in contenders {
        let survives = match contender.shown.durability.as_str() {
            _ if contender.is_floor() => "nothing; it keeps everything in memory",
            "none" => "what was there at a flush or a clean close",
            "process" => "every acknowledged write, if the process is killed; a power loss may drop the newest",
            "sync" => "every acknowledged write, also after a power loss",
            _ => ABSENT,
        };
        table.row([name(&contender.label), name(&contender.shown.durability), survives.to_owned()]);
    }
    table.text
}

fn settings_table(settings: &BTreeMap<String, String>) -> String {
    if settings.is_empty() {
        return "None recorded.\n".to_owned();
    }
    let mut table = Table::of_words(&["Setting", "Value"]);
    for (setting, value) in settings {
        table.row([name(setting), message(value)]);
    }
    table.text
}

fn bullets(sentences: impl Iterator<Item = String>) -> String {
    sentences.fold(String::new(), |text, sentence| text + &format!("- {}\n", message(&sentence)))
}

fn name(text: &str) -> String {
    escaped(text, NAME_CHARS_MAX)
}

fn message(text: &str) -> String {
    escaped(text, MESSAGE_CHARS_MAX)
}

fn number(value: Option<f64>) -> String {
    format::decimal(value)
}

fn s(text: &str) -> String {
    text.to_owned()
}

/// A table; the first column is set to the left, numbers to the right. Cells are escaped already.
struct Table {
    text: String,
}

impl Table {
    fn new(header: &[&str]) -> Self {
        Self::with_header(&header.iter().map(|title| s(title)).collect::<Vec<_>>())
    }

    /// A table of words: every column is set to the left.
    fn of_words(header: &[&str]) -> Self {
        Self { text: format!("| {} |\n{}|\n", header.join(" | "), "|---".repeat(header.len())) }
    }

    fn with_header(header: &[String]) -> Self {
        let rule = "|---:".repeat(header.len() - 1);
        Self { text: format!("| {} |\n|---{rule}|\n", header.join(" | ")) }
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{published, samples};

    /// Cells of each table row, split at the bars that are not escaped.
    fn rows(page: &str) -> Vec<usize> {
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        page.lines().filter(|line| line.starts_with('|')).map(bars).collect()
    }

    #[test]
    fn every_section_is_there_in_order() {
        let page = report(&samples::run(&["profilestore", "floor", "fjall"]));
        let titles: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(
            titles,
            [
                "Charts",
                "Total By Engine",
                "Correctness",
                "Interpretation Notes",
                "Write Readiness",
                "Phase Results",
                "Floor And Write Amplification",
                "Relative Results",
                "Configuration",
                "Environment",
                "Engine Settings",
                "Durability Settings",
            ]
        );
        assert_eq!(page.matches("](charts/").count(), 6);
        assert!(page.contains("- 17/17 checksums equal the published 100k-linux\n"));
        assert!(page.contains("500_000 entries, no problem"));
    }

    #[test]
    fn hostile_labels_stay_in_their_cells() {
        let mut run = samples::run(&["profilestore"]);
        for label in samples::hostile() {
            let mut engine = samples::engine(&label, 2.0);
            engine.version.clone_from(&label);
            engine.settings.insert(label.clone(), label.clone());
            engine.phases[0].name.clone_from(&label);
            engine.message = Some(label.clone());
            run.environment.insert(label.clone(), label);
            run.engines.push(engine);
        }
        let page = report(&run);
        assert!(!page.contains("<script") && !page.contains("</script") && !page.contains("<img"));
        assert!(!page.chars().any(|character| character.is_control() && character != '\n'));
        let totals = rows(page.split("## Correctness").next().expect("a first part"));
        assert_eq!(totals, vec![19; 2 + run.engines.len()]);
    }

    #[test]
    fn what_was_not_reached_is_na_and_ratios_leave_it_out() {
        let mut run = samples::run(&["profilestore", "fjall"]);
        run.engines[1] = samples::stopped(run.engines[1].clone(), 1);
        let page = report(&run);
        assert!(page.contains("- fjall ran out of time after 1 finished phase: stopped after 60 s in a phase"));
        assert!(page.contains("| fjall | update profiles | n/a | "));
        assert!(page.contains("| Phase | Winner | profilestore | Floor share |"));
    }

    #[test]
    fn ratios_and_the_floor_are_those_of_the_sample() {
        let page = report(&samples::run(&["profilestore", "floor", "fjall"]));
        assert!(page.contains("| read by user id | profilestore | 1.00x | 0.300x | 4.40x | 30.0% |"), "{page}");
    }

    #[test]
    fn costs_are_those_of_the_sample_and_absent_where_nothing_was_counted() {
        let mut run = samples::run(&["profilestore", "floor", "fjall"]);
        run.engines[0].phases[0].data_bytes = Some(10_000_000);
        run.engines[0].phases[9].data_bytes = Some(12_000_000);
        let page = report(&run);
        let costs = page.split("## Floor And").nth(1).expect("the section is there");
        let row = |engine: &str| costs.lines().find(|line| line.starts_with(engine)).expect("a row").to_owned();
        assert!(row("| profilestore").ends_with(" | 30.0% | 21.0 MB | 52.5 MB | 2.50x |"), "{costs}");
        assert!(row("| fjall").ends_with(" | 6.8% | n/a | 230.8 MB | n/a |"), "{costs}");
    }

    #[test]
    fn an_empty_run_and_a_published_one_are_reported() {
        assert!(report(&samples::run(&[])).contains("No completed contender"));
        let page = report(&published::load("100k-linux").expect("an embedded file").run);
        assert!(page.contains("| ZoneTree (none) |"));
        assert!(page.contains("7.4 MB"));
    }

    #[test]
    fn no_number_is_infinite_or_undefined() {
        let mut run = samples::run(&["profilestore", "fjall"]);
        for engine in &mut run.engines {
            engine.completed_phase_ms = Some(0.0);
            engine.run_ms = Some(f64::INFINITY);
            for phase in &mut engine.phases {
                phase.elapsed_ms = 0.0;
                phase.ops_per_s = Some(f64::INFINITY);
            }
            engine.phases[0].elapsed_ms = f64::NAN;
        }
        let page = report(&run);
        assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
    }
}
