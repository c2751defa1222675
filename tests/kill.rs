//! Processes with real files that are killed in the middle of their writes, and what is left of them.
#![cfg(feature = "cli")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use profilestore::engine::{Database, Error, Options};
use rustix::process::{Pid, Signal, kill_process_group};

fn profilebench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profilebench"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("killed");
    let output = profilebench(&["torture", "--kill", "200", "--seed", "1", "--dir"]).arg(&directory).output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((&line["kind"], &line["tried"], &line["violations"]), (&"kill".into(), &200.into(), &0.into()));
    assert!(!directory.exists(), "what is sound is removed");
}

#[test]
fn an_interrupt_ends_the_kills_and_is_no_violation() {
    let mut torture = profilebench(&["torture", "--kill", "100K", "--seed", "1"]);
    let torture = torture.process_group(0).spawn().expect("the program starts");
    std::thread::sleep(Duration::from_secs(1));
    kill_process_group(Pid::from_child(&torture), Signal::INT).expect("it runs");
    let output = torture.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!(line["violations"], 0);
}

/// A process that writes until it is killed.
fn start_writer(directory: &Path) -> Child {
    profilebench(&["torture-writer", "--seed", "1", "--first", "1"]).arg(directory).spawn().expect("the program starts")
}

#[test]
fn a_second_owner_is_refused_and_a_killed_one_leaves_no_lock() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("database");
    let database = Database::open(&directory, Options::default()).expect("opens");
    let started = Instant::now();
    match Database::open(&directory, Options::default()) {
        Err(Error::AlreadyOpen { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("expected a refusal, got {:?}", other.err()),
    }
    std::os::unix::fs::symlink(&directory, parent.path().join("link")).expect("a symbolic link");
    assert!(matches!(Database::open(parent.path().join("link"), Options::default()), Err(Error::AlreadyOpen { .. })));
    assert!(started.elapsed() < Duration::from_secs(1));
    database.close().expect("closes");

    let mut writer = start_writer(&directory);
    // Kept, so that the writer does not end because nobody listens.
    let mut output = BufReader::new(writer.stdout.take().expect("it is piped"));
    let mut first_word = String::new();
    output.read_line(&mut first_word).expect("it writes");
    assert_eq!(first_word, "1\n");
    match Database::open(&directory, Options::default()) {
        Err(Error::AlreadyOpen { pid, .. }) => assert_eq!(pid, Some(writer.id())),
        other => panic!("expected a refusal, got {:?}", other.err()),
    }
    writer.kill().expect("it runs");
    writer.wait().expect("it ends");
    Database::open(&directory, Options::default()).expect("what a kill leaves opens");
}
