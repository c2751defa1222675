//! What can be typed. These types end here: below the command line nobody has heard of them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::contenders::Durability;
use crate::bench::dataset::DataSet;
use crate::bench::torture::Kind;
use crate::store::transfer::{Format, ImportOptions, OnConflict};

use super::{count, exit, size};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "profilebench",
    version,
    about = "Runs the published profile-store benchmark on embedded stores, and proves every answer by checksum",
    before_help = "Without a command it runs. Without any option it runs 10,000 profiles on every engine that is \
        compiled in, in less than a minute.",
    after_help = exit::HELP,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub(super) struct Arguments {
    /// What to do; `run` if left out.
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// Options of `run`.
    #[command(flatten)]
    pub(super) run: RunArguments,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a workload and write its results
    #[command(after_help = exit::HELP)]
    Run {
        /// Workload file, such as workloads/profile-store.toml; options given here override it
        file: Option<PathBuf>,
        /// The options.
        #[command(flatten)]
        options: Box<RunArguments>,
    },
    /// Compare the checksums of a result with each other and with the published ones
    #[command(after_help = exit::HELP)]
    Verify {
        /// A result.json
        file: PathBuf,
    },
    /// Tell what became faster or slower from one result to another
    ///
    /// Both must be of the same work: workload, data set, counts, seed, and each engine in the same durability class.
    /// Of each phase, the medians over the repetitions are compared, and the interval that their ratio lies in decides:
    /// faster, slower, same (within 5 %), or noisy. That takes three repetitions of each, better five (--repeat 5).
    #[command(after_help = exit::HELP_OF_COMPARE)]
    Compare {
        /// The result.json from before
        before: PathBuf,
        /// The result.json from after
        after: PathBuf,
        /// Print the comparison as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Draw the charts of a result again, without running anything
    #[command(after_help = exit::HELP)]
    Chart {
        /// A result.json, or a CSV file of reference-results/
        file: PathBuf,
        /// Directory to write the charts into
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// List the engines that are compiled in, their versions and durability classes
    #[command(after_help = exit::HELP)]
    Engines,
    /// Read everything in a profilestore database, and tell what is wrong with it
    ///
    /// Every segment is read from the disk and checked: checksums, order, bounds and counts. If it holds profiles, all
    /// indexes are compared with the records, both ways. Opening it replays its log, as every opening does; apart from
    /// that nothing is changed.
    #[command(after_help = exit::HELP_OF_CHECK)]
    Check {
        /// Directory of a database, or the --data of a run that left one in DIR/profilestore
        dir: PathBuf,
    },
    /// Tell what a profilestore database holds: trees, entries, runs, sizes
    ///
    /// Of every tree there are the entries with their tombstones, the sorted runs that a read looks at, and how much more
    /// space they take than one of them would. Nothing is read but the indexes of the segments. Opening it replays its
    /// log, as every opening does; apart from that nothing is changed.
    #[command(after_help = exit::HELP_OF_INSPECT)]
    Inspect {
        /// Directory of a database, or the --data of a run that left one in DIR/profilestore
        dir: PathBuf,
        /// Print it as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy what is left of a damaged profilestore database into a new one
    ///
    /// The damaged one is only read. Every block and every batch of a log that is whole is taken; each that is not has a
    /// line with its file, its offset, and the range of keys in which entries are missing or older than they were. Indexes
    /// are not copied: those of profiles are built from the records at once, others when their collection is opened.
    #[command(after_help = exit::HELP_OF_SALVAGE)]
    Salvage {
        /// Directory of a database, or the --data of a run that left one in DIR/profilestore
        dir: PathBuf,
        /// Directory of the new database; empty, or not there yet
        #[arg(long, value_name = "NEW")]
        to: PathBuf,
    },
    /// Copy a profilestore database as it is into a new directory, and check the copy
    ///
    /// What a backup holds is a database that nothing has to be replayed in; restore brings it back. An interrupted one has
    /// no manifest, and is not taken for a whole one. It must not be open elsewhere; a program that has it open backs it up
    /// itself, with `Database::backup`.
    #[command(after_help = exit::HELP_OF_BACKUP)]
    Backup {
        /// Directory of a database, or the --data of a run that left one in DIR/profilestore
        dir: PathBuf,
        /// Directory of the backup; empty, or not there yet
        #[arg(long, value_name = "NEW")]
        to: PathBuf,
        /// An earlier backup of the same database, on the same file system: files that did not change are linked from it
        #[arg(long, value_name = "EARLIER")]
        base: Option<PathBuf>,
        /// Link files of the database itself where that is possible: at once, and gone with its disk
        #[arg(long)]
        link: bool,
    },
    /// Make a database in a new directory from a backup, after reading and checking all of it
    #[command(after_help = exit::HELP_OF_RESTORE)]
    Restore {
        /// Directory of the backup, which stays as it is
        backup: PathBuf,
        /// Directory of the database; empty, or not there yet
        #[arg(long, value_name = "NEW")]
        to: PathBuf,
    },
    /// Write the profiles of a profilestore database as text, JSON lines or CSV, in the order of their ids
    ///
    /// It goes to standard output, or to a new file. A record whose text would not lead back to it stops the export.
    #[command(after_help = exit::HELP_OF_EXPORT)]
    Export {
        /// Directory of a database, or the --data of a run that left one in DIR/profilestore
        dir: PathBuf,
        /// How records are written
        #[arg(long, value_enum, default_value_t)]
        format: TextFormat,
        /// File to write, which must not be there; without it, standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Enter profiles from a text, JSON lines or CSV, into a profilestore database
    ///
    /// Each batch of records is entered whole or not at all. A line that is no profile, or that the database refuses, stops
    /// the import and is told with its number; batches before it stay, and --from-line goes on there.
    #[command(after_help = exit::HELP_OF_IMPORT)]
    Import {
        /// Directory of a database, made if it is not there, or the --data of a run that left one in DIR/profilestore
        dir: PathBuf,
        /// The text, as export writes it; - is standard input
        file: PathBuf,
        /// How records are written
        #[arg(long, value_enum, default_value_t)]
        format: TextFormat,
        /// The options.
        #[command(flatten)]
        options: ImportArguments,
    },
    /// Crash, fail and damage our engine for as long as asked
    ///
    /// Each kind ends with one line of JSON on standard output. A violation is told on standard error with its case and
    /// a seed; that seed tries the same again first. Several kinds run one after the other.
    #[command(after_help = exit::HELP_OF_TORTURE, group = clap::ArgGroup::new("kinds").required(true).multiple(true))]
    Torture {
        /// The options.
        #[command(flatten)]
        options: TortureArguments,
    },
    /// Write profiles until killed, and tell which changes are acknowledged
    #[command(hide = true)]
    TortureWriter {
        /// The options.
        #[command(flatten)]
        options: WriterArguments,
    },
    /// Run one engine; the request comes on standard input, events go to standard output
    #[command(hide = true)]
    Child,
}

/// How records are written as text.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum TextFormat {
    /// A JSON object a line
    #[default]
    JsonLines,
    /// Comma-separated values under a line with the names of the fields
    Csv,
}

impl From<TextFormat> for Format {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::JsonLines => Self::JsonLines,
            TextFormat::Csv => Self::Csv,
        }
    }
}

/// Options of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArguments {
    /// What becomes of a profile whose id is there already
    #[arg(long, value_enum, default_value_t)]
    on_conflict: Conflict,
    /// Pass over profiles that begin before this line
    #[arg(long, value_name = "LINE", default_value_t = 1)]
    from_line: u64,
    /// Profiles that are entered together
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
}

/// What becomes of a profile whose id is there already.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Conflict {
    /// The import stops
    #[default]
    Refuse,
    /// The one that is there stays
    Skip,
    /// It takes the place of the one that is there
    Replace,
}

impl From<ImportArguments> for ImportOptions {
    fn from(arguments: ImportArguments) -> Self {
        let on_conflict = match arguments.on_conflict {
            Conflict::Refuse => OnConflict::Refuse,
            Conflict::Skip => OnConflict::Skip,
            Conflict::Replace => OnConflict::Replace,
        };
        Self { on_conflict, from_line: arguments.from_line, batch_records: arguments.batch as usize }
    }
}

/// Options of `run`. What is `None` comes from the workload file, then from the defaults.
#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed alone")]
pub(super) struct RunArguments {
    /// Number of profiles, such as 10K, 250000 or 1.5M; a list makes one run for each [default: 10K]
    #[arg(long, value_name = "N,...", value_delimiter = ',', allow_negative_numbers = true, value_parser = count::parse_positive, help_heading = "Workload")]
    pub(super) profiles: Option<Vec<u64>>,
    /// Seed of the data and of the plan [default: 570123434]
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, help_heading = "Workload")]
    pub(super) seed: Option<i32>,
    /// Profiles to store: those of the published results, or people with names, addresses and texts of varied form
    /// (natural), whose answers are compared between the engines only [default: published]
    #[arg(long, value_name = "SET", value_parser = parse_dataset, help_heading = "Workload")]
    pub(super) dataset: Option<DataSet>,
    /// Engines to run, or `all` [default: all that are compiled in]
    #[arg(long, alias = "engine", value_name = "NAME,...", value_delimiter = ',', help_heading = "Workload")]
    pub(super) engines: Option<Vec<String>>,
    /// Rows a scan or query stops at [default: 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse_positive, help_heading = "Workload")]
    pub(super) query_limit: Option<u64>,
    /// Threads that work at the same time [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse_positive, help_heading = "Workload")]
    pub(super) workers: Option<u64>,
    /// Point reads by user id [default: as many as profiles]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse, help_heading = "Workload")]
    pub(super) reads: Option<u64>,
    /// Lookups by e-mail [default: as many as profiles]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse, help_heading = "Workload")]
    pub(super) email_reads: Option<u64>,
    /// Queries of each kind [default: as many as profiles up to 10K, then a quarter]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse, help_heading = "Workload")]
    pub(super) queries: Option<u64>,
    /// Updates [default: as many as profiles]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse, help_heading = "Workload")]
    pub(super) updates: Option<u64>,
    /// Point reads after the updates [default: as many as profiles]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse, help_heading = "Workload")]
    pub(super) post_reads: Option<u64>,
    /// Lookups by e-mail after the updates [default: as many as profiles]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse, help_heading = "Workload")]
    pub(super) post_email_reads: Option<u64>,
    /// Queries of each kind after the updates [default: as many as profiles up to 10K, then a quarter]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse, help_heading = "Workload")]
    pub(super) post_queries: Option<u64>,

    /// What acknowledged data survives: nothing until a flush (none), a killed process (process), a power loss (sync)
    /// [default: process, for engines that offer it]
    #[arg(long, value_name = "CLASS", value_parser = parse_durability, help_heading = "Measurement")]
    pub(super) durability: Option<Durability>,
    /// Memory that each engine may take for its caches and write buffers, such as 32MiB; an engine without any says so in
    /// the report [default: as its documentation advises for data that fits into memory]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = size::parse_budget, help_heading = "Measurement")]
    pub(super) memory: Option<u64>,
    /// Runs of each engine, interleaved, each on a fresh store [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::parse_positive, help_heading = "Measurement")]
    pub(super) repeat: Option<u64>,
    /// Seconds an engine may take before it is stopped; finished phases are kept [default: no limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = parse_seconds, help_heading = "Measurement")]
    pub(super) timeout: Option<Duration>,
    /// Run the engines in this process, for debugging; memory is not measured then
    #[arg(long, help_heading = "Measurement")]
    pub(super) in_process: bool,

    /// Directory for the stores; they are left there; for profiles of another kind see --dataset [default: a directory below --out, removed at the end]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().try_map(data_directory), help_heading = "Files")]
    pub(super) data: Option<PathBuf>,
    /// Directory for the results; with several --profiles, one below it for each
    /// [default: results/WORKLOAD-PROFILES, with the data set between them if it is not the published one, and with
    /// --memory behind them]
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub(super) out: Option<PathBuf>,
    /// Empty --data first; refused unless an earlier run made everything in it
    #[arg(long, help_heading = "Files")]
    pub(super) clean: bool,

    /// Print the result as JSON on standard output, one line for each run, and everything else on standard error
    #[arg(long, help_heading = "Display")]
    pub(super) json: bool,
    /// Show no progress and no table, only what went wrong
    #[arg(long, help_heading = "Display")]
    pub(super) quiet: bool,
}

/// Options of `torture`.
#[derive(Debug, Args)]
pub(super) struct TortureArguments {
    /// Try so many crash images: what a kill or a power loss leaves at each call of a workload
    #[arg(long, value_name = "N", value_parser = count::parse_positive, group = "kinds")]
    images: Option<u64>,
    /// Try so many crash images of openings after a crash
    #[arg(long, value_name = "N", value_parser = count::parse_positive, group = "kinds")]
    nested: Option<u64>,
    /// Run so many workloads in which one call of the disk fails, once or for ever
    #[arg(long, value_name = "N", value_parser = count::parse_positive, group = "kinds")]
    faults: Option<u64>,
    /// Take so many random steps, and compare each with sorted maps
    #[arg(long, value_name = "N", value_parser = count::parse_positive, group = "kinds")]
    model: Option<u64>,
    /// Damage a small database in so many ways: bits flipped, files cut, zeroed, swapped, deleted, stale, foreign
    /// [default: in every way there is]
    #[expect(clippy::option_option, reason = "the option may be there without a number")]
    #[arg(long, value_name = "N", value_parser = count::parse_positive, num_args = 0..=1, group = "kinds")]
    flips: Option<Option<u64>>,
    /// Hand so many damaged inputs to everything that reads bytes from outside: files, records, keys, command lines
    #[arg(long, value_name = "N", value_parser = count::parse_positive, group = "kinds")]
    fuzz: Option<u64>,
    /// Kill so many processes that write profiles to real files
    #[arg(long, value_name = "N", value_parser = count::parse_positive, group = "kinds")]
    kill: Option<u64>,
    /// Let the threads of one database take turns in so many orders that are drawn; needs a build with
    /// `--features schedules`
    #[arg(long, value_name = "N", value_parser = count::parse_positive, group = "kinds")]
    pub(super) schedules: Option<u64>,

    /// Seed of the first round; the next ones count up [default: drawn at random, and told]
    #[arg(long, value_name = "SEED")]
    pub(super) seed: Option<u64>,
    /// Directory for the files of --kill; removed at the end unless something is wrong [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

impl TortureArguments {
    /// What to try, and how often.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (Kind, Option<u64>)> {
        let counted = |kind, cases: Option<u64>| cases.map(|cases| (kind, Some(cases)));
        [
            counted(Kind::Images, self.images),
            counted(Kind::Nested, self.nested),
            counted(Kind::Faults, self.faults),
            counted(Kind::Model, self.model),
            self.flips.map(|cases| (Kind::Flips, cases)),
            counted(Kind::Fuzz, self.fuzz),
            counted(Kind::Kill, self.kill),
            #[cfg(feature = "schedules")]
            counted(Kind::Schedules, self.schedules),
        ]
        .into_iter()
        .flatten()
    }
}

/// Options of the process that is killed.
#[derive(Debug, Args)]
pub(super) struct WriterArguments {
    /// Directory of the database
    pub(super) dir: PathBuf,
    /// Seed of the changes
    #[arg(long)]
    pub(super) seed: u64,
    /// Number of the first change
    #[arg(long)]
    pub(super) first: u64,
}

/// Reads a durability class.
pub(super) fn parse_durability(text: &str) -> Result<Durability, String> {
    [Durability::None, Durability::Process, Durability::Sync]
        .into_iter()
        .find(|class| class.as_str() == text)
        .ok_or_else(|| format!("{text:?} is no durability class; choose none, process or sync"))
}

/// Reads the name of a data set.
pub(super) fn parse_dataset(text: &str) -> Result<DataSet, String> {
    DataSet::ALL
        .into_iter()
        .find(|data| data.as_str() == text)
        .ok_or_else(|| format!("{text:?} is no data set; choose published or natural"))
}

/// A directory for stores; one that is named like a data set is doubted.
fn data_directory(path: OsString) -> Result<PathBuf, String> {
    match path.to_str().and_then(|name| parse_dataset(name).ok()) {
        Some(data) => Err(format!(
            "--data names a directory for the stores; write --dataset {data} for the {data} data set, or ./{data} for a \
             directory of that name"
        )),
        None => Ok(PathBuf::from(path)),
    }
}

/// Reads a number of seconds.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{text:?} is no number of seconds; write one such as 600 or 2.5"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once(&"profilebench").chain(arguments))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_subcommand_takes_the_options_of_run() {
        let parsed =
            parse(&["--profiles", "100K,1M", "--seed", "-7", "--engine", "floor", "--timeout", "0.5"]).unwrap();
        assert!(parsed.command.is_none());
        assert_eq!(parsed.run.profiles, Some(vec![100_000, 1_000_000]));
        assert_eq!(parsed.run.seed, Some(-7));
        assert_eq!(parsed.run.engines, Some(vec!["floor".to_owned()]));
        assert_eq!(parsed.run.timeout, Some(Duration::from_millis(500)));
    }

    #[test]
    fn every_seed_of_32_bits_is_read_and_no_other() {
        for seed in ["-2147483648", "2147483647", "0", "-1"] {
            assert_eq!(parse(&["--seed", seed]).unwrap().run.seed, seed.parse().ok());
            assert_eq!(parse(&[&format!("--seed={seed}")]).unwrap().run.seed, seed.parse().ok());
        }
        assert!(parse(&["--seed", "2147483648"]).is_err());
    }

    #[test]
    fn a_data_set_given_as_a_directory_is_told_its_own_option() {
        assert_eq!(parse(&["--dataset", "natural"]).unwrap().run.dataset, Some(DataSet::Natural));
        let refusal = parse(&["--data", "natural"]).unwrap_err().to_string();
        assert!(refusal.contains("--dataset natural") && refusal.contains("./natural"), "{refusal}");
        assert_eq!(parse(&["--data", "./natural"]).unwrap().run.data, Some(PathBuf::from("./natural")));
        assert!(parse(&["--dataset", "organic"]).unwrap_err().to_string().contains("published or natural"));
    }

    #[test]
    fn a_time_that_never_comes_is_refused() {
        for text in ["0", "-1", "NaN", "inf", "soon", "1e300"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn help_of_every_level_lists_the_exit_codes() {
        let mut command = Arguments::command();
        assert!(command.render_long_help().to_string().contains("checksum mismatch"));
        let ours = |subcommand: &&mut clap::Command| !subcommand.is_hide_set() && subcommand.get_name() != "help";
        for subcommand in command.get_subcommands_mut().filter(ours) {
            assert!(subcommand.render_long_help().to_string().contains("Exit codes:"), "{subcommand}");
        }
    }
}
