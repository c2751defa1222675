//! Tries to make the engine lose or invent something, for as long as asked, and says what it found.
//!
//! | kind | one case |
//! |---|---|
//! | [`images`] | what a kill or a power loss at one moment of a workload leaves, opened |
//! | [`nested`](images::nested) | the same, at one moment of the opening after such a crash |
//! | [`faults`] | a workload in which one call of the disk fails, once or for ever |
//! | [`model`] | one step of a random list, compared with sorted maps |
//! | [`flips`] | a small database with one damage, from a flipped bit to a file of another database |
//! | [`fuzz`] | bytes handed to something that reads bytes from outside |
//! | [`kill`] | a process that writes profiles to real files, killed; what it left, opened |
//! | `schedules` | threads around one database, which take turns in an order that is drawn; with the feature of that name |
//!
//! All but [`kill`] run on a disk in memory and tell apart what the system had synced from what it had not. A case draws
//! everything from a seed. Seeds are counted up from round to round, so the seed of a violation, given as the first one,
//! tries the same round again; only the order in which the background thread gets its turn is not drawn, but by
//! `schedules`.
//!
//! The tests call the same functions, with a fixed seed and an end they know.

pub(crate) mod faults;
pub(crate) mod flips;
pub(crate) mod fuzz;
pub(crate) mod history;
pub(crate) mod images;
pub(crate) mod kill;
pub(crate) mod model;
#[cfg(feature = "schedules")]
pub(crate) mod schedules;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;

/// Violations after which a kind gives up: more of them say nothing new.
const VIOLATIONS_MAX: u64 = 10;

/// What can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Images,
    Nested,
    Faults,
    Model,
    Flips,
    Fuzz,
    Kill,
    #[cfg(feature = "schedules")]
    Schedules,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Nested => "nested",
            Self::Faults => "faults",
            Self::Model => "model",
            Self::Flips => "flips",
            Self::Fuzz => "fuzz",
            Self::Kill => "kill",
            #[cfg(feature = "schedules")]
            Self::Schedules => "schedules",
        }
    }
}

/// One kind, and how much of it.
pub(crate) struct Request<'a> {
    pub(crate) kind: Kind,
    /// Cases to try; `None` for all there are, which only [`Kind::Flips`] has an end of.
    pub(crate) cases: Option<u64>,
    pub(crate) seed: u64,
    /// An empty directory for [`Kind::Kill`].
    pub(crate) directory: &'a Path,
    /// What [`Kind::Fuzz`] hands bytes to.
    pub(crate) targets: &'a [fuzz::Target],
    /// This program as [`kill::write_until_killed`].
    pub(crate) writer: &'a dyn Fn(&kill::Errand<'_>) -> Command,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Outcome {
    pub(crate) kind: Kind,
    /// Cases that were tried.
    pub(crate) tried: u64,
    /// Cases that went wrong.
    pub(crate) violations: u64,
    /// Seed of the first round.
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
}

/// What is told while it goes on.
pub(crate) enum Told<'a> {
    Tried { cases: u64, of: u64 },
    Violation(&'a Violation),
}

/// A promise that was not kept.
#[derive(Debug)]
pub(crate) struct Violation {
    /// Tries the round again.
    pub(crate) seed: u64,
    pub(crate) case: String,
    /// What was expected and what was found.
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "violation with --seed {}, {}: {}", self.seed, self.case, self.text)
    }
}

/// Tries what is asked for, until it is done, `stop` is set, or too much went wrong.
pub(crate) fn run(request: &Request<'_>, stop: &AtomicBool, tell: &mut dyn FnMut(Told<'_>)) -> Outcome {
    let start = Instant::now();
    let Request { kind, cases, seed, .. } = *request;
    let mut session = Session::new(seed, cases.unwrap_or(u64::MAX), stop, tell);
    match kind {
        Kind::Images => session.rounds(images::round),
        Kind::Nested => session.rounds(images::nested::round),
        Kind::Faults => session.rounds(faults::round),
        Kind::Model => session.rounds(model::round),
        Kind::Flips => flips::run(&mut session, cases),
        Kind::Fuzz => fuzz::run(&mut session, request.targets),
        Kind::Kill => kill::run(&mut session, request.directory, request.writer),
        #[cfg(feature = "schedules")]
        Kind::Schedules => session.rounds(schedules::round),
    }
    let Session { tried, violations, .. } = session;
    Outcome { kind, tried, violations, seed, seconds: start.elapsed().as_secs_f64() }
}

/// Counts cases, and keeps what goes wrong in one from ending the others.
pub(crate) struct Session<'a> {
    /// Of the current round.
    seed: u64,
    wanted: u64,
    tried: u64,
    violations: u64,
    stop: &'a AtomicBool,
    tell: &'a mut dyn FnMut(Told<'_>),
}

impl<'a> Session<'a> {
    pub(crate) fn new(seed: u64, wanted: u64, stop: &'a AtomicBool, tell: &'a mut dyn FnMut(Told<'_>)) -> Self {
        Self { seed, wanted, tried: 0, violations: 0, stop, tell }
    }

    /// One round after the other, each with a seed of its own.
    fn rounds(&mut self, round: impl Fn(&mut Self, u64)) {
        while self.goes_on() {
            round(self, self.seed);
            self.seed = self.seed.wrapping_add(1);
        }
    }

    /// Whether another case is to be tried.
    pub(crate) fn goes_on(&self) -> bool {
        self.tried < self.wanted && self.violations < VIOLATIONS_MAX && !self.stop.load(Ordering::Relaxed)
    }

    /// How many cases are still to be tried.
    fn left(&self) -> u64 {
        self.wanted - self.tried
    }

    /// Tries one case; `None` if it went wrong, which is told.
    fn try_case<T>(&mut self, case: impl FnOnce() -> String, run: impl FnOnce() -> Result<T, String>) -> Option<T> {
        self.try_cases(1, case, run)
    }

    /// Tries several cases at once, of which at most one goes wrong.
    fn try_cases<T>(
        &mut self,
        cases: u64,
        case: impl FnOnce() -> String,
        run: impl FnOnce() -> Result<T, String>,
    ) -> Option<T> {
        let result = caught(run);
        self.tried += cases;
        (self.tell)(Told::Tried { cases: self.tried, of: self.wanted });
        result.map_err(|text| self.report(case(), text)).ok()
    }

    fn report(&mut self, case: String, text: String) {
        self.violations += 1;
        (self.tell)(Told::Violation(&Violation { seed: self.seed, case, text }));
    }
}

/// Runs a case; a panic is a failure like others.
fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or("no message")))
    })
}

/// Cases a test tries, all of which go well.
#[cfg(test)]
pub(crate) fn sound_cases(run: impl FnOnce(&mut Session<'_>)) -> u64 {
    let mut violations = Vec::new();
    let mut keep = |told: Told<'_>| {
        if let Told::Violation(violation) = told {
            violations.push(violation.to_string());
        }
    };
    let stop = AtomicBool::new(false);
    let mut session = Session::new(0, u64::MAX, &stop, &mut keep);
    run(&mut session);
    let tried = session.tried;
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    tried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_violation_and_ten_of_them_are_enough() {
        let mut told = Vec::new();
        let mut keep = |what: Told<'_>| {
            if let Told::Violation(violation) = what {
                told.push(violation.to_string());
            }
        };
        let stop = AtomicBool::new(false);
        let mut session = Session::new(5, 100, &stop, &mut keep);
        session.rounds(|session, seed| {
            session.try_case(|| "sound".to_owned(), || Ok(()));
            session.try_case(|| "case".to_owned(), || -> Result<(), String> { panic!("of seed {seed}") });
        });
        assert_eq!((session.tried, session.violations), (20, 10));
        assert_eq!(told[0], "violation with --seed 5, case: it panicked: of seed 5");
        assert_eq!(told[9], "violation with --seed 14, case: it panicked: of seed 14");
    }

    #[test]
    fn a_stop_ends_the_rounds() {
        let stop = AtomicBool::new(false);
        let mut ignore = |_: Told<'_>| {};
        let mut session = Session::new(0, 100, &stop, &mut ignore);
        session.rounds(|session, seed| {
            session.try_case(String::new, || Ok(()));
            session.stop.store(seed == 2, Ordering::Relaxed);
        });
        assert_eq!(session.tried, 3);
    }
}
