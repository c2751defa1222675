//! One damage to a small database, of every kind that a disk, a copy or a person can do to it.
//!
//! A specimen holds a manifest, segments of several runs, and several logs that were not flushed. Each damage is done to
//! it twice: as a killed process leaves it, and after a restart of the system. What opens then must be one of these:
//!
//! - *refused*, or failing on the reads that are touched, with an error that names a file, which a verify names too.
//!   Reads that succeed are right all the same;
//! - *unchanged*: every answer is the right one;
//! - *shorter*, by batches at the end, where nothing on the disk can prove that they were there:
//!     - Every frame from the first damaged one on is damaged: a torn tail. A log that is cut between two frames, or is
//!       missing with no frame behind it, is the same.
//!     - After a restart also with sound frames behind it, as long as none of them says that a missing one was synced:
//!       a power loss may do that.
//!
//!   What is dropped begins with the first damaged frame, and the recovery report says so if a byte is left of it or
//!   behind it, zeros aside: a log goes on with zeros where it has room for more;
//! - *older*, when an older manifest takes the place of the present one and all its files are still there: a crash before
//!   the newer one leaves the same. Every answer is then one of the moment it was written.
//!
//! Where one copy of the manifest is left, a salvage gives everything, and tells what is damaged.
//!
//! Never a wrong or missing value without an error, never half a batch, never a panic.

mod damage;
mod specimen;

use std::sync::Arc;

use super::Session;
use super::history::{self, Entries, dump, examine};
use crate::engine::disk::sim::{Random, SimDisk, State};
use crate::engine::{Compression, Database, Direction, Error, KeyRange, Lost, LostPart, TreeId, salvage_on};

use damage::{Changes, Damage};
use specimen::Specimen;

/// Tries every damage to every specimen, or as many as asked for, drawn at random: one in four is of whole files, which are
/// few among all.
pub(crate) fn run(session: &mut Session<'_>, sample: Option<u64>) {
    let seed = session.seed;
    let specimens = session.try_cases(0, || "while the specimens were made".to_owned(), || Ok(specimens(seed)));
    let Some(specimens) = specimens else { return };
    if sample.is_some() {
        let mut random = Random::new(seed);
        let of_files = |damages: &[Damage]| damages.iter().filter(|damage| damage.is_of_files()).cloned().collect();
        let of_files: Vec<Vec<_>> = specimens.iter().map(|(_, damages)| of_files(damages)).collect();
        while session.goes_on() {
            let number = random.below(specimens.len());
            let (specimen, all) = &specimens[number];
            let damages = if random.once_in(4) { &of_files[number] } else { all };
            try_damage(session, &Case { specimen, damage: random.pick(damages), restarted: random.once_in(2) });
        }
        return;
    }
    session.wanted = specimens.iter().map(|(_, damages)| 2 * damages.len() as u64).sum();
    for (specimen, damages) in &specimens {
        for (damage, restarted) in damages.iter().flat_map(|damage| [(damage, false), (damage, true)]) {
            if session.goes_on() {
                try_damage(session, &Case { specimen, damage, restarted });
            }
        }
    }
}

/// One for each way to store blocks, with all that can be done to it.
fn specimens(seed: u64) -> Vec<(Specimen, Vec<Damage>)> {
    let mut compressions = vec![Compression::None, Compression::Lz4];
    if cfg!(feature = "zstd") {
        compressions.push(Compression::Zstd { level: 3 });
    }
    let with_damages = |compression| {
        let specimen = Specimen::new(compression, seed);
        let damages = specimen.damages();
        (specimen, damages)
    };
    compressions.into_iter().map(with_damages).collect()
}

fn try_damage(session: &mut Session<'_>, case: &Case<'_>) {
    let Case { specimen, damage, restarted } = case;
    let name = || {
        let end = if *restarted { "restarted" } else { "killed" };
        format!("compression {}, {end}, {damage}", specimen.options.compression)
    };
    session.try_case(name, || case.run());
}

/// One damage to a specimen that was killed, or whose system was restarted.
struct Case<'a> {
    specimen: &'a Specimen,
    damage: &'a Damage,
    restarted: bool,
}

/// Batches that nothing on the disk proves.
struct Unproven {
    /// The first of them.
    batch: u64,
    /// Where the first byte was that is left of them.
    log: String,
    offset: usize,
    /// Whether one is left: a frame of zeros leaves none.
    remains: bool,
}

impl Case<'_> {
    fn run(&self) -> Result<(), String> {
        let changes = self.damage.changes(self.specimen);
        let left = self.left(&changes);
        let disk = self.damage.disk(left.clone());
        let database = match Database::open_on(Arc::new(disk), self.specimen.options.clone()) {
            Ok(database) => database,
            Err(error) if self.damage.spares_a_copy() => return self.salvage(left).and_then(|()| names_a_file(&error)),
            Err(error) => return names_a_file(&error),
        };
        let unproven = self.unproven(&changes);
        let number = self.judge(&database, unproven.as_ref())?;
        if number == self.specimen.history.last() {
            return Ok(());
        }
        drop(database);
        // It goes on from there like any other.
        examine(&left, &self.specimen.options, &self.specimen.history, number..=number).map(drop)
    }

    fn left(&self, changes: &Changes) -> State {
        let mut left = if self.restarted { self.specimen.restarted.clone() } else { self.specimen.killed.clone() };
        for (name, content) in changes {
            match content {
                Some(content) => left.overwrite(name, content.clone()),
                None => left.lose(name),
            }
        }
        left
    }

    /// What does not open because of its manifest is copied whole all the same.
    fn salvage(&self, left: State) -> Result<(), String> {
        let copy = history::open(&SimDisk::new(), &self.specimen.options)?;
        let report = salvage_on(&self.damage.disk(left), &copy).map_err(|error| format!("salvage: {error}"))?;
        if !matches!(&report.lost[..], [Lost { what: LostPart::Manifest, .. }]) {
            return Err(format!("a copy of the manifest is damaged, and salvage says of losses {:?}", report.lost));
        }
        let history = &self.specimen.history;
        let number = history.identify(&dump(&copy).map_err(|error| error.to_string())?)?;
        if number == history.last() { Ok(()) } else { Err(format!("state {number} was salvaged")) }
    }

    /// Answers which state it is in, if that may be.
    fn judge(&self, database: &Database, unproven: Option<&Unproven>) -> Result<u64, String> {
        let history = &self.specimen.history;
        let (mut errors, number) = match dump(database) {
            Ok(found) => (Vec::new(), history.identify(&found)?),
            Err(error) => (vec![error], history.last()),
        };
        if number != history.last() {
            self.may_be_in(number, database, unproven)?;
        }
        errors.extend(read_everything(database, |tree| history.entries(number, tree))?);
        errors.iter().try_for_each(names_a_file)?;
        let verified = database.verify();
        if let (Some(error), true) = (errors.first(), verified.is_ok_and(|report| report.problems.is_empty())) {
            return Err(format!("a read says `{error}`, and verify finds nothing"));
        }
        Ok(number)
    }

    fn may_be_in(&self, number: u64, database: &Database, unproven: Option<&Unproven>) -> Result<(), String> {
        let dropped_from = &database.recovery().dropped_from;
        if let Damage::Older { manifest } = self.damage
            && self.specimen.older[*manifest].1 == number
        {
            return dropped_from.as_ref().map(|_| ()).ok_or_else(|| "logs were dropped, and not reported".to_owned());
        }
        let last = self.specimen.history.last();
        let Some(unproven) = unproven.filter(|unproven| unproven.batch == number + 1) else {
            return Err(format!("state {number} is there, expected {last} or an error"));
        };
        let expected = Some((unproven.log.clone(), unproven.offset as u64));
        if unproven.remains && *dropped_from != expected {
            return Err(format!("state {number} is there; dropped from {dropped_from:?}, expected {expected:?}"));
        }
        Ok(())
    }

    /// Batches at the end that may be dropped; see the head of this file.
    fn unproven(&self, changes: &Changes) -> Option<Unproven> {
        let Specimen { frames, flushed, files, .. } = self.specimen;
        let batch_of = |index: usize| flushed + 1 + index as u64;
        let first = frames.iter().position(|frame| !self.is_intact(frame.start..frame.end, &frame.log, changes));
        // Bytes behind the last frame of a log stand before the first frame of the next. Zeros are room for more.
        let last_of = |log: &String| frames.iter().rposition(|frame| frame.log == *log);
        let behind = changes.iter().find_map(|(log, content)| {
            let last = last_of(log)?;
            let rest = content.as_ref()?.get(frames[last].end..)?;
            has_bytes(rest).then_some((last + 1, log, frames[last].end))
        });
        let (index, log, offset) = match (first, behind) {
            (Some(index), _) => (index, &frames[index].log, frames[index].start),
            (None, Some(behind)) => behind,
            (None, None) => return None,
        };
        let batch = batch_of(index);
        let proves = |later: usize| !self.restarted || self.specimen.synced_before(batch_of(later)) >= batch;
        let intact = |later: &usize| {
            let frame = &frames[*later];
            self.is_intact(frame.start..frame.end, &frame.log, changes)
        };
        if (index..frames.len()).filter(intact).any(proves) {
            return None;
        }
        let logs = files.keys().skip_while(|name| *name != log).filter(|name| name.strip_suffix(".wal").is_some());
        // The log and those behind it, as far as they are there; the first from `offset` on.
        let mut rests = logs.enumerate().filter_map(|(place, name)| {
            let content = changes.get(name).map_or(Some(&files[name]), Option::as_ref)?;
            Some((name, if place == 0 { content.get(offset..)? } else { content }))
        });
        let (log, offset, remains) = match rests.find(|(_, rest)| has_bytes(rest)) {
            Some((name, _)) => (name, if name == log { offset } else { 0 }, true),
            None => (log, offset, false),
        };
        Some(Unproven { batch, log: log.clone(), offset, remains })
    }

    fn is_intact(&self, place: std::ops::Range<usize>, log: &str, changes: &Changes) -> bool {
        match changes.get(log) {
            None => true,
            Some(None) => false,
            Some(Some(content)) => content.get(place.clone()) == self.specimen.files[log].get(place),
        }
    }
}

/// Whether there is more than zeros.
fn has_bytes(content: &[u8]) -> bool {
    content.iter().any(|&byte| byte != 0)
}

/// An error must lead to the damage.
fn names_a_file(error: &Error) -> Result<(), String> {
    match error {
        Error::Corruption { .. } | Error::UnsupportedFormat { .. } | Error::Io { .. } | Error::NotADatabase { .. } => {
            Ok(())
        }
        other => Err(format!("an error that names no file: {other}")),
    }
}

/// Every key alone, and all keys in both directions. What is read must be right; answers the errors in between.
fn read_everything<'a>(database: &Database, expected: impl Fn(&str) -> &'a Entries) -> Result<Vec<Error>, String> {
    let mut errors = Vec::new();
    for (index, name) in database.tree_names().iter().enumerate() {
        let (tree, expected) = (TreeId(index as u32), expected(name));
        for key in history::keys() {
            match database.get(tree, &key) {
                Ok(found) if found.as_ref() == expected.get(&key) => {}
                Ok(found) => return Err(format!("{name} {key:?}: found {found:?}, expected {:?}", expected.get(&key))),
                Err(error) => errors.push(error),
            }
        }
        errors.extend(read_in_order(database, tree, Direction::Forward, expected.iter())?);
        errors.extend(read_in_order(database, tree, Direction::Reverse, expected.iter().rev())?);
    }
    Ok(errors)
}

/// Entries up to the first error must be the first of those expected.
fn read_in_order<'a>(
    database: &Database,
    tree: TreeId,
    direction: Direction,
    mut expected: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
) -> Result<Option<Error>, String> {
    let mut scan = match database.scan(tree, KeyRange::all(), direction) {
        Ok(scan) => scan,
        Err(error) => return Ok(Some(error)),
    };
    loop {
        let found = match scan.next() {
            Ok(found) => found,
            Err(error) => return Ok(Some(error)),
        };
        let expected = expected.next().map(|(key, value)| (key.as_slice(), value.as_slice()));
        if found != expected {
            return Err(format!("{direction:?}: found {found:?}, expected {expected:?}"));
        }
        if found.is_none() {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::damage::Files;
    use super::*;
    use crate::bench::torture::history::FramePlace;
    use crate::bench::torture::sound_cases;

    /// Or whole classes of damage are not tried.
    #[test]
    fn a_specimen_has_every_kind_of_file_and_the_stranger_the_same() {
        let Specimen { files, foreign, frames, flushed, older, .. } = Specimen::new(Compression::None, 1);
        let lens =
            |files: &Files| files.iter().map(|(name, content)| (name.clone(), content.len())).collect::<Vec<_>>();
        assert_eq!(lens(&files), lens(&foreign));
        let count = |ending: &str| files.keys().filter(|name| name.ends_with(ending)).count();
        assert!(count(".seg") >= 4 && count(".wal") >= 3 && files.contains_key("MANIFEST"), "{:?}", lens(&files));
        assert!(frames.len() >= 3 * count(".wal"), "{frames:?}");
        assert_eq!((flushed, older.len()), (62, 3));
        let bytes: usize = files.values().map(Vec::len).sum();
        assert!(bytes <= 64 << 10, "{bytes} bytes are too many for every bit of them");
    }

    #[test]
    fn a_damaged_file_is_refused_or_changes_no_answer() {
        let cases = sound_cases(|session| {
            session.wanted = 10_000;
            run(session, Some(10_000));
        });
        assert_eq!(cases, 10_000);
    }

    /// Damages that a sample seldom meets: to whole files.
    #[test]
    fn a_file_that_is_missing_stale_foreign_or_swapped_is_refused_or_changes_no_answer() {
        let cases = sound_cases(|session| {
            let specimen = Specimen::new(Compression::None, 1);
            let one_file_whole = |damage: &&Damage| !matches!(damage, Damage::Flipped { .. } | Damage::Cut { .. });
            for damage in &specimen.damages().iter().filter(one_file_whole).collect::<Vec<_>>() {
                for restarted in [false, true] {
                    try_damage(session, &Case { specimen: &specimen, damage, restarted });
                }
            }
        });
        assert!(cases >= 200, "only {cases} cases");
    }

    /// A tool that finds nothing proves nothing.
    #[test]
    fn a_wrong_answer_is_seen() {
        let mut specimen = Specimen::new(Compression::None, 1);
        let damage = Damage::Added { file: "MANIFEST.new".to_owned() };
        Case { specimen: &specimen, damage: &damage, restarted: false }.run().expect("a harmless one");
        specimen.history = Specimen::new(Compression::None, 2).history;
        let text = Case { specimen: &specimen, damage: &damage, restarted: false }.run().expect_err("another history");
        assert!(text.contains("is wrong"), "{text}");
    }

    #[test]
    fn a_lost_batch_that_a_later_frame_proves_is_seen() {
        let mut specimen = Specimen::new(Compression::None, 1);
        let last = specimen.frames.len() - 1;
        let case = |frame: &FramePlace| Damage::Flipped { file: frame.log.clone(), bit: 8 * frame.start };
        let damages: Vec<_> = specimen.frames[..last].iter().map(case).collect();
        let all_well = |specimen: &Specimen| {
            let mut cases = damages.iter().map(|damage| Case { specimen, damage, restarted: true });
            cases.try_for_each(|case| case.run())
        };
        all_well(&specimen).expect("nothing that was synced is dropped");
        // As if the engine had to keep all of it.
        specimen.synced = (1..specimen.history.last()).collect();
        let text = all_well(&specimen).expect_err("it drops what was not synced");
        assert!(text.contains("or an error"), "{text}");
    }
}
