//! Indexes that are declared later than the first record.

use std::sync::Arc;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use super::assert_sound;
use super::memory_kv::MemoryKv;
use crate::store::{AnyIndex, Collection, Error, Index, Record, UniqueIndex};

/// The same notes, as programs declare them that differ in their indexes.
macro_rules! notes {
    ($($name:ident: $($index:ident)*;)*) => {$(
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
        struct $name {
            id: u64,
            tag: u64,
        }

        impl $name {
            #[allow(dead_code, reason = "not every one of them is declared")]
            const TAG: Index<Self, u64> = Index::new("tag", |note| note.tag);
            #[allow(dead_code, reason = "not every one of them is declared")]
            const UNIQUE_TAG: UniqueIndex<Self, u64> = Index::new("unique_tag", |note| note.tag);
        }

        impl Record for $name {
            type Id = u64;
            type View<'a> = Self;
            const COLLECTION: &'static str = "notes";
            const VERSION: u8 = 1;
            const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[$(&Self::$index),*];

            fn view(&self) -> Self {
                self.clone()
            }

            fn id(note: &Self) -> u64 {
                note.id
            }
        }
    )*};
}

notes! {
    Bare: ;
    Tagged: TAG;
    Unique: TAG UNIQUE_TAG;
}

fn open<R: Record>(kv: &Arc<MemoryKv>) -> Collection<R, MemoryKv> {
    Collection::open(Arc::clone(kv)).expect("opens")
}

/// An index that was declared after the first record used to be empty for ever: a find found nothing, and a unique key
/// could be taken twice.
#[test]
fn an_index_that_is_declared_later_is_built_from_the_records() {
    let kv = Arc::new(MemoryKv::default());
    let bare = open::<Bare>(&kv);
    for id in 0..3000 {
        bare.insert(&Bare { id, tag: id / 2 }).expect("inserts");
    }
    let tagged = open::<Tagged>(&kv);
    assert_sound(&tagged);
    assert_eq!(tagged.scan(Tagged::TAG).equals(1499).ids().expect("scans"), [2998, 2999]);
}

/// An index that was left out for a while used to hold what it held then.
#[test]
fn an_index_that_was_left_out_for_a_while_is_built_anew() {
    let kv = Arc::new(MemoryKv::default());
    let tagged = open::<Tagged>(&kv);
    for id in 0..10 {
        tagged.insert(&Tagged { id, tag: 7 }).expect("inserts");
    }
    let bare = open::<Bare>(&kv);
    bare.update(&Bare { id: 3, tag: 8 }).expect("updates");
    bare.delete(4).expect("deletes");
    bare.insert(&Bare { id: 10, tag: 7 }).expect("inserts");
    let tagged = open::<Tagged>(&kv);
    assert_sound(&tagged);
    assert_eq!(tagged.scan(Tagged::TAG).equals(8).ids().expect("scans"), [3]);
}

#[test]
fn a_unique_index_over_records_that_share_a_key_is_refused_until_they_do_not() {
    for (first, second) in [(0, 1), (0, 2500)] {
        let kv = Arc::new(MemoryKv::default());
        let tagged = open::<Tagged>(&kv);
        for id in 0..3000 {
            tagged.insert(&Tagged { id, tag: if id == second { first } else { id } }).expect("inserts");
        }
        for _ in 0..2 {
            let refused = Collection::<Unique, _>::open(Arc::clone(&kv));
            let Err(Error::DuplicateKey { index: "unique_tag", key, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!(key, "0");
        }
        tagged.update(&Tagged { id: second, tag: second }).expect("updates");
        let unique = open::<Unique>(&kv);
        assert_sound(&unique);
        assert_eq!(unique.find(Unique::UNIQUE_TAG, second).expect("finds").map(|note| note.id), Some(second));
    }
}
