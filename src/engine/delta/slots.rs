//! The versions in one node, in order, and how to find one among them.
//!
//! Beside each version a node keeps the *head* of its key: 16 bytes as one integer, zero-padded. Heads order as keys
//! do wherever they differ, so a search reads one array of integers and goes to the arena only when long keys share a
//! head. When heads are equal and one key ends in its head, the shorter key is the smaller: the other goes on with zero
//! bytes or beyond the head.
//!
//! A node whose heads are all the same would be searched with a wait for memory at every comparison. So a split, which
//! has every key at hand, lets heads begin after the bytes that all keys of the node begin with.

use std::cmp::Ordering;

use super::arena::{Arena, Place};

/// Versions in a full node.
pub(super) const NODE_WIDTH: usize = 64;
const HEAD_BYTES: usize = 16;

/// A version to look for: its place in the order, whether or not it is there.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    head: u128,
    key: &'a [u8],
    sequence: u64,
}

impl<'a> Target<'a> {
    pub(super) fn new(key: &'a [u8], sequence: u64) -> Self {
        Self { head: head(key), key, sequence }
    }

    /// The head of its key.
    pub(super) fn head(&self) -> u128 {
        self.head
    }
}

fn head(key: &[u8]) -> u128 {
    let mut bytes = [0; HEAD_BYTES];
    let len = key.len().min(HEAD_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(bytes)
}

/// A version as a node holds it, beside its head.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) sequence: u64,
    pub(super) place: Place,
}

impl Slot {
    /// The order of its key and `key`, given that they are equal, once padded, in their first `equal` bytes.
    fn key_order_beyond(&self, equal: usize, key: &[u8], arena: &Arena) -> Ordering {
        let own_len = self.place.key_len();
        if own_len <= equal || key.len() <= equal {
            return own_len.cmp(&key.len());
        }
        arena.key(self.place)[equal..].cmp(&key[equal..])
    }
}

#[derive(Default)]
pub(super) struct Slots {
    /// Bytes that all keys begin with and heads leave out.
    skipped: usize,
    heads: Vec<u128>,
    versions: Vec<Slot>,
}

impl Slots {
    /// Memory of one with room for a full node.
    pub(super) const FULL_BYTES: usize = NODE_WIDTH * (size_of::<u128>() + size_of::<Slot>());

    pub(super) fn with_room() -> Self {
        Self { skipped: 0, heads: Vec::with_capacity(NODE_WIDTH), versions: Vec::with_capacity(NODE_WIDTH) }
    }

    pub(super) fn len(&self) -> usize {
        self.versions.len()
    }

    pub(super) fn byte_size(&self) -> usize {
        self.heads.capacity() * size_of::<u128>() + self.versions.capacity() * size_of::<Slot>()
    }

    pub(super) fn get(&self, index: usize) -> Slot {
        self.versions[index]
    }

    /// Replaces a version by another of the same key and sequence number.
    pub(super) fn replace(&mut self, index: usize, slot: Slot) {
        self.versions[index] = slot;
    }

    /// Replaces the first version by one that sorts before it, or is the same.
    pub(super) fn lower_first(&mut self, slot: Slot, arena: &Arena) {
        let key = arena.key(slot.place);
        self.make_heads_fit(key, arena);
        self.heads[0] = head(&key[self.skipped..]);
        self.versions[0] = slot;
    }

    /// How many of them sort before `target`.
    pub(super) fn rank(&self, target: &Target, arena: &Arena) -> usize {
        let head = match self.head_of(target, arena) {
            Ok(head) => head,
            Err(Ordering::Less) => return 0,
            Err(_) => return self.len(),
        };
        let smaller = self.heads.partition_point(|&other| other < head);
        if self.heads.get(smaller) != Some(&head) {
            return smaller;
        }
        let equal = self.heads[smaller..].partition_point(|&other| other == head);
        let is_before = |slot: &Slot| {
            let by_key = slot.key_order_beyond(self.skipped + HEAD_BYTES, target.key, arena);
            by_key.then(target.sequence.cmp(&slot.sequence)).is_lt()
        };
        smaller + self.versions[smaller..smaller + equal].partition_point(is_before)
    }

    /// How the version at `index` sorts beside `target`.
    pub(super) fn order(&self, index: usize, target: &Target, arena: &Arena) -> Ordering {
        self.key_order(index, target, arena).then(target.sequence.cmp(&self.versions[index].sequence))
    }

    /// How the key of the version at `index` sorts beside the key of `target`.
    pub(super) fn key_order(&self, index: usize, target: &Target, arena: &Arena) -> Ordering {
        let slot = &self.versions[index];
        if self.skipped > 0 {
            return arena.key(slot.place).cmp(target.key);
        }
        self.heads[index].cmp(&target.head).then_with(|| slot.key_order_beyond(HEAD_BYTES, target.key, arena))
    }

    /// Inserts a version. Takes a split if the node is full: then the part from `cut` on is returned, and a version
    /// that goes where the cut is joins the left part unless that is full.
    pub(super) fn insert_or_split(&mut self, at: usize, cut: usize, slot: Slot, arena: &Arena) -> Option<Self> {
        let key = arena.key(slot.place);
        self.make_heads_fit(key, arena);
        let heads = insert_or_split(&mut self.heads, at, cut, head(&key[self.skipped..]));
        let versions = insert_or_split(&mut self.versions, at, cut, slot);
        let mut right = Self { skipped: self.skipped, heads: heads?, versions: versions? };
        self.make_heads_differ(arena);
        right.make_heads_differ(arena);
        Some(right)
    }

    /// The head of `target` as heads are made here, or how its first bytes sort beside those that are left out.
    fn head_of(&self, target: &Target, arena: &Arena) -> Result<u128, Ordering> {
        if self.skipped == 0 {
            return Ok(target.head);
        }
        let common = &arena.key(self.versions[0].place)[..self.skipped];
        match target.key[..self.skipped.min(target.key.len())].cmp(common) {
            Ordering::Equal => Ok(head(&target.key[self.skipped..])),
            unequal => Err(unequal),
        }
    }

    fn make_heads_fit(&mut self, key: &[u8], arena: &Arena) {
        if self.skipped > 0 {
            let common = common_len(arena.key(self.versions[0].place), key);
            if common < self.skipped {
                self.skip(common, arena);
            }
        }
    }

    fn make_heads_differ(&mut self, arena: &Arena) {
        let (Some(first), Some(last)) = (self.versions.first(), self.versions.last()) else { return };
        if self.heads.first() != self.heads.last() {
            return;
        }
        let (first, last) = (arena.key(first.place), arena.key(last.place));
        let common = common_len(first, last);
        if first != last && common >= self.skipped + HEAD_BYTES {
            self.skip(common, arena);
        }
    }

    fn skip(&mut self, len: usize, arena: &Arena) {
        self.skipped = len;
        for (own, slot) in self.heads.iter_mut().zip(&self.versions) {
            *own = head(&arena.key(slot.place)[len..]);
        }
    }
}

fn common_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// [`Slots::insert_or_split`] for one array of a node; the right part has room for a full node.
pub(super) fn insert_or_split<T>(items: &mut Vec<T>, at: usize, cut: usize, item: T) -> Option<Vec<T>> {
    if items.len() < NODE_WIDTH {
        items.insert(at, item);
        return None;
    }
    let mut right = Vec::with_capacity(NODE_WIDTH);
    right.extend(items.drain(cut..));
    if at <= cut && items.len() < NODE_WIDTH {
        items.insert(at, item);
    } else {
        right.insert(at - cut, item);
    }
    Some(right)
}
