//! Which decoded blocks stay in memory: one budget for all segments.
//!
//! What else a database keeps in memory, changes that are in no segment yet and the indexes of segments, is a [`Charge`]
//! on the same budget: blocks have what that leaves, and make room when it grows.
//!
//! Every segment has a slot for each of its blocks. A hit loads the slot's pointer and sets its `used` flag, and takes
//! no lock. Only what fills or empties a slot goes through the clock, a queue of the filled slots: when the budget is
//! exceeded, the block at its front goes, unless it was used since it was last there, which sends it to the back.
//!
//! A block that is in use when it is evicted lives until its last user is done, outside the budget.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use super::super::sync::{ArcSwapOption, AtomicBool, AtomicU64, AtomicUsize, Guard, Mutex, Ordering};
use super::block::Block;

/// The memory that decoded blocks of all segments share.
pub(crate) struct BlockCache {
    budget_bytes: u64,
    /// Changed only under the lock of `clock`.
    resident_bytes: AtomicU64,
    /// The sum of all charges.
    charged_bytes: AtomicU64,
    /// Guards the filling and emptying of all slots. No input or output under it.
    clock: Mutex<VecDeque<Place>>,
}

/// Memory that is not a block's and counts against the same budget, until this is dropped.
pub(crate) struct Charge {
    cache: Arc<BlockCache>,
    bytes: AtomicUsize,
}

/// The slots of one segment.
pub(super) struct Slots(Box<[Slot]>);

#[derive(Default)]
struct Slot {
    block: ArcSwapOption<Block>,
    used: AtomicBool,
}

/// One filled slot. The segment takes its places with it when it goes.
struct Place {
    slots: Arc<Slots>,
    index: usize,
}

/// A block held in memory while it is looked at.
pub(super) struct Held(Guard<Option<Arc<Block>>>);

/// What `bytes` on the heap take with what allocators add to them. Of many small pieces that is as much as the pieces.
pub(super) fn allocated(bytes: usize) -> usize {
    const HEADER_BYTES: usize = 8;
    const LEAST_BYTES: usize = 32;
    if bytes == 0 { 0 } else { (bytes + HEADER_BYTES).next_multiple_of(16).max(LEAST_BYTES) }
}

impl Deref for Held {
    type Target = Arc<Block>;

    #[inline]
    fn deref(&self) -> &Arc<Block> {
        self.0.as_ref().expect("made only around a block")
    }
}

impl From<Arc<Block>> for Held {
    fn from(block: Arc<Block>) -> Self {
        Self(Guard::from_inner(Some(block)))
    }
}

impl Slots {
    pub(super) fn new(blocks: usize) -> Arc<Self> {
        Arc::new(Self((0..blocks).map(|_| Slot::default()).collect()))
    }

    /// Memory they take, without blocks.
    pub(super) fn resident_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// How many are filled.
    pub(super) fn filled(&self) -> usize {
        self.0.iter().filter(|slot| slot.block.load().is_some()).count()
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Held> {
        let slot = &self.0[index];
        let block = slot.block.load();
        block.as_ref()?;
        // Set once, then only read: threads that share a hot block do not contend for its flag.
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        Some(Held(block))
    }
}

impl BlockCache {
    pub(crate) fn new(budget_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            budget_bytes,
            resident_bytes: AtomicU64::new(0),
            charged_bytes: AtomicU64::new(0),
            clock: Mutex::default(),
        })
    }

    /// Memory that resident blocks take now; at most what charges leave of the budget.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_bytes.load(Ordering::Relaxed)
    }

    /// Memory that charges take now.
    pub(crate) fn charged_bytes(&self) -> u64 {
        self.charged_bytes.load(Ordering::Relaxed)
    }

    fn is_over_budget(&self) -> bool {
        self.resident_bytes() + self.charged_bytes() > self.budget_bytes
    }

    /// Evicts what a charge that has grown leaves no room for.
    fn make_room(&self) {
        if self.is_over_budget() {
            let mut evicted = Vec::new();
            self.evict(&mut self.clock.lock(), &mut evicted);
        }
    }

    /// Makes a block resident. If another thread was faster, its block is the one to use.
    pub(super) fn keep(&self, slots: &Arc<Slots>, index: usize, block: Arc<Block>) -> Arc<Block> {
        let mut evicted = Vec::new();
        let mut clock = self.clock.lock();
        let slot = &slots.0[index];
        if let Some(resident) = slot.block.load_full() {
            return resident;
        }
        slot.used.store(false, Ordering::Relaxed);
        slot.block.store(Some(Arc::clone(&block)));
        clock.push_back(Place { slots: Arc::clone(slots), index });
        self.resident_bytes.fetch_add(block.resident_bytes(), Ordering::Relaxed);
        self.evict(&mut clock, &mut evicted);
        drop(clock);
        // Memory is given back outside the lock.
        drop(evicted);
        block
    }

    fn evict(&self, clock: &mut VecDeque<Place>, evicted: &mut Vec<Arc<Block>>) {
        // One chance each: readers who set flags as fast as they are cleared cannot keep this going.
        let mut chances = clock.len();
        while self.is_over_budget()
            && let Some(place) = clock.pop_front()
        {
            let slot = &place.slots.0[place.index];
            if chances > 0 && slot.used.swap(false, Ordering::Relaxed) {
                chances -= 1;
                clock.push_back(place);
                continue;
            }
            evicted.extend(self.empty(slot));
        }
    }

    fn empty(&self, slot: &Slot) -> Option<Arc<Block>> {
        let block = slot.block.swap(None)?;
        self.resident_bytes.fetch_sub(block.resident_bytes(), Ordering::Relaxed);
        Some(block)
    }

    /// Gives back all that the blocks of a segment take.
    pub(super) fn forget(&self, slots: &Arc<Slots>) {
        let mut clock = self.clock.lock();
        clock.retain(|place| !Arc::ptr_eq(&place.slots, slots));
        for slot in &slots.0 {
            self.empty(slot);
        }
    }
}

impl Charge {
    /// A charge of nothing yet.
    pub(crate) fn new(cache: &Arc<BlockCache>) -> Self {
        Self { cache: Arc::clone(cache), bytes: AtomicUsize::new(0) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.cache.charged_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.cache.make_room();
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.cache.charged_bytes.fetch_sub(self.bytes() as u64, Ordering::Relaxed);
    }
}
