//! A B+tree of versions that only grows, without a lock and without `unsafe`: nodes are numbers into vectors.
//!
//! Splits add the new node on the right, so leaf 0 stays the first. A full leaf is cut in half, but where entries arrive
//! in a row it is cut at the row's end: keys that ascend, overall or in each of many groups, leave full leaves behind.

use super::super::cursor::Entry;
use super::arena::Arena;
use super::slots::{NODE_WIDTH, Slot, Slots, Target, insert_or_split};

/// The neighbour of the leaf at either end.
const NO_LEAF: u32 = u32::MAX;

struct Leaf {
    entries: Slots,
    prev: u32,
    next: u32,
    /// Where the last entry was inserted.
    recent: usize,
}

impl Leaf {
    fn new(entries: Slots, prev: u32, next: u32) -> Self {
        Self { entries, prev, next, recent: 0 }
    }

    /// Inserts an entry; returns the right part if that takes a split. An entry that goes next to the one before it is
    /// taken for one of an ascending row, and the cut is made where more of it will come.
    fn insert_or_split(&mut self, at: usize, slot: Slot, arena: &Arena) -> Option<Slots> {
        let is_in_a_row = at == NODE_WIDTH || at == self.recent + 1;
        self.recent = at;
        let cut = if is_in_a_row { at } else { NODE_WIDTH / 2 };
        self.entries.insert_or_split(at, cut, slot, arena)
    }
}

struct Inner {
    /// The smallest version below each child when it was added; always in order. What sorts before the first belongs to
    /// the first, and so the first of the nodes above leaf 0 may lie too high, until leaf 0 splits.
    lower: Slots,
    children: Vec<u32>,
}

impl Inner {
    const FULL_BYTES: usize = Slots::FULL_BYTES + NODE_WIDTH * size_of::<u32>();

    fn child_index(&self, target: &Target, arena: &Arena) -> usize {
        self.lower.rank(target, arena).saturating_sub(1)
    }

    /// Inserts a child; returns the right part if that takes a split.
    fn insert_or_split(&mut self, at: usize, lower: Slot, child: u32, arena: &Arena) -> Option<Self> {
        let cut = if at == NODE_WIDTH { at } else { NODE_WIDTH / 2 };
        let lower = self.lower.insert_or_split(at, cut, lower, arena);
        let children = insert_or_split(&mut self.children, at, cut, child);
        Some(Self { lower: lower?, children: children? })
    }
}

/// An entry of a leaf. Good until the next insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    leaf: u32,
    index: u32,
}

#[derive(Default)]
pub(super) struct Tree {
    arena: Arena,
    leaves: Vec<Leaf>,
    inners: Vec<Inner>,
    /// A leaf if `height` is 0.
    root: u32,
    /// Levels of inner nodes.
    height: usize,
    last_leaf: u32,
    /// Of the largest key: tells most keys from those past the end without a look at the last leaf.
    largest_head: u128,
    len: usize,
    inserts: u64,
}

impl Tree {
    /// Adds a version, or replaces its value if it is there.
    pub(super) fn insert(&mut self, key: &[u8], sequence: u64, value: Option<&[u8]>) {
        let target = Target::new(key, sequence);
        let slot = Slot { sequence, place: self.arena.push(key, value) };
        self.inserts += 1;
        if self.leaves.is_empty() {
            self.leaves.push(Leaf::new(Slots::default(), NO_LEAF, NO_LEAF));
        }
        if self.is_past_the_end(&target) {
            self.len += 1;
            self.largest_head = target.head();
            return self.insert_at(self.end(), slot, &target);
        }
        let gap = self.gap(&target);
        if let Some(found) = self.occupied(gap).filter(|&found| self.is_at(found, &target)) {
            self.leaves[found.leaf as usize].entries.replace(found.index as usize, slot);
            return;
        }
        self.len += 1;
        self.insert_at(gap, slot, &target);
    }

    /// The newest version of `key` with at most this sequence number.
    pub(super) fn get(&self, target: &Target) -> Option<Entry<'_>> {
        // Keys that arrive in order are looked for before they are inserted.
        if self.leaves.is_empty() || self.is_past_the_end(target) {
            return None;
        }
        let found = self.seek(target)?;
        let entries = &self.leaves[found.leaf as usize].entries;
        entries.key_order(found.index as usize, target, &self.arena).is_eq().then(|| self.entry(found))
    }

    pub(super) fn first(&self) -> Option<Position> {
        self.occupied(Position { leaf: 0, index: 0 })
    }

    pub(super) fn last(&self) -> Option<Position> {
        if self.leaves.is_empty() { None } else { self.prev(self.end()) }
    }

    /// The first entry at or after `target`.
    pub(super) fn seek(&self, target: &Target) -> Option<Position> {
        if self.leaves.is_empty() { None } else { self.occupied(self.gap(target)) }
    }

    /// The last entry before `target`.
    pub(super) fn seek_before(&self, target: &Target) -> Option<Position> {
        if self.leaves.is_empty() { None } else { self.prev(self.gap(target)) }
    }

    pub(super) fn next(&self, position: Position) -> Option<Position> {
        self.occupied(Position { index: position.index + 1, ..position })
    }

    pub(super) fn prev(&self, position: Position) -> Option<Position> {
        if position.index > 0 {
            return Some(Position { index: position.index - 1, ..position });
        }
        let prev = self.leaves[position.leaf as usize].prev;
        let entries = &self.leaves.get(prev as usize)?.entries;
        Some(Position { leaf: prev, index: entries.len() as u32 - 1 })
    }

    pub(super) fn entry(&self, position: Position) -> Entry<'_> {
        let slot = self.slot(position);
        let (key, value) = slot.place.split(self.bytes(slot));
        Entry { key, sequence: slot.sequence, value }
    }

    pub(super) fn slot(&self, position: Position) -> Slot {
        self.leaves[position.leaf as usize].entries.get(position.index as usize)
    }

    /// Key and value of a version, one after the other.
    pub(super) fn bytes(&self, slot: Slot) -> &[u8] {
        self.arena.bytes(slot.place)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Counts the calls of `insert`: while it stays the same, positions stay good.
    pub(super) fn inserts(&self) -> u64 {
        self.inserts
    }

    /// Memory held. All nodes but the first leaf are allocated full size.
    pub(super) fn byte_size(&self) -> usize {
        let Some((first, rest)) = self.leaves.split_first() else { return 0 };
        let tables = self.leaves.capacity() * size_of::<Leaf>() + self.inners.capacity() * size_of::<Inner>();
        let nodes = rest.len() * Slots::FULL_BYTES + self.inners.len() * Inner::FULL_BYTES;
        self.arena.byte_size() + first.entries.byte_size() + tables + nodes
    }

    fn is_past_the_end(&self, target: &Target) -> bool {
        let past_its_head = target.head().cmp(&self.largest_head);
        past_its_head.is_gt()
            || past_its_head.is_eq() && {
                let entries = &self.leaves[self.last_leaf as usize].entries;
                entries.len() == 0 || entries.order(entries.len() - 1, target, &self.arena).is_lt()
            }
    }

    /// One past the last entry.
    fn end(&self) -> Position {
        let leaf = self.last_leaf;
        Position { leaf, index: self.leaves[leaf as usize].entries.len() as u32 }
    }

    /// Where `target` goes: past the last entry of a leaf if it sorts between two leaves.
    fn gap(&self, target: &Target) -> Position {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node as usize];
            node = inner.children[inner.child_index(target, &self.arena)];
        }
        let index = self.leaves[node as usize].entries.rank(target, &self.arena);
        Position { leaf: node, index: index as u32 }
    }

    /// The entry at `gap`, or else the first of the next leaf.
    fn occupied(&self, gap: Position) -> Option<Position> {
        let leaf = self.leaves.get(gap.leaf as usize)?;
        if (gap.index as usize) < leaf.entries.len() {
            return Some(gap);
        }
        (leaf.next != NO_LEAF).then_some(Position { leaf: leaf.next, index: 0 })
    }

    fn is_at(&self, position: Position, target: &Target) -> bool {
        let entries = &self.leaves[position.leaf as usize].entries;
        entries.order(position.index as usize, target, &self.arena).is_eq()
    }

    fn insert_at(&mut self, gap: Position, slot: Slot, target: &Target) {
        let leaf = &mut self.leaves[gap.leaf as usize];
        if let Some(right) = leaf.insert_or_split(gap.index as usize, slot, &self.arena) {
            let lower = right.get(0);
            let right = self.link_leaf(gap.leaf, right);
            let path = self.path(target);
            if gap.leaf == 0 {
                self.lower_first(&path);
            }
            self.add_child(path, lower, right);
        }
    }

    /// Leaf 0 takes whatever sorts before all there is, and nobody above it is told; before the upper half of it gets a
    /// place behind its own, that place has to be where the lower half now begins.
    fn lower_first(&mut self, path_to_leaf_0: &[(u32, usize)]) {
        let first = self.leaves[0].entries.get(0);
        for &(node, _) in path_to_leaf_0 {
            self.inners[node as usize].lower.lower_first(first, &self.arena);
        }
    }

    /// Inner nodes from the root to the leaf of `target`, each with the index of the child on the way.
    fn path(&self, target: &Target) -> Vec<(u32, usize)> {
        let mut path = Vec::with_capacity(self.height);
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node as usize];
            let index = inner.child_index(target, &self.arena);
            path.push((node, index));
            node = inner.children[index];
        }
        path
    }

    /// Adds a leaf to the right of `left`.
    fn link_leaf(&mut self, left: u32, entries: Slots) -> u32 {
        let added = self.leaves.len() as u32;
        let next = std::mem::replace(&mut self.leaves[left as usize].next, added);
        match self.leaves.get_mut(next as usize) {
            Some(next) => next.prev = added,
            None => self.last_leaf = added,
        }
        self.leaves.push(Leaf::new(entries, left, next));
        added
    }

    /// Enters the right part of a split node in its parent, and so on up.
    fn add_child(&mut self, mut path: Vec<(u32, usize)>, mut lower: Slot, mut child: u32) {
        while let Some((parent, index)) = path.pop() {
            let parent = &mut self.inners[parent as usize];
            let Some(right) = parent.insert_or_split(index + 1, lower, child, &self.arena) else { return };
            lower = right.lower.get(0);
            child = self.push_inner(right);
        }
        self.grow(lower, child);
    }

    /// Puts a new root above the old one and its new right neighbour.
    fn grow(&mut self, lower: Slot, right: u32) {
        let old = self.root as usize;
        let entries = if self.height == 0 { &self.leaves[old].entries } else { &self.inners[old].lower };
        let first = entries.get(0);
        let mut root = Inner { lower: Slots::with_room(), children: Vec::with_capacity(NODE_WIDTH) };
        root.insert_or_split(0, first, self.root, &self.arena);
        root.insert_or_split(1, lower, right, &self.arena);
        self.root = self.push_inner(root);
        self.height += 1;
    }

    fn push_inner(&mut self, inner: Inner) -> u32 {
        self.inners.push(inner);
        self.inners.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: u64 = 64_000;

    /// Entries in a leaf, on average.
    fn fill(key_of: impl Fn(u64) -> [u64; 2]) -> u64 {
        let mut tree = Tree::default();
        for number in 0..VERSIONS {
            tree.insert(&key_of(number).map(u64::to_be_bytes).concat(), number, None);
        }
        VERSIONS / tree.leaves.len() as u64
    }

    #[test]
    fn keys_in_order_leave_every_leaf_full() {
        assert_eq!(fill(|number| [0, number]), NODE_WIDTH as u64);
    }

    #[test]
    fn keys_in_order_in_each_of_many_groups_leave_nearly_every_leaf_full() {
        let fill = fill(|number| [number % 100, number]);
        assert!(fill > 55, "{fill}");
    }

    #[test]
    fn keys_in_no_order_leave_leaves_two_thirds_full() {
        let fill = fill(|number| [number.wrapping_mul(0x9E37_79B9_7F4A_7C15).swap_bytes(), 0]);
        assert!(fill > 38, "{fill}");
    }

    /// Everything can be found, in order, and every inner node is in order.
    fn assert_sound(keys: impl Iterator<Item = Vec<u8>>, shape: &str) {
        let (mut tree, mut model) = (Tree::default(), std::collections::BTreeSet::new());
        for key in keys {
            tree.insert(&key, 1, None);
            model.insert(key);
        }
        for key in &model {
            assert!(tree.get(&Target::new(key, 1)).is_some(), "{shape}: {} is lost", key.escape_ascii());
        }
        let positions = std::iter::successors(tree.first(), |&position| tree.next(position));
        assert!(positions.map(|position| tree.entry(position).key).eq(&model), "{shape}: out of order");
        for inner in &tree.inners {
            let keys: Vec<_> = (0..inner.lower.len()).map(|at| tree.arena.key(inner.lower.get(at).place)).collect();
            assert!(keys.is_sorted(), "{shape}: an inner node is out of order");
        }
    }

    /// Keys below all others went into leaf 0, and the nodes above it kept the smallest key they were made with. When
    /// leaf 0 split, its upper half got a place behind that key, though it sorted before it: the node was out of order,
    /// and keys with a long common beginning were looked for in the wrong leaf.
    #[test]
    fn keys_that_come_below_all_others_are_found() {
        let key = |group: u64, number: u64| format!("a-common-beginning/{group:02}/{number:08}").into_bytes();
        assert_sound(
            (0..100).map(|n| key(1, n)).chain((0..600).map(|n| key(0, n))).chain((100..5000).map(|n| key(1, n))),
            "two groups",
        );
        assert_sound((0..20_000).map(|n| key(19 - n / 1000, n)), "groups in descending order");
        assert_sound((0..20_000).rev().map(|n| key(0, n)), "descending");
        assert_sound((0..20_000).map(|n| key(n * 7 % 10, n)), "round robin");
        assert_sound(
            (0..20_000_u64).map(|n| key(n * 7 % 10, n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40)),
            "random in groups",
        );
        for long in [8, 15, 16, 17, 40, 300] {
            let shared = |n: u64| [vec![b'x'; long], n.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec()].concat();
            assert_sound((0..10_000).map(shared), "one long beginning");
            let alternating = |n: u64| {
                [vec![b'x'; if n.is_multiple_of(2) { long } else { 3 }], (20_000 - n).to_be_bytes().to_vec()].concat()
            };
            assert_sound((0..10_000).map(alternating), "two beginnings");
        }
    }
}
