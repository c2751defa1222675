//! A process that writes profiles to real files is killed, again and again; nothing it acknowledged may be missing.
//!
//! ```text
//! standard output of the writer := { number of a change, newline }
//! ```
//!
//! Every change is drawn from the seed and its number, so the parent makes the same changes to a sorted map. A number is
//! written after its change was committed: what a killed writer leaves is the map after the last number, or after one
//! change more. All four indexes must agree with the records, and every file must verify.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::Session;
use crate::engine::disk::sim::Random;
use crate::engine::{Database, Durability, Options};
use crate::store::{Country, Profile, Repository, Status};

/// How long a writer may take to its first acknowledgement.
const START_TIME_MAX: Duration = Duration::from_mins(1);
/// Profiles that changes draw from.
const PROFILES: usize = 400;

/// What a writer is sent for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand<'a> {
    /// Directory of the database.
    pub(crate) directory: &'a Path,
    pub(crate) seed: u64,
    /// Number of the first change to make.
    pub(crate) first: u64,
}

/// Kills writers in `directory`; `writer` starts this program as [`write_until_killed`].
pub(super) fn run(session: &mut Session<'_>, directory: &Path, writer: &dyn Fn(&Errand<'_>) -> Command) {
    let mut random = Random::new(session.seed);
    let mut model = Model { seed: session.seed, last: 0, profiles: BTreeMap::new() };
    while session.goes_on() {
        let wait = Duration::from_micros(1_000 + random.below(49_000) as u64);
        let closes = random.once_in(3);
        let (kill, first) = (session.tried + 1, model.last + 1);
        let done = session.try_case(
            || format!("kill {kill}, {wait:?} after change {first}, in {}", directory.display()),
            || {
                let errand = Errand { directory, seed: model.seed, first };
                model.go_on_to(kill_after(writer(&errand), wait)?);
                examine(directory, &mut model, closes)
            },
        );
        if done.is_none() {
            // What is there is not what the map holds, so nothing more can be said.
            return;
        }
    }
}

/// The writer's side: makes one change after the other, and says so.
pub(crate) fn write_until_killed(errand: &Errand<'_>, output: &mut dyn Write) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("could not tie this process to its parent")?;
    let profiles = open(errand.directory)?;
    for number in errand.first.. {
        let mut random = change_random(errand.seed, number);
        let id = draw_id(&mut random);
        match draw_change(&mut random, id, profiles.get_with(id, |_| ())?.is_some()) {
            Change::Insert(profile) => profiles.insert(&profile)?,
            Change::Update(profile) => profiles.update(&profile)?,
            Change::Delete => drop(profiles.delete(id)?),
        }
        writeln!(output, "{number}").and_then(|()| output.flush()).context("nobody listens")?;
    }
    Ok(())
}

/// Flushes and merges happen all the time.
fn open(directory: &Path) -> anyhow::Result<Repository<Database>> {
    let options = Options {
        durability: Durability::Process,
        delta_bytes: 32 << 10,
        block_bytes: 512,
        segment_bytes: 16 << 10,
        runs_max: 2,
        ..Options::default()
    };
    Ok(Repository::open(Arc::new(Database::open(directory, options)?))?)
}

/// What becomes of a profile.
enum Change {
    Insert(Profile),
    Update(Profile),
    Delete,
}

fn change_random(seed: u64, number: u64) -> Random {
    Random::new(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

fn draw_id(random: &mut Random) -> i64 {
    random.below(PROFILES) as i64
}

fn draw_change(random: &mut Random, id: i64, is_there: bool) -> Change {
    match (is_there, random.once_in(4)) {
        (false, _) => Change::Insert(draw_profile(random, id)),
        (true, false) => Change::Update(draw_profile(random, id)),
        (true, true) => Change::Delete,
    }
}

fn draw_profile(random: &mut Random, id: i64) -> Profile {
    let country = *random.pick(&["DE", "FR", "GB", "US"]);
    Profile {
        user_id: id,
        email: format!("user{id}.{}@example.com", random.below(3)),
        country: Country::new(country).expect("those are country codes"),
        status: *random.pick(&Status::ALL),
        created_at: 1_700_000_000_000 + random.below(1_000) as i64,
        last_login: 1_700_000_000_000 + random.below(1_000_000) as i64,
        reputation: random.below(1_000) as i32,
        display_name: format!("User {id}"),
        bio: format!("{:x}", random.next()).repeat(random.below(20)),
    }
}

/// What must be there.
struct Model {
    seed: u64,
    /// Number of the last change.
    last: u64,
    profiles: BTreeMap<i64, Profile>,
}

impl Model {
    fn go_on_to(&mut self, number: u64) {
        while self.last < number {
            self.last += 1;
            let mut random = change_random(self.seed, self.last);
            let id = draw_id(&mut random);
            match draw_change(&mut random, id, self.profiles.contains_key(&id)) {
                Change::Insert(profile) | Change::Update(profile) => drop(self.profiles.insert(id, profile)),
                Change::Delete => drop(self.profiles.remove(&id)),
            }
        }
    }

    fn agrees_with(&self, found: &[Profile]) -> bool {
        self.profiles.values().eq(found)
    }

    /// The first profile that differs.
    fn difference(&self, found: &[Profile]) -> String {
        let found: BTreeMap<i64, &Profile> = found.iter().map(|profile| (profile.user_id, profile)).collect();
        let differs = |id: &i64| found.get(id).copied() != self.profiles.get(id);
        let id = (0..PROFILES as i64).find(differs);
        id.map_or_else(String::new, |id| format!("found {:?}, expected {:?}", found.get(&id), self.profiles.get(&id)))
    }
}

/// Opens what is left, and looks at all of it.
fn examine(directory: &Path, model: &mut Model, closes: bool) -> Result<(), String> {
    let profiles = open(directory).map_err(|error| format!("open failed: {error:#}"))?;
    let found = profiles.all().records().map_err(|error| format!("reading failed: {error}"))?;
    if !model.agrees_with(&found) {
        let (acknowledged, difference) = (model.last, model.difference(&found));
        model.go_on_to(acknowledged + 1);
        if !model.agrees_with(&found) {
            return Err(format!("change {acknowledged} was acknowledged: {difference}"));
        }
    }
    let checked = profiles.check().map_err(|error| format!("the indexes could not be checked: {error}"))?;
    let verified = profiles.kv().verify().map_err(|error| format!("verify failed: {error}"))?;
    if let Some(problem) = checked.problems.into_iter().chain(verified.problems.iter().map(ToString::to_string)).next()
    {
        return Err(format!("after change {}: {problem}", model.last));
    }
    if closes {
        profiles.kv().close().map_err(|error| format!("close failed: {error}"))?;
    }
    Ok(())
}

/// Starts a writer and kills it some time after its first word; answers the last number it acknowledged.
fn kill_after(mut writer: Command, wait: Duration) -> Result<u64, String> {
    // A group of its own: an interrupt typed at the terminal goes to us alone, and ends no case.
    let mut child = writer
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the writer does not start: {error}"))?;
    let output = child.stdout.take().expect("it is piped");
    let (sender, first_word) = mpsc::channel();
    let reader = thread::spawn(move || last_number(output, &sender));
    let started = first_word.recv_timeout(START_TIME_MAX);
    thread::sleep(wait);
    // Fails only if it has ended by itself, which its last words tell.
    let _ = child.kill();
    let last_words = last_words(&mut child);
    let last = reader.join().expect("the reader does not panic");
    match (started, last) {
        (Ok(()), Some(last)) if last_words.is_empty() => Ok(last),
        _ => Err(format!("the writer ended by itself or wrote nothing; its last words: {last_words}")),
    }
}

/// Reads to the end, and says when there is a first number. A kill may cut the last one.
fn last_number(output: ChildStdout, first_word: &Sender<()>) -> Option<u64> {
    let mut last = None;
    let mut line = String::new();
    let mut output = BufReader::new(output);
    while output.read_line(&mut line).is_ok_and(|len| len > 0) {
        if let Some(number) = line.strip_suffix('\n').and_then(|line| line.parse().ok()) {
            last = Some(number);
            // The receiver waits for the first only.
            let _ = first_word.send(());
        }
        line.clear();
    }
    last
}

fn last_words(child: &mut Child) -> String {
    let mut words = String::new();
    if let Some(mut errors) = child.stderr.take() {
        // What it cannot say we cannot tell.
        let _ = errors.read_to_string(&mut words);
    }
    // It is killed, and was not waited for before.
    let _ = child.wait();
    words.trim().to_owned()
}
