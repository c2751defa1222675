//! A [`Kv`] in memory, the simplest that keeps the promises: one map for all trees, copied when a snapshot needs the
//! old one.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::thread;

use parking_lot::{Mutex, RwLock};

use crate::store::Result;
use crate::store::kv::{Batch, Direction, KeyRange, Kv, KvRead, Locked, Stored, TreeId};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Committed state at one moment.
#[derive(Clone, Default)]
pub(crate) struct State {
    trees: Vec<(String, Map)>,
}

/// An ordered key-value store in memory.
#[derive(Default)]
pub(crate) struct MemoryKv {
    state: RwLock<Arc<State>>,
    /// The batch committed last, for tests that look at it.
    last_batch: Mutex<Batch>,
    writer: Mutex<()>,
}

impl MemoryKv {
    pub(crate) fn last_batch(&self) -> Batch {
        self.last_batch.lock().clone()
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }
}

impl KvRead for Arc<State> {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        Ok(self.trees[tree.0 as usize].1.get(key).map(|value| read(Stored::Bytes(value))))
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let map = &self.trees[tree.0 as usize].1;
        if is_reversed(range) {
            return Ok(());
        }
        let mut entries = map.range::<Vec<u8>, _>((range.lower.as_ref(), range.upper.as_ref()));
        loop {
            let entry = match direction {
                Direction::Forward => entries.next(),
                Direction::Reverse => entries.next_back(),
            };
            match entry {
                Some((key, value)) if visit(key, Stored::Bytes(value)).is_continue() => {}
                _ => return Ok(()),
            }
        }
    }
}

/// A map refuses these; a store finds nothing in them.
fn is_reversed(range: &KeyRange) -> bool {
    match (&range.lower, &range.upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => {
            lower >= upper
        }
    }
}

impl KvRead for MemoryKv {
    fn get<R>(&self, tree: TreeId, key: &[u8], read: impl FnOnce(Stored<'_>) -> R) -> Result<Option<R>> {
        let result = self.state().get(tree, key, read);
        // Whoever decides by what was read must hold the writer lock: others get their turn here.
        thread::yield_now();
        result
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        visit: impl FnMut(&[u8], Stored<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.state().scan(tree, range, direction, visit)
    }
}

impl Kv for MemoryKv {
    type Snapshot<'a> = Arc<State>;
    type Writer<'a> = Locked<'a, Self>;

    fn tree(&self, name: &str) -> Result<TreeId> {
        let mut state = self.state.write();
        let trees = &mut Arc::make_mut(&mut state).trees;
        let position = trees.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            trees.push((name.to_owned(), Map::new()));
            trees.len() - 1
        });
        Ok(TreeId(position as u32))
    }

    fn snapshot(&self) -> Result<Arc<State>> {
        Ok(self.state())
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        let mut state = self.state.write();
        let trees = &mut Arc::make_mut(&mut state).trees;
        for operation in batch.iter() {
            let map = &mut trees[operation.tree.0 as usize].1;
            match operation.value {
                Some(value) => map.insert(operation.key.to_vec(), value.to_vec()),
                None => map.remove(operation.key),
            };
        }
        self.last_batch.lock().clone_from(batch);
        Ok(())
    }

    fn writer(&self) -> Locked<'_, Self> {
        Locked::new(self, &self.writer)
    }
}
