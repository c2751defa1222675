//! Any bytes as a result file, as a published result, and as labels.

use super::{change, charts, csv, json, markdown, published, terminal, text, verdict};
use crate::bench::result::RunResult;

/// As a result file: what is accepted is the same after it was saved again, and every report of it can be written.
pub(crate) fn run_result(input: &[u8]) {
    let Ok(file) = std::str::from_utf8(input) else { return };
    if published::is_published(file)
        && let Ok(run) = published::parse(file)
    {
        report(&run);
    }
    let Ok(run) = json::decode(file) else { return };
    let saved = json::encode(&run).expect("what was read can be saved");
    let again = json::decode(&saved).expect("what was saved can be read");
    assert_eq!(json::encode(&again).expect("it can be saved again"), saved, "saved twice it is not the same");
    report(&run);
}

fn report(run: &RunResult) {
    let page = markdown::report(run);
    assert!(!page.contains(['\r', '\0', '\u{1b}']), "a control character in the report");
    assert!(!terminal::summary(run, false).contains('\u{1b}'), "a control character on the terminal");
    csv::read(&csv::phases(run)).expect("a table that was written can be read");
    for chart in charts::texts(run).expect("a chart can be drawn") {
        assert!(
            !chart.contains(|letter: char| letter.is_control() && letter != '\n'),
            "a control character in a chart"
        );
    }
    let _ = verdict::verify(run);
    match change::compare(run, run) {
        Ok(comparison) => assert!(!change::sentences(&comparison).is_empty() && !comparison.has_slower()),
        Err(differences) => assert!(!differences.is_empty(), "refused, and nobody knows why"),
    }
}

/// As labels, one behind each zero: they come back from a table as they were, and no writer lets one out of its place.
pub(crate) fn run_labels(input: &[u8]) {
    let labels: Vec<String> =
        input.split(|byte| *byte == 0).map(|label| String::from_utf8_lossy(label).into_owned()).collect();
    check_table(&labels);
    for label in &labels {
        let shown = text::plain(label, text::NAME_CHARS_MAX);
        assert!(!shown.contains(char::is_control), "a control character of {label:?}");
        check_markdown(&text::markdown(label, text::MESSAGE_CHARS_MAX), label);
    }
    if let Ok(file) = std::str::from_utf8(input)
        && let Ok(records) = csv::read(file)
    {
        assert!(records.array_windows().all(|[one, next]| one.len() == next.len()), "records of different lengths");
    }
}

fn check_table(labels: &[String]) {
    // A last field, for a record of one that is empty is an empty line.
    let fields: Vec<_> = labels.iter().cloned().chain(["end".to_owned()]).collect();
    let mut file = String::new();
    csv::push_record(&mut file, &fields);
    let records = csv::read(&file).expect("a table that was written can be read");
    assert_eq!(records.len(), 1, "a label became a record");
    assert_eq!(records[0].len(), fields.len(), "a label became several fields");
    for (found, label) in records[0].iter().zip(&fields) {
        assert!(found == label || found.strip_prefix('\'') == Some(label), "{label:?} came back as {found:?}");
        let is_formula = found.starts_with(['=', '+', '-', '@', '\t', '\r']);
        assert!(!is_formula || found.parse::<f64>().is_ok(), "{label:?} is a formula");
    }
}

fn check_markdown(cell: &str, label: &str) {
    assert!(!cell.contains(char::is_control) && !cell.contains(['<', '>']), "{label:?} became {cell:?}");
    let mut characters = cell.chars();
    while let Some(character) = characters.next() {
        assert!(!matches!(character, '|' | '`' | '*' | '_' | '[' | ']'), "{label:?} became {cell:?}");
        if character == '\\' {
            assert!(characters.next().is_some_and(|next| next.is_ascii_punctuation()), "{label:?} became {cell:?}");
        }
    }
}

pub(crate) fn result_seeds() -> Vec<Vec<u8>> {
    const PUBLISHED: &str = include_str!("../../reference-results/100m-linux.csv");
    let mut run = published::parse(PUBLISHED).expect("every embedded file is read by a test");
    run.engines.truncate(2);
    for (repetition, engine) in (1..).zip(&mut run.engines) {
        engine.phases.truncate(3);
        engine.repetition = repetition;
        engine.message = Some("why it <failed>".to_owned());
        engine.settings.insert("cache".to_owned(), "32 MiB".to_owned());
    }
    run.environment.insert("cpu".to_owned(), "Sample 9000".to_owned());
    let json = json::encode(&run).expect("a result can be saved");
    vec![json.into_bytes(), PUBLISHED.as_bytes().to_vec()]
}

pub(crate) fn label_seeds() -> Vec<Vec<u8>> {
    let labels = "=HYPERLINK(\"http://x\")\0a,b\0two\nlines\0</script><img src=x>\0[x](y)|z\0\u{1b}]0;owned\u{7}\0-1.5";
    vec![labels.as_bytes().to_vec(), b"a,b\r\n\"1\",\"2\"\"\"\r\n".to_vec(), "é\u{202e}\u{2028}".as_bytes().to_vec()]
}
