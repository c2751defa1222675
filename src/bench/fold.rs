//! Events in, an [`EngineResult`] out: pure, so that a crash, a timeout and an interrupt can be told without one.

use super::event::{Event, Step};
use super::result::{EngineResult, Status};

/// What is known of a run so far.
#[derive(Clone, Debug)]
pub struct Account {
    result: EngineResult,
    /// The phase or step that was started last and is not finished.
    doing: Option<String>,
    finished: bool,
    failure: Option<String>,
}

/// Why no more events come.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The run came to its own end, good or bad.
    Ended,
    /// It ended in a way of its own that it could not tell about: a crash, for a person.
    Crashed(String),
    /// It was stopped after this many seconds.
    Timeout(f64),
    /// It was stopped by the user.
    Interrupted,
}

impl Account {
    /// Before the first event.
    pub fn new(engine: &str, version: String, durability: &str, repetition: u64) -> Self {
        let result =
            EngineResult { version, repetition, ..EngineResult::unmeasured(engine, durability, Status::Failed) };
        Self { result, doing: None, finished: false, failure: None }
    }

    /// Takes in one event.
    #[must_use]
    pub fn fold(mut self, event: Event) -> Self {
        match event {
            Event::Opened { version, settings, baseline_memory_bytes } => {
                self.result.version = version;
                self.result.settings = settings;
                self.result.baseline_memory_bytes = baseline_memory_bytes;
            }
            Event::PhaseStarted { name, .. } => self.doing = Some(format!("the phase \"{name}\"")),
            Event::Progress { .. } => {}
            Event::PhaseFinished { phase } => {
                self.doing = None;
                *self.result.completed_phase_ms.get_or_insert(0.0) += phase.elapsed_ms;
                self.result.phases.push(phase);
            }
            Event::StepStarted { step } => self.doing = Some(describe(step).to_owned()),
            Event::StepFinished { step, elapsed_ms } => {
                self.doing = None;
                if let Some(field) = step_field(&mut self.result, step) {
                    *field = elapsed_ms;
                }
            }
            finished @ Event::Finished { .. } => self.finish(finished),
            Event::Failed { message } => self.failure = Some(message),
        }
        self
    }

    /// Whether the last event of a good run has come.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The result, now that no more events come.
    pub fn end(mut self, ending: Ending) -> EngineResult {
        let during = self.place();
        let (status, message) = match ending {
            _ if self.finished && self.failure.is_none() => (Status::Completed, None),
            Ending::Timeout(seconds) => {
                (Status::Timeout, Some(format!("stopped{during}, at the timeout of {seconds} s")))
            }
            Ending::Interrupted => (Status::Interrupted, Some(format!("interrupted{during}"))),
            Ending::Crashed(how) if self.failure.is_none() => (Status::Failed, Some(format!("ended{during}: {how}"))),
            Ending::Crashed(_) | Ending::Ended => {
                let why = self.failure.unwrap_or_else(|| "it ended without a result".to_owned());
                (Status::Failed, Some(format!("failed{during}: {why}")))
            }
        };
        self.result.status = status;
        self.result.message = message;
        self.result
    }

    /// Where the run is, to go on with in a sentence.
    fn place(&self) -> String {
        match (&self.doing, self.result.phases.last()) {
            (Some(doing), _) => format!(" during {doing}"),
            (None, Some(last)) => format!(" after the phase \"{}\"", last.name),
            (None, None) => " before the first phase".to_owned(),
        }
    }

    fn finish(&mut self, event: Event) {
        let Event::Finished {
            run_ms,
            verify_checksum,
            all_fields_checksum,
            storage_bytes,
            storage_allocated_bytes,
            peak_memory_bytes,
            io_write_bytes,
            index_check,
        } = event
        else {
            return;
        };
        self.finished = true;
        let result = &mut self.result;
        result.run_ms = Some(run_ms);
        result.verify_checksum = Some(verify_checksum);
        result.all_fields_checksum = Some(all_fields_checksum);
        result.storage_bytes = Some(storage_bytes);
        result.storage_allocated_bytes = Some(storage_allocated_bytes);
        result.peak_memory_bytes = peak_memory_bytes;
        result.io_write_bytes = io_write_bytes;
        result.index_check = Some(index_check);
    }
}

/// The step, for a person.
pub fn describe(step: Step) -> &'static str {
    match step {
        Step::PreReadStabilize => "pre-read stabilize",
        Step::PostUpdateStabilize => "post-update stabilize",
        Step::Settle => "settle",
        Step::Reopen => "reopen",
        Step::Verify => "verify",
        Step::Check => "check of all fields and indexes",
    }
}

fn step_field(result: &mut EngineResult, step: Step) -> Option<&mut Option<f64>> {
    Some(match step {
        Step::PreReadStabilize => &mut result.pre_read_stabilize_ms,
        Step::PostUpdateStabilize => &mut result.post_update_stabilize_ms,
        Step::Settle => &mut result.settle_ms,
        Step::Reopen => &mut result.reopen_ms,
        Step::Verify => &mut result.verify_ms,
        Step::Check => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::result::{IndexCheckResult, PhaseResult};
    use super::*;

    fn started(name: &str) -> Event {
        Event::PhaseStarted { name: name.to_owned(), operations: 5 }
    }

    fn phase(name: &str) -> Event {
        let name = name.to_owned();
        let checksum = "CBF29CE484222325".to_owned();
        let phase = PhaseResult {
            name,
            operations: 5,
            elapsed_ms: 2.0,
            ops_per_s: Some(2500.0),
            checksum,
            data_bytes: None,
            latency_us: None,
        };
        Event::PhaseFinished { phase }
    }

    fn finished() -> Event {
        Event::Finished {
            run_ms: 9.0,
            verify_checksum: "1".to_owned(),
            all_fields_checksum: "2".to_owned(),
            storage_bytes: 3,
            storage_allocated_bytes: 4,
            peak_memory_bytes: Some(5),
            io_write_bytes: None,
            index_check: IndexCheckResult { checked: 6, problems: Vec::new() },
        }
    }

    fn told(events: impl IntoIterator<Item = Event>) -> Account {
        let start = Account::new("floor", "1".to_owned(), "none", 1);
        events.into_iter().fold(start, Account::fold)
    }

    #[test]
    fn a_whole_run_is_completed() {
        let step = Event::StepFinished { step: Step::Reopen, elapsed_ms: Some(7.0) };
        let result = told([started("a"), phase("a"), started("b"), phase("b"), step, finished()]).end(Ending::Ended);
        assert_eq!((result.status, result.message), (Status::Completed, None));
        assert_eq!(result.completed_phase_ms, Some(4.0));
        assert_eq!((result.reopen_ms, result.storage_bytes, result.peak_memory_bytes), (Some(7.0), Some(3), Some(5)));
    }

    #[test]
    fn a_timeout_keeps_finished_phases_and_names_the_interrupted_one() {
        let result = told([started("a"), phase("a"), started("query b")]).end(Ending::Timeout(1.5));
        assert_eq!((result.status, result.phases.len()), (Status::Timeout, 1));
        assert_eq!(result.message.unwrap(), "stopped during the phase \"query b\", at the timeout of 1.5 s");
    }

    #[test]
    fn a_stop_between_two_phases_names_the_finished_one() {
        let result = told([started("a"), phase("a")]).end(Ending::Interrupted);
        assert_eq!(result.message.unwrap(), "interrupted after the phase \"a\"");
    }

    #[test]
    fn a_crash_tells_where_and_how() {
        let result = told([started("a")]).end(Ending::Crashed("killed by signal 9".to_owned()));
        assert_eq!(result.status, Status::Failed);
        assert_eq!(result.message.unwrap(), "ended during the phase \"a\": killed by signal 9");
        assert_eq!(result.completed_phase_ms, None, "no phase is not zero milliseconds");
    }

    #[test]
    fn a_failure_that_was_told_counts_more_than_the_exit_it_caused() {
        let failed = Event::Failed { message: "disk full".to_owned() };
        let result = told([started("a"), failed]).end(Ending::Crashed("exit code 1".to_owned()));
        assert_eq!(result.message.unwrap(), "failed during the phase \"a\": disk full");
    }

    #[test]
    fn an_end_without_a_result_is_a_failure() {
        assert_eq!(told([]).end(Ending::Ended).status, Status::Failed);
    }

    #[test]
    fn a_run_that_finished_before_the_stop_is_completed() {
        assert_eq!(told([finished()]).end(Ending::Interrupted).status, Status::Completed);
    }
}
