//! Blocks of columns against the plain lists they were made of, and against damage.

use proptest::prelude::*;

use super::texts::tests::prose;
use super::*;
use crate::engine::codec::put_length_prefixed;
use crate::engine::layout::{Field, Layout};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn packed(layout: &Layout, entries: &Entries) -> Option<Vec<u8>> {
    let mut builder = PackedBuilder::default();
    for (key, value) in entries {
        builder.push(key, value);
    }
    let mut raw = Vec::new();
    builder.write(&(0..entries.len()), layout, &mut raw).then_some(raw)
}

/// Everything the block says about every key there is, and about keys that are not there.
fn assert_answers(block: &Packed, entries: &Entries) {
    let (mut key, mut value, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    assert_eq!(block.len(), entries.len());
    for (row, (expected_key, expected_value)) in entries.iter().enumerate() {
        block.write_key(row, &mut key);
        block.write_value(row, &mut value);
        assert_eq!((&key, &value), (expected_key, expected_value));
        rest.clear();
        block.row(row).write_to(&mut rest);
        assert_eq!(&rest, expected_value);
        assert_eq!(block.find(expected_key), Ok(row));
        let mut probes = vec![[expected_key.as_slice(), b"\0"].concat(), [expected_key.as_slice(), b"9"].concat()];
        probes.extend((0..expected_key.len()).map(|cut| expected_key[..cut].to_vec()));
        probes.extend((0..expected_key.len()).flat_map(|at| {
            [1, 0xFF].map(|step: u8| {
                let mut probe = expected_key.clone();
                probe[at] = probe[at].wrapping_add(step);
                probe
            })
        }));
        for probe in probes {
            let expected = entries.partition_point(|(key, _)| *key < probe);
            assert_eq!(block.rank(&probe), expected, "{}", probe.escape_ascii());
            let is_there = entries.get(expected).is_some_and(|(key, _)| *key == probe);
            assert_eq!(block.find(&probe).is_ok(), is_there);
        }
    }
}

fn users() -> (Layout, Entries) {
    let layout = Layout {
        key: vec![Field::Terminated(0), Field::BigEndian(8)],
        value: vec![
            Field::ZigZag,
            Field::Prefixed,
            Field::BigEndian(2),
            Field::Varint,
            Field::LittleEndian(4),
            Field::Option(Box::new(Field::Varint)),
        ],
    };
    let entry = |n: u64| {
        let key = [format!("user{n:06}@example.com\0").as_bytes(), &(n * 3).to_be_bytes()].concat();
        let mut value = Vec::new();
        put_varint(&mut value, fold(-(n as i64) * 1000));
        let bio = format!("likes {} since {}", ["tea", "coffee"][n as usize % 2], 1990 + n % 30);
        put_varint(&mut value, bio.len() as u64);
        value.extend_from_slice(bio.as_bytes());
        value.extend_from_slice([b"DE", b"FR", b"JP"][n as usize % 3]);
        put_varint(&mut value, n.pow(5));
        value.extend_from_slice(&(n as f32).to_le_bytes());
        value.extend_from_slice(if n.is_multiple_of(7) { &[0] } else { &[1, 5] });
        (key, value)
    };
    (layout, (100..300).map(entry).collect())
}

#[test]
fn a_block_of_records_answers_as_the_list_does_and_is_small() {
    let (layout, entries) = users();
    let raw = packed(&layout, &entries).expect("the entries follow the layout");
    let bytes: usize = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!(raw.len() * 5 < bytes, "{} of {bytes}", raw.len());
    assert_answers(&Packed::decode(&raw).expect("sound"), &entries);
}

#[test]
fn entries_that_do_not_follow_the_layout_are_not_packed() {
    let (layout, entries) = users();
    let spoilt = |spoil: fn(&mut Entries)| {
        let mut entries = entries.clone();
        spoil(&mut entries);
        packed(&layout, &entries)
    };
    assert!(spoilt(|entries| entries[7].1.push(0)).is_none(), "a byte too many");
    assert!(spoilt(|entries| entries[7].1.truncate(3)).is_none(), "too few");
    assert!(spoilt(|entries| entries[7].0.truncate(3)).is_none(), "a key that breaks off");
    // 0 as a varint of two bytes is read, and written with one.
    assert!(packed(&Layout { key: vec![Field::Varint], value: vec![] }, &vec![(vec![0x80, 0], vec![])]).is_none());
    assert!(packed(&Layout { key: vec![Field::Varint], value: vec![] }, &vec![(vec![0], vec![])]).is_some());
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused_or_reads_as_a_sound_block() {
    let (layout, mut entries) = users();
    entries.truncate(40);
    assert_damage_is_harmless(&packed(&layout, &entries).expect("the entries follow the layout"), 1);
}

/// The same of texts in codes, which are long; not every bit of them, but each place in a code.
#[test]
fn flipped_bits_and_cuts_of_texts_in_codes_are_refused_or_read_as_a_sound_block() {
    let layout = Layout { key: vec![Field::BigEndian(2)], value: vec![Field::Rest] };
    let entry = |n: u16| (n.to_be_bytes().to_vec(), prose(n.into(), 100).into_bytes());
    let entries: Entries = (0..32).map(entry).collect();
    let raw = packed(&layout, &entries).expect("the entries follow the layout");
    assert!(raw.len() * 2 < entries.iter().map(|(_, value)| value.len()).sum(), "texts are in codes");
    assert_answers(&Packed::decode(&raw).expect("sound"), &entries);
    assert_damage_is_harmless(&raw, 13);
}

fn assert_damage_is_harmless(raw: &[u8], step: usize) {
    let read = |bytes: &[u8]| {
        if let Ok(block) = Packed::decode(bytes) {
            let mut out = Vec::new();
            for row in 0..block.len() {
                block.write_key(row, &mut out);
                assert_eq!(block.find(&out), Ok(row));
                block.write_value(row, &mut out);
            }
        }
    };
    // The heads are at the front.
    for bit in (0..raw.len().min(400) * 8).chain((0..raw.len() * 8).step_by(step)) {
        let mut damaged = raw.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        read(&damaged);
    }
    for cut in (0..raw.len()).step_by(step) {
        assert!(Packed::decode(&raw[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_number_that_is_too_large_for_its_width_is_refused() {
    let entries = vec![(vec![7], vec![])];
    let mut raw = packed(&Layout { key: vec![Field::BigEndian(1)], value: vec![] }, &entries).expect("it follows");
    assert_eq!(raw, [1, 1, 1, 1, 1, 0, 7, 0]);
    raw.splice(6..7, [0x80, 2]);
    assert!(Packed::decode(&raw).is_err());
}

/// A few bytes in a file asked for gigabytes of copies: a scan puts a long phrase together again for every row.
#[test]
fn rows_that_are_longer_together_than_a_block_may_be_are_refused() {
    let phrase = vec![b'a'; RAW_BYTES_MAX / 100];
    let block = |rows: u64| {
        let mut raw = Vec::new();
        for number in [rows, 1, 2, 1, 8, 0, 0, fold(1 << 16), 6, 1, 1] {
            put_varint(&mut raw, number);
        }
        put_length_prefixed(&mut raw, &phrase);
        raw.extend_from_slice(&[0; 5]);
        Packed::decode(&raw)
    };
    assert_eq!(block(90).map(|block| block.len()), Ok(90));
    assert!(block(101).is_err());
}

/// Keys in decimal, composite and of other forms, against probes of every kind, at the sizes where a search changes.
#[test]
fn blocks_of_few_and_of_most_rows_find_every_key() {
    type Case = (Vec<Field>, fn(u64) -> Vec<u8>);
    let number = |n: u64| n.to_be_bytes().to_vec();
    let cases: [Case; 8] = [
        (vec![Field::Rest], |n| format!("id{n:04}").into_bytes()),
        (vec![Field::Rest], |n| format!("{:019}", n * 19_531_250_000_000_000).into_bytes()),
        (vec![Field::Rest], |n| format!("{:03}-{}", n / 2, n % 2).into_bytes()),
        (vec![Field::Rest], |n| format!("{}: many of one head{n:04}", (b'a' + (n / 100) as u8) as char).into_bytes()),
        (vec![Field::Rest], |n| format!("{:04x}{}", n * 97, "xyz".repeat(n as usize % 5)).into_bytes()),
        (vec![Field::BigEndian(1), Field::BigEndian(7)], |n| (n << 48).to_be_bytes().to_vec()),
        (vec![Field::BigEndian(4), Field::BigEndian(8)], |n| {
            [&[0, 0, 0, (n / 100) as u8][..], &n.to_be_bytes()].concat()
        }),
        (vec![Field::BigEndian(8)], |n| (u64::MAX - (ROWS_MAX as u64 - 1) + n).to_be_bytes().to_vec()),
    ];
    for (key, entry) in cases {
        for rows in [1, 2, 3, 255, 256, 257, ROWS_MAX as u64] {
            let entries: Entries = (0..rows).map(|n| (entry(n), number(n))).collect();
            let layout = Layout { key: key.clone(), value: vec![Field::Rest] };
            let raw = packed(&layout, &entries).expect("the entries follow the layout");
            assert_answers(&Packed::decode(&raw).expect("sound"), &entries);
        }
    }
}

#[test]
fn as_many_columns_as_there_may_be_come_back() {
    for columns in [1, COLUMNS_MAX - 1] {
        let layout = Layout { key: vec![Field::BigEndian(2)], value: vec![Field::BigEndian(1); columns] };
        let value = |n: u16| (0..columns).map(|column| (n as usize * column * 7 % 251) as u8).collect();
        let entries: Entries = (0..200_u16).map(|n| (n.to_be_bytes().to_vec(), value(n))).collect();
        let block = Packed::decode(&packed(&layout, &entries).expect("it follows")).expect("sound");
        assert_answers(&block, &entries);
        assert_eq!(block.row(7).big_endian(columns - 1), Some(((7 * (columns - 1) * 7 % 251) as u64, 1)));
        assert_eq!(block.row(7).big_endian(columns), None);
    }
}

fn field() -> impl Strategy<Value = (Field, BoxedStrategy<Vec<u8>>)> {
    let number = || prop_oneof![any::<u64>(), 0..300_u64];
    let varint = |n: u64| {
        let mut out = Vec::new();
        put_varint(&mut out, n);
        out
    };
    let text = || prop_oneof!["[a-b]{0,3}[0-9]{0,4}", "id-0[0-9]{3}x", "[é0]{0,3}"];
    let prefixed = move |text: String| [varint(text.len() as u64), text.into_bytes()].concat();
    prop_oneof![
        (1..=8_u8).prop_map(move |width| {
            let bytes = number().prop_map(move |n| n.to_be_bytes()[8 - usize::from(width)..].to_vec());
            (Field::BigEndian(width), bytes.boxed())
        }),
        Just((Field::LittleEndian(3), proptest::collection::vec(any::<u8>(), 3).boxed())),
        Just((Field::Varint, number().prop_map(varint).boxed())),
        Just((Field::ZigZag, number().prop_map(varint).boxed())),
        Just((Field::Prefixed, text().prop_map(prefixed).boxed())),
        Just((Field::Terminated(0), text().prop_map(|text| [text.as_bytes(), b"\0"].concat()).boxed())),
        Just((
            Field::Sequence(Box::new(Field::Prefixed)),
            text().prop_map(move |t| [vec![1], prefixed(t)].concat()).boxed()
        )),
    ]
}

fn tree() -> impl Strategy<Value = (Layout, Entries)> {
    let side = |min| proptest::collection::vec(field(), min..4);
    (side(1), side(0)).prop_flat_map(|(keys, values)| {
        let (key, key_bytes): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let (value, value_bytes): (Vec<_>, Vec<_>) = values.into_iter().unzip();
        let entry = (key_bytes.prop_map(|parts| parts.concat()), value_bytes.prop_map(|parts| parts.concat()));
        let entries = proptest::collection::btree_map(entry.0, entry.1, 1..ROWS_MAX);
        (Just(Layout { key, value }), entries.prop_map(|entries| entries.into_iter().collect()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_entries_of_any_layout_come_back((layout, entries) in tree()) {
        if let Some(raw) = packed(&layout, &entries) {
            assert_answers(&Packed::decode(&raw).expect("what was written is sound"), &entries);
        }
    }

    #[test]
    fn bytes_that_are_no_block_are_refused_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Packed::decode(&bytes);
    }
}
