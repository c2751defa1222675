//! How a log ends: a torn tail is dropped and reported, a hole is refused unless a power loss explains it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustix::io::Errno;

use crate::bench::torture::history::{FramePlace, History, examine, frames, open, tiny};
use crate::engine::disk::Disk;
use crate::engine::disk::sim::{AfterFailedSync, CallKind, Fault, PowerLoss, Random, SimDisk, State};
use crate::engine::{Database, Durability, Error, Options};

/// Nothing is flushed unless it is asked for.
fn roomy() -> Options {
    Options { delta_bytes: 64 << 20, ..tiny() }
}

/// A database that was killed, with everything in its logs.
struct Killed {
    left: State,
    history: History,
    /// Where each batch is.
    frames: Vec<FramePlace>,
}

impl Killed {
    /// One log with one frame for each of `classes`.
    fn in_one_log(classes: &[Durability]) -> Self {
        let (disk, database, mut history) = new_database();
        write(&database, &mut history, classes);
        let left = disk.state();
        drop(database);
        Self { left, history, frames: frames(&disk) }
    }

    /// Several logs: flushes are held, so that every seal leaves its log behind.
    fn in_several_logs(batches: usize) -> Self {
        let (disk, history) = (SimDisk::new(), History::new());
        let options = Options { sealed_max: 64, ..tiny() };
        let database = open(&disk, &options).expect("opens");
        disk.hold(CallKind::Create, ".seg");
        let history = trees_and(&database, history, &vec![Durability::Process; batches]);
        let left = disk.state();
        disk.release();
        drop(database);
        Self { left, history, frames: frames(&disk) }
    }

    fn log(&self, batch: usize) -> (String, Vec<u8>) {
        let name = self.frames[batch - 1].log.clone();
        let content = self.left.contents().remove(&name).expect("the log is there");
        (name, content)
    }

    /// The same with one bit of a batch's frame flipped, at a byte of the frame.
    fn with_damage(&self, batch: usize, byte: usize) -> State {
        let (name, mut content) = self.log(batch);
        content[self.frames[batch - 1].start + byte] ^= 0x10;
        let mut left = self.left.clone();
        left.overwrite(&name, content);
        left
    }

    fn with_log(&self, batch: usize, change: impl FnOnce(&mut Vec<u8>)) -> State {
        let (name, mut content) = self.log(batch);
        change(&mut content);
        let mut left = self.left.clone();
        left.overwrite(&name, content);
        left
    }

    fn is_in(&self, left: &State, number: u64) {
        examine(left, &roomy(), &self.history, number..=number).expect("the state before the damage");
    }

    /// Opening fails, names the frame of `batch`, and changes nothing.
    fn is_refused_at(&self, left: &State, batch: usize) {
        let FramePlace { log, start, .. } = &self.frames[batch - 1];
        let disk = SimDisk::from_state(left.clone());
        let error = Database::open_on(Arc::new(disk.clone()), roomy()).err().expect("damage is refused");
        match &error {
            Error::Corruption { file, offset, .. } => assert_eq!((file, *offset), (log, *start as u64), "{error}"),
            other => panic!("expected damage at {start} of {log}, got: {other}"),
        }
        assert_eq!(disk.state().contents(), left.contents(), "a refusal changes nothing");
    }

    /// Opening drops everything from the frame of `batch` on, and says so.
    fn is_dropped_from(&self, left: &State, batch: usize) {
        let FramePlace { log, start, .. } = &self.frames[batch - 1];
        let disk = SimDisk::from_state(left.clone());
        let database = open(&disk, &roomy()).expect("opens");
        assert_eq!(database.recovery().dropped_from, Some((log.clone(), *start as u64)));
        assert!(database.recovery().dropped_bytes > 0);
        assert_eq!(database.recovery().replayed_batches, batch as u64 - 1);
        drop(database);
        self.is_in(left, batch as u64 - 1);
    }
}

fn new_database() -> (SimDisk, Database, History) {
    let disk = SimDisk::new();
    let database = open(&disk, &roomy()).expect("opens");
    let history = trees_and(&database, History::new(), &[]);
    (disk, database, history)
}

fn trees_and(database: &Database, mut history: History, classes: &[Durability]) -> History {
    for name in ["a", "b"] {
        database.tree(name).expect("a new tree");
    }
    write(database, &mut history, classes);
    history
}

fn write(database: &Database, history: &mut History, classes: &[Durability]) {
    for &class in classes {
        let batch = history.draw(&mut Random::new(history.last()), &["a", "b"]);
        database.commit_with(&batch, class).expect("nothing fails here");
    }
}

const PROCESS: [Durability; 5] = [Durability::Process; 5];

#[test]
fn a_tail_torn_at_any_byte_is_dropped_and_reported() {
    let killed = Killed::in_one_log(&PROCESS);
    let FramePlace { start, end, .. } = killed.frames[4];
    for cut in start..=end {
        let left = killed.with_log(5, |log| log.truncate(cut));
        for left in [left.clone(), left.restarted()] {
            match cut - start {
                0 => killed.is_in(&left, 4),
                _ if cut == end => killed.is_in(&left, 5),
                _ => killed.is_dropped_from(&left, 5),
            }
        }
    }
}

#[test]
fn damage_in_the_last_frame_drops_it_alone() {
    let killed = Killed::in_one_log(&PROCESS);
    let FramePlace { start, end, .. } = killed.frames[4];
    for byte in 0..end - start {
        killed.is_dropped_from(&killed.with_damage(5, byte), 5);
    }
}

#[test]
fn damage_before_a_good_frame_is_refused_while_the_system_did_not_restart() {
    let killed = Killed::in_one_log(&PROCESS);
    for batch in 1..=4 {
        let FramePlace { start, end, .. } = killed.frames[batch - 1];
        for byte in 0..end - start {
            killed.is_refused_at(&killed.with_damage(batch, byte), batch);
        }
    }
}

#[test]
fn a_hole_in_what_was_never_synced_ends_the_log_after_a_restart() {
    let killed = Killed::in_one_log(&PROCESS);
    for batch in 1..=4 {
        killed.is_dropped_from(&killed.with_damage(batch, 20).restarted(), batch);
    }
}

/// A restart explains holes in the logs written before it, not in those written since.
#[test]
fn a_hole_in_what_was_written_since_the_restart_is_refused() {
    let disk = SimDisk::from_state(Killed::in_one_log(&[]).left.restarted());
    let database = open(&disk, &roomy()).expect("opens");
    let mut history = History::new();
    write(&database, &mut history, &PROCESS);
    let killed = Killed { left: disk.state(), history, frames: frames(&disk) };
    drop(database);
    killed.is_refused_at(&killed.with_damage(2, 20), 2);
    killed.is_dropped_from(&killed.with_damage(2, 20).restarted(), 2);
}

#[test]
fn a_hole_in_what_a_later_frame_calls_synced_is_refused_after_a_restart_too() {
    use Durability::{Process, Sync};
    let killed = Killed::in_one_log(&[Process, Process, Process, Sync, Process, Process]);
    for batch in 1..=4 {
        killed.is_refused_at(&killed.with_damage(batch, 20).restarted(), batch);
    }
    killed.is_dropped_from(&killed.with_damage(5, 20).restarted(), 5);
    killed.is_dropped_from(&killed.with_damage(6, 20).restarted(), 6);
}

#[test]
fn garbage_behind_the_last_frame_is_dropped_and_zeros_are_room() {
    let killed = Killed::in_one_log(&PROCESS);
    let end = killed.frames[4].end;
    for len in [1, 7, 39, 40, 41, 512, 5000] {
        for tail in [vec![0; len], vec![0xFF; len], [Random::new(len as u64).bytes(len - 1), vec![1]].concat()] {
            let left = killed.with_log(5, |log| log.splice(end.., tail.iter().copied()).for_each(drop));
            for left in [left.clone(), left.restarted()] {
                killed.is_in(&left, 5);
                let disk = SimDisk::from_state(left);
                let database = open(&disk, &roomy()).expect("opens");
                let dropped = if tail[len - 1] == 0 { 0 } else { len as u64 };
                assert_eq!(database.recovery().dropped_bytes, dropped);
            }
        }
    }
}

#[test]
fn a_killed_process_leaves_unused_room_and_nothing_is_dropped() {
    let killed = Killed::in_one_log(&PROCESS);
    let (_, log) = killed.log(5);
    assert!(log.len() > killed.frames[4].end, "or this tests nothing");
    for left in [killed.left.clone(), killed.left.restarted()] {
        let disk = SimDisk::from_state(left);
        let database = open(&disk, &roomy()).expect("opens");
        let report = database.recovery();
        assert_eq!((report.replayed_batches, report.dropped_bytes, &report.dropped_from), (5, 0, &None));
    }
}

/// The frames of an older life of the file.
#[test]
fn old_frames_of_another_log_behind_the_last_frame_are_no_hole() {
    let killed = Killed::in_several_logs(60);
    let (last, end) = killed.frames.last().map(|frame| (killed.frames.len(), frame.end)).expect("there are frames");
    let (_, old) = killed.log(1);
    let left = killed.with_log(last, |log| {
        log.truncate(end);
        log.extend_from_slice(&old);
    });
    killed.is_in(&left, last as u64);
    killed.is_in(&left.restarted(), last as u64);
}

#[test]
fn a_disk_without_room_for_a_log_is_written_to_until_it_is_full() {
    let (disk, database, mut history) = new_database();
    let nospc = |kind, after| Fault { error: Errno::NOSPC, ending: ".wal", ..Fault::for_ever(kind, after) };
    write(&database, &mut history, &[Durability::Process; 3]);
    disk.inject(nospc(CallKind::Allocate, 0));
    write(&database, &mut history, &[Durability::Process, Durability::Sync, Durability::Process]);
    disk.inject(nospc(CallKind::Append, 0));
    let mut refused = history.clone();
    let batch = refused.draw(&mut Random::new(0), &["a", "b"]);
    assert!(matches!(database.commit(&batch), Err(Error::Io { .. })));
    assert!(matches!(database.commit(&batch), Err(Error::Poisoned { .. })));
    let left = disk.state();
    drop(database);
    examine(&left, &roomy(), &history, 6..=6).expect("what was acknowledged is there");
}

#[test]
fn after_a_failed_sync_of_a_log_with_room_nothing_more_is_acknowledged() {
    for after_failed_sync in [AfterFailedSync::CacheKeepsNew, AfterFailedSync::OldComesBack] {
        let (disk, database, mut history) = new_database();
        write(&database, &mut history, &[Durability::Process, Durability::Sync, Durability::Process]);
        disk.inject(Fault { ending: ".wal", after_failed_sync, ..Fault::once(CallKind::Sync, 0) });
        let batch = history.draw(&mut Random::new(0), &["a", "b"]);
        assert!(matches!(database.commit_with(&batch, Durability::Sync), Err(Error::Io { .. })));
        for durability in [Durability::None, Durability::Process, Durability::Sync] {
            assert!(matches!(database.commit_with(&batch, durability), Err(Error::Poisoned { .. })));
        }
        let left = disk.state();
        drop(database);
        for loss in PowerLoss::EXTREMES {
            let left = left.after_power_loss(loss, &mut Random::new(0));
            examine(&left, &roomy(), &history, 2..=4).expect("what was synced is there");
        }
    }
}

#[test]
fn a_frame_that_stands_elsewhere_in_the_log_is_no_frame() {
    let killed = Killed::in_one_log(&PROCESS);
    let FramePlace { start, end, .. } = killed.frames[4];
    let copied = killed.with_log(5, |log| log.extend_from_within(start..end));
    killed.is_in(&copied, 5);
}

/// Not the newest alone.
#[test]
fn every_log_is_replayed() {
    let killed = Killed::in_several_logs(60);
    let last = killed.history.last();
    let logs: BTreeSet<_> = killed.frames.iter().map(|frame| &frame.log).collect();
    assert!(logs.len() >= 3, "{} logs", logs.len());
    killed.is_in(&killed.left, last);
    killed.is_in(&killed.left.restarted(), last);
}

#[test]
fn a_log_missing_in_the_middle_is_refused_unless_a_restart_explains_it() {
    let killed = Killed::in_several_logs(60);
    let first = killed.frames[0].log.clone();
    let second = killed.frames.iter().find(|frame| frame.log != first).expect("several logs").log.clone();
    let lost = killed.frames.iter().position(|frame| frame.log == second).expect("it is there") + 1;
    let next = killed.frames.iter().position(|frame| frame.log > second).expect("a third log") + 1;
    let mut left = killed.left.clone();
    left.lose(&second);
    killed.is_refused_at(&left, next);
    killed.is_in(&left.restarted(), lost as u64 - 1);
}

/// A log need not be the newest to be torn: the next one may just have been made.
#[test]
fn a_torn_log_with_an_empty_one_behind_it_is_repaired() {
    let killed = Killed::in_one_log(&PROCESS);
    let torn = killed.with_log(5, |log| log.truncate(killed.frames[4].end - 3));
    let disk = SimDisk::from_state(torn);
    let number: u64 = killed.frames[4].log[..20].parse().expect("the name is a number");
    disk.create(&format!("{:020}.wal", number + 5)).expect("create");
    killed.is_dropped_from(&disk.state(), 5);
    killed.is_dropped_from(&disk.state().restarted(), 5);
}

/// Appended behind the torn tail, it would be lost with the next crash.
#[test]
fn what_is_written_after_a_torn_tail_was_dropped_stays() {
    let killed = Killed::in_one_log(&[Durability::Sync, Durability::Process]);
    let FramePlace { start, end, .. } = killed.frames[1];
    for cut in start..end {
        let disk = SimDisk::from_state(killed.with_log(2, |log| log.truncate(cut)));
        let database = open(&disk, &roomy()).expect("opens");
        let mut history = killed.history.up_to(1);
        write(&database, &mut history, &[Durability::Sync, Durability::Sync]);
        let left = disk.state().after_power_loss(PowerLoss::EXTREMES[0], &mut Random::new(0));
        examine(&left, &roomy(), &history, 3..=3).expect("A, C and D are there");
    }
}

#[test]
fn the_directory_of_something_else_is_left_alone() {
    let disk = SimDisk::new();
    disk.create("notes.txt").expect("create").append(b"mine").expect("append");
    let before = disk.state().contents();
    let error = Database::open_on(Arc::new(disk.clone()), roomy()).err().expect("refused");
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    assert_eq!(disk.state().contents(), before);
}

#[test]
fn a_database_without_its_manifest_is_refused_and_left_alone() {
    let killed = Killed::in_one_log(&PROCESS);
    let mut left = killed.left.clone();
    left.lose("MANIFEST");
    let disk = SimDisk::from_state(left.clone());
    let error = Database::open_on(Arc::new(disk.clone()), roomy()).err().expect("refused");
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    assert_eq!(disk.state().contents(), left.contents());
}

/// What was committed without a log and flushed has a number, and no frame. The first frames of the next session were said
/// to come after a synced one, that number, which is no frame's: a power loss that took the first one of them looked like
/// damage, and the database did not open.
#[test]
fn a_torn_first_frame_behind_commits_without_a_log_is_dropped() {
    let disk = SimDisk::new();
    let (database, mut history) = {
        let database = open(&disk, &roomy()).expect("opens");
        let history = trees_and(&database, History::new(), &[Durability::Process, Durability::None, Durability::None]);
        database.close().expect("closes");
        drop(database);
        (open(&disk, &roomy()).expect("opens"), history)
    };
    write(&database, &mut history, &[Durability::Process; 3]);
    let left = disk.state();
    drop(database);
    let mut random = Random::new(1);
    for loss in PowerLoss::EXTREMES.iter().chain(&PowerLoss::DRAWN) {
        for _ in 0..40 {
            let left = left.after_power_loss(*loss, &mut random);
            examine(&left, &roomy(), &history, 3..=6).unwrap_or_else(|text| panic!("{loss:?}: {text}"));
        }
    }
}
