//! Reads a whole segment from the disk and checks what single reads cannot see: order from block to block, counts,
//! and that the filter knows every key.

use std::cmp::Reverse;

use super::block::Block;
use super::footer::{SegmentMeta, agree, show_key};
use super::frame::Flaw;
use super::{Contents, Filter, load_index};
use crate::engine::error::Result;

/// Checks the file anew; nothing that was read before is trusted.
pub(super) fn verify(contents: &Contents, meta: &SegmentMeta) -> Result<()> {
    let (fence, filter) = load_index(&contents.file, contents.identity, meta)?;
    let mut tally = Tally::new();
    for index in 0..fence.len() {
        let block = contents.read_block(&fence, index)?;
        let (offset, _) = fence.extent(index);
        tally.add(&block, filter.as_ref()).map_err(|flaw| contents.identity.damaged(offset, flaw))?;
    }
    tally.check(meta).map_err(|flaw| contents.identity.damaged(meta.file_bytes, flaw))
}

/// What was seen so far.
struct Tally {
    entries: u64,
    tombstones: u64,
    sequence_min: u64,
    sequence_max: u64,
    last: Option<(Vec<u8>, Reverse<u64>)>,
}

impl Tally {
    fn new() -> Self {
        Self { entries: 0, tombstones: 0, sequence_min: u64::MAX, sequence_max: 0, last: None }
    }

    fn add(&mut self, block: &Block, filter: Option<&Filter>) -> std::result::Result<(), Flaw> {
        let mut key = Vec::new();
        for index in 0..block.len() {
            let (sequence, value) = block.version(index);
            block.write_key(index, &mut key);
            self.follow(&key, sequence)?;
            if filter.is_some_and(|filter| !filter.may_contain(&key)) {
                return Err(Flaw::new("filter", format!("it knows {}", show_key(&key)), "it does not"));
            }
            self.entries += 1;
            self.tombstones += u64::from(value.is_none());
            self.sequence_min = self.sequence_min.min(sequence);
            self.sequence_max = self.sequence_max.max(sequence);
        }
        Ok(())
    }

    fn follow(&mut self, key: &[u8], sequence: u64) -> std::result::Result<(), Flaw> {
        let next = (key, Reverse(sequence));
        let (last, last_sequence) = self.last.get_or_insert_with(|| (Vec::new(), Reverse(u64::MAX)));
        if self.entries > 0 && (last.as_slice(), *last_sequence) >= next {
            let expected = format!("after {} at {}", show_key(last), last_sequence.0);
            return Err(Flaw::new("order of entries", expected, format!("{} at {sequence}", show_key(key))));
        }
        last.clear();
        last.extend_from_slice(key);
        *last_sequence = Reverse(sequence);
        Ok(())
    }

    fn check(&self, meta: &SegmentMeta) -> std::result::Result<(), Flaw> {
        agree("number of entries", meta.entries, self.entries)?;
        agree("number of tombstones", meta.tombstones, self.tombstones)?;
        agree("smallest sequence number", meta.sequence_min, self.sequence_min)?;
        agree("largest sequence number", meta.sequence_max, self.sequence_max)
    }
}
