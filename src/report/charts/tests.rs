use super::scene::{Align, PNG_SCALE, Shape, text_width};
use super::*;
use crate::report::{published, samples};

const EVERYONE: [&str; 9] =
    ["profilestore", "floor", "fjall", "sqlite", "redb", "lmdb", "rocksdb", "mysql", "zonetree"];

/// Runs that have broken chart writers before.
fn awkward_runs() -> Vec<(&'static str, RunResult)> {
    let with_rates = |rates: &[f64]| {
        let mut run = samples::run(&EVERYONE[..rates.len()]);
        for (engine, rate) in run.engines.iter_mut().zip(rates) {
            for phase in &mut engine.phases {
                phase.ops_per_s = Some(*rate);
                phase.elapsed_ms = 1.0 / rate;
            }
            engine.completed_phase_ms = Some(*rate);
            engine.run_ms = Some(*rate);
            engine.storage_bytes = Some(*rate as u64);
        }
        run
    };
    let mut absent = samples::run(&["profilestore", "fjall"]);
    absent.engines.iter_mut().for_each(|engine| engine.phases.clear());
    let mut stopped = samples::run(&["profilestore", "fjall", "sqlite"]);
    stopped.engines[1] = samples::stopped(stopped.engines[1].clone(), 10);
    stopped.engines[2] = samples::stopped(stopped.engines[2].clone(), 0);
    let mut hostile = samples::run(&["fjall"]);
    hostile.engines = samples::hostile().iter().map(|label| samples::engine(label, 1.0)).collect();
    let mut crowd = samples::run(&[]);
    crowd.engines = (0..30).map(|place| samples::engine(&format!("engine-{place}"), 1.0 + f64::from(place))).collect();
    vec![
        ("one contender", samples::run(&["profilestore"])),
        ("nine contenders", samples::run(&EVERYONE)),
        ("the floor alone", samples::run(&["floor"])),
        ("nobody", samples::run(&[])),
        ("a crowd", crowd),
        ("zeros", with_rates(&[0.0, 0.0])),
        ("equal values", with_rates(&[1.0, 1.0])),
        ("less than a decade", with_rates(&[2.0, 8.0])),
        ("a zero among numbers", with_rates(&[0.0, 5.0, 1e6])),
        ("tiny and huge", with_rates(&[1e-9, 1e12])),
        ("not numbers", with_rates(&[f64::NAN, f64::INFINITY, 3.0])),
        ("negative", with_rates(&[-1.0, 3.0])),
        ("no phases", absent),
        ("stopped", stopped),
        ("hostile labels", hostile),
        ("published", published::load("100k-linux").expect("an embedded file").run),
    ]
}

#[test]
fn every_awkward_run_is_drawn() {
    for (name, run) in awkward_runs() {
        let charts = charts(&run);
        assert_eq!(charts.len(), CHARTS.len(), "{name}");
        for chart in charts {
            let scene = bars::layout(&chart);
            let svg = scene.svg().unwrap();
            assert!(svg.contains(chart.title), "{name}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}: {}", chart.title);
        }
    }
}

#[test]
fn no_two_texts_overlap_and_none_leaves_the_page() {
    for (name, run) in awkward_runs() {
        for chart in charts(&run) {
            let scene = bars::layout(&chart);
            let texts: Vec<_> = scene.shapes.iter().filter_map(extent).collect();
            for (index, (text, one)) in texts.iter().enumerate() {
                assert!(
                    one.0 >= 0.0 && one.1 <= scene.width && one.3 <= scene.height,
                    "{name}: {text} leaves the page"
                );
                for (other_text, other) in &texts[..index] {
                    let apart = one.1 <= other.0 || other.1 <= one.0 || one.3 <= other.2 || other.3 <= one.2;
                    assert!(apart, "{name}, {}: {text:?} covers {other_text:?}", chart.title);
                }
            }
        }
    }
}

/// Left, right, top and bottom.
type Extent = (f64, f64, f64, f64);

/// A text and the room it takes.
fn extent(shape: &Shape) -> Option<(&str, Extent)> {
    let Shape::Label(label) = shape else { return None };
    let width = text_width(&label.text, label.size, label.bold);
    let left = match label.align {
        Align::Start => label.x,
        Align::Middle => label.x - width / 2.0,
        Align::End => label.x - width,
    };
    let half = label.size * 0.4;
    Some((&label.text, (left, left + width, label.y - half, label.y + half)))
}

#[test]
fn twelve_files_are_written_in_the_size_of_the_layout() {
    let directory = tempfile::tempdir().unwrap();
    let run = samples::run(&["profilestore", "floor"]);
    draw(&run, directory.path()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 12);
    for ((name, _), chart) in CHARTS.iter().zip(charts(&run)) {
        let png = std::fs::read(directory.path().join(format!("{name}.png"))).unwrap();
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!((number(16), number(20)), bars::layout(&chart).pixels(PNG_SCALE));
        assert!(png.len() > 10_000, "{name} is empty");
        let svg = std::fs::read_to_string(directory.path().join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    }
}

#[test]
fn a_label_cannot_break_out_of_the_svg() {
    let mut run = samples::run(&["fjall"]);
    run.engines = samples::hostile().iter().map(|label| samples::engine(label, 1.0)).collect();
    let svg = bars::layout(&charts(&run)[0]).svg().unwrap();
    assert!(!svg.contains("<script") && !svg.contains("<img") && !svg.contains("<svg/"));
    assert!(!svg.contains('\x1b') && !svg.contains('\u{202e}'));
}

#[test]
fn a_stopped_contender_gets_words_for_what_it_did_not_finish() {
    let mut run = samples::run(&["profilestore", "fjall"]);
    run.engines[1] = samples::stopped(run.engines[1].clone(), 3);
    let [execution, _, _, scan, ..] = &charts(&run)[..] else { panic!("six charts") };
    let outcome = |chart: &Chart| chart.rows[0][0].bars[1].outcome.clone();
    assert_eq!(outcome(execution), Outcome::Absent { reason: "timeout".to_owned(), alarm: true });
    assert_eq!(outcome(scan), Outcome::Absent { reason: "timeout".to_owned(), alarm: true });
    assert_eq!(scan.rows[0][0].bars[1].label, "fjall †");
    assert!(execution.notes.iter().any(|note| note == "† fjall: timeout: stopped after 60 s in a phase"));
}

#[test]
fn no_bar_of_a_failed_contender_goes_unmarked() {
    for done in [0, 1, 9, 15] {
        let mut run = samples::run(&["profilestore", "fjall"]);
        let message = Some("phase `update profiles`: the disk is full".to_owned());
        run.engines[1] =
            EngineResult { status: Status::Failed, message, ..samples::stopped(run.engines[1].clone(), done) };
        for chart in charts(&run) {
            let bars = chart.rows.iter().flatten().flat_map(|panel| &panel.bars);
            let unmarked: Vec<_> = bars.filter(|bar| !bar.label.ends_with('†')).map(|bar| &bar.label).collect();
            assert!(unmarked.iter().all(|label| *label == "profilestore"), "{}: {unmarked:?}", chart.title);
            let cause = "† fjall: failed: phase `update profiles`: the disk is full";
            assert!(chart.notes.iter().any(|note| note == cause), "{}: {:?}", chart.title, chart.notes);
        }
    }
}

#[test]
fn wrong_answers_get_no_bar() {
    let mut run = samples::run(&["profilestore", "fjall"]);
    run.engines[1].phases[3].checksum = "BAD0BAD0BAD0BAD0".to_owned();
    let bars = &charts(&run)[0].rows[0][0].bars;
    assert!(matches!(bars[0].outcome, Outcome::Measured { .. }));
    assert!(matches!(bars[1].outcome, Outcome::Absent { alarm: true, .. }));
}

#[test]
fn a_zero_has_a_label_and_no_bar() {
    let (_, run) = awkward_runs().swap_remove(5);
    let scene = bars::layout(&charts(&run)[1]);
    let drawn = |shape: &&Shape| matches!(shape, Shape::Label(label) if label.text == "0/s");
    assert_eq!(scene.shapes.iter().filter(drawn).count(), 4);
}

#[test]
fn repetitions_show_the_median_and_their_spread() {
    let mut run = samples::run(&["fjall"]);
    let first = run.engines[0].clone();
    run.engines.extend([samples::again(&first, 2, 4.0), samples::again(&first, 3, 2.0)]);
    let charts = charts(&run);
    let Outcome::Measured { value, spread, .. } = charts[0].rows[0][0].bars[0].outcome.clone() else {
        panic!("a number")
    };
    let once = first.completed_phase_ms.expect("a completed run");
    assert_eq!((value, spread), (2.0 * once, Some((once, 4.0 * once))));
    assert!(charts[0].notes[0].starts_with("Of 3 repetitions"));
}
