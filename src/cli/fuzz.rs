//! The targets of fuzzing, and the two of this room: a command line, which is read and not obeyed, and a workload file.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Parser;

use super::args::{Arguments, Command, RunArguments};
use super::exit::Exit;
use super::workload::{self, WorkloadFile};
use super::{Terminal, choice, explain};
use crate::bench::torture::fuzz::Target;
use crate::bench::torture::model;
use crate::engine::fuzz as engine;
use crate::report::fuzz as report;
use crate::store::fuzz as store;

/// Everything that reads bytes from outside.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "log",
        takes: "two log files, one behind the other",
        run: engine::log::run,
        seeds: engine::log::seeds,
    },
    Target { name: "manifest", takes: "a manifest", run: engine::manifest::run, seeds: engine::manifest::seeds },
    Target { name: "segment", takes: "a segment file", run: engine::segment::run, seeds: engine::segment::seeds },
    Target {
        name: "block-opaque",
        takes: "a block of keys and values",
        run: engine::blocks::run_opaque,
        seeds: engine::blocks::opaque_seeds,
    },
    Target {
        name: "block-packed",
        takes: "a block of columns",
        run: engine::blocks::run_packed,
        seeds: engine::columns::block_seeds,
    },
    Target {
        name: "columns",
        takes: "a layout, and entries to be packed by it",
        run: engine::columns::run,
        seeds: engine::columns::seeds,
    },
    Target {
        name: "filter",
        takes: "a filter, and keys for one",
        run: engine::segment::run_filter,
        seeds: engine::segment::filter_seeds,
    },
    Target { name: "batch", takes: "an encoded batch", run: engine::batch::run, seeds: engine::batch::seeds },
    Target {
        name: "directory",
        takes: "the files of a database, to be opened and salvaged",
        run: engine::directory::run,
        seeds: engine::directory::seeds,
    },
    Target { name: "record", takes: "a stored record", run: store::run_records, seeds: store::record_seeds },
    Target { name: "key", takes: "keys, and values to be made keys", run: store::run_keys, seeds: store::key_seeds },
    Target {
        name: "model",
        takes: "steps and a fault, to be compared with sorted maps",
        run: model::fuzz,
        seeds: model::fuzz_seeds,
    },
    Target {
        name: "result",
        takes: "a result.json, or a published result",
        run: report::run_result,
        seeds: report::result_seeds,
    },
    Target {
        name: "label",
        takes: "labels, one behind each zero, for tables and terminals",
        run: report::run_labels,
        seeds: report::label_seeds,
    },
    Target {
        name: "arguments",
        takes: "a command line, an argument behind each zero",
        run: run_arguments,
        seeds: argument_seeds,
    },
    Target { name: "workload", takes: "a workload file", run: run_workload, seeds: workload_seeds },
];

/// Reads a command line up to the point where something would be done.
fn run_arguments(input: &[u8]) {
    let arguments = input.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec()));
    let arguments = std::iter::once(OsString::from("profilebench")).chain(arguments);
    match Arguments::try_parse_from(arguments) {
        Err(error) => {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut terminal = Terminal { out: &mut out, err: &mut err, out_is_screen: false, err_is_screen: false };
            let exit = explain(&error, &mut terminal).expect("memory has room");
            assert!(matches!(exit, Exit::Done | Exit::BadArguments));
            assert_eq!(exit == Exit::Done, err.is_empty(), "help is no mistake, and a mistake is told as one");
        }
        Ok(Arguments { command: None, run }) => check_options(run),
        Ok(Arguments { command: Some(Command::Run { options, .. }), .. }) => check_options(*options),
        Ok(Arguments { command: Some(Command::Torture { options }), .. }) => {
            assert!(options.kinds().all(|(_, cases)| cases != Some(0)), "nothing to be tried");
        }
        Ok(_) => {}
    }
}

fn check_options(mut options: RunArguments) {
    let workloads = workload::workloads(None, &mut options);
    let entrants = choice::entrants(options.engines.as_deref(), options.durability);
    for error in workloads.as_ref().err().into_iter().chain(entrants.as_ref().err()) {
        assert!(matches!(Exit::of(error), Exit::BadArguments | Exit::Refused), "{error:#}");
    }
    for workload in workloads.iter().flatten() {
        workload.validate().expect("only what can be run is given");
    }
}

fn argument_seeds() -> Vec<Vec<u8>> {
    [
        "run\0workloads/quick.toml\0--profiles\x0010K,1.5M\0--seed=-7\0--engine\0floor,all\0--timeout\x000.5",
        "--durability\0sync\0--memory\x0032MiB\0--repeat\x003\0--quiet\0--dataset\0natural\0--workers\x004",
        "torture\0--fuzz\x00100\0--flips\0--model\x001M\0--seed\x001",
        "compare\0before.json\0after.json\0--json",
        "salvage\0dir\0--to\0new",
        "verify\0result.json",
        "chart\0--out\0dir\0result.json",
        "help\0run",
        "--version",
    ]
    .map(|arguments| arguments.as_bytes().to_vec())
    .to_vec()
}

/// A file is refused with a line, or makes workloads that can be run, or is refused as a whole.
fn run_workload(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match WorkloadFile::parse(text) {
        Err(error) => assert!(error.starts_with("line ") && !error.contains('\n'), "{error:?}"),
        Ok(file) => {
            let mut options = RunArguments::default();
            match file.fill(&mut options) {
                Ok(()) => check_options(options),
                Err(error) => assert_eq!(Exit::of(&error), Exit::BadArguments, "{error:#}"),
            }
        }
    }
}

fn workload_seeds() -> Vec<Vec<u8>> {
    let all = "name = \"profile-store\"\nprofiles = [\"100K\", 1_000_000]\nseed = -5\ndata = \"natural\"\n\
        engines = [\"profilestore\", \"floor\"]\nquery_limit = 100\nworkers = 1\nreads = \"1.5M\"\nupdates = 0\n\
        durability = \"process\"\nmemory = \"32MiB\"\nrepeat = 3\ntimeout = 600.5\n";
    vec![all.as_bytes().to_vec(), b"# nothing\n".to_vec(), b"profiles = 10\n".to_vec()]
}

#[cfg(test)]
mod tests;
