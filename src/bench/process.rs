//! A contender in a process of its own, so that its memory is its own and its crash is nobody else's.
//!
//! ```text
//! standard input of the child  := one Request as JSON
//! standard output of the child := { one Event as JSON, newline }
//! ```
//!
//! The parent folds the events as they come: whatever was told before a crash, a timeout or an interrupt is kept.
//! The child ends with its parent. [`run_here`] does the same without a process.

use std::collections::VecDeque;
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::contenders::{self, Durability};
use super::event::Event;
use super::fold::{Account, Ending};
use super::plan::Plan;
use super::result::{EngineResult, Workload};
use super::runner::{self, RunSettings};

/// Tells glibc how many arenas to make. It would make one for each thread and hand them on, in no order, to the threads
/// that the next phase starts: what an engine let go of in one phase would not be there for it in the next, and peak memory
/// would count phases. As many as there are workers are enough for all of them to allocate at once.
const ARENAS_MAX: &str = "MALLOC_ARENA_MAX";
/// How long a stop may go unnoticed.
const POLL: Duration = Duration::from_millis(50);
/// How long a child may take to exit after it closed its output.
const EXIT_GRACE: Duration = Duration::from_secs(10);
const EXIT_POLL: Duration = Duration::from_millis(2);
/// Lines of a child's standard error that are kept for the message.
const LAST_LINES: usize = 5;
const LINE_CHARACTERS_MAX: usize = 300;

/// One run of one contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Name of the contender.
    pub contender: String,
    /// Class to run in.
    pub durability: Durability,
    /// What to run.
    pub workload: Workload,
    /// Directory of the store; exists and is empty.
    pub dir: PathBuf,
    /// Repetition, from 1.
    pub repetition: u64,
}

/// When a run is to be stopped.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Longest time from start to end.
    pub timeout: Option<Duration>,
    /// Set by somebody else, when the user wants to stop.
    pub stop: &'a AtomicBool,
}

/// Runs `request` in the process that `command` starts, and shows every event to `observe`.
///
/// Whatever happens to the process is told in the result.
pub fn run_in_child(
    mut command: Command,
    request: &Request,
    limits: Limits,
    observe: &mut dyn FnMut(&Event),
) -> EngineResult {
    // A group of its own: an interrupt typed at the terminal goes to us alone, and we decide.
    if env::var_os(ARENAS_MAX).is_none() {
        command.env(ARENAS_MAX, request.workload.workers.to_string());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let account = new_account(request);
    match command.spawn() {
        Ok(child) => attend(child, request, account, limits, observe),
        Err(error) => account.end(Ending::Crashed(format!("could not start {}: {error}", program(&command)))),
    }
}

/// Runs `request` in this process. Memory and I/O of a process that others share say nothing, and stay empty.
pub fn run_here(request: &Request, limits: Limits, observe: &mut dyn FnMut(&Event)) -> EngineResult {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, events) = mpsc::channel();
    let mut result = thread::scope(|scope| {
        let stop = &stop;
        // The worker owns the sender, so that the events end when it does.
        let worker = scope.spawn(move || perform(request, stop, &|event| drop(sender.send(event))));
        let (account, ending) = follow(&events, new_account(request), limits, observe);
        stop.store(true, Ordering::Relaxed);
        let account = events.iter().fold(account, Account::fold);
        let panicked = worker.join().is_err();
        account.end(if panicked { Ending::Crashed("it panicked".to_owned()) } else { ending })
    });
    (result.peak_memory_bytes, result.baseline_memory_bytes, result.io_write_bytes) = (None, None, None);
    result
}

/// The result of a run that ended before it began.
pub fn not_started(request: &Request, ending: Ending) -> EngineResult {
    new_account(request).end(ending)
}

/// The child's side: reads a request, runs it, tells its events.
pub fn serve(input: impl Read, output: impl Write + Send) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("could not tie this process to its parent")?;
    let parent = parent_id();
    let request: Request = serde_json::from_reader(input).context("expected one request as JSON on standard input")?;
    let stop = Arc::new(AtomicBool::new(false));
    let output = Mutex::new(output);
    perform(&request, &stop, &|event| {
        // Without a reader there is no reason to go on. The parent may have died before it was tied to us.
        if parent_id() != parent || tell(&mut *output.lock(), &event).is_err() {
            stop.store(true, Ordering::Relaxed);
        }
    });
    Ok(())
}

fn new_account(request: &Request) -> Account {
    let version = contenders::by_name(&request.contender).map(|contender| contender.version()).unwrap_or_default();
    Account::new(&request.contender, version, request.durability.as_str(), request.repetition)
}

/// Runs to the end; what goes wrong is an event too.
fn perform(request: &Request, stop: &Arc<AtomicBool>, emit: &(dyn Fn(Event) + Sync)) {
    if let Err(error) = perform_fallibly(request, stop, emit) {
        emit(Event::Failed { message: format!("{error:#}") });
    }
}

fn perform_fallibly(request: &Request, stop: &Arc<AtomicBool>, emit: &(dyn Fn(Event) + Sync)) -> Result<()> {
    let contender = contenders::by_name(&request.contender)
        .with_context(|| format!("no engine named {:?} is compiled in", request.contender))?;
    let plan = Plan::build(&request.workload)?;
    let settings = RunSettings { dir: request.dir.clone(), durability: request.durability, stop: Arc::clone(stop) };
    runner::run(contender.as_ref(), &plan, &settings, emit)
}

/// Follows a running child to its end, and makes sure of that end.
fn attend(
    mut child: Child,
    request: &Request,
    account: Account,
    limits: Limits,
    observe: &mut dyn FnMut(&Event),
) -> EngineResult {
    let (sender, events) = mpsc::channel();
    let reader = child.stdout.take().map(|output| thread::spawn(move || read_events(output, &sender)));
    let last_lines = child.stderr.take().map(|errors| thread::spawn(move || read_last_lines(errors)));
    if let Some(mut input) = child.stdin.take() {
        // A child that died before it read this tells so by its exit.
        let _ = serde_json::to_vec(request).map(|bytes| input.write_all(&bytes));
    }
    let (account, mut ending) = follow(&events, account, limits, observe);
    let grace = if ending == Ending::Ended { EXIT_GRACE } else { Duration::ZERO };
    let status = reap(&mut child, grace);
    let account = events.iter().fold(account, Account::fold);
    let garbage = reader.and_then(|reader| join(reader).err());
    let last_lines = last_lines.map(join).unwrap_or_default();
    if ending == Ending::Ended
        && let Some(how) = garbage.or_else(|| crash(status.as_ref().ok()))
    {
        ending = Ending::Crashed(with_last_lines(how, &last_lines));
    }
    account.end(ending)
}

/// Waits for the end of a child that has told everything, and makes an end of it and its group if that takes longer.
fn reap(child: &mut Child, grace: Duration) -> io::Result<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < grace {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(EXIT_POLL);
    }
    // Fails only if they have ended by themselves.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()
}

/// Folds events until no more come, or until it is time to stop.
fn follow(
    events: &Receiver<Event>,
    mut account: Account,
    limits: Limits,
    observe: &mut dyn FnMut(&Event),
) -> (Account, Ending) {
    let start = Instant::now();
    loop {
        match events.recv_timeout(POLL) {
            Ok(event) => {
                observe(&event);
                account = account.fold(event);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return (account, Ending::Ended),
        }
        if limits.stop.load(Ordering::Relaxed) {
            return (account, Ending::Interrupted);
        }
        if let Some(timeout) = limits.timeout.filter(|timeout| start.elapsed() >= *timeout) {
            return (account, Ending::Timeout(timeout.as_secs_f64()));
        }
    }
}

fn tell(output: &mut impl Write, event: &Event) -> Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    output.write_all(&line)?;
    Ok(output.flush()?)
}

/// Hands on the events of `output`, up to its end or to what is no event.
fn read_events(output: ChildStdout, events: &Sender<Event>) -> Result<(), String> {
    for line in BufReader::new(output).lines() {
        let event = line.map_err(anyhow::Error::from).and_then(|line| Ok(serde_json::from_str(&line)?));
        let event = event.map_err(|error| format!("it wrote something that is no event: {error}"))?;
        if events.send(event).is_err() {
            break;
        }
    }
    Ok(())
}

/// Reads to the end, so that the child never waits for us, and keeps the last lines, made safe for a terminal.
fn read_last_lines(errors: ChildStderr) -> Vec<String> {
    let mut kept = VecDeque::new();
    for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
        if kept.len() == LAST_LINES {
            kept.pop_front();
        }
        let line: String = String::from_utf8_lossy(&line).chars().take(LINE_CHARACTERS_MAX).collect();
        kept.push_back(line.trim_end().escape_debug().to_string());
    }
    kept.into()
}

fn with_last_lines(how: String, lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { how } else { format!("{how}; its last words: {}", lines.join(" | ")) }
}

/// How a process ended, if not well.
fn crash(status: Option<&ExitStatus>) -> Option<String> {
    let Some(status) = status else { return Some("its exit status is unknown".to_owned()) };
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (_, Some(9)) => Some("killed by signal 9, as the system does when memory runs out".to_owned()),
        (_, Some(signal)) => Some(format!("killed by signal {signal}")),
        (code, None) => Some(format!("exit code {}", code.unwrap_or_default())),
    }
}

/// A reader thread of ours does not panic on what it reads.
fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("a reader thread does not panic")
}

fn program(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::result::Status;
    use super::*;

    const STARTED: &str = r#"{"event":"phase_started","name":"insert profiles","operations":9}"#;
    const DONE: &str = r#"{"event":"phase_finished","phase":{"name":"insert profiles","operations":9,"elapsed_ms":1.5,"ops_per_s":6000.0,"checksum":"CBF29CE484222325","latency_us":null}}"#;

    /// A child that is a shell script; it has the events above as `$STARTED` and `$DONE`.
    fn run(script: &str, timeout: Option<Duration>, stop: &AtomicBool) -> EngineResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("STARTED", STARTED).env("DONE", DONE);
        let workload = Workload::published(10, 1);
        let (contender, dir) = ("floor".to_owned(), PathBuf::from("unused"));
        let request = Request { contender, durability: Durability::None, workload, dir, repetition: 2 };
        run_in_child(command, &request, Limits { timeout, stop }, &mut |_| {})
    }

    fn go_on() -> AtomicBool {
        AtomicBool::new(false)
    }

    #[test]
    fn a_killed_child_keeps_its_finished_phases() {
        let result = run("cat >/dev/null; echo $STARTED; echo $DONE; echo $STARTED; kill -9 $$", None, &go_on());
        assert_eq!((result.status, result.phases.len(), result.repetition), (Status::Failed, 1, 2));
        let message = result.message.unwrap();
        assert!(message.contains("insert profiles") && message.contains("signal 9"), "{message}");
    }

    #[test]
    fn a_child_that_never_reads_its_request_is_a_failure() {
        assert_eq!(
            run("exec <&-; exit 7", None, &go_on()).message.unwrap(),
            "ended before the first phase: exit code 7"
        );
    }

    #[test]
    fn last_words_are_kept_and_cannot_drive_the_terminal() {
        let script = r"for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; printf '\033]0;owned\007' >&2; exit 1";
        let message = run(script, None, &go_on()).message.unwrap();
        assert!(message.contains("line 8") && !message.contains("line 3"), "{message}");
        assert!(!message.contains('\u{1b}') && message.contains("owned"), "{message}");
    }

    #[test]
    fn a_child_has_as_many_arenas_as_workers() {
        let message = run("echo arenas: $MALLOC_ARENA_MAX. >&2; exit 1", None, &go_on()).message.unwrap();
        let expected = env::var(ARENAS_MAX).unwrap_or_else(|_| "1".to_owned());
        assert!(message.contains(&format!("arenas: {expected}.")), "{message}");
    }

    #[test]
    fn a_hanging_child_is_stopped_at_the_timeout() {
        let start = Instant::now();
        let result = run("echo $STARTED; echo $DONE; exec sleep 60", Some(Duration::from_millis(300)), &go_on());
        assert_eq!((result.status, result.phases.len()), (Status::Timeout, 1));
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn an_interrupted_child_is_stopped() {
        let result = run("echo $STARTED; exec sleep 60", None, &AtomicBool::new(true));
        assert_eq!(result.status, Status::Interrupted);
    }

    #[test]
    fn what_is_no_event_ends_the_run_with_a_message() {
        let message = run("cat >/dev/null; echo '{\"event\":\"surprise\"}'", None, &go_on()).message.unwrap();
        assert!(message.contains("no event"), "{message}");
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure_of_that_run() {
        let request = Request {
            contender: "floor".to_owned(),
            durability: Durability::None,
            workload: Workload::published(10, 1),
            dir: PathBuf::from("unused"),
            repetition: 1,
        };
        let limits = Limits { timeout: None, stop: &go_on() };
        let result = run_in_child(Command::new("/no/such/program"), &request, limits, &mut |_| {});
        assert_eq!(result.status, Status::Failed);
        assert!(result.message.unwrap().contains("/no/such/program"));
    }
}
