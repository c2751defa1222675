//! Hands bytes to everything that reads bytes from outside: seeds, and what becomes of them.
//!
//! A target panics if a promise is broken. Seeds are made by the encoders; what is tried is one of them, or a few changes
//! to one (`mutate.rs`). Targets that check checksums try what they are given twice, as it is and with checksums made
//! right, to get behind them. Coverage guides nothing here; the same targets stand behind `fuzz/`, where it does.

mod mutate;

use std::fmt::Write;
use std::path::PathBuf;

use super::{Session, caught};
use crate::engine::disk::sim::Random;

/// Something that reads bytes from outside.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// What it takes the bytes for.
    pub(crate) takes: &'static str,
    /// Panics if a promise is broken.
    pub(crate) run: fn(&[u8]),
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
}

/// Nothing longer is tried.
const INPUT_BYTES_MAX: usize = 16 << 10;
/// Attempts at making an input shorter that breaks a promise.
const SHORTENINGS_MAX: usize = 300;

/// One input for each target in turn.
pub(crate) fn run(session: &mut Session<'_>, targets: &[Target]) {
    let corpora: Vec<_> = targets.iter().map(|target| (target.seeds)()).collect();
    session.rounds(|session, seed| {
        for (target, corpus) in targets.iter().zip(&corpora) {
            if session.goes_on() {
                try_input(session, target, &draw(&mut Random::new(seed), corpus));
            }
        }
    });
}

fn draw(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = random.pick(corpus).clone();
    for _ in 0..random.below(6) {
        mutate::mutate(random, &mut input, corpus);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// Tries one input. One that breaks a promise is made shorter, and kept in a file.
fn try_input(session: &mut Session<'_>, target: &Target, input: &[u8]) {
    let attempt = |input: &[u8]| {
        caught(|| {
            (target.run)(input);
            Ok(())
        })
    };
    session.try_case(
        || format!("target {}, {}", target.name, target.takes),
        || {
            attempt(input).map_err(|text| {
                let short = shorten(input.to_vec(), |input| attempt(input).is_err());
                let kept =
                    keep(target, &short).map_or_else(String::new, |path| format!(", kept in {}", path.display()));
                format!("{text}\n{} bytes break it{kept}: {}", short.len(), hex(&short))
            })
        },
    );
}

/// Leaves out parts as long as the rest still breaks the promise.
fn shorten(mut input: Vec<u8>, breaks: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut part, mut attempts) = (input.len().div_ceil(2), 0);
    while part > 0 {
        let mut start = 0;
        while start < input.len() && attempts < SHORTENINGS_MAX {
            let mut fewer = input.clone();
            fewer.drain(start..(start + part).min(input.len()));
            attempts += 1;
            if breaks(&fewer) { input = fewer } else { start += part }
        }
        part /= 2;
    }
    input
}

fn keep(target: &Target, input: &[u8]) -> Option<PathBuf> {
    let name = format!("profilebench-fuzz-{}-{:016x}", target.name, xxhash_rust::xxh3::xxh3_64(input));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, input).is_ok().then_some(path)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Tries the files of `corpus`, and then so many other inputs.
#[cfg(test)]
pub(crate) fn replay(session: &mut Session<'_>, target: &Target, corpus: &[Vec<u8>], inputs: u64) {
    for input in corpus {
        try_input(session, target, input);
    }
    let seeds = (target.seeds)();
    for seed in 0..inputs {
        if session.goes_on() {
            session.seed = seed;
            try_input(session, target, &draw(&mut Random::new(seed), &seeds));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::bench::torture::Told;

    #[test]
    fn a_broken_promise_is_told_with_a_short_input_that_breaks_it() {
        let target = Target {
            name: "no-seven",
            takes: "bytes",
            run: |input| assert!(!input.contains(&7), "a seven"),
            seeds: || vec![vec![0; 100], [vec![1; 50], vec![7], vec![2; 50]].concat()],
        };
        let mut told = Vec::new();
        let mut keep = |what: Told<'_>| {
            if let Told::Violation(violation) = what {
                told.push(violation.to_string());
            }
        };
        let stop = AtomicBool::new(false);
        let mut session = Session::new(5, u64::MAX, &stop, &mut keep);
        replay(&mut session, &target, &[], 20);
        let first = told.first().expect("half of the seeds break it");
        assert!(first.contains("target no-seven, bytes: it panicked: a seven\n1 bytes break it, kept in "), "{first}");
        assert!(first.ends_with(": 07"), "{first}");
        let path = first.split("kept in ").nth(1).and_then(|rest| rest.split(": ").next()).expect("it names a file");
        assert_eq!(std::fs::read(path).expect("it is there"), [7]);
        std::fs::remove_file(path).expect("it is there");
    }
}
