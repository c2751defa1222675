use super::*;
use crate::bench::result::{EngineResult, Latency, Status};

#[test]
fn every_format_is_written_and_the_json_loads_again() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("new/report");
    let run = samples::run(&["profilestore", "floor"]);
    write_all(&run, &out).unwrap();
    let mut names: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["charts", "phases.csv", "report.md", "result.json"]);
    let loaded = load_any(&out.join("result.json")).unwrap();
    assert_eq!(loaded.published.as_ref().map(|published| (published.equal, published.of)), Some((17, 17)));
    assert_eq!(RunResult { published: None, ..loaded }, run);
}

#[test]
fn a_published_file_is_known_by_its_content() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("renamed.txt");
    fs::write(&path, include_str!("../../reference-results/100k-linux.csv")).unwrap();
    let loaded = load_any(&path).unwrap();
    assert_eq!(loaded.workload.name, "published renamed", "its charts say what they are");
    assert_eq!(loaded.engines, published::load("100k-linux").expect("an embedded file").run.engines);
}

#[test]
fn a_file_of_another_kind_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.csv");
    fs::write(&path, "test,name\n1,2\n").unwrap();
    let message = load_any(&path).unwrap_err().to_string();
    assert!(message.contains("other.csv is neither a result.json nor a published"), "{message}");
    fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    assert!(load_any(&path).unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn phases_csv_has_a_line_for_each_phase_and_disarms_labels() {
    let mut run = samples::run(&["=HYPERLINK(\"http://x\")", "two\nlines"]);
    run.engines[0].phases[0].latency_us =
        Some(Latency { p50: 1.0, p90: 2.0, p99: f64::NAN, p999: 4.0, max: f64::INFINITY });
    let text = csv::phases(&run);
    let records = csv::read(&text).unwrap();
    assert_eq!(records.len(), 33);
    assert_eq!(records[0], csv::PHASE_COLUMNS);
    assert_eq!(records[1][0], "'=HYPERLINK(\"http://x\")");
    assert_eq!(records[1][8..], ["1", "2", "", "4", ""]);
    assert_eq!(records[17][0], "two\nlines");
}

#[test]
fn the_median_of_two_repetitions_is_the_slower_and_a_failed_one_never_is() {
    let mut run = samples::run(&["fjall"]);
    let first = run.engines[0].clone();
    run.engines.push(samples::again(&first, 2, 3.0));
    run.engines.push(EngineResult { status: Status::Failed, ..samples::again(&first, 3, 2.0) });
    let contenders = compare::contenders(&run);
    assert_eq!((contenders.len(), contenders[0].shown.repetition), (1, 2));
    assert_eq!(contenders[0].completed_repetitions().count(), 2);
}

#[test]
fn classes_are_kept_apart_and_the_floor_never_wins() {
    let mut run = samples::run(&["floor", "fjall", "sqlite", "fjall"]);
    run.engines[3].durability = "sync".to_owned();
    let contenders = compare::contenders(&run);
    let labels: Vec<&str> = contenders.iter().map(|contender| contender.label.as_str()).collect();
    assert_eq!(labels, ["floor", "fjall (process)", "sqlite (process)", "fjall (sync)"]);
    let best = compare::best_among_rivals(&contenders, compare::Better::Lower, compare::all_phases_ms);
    assert_eq!(best.get("process").copied(), contenders[1].shown.completed_phase_ms);
    assert_eq!(best.len(), 1, "who is alone in a class has not won");
}

#[test]
fn phases_of_other_workloads_find_their_kind() {
    use compare::Kind::{Lookup, Query, Scan, Write};
    let kinds = ["put", "get", "Point Queries", "Prefix / Range Deletion", "post-update scan x", "GROUP BY city"];
    assert_eq!(kinds.map(compare::Kind::of), [Write, Lookup, Lookup, Write, Scan, Query]);
    assert_eq!(["update profiles", "post-update read by user id"].map(compare::Kind::of), [Write, Lookup]);
}

#[test]
fn nothing_is_divided_by_zero() {
    assert_eq!(compare::times_of_best(1.0, 0.0), None);
    assert_eq!(compare::times_of_best(0.0, 2.0), Some(0.0));
    assert_eq!(compare::above_floor(Some(1.0), Some(2.0)), Some(0.0));
    assert_eq!(compare::above_floor(None, Some(2.0)), None);
}
