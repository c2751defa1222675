//! What a result is worth: the verdict of the report, weighed into an exit code.

use std::path::Path;

use anyhow::Result;

use crate::bench::result::{RunResult, Status};
use crate::report::{self, Verdict};

use super::Terminal;
use super::exit::{self, Exit, Usage};

/// `profilebench verify`: weighs a result of an earlier run.
pub(super) fn run(file: &Path, terminal: &mut Terminal) -> Result<Exit> {
    let result = report::load_any(file).map_err(|error| Usage(format!("{error:#}")))?;
    let verdict = report::verify(&result);
    exit::unless_closed(terminal.say(&verdict.sentences()))?;
    Ok(weigh(&result, &verdict))
}

/// The exit a result deserves.
pub(super) fn weigh(result: &RunResult, verdict: &Verdict) -> Exit {
    let answers = if verdict.mismatches.is_empty() && verdict.disagreements.is_empty() {
        if verdict.index_problems.is_empty() { Exit::Done } else { Exit::EngineFailed }
    } else {
        Exit::Mismatch
    };
    let statuses = result.engines.iter().map(|engine| match engine.status {
        Status::Completed => Exit::Done,
        Status::Timeout => Exit::Timeout,
        Status::Failed => Exit::EngineFailed,
        Status::Interrupted => Exit::Interrupted,
    });
    statuses.fold(answers, Exit::or_worse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fold::{Account, Ending};
    use crate::bench::result::{Published, SCHEMA, Workload};
    use crate::report::published::Mismatch;

    fn result(statuses: &[Status]) -> RunResult {
        let engine = |status: &Status| {
            let mut engine = Account::new("floor", String::new(), "none", 1).end(Ending::Ended);
            engine.status = *status;
            engine
        };
        let engines = statuses.iter().map(engine).collect();
        let (workload, environment) = (Workload::published(10, 1), std::collections::BTreeMap::new());
        RunResult { schema: SCHEMA, workload, environment, engines, published: None }
    }

    fn mismatch() -> Verdict {
        let text = str::to_owned;
        let (contender, question, expected, found) = (text("floor"), text("insert profiles"), text("AA"), text("BB"));
        let published = Some(Published { name: text("100k-linux"), equal: 16, of: 17 });
        let mismatches = vec![Mismatch { contender, question, expected, found }];
        Verdict { published, mismatches, ..Verdict::default() }
    }

    #[test]
    fn a_mismatch_outweighs_failures_and_a_failure_a_timeout() {
        let sound = Verdict::default();
        assert_eq!(weigh(&result(&[Status::Completed]), &sound), Exit::Done);
        assert_eq!(weigh(&result(&[Status::Timeout, Status::Failed]), &sound), Exit::EngineFailed);
        assert_eq!(weigh(&result(&[Status::Completed, Status::Timeout]), &sound), Exit::Timeout);
        assert_eq!(weigh(&result(&[Status::Interrupted]), &sound), Exit::Interrupted);
        assert_eq!(weigh(&result(&[Status::Failed]), &mismatch()), Exit::Mismatch);
    }
}
