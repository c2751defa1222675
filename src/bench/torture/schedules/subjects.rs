//! What threads do at the same time: one subject for each place where they meet in the engine.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::scene::{Scene, Written};
use crate::bench::torture::history::tiny;
use crate::engine::disk::sim::{CallKind, Fault, Random};
use crate::engine::{Database, Durability, Error, Options};

/// A few threads around one database.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) options: fn(&mut Random) -> Options,
    /// Returns when its threads are done.
    pub(super) act: fn(&Scene, &mut Random) -> Result<(), String>,
}

pub(super) const SUBJECTS: &[Subject] = &[
    Subject { name: "syncs that writers share", options: roomy, act: share_syncs },
    Subject { name: "turns and transactions", options: roomy, act: take_turns },
    Subject { name: "sealing against writers and readers", options: cramped, act: seal },
    Subject { name: "publishing versions against snapshots", options: cramped, act: publish },
    Subject { name: "snapshots against what is dropped", options: cramped, act: hold_snapshots },
    Subject { name: "removing logs against flushes and writers", options: cramped, act: remove_logs },
    Subject { name: "settling against writers", options: cramped, act: settle },
    Subject { name: "closing against everything", options: cramped, act: close },
    Subject { name: "a failing call while others wait", options: cramped, act: fail },
    Subject { name: "resuming twice", options: cramped, act: resume },
    Subject { name: "closing while somebody resumes", options: cramped, act: close_while_resuming },
    Subject { name: "flushes that wait for one another", options: cramped, act: flush_together },
];

/// A delta takes all that a case writes, mostly.
fn roomy(random: &mut Random) -> Options {
    let cramped = cramped(random);
    if random.once_in(4) { cramped } else { Options { delta_bytes: 64 << 10, ..cramped } }
}

/// Deltas are full after one batch or a few, and runs are merged and files closed as often as can be.
fn cramped(random: &mut Random) -> Options {
    Options {
        delta_bytes: 1 << (10 + random.below(4)),
        memory_bytes: 0,
        runs_max: 1 + random.below(3),
        sealed_max: 1 + random.below(2),
        open_files_max: 1 + random.below(3),
        ..tiny()
    }
}

/// What a thread does.
type Act = Box<dyn FnOnce(&Scene) -> Result<(), String> + Send>;

/// Does all of it at the same time, and tells what the first of them says that was not happy.
fn together(scene: &Scene, acts: Vec<Act>) -> Result<(), String> {
    let start = |act: Act| {
        let scene = scene.clone();
        shuttle::thread::spawn(move || act(&scene))
    };
    let threads: Vec<_> = acts.into_iter().map(start).collect();
    let done: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a panic ends the schedule")).collect();
    done.into_iter().collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands on")]
fn told(error: Error) -> String {
    format!("failed for no reason: {error}")
}

fn draw_class(random: &mut Random) -> Durability {
    *random.pick(&[Durability::Process, Durability::Sync])
}

/// Writes so many batches, of classes that are drawn, and reads each back.
fn writer(writer: u8, numbers: RangeInclusive<u8>, random: &mut Random) -> Act {
    let plan: Vec<_> = numbers.map(|number| (Written { writer, number }, draw_class(random))).collect();
    Box::new(move |scene| {
        for (written, durability) in plan {
            scene.write(written, durability).map_err(told)?;
            scene.read_back(written)?;
        }
        Ok(())
    })
}

fn flusher(times: usize) -> Act {
    Box::new(move |scene| (0..times).try_for_each(|_| scene.harden(Database::flush).map_err(told)))
}

fn settler(times: usize) -> Act {
    Box::new(move |scene| (0..times).try_for_each(|_| scene.harden(Database::settle).map_err(told)))
}

/// Takes one snapshot after another: they never go back.
fn reader(times: usize) -> Act {
    Box::new(move |scene| {
        let mut newest = 0;
        for _ in 0..times {
            let sequence = scene.look(|| Ok(()))?;
            if sequence < newest {
                return Err(format!("a snapshot shows {sequence} after one that showed {newest}"));
            }
            newest = sequence;
        }
        Ok(())
    })
}

fn share_syncs(scene: &Scene, random: &mut Random) -> Result<(), String> {
    let writers = (0..3).map(|number| writer(number, 1..=3, random)).collect();
    together(scene, writers)
}

/// Every turn reads what another one wrote, and nobody else reads that: no change is lost.
fn take_turns(scene: &Scene, random: &mut Random) -> Result<(), String> {
    let read = Arc::new(Mutex::new(Vec::new()));
    let turns = |writer: u8, random: &mut Random| -> Act {
        let plan: Vec<_> = (1..=3).map(|number| (Written { writer, number }, draw_class(random))).collect();
        let write = if random.once_in(2) { Scene::write_in_turn } else { Scene::write_in_transaction };
        let read = Arc::clone(&read);
        Box::new(move |scene| {
            for (written, durability) in plan {
                let before = write(scene, written, durability).map_err(told)?;
                scene.read_back(written)?;
                read.lock().unwrap_or_else(PoisonError::into_inner).push(before);
            }
            Ok(())
        })
    };
    let mut acts: Vec<_> = (0..3).map(|writer| turns(writer, random)).collect();
    acts.push(flusher(1));
    together(scene, acts)?;
    let mut read = read.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let all = read.len();
    read.sort_unstable();
    read.dedup();
    if read.len() == all {
        Ok(())
    } else {
        Err(format!("{} of {all} turns read the same as another", all - read.len()))
    }
}

fn seal(scene: &Scene, random: &mut Random) -> Result<(), String> {
    together(scene, vec![writer(0, 1..=4, random), writer(1, 1..=3, random), flusher(2), reader(2)])
}

fn publish(scene: &Scene, random: &mut Random) -> Result<(), String> {
    together(scene, vec![writer(0, 1..=4, random), flusher(2), reader(3), reader(2)])
}

/// A snapshot outlives a flush and a settle of what was written after it.
fn hold_snapshots(scene: &Scene, random: &mut Random) -> Result<(), String> {
    let overwrites = writer(0, 1..=3, random);
    let holder: Act = Box::new(move |scene| {
        let meanwhile = || overwrites(scene).and_then(|()| flusher(1)(scene)).and_then(|()| settler(1)(scene));
        scene.look(meanwhile).map(drop)
    });
    together(scene, vec![holder, writer(1, 1..=2, random), reader(2)])
}

fn remove_logs(scene: &Scene, random: &mut Random) -> Result<(), String> {
    together(scene, vec![writer(0, 1..=4, random), writer(1, 1..=4, random), flusher(3)])
}

fn settle(scene: &Scene, random: &mut Random) -> Result<(), String> {
    together(scene, vec![writer(0, 1..=4, random), settler(2), settler(1), reader(1)])
}

/// What comes too late is refused; what was taken stays, and so does what a snapshot shows.
fn close(scene: &Scene, random: &mut Random) -> Result<(), String> {
    let or_closed = |done: Result<(), String>| match done {
        Err(text) if text == told(Error::Closed) => Ok(()),
        done => done,
    };
    let late = |act: Act| -> Act { Box::new(move |scene| or_closed(act(scene))) };
    let closer = || -> Act { Box::new(|scene| scene.harden(Database::close).map_err(told)) };
    let watcher: Act = Box::new(move |scene| scene.look(|| closer()(scene)).map(drop));
    let writers = [writer(0, 1..=4, random), writer(1, 1..=3, random)];
    let background = if random.once_in(2) { flusher(2) } else { settler(1) };
    together(scene, writers.into_iter().chain([background]).map(late).chain([closer(), watcher]).collect())
}

/// Whoever hears of the failure stops; nobody hears of one that did not happen.
fn fail(scene: &Scene, random: &mut Random) -> Result<(), String> {
    use CallKind::{Append, Create, Open, Read, Remove, Rename, Sync, SyncDir};
    let kind = *random.pick(&[Append, Create, Open, Read, Remove, Rename, Sync, SyncDir, Sync, Append]);
    let ending = *random.pick(&["", "", ".wal", ".seg"]);
    let fault = if random.once_in(2) { Fault::once(kind, 0) } else { Fault::for_ever(kind, 0) };
    let fault = Fault { ending, after: random.below(12), short: random.once_in(2), ..fault };
    scene.disk().inject(fault);
    let until_it_fails = |act: Act| -> Act {
        Box::new(move |scene| match act(scene) {
            Err(text) if !scene.disk().was_struck() || text.contains("panicked") => Err(text),
            Err(text) if text.contains("/sim") => Ok(()),
            done => done,
        })
    };
    let acts = [writer(0, 1..=4, random), writer(1, 1..=3, random), flusher(2), reader(1)];
    let settles = random.once_in(3).then(|| settler(1));
    together(scene, acts.into_iter().chain(settles).map(until_it_fails).collect())
}

/// Background work fails; then its cause is gone.
fn fail_in_background(scene: &Scene, random: &mut Random) -> Result<(), String> {
    let kind = *random.pick(&[CallKind::Create, CallKind::Append, CallKind::Sync]);
    scene.disk().inject(Fault { ending: ".seg", after: random.below(3), ..Fault::for_ever(kind, 0) });
    let first = Written { writer: 0, number: 1 };
    // Whatever the background thread was at, a settle comes after it.
    let failed = scene.write(first, Durability::Process);
    let failed = failed.and_then(|()| scene.harden(Database::flush)).and_then(|()| scene.harden(Database::settle));
    let was_struck = scene.disk().heal() > 0;
    if was_struck != matches!(failed, Err(Error::Background { .. })) {
        return Err(format!("whether a call failed is {was_struck}, and those who waited got {failed:?}"));
    }
    Ok(())
}

/// Two threads say at once that the cause of a failure is gone.
fn resume(scene: &Scene, random: &mut Random) -> Result<(), String> {
    fail_in_background(scene, random)?;
    let resumer = || -> Act { Box::new(|scene| scene.database().resume().map_err(told)) };
    let refused_or_taken: Act =
        Box::new(|scene| match scene.write(Written { writer: 1, number: 1 }, Durability::Sync) {
            Ok(()) | Err(Error::Background { .. }) => Ok(()),
            Err(error) => Err(told(error)),
        });
    together(scene, vec![resumer(), resumer(), refused_or_taken, reader(1)])?;
    writer(0, 2..=3, random)(scene)?;
    flusher(1)(scene)
}

/// One resumes what failed, one closes, and one writes on. What was acknowledged is there whatever the close is told; it is
/// told nothing wrong after a resume that was done; and nothing that comes after it is taken.
fn close_while_resuming(scene: &Scene, random: &mut Random) -> Result<(), String> {
    let is_refused = |error: &Error| matches!(error, Error::Background { .. } | Error::Closed);
    let or_refused =
        move |done: Result<(), Error>| done.or_else(|error| if is_refused(&error) { Ok(()) } else { Err(told(error)) });
    fail_in_background(scene, random)?;
    let is_resumed = Arc::new(AtomicBool::new(false));
    let was_resumed = Arc::clone(&is_resumed);
    let resumer: Act = Box::new(move |scene| {
        or_refused(scene.database().resume().inspect(|()| is_resumed.store(true, Ordering::Release)))
    });
    let closer: Act = Box::new(move |scene| {
        let must_close = was_resumed.load(Ordering::Acquire);
        let closed = scene.close();
        let stats = scene.database().stats();
        match &closed {
            Ok(()) if stats.sealed + stats.delta_bytes + stats.log_bytes > 0 => {
                return Err(format!("closed with {stats:?}"));
            }
            Err(error) if must_close => return Err(format!("closed after a resume: {error}")),
            _ => {}
        }
        let late = scene.write(Written { writer: 2, number: 1 }, Durability::Process);
        match (late, scene.database().resume()) {
            (Err(write), Err(resume)) if is_refused(&write) && is_refused(&resume) => or_refused(closed),
            told => Err(format!("after a close, a commit and a resume are told {told:?}")),
        }
    });
    let writer: Act = Box::new(move |scene| {
        (1..=3).try_for_each(|number| or_refused(scene.write(Written { writer: 1, number }, Durability::Process)))
    });
    together(scene, vec![resumer, closer, writer, reader(1)])
}

/// As many flushes as there are threads, and a settle among them, with one sealed delta allowed or two.
fn flush_together(scene: &Scene, random: &mut Random) -> Result<(), String> {
    let write_and_flush = |number, random: &mut Random| -> Act {
        let writer = writer(number, 1..=2, random);
        let background = if random.once_in(4) { settler(1) } else { flusher(1) };
        Box::new(move |scene| writer(scene).and_then(|()| background(scene)))
    };
    together(scene, (0..4).map(|number| write_and_flush(number, random)).collect())
}
