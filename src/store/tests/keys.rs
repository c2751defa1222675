use std::cmp::Reverse;
use std::fmt::Debug;

use proptest::prelude::*;

use crate::store::keys::{self, Key, KeyPrefix, KeyReader};
use crate::store::{Country, Status};

fn encoded<K: Key>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    K::encode(key.borrowed(), &mut out);
    out
}

/// What a key promises, for any two values of its type.
fn check_pair<K: Key + Ord + Debug>(a: &K, b: &K) {
    let (a_bytes, b_bytes) = (encoded(a), encoded(b));
    assert_eq!(a_bytes.cmp(&b_bytes), a.cmp(b), "{a:?} and {b:?} sort as their bytes do");
    assert_eq!(a == b, b_bytes.starts_with(&a_bytes), "{a:?} begins {b:?} only if it is the same");
    assert!(K::WIDTH.is_none_or(|width| width == a_bytes.len()), "{a:?} has the promised width");
    let mut followed = a_bytes.clone();
    followed.extend_from_slice(&b_bytes);
    let mut reader = KeyReader::new(&followed);
    assert_eq!(K::decode(&mut reader).as_ref(), Some(a), "{a:?} ends itself");
    assert_eq!(reader.rest(), b_bytes);
    assert_eq!(keys::decode::<K>(&a_bytes).as_ref(), Some(a));
    for cut in 0..a_bytes.len() {
        assert!(keys::decode::<K>(&a_bytes[..cut]).is_none(), "{a:?} cut at {cut} is no key");
    }
}

macro_rules! key_properties {
    ($($name:ident: $type:ty = $strategy:expr;)*) => {
        proptest! {$(
            #[test]
            fn $name(a in $strategy, b in $strategy) {
                check_pair::<$type>(&a, &b);
                check_pair::<$type>(&a, &a);
            }
        )*}
    };
}

/// Text of the bytes that need care, and of few enough others to meet often.
fn text() -> impl Strategy<Value = String> {
    "[\u{0}\u{1}\u{2}ab\u{FF}]{0,4}"
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0x00, 0x01, 0x02, 0x61, 0xFE, 0xFF]), 0..5)
}

fn country() -> impl Strategy<Value = Country> {
    "[A-Z]{2}".prop_map(|code| Country::new(&code).expect("two capital letters"))
}

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL.to_vec())
}

key_properties! {
    u8_keys: u8 = any::<u8>();
    u16_keys: u16 = any::<u16>();
    u32_keys: u32 = any::<u32>();
    u64_keys: u64 = any::<u64>();
    i8_keys: i8 = any::<i8>();
    i16_keys: i16 = any::<i16>();
    i32_keys: i32 = any::<i32>();
    i64_keys: i64 = any::<i64>();
    bool_keys: bool = any::<bool>();
    text_keys: String = text();
    byte_keys: Vec<u8> = bytes();
    array_keys: [u8; 3] = any::<[u8; 3]>();
    country_keys: Country = country();
    status_keys: Status = status();
    option_keys: Option<i8> = any::<Option<i8>>();
    reverse_number_keys: Reverse<i32> = any::<i32>().prop_map(Reverse);
    reverse_text_keys: Reverse<String> = text().prop_map(Reverse);
    twice_reverse_keys: Reverse<(Reverse<Vec<u8>>, i8)> = (bytes(), any::<i8>()).prop_map(|(a, b)| Reverse((Reverse(a), b)));
    pair_keys: (Vec<u8>, Vec<u8>) = (bytes(), bytes());
    triple_keys: (String, Option<Reverse<String>>, bool) = (text(), prop::option::of(text().prop_map(Reverse)), any::<bool>());
    four_keys: (u8, String, Reverse<String>, i8) = (0..3_u8, text(), text().prop_map(Reverse), any::<i8>());
}

proptest! {
    #[test]
    fn a_decoder_never_panics_and_never_takes_what_it_would_not_write(bytes in bytes()) {
        fn check<K: Key>(bytes: &[u8]) {
            if let Some(key) = keys::decode::<K>(bytes) {
                assert_eq!(encoded(&key), bytes);
            }
        }
        check::<(String, bool)>(&bytes);
        check::<Vec<u8>>(&bytes);
        check::<Reverse<Option<Vec<u8>>>>(&bytes);
        check::<(Country, Status)>(&bytes);
        check::<Option<i16>>(&bytes);
    }
}

#[test]
fn components_do_not_leak_into_each_other() {
    let pair = |a: &str, b: &str| encoded(&(a.to_owned(), b.to_owned()));
    let keys = [pair("US", "A1"), pair("USA", "1"), pair("U", "SA1"), pair("", "USA1"), pair("USA1", "")];
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(i == j, b.starts_with(a));
        }
    }
}

#[test]
fn the_table_at_the_head_is_what_is_written() {
    assert_eq!(encoded(&0x0102_u16), [1, 2]);
    assert_eq!(encoded(&-1_i16), [0x7F, 0xFF]);
    assert_eq!(encoded(&0_i64), [0x80, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded(&"a".to_owned()), [0x61, 0]);
    assert_eq!(encoded(&"a\0".to_owned()), [0x61, 1, 1, 0]);
    assert_eq!(encoded(&"\u{1}b".to_owned()), [1, 2, 0x62, 0]);
    assert_eq!(encoded(&None::<bool>), [0]);
    assert_eq!(encoded(&Some(false)), [1, 0]);
    assert_eq!(encoded(&Reverse(1_i32)), [0x7F, 0xFF, 0xFF, 0xFE]);
    assert_eq!(encoded(&(Country::new("DE").expect("DE is a country"), Status::Deleted)), [b'D', b'E', 2]);
}

#[test]
fn leading_components_begin_the_whole_key() {
    type Whole = (String, u8, Reverse<i8>);
    let whole = encoded::<Whole>(&("de".to_owned(), 7, Reverse(-3)));
    let mut prefix = Vec::new();
    KeyPrefix::<Whole>::encode(("de",), &mut prefix);
    assert_eq!(prefix, whole[..3]);
    prefix.clear();
    KeyPrefix::<Whole>::encode(("de", 7), &mut prefix);
    assert_eq!(prefix, whole[..4]);
}

#[test]
fn a_person_reads_the_key_as_it_was_given() {
    assert_eq!(String::describe("ada@example.com"), "ada@example.com");
    assert_eq!(<(u64, Reverse<Option<String>>)>::describe((7, Reverse(Some("x")))), "(7, x)");
}
