//! Reads of a database, and the same reads of sorted maps.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Bound, ControlFlow};

use super::state::{Trees, difference};
use super::step::{Key, Read};
use crate::engine::{Database, Direction, Error, KeyRange, Result, Scan, Snapshot, Stored, TreeId};

type Entry = (Key, Vec<u8>);
type Entries = BTreeMap<Key, Vec<u8>>;

/// The longest text of an answer that is wrong.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Answers that were right, folded.
#[derive(Default)]
pub(super) struct Answers(DefaultHasher);

impl Answers {
    /// Fails if they differ.
    pub(super) fn same<T: PartialEq + Debug + Hash>(
        &mut self,
        found: &T,
        expected: &T,
    ) -> std::result::Result<(), String> {
        if found == expected {
            found.hash(&mut self.0);
            return Ok(());
        }
        let mut text = format!("found {found:?}, expected {expected:?}");
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        Err(text)
    }

    pub(super) fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Why a read is no answer.
pub(super) enum Wrong {
    Failed(Error),
    Answer(String),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Self::Answer(text)
    }
}

impl Wrong {
    pub(super) fn text(self) -> String {
        match self {
            Self::Failed(error) => error.to_string(),
            Self::Answer(text) => text,
        }
    }
}

/// Reads, and compares with the model.
pub(super) fn look(
    snapshot: &Snapshot<'_>,
    trees: &Trees,
    tree: usize,
    read: &Read,
    answers: &mut Answers,
) -> std::result::Result<(), Wrong> {
    let tree = tree % trees.len();
    let (id, entries) = (TreeId(tree as u32), &trees[tree]);
    match read {
        Read::Get { key } => answers.same(&snapshot.get(id, key)?, &entries.get(key).cloned())?,
        Read::GetStored { key } => {
            let found = snapshot.get_stored(id, key, |value| value.to_vec())?;
            answers.same(&found, &entries.get(key).cloned())?;
        }
        Read::GetMany { keys, limit } => {
            let expected: Vec<_> = keys.iter().take((*limit).max(1)).map(|key| entries.get(key).cloned()).collect();
            answers.same(&get_many(snapshot, id, keys, *limit)?, &expected)?;
        }
        Read::Count { range } => {
            let expected = entries.keys().filter(|key| range.contains(key)).count() as u64;
            answers.same(&snapshot.count(id, range)?, &expected)?;
        }
        Read::Scan { range, direction, limit } => {
            let scan = snapshot.scan(id, range.clone(), *direction)?;
            answers.same(&collect(scan, *limit)?, &expected(entries, range, *direction, *limit))?;
        }
        Read::Turning { from, legs } => {
            let found = turning(from, legs, |range, direction, limit| {
                collect(snapshot.scan(id, range.clone(), direction)?, limit)
            })?;
            let expected =
                turning(from, legs, |range, direction, limit| Ok(expected(entries, range, direction, limit)))?;
            answers.same(&found, &expected)?;
        }
        Read::Skipping { from, limit } => {
            for from in from {
                let range = KeyRange::of(from.as_slice()..);
                let found = collect(snapshot.scan(id, range.clone(), Direction::Forward)?, *limit)?;
                answers.same(&found, &expected(entries, &range, Direction::Forward, *limit))?;
            }
        }
        Read::SideBySide { ranges } => {
            let found = side_by_side(snapshot, id, ranges)?;
            let [one, other] = ranges.each_ref().map(|(range, way)| expected(entries, range, *way, usize::MAX));
            answers.same(&found, &[one, other])?;
        }
        Read::Visit { range, direction, limit } => {
            let mut found = Vec::new();
            let visit = |key: &[u8], value: Stored<'_>| {
                found.push((key.to_vec(), value.to_vec()));
                go_on(found.len() < *limit)
            };
            snapshot.visit(id, range, *direction, visit)?;
            answers.same(&found, &expected(entries, range, *direction, (*limit).max(1)))?;
        }
        Read::VisitTails { range, direction, limit, width } => {
            let mut found = Vec::new();
            let visit = |tail: &[u8]| {
                found.push(tail.to_vec());
                go_on(found.len() < *limit)
            };
            snapshot.visit_tails(id, range, *direction, *width, visit)?;
            let expected = expected(entries, range, *direction, (*limit).max(1)).into_iter();
            let tail = |key: Key| key[key.len().saturating_sub(*width)..].to_vec();
            answers.same(&found, &expected.map(|(key, _)| tail(key)).collect())?;
        }
        Read::Whole => {
            for (tree, entries) in trees.iter().enumerate() {
                for direction in [Direction::Forward, Direction::Reverse] {
                    let found = collect(snapshot.scan(TreeId(tree as u32), KeyRange::all(), direction)?, usize::MAX)?;
                    answers.same(&found, &expected(entries, &KeyRange::all(), direction, usize::MAX))?;
                }
            }
        }
    }
    Ok(())
}

/// What a scan finds.
pub(super) fn expected(entries: &Entries, range: &KeyRange, direction: Direction, limit: usize) -> Vec<Entry> {
    let inside = entries.iter().filter(|(key, _)| range.contains(key)).map(|(key, value)| (key.clone(), value.clone()));
    match direction {
        Direction::Forward => inside.take(limit).collect(),
        Direction::Reverse => inside.rev().take(limit).collect(),
    }
}

/// Up to `limit` entries of a scan.
pub(super) fn collect(mut scan: Scan<'_>, limit: usize) -> Result<Vec<Entry>> {
    take(&mut scan, limit)
}

/// The next entries of a scan, up to `limit`.
pub(super) fn take(scan: &mut Scan<'_>, limit: usize) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    while found.len() < limit {
        let Some((key, value)) = scan.next()? else { break };
        found.push((key.to_vec(), value.to_vec()));
    }
    Ok(found)
}

/// Everything there is.
pub(super) fn dump(database: &Database) -> Result<Trees> {
    let snapshot = database.snapshot();
    let tree = |tree| collect(snapshot.scan(TreeId(tree), KeyRange::all(), Direction::Forward)?, usize::MAX);
    (0..database.tree_names().len() as u32).map(|number| Ok(tree(number)?.into_iter().collect())).collect()
}

/// Whether every tree holds what its map does.
pub(super) fn compare(database: &Database, trees: &Trees) -> std::result::Result<(), String> {
    let found = dump(database).map_err(|error| error.to_string())?;
    if found == *trees { Ok(()) } else { Err(difference(&found, trees)) }
}

/// Entries from a key on, one way and the other, each leg from the last entry of the one before.
fn turning(
    from: &Key,
    legs: &[usize],
    scan: impl Fn(&KeyRange, Direction, usize) -> Result<Vec<Entry>>,
) -> Result<Vec<Entry>> {
    let (mut found, mut at, mut direction) = (Vec::new(), Bound::Included(from.clone()), Direction::Forward);
    for leg in legs {
        let range = match direction {
            Direction::Forward => KeyRange { lower: at.clone(), upper: Bound::Unbounded },
            Direction::Reverse => KeyRange { lower: Bound::Unbounded, upper: at.clone() },
        };
        let entries = scan(&range, direction, *leg)?;
        if let Some((key, _)) = entries.last() {
            at = Bound::Excluded(key.clone());
        }
        found.extend(entries);
        direction = match direction {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        };
    }
    Ok(found)
}

fn side_by_side(snapshot: &Snapshot<'_>, tree: TreeId, ranges: &[(KeyRange, Direction); 2]) -> Result<[Vec<Entry>; 2]> {
    let mut found = [Vec::new(), Vec::new()];
    let [(one, one_way), (other, other_way)] = ranges;
    let mut scans = [snapshot.scan(tree, one.clone(), *one_way)?, snapshot.scan(tree, other.clone(), *other_way)?];
    loop {
        let before = found[0].len() + found[1].len();
        for (found, scan) in found.iter_mut().zip(&mut scans) {
            found.extend(take(scan, 1)?);
        }
        if found[0].len() + found[1].len() == before {
            return Ok(found);
        }
    }
}

fn get_many(snapshot: &Snapshot<'_>, tree: TreeId, keys: &[Key], limit: usize) -> Result<Vec<Option<Vec<u8>>>> {
    let mut found = Vec::new();
    let write_key = |index: usize, out: &mut Vec<u8>| out.extend_from_slice(&keys[index]);
    snapshot.get_many(tree, keys.len(), write_key, |_, value| {
        found.push(value.map(|value| value.to_vec()));
        go_on(found.len() < limit)
    })?;
    Ok(found)
}

fn go_on(more: bool) -> ControlFlow<()> {
    if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
