//! The program as a process: what only a process can do, which is to be killed, interrupted and piped.
#![cfg(feature = "cli")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use profilestore::bench::result::{RunResult, Status};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Every phase but the last ones is nearly nothing; the last ones take long.
const SLOW_AT_THE_END: [&str; 14] = [
    "--profiles",
    "1000",
    "--reads",
    "9",
    "--email-reads",
    "9",
    "--queries",
    "0",
    "--updates",
    "9",
    "--post-reads",
    "9",
    "--post-email-reads",
    "9",
];
const LAST_QUICK_PHASE: &str = "post-update lookup by email";
const PATIENCE: Duration = Duration::from_mins(1);

fn profilebench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profilebench"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run of the floor that takes as long as `post_queries` say; its results go below `directory`.
fn slow_run(directory: &TempDir, post_queries: &str, more: &[&str]) -> Command {
    let mut command = profilebench(&SLOW_AT_THE_END);
    command.args(["--engines", "floor", "--post-queries", post_queries, "--out"]).arg(directory.path()).args(more);
    command
}

/// Reads standard error until the slow phases are reached. The rest must be read too, or the child blocks.
fn wait_for_the_slow_phases(child: &mut Child) -> impl BufRead + use<> {
    let mut errors = BufReader::new(child.stderr.take().expect("standard error is piped"));
    let mut line = String::new();
    while !line.contains(LAST_QUICK_PHASE) {
        line.clear();
        assert!(errors.read_line(&mut line).unwrap() > 0, "it ended before the slow phases");
    }
    errors
}

fn finish(child: Child, mut errors: impl BufRead) -> Output {
    let mut stderr = Vec::new();
    errors.read_to_end(&mut stderr).unwrap();
    Output { stderr, ..child.wait_with_output().unwrap() }
}

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

fn child_of(parent: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    children.trim().parse().unwrap_or_else(|_| panic!("expected one child, found {children:?}"))
}

fn is_running(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn result(directory: &Path) -> RunResult {
    serde_json::from_str(&fs::read_to_string(directory.join("result.json")).unwrap()).unwrap()
}

fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_run_has_a_process_and_memory_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let output = profilebench(&["--profiles", "500", "--engines", "all", "--out", out]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error_text(&output));
    for engine in result(directory.path()).engines {
        assert_eq!((engine.status, engine.phases.len()), (Status::Completed, 16), "{}", engine.engine);
        let (peak, baseline) = (engine.peak_memory_bytes.unwrap(), engine.baseline_memory_bytes.unwrap());
        assert!(peak >= baseline && baseline > 0, "{}", engine.engine);
    }
    assert!(!directory.path().join("data").exists(), "stores nobody asked for are removed");
}

#[test]
fn a_timeout_keeps_finished_phases_and_the_others_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let output = slow_run(&directory, "5M", &["--timeout", "4", "--repeat", "2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", error_text(&output));
    let engines = result(directory.path()).engines;
    assert_eq!(engines.len(), 2);
    for engine in engines {
        assert_eq!(engine.status, Status::Timeout);
        assert!(engine.phases.len() >= 12, "{} phases", engine.phases.len());
        assert!(engine.message.unwrap().contains("post-update"));
    }
}

#[test]
fn a_killed_run_fails_and_the_next_completes() {
    let directory = tempfile::tempdir().unwrap();
    let mut parent = slow_run(&directory, "200K", &["--repeat", "2"]).spawn().unwrap();
    let errors = wait_for_the_slow_phases(&mut parent);
    kill(child_of(parent.id()), Signal::KILL);
    let output = finish(parent, errors);
    assert_eq!(output.status.code(), Some(4), "{}", error_text(&output));
    let engines = result(directory.path()).engines;
    assert_eq!([engines[0].status, engines[1].status], [Status::Failed, Status::Completed]);
    assert!(engines[0].phases.len() >= 12);
    assert!(engines[0].message.as_ref().unwrap().contains("signal 9"));
}

#[test]
fn an_interrupted_run_saves_what_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let mut parent = slow_run(&directory, "5M", &["--repeat", "2"]).spawn().unwrap();
    let errors = wait_for_the_slow_phases(&mut parent);
    let child = child_of(parent.id());
    kill(parent.id(), Signal::INT);
    let output = finish(parent, errors);
    assert_eq!(output.status.code(), Some(130), "{}", error_text(&output));
    let engines = result(directory.path()).engines;
    assert_eq!([engines[0].status, engines[1].status], [Status::Interrupted; 2]);
    assert!(engines[0].phases.len() >= 12 && engines[1].phases.is_empty());
    assert!(!is_running(child));
    assert!(!directory.path().join("data").exists());
}

#[test]
fn a_child_ends_with_its_parent_and_the_next_run_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut parent = slow_run(&directory, "5M", &[]).spawn().unwrap();
    let errors = wait_for_the_slow_phases(&mut parent);
    let child = child_of(parent.id());
    kill(parent.id(), Signal::KILL);
    finish(parent, errors);
    let start = Instant::now();
    while is_running(child) {
        assert!(start.elapsed() < PATIENCE, "the child goes on without its parent");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(directory.path().join("data/floor").exists(), "a killed run leaves its stores");
    let output = slow_run(&directory, "1", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error_text(&output));
    assert!(!directory.path().join("data").exists());
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    for arguments in [["engines"], ["--help"]] {
        let mut child = profilebench(&arguments).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), error_text(&output).as_str()), (Some(0), ""));
    }
}

#[test]
fn exit_codes_and_sentences_are_those_of_the_help() {
    for (arguments, code, part) in [
        (&["--engines", "nope"][..], 2, "choose from"),
        (&["--profiles", "-3"], 2, "--profiles"),
        (&["--engines", "floor", "--durability", "sync"], 6, "does not offer"),
        (&["--engines", "floor", "--data", "/", "--clean"], 6, "root of the file system"),
    ] {
        let output = profilebench(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", error_text(&output));
        assert!(error_text(&output).contains(part), "{arguments:?}: {}", error_text(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_child_without_a_request_says_so() {
    let mut child = profilebench(&["child"]).stdin(Stdio::null()).spawn().unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(errors.contains("expected one request as JSON"), "{errors}");
}
