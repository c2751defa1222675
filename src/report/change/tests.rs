use super::*;
use crate::bench::dataset::DataSet;
use crate::bench::result::Status;
use crate::report::samples;

/// A run with a repetition for each factor, every phase that many times as slow as the sample.
fn run_of(engines: &[&str], factors: &[f64]) -> RunResult {
    let mut run = samples::run(engines);
    let first = std::mem::take(&mut run.engines);
    for engine in &first {
        let again = |(place, factor): (usize, &f64)| samples::again(engine, place as u64 + 1, *factor);
        run.engines.extend(factors.iter().enumerate().map(again));
    }
    run
}

fn changes(before: &[f64], after: &[f64]) -> Vec<Change> {
    let comparison = compare(&run_of(&["fjall"], before), &run_of(&["fjall"], after)).expect("the same work");
    comparison.contenders[0].phases.iter().map(|phase| phase.change).collect()
}

#[test]
fn each_word_is_said_where_it_is_due() {
    let steady = [1.0, 1.01, 0.99, 1.005, 0.995];
    let times = |factor: f64| steady.map(|time| time * factor);
    for (after, expected) in [
        (times(0.8), Change::Faster),
        (times(1.25), Change::Slower),
        (times(1.01), Change::Same),
        ([0.7, 1.4, 1.0, 0.8, 1.3], Change::Noisy),
    ] {
        assert_eq!(changes(&steady, &after), vec![expected; 17], "{after:?}");
    }
}

#[test]
fn one_or_two_repetitions_say_nothing_about_noise() {
    assert_eq!(changes(&[1.0], &[3.0]), vec![Change::TooFew; 17]);
    assert_eq!(changes(&[1.0, 1.0, 1.0], &[3.0, 3.0]), vec![Change::TooFew; 17]);
    let one = compare(&run_of(&["fjall"], &[1.0]), &run_of(&["fjall"], &[3.0])).expect("the same work");
    let told = sentences(&one).join("\n");
    assert!(told.contains("Nothing can be said about noise with one repetition"), "{told}");
    assert!(told.contains("|          3.00x |  n/a | too few |") && told.contains("Phases: 16 too few."), "{told}");
    assert!(!one.has_slower());
}

#[test]
fn three_repetitions_that_overlap_are_noise_and_those_apart_are_not() {
    assert_eq!(changes(&[1.0, 1.1, 1.2], &[1.15, 1.3, 1.4])[0], Change::Noisy);
    assert_eq!(changes(&[1.0, 1.1, 1.2], &[1.3, 1.4, 1.5])[0], Change::Slower);
}

#[test]
fn an_interval_holds_its_median_and_is_the_same_every_time() {
    let (before, after) = ([5.0, 4.0, 7.0, 6.0], [3.0, 9.0, 4.0]);
    let once = estimates(&before, &after).expect("there are times");
    assert_eq!(Some(once), estimates(&before, &after));
    let medians = once.map(|estimate| format!("{:.4}", estimate.median));
    assert_eq!(medians, ["5.5000", "4.0000", "0.7273"]);
    for estimate in once {
        assert!(estimate.low <= estimate.median && estimate.median <= estimate.high, "{estimate:?}");
    }
    assert_eq!((once[1].low, once[1].high), (3.0, 9.0), "three repetitions reach from the least to the most");
    assert_eq!(estimates(&[], &after), None);
}

#[test]
fn other_work_is_refused_and_every_difference_named() {
    let before = run_of(&["fjall", "sqlite"], &[1.0]);
    let mut after = before.clone();
    after.workload.dataset = DataSet::Natural;
    after.workload.query_limit = 50;
    after.workload.post_queries = 7;
    after.workload.seed = -1;
    after.engines[1].durability = "sync".to_owned();
    let refusal = compare(&before, &after).expect_err("other work");
    assert_eq!(
        refusal,
        [
            "the data set is published in the first and natural in the second",
            "the seed is 570123434 in the first and -1 in the second",
            "the number of queries after the updates is 25000 in the first and 7 in the second",
            "the query limit is 100 in the first and 50 in the second",
            "the durability class of sqlite is process in the first and sync in the second",
        ]
    );
    let mut debug = before.clone();
    debug.environment.insert("build".to_owned(), "debug".to_owned());
    let mut release = before.clone();
    release.environment.insert("build".to_owned(), "release".to_owned());
    assert_eq!(
        compare(&debug, &release),
        Err(vec!["the build is debug in the first and release in the second".to_owned()])
    );
}

#[test]
fn a_contender_of_one_side_is_left_out_and_said_so() {
    let before = run_of(&["fjall", "sqlite"], &[1.0]);
    let mut after = run_of(&["fjall", "redb"], &[1.0]);
    after.environment.insert("cpu".to_owned(), "Sample 9001".to_owned());
    let comparison = compare(&before, &after).expect("the same work");
    assert_eq!(comparison.contenders.len(), 1);
    assert_eq!(
        comparison.notes,
        [
            "another machine, or the same otherwise: cpu is Sample 9000 in the first and Sample 9001 in the second",
            "sqlite did not complete in both, so it is left out",
            "redb is in the second result alone",
        ]
    );
    after.engines.iter_mut().for_each(|engine| engine.status = Status::Failed);
    assert_eq!(compare(&before, &after), Err(vec!["no engine completed in both results".to_owned()]));
}

#[test]
fn a_floor_that_took_another_time_tells_of_the_machine() {
    let before = run_of(&["floor", "fjall"], &[1.0, 1.0, 1.0]);
    let notes =
        |factor: f64| compare(&before, &run_of(&["floor", "fjall"], &[factor; 3])).expect("the same work").notes;
    assert_eq!(notes(1.04), [""; 0]);
    let told = notes(1.5).join("\n");
    assert!(told.contains("the floor itself took 1.50x the time in the second"), "{told}");
}

#[test]
fn other_answers_have_no_times() {
    let before = run_of(&["fjall"], &[1.0, 1.0, 1.0]);
    let mut after = run_of(&["fjall"], &[2.0, 2.0, 2.0]);
    after.workload.query_limit = 7;
    let before = RunResult { workload: after.workload.clone(), ..before };
    after.engines.iter_mut().for_each(|engine| engine.phases[4].checksum = "BAD0BAD0BAD0BAD0".to_owned());
    let comparison = compare(&before, &after).expect("the same work");
    assert!(comparison.has_wrong_answers());
    let told = sentences(&comparison).join("\n");
    assert!(
        told.contains("the answer to query country/status is 8A71BD4E88816061 in the first and BAD0BAD0BAD0BAD0"),
        "{told}"
    );
    assert!(!told.contains("slower") && told.contains("none compared"), "{told}");
}

#[test]
fn hostile_names_cannot_drive_the_terminal_and_no_line_is_too_long() {
    let mut run = run_of(&["fjall"], &[1.0, 1.1, 1.2]);
    for label in samples::hostile() {
        let mut engine = samples::engine(&label, 1.0);
        engine.phases[0].name.clone_from(&label);
        run.engines.push(engine);
    }
    let told = sentences(&compare(&run, &run).expect("the same work")).join("\n");
    assert!(!told.chars().any(|character| character.is_control() && character != '\n'));
    let of_fjall =
        told.lines().skip_while(|line| !line.starts_with("fjall")).skip(1).take_while(|line| !line.is_empty());
    assert!(of_fjall.into_iter().all(|line| line.chars().count() <= 100), "{told}");
}

#[test]
fn phases_that_took_no_time_are_left_out() {
    let mut run = run_of(&["fjall"], &[1.0, 1.0, 1.0]);
    for engine in &mut run.engines {
        engine.phases[2].elapsed_ms = 0.0;
        engine.phases[3].operations = 0;
    }
    let comparison = compare(&run, &run).expect("the same work");
    assert_eq!(comparison.contenders[0].phases.len(), 15);
}
