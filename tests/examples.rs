//! The examples do what they say: each is run as it was built beside this test, and checks its own answers.

use std::path::PathBuf;
use std::process::Command;

/// Where `cargo test` puts examples: beside the directory of the tests.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let directory = test.ancestors().nth(2).expect("it lies in target/<profile>/deps");
    directory.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

fn run(name: &str) {
    let output = Command::new(built(name)).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}; build it with `cargo build --examples`"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(!output.stdout.is_empty(), "{name} says what it did");
}

#[test]
fn async_service() {
    run("async_service");
}

#[test]
fn jobs() {
    run("jobs");
}

#[test]
fn users() {
    run("users");
}
