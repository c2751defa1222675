use super::*;
use crate::bench::dataset::DataSet;
use crate::bench::result::{Latency, Status};

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
    assert_eq!(records[1][11..], ["1", "2", "", "4", ""]);
    assert_eq!(records[17][0], "two\nlines");
}

#[test]
fn each_number_is_the_median_over_the_repetitions_that_completed() {
    let mut run = samples::run(&["fjall"]);
    let first = run.engines[0].clone();
    run.engines.extend([2, 3, 4].map(|repetition| samples::again(&first, repetition, 2.0)));
    run.engines[3].status = Status::Failed;
    // One phase of one repetition was disturbed: that changes its median and no other.
    run.engines[0].phases[4].elapsed_ms *= 100.0;
    let contenders = compare::contenders(&run);
    let [contender] = &contenders[..] else { panic!("one contender") };
    let once = |place: usize| first.phases[place].elapsed_ms;
    let measured = |place: usize| {
        contender.measured(|result| compare::phase_ms(result, &first.phases[place].name)).expect("it was measured")
    };
    assert_eq!((measured(3).value, measured(3).spread), (2.0 * once(3), Some((once(3), 2.0 * once(3)))));
    assert_eq!((measured(4).value, measured(4).spread), (2.0 * once(4), Some((2.0 * once(4), 100.0 * once(4)))));
    assert_eq!((contender.repetitions.len(), contender.completed_repetitions().count()), (4, 3));
}

#[test]
fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
    assert_eq!(compare::median(&mut [4.0, 1.0, 3.0, 10.0]), Some(3.5));
    assert_eq!(compare::median(&mut [5.0, 1.0, 3.0]), Some(3.0));
    assert_eq!(compare::median(&mut []), None);
}

#[test]
fn a_line_of_phases_csv_tells_medians_their_spread_and_the_data_set() {
    let mut run = samples::run(&["fjall"]);
    let first = run.engines[0].clone();
    run.engines.extend([samples::again(&first, 2, 4.0), samples::again(&first, 3, 2.0)]);
    run.workload.dataset = DataSet::Natural;
    let records = csv::read(&csv::phases(&run)).unwrap();
    assert_eq!(records.len(), 17, "repetitions are one line");
    let once = first.phases[0].elapsed_ms;
    let expected = ["natural".to_owned(), "insert profiles".to_owned(), "100000".to_owned(), "3".to_owned()];
    assert_eq!(records[1][2..6], expected);
    assert_eq!(records[1][6..9], [2.0 * once, once, 4.0 * once].map(|ms| ms.to_string()));
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
