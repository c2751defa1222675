//! Tests that look at a whole process, or limit it, in a process of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Says to a test that it runs alone, and where.
const ALONE: &str = "PROFILESTORE_TEST_ALONE";

/// Runs a test, named below this module's parent, again in a process that a shell prepares by `before`.
pub(super) fn run_alone(test: &str, before: &str, dir: &Path) {
    let program = std::env::current_exe().expect("it has a path");
    let script = format!("{before} && exec \"$0\" --exact tests::{test} --nocapture --test-threads 1");
    let output = Command::new("sh").args(["-c", &script]).arg(program).env(ALONE, dir).output().expect("there is a sh");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "after {before}: {said}");
}

/// Where to work, in a test that runs alone.
pub(super) fn alone_dir() -> Option<PathBuf> {
    std::env::var_os(ALONE).map(PathBuf::from)
}
