//! Arguments and workload files in, requests out.
//!
//! [`run`] is the whole program but for its exit code and its last words, which are `main`'s. What can be typed is in
//! `args`, what can be written in a file in `workload`; `choice` turns both into who runs and when, `run` runs it, and
//! `verify` weighs what came out, `compare` sets it beside what came out before. `inspect` and `check` look at a database,
//! `backup` copies one and back, `salvage` saves what is left of one, `transfer` turns one into text and back, `torture` mistreats many. Rooms below never hear of any of it.

mod args;
mod backup;
mod check;
mod choice;
mod compare;
mod count;
mod exit;
pub(crate) mod fuzz;
mod inspect;
mod interrupt;
mod progress;
mod run;
mod salvage;
mod size;
mod torture;
mod transfer;
mod verify;
mod workload;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::Parser;

use crate::bench::{contenders, process};
use crate::engine::BackupOptions;
use crate::report;

use args::{Arguments, Command};
use exit::Usage;

pub use exit::Exit;

/// Does what `arguments` ask for; the first of them is the program's name. `Err` is for `main` to print.
pub fn run(arguments: impl IntoIterator<Item = OsString>, terminal: &mut Terminal) -> Result<Exit> {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error, terminal),
    };
    match arguments.command {
        None => run::run(None, arguments.run, terminal),
        Some(Command::Run { file, options }) => run::run(file.as_deref(), *options, terminal),
        Some(Command::Verify { file }) => verify::run(&file, terminal),
        Some(Command::Chart { file, out }) => chart(&file, &out, terminal),
        Some(Command::Compare { before, after, json }) => compare::run(&before, &after, json, terminal),
        Some(Command::Engines) => engines(terminal),
        Some(Command::Check { dir }) => check::run(&dir, terminal),
        Some(Command::Inspect { dir, json }) => inspect::run(&dir, json, terminal),
        Some(Command::Salvage { dir, to }) => salvage::run(&dir, &to, terminal),
        Some(Command::Backup { dir, to, base, link }) => {
            backup::backup(&dir, &to, &BackupOptions { base, link }, terminal)
        }
        Some(Command::Restore { backup, to }) => backup::restore(&backup, &to, terminal),
        Some(Command::Export { dir, format, out }) => transfer::export(&dir, format.into(), out.as_deref(), terminal),
        Some(Command::Import { dir, file, format, options }) => {
            transfer::import(&dir, &file, format.into(), &options.into(), terminal)
        }
        Some(Command::Torture { options }) => torture::run(&options, terminal),
        Some(Command::TortureWriter { options }) => torture::write(&options, terminal),
        Some(Command::Child) => process::serve(io::stdin(), io::stdout()).map(|()| Exit::Done),
    }
}

/// Standard output and standard error, or what a test puts in their place.
pub struct Terminal<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Progress and complaints.
    pub err: &'a mut dyn Write,
    /// Whether a person looks at `out` on a screen.
    pub out_is_screen: bool,
    /// Whether `err` is the screen that standard error is on.
    pub err_is_screen: bool,
}

impl Terminal<'_> {
    /// Writes sentences to `out`, one a line.
    fn say(&mut self, sentences: &[String]) -> Result<()> {
        for sentence in sentences {
            writeln!(self.out, "{sentence}")?;
        }
        Ok(())
    }

    /// Whether what is written to `out` may have colours.
    fn colors(&self) -> bool {
        self.out_is_screen && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}

/// Help and version are what was asked for; all else is a mistake.
fn explain(error: &clap::Error, terminal: &mut Terminal) -> Result<Exit> {
    let styled = error.render();
    if error.use_stderr() {
        write!(terminal.err, "{styled}")?;
        return Ok(Exit::BadArguments);
    }
    write!(terminal.out, "{styled}")?;
    Ok(Exit::Done)
}

fn chart(file: &Path, out: &Path, terminal: &mut Terminal) -> Result<Exit> {
    let result = report::load_any(file).map_err(|error| Usage(format!("{error:#}")))?;
    report::draw_charts(&result, out)?;
    writeln!(terminal.out, "The charts are in {}.", out.display())?;
    Ok(Exit::Done)
}

fn engines(terminal: &mut Terminal) -> Result<Exit> {
    writeln!(terminal.out, "{:<14} {:<14} durability classes", "engine", "version")?;
    for contender in contenders::all() {
        let classes = choice::class_names(contender.classes());
        writeln!(terminal.out, "{:<14} {:<14} {classes}", contender.name(), contender.version())?;
    }
    Ok(Exit::Done)
}
