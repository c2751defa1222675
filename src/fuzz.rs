//! The targets of fuzzing for programs outside of this crate, which are in `fuzz/`.

use crate::cli::fuzz::TARGETS;

/// Names of all targets.
pub fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|target| target.name)
}

/// Hands bytes to the target of this name.
///
/// # Panics
///
/// If a promise is broken, or there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(input);
}
