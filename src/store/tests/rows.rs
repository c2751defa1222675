//! Records of every shape through our engine, settled, so that they are read from columns: the same as what was stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::engine::{Database, Options};
use crate::store::{AnyIndex, Collection, Index, Record, Text, UniqueIndex};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Schema)]
enum Colour {
    Red,
    Green,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
enum Contact {
    None,
    Phone(u64),
    Address { street: String, number: u16 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Position {
    x: f32,
    y: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Everything {
    id: u64,
    flag: bool,
    tiny: i8,
    byte: u8,
    small: i16,
    large: i64,
    unsigned: u64,
    letter: char,
    name: String,
    code: [u8; 3],
    colour: Colour,
    position: Position,
    maybe: Option<String>,
    list: Vec<i32>,
    map: BTreeMap<String, u8>,
    contact: Contact,
    nothing: (),
    pair: (u16, String),
    story: String,
    lore: String,
}

/// Long texts that have words in common and no phrases.
fn story(id: u64) -> String {
    const WORDS: [&str; 11] =
        ["river", "stone ", "wandering", " über", "light", "and the ", "of", "自転車", "?", " morning", "\u{1F6B2}"];
    let step = |n: u64| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
    (0..12 + id % 90).map(|n| WORDS[step(id * 131 + n) % WORDS.len()]).collect()
}

impl Everything {
    const NAME: UniqueIndex<Self, (Option<i16>, String)> =
        Index::new("name", |record| (Some(record.small), &record.name));
    const LARGE: Index<Self, std::cmp::Reverse<i64>> = Index::new("large", |record| std::cmp::Reverse(record.large));

    fn new(id: u64) -> Self {
        let odd = id % 2 == 1;
        Self {
            id,
            flag: odd,
            tiny: id as i8,
            byte: (id * 3) as u8,
            small: -(id as i16),
            large: i64::MIN + id as i64 * 1_000_003,
            unsigned: id.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            letter: if odd { 'é' } else { 'e' },
            name: format!("Nº {id:05} of {}", ["many", "few"][id as usize % 2]),
            code: [id as u8, 0, 255],
            colour: if odd { Colour::Red } else { Colour::Green },
            position: Position { x: id as f32 / 3.0, y: -(id as f64) },
            maybe: odd.then(|| "x".repeat(id as usize % 7)),
            list: (0..id as i32 % 5).collect(),
            map: (0..id % 3).map(|n| (format!("key {n}"), n as u8)).collect(),
            contact: match id % 3 {
                0 => Contact::None,
                1 => Contact::Phone(id),
                _ => Contact::Address { street: "Am Weg".to_owned(), number: id as u16 },
            },
            nothing: (),
            pair: (id as u16, id.to_string()),
            story: story(id),
            lore: story(id + 5_000),
        }
    }
}

/// A view that borrows some of it, under the same order of fields.
#[derive(Clone, Debug, Deserialize)]
struct EverythingView<'a> {
    id: u64,
    flag: bool,
    tiny: i8,
    byte: u8,
    small: i16,
    large: i64,
    unsigned: u64,
    letter: char,
    name: String,
    code: [u8; 3],
    colour: Colour,
    position: Position,
    maybe: Option<&'a str>,
    list: Vec<i32>,
    map: BTreeMap<&'a str, u8>,
    contact: Contact,
    nothing: (),
    pair: (u16, Text<'a>),
    story: &'a str,
    lore: Text<'a>,
}

impl EverythingView<'_> {
    fn to_record(&self) -> Everything {
        let view = self.clone();
        Everything {
            id: view.id,
            flag: view.flag,
            tiny: view.tiny,
            byte: view.byte,
            small: view.small,
            large: view.large,
            unsigned: view.unsigned,
            letter: view.letter,
            name: view.name,
            code: view.code,
            colour: view.colour,
            position: view.position,
            maybe: view.maybe.map(str::to_owned),
            list: view.list,
            map: view.map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            contact: view.contact,
            nothing: view.nothing,
            pair: (view.pair.0, view.pair.1.to_string()),
            story: view.story.to_owned(),
            lore: view.lore.to_string(),
        }
    }
}

impl Record for Everything {
    type Id = u64;
    type View<'a> = EverythingView<'a>;

    const COLLECTION: &'static str = "everything";
    const VERSION: u8 = 3;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::NAME, &Self::LARGE];

    fn view(&self) -> EverythingView<'_> {
        let record = self.clone();
        EverythingView {
            id: record.id,
            flag: record.flag,
            tiny: record.tiny,
            byte: record.byte,
            small: record.small,
            large: record.large,
            unsigned: record.unsigned,
            letter: record.letter,
            name: record.name,
            code: record.code,
            colour: record.colour,
            position: record.position,
            maybe: self.maybe.as_deref(),
            list: record.list,
            map: self.map.iter().map(|(key, value)| (key.as_str(), *value)).collect(),
            contact: record.contact,
            nothing: record.nothing,
            pair: (record.pair.0, self.pair.1.as_str().into()),
            story: &self.story,
            lore: self.lore.as_str().into(),
        }
    }

    fn id(view: &EverythingView<'_>) -> u64 {
        view.id
    }
}

fn opened(dir: &tempfile::TempDir) -> (Arc<Database>, Collection<Everything, Database>) {
    let database = Arc::new(Database::open(dir, Options::default()).expect("it opens"));
    (Arc::clone(&database), Collection::open(database).expect("the collection opens"))
}

fn assert_holds(records: &Collection<Everything, Database>, expected: &BTreeMap<u64, Everything>) {
    for (id, record) in expected {
        assert_eq!(records.get(*id).expect("it reads").as_ref(), Some(record));
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is one for each lifetime of a view")]
        let viewed = records.get_with(*id, |view| view.to_record()).expect("it reads");
        assert_eq!(viewed.as_ref(), Some(record));
        let is_lore = |view: &EverythingView<'_>| {
            let (text, lore) = (view.lore, record.lore.as_str());
            text == lore && text != record.story.as_str() && text.len() == lore.len() && !text.is_empty()
        };
        assert_eq!(records.get_with(*id, is_lore).expect("it reads"), Some(true));
        let found = records.find(Everything::NAME, (Some(record.small), &record.name)).expect("it reads");
        assert_eq!(found.as_ref(), Some(record));
    }
    assert_eq!(records.get(1_000_000).expect("it reads"), None);
    let mut by_large: Vec<_> = expected.values().cloned().collect();
    assert_eq!(records.all().records().expect("it reads"), by_large);
    by_large.sort_by_key(|record| std::cmp::Reverse(record.large));
    assert_eq!(records.scan(Everything::LARGE).records().expect("it reads"), by_large);
    assert_eq!(records.check().expect("it can be checked").problems, Vec::<String>::new());
}

#[test]
fn records_read_from_columns_are_what_was_stored() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (database, records) = opened(&dir);
    let mut expected = BTreeMap::new();
    for id in 1..=700 {
        let record = Everything::new(id);
        records.insert(&record).expect("a new record");
        expected.insert(id, record);
    }
    assert_holds(&records, &expected);
    database.settle().expect("it settles");
    assert_holds(&records, &expected);
    for id in (1..=700).step_by(3) {
        let changed = records.modify(id, |record| record.large += 5).expect("it reads").expect("it is there");
        expected.insert(id, changed);
        if id % 2 == 0 {
            assert!(records.delete(id).expect("it reads"));
            expected.remove(&id);
        }
    }
    assert_holds(&records, &expected);
    database.settle().expect("it settles");
    assert_holds(&records, &expected);
    database.close().expect("it closes");
    drop((database, records));
    assert_holds(&opened(&dir).1, &expected);
}

#[derive(Debug, Serialize, Deserialize, Schema, PartialEq)]
struct Before {
    id: u64,
    amount: u32,
}

#[derive(Debug, Serialize, Deserialize, Schema, PartialEq)]
struct After {
    id: u64,
    amount: i32,
}

macro_rules! counter {
    ($type:ident, $version:expr) => {
        impl Record for $type {
            type Id = u64;
            type View<'a> = $type;
            const COLLECTION: &'static str = "counters";
            const VERSION: u8 = $version;
            const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[];

            fn view(&self) -> $type {
                $type { id: self.id, amount: self.amount }
            }

            fn id(view: &$type) -> u64 {
                view.id
            }
        }
    };
}

counter!(Before, 1);
counter!(After, 1);

/// Columns say what they hold; a type that expects other columns reads the bytes, and finds in them what it always did.
#[test]
fn a_type_that_expects_other_columns_reads_the_bytes() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let database = Arc::new(Database::open(&dir, Options::default()).expect("it opens"));
    let before: Collection<Before, _> = Collection::open(Arc::clone(&database)).expect("it opens");
    before.insert(&Before { id: 1, amount: 6 }).expect("a new record");
    database.settle().expect("it settles");
    assert_eq!(before.get(1).expect("it reads"), Some(Before { id: 1, amount: 6 }));
    let after: Collection<After, _> = Collection::open(database).expect("it opens");
    // 6 as a plain varint is 3 as a folded one.
    assert_eq!(after.get(1).expect("it reads"), Some(After { id: 1, amount: 3 }));
}

macro_rules! letter {
    ($type:ident { $($field:ident: $of:ty),* }) => {
        #[derive(Clone, Debug, Serialize, Deserialize, Schema, PartialEq)]
        struct $type {
            id: u64,
            $($field: $of),*
        }

        impl Record for $type {
            type Id = u64;
            type View<'a> = $type;
            const COLLECTION: &'static str = "letters";
            const VERSION: u8 = 1;
            const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[];

            fn view(&self) -> $type {
                self.clone()
            }

            fn id(view: &$type) -> u64 {
                view.id
            }
        }
    };
}

letter!(Letter { code: [u8; 2], amount: u32, page: Option<u16> });
letter!(ShortCode { code: u8, amount: u32, page: Option<u16> });
letter!(ShortPage { code: [u8; 2], amount: u32, page: Option<u8> });

/// A type that left a part of a column was given what came behind it, where the bytes do not decode.
#[test]
fn a_type_that_takes_less_than_a_column_reads_the_bytes() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let database = Arc::new(Database::open(&dir, Options::default()).expect("it opens"));
    let letters: Collection<Letter, _> = Collection::open(Arc::clone(&database)).expect("it opens");
    let letter = Letter { id: 1, code: *b"DE", amount: 6, page: Some(0x80) };
    letters.insert(&letter).expect("a new record");
    for settled in [false, true] {
        if settled {
            database.settle().expect("it settles");
        }
        let short_codes: Collection<ShortCode, _> = Collection::open(Arc::clone(&database)).expect("it opens");
        short_codes.get(1).expect_err("a byte too many for this type");
        let short_pages: Collection<ShortPage, _> = Collection::open(Arc::clone(&database)).expect("it opens");
        short_pages.get(1).expect_err("a byte too many for this type");
        let letters: Collection<Letter, _> = Collection::open(Arc::clone(&database)).expect("it opens");
        assert_eq!(letters.get(1).expect("it reads"), Some(letter.clone()));
    }
}

letter!(Deep { parts: Option<Vec<Option<Vec<Option<Vec<u8>>>>>> });

/// A layout of fields deeper in one another than a manifest could hold kept the database from opening again.
#[test]
fn a_record_of_lists_of_lists_is_there_after_a_reopen() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let deep = Deep { id: 1, parts: Some(vec![None, Some(vec![Some(vec![7])])]) };
    {
        let database = Arc::new(Database::open(&dir, Options::default()).expect("it opens"));
        let collection: Collection<Deep, _> = Collection::open(Arc::clone(&database)).expect("it opens");
        collection.insert(&deep).expect("a new record");
        database.settle().expect("it settles");
        database.close().expect("it closes");
    }
    let database = Arc::new(Database::open(&dir, Options::default()).expect("it opens again"));
    let collection: Collection<Deep, _> = Collection::open(database).expect("it opens");
    assert_eq!(collection.get(1).expect("it reads"), Some(deep));
}
