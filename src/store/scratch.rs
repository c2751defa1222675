//! Buffers of one call on a collection, kept for the thread's next call so that a steady state allocates nothing.

use std::cell::Cell;

use bumpalo::Bump;

use super::byte_list::ByteList;
use super::codec;
use super::error::Result;
use super::index;
use super::keys::Key;
use super::kv::{Batch, Stored};
use super::record::{IdRef, Record};

/// Memory a thread keeps for its next call, in bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static KEPT: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// What a call works out before it touches the store.
#[derive(Default)]
pub(super) struct Scratch {
    /// Encoded id of the record in question.
    pub(super) id: Vec<u8>,
    /// Encoded key of a unique index to look up.
    pub(super) key: Vec<u8>,
    /// Encoded record to store. Empty where there is none.
    pub(super) value: Vec<u8>,
    /// Index entries of the record as it is stored. None where there is none.
    pub(super) old: ByteList,
    /// Index entries of the record as it will be.
    pub(super) new: ByteList,
    /// The change.
    pub(super) batch: Batch,
    /// Texts of views, where they are put together.
    pub(super) texts: Bump,
    /// Encoded ids found in an index.
    pub(super) ids: ByteList,
}

/// Lends a clean scratch to `work`. A call inside `work` gets another one.
pub(super) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = KEPT.take().unwrap_or_default();
    let result = work(&mut scratch);
    if scratch.value.capacity() + scratch.texts.allocated_bytes() <= KEPT_BYTES_MAX {
        scratch.clear();
        KEPT.set(Some(scratch));
    }
    result
}

impl Scratch {
    pub(super) fn set_id<R: Record>(&mut self, id: IdRef<'_, R>) {
        self.id.clear();
        R::Id::encode(id, &mut self.id);
    }

    /// Validates and encodes what is to be stored: its id, its bytes and its index entries.
    pub(super) fn set_new<R: Record>(&mut self, record: &R) -> Result<()> {
        let view = record.view();
        R::validate(&view)?;
        self.set_id::<R>(R::id(&view));
        self.value.clear();
        codec::encode(record, &mut self.value)?;
        index::write_entries::<R>(&view, &mut self.new);
        debug_assert!(self.reads_back::<R>(), "the View of {} does not read what the record writes", R::COLLECTION);
        Ok(())
    }

    /// Whether a view of the encoded record has the entries of the record.
    fn reads_back<R: Record>(&self) -> bool {
        let mut entries = ByteList::new();
        codec::view::<R>(&self.id, Stored::Bytes(&self.value), &Bump::new()).is_ok_and(|view| {
            index::write_entries::<R>(&view, &mut entries);
            entries == self.new
        })
    }

    fn clear(&mut self) {
        self.id.clear();
        self.key.clear();
        self.value.clear();
        self.old.clear();
        self.new.clear();
        self.batch.clear();
        self.texts.reset();
        self.ids.clear();
    }
}
