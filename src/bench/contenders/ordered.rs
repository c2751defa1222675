//! What every ordered key-value engine behind the seam needs alike, so that an adapter is only what differs: its trees
//! by number, bounds as other engines take them, the walk over what they yield, and their errors as ours.

use std::ops::{Bound, ControlFlow};
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::store::kv::{KeyRange, TreeId};
use crate::store::{Error, Result};

/// More than a repository has. Places are fixed, so that a tree is found without a lock and never moves.
pub(super) const TREES_MAX: usize = 16;

/// The trees of a store, by the number of their [`TreeId`]. Only ever grows.
pub(super) struct Trees<T> {
    store: &'static str,
    places: [OnceLock<(String, T)>; TREES_MAX],
    /// Whose turn it is to make one.
    maker: Mutex<()>,
}

impl<T> Trees<T> {
    /// No trees yet, of the store called `store`.
    pub(super) fn new(store: &'static str) -> Self {
        Self { store, places: [const { OnceLock::new() }; TREES_MAX], maker: Mutex::new(()) }
    }

    /// The number of the tree called `name`, which `make` opens or makes if it is not known.
    pub(super) fn named(&self, name: &str, make: impl FnOnce() -> Result<T>) -> Result<TreeId> {
        let _turn = self.maker.lock();
        let known = self.filled().count();
        if let Some(place) = self.filled().position(|(held, _)| held == name) {
            return Ok(TreeId(place as u32));
        }
        let place = self.places.get(known).ok_or("there is no place for more trees").map_err(foreign(self.store))?;
        let tree = make()?;
        place.get_or_init(|| (name.to_owned(), tree));
        Ok(TreeId(known as u32))
    }

    /// The tree with this number.
    pub(super) fn of(&self, tree: TreeId) -> Result<&T> {
        let found = self.places.get(tree.0 as usize).and_then(OnceLock::get).map(|(_, tree)| tree);
        found.ok_or_else(|| foreign(self.store)(format!("there is no tree {}", tree.0)))
    }

    /// All of them, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.filled().map(|(_, tree)| tree)
    }

    fn filled(&self) -> impl Iterator<Item = &(String, T)> {
        self.places.iter().map_while(OnceLock::get)
    }
}

/// Bounds as other engines take them.
pub(super) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The bounds of `range` as other engines take them; `None` where they lie the wrong way round, which the seam allows
/// and other engines do not promise to bear. No key is empty, and an empty bound bounds nothing: LMDB refuses one.
pub(super) fn bounds(range: &KeyRange) -> Option<Bounds<'_>> {
    let holds_nothing = match (&range.lower, &range.upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => {
            lower >= upper
        }
    };
    let lower = match &range.lower {
        Bound::Included(key) | Bound::Excluded(key) if key.is_empty() => Bound::Unbounded,
        lower => lower.as_ref().map(Vec::as_slice),
    };
    (!holds_nothing).then(|| (lower, range.upper.as_ref().map(Vec::as_slice)))
}

/// Hands each of `entries` to `visit`, which hands its bytes on, until that breaks or fails.
pub(super) fn walk<E, X: ToString>(
    store: &'static str,
    entries: impl Iterator<Item = E>,
    mut visit: impl FnMut(E) -> std::result::Result<ControlFlow<()>, X>,
) -> Result<()> {
    for entry in entries {
        if visit(entry).map_err(foreign(store))?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Makes an error of `store` one of ours.
pub(super) fn foreign<X: ToString>(store: &'static str) -> impl FnOnce(X) -> Error {
    move |error| Error::Foreign { store, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_keeps_its_number_and_is_made_once() {
        let trees = Trees::new("a store");
        for _ in 0..2 {
            for number in 0..TREES_MAX as u32 {
                assert_eq!(trees.named(&format!("tree {number}"), || Ok(number)).expect("a place"), TreeId(number));
            }
        }
        assert_eq!(trees.iter().copied().collect::<Vec<_>>(), (0..TREES_MAX as u32).collect::<Vec<_>>());
        assert!(trees.named("one more", || Ok(0)).is_err());
        assert!(trees.of(TreeId(TREES_MAX as u32)).is_err());
    }

    #[test]
    fn a_tree_that_could_not_be_made_takes_no_number() {
        let trees = Trees::new("a store");
        assert!(trees.named("tree", || Err(foreign("a store")("full"))).is_err());
        assert!(trees.of(TreeId(0)).is_err());
        assert_eq!(trees.named("tree", || Ok(())).expect("a place"), TreeId(0));
    }
}
