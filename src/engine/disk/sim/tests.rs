//! The simulated disk keeps the rules it is there to enforce: a tool that forgives proves nothing.

use super::state::{ContentLoss, NameLoss};
use super::{AfterFailedSync, CallKind, Fault, PowerLoss, Random, SimDisk, State};
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::{Error, Result};

fn read(file: &dyn DiskFile) -> Result<Vec<u8>> {
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Every content of `name` that some power loss now may leave, over many draws.
fn left(disk: &SimDisk, name: &str) -> Vec<Option<Vec<u8>>> {
    let state = disk.state();
    let losses = PowerLoss::EXTREMES.iter().chain(&PowerLoss::DRAWN);
    let mut left: Vec<_> = losses
        .flat_map(|&loss| (0..50).map(move |seed| (loss, seed)))
        .map(|(loss, seed)| state.after_power_loss(loss, &mut Random::new(seed)).contents().remove(name))
        .collect();
    left.sort();
    left.dedup();
    left
}

#[test]
fn only_what_was_synced_is_sure_to_survive() {
    let disk = SimDisk::new();
    let file = disk.create("file").expect("create");
    file.append(b"one").expect("append");
    assert!(left(&disk, "file").contains(&None), "the name was not synced");
    disk.sync_dir().expect("sync");
    let contents = left(&disk, "file");
    assert!(!contents.contains(&None));
    for content in [&b""[..], b"o", b"on", b"one", b"\0\0\0"] {
        assert!(contents.contains(&Some(content.to_vec())), "{content:?}");
    }
    file.sync().expect("sync");
    assert_eq!(left(&disk, "file"), [Some(b"one".to_vec())]);
}

#[test]
fn a_rename_shows_the_old_file_or_the_new_one_and_a_removal_waits_for_the_directory() {
    let disk = SimDisk::new();
    for (name, content) in [("old", b"1"), ("new", b"2")] {
        let file = disk.create(name).expect("create");
        file.append(content).expect("append");
        file.sync().expect("sync");
    }
    disk.sync_dir().expect("sync");
    disk.rename("new", "old").expect("rename");
    assert_eq!(left(&disk, "old"), [Some(b"1".to_vec()), Some(b"2".to_vec())]);
    disk.sync_dir().expect("sync");
    assert_eq!(left(&disk, "old"), [Some(b"2".to_vec())]);
    assert_eq!(left(&disk, "new"), [None]);
    disk.remove("old").expect("remove");
    assert_eq!(left(&disk, "old"), [None, Some(b"2".to_vec())]);
}

#[test]
fn pages_in_the_middle_can_be_missing() {
    let disk = SimDisk::new();
    let file = disk.create("file").expect("create");
    file.append(&[1; 1000]).expect("append");
    let loss = PowerLoss { names: NameLoss::Nothing, content: ContentLoss::Pages(512) };
    let state = disk.state();
    let hole = (0..50).any(|seed| {
        let content = state.after_power_loss(loss, &mut Random::new(seed)).contents().remove("file");
        content.is_some_and(|content| content[..512] == [0; 512] && content[512..] == [1; 488])
    });
    assert!(hole, "the first page lost, the second kept");
}

#[test]
fn a_removed_file_can_be_read_through_an_open_handle() {
    let disk = SimDisk::new();
    let file = disk.create("file").expect("create");
    file.append(b"one").expect("append");
    disk.remove("file").expect("remove");
    assert_eq!(read(&*file).expect("read"), b"one");
    assert!(disk.open("file").is_err());
    assert!(disk.remove("file").is_err());
}

#[test]
fn after_a_failed_sync_a_later_one_brings_nothing_back() {
    use AfterFailedSync::{CacheKeepsNew, OldComesBack, ReadsFail};
    for after_failed_sync in [CacheKeepsNew, OldComesBack, ReadsFail] {
        let disk = SimDisk::new();
        disk.inject(Fault { after_failed_sync, ..Fault::once(CallKind::Sync, 0) });
        let file = disk.create("file").expect("create");
        disk.sync_dir().expect("sync");
        file.append(b"one").expect("append");
        file.sync().expect_err("injected");
        file.append(b"two").expect("append");
        file.sync().expect("only one was to fail");
        assert_eq!(left(&disk, "file"), [Some(b"\0\0\0two".to_vec())]);
        match (after_failed_sync, read(&*file)) {
            (CacheKeepsNew, Ok(content)) => assert_eq!(content, b"onetwo"),
            (OldComesBack, Ok(content)) => assert_eq!(content, b"\0\0\0two"),
            (ReadsFail, Err(Error::Io { .. })) => {}
            (_, other) => panic!("{after_failed_sync:?}: {other:?}"),
        }
    }
}

#[test]
fn a_fault_strikes_the_call_it_names() {
    let disk = SimDisk::new();
    disk.inject(Fault { ending: ".wal", short: true, ..Fault::once(CallKind::Append, 1) });
    let other = disk.create("other").expect("create");
    let log = disk.create("1.wal").expect("create");
    for _ in 0..3 {
        other.append(b"12345678").expect("no fault here");
    }
    log.append(b"12345678").expect("the first goes well");
    let error = log.append(b"abcdefgh").expect_err("the second does not");
    assert!(error.to_string().contains("could not append to /sim/1.wal"), "{error}");
    log.append(b"!").expect("once is once");
    assert_eq!(read(&*log).expect("read"), b"12345678abcd!");
    assert_eq!(disk.heal(), 1);
}

#[test]
fn one_handle_has_the_lock() {
    let disk = SimDisk::new();
    let lock = disk.lock().expect("free");
    assert!(matches!(disk.clone().lock(), Err(Error::AlreadyOpen { .. })));
    drop(lock);
    disk.lock().expect("free again");
}

#[test]
fn the_trace_leads_to_the_state() {
    let disk = SimDisk::new();
    let file = disk.create("file").expect("create");
    file.append(b"one").expect("append");
    disk.rename("file", "other").expect("rename");
    disk.mark(7);
    let mut replayed = State::default();
    disk.trace().iter().for_each(|call| replayed.apply(call));
    assert_eq!(replayed.contents(), disk.state().contents());
    assert_eq!(disk.trace().len(), 4);
    let restarted = replayed.restarted();
    assert_eq!(restarted.contents(), replayed.contents());
    assert_ne!(restarted.boot_id(), replayed.boot_id());
}

#[test]
fn a_log_has_zeros_behind_its_end_until_there_is_no_room() {
    let disk = SimDisk::new();
    let log = disk.create_log("1.wal").expect("create");
    log.append(&[1; 500]).expect("append");
    let content = read(&*log).expect("read");
    assert!(content.len() > 500 && content[..500] == [1; 500] && content[500..].iter().all(|&byte| byte == 0));
    disk.inject(Fault { error: rustix::io::Errno::NOSPC, ..Fault::once(CallKind::Allocate, 0) });
    log.append(&[2; 500]).expect("it is written without room");
    assert_eq!(read(&*log).expect("read"), [[1; 500], [2; 500]].concat());
    assert!(!disk.was_struck(), "nobody has to hear of it");
    assert_eq!(disk.heal(), 1);
    log.append(b"3").expect("append");
    assert_eq!(log.len().expect("a length"), 1001, "it does not try again");
}

/// Zeros that are on the disk stay, and so does what was synced in front of them.
#[test]
fn what_is_appended_to_synced_room_is_lost_by_the_page() {
    let disk = SimDisk::new();
    let log = disk.create_log("1.wal").expect("create");
    log.append(&[1; 100]).expect("append");
    log.sync().expect("sync");
    disk.sync_dir().expect("sync");
    let room = log.len().expect("a length") as usize;
    log.append(&[2; 60]).expect("append");
    let contents = left(&disk, "1.wal");
    for content in contents.iter().map(|content| content.as_ref().expect("its name was synced")) {
        assert!(content.len() >= room && content[..100] == [1; 100]);
    }
    let lost_in_the_middle = |content: &Option<Vec<u8>>| {
        content.as_ref().is_some_and(|content| content[100..128] == [0; 28] && content[128..160] == [2; 32])
    };
    assert!(contents.iter().any(lost_in_the_middle), "a page is lost, the next one kept");
}
