//! `profilebench run`: prepare, run each contender, write, weigh.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::bench::dataset::DataSet;
use crate::bench::directory::{DataDirectory, Refusal};
use crate::bench::environment;
use crate::bench::fold::Ending;
use crate::bench::process::{self, Limits, Request};
use crate::bench::result::{EngineResult, RunResult, SCHEMA, Workload};
use crate::report::{self, Verdict};

use super::args::RunArguments;
use super::choice::{self, Entrant, Turn};
use super::exit::{self, Exit};
use super::progress::{Progress, Style};
use super::{Terminal, count, interrupt, size, verify, workload};

/// Directory below `--out` for stores that nobody asked to keep.
const DATA: &str = "data";

/// Runs what the options and the file ask for, one workload after the other.
pub(super) fn run(file: Option<&Path>, mut options: RunArguments, terminal: &mut Terminal) -> Result<Exit> {
    let workloads = workload::workloads(file, &mut options)?;
    let entrants = choice::entrants(options.engines.as_deref(), options.durability)?;
    let mut data = options.data.as_deref().map(|path| DataDirectory::prepare(path, options.clean)).transpose()?;
    if environment::DEBUG_BUILD {
        writeln!(terminal.err, "WARNING: this is a debug build, so its times mean nothing; build with --release")?;
    }
    let stop = interrupt::watch();
    let mut exit = Exit::Done;
    for workload in &workloads {
        let out = output_directory(&options, workload, workloads.len() > 1);
        let session = Session { workload, entrants: &entrants, options: &options, out, stop };
        exit = exit.or_worse(session.run(data.as_mut(), terminal)?);
        if stop.load(Ordering::Relaxed) {
            return Ok(exit.or_worse(Exit::Interrupted));
        }
    }
    Ok(exit)
}

fn output_directory(options: &RunArguments, workload: &Workload, several: bool) -> PathBuf {
    let profiles = count::short(workload.profiles);
    let memory = workload.memory_bytes.map_or_else(String::new, |bytes| format!("-{}", size::short(bytes)));
    match &options.out {
        Some(out) if several => out.join(profiles),
        Some(out) => out.clone(),
        None => Path::new("results").join(match workload.dataset {
            DataSet::Published => format!("{}-{profiles}{memory}", workload.name),
            DataSet::Natural => format!("{}-{}-{profiles}{memory}", workload.name, workload.dataset),
        }),
    }
}

/// One workload on every entrant.
struct Session<'a> {
    workload: &'a Workload,
    entrants: &'a [Entrant],
    options: &'a RunArguments,
    out: PathBuf,
    stop: &'a AtomicBool,
}

impl Session<'_> {
    /// Runs it and writes the results. `kept` is the directory of stores that stay.
    fn run(&self, kept: Option<&mut DataDirectory>, terminal: &mut Terminal) -> Result<Exit> {
        // Nobody wants to learn after an hour that results cannot be written.
        self.make_output()?;
        if let Some(data) = kept {
            return self.run_in(data, true, terminal);
        }
        let mut data = DataDirectory::prepare(&self.out.join(DATA), true)?;
        let exit = self.run_in(&mut data, false, terminal);
        data.remove()?;
        exit
    }

    fn run_in(&self, data: &mut DataDirectory, keep: bool, terminal: &mut Terminal) -> Result<Exit> {
        let (needed, why) = choice::space(self.entrants, self.workload, keep);
        data.require_space(needed, &why)?;
        let mut result = self.run_all(data, keep, terminal);
        let verdict = report::verify(&result);
        result.published.clone_from(&verdict.published);
        report::write_all(&result, &self.out)?;
        exit::unless_closed(self.tell(&result, &verdict, terminal))?;
        Ok(verify::weigh(&result, &verdict))
    }

    fn make_output(&self) -> Result<()> {
        let refused = |source| Refusal::Unusable { action: "create", path: self.out.clone(), source };
        Ok(std::fs::create_dir_all(&self.out).map_err(refused)?)
    }

    /// Runs every entrant as often as asked. What goes wrong with one is in its result, and the others go on.
    fn run_all(&self, data: &mut DataDirectory, keep: bool, terminal: &mut Terminal) -> RunResult {
        let mut environment = self.environment(data.path());
        let mut engines = Vec::new();
        for turn in choice::schedule(self.entrants.len(), self.options.repeat.unwrap_or(1)) {
            engines.push(self.run_one(turn, data, terminal));
            if !keep {
                // What cannot be removed now is told when the directory is removed.
                let _ = data.discard(self.entrants[turn.entrant].name);
            }
        }
        let place = |name: &str| self.entrants.iter().position(|entrant| entrant.name == name);
        engines.sort_by_key(|done: &EngineResult| (place(&done.engine), done.repetition));
        environment::at_end(&mut environment);
        RunResult { schema: SCHEMA, workload: self.workload.clone(), environment, engines, published: None }
    }

    fn run_one(&self, turn: Turn, data: &mut DataDirectory, terminal: &mut Terminal) -> EngineResult {
        let entrant = &self.entrants[turn.entrant];
        let request = Request {
            contender: entrant.name.to_owned(),
            durability: entrant.durability,
            workload: self.workload.clone(),
            dir: data.path().join(entrant.name),
            repetition: turn.repetition,
        };
        let result = if self.stop.load(Ordering::Relaxed) {
            process::not_started(&request, Ending::Interrupted)
        } else {
            let done =
                data.fresh(entrant.name).map_err(anyhow::Error::from).and_then(|_| self.perform(&request, terminal));
            done.unwrap_or_else(|error| process::not_started(&request, Ending::Crashed(format!("{error:#}"))))
        };
        if let Some(message) = &result.message {
            // It is in the result as well.
            let _ = writeln!(terminal.err, "{}: {message}", entrant.name);
        }
        result
    }

    fn perform(&self, request: &Request, terminal: &mut Terminal) -> Result<EngineResult> {
        let limits = Limits { timeout: self.options.timeout, stop: self.stop };
        let style = Style::choose(self.options.quiet, terminal.err_is_screen);
        let mut progress = Progress::new(&request.contender, style, &mut *terminal.err);
        let mut observe = |event: &_| progress.show(event);
        if self.options.in_process {
            Ok(process::run_here(request, limits, &mut observe))
        } else {
            Ok(process::run_in_child(child()?, request, limits, &mut observe))
        }
    }

    fn environment(&self, data: &Path) -> environment::Environment {
        let mut facts = environment::at_start(data);
        let processes = if self.options.in_process {
            "one for all engines: memory is not measured"
        } else {
            "one for each run, with a malloc arena for each worker"
        };
        facts.insert("processes".to_owned(), processes.to_owned());
        facts
    }

    /// The result as JSON and in short, as far as asked for; what is wrong with it, always.
    fn tell(&self, result: &RunResult, verdict: &Verdict, terminal: &mut Terminal) -> Result<()> {
        if self.options.json {
            writeln!(
                terminal.out,
                "{}",
                serde_json::to_string(result).context("could not write the results as JSON")?
            )?;
        }
        let colors = terminal.colors() && !self.options.json;
        let notes = if self.options.json { &mut *terminal.err } else { &mut *terminal.out };
        if !self.options.quiet {
            return self.tell_in_short(result, colors, notes);
        }
        if !verdict.is_sound() {
            writeln!(terminal.err, "{}", verdict.sentences().join("\n"))?;
        }
        Ok(())
    }

    fn tell_in_short(&self, result: &RunResult, colors: bool, notes: &mut dyn Write) -> Result<()> {
        writeln!(notes, "\n{}", report::terminal::summary(result, colors).trim_end())?;
        writeln!(notes, "\nThe results are in {}; read report.md there first.", self.out.display())?;
        match &self.options.data {
            Some(data) => writeln!(notes, "The stores of the last run of each engine stay in {}.", data.display())?,
            None => writeln!(notes, "The stores are removed; --data DIR keeps them.")?,
        }
        Ok(())
    }
}

/// This program once more, to run one contender.
fn child() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("could not find the program's own file")?);
    command.arg("child");
    Ok(command)
}
