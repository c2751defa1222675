//! Pure: what a reader should know before comparing the numbers of a run, one sentence each.

use crate::bench::result::{EngineResult, RunResult, Status};

use super::compare::{self, Contender};
use super::format::{self, Unit};
use super::text::{MESSAGE_CHARS_MAX, NAME_CHARS_MAX, plain};

/// Spread of the repetitions that is worth a word, as a share of the median.
const SPREAD_SHARE: f64 = 0.10;

/// A single operation that takes this long has waited for something.
const STALL_US: f64 = 10_000.0;

/// What is particular to this run: stops, stalls, unsteady repetitions.
pub fn surprises(run: &RunResult) -> Vec<String> {
    let mut sentences: Vec<String> = run.engines.iter().filter_map(|result| stop(run, result)).collect();
    for contender in compare::contenders(run) {
        sentences.extend(unsteady(&contender));
        sentences.extend(stall(&contender));
        sentences.extend(preallocated(&contender));
    }
    sentences
}

fn stop(run: &RunResult, result: &EngineResult) -> Option<String> {
    let how = match result.status {
        Status::Completed => return None,
        Status::Timeout => "ran out of time",
        Status::Failed => "failed",
        Status::Interrupted => "was interrupted",
    };
    let why = result.message.as_deref().map_or_else(String::new, |why| format!(": {}", plain(why, MESSAGE_CHARS_MAX)));
    let name = compare::run_label(run, result);
    let phases = if result.phases.len() == 1 { "phase" } else { "phases" };
    Some(format!("{name} {how} after {} finished {phases}{why}", result.phases.len()))
}

fn unsteady(contender: &Contender) -> Option<String> {
    let total = contender.measured(compare::all_phases_ms)?;
    let (low, high) = total.spread?;
    let share = (high - low) / total.value;
    (share > SPREAD_SHARE).then(|| {
        let (low, high) = (Unit::Millis.short(low), Unit::Millis.short(high));
        format!("{} was unsteady: its repetitions took {low} to {high}", contender.label)
    })
}

fn stall(contender: &Contender) -> Option<String> {
    let slowest =
        |name: &str| contender.largest(|result| compare::phase(result, name)?.latency_us.map(|latency| latency.max));
    let phases = contender.shown.phases.iter().filter_map(|phase| Some((phase, slowest(&phase.name)?)));
    let (phase, worst) = phases.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (worst >= STALL_US && worst.is_finite()).then(|| {
        let (name, worst) = (plain(&phase.name, NAME_CHARS_MAX), Unit::Millis.short(worst / 1e3));
        format!("{} stalled: one sampled operation of {name} took {worst}", contender.label)
    })
}

fn preallocated(contender: &Contender) -> Option<String> {
    let median = |of: fn(&EngineResult) -> Option<u64>| contender.median(|result| of(result).map(|bytes| bytes as f64));
    let (bytes, allocated) = (median(|result| result.storage_bytes)?, median(|result| result.storage_allocated_bytes)?);
    (allocated > bytes * 2.0 && allocated > bytes + f64::from(1 << 20)).then(|| {
        let (bytes, allocated) = (format::bytes(bytes), format::bytes(allocated));
        format!("{}'s files are {bytes} long but occupy {allocated}", contender.label)
    })
}

/// How the numbers of this run are to be read.
pub fn interpretation(run: &RunResult) -> Vec<String> {
    let contenders = compare::contenders(run);
    let mut sentences = vec![
        "Every contender got the same profiles and the same operations in the same order, drawn before the clock of \
         their phase started; each ran in the durability class named beside it."
            .to_owned(),
        "Making profiles on insert and folding answers into checksums is inside each phase's clock, as published."
            .to_owned(),
    ];
    if contenders.iter().any(Contender::is_floor) {
        sentences.push(
            "The contender floor keeps profiles in plain memory and stores nothing: its time is what the harness \
             costs by itself. It is no competitor, and no ranking counts it."
                .to_owned(),
        );
    }
    if compare::has_several_classes(run) {
        sentences.push(
            "Durability differs: compare inside one class only. none survives a clean close, process a killed \
             process, sync a power loss."
                .to_owned(),
        );
    }
    if contenders.iter().any(|contender| contender.repetitions.len() > 1) {
        sentences.push(
            "Where a contender ran several times, each number is the median of that number over its completed \
             repetitions, with the smallest and the largest in brackets, so that the phases need not add up to the \
             total. A largest latency is the largest of all repetitions. The repetitions themselves are in result.json."
                .to_owned(),
        );
    }
    if run.engines.iter().any(|result| result.phases.iter().any(|phase| phase.latency_us.is_some())) {
        sentences.push(
            "Latencies are service times of sampled operations in a closed loop: an operation that had to wait for \
             the one before it does not show that wait."
                .to_owned(),
        );
    }
    if let Some(bytes) = run.workload.memory_bytes {
        sentences.push(format!(
            "Each engine was given {} of memory for its caches and write buffers; its settings say what became of that. \
             What an engine takes beside them is its own affair, and is in its peak. LMDB has no cache but that of the \
             system, which no budget bounds, and the floor keeps everything in memory.",
            format::bytes(bytes as f64)
        ));
    }
    sentences.push(
        "Peak memory is that of the whole process. The baseline is what it held before the store was opened: the \
         program, and room for the operations of any phase, which stays the same while the store is open."
            .to_owned(),
    );
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn a_quiet_run_has_no_surprises() {
        assert_eq!(surprises(&samples::run(&["profilestore", "fjall"])), [""; 0]);
    }

    #[test]
    fn stops_stalls_and_unsteady_repetitions_are_told() {
        let mut run = samples::run(&["fjall", "sqlite", "redb"]);
        run.engines[1] = samples::stopped(run.engines[1].clone(), 3);
        run.engines[2].phases[9].latency_us.as_mut().unwrap().max = 25_000.0;
        run.engines[2].storage_allocated_bytes = Some(1 << 30);
        run.engines.push(samples::again(&run.engines[0].clone(), 2, 2.0));
        let told = surprises(&run).join("\n");
        assert!(told.contains("sqlite #1 ran out of time after 3 finished phases: stopped after 60 s"), "{told}");
        assert!(told.contains("redb stalled: one sampled operation of update profiles took 25.0 ms"), "{told}");
        assert!(told.contains("occupy 1.0 GB"), "{told}");
        assert!(told.contains("fjall was unsteady"), "{told}");
    }
}
