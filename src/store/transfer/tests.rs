//! What goes out comes in again, and what does not is told with its line.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use postcard_schema::Schema;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Format, ImportOptions, ImportReport, ImportStop, OnConflict, TransferError};
use crate::engine::{Database, Options};
use crate::store::tests::records::profile;
use crate::store::{AnyIndex, Collection, Profile, Record};

const FORMATS: [Format; 2] = [Format::JsonLines, Format::Csv];

fn open<R: Record>(dir: &tempfile::TempDir) -> Collection<R, Database> {
    let database = Database::open(dir.path(), Options::default()).expect("a new database");
    Collection::open(Arc::new(database)).expect("a new collection")
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn exported<R: Record>(collection: &Collection<R, Database>, format: Format) -> String {
    let mut text = Vec::new();
    let records = collection.export(format, &mut text).expect("it is exported");
    assert_eq!(records, collection.count().expect("counted"));
    String::from_utf8(text).expect("it is text")
}

/// Everything that the formats treat in ways of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Odd {
    id: u64,
    text: String,
    maybe: Option<String>,
    count: Option<i64>,
    float: f64,
    letter: char,
    flag: bool,
}

impl Record for Odd {
    type Id = u64;
    type View<'a> = Self;

    const COLLECTION: &'static str = "odd";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[];

    fn view(&self) -> Self {
        self.clone()
    }

    fn id(view: &Self) -> u64 {
        view.id
    }
}

fn odd(id: u64) -> Odd {
    let (text, maybe) = ("plain".to_owned(), Some("there".to_owned()));
    Odd { id, text, maybe, count: Some(-1), float: 0.1, letter: 'x', flag: true }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_is_exported_is_imported_as_it_was(
        texts in prop::collection::vec(("(?s).{0,8}", prop::option::of("[\\PC\n\r\",; ]{1,6}")), 1..6),
        count: Option<i64>,
        float in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO,
        letter: char,
        first_id in prop_oneof![Just(0), Just(u64::MAX - 6)],
    ) {
        let (from, to) = (directory(), directory());
        let (from, to) = (open::<Odd>(&from), open::<Odd>(&to));
        for (id, (text, maybe)) in (first_id..).zip(texts) {
            from.insert(&Odd { id, text, maybe, count, float, letter, flag: id % 2 == 0 }).expect("room");
        }
        for format in FORMATS {
            let text = exported(&from, format);
            let options = ImportOptions { on_conflict: OnConflict::Replace, batch_records: 2, ..ImportOptions::default() };
            let report = to.import(format, text.as_bytes(), &options).expect("it leads back");
            prop_assert_eq!(report, ImportReport { entered: from.count().expect("counted"), skipped: 0 });
            prop_assert_eq!(to.all().records().expect("read"), from.all().records().expect("read"));
            for id in to.all().ids().expect("read") {
                to.delete(id).expect("deleted");
            }
        }
    }
}

#[test]
fn a_profile_is_written_as_people_read_it() {
    let dir = directory();
    let profiles = open::<Profile>(&dir);
    profiles.insert(&Profile { bio: "first, and \"only\"\nline".to_owned(), ..profile(-7) }).expect("room");
    let csv = "user_id,email,country,status,created_at,last_login,reputation,display_name,bio\n\
        -7,user-7@example.com,DE,active,1699999999993,1700000500000,500,User -7,\"first, and \"\"only\"\"\nline\"\n";
    assert_eq!(exported(&profiles, Format::Csv), csv);
    let json = "{\"user_id\":-7,\"email\":\"user-7@example.com\",\"country\":\"DE\",\"status\":\"active\",\
        \"created_at\":1699999999993,\"last_login\":1700000500000,\"reputation\":500,\
        \"display_name\":\"User -7\",\"bio\":\"first, and \\\"only\\\"\\nline\"}\n";
    assert_eq!(exported(&profiles, Format::JsonLines), json);
}

#[test]
fn a_collection_without_records_is_an_empty_text_and_comes_back_as_one() {
    let dir = directory();
    let empty = open::<Odd>(&dir);
    for format in FORMATS {
        assert_eq!(exported(&empty, format), "");
        let report = empty.import(format, io::empty(), &ImportOptions::default()).expect("nothing is wrong with it");
        assert_eq!(report, ImportReport::default());
    }
}

#[test]
fn a_record_that_would_come_back_as_another_is_refused() {
    for (refused, formats) in [
        (Odd { float: f64::NAN, ..odd(1) }, &[Format::JsonLines][..]),
        (Odd { float: f64::INFINITY, ..odd(1) }, &[Format::JsonLines]),
        (Odd { maybe: Some(String::new()), ..odd(1) }, &[Format::Csv]),
    ] {
        for &format in formats {
            let dir = directory();
            let records = open::<Odd>(&dir);
            records.insert(&refused).expect("the store takes it");
            match records.export(format, &mut Vec::new()) {
                Err(TransferError::NotWritten { collection: "odd", id, .. }) => assert_eq!(id, "1"),
                other => panic!("{refused:?} as {format:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn nested_fields_go_into_json_and_not_into_csv() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    struct Nested {
        id: u64,
        tags: Vec<String>,
        place: (i32, i32),
    }
    impl Record for Nested {
        type Id = u64;
        type View<'a> = Self;
        const COLLECTION: &'static str = "nested";
        const VERSION: u8 = 1;
        const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[];
        fn view(&self) -> Self {
            self.clone()
        }
        fn id(view: &Self) -> u64 {
            view.id
        }
    }
    let (from, to) = (directory(), directory());
    let (from, to) = (open::<Nested>(&from), open::<Nested>(&to));
    from.insert(&Nested { id: 1, tags: vec!["a".to_owned(), String::new()], place: (-1, 2) }).expect("room");
    let text = exported(&from, Format::JsonLines);
    to.import(Format::JsonLines, text.as_bytes(), &ImportOptions::default()).expect("it leads back");
    assert_eq!(to.get(1).expect("read"), from.get(1).expect("read"));
    let refusal = from.export(Format::Csv, &mut Vec::new()).expect_err("CSV is flat");
    assert!(matches!(refusal, TransferError::NotWritten { .. }), "{refusal}");
}

/// A text of both formats with six records, of which `bad` is spoiled.
fn text_with_a_bad_line(format: Format, bad: usize, spoil: impl Fn(&str) -> String) -> String {
    let dir = directory();
    let records = open::<Odd>(&dir);
    (1..=6).for_each(|id| records.insert(&odd(id)).expect("room"));
    let text = exported(&records, format);
    let lines = text.lines().enumerate();
    lines.map(|(at, line)| if at + 1 == bad { spoil(line) } else { line.to_owned() } + "\n").collect()
}

#[test]
fn a_bad_line_stops_the_import_with_its_number_and_the_import_goes_on_from_there() {
    for (format, before) in [(Format::JsonLines, 0), (Format::Csv, 1)] {
        let dir = directory();
        let records = open::<Odd>(&dir);
        let bad = before + 4;
        let text = text_with_a_bad_line(format, bad, |line| line.replace("0.1", "a tenth"));
        let options = ImportOptions { batch_records: 2, ..ImportOptions::default() };
        let stop = match records.import(format, text.as_bytes(), &options) {
            Err(TransferError::Line { line, stop, reason }) => {
                assert_eq!(
                    (line, stop),
                    (bad as u64, ImportStop { entered: 2, from_line: before as u64 + 3 }),
                    "{reason}"
                );
                stop
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(records.all().ids().expect("read"), [1, 2], "whole batches stay");
        let mended = text.replace("a tenth", "0.1");
        let options = ImportOptions { from_line: stop.from_line, ..ImportOptions::default() };
        let report = records.import(format, mended.as_bytes(), &options).expect("nothing is wrong any more");
        assert_eq!((report.entered, records.all().ids().expect("read")), (4, vec![1, 2, 3, 4, 5, 6]));
    }
}

#[test]
fn what_is_wrong_with_a_line_is_said() {
    let refusal = |format, bad, spoil: &dyn Fn(&str) -> String| {
        let dir = directory();
        let text = text_with_a_bad_line(format, bad, spoil);
        open::<Odd>(&dir).import(format, text.as_bytes(), &ImportOptions::default()).expect_err("refused").to_string()
    };
    let cut = |line: &str| line[..line.len() - 3].to_owned();
    let said = refusal(Format::JsonLines, 2, &cut);
    assert!(said.starts_with("line 2: EOF while parsing"), "{said}");
    assert!(said.ends_with("0 records were entered; go on from line 1"), "{said}");
    let said = refusal(Format::JsonLines, 5, &|line| line.replace("\"flag\"", "\"flags\""));
    assert!(said.starts_with("line 5: missing field `flag`"), "{said}");
    let said = refusal(Format::Csv, 3, &|line| line.replace(",true", ""));
    assert!(said.starts_with("line 3: it has 6 fields, and the first line names 7"), "{said}");
    let said = refusal(Format::Csv, 4, &|line| line.replace("-1", "many"));
    assert!(said.starts_with("line 4: invalid digit found in string in field 4"), "{said}");
    let said = refusal(Format::Csv, 1, &|line| line.replace("float", "double"));
    assert!(said.starts_with("line 2: missing field `float`"), "{said}");
}

#[test]
fn a_line_of_a_csv_is_where_its_record_begins() {
    let dir = directory();
    let records = open::<Odd>(&dir);
    let text = "id,text,maybe,count,float,letter,flag\n\
        1,\"two\nlines\",,,0.5,x,true\n\
        2,\"three\n\nlines\",,,0.5,x,maybe\n";
    match records.import(Format::Csv, text.as_bytes(), &ImportOptions::default()) {
        Err(TransferError::Line { line: 4, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn conflicts_are_refused_skipped_or_replaced() {
    let line =
        |id: u64, text: &str| serde_json::to_string(&Odd { text: text.to_owned(), ..odd(id) }).expect("JSON") + "\n";
    let import = |on_conflict| {
        let dir = directory();
        let records = open::<Odd>(&dir);
        records.insert(&odd(2)).expect("room");
        let text = line(1, "new") + &line(2, "new") + &line(3, "new");
        let options = ImportOptions { on_conflict, ..ImportOptions::default() };
        let outcome = records.import(Format::JsonLines, text.as_bytes(), &options);
        let texts: Vec<_> = records.all().records().expect("read").into_iter().map(|odd| (odd.id, odd.text)).collect();
        (outcome, texts)
    };
    let texts = |texts: &[(u64, &str)]| texts.iter().map(|&(id, text)| (id, text.to_owned())).collect::<Vec<_>>();
    let (outcome, after) = import(OnConflict::Refuse);
    assert!(matches!(outcome, Err(TransferError::Line { line: 2, .. })), "{outcome:?}");
    assert_eq!(after, texts(&[(2, "plain")]), "a batch is entered whole or not at all");
    let (outcome, after) = import(OnConflict::Skip);
    assert_eq!(outcome.expect("skipped"), ImportReport { entered: 2, skipped: 1 });
    assert_eq!(after, texts(&[(1, "new"), (2, "plain"), (3, "new")]));
    let (outcome, after) = import(OnConflict::Replace);
    assert_eq!(outcome.expect("replaced"), ImportReport { entered: 3, skipped: 0 });
    assert_eq!(after, texts(&[(1, "new"), (2, "new"), (3, "new")]));
}

#[test]
fn a_record_that_the_collection_refuses_has_its_line() {
    let dir = directory();
    let profiles = open::<Profile>(&dir);
    let line = |profile: &Profile| serde_json::to_string(profile).expect("JSON") + "\n";
    let twice = Profile { email: profile(1).email, ..profile(2) };
    for (text, what) in [
        (line(&profile(1)) + &line(&twice), "another record already has email"),
        (line(&profile(1)) + "\n" + &line(&Profile { reputation: -1, ..profile(2) }), "reputation is \"-1\""),
        (line(&profile(1)) + &line(&profile(2)).replace("DE", "Germany"), "country is \"Germany\""),
    ] {
        let refusal = profiles.import(Format::JsonLines, text.as_bytes(), &ImportOptions::default());
        let expected = text.lines().count() as u64;
        match refusal {
            Err(TransferError::Line { line, reason, .. }) => {
                assert_eq!(line, expected, "{reason}");
                assert!(reason.contains(what), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(profiles.count().expect("counted"), 0);
    }
}

/// Gives what it holds, and then fails.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the line went dead")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_text_that_cannot_be_read_to_its_end_is_no_short_one() {
    for format in FORMATS {
        let dir = directory();
        let records = open::<Odd>(&dir);
        let text = text_with_a_bad_line(format, 0, str::to_owned);
        let options = ImportOptions { batch_records: 2, ..ImportOptions::default() };
        match records.import(format, BufReader::new(Failing(text.as_bytes())), &options) {
            Err(TransferError::Read { source, .. }) => assert_eq!(source.to_string(), "the line went dead"),
            other => panic!("{format:?}: {other:?}"),
        }
        assert_eq!(records.count().expect("counted"), 6);
    }
}

#[test]
fn a_line_that_never_ends_is_given_up() {
    let dir = directory();
    let records = open::<Odd>(&dir);
    let endless = BufReader::with_capacity(1 << 20, io::repeat(b'['));
    match records.import(Format::JsonLines, endless, &ImportOptions::default()) {
        Err(TransferError::Read { source, .. }) => {
            assert!(source.to_string().contains("line 1 is too long"), "{source}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_export_that_cannot_be_written_says_so() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = directory();
    let records = open::<Odd>(&dir);
    records.insert(&odd(1)).expect("room");
    match records.export(Format::Csv, Full) {
        Err(TransferError::Write(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_of_no_records_is_refused() {
    let dir = directory();
    let options = ImportOptions { batch_records: 0, ..ImportOptions::default() };
    let refusal = open::<Odd>(&dir).import(Format::Csv, io::empty(), &options).expect_err("refused");
    assert!(refusal.to_string().contains("at least 1"), "{refusal}");
}
