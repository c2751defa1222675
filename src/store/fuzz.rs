//! Any bytes as records and as keys of indexes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Debug;

use bumpalo::Bump;
use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use super::codec::{encode, record, view};
use super::keys::{self, Key};
use super::{AnyIndex, Country, Profile, Record, Result, Status, Text, layout};
use crate::engine::Stored;
use crate::engine::disk::sim::Random;
use crate::engine::fuzz::columns;

/// A record with a field of every kind.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Everything {
    id: u64,
    flag: bool,
    tiny: i8,
    small: i16,
    large: i64,
    letter: char,
    name: String,
    code: [u8; 3],
    status: Status,
    position: (f32, f64),
    maybe: Option<String>,
    list: Vec<i32>,
    map: BTreeMap<String, u8>,
    contact: Contact,
    nothing: (),
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
enum Contact {
    None,
    Phone(u64),
    Address { street: String, number: u16 },
}

/// The same, borrowed as far as it can be.
#[derive(Serialize, Deserialize)]
struct EverythingView<'a> {
    id: u64,
    flag: bool,
    tiny: i8,
    small: i16,
    large: i64,
    letter: char,
    name: &'a str,
    code: [u8; 3],
    status: Status,
    position: (f32, f64),
    maybe: Option<&'a str>,
    list: Vec<i32>,
    map: BTreeMap<&'a str, u8>,
    contact: Contact,
    nothing: (),
}

impl Record for Everything {
    type Id = u64;
    type View<'a> = EverythingView<'a>;

    const COLLECTION: &'static str = "everything";
    const VERSION: u8 = 3;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[];

    fn view(&self) -> EverythingView<'_> {
        let Self { id, flag, tiny, small, large, letter, code, status, position, nothing, .. } = *self;
        EverythingView {
            id,
            flag,
            tiny,
            small,
            large,
            letter,
            name: &self.name,
            code,
            status,
            position,
            maybe: self.maybe.as_deref(),
            list: self.list.clone(),
            map: self.map.iter().map(|(key, value)| (key.as_str(), *value)).collect(),
            contact: self.contact.clone(),
            nothing,
        }
    }

    fn id(view: &EverythingView<'_>) -> u64 {
        view.id
    }
}

/// What a view holds, as the record would be stored.
trait Viewed: Record {
    fn stored(view: &Self::View<'_>) -> Vec<u8>;
}

impl Viewed for Everything {
    fn stored(view: &EverythingView<'_>) -> Vec<u8> {
        let mut out = vec![Self::VERSION];
        out.extend(postcard::to_stdvec(view).expect("a view has the fields of its record"));
        out
    }
}

impl Viewed for Profile {
    fn stored(view: &Self::View<'_>) -> Vec<u8> {
        let text = |text: &Text<'_>| text.as_str().map_or_else(|| text.to_string(), str::to_owned);
        assert_eq!(text(&view.bio).len(), view.bio.len());
        stored(&view.to_profile())
    }
}

fn stored<R: Record>(record: &R) -> Vec<u8> {
    let mut out = Vec::new();
    encode(record, &mut out).expect("what was read can be stored");
    out
}

pub(crate) fn run_records(input: &[u8]) {
    check_record::<Profile>(input);
    check_record::<Everything>(input);
}

/// Read whole and as a view, from its bytes and from columns, it is one record, or damage of one name.
fn check_record<R: Viewed>(bytes: &[u8]) {
    let id = keys_of(&7_u64);
    let Some(first) = read::<R>(&id, Stored::Bytes(bytes)) else { return };
    assert_eq!(read::<R>(&id, Stored::Bytes(&first)).as_ref(), Some(&first), "what was stored is read back");
    let entries: Vec<_> = (1..4_u64).map(|id| (keys_of(&id), first.clone())).collect();
    columns::read_as_rows(&layout::of_records::<R>(), &entries, |_, row| {
        assert_eq!(read::<R>(&id, row).as_ref(), Some(&first), "read from columns it is another record");
    });
}

/// The record, stored again; `None` for damage.
fn read<R: Viewed>(id: &[u8], bytes: Stored<'_>) -> Option<Vec<u8>> {
    let texts = Bump::new();
    let (owned, viewed): (Result<R>, Result<R::View<'_>>) = (record(id, bytes), view::<R>(id, bytes, &texts));
    match (owned, viewed) {
        (Ok(owned), Ok(viewed)) => {
            let stored = stored(&owned);
            assert_eq!(R::stored(&viewed), stored, "a view is not its record");
            Some(stored)
        }
        (Err(owned), Err(viewed)) => {
            assert_eq!(owned.to_string(), viewed.to_string());
            None
        }
        (owned, viewed) => panic!("owned: {:?}, viewed: {:?}", owned.err(), viewed.err()),
    }
}

fn keys_of<K: Key>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    K::encode(key.borrowed(), &mut out);
    out
}

pub(crate) fn record_seeds() -> Vec<Vec<u8>> {
    let profile = Profile {
        user_id: 7,
        email: "user7@example.com".to_owned(),
        country: Country::new("DE").expect("a country"),
        status: Status::Pending,
        created_at: 1_700_000_000_007,
        last_login: -5,
        reputation: 500,
        display_name: "User 007".to_owned(),
        bio: "Likes tea since 1990, é.".to_owned(),
    };
    let everything = |contact: Contact| Everything {
        id: 300,
        flag: true,
        tiny: -3,
        small: -300,
        large: i64::MIN,
        letter: 'é',
        name: "Nº 00300 of many".to_owned(),
        code: [1, 0, 255],
        status: Status::Active,
        position: (1.5, -0.0),
        maybe: Some("maybe".to_owned()),
        list: vec![1, -2, 300],
        map: [("key 1".to_owned(), 1), ("key 2".to_owned(), 2)].into(),
        contact,
        nothing: (),
    };
    let address = Contact::Address { street: "Am Weg".to_owned(), number: 300 };
    let mut seeds = vec![stored(&profile)];
    seeds.extend([Contact::None, Contact::Phone(1 << 40), address].map(|contact| stored(&everything(contact))));
    seeds
}

/// Any bytes as keys of many types, and as pairs of values to be made keys.
pub(crate) fn run_keys(input: &[u8]) {
    check_keys::<u64>(input, Random::next);
    check_keys::<i32>(input, |random| random.next() as i32);
    check_keys::<i64>(input, |random| random.next().cast_signed());
    check_keys::<[u8; 3]>(input, |random| [(); 3].map(|()| random.below(256) as u8));
    check_keys::<bool>(input, |random| random.once_in(2));
    check_keys::<Status>(input, |random| *random.pick(&Status::ALL));
    check_keys::<Country>(input, |random| {
        Country::try_from([(); 2].map(|()| b'A' + random.below(26) as u8)).expect("two capital letters")
    });
    check_keys::<String>(input, text);
    check_keys::<Vec<u8>>(input, bytes);
    check_keys::<Option<String>>(input, |random| random.once_in(2).then(|| text(random)));
    check_keys::<Reverse<String>>(input, |random| Reverse(text(random)));
    check_keys::<Reverse<i32>>(input, |random| Reverse(random.next() as i32));
    check_keys::<(String, u16)>(input, |random| (text(random), random.next() as u16));
    check_keys::<(Vec<u8>, Vec<u8>, bool)>(input, |random| (bytes(random), bytes(random), random.once_in(2)));
    check_keys::<(Option<i64>, Reverse<(String, u8)>)>(input, |random| {
        let number = random.once_in(2).then(|| random.next().cast_signed());
        (number, Reverse((text(random), random.below(256) as u8)))
    });
    check_keys::<Reverse<Option<Reverse<Vec<u8>>>>>(input, |random| {
        Reverse(random.once_in(2).then(|| Reverse(bytes(random))))
    });
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let len = random.below(12);
    random.bytes(len)
}

fn text(random: &mut Random) -> String {
    String::from_utf8_lossy(&bytes(random)).into_owned()
}

/// Bytes that are a key are the only ones that are it. Values come back, sort as their keys do, and no key begins another.
fn check_keys<K: Key + Ord + Debug>(input: &[u8], draw: impl Fn(&mut Random) -> K) {
    if let Some(key) = keys::decode::<K>(input) {
        assert_eq!(keys_of(&key), input, "two encodings of one key");
    }
    let mut random = Random::of_bytes(input);
    let (one, other) = (draw(&mut random), draw(&mut random));
    let ordering = one.cmp(&other);
    let (one_bytes, other_bytes) = (keys_of(&one), keys_of(&other));
    assert_eq!(one_bytes.cmp(&other_bytes), ordering, "{one:?} and {other:?} sort otherwise than their keys");
    assert!(ordering.is_eq() || !other_bytes.starts_with(&one_bytes), "the key of {one:?} begins that of {other:?}");
    assert_eq!(keys::decode::<K>(&one_bytes), Some(one), "a key does not come back");
    assert!(K::WIDTH.is_none_or(|width| width == one_bytes.len()));
}

pub(crate) fn key_seeds() -> Vec<Vec<u8>> {
    let pair = ("a\0b\u{1}c".to_owned(), 7_u16);
    let nested = (Some(-5_i64), Reverse(("Ada".to_owned(), 9_u8)));
    vec![
        keys_of(&pair),
        keys_of(&nested),
        keys_of(&Reverse(Some(Reverse(vec![0_u8, 1, 2, 255])))),
        keys_of(&Country::new("DE").expect("a country")),
        keys_of(&u64::MAX),
        (0..40).collect(),
    ]
}
