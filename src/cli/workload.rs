//! Workload files, and how a file and the options become one request.
//!
//! ```toml
//! name = "profile-store"          # names the results
//! profiles = ["100K", 1_000_000]  # one count or several; numbers or text
//! seed = 570123434
//! data = "natural"                # or "published", as without it; `dataset` is the same key
//! engines = ["profilestore", "sqlite"]
//! query_limit = 100
//! workers = 1
//! reads = "100K"                  # and email_reads, queries, updates, post_reads, post_email_reads, post_queries
//! durability = "process"
//! memory = "32MiB"                # for the caches and write buffers of each engine
//! repeat = 3
//! timeout = 600                   # seconds for each engine
//! ```
//!
//! Every key may be left out; a key that is not known is refused with its line. An option on the command line
//! overrides the key of its name.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use crate::bench::plan::WORKLOAD_NAME;
use crate::bench::result::Workload;

use super::args::{self, RunArguments};
use super::count;
use super::exit::Usage;
use super::size;

/// Profiles of a run that names none: a few seconds for every engine.
const PROFILES: u64 = 10_000;
/// The seed of the published results.
const SEED: i32 = 570_123_434;
/// No workload file is larger.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a workload file may hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadFile {
    name: Option<String>,
    profiles: Option<Counts>,
    seed: Option<i32>,
    #[serde(alias = "data")]
    dataset: Option<String>,
    engines: Option<Vec<String>>,
    query_limit: Option<Count>,
    workers: Option<Count>,
    reads: Option<Count>,
    email_reads: Option<Count>,
    queries: Option<Count>,
    updates: Option<Count>,
    post_reads: Option<Count>,
    post_email_reads: Option<Count>,
    post_queries: Option<Count>,
    durability: Option<String>,
    memory: Option<String>,
    repeat: Option<Count>,
    timeout: Option<f64>,
}

impl WorkloadFile {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let unreadable = |error| Usage(format!("could not read the workload file {}: {error}", path.display()));
        if fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
            return Err(Usage(format!("{} is too long for a workload file", path.display())).into());
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Ok(Self::parse(&text).map_err(|what| Usage(format!("{}, {what}", path.display())))?)
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            format!("line {line}: {}", error.message().trim().replace('\n', ", "))
        })
    }

    /// Fills in what was not typed.
    pub(super) fn fill(self, options: &mut RunArguments) -> Result<()> {
        let timeout =
            self.timeout.map(|seconds| args::parse_seconds(&seconds.to_string())).transpose().map_err(Usage)?;
        let durability = self.durability.map(|class| args::parse_durability(&class)).transpose().map_err(Usage)?;
        let dataset = self.dataset.map(|name| args::parse_dataset(&name)).transpose().map_err(Usage)?;
        let memory = self.memory.map(|size| size::parse_budget(&size)).transpose().map_err(Usage)?;
        options.dataset = options.dataset.or(dataset);
        options.profiles = options.profiles.take().or(self.profiles.map(|counts| counts.0));
        options.seed = options.seed.or(self.seed);
        options.engines = options.engines.take().or(self.engines);
        options.durability = options.durability.or(durability);
        options.timeout = options.timeout.or(timeout);
        options.memory = options.memory.or(memory);
        for (option, count) in [
            (&mut options.query_limit, self.query_limit),
            (&mut options.workers, self.workers),
            (&mut options.reads, self.reads),
            (&mut options.email_reads, self.email_reads),
            (&mut options.queries, self.queries),
            (&mut options.updates, self.updates),
            (&mut options.post_reads, self.post_reads),
            (&mut options.post_email_reads, self.post_email_reads),
            (&mut options.post_queries, self.post_queries),
            (&mut options.repeat, self.repeat),
        ] {
            *option = option.or(count.map(|count| count.0));
        }
        Ok(())
    }
}

/// The workloads asked for, one for each number of profiles, all fit to be run.
pub(super) fn workloads(file: Option<&Path>, options: &mut RunArguments) -> Result<Vec<Workload>> {
    let mut name = WORKLOAD_NAME.to_owned();
    if let Some(path) = file {
        let mut file = WorkloadFile::read(path)?;
        name = file.name.take().unwrap_or(name);
        file.fill(options)?;
    }
    if !is_file_name(&name) {
        return Err(Usage(format!("{name:?} is no name for a workload; use letters, digits, -, _ and .")).into());
    }
    let profiles = options.profiles.clone().unwrap_or_else(|| vec![PROFILES]);
    if profiles.is_empty() {
        return Err(Usage("no number of profiles is given; give one such as 100K".to_owned()).into());
    }
    profiles.into_iter().map(|profiles| workload(&name, profiles, options)).collect()
}

fn workload(name: &str, profiles: u64, options: &RunArguments) -> Result<Workload> {
    let usual = Workload::published(profiles, options.seed.unwrap_or(SEED));
    let workload = Workload {
        name: name.to_owned(),
        profiles,
        workers: options.workers.unwrap_or(usual.workers),
        reads: options.reads.unwrap_or(usual.reads),
        email_reads: options.email_reads.unwrap_or(usual.email_reads),
        queries: options.queries.unwrap_or(usual.queries),
        updates: options.updates.unwrap_or(usual.updates),
        post_reads: options.post_reads.unwrap_or(usual.post_reads),
        post_email_reads: options.post_email_reads.unwrap_or(usual.post_email_reads),
        post_queries: options.post_queries.unwrap_or(usual.post_queries),
        query_limit: options.query_limit.unwrap_or(usual.query_limit),
        seed: usual.seed,
        dataset: options.dataset.unwrap_or_default(),
        memory_bytes: options.memory,
    };
    workload.validate().map_err(|error| Usage(error.to_string()))?;
    Ok(workload)
}

/// A name that is the same name on every file system, and leads nowhere.
fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=80).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

/// A count: a number, or text such as `"100K"`.
#[derive(Clone, Copy, Debug)]
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = deserializer.deserialize_any(CountVisitor { several: false })?;
        Ok(Self(counts[0]))
    }
}

/// A [`Count`] or a list of them.
#[derive(Clone, Debug)]
struct Counts(Vec<u64>);

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor { several: true }).map(Self)
    }
}

/// Reads one count, always, or a list where `several` are allowed.
struct CountVisitor {
    several: bool,
}

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count such as 250 or \"100K\"")?;
        if self.several { f.write_str(", or a list of them") } else { Ok(()) }
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Vec<u64>, E> {
        Ok(vec![u64::try_from(number).map_err(|_| E::custom("a count cannot be negative"))?])
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<u64>, E> {
        Ok(vec![count::parse(text).map_err(E::custom)?])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
        if !self.several {
            return Err(A::Error::custom("expected one count, not a list"));
        }
        let mut counts = Vec::new();
        while let Some(Count(count)) = list.next_element()? {
            counts.push(count);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::dataset::DataSet;

    fn filled(text: &str, mut options: RunArguments) -> RunArguments {
        WorkloadFile::parse(text).unwrap().fill(&mut options).unwrap();
        options
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = WorkloadFile::parse("name = \"x\"\n\nprofils = 5\n").unwrap_err();
        assert!(error.starts_with("line 3: unknown field `profils`"), "{error}");
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_its_line() {
        for text in [
            "\nreads = -1",
            "\nreads = \"many\"",
            "\nreads = [1]",
            "\nseed = 3000000000",
            "\nworkers =",
            "\ntimeout = \"x\"",
        ] {
            let error = WorkloadFile::parse(text).unwrap_err();
            assert!(error.starts_with("line 2: ") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn counts_are_numbers_or_text_or_lists() {
        assert_eq!(filled("profiles = 5", RunArguments::default()).profiles, Some(vec![5]));
        let lists = filled("profiles = [\"1.5K\", 20]\nreads = \"1M\"", RunArguments::default());
        assert_eq!((lists.profiles, lists.reads), (Some(vec![1_500, 20]), Some(1_000_000)));
    }

    #[test]
    fn an_option_overrides_the_key_of_its_name() {
        let typed = RunArguments { seed: Some(-1), reads: Some(7), ..RunArguments::default() };
        let both = filled("seed = 5\nreads = 6\nupdates = 8\ntimeout = 2", typed);
        assert_eq!((both.seed, both.reads, both.updates), (Some(-1), Some(7), Some(8)));
        assert_eq!(both.timeout, Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_data_set_is_named_by_either_key_and_nothing_else() {
        for text in ["data = \"natural\"", "dataset = \"natural\""] {
            assert_eq!(filled(text, RunArguments::default()).dataset, Some(DataSet::Natural));
        }
        let mut typed = RunArguments { dataset: Some(DataSet::Published), ..RunArguments::default() };
        WorkloadFile::parse("data = \"natural\"").unwrap().fill(&mut typed).unwrap();
        assert_eq!(typed.dataset, Some(DataSet::Published));
        let unknown = WorkloadFile::parse("data = \"organic\"").unwrap().fill(&mut RunArguments::default());
        assert!(unknown.unwrap_err().to_string().contains("choose published or natural"));
    }

    #[test]
    fn a_memory_budget_is_a_size_and_typed_before_written() {
        assert_eq!(filled("memory = \"32MiB\"", RunArguments::default()).memory, Some(32 << 20));
        let typed = RunArguments { memory: Some(64 << 20), ..RunArguments::default() };
        let mut options = filled("memory = \"32MiB\"", typed);
        assert_eq!(workloads(None, &mut options).unwrap()[0].memory_bytes, Some(64 << 20));
        let refused = WorkloadFile::parse("memory = \"32MB\"").unwrap().fill(&mut RunArguments::default());
        assert!(refused.unwrap_err().to_string().contains("such as 32MiB"));
    }

    #[test]
    fn one_count_does_not_change_another() {
        let mut options = RunArguments { profiles: Some(vec![100]), queries: Some(5), ..RunArguments::default() };
        let workload = workloads(None, &mut options).unwrap().remove(0);
        assert_eq!((workload.queries, workload.post_queries, workload.reads), (5, 100, 100));
    }

    #[test]
    fn a_list_of_profiles_is_one_workload_each() {
        let mut options = RunArguments { profiles: Some(vec![10, 20]), ..RunArguments::default() };
        let profiles: Vec<_> =
            workloads(None, &mut options).unwrap().iter().map(|workload| workload.profiles).collect();
        assert_eq!(profiles, [10, 20]);
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_results() {
        for name in ["", ".", "../x", "a/b", ".hidden", "a b", &"x".repeat(81)] {
            assert!(!is_file_name(name), "{name}");
        }
        assert!(is_file_name("profile-store_2.1"));
    }

    #[test]
    fn the_workload_files_of_the_project_are_sound() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
        let paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(paths.len() >= 3);
        for path in paths {
            workloads(Some(&path), &mut RunArguments::default()).unwrap();
        }
    }
}
