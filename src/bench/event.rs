//! What a running contender tells: the child process prints these as JSON lines, the parent folds them into an
//! [`EngineResult`](super::result::EngineResult). Whatever was told before a crash or a timeout is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::result::{IndexCheckResult, PhaseResult};

/// One step of a run, told when it has happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The plan is made and the store is open.
    Opened {
        /// Version of the engine.
        version: String,
        /// Settings as read back.
        settings: BTreeMap<String, String>,
        /// Resident set before the store was opened, with room for the operations of any phase.
        baseline_memory_bytes: Option<u64>,
    },
    /// A phase's clock is about to start.
    PhaseStarted {
        /// Its name.
        name: String,
        /// Operations it will do.
        operations: u64,
    },
    /// Operations of the current phase done so far; a few times a second.
    Progress {
        /// Over all workers.
        done: u64,
    },
    /// A phase is done.
    PhaseFinished {
        /// What it measured.
        phase: PhaseResult,
    },
    /// A step outside the phases is about to start.
    StepStarted {
        /// Which.
        step: Step,
    },
    /// A step outside the phases is done.
    StepFinished {
        /// Which.
        step: Step,
        /// How long it took; `None` where the engine needs no such step.
        elapsed_ms: Option<f64>,
    },
    /// The store was settled, closed, opened again and checked.
    Finished {
        /// From opening the store to the end of verify, without drawing the operations.
        run_ms: f64,
        /// Final checksum.
        verify_checksum: String,
        /// Checksum of all nine fields of every profile.
        all_fields_checksum: String,
        /// Lengths of the store's files.
        storage_bytes: u64,
        /// Blocks they occupy.
        storage_allocated_bytes: u64,
        /// Peak resident set up to the end of verify.
        peak_memory_bytes: Option<u64>,
        /// Bytes the process caused to be written.
        io_write_bytes: Option<u64>,
        /// Every index against the primary.
        index_check: IndexCheckResult,
    },
    /// The run failed; nothing follows.
    Failed {
        /// One sentence.
        message: String,
    },
}

/// A timed step outside the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Before the first reads.
    PreReadStabilize,
    /// After the updates.
    PostUpdateStabilize,
    /// Flush, compaction, close.
    Settle,
    /// Opening a fresh handle.
    Reopen,
    /// The final checksum.
    Verify,
    /// All fields and all indexes; untimed in results.
    Check,
}
