//! `profilebench torture`: tries each kind in turn, and tells what came out as one line of JSON for each.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::bench::directory::{DataDirectory, Refusal};
use crate::bench::environment;
use crate::bench::torture::kill::{self, Errand};
use crate::bench::torture::{self, Kind, Outcome, Request, Told};

use super::args::{TortureArguments, WriterArguments};
use super::exit::{self, Exit, Refused};
use super::fuzz::TARGETS;
use super::progress::{Progress, Style};
use super::{Terminal, interrupt};

/// Directory below `--dir` for the database that processes are killed over.
const STORE: &str = "kill";

/// Tries what the options ask for.
pub(super) fn run(options: &TortureArguments, terminal: &mut Terminal) -> Result<Exit> {
    if options.schedules.is_some() && cfg!(not(feature = "schedules")) {
        let reason = "this build cannot draw schedules; build with `cargo build --release --features schedules`";
        return Err(Refused(reason.to_owned()).into());
    }
    let seed = options.seed.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()));
    if options.seed.is_none() {
        writeln!(terminal.err, "seed {seed}")?;
    }
    if environment::DEBUG_BUILD {
        writeln!(terminal.err, "This is a debug build, which is slow; build with --release to try more")?;
    }
    let stop = interrupt::watch();
    let mut exit = Exit::Done;
    for (kind, cases) in options.kinds() {
        let outcome = try_kind(kind, cases, seed, options.dir.as_deref(), stop, terminal)?;
        exit::unless_closed(tell(&outcome, terminal))?;
        exit = exit.or_worse(if outcome.violations > 0 { Exit::EngineFailed } else { Exit::Done });
        if stop.load(Ordering::Relaxed) {
            return Ok(exit.or_worse(Exit::Interrupted));
        }
    }
    Ok(exit)
}

/// The hidden command: writes until it is killed.
pub(super) fn write(options: &WriterArguments, terminal: &mut Terminal) -> Result<Exit> {
    let errand = Errand { directory: &options.dir, seed: options.seed, first: options.first };
    kill::write_until_killed(&errand, terminal.out)?;
    Ok(Exit::Done)
}

fn tell(outcome: &Outcome, terminal: &mut Terminal) -> Result<()> {
    Ok(writeln!(terminal.out, "{}", serde_json::to_string(outcome).context("could not write the outcome as JSON")?)?)
}

fn try_kind(
    kind: Kind,
    cases: Option<u64>,
    seed: u64,
    dir: Option<&Path>,
    stop: &AtomicBool,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let mut attempt = |directory: &Path| -> Result<Outcome> {
        let program = std::env::current_exe().context("could not find the program's own file")?;
        let writer = |errand: &Errand<'_>| writer(&program, errand);
        let request = Request { kind, cases, seed, directory, targets: TARGETS, writer: &writer };
        Ok(follow(&request, stop, terminal))
    };
    if kind != Kind::Kill {
        return attempt(Path::new(""));
    }
    let mut data = prepare(dir)?;
    let outcome = attempt(&data.fresh(STORE)?)?;
    // What went wrong can be looked at.
    if outcome.violations == 0 {
        data.remove()?;
    }
    Ok(outcome)
}

fn prepare(dir: Option<&Path>) -> Result<DataDirectory> {
    let temporary = || std::env::temp_dir().join(format!("profilebench-torture-{}", std::process::id()));
    let path = dir.map_or_else(temporary, PathBuf::from);
    DataDirectory::prepare(&path, false).map_err(|refusal| match refusal {
        Refusal::NotEmpty { path } => {
            Refused(format!("{} holds the database of an earlier run; name another directory", path.display())).into()
        }
        other => other.into(),
    })
}

/// This program once more, to be killed.
fn writer(program: &Path, errand: &Errand<'_>) -> Command {
    let mut command = Command::new(program);
    command.arg("torture-writer").arg(errand.directory);
    command.args([format!("--seed={}", errand.seed), format!("--first={}", errand.first)]);
    command
}

/// Shows progress on standard error, and violations as they are found.
fn follow(request: &Request<'_>, stop: &AtomicBool, terminal: &mut Terminal) -> Outcome {
    let style = Style::choose(false, terminal.err_is_screen);
    let mut progress = Progress::new(request.kind.name(), style, &mut *terminal.err);
    progress.start("tried", Some(request.cases.unwrap_or(0)));
    let outcome = torture::run(request, stop, &mut |told| match told {
        Told::Tried { cases, of } => progress.advance(cases, of),
        Told::Violation(violation) => progress.complain(violation),
    });
    let Outcome { tried, violations, seconds, .. } = outcome;
    let rate = tried as f64 / seconds;
    progress.line(&format!("{tried} tried, {violations} violations, {seconds:.1} s, {rate:.0}/s"));
    outcome
}
