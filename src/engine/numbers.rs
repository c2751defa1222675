//! Numbers that are handed out once each, and what becomes of a database that has used them up.
//!
//! None gets there by use; a manifest or a log that is made up can say so. A number is refused where it would be handed
//! out: what is written with one too many could not be read again. And whatever was committed has to be read by the next
//! open, which needs numbers for the segments that it writes. So the last numbers of files are kept for opens: with one of
//! them for its log, a database is read, and takes no commits.

use super::error::{Error, Result};
use super::manifest::NUMBER_MAX;
use super::sync::{AtomicU64, Ordering};

/// How many of the last numbers of files are kept for opens, which need a few each.
const KEPT_FOR_OPENS: u64 = 1 << 40;
/// Where the numbers of logs that are written to end.
const LOGS_END: u64 = NUMBER_MAX - KEPT_FOR_OPENS;

/// Numbers of files, from the next one on.
pub(crate) struct FileNumbers(AtomicU64);

impl FileNumbers {
    pub(crate) fn new(next: u64) -> Self {
        Self(AtomicU64::new(next.min(NUMBER_MAX)))
    }

    /// Above all that were handed out, for the manifest.
    pub(crate) fn next(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// For a segment, or at an open.
    pub(crate) fn allot(&self) -> Result<u64> {
        self.allot_below(NUMBER_MAX)
    }

    /// For a delta that takes commits, and its log.
    pub(crate) fn allot_log(&self) -> Result<u64> {
        self.allot_below(LOGS_END)
    }

    fn allot_below(&self, end: u64) -> Result<u64> {
        let allotted =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| (next < end).then_some(next + 1));
        allotted.map_err(|_| Error::UsedUp { what: "file numbers", max: NUMBER_MAX })
    }
}

/// Refuses commits to a log whose number was kept for an open.
pub(crate) fn check_log(number: u64) -> Result<()> {
    if number < LOGS_END { Ok(()) } else { Err(Error::UsedUp { what: "file numbers", max: NUMBER_MAX }) }
}

/// The sequence number of the commit after `last`.
pub(crate) fn sequence_after(last: u64) -> Result<u64> {
    if last < NUMBER_MAX { Ok(last + 1) } else { Err(Error::UsedUp { what: "commit numbers", max: NUMBER_MAX }) }
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::disk::sim::SimDisk;
    use crate::engine::manifest::{Manifest, TREES_MAX, TreeManifest};
    use crate::engine::{Batch, Database, Options, TreeId};

    fn open(disk: &SimDisk) -> Result<Database> {
        Database::open_on(Arc::new(disk.clone()), Options { delta_bytes: 1 << 10, ..Options::default() })
    }

    /// A database with one entry, whose manifest then says something else.
    fn forged(forge: impl FnOnce(&mut Manifest)) -> SimDisk {
        let disk = SimDisk::new();
        let database = open(&disk).expect("opens");
        let tree = database.tree("tree").expect("a tree");
        put(&database, tree, 0).expect("commits");
        database.close().expect("closes");
        drop(database);
        let mut manifest = Manifest::load(&disk).expect("loads");
        forge(&mut manifest);
        manifest.prepare(&disk).and_then(|()| Manifest::replace(&disk)).expect("stores");
        disk
    }

    fn put(database: &Database, tree: TreeId, number: u8) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(tree, &[number], &[number; 400]);
        database.commit(&batch)
    }

    /// Commits, flushes and settles until something is refused, or for long; answers how much was taken.
    fn write_until_refused(database: &Database, tree: TreeId, taken: &mut u8) -> Option<Error> {
        for round in 0..20_u8 {
            if let Err(refused) = put(database, tree, *taken) {
                return Some(refused);
            }
            *taken += 1;
            let done = [Database::flush, Database::settle, |_: &_| Ok(())][usize::from(round % 3)](database);
            if done.is_err() {
                return done.err();
            }
        }
        None
    }

    fn holds(database: &Database, tree: TreeId, taken: u8) {
        for number in 0..=u8::MAX {
            let found = database.get(tree, &[number]).expect("reads");
            assert_eq!(found, (number < taken).then(|| vec![number; 400]));
        }
    }

    fn is_used_up(error: &Error) -> bool {
        matches!(error, Error::UsedUp { .. }) && error.to_string().contains("`salvage`")
    }

    /// Such a database opened, took commits, and stored a manifest that no open would take.
    #[test]
    fn whatever_was_committed_with_the_last_file_numbers_is_there_at_the_next_open() {
        let last_of_logs = LOGS_END - 30..LOGS_END + 4;
        for next in last_of_logs.chain(NUMBER_MAX - 8..=NUMBER_MAX) {
            for closes in [true, false] {
                let disk = forged(|manifest| manifest.next_number = next);
                let (mut taken, mut refused) = (1, 0);
                for _ in 0..3 {
                    let database = match open(&disk) {
                        Ok(database) => database,
                        Err(error) if taken == 1 && is_used_up(&error) => break,
                        Err(error) => panic!("{taken} entries are lost with {next} for the next number: {error}"),
                    };
                    let tree = database.tree("tree").expect("a tree");
                    holds(&database, tree, taken);
                    if let Some(error) = write_until_refused(&database, tree, &mut taken) {
                        assert!(is_used_up(&error), "{error}");
                        refused += 1;
                    }
                    holds(&database, tree, taken);
                    if let (true, Err(error)) = (closes, database.close()) {
                        assert!(is_used_up(&error), "{error}");
                    }
                }
                assert!(refused > 0 || !(LOGS_END..=NUMBER_MAX - 2).contains(&next), "{next} is one of the last");
            }
        }
    }

    #[test]
    fn the_last_commit_number_is_taken_and_none_after_it() {
        for closes in [true, false] {
            let disk = forged(|manifest| manifest.flushed = NUMBER_MAX - 2);
            for taken in [1, 3] {
                let database = open(&disk).expect("opens");
                let tree = database.tree("tree").expect("a tree");
                holds(&database, tree, taken);
                (taken..3).for_each(|number| put(&database, tree, number).expect("there are two more"));
                let refused = put(&database, tree, 3).expect_err("they are used up");
                assert!(is_used_up(&refused), "{refused}");
                holds(&database, tree, 3);
                if closes {
                    database.close().expect("closes");
                }
            }
            assert_eq!(open(&disk).expect("opens").stats().sequence, NUMBER_MAX);
        }
    }

    #[test]
    fn one_tree_more_than_a_manifest_holds_is_refused_and_the_last_one_is_there_again() {
        let disk = forged(|manifest| {
            let trees =
                (1..TREES_MAX - 1).map(|number| TreeManifest { name: number.to_string(), ..Default::default() });
            manifest.trees.extend(trees);
        });
        let database = open(&disk).expect("opens");
        let last = database.tree("the last").expect("there is room for it");
        put(&database, last, 9).expect("commits");
        let refused = database.tree("one more").expect_err("there is no room");
        assert!(matches!(refused, Error::TooManyTrees { max } if max == TREES_MAX), "{refused}");
        database.close().expect("closes");
        drop(database);
        let database = open(&disk).expect("opens again");
        assert_eq!(database.tree_names().len(), TREES_MAX);
        assert_eq!(database.get(last, &[9]).expect("reads"), Some(vec![9; 400]));
    }
}
