//! The store over a map in memory: what it promises, with no engine to blame.

mod build;
mod changes;
mod damage;
mod keys;
pub(crate) mod memory_kv;
mod model;
pub(crate) mod records;
mod rows;
mod scans;
mod transactions;

use std::sync::Arc;

use super::{Collection, Record};
use memory_kv::MemoryKv;

fn open<R: Record>() -> Collection<R, MemoryKv> {
    Collection::open(Arc::new(MemoryKv::default())).expect("a map opens")
}

#[track_caller]
fn assert_sound<R: Record>(collection: &Collection<R, MemoryKv>) {
    let check = collection.check().expect("the check runs");
    assert_eq!(check.problems, Vec::<String>::new());
    let records = collection.count().expect("the records are counted");
    assert_eq!(check.checked, records * (1 + R::INDEXES.len() as u64));
}
