//! What a run found out: plain data, the schema of `result.json`.
//!
//! Milliseconds are numbers; what was not measured is `null`. Unknown fields are ignored when read, so that an older
//! build can draw a newer file. Raise [`SCHEMA`] when the meaning of a field changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::dataset::DataSet;

/// Version of the layout below.
pub const SCHEMA: u32 = 1;

/// A whole run: one workload on several engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was asked for.
    pub workload: Workload,
    /// Machine, system and build, by name.
    pub environment: BTreeMap<String, String>,
    /// One entry for each engine and repetition, in the order asked for.
    pub engines: Vec<EngineResult>,
    /// Comparison with the published results of the same configuration, if there are any.
    pub published: Option<Published>,
}

/// What was asked for. Counts are operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Name of the workload, such as `profile-store`.
    pub name: String,
    /// Number of profiles.
    pub profiles: u64,
    /// Threads.
    pub workers: u64,
    /// Point reads by user id.
    pub reads: u64,
    /// Lookups by e-mail.
    pub email_reads: u64,
    /// Queries of each kind.
    pub queries: u64,
    /// Updates.
    pub updates: u64,
    /// Point reads by user id after the updates.
    pub post_reads: u64,
    /// Lookups by e-mail after the updates.
    pub post_email_reads: u64,
    /// Queries of each kind after the updates.
    pub post_queries: u64,
    /// Rows a scan or query stops at.
    pub query_limit: u64,
    /// Seed of data and plan.
    pub seed: i32,
    /// Which profiles; results that do not name them hold the published ones.
    #[serde(default)]
    pub dataset: DataSet,
    /// Memory that each engine may take for its caches and write buffers; `None` leaves each as it is usually tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// How an engine's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Every phase done.
    Completed,
    /// Stopped by `--timeout`; finished phases are kept.
    Timeout,
    /// The engine, or its process, failed; finished phases are kept.
    Failed,
    /// Stopped by the user; finished phases are kept.
    Interrupted,
}

/// One engine's run. `None` is what was not reached, or does not apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineResult {
    /// `profilestore`, `floor`, `fjall`, `sqlite`, ...
    pub engine: String,
    /// Version of the engine that ran.
    pub version: String,
    /// Durability class: `none`, `process` or `sync`.
    pub durability: String,
    /// Repetition, from 1.
    #[serde(default = "one")]
    pub repetition: u64,
    /// Settings as read back from the engine, by name.
    pub settings: BTreeMap<String, String>,
    /// How it ended.
    pub status: Status,
    /// Why, when it did not complete; names the interrupted phase.
    pub message: Option<String>,
    /// Finished phases, in order.
    pub phases: Vec<PhaseResult>,
    /// Sum of the finished phases.
    pub completed_phase_ms: Option<f64>,
    /// From opening the store to the end of verify, without drawing the operations.
    pub run_ms: Option<f64>,
    /// Making the store ready for reads after the inserts.
    pub pre_read_stabilize_ms: Option<f64>,
    /// The same after the updates.
    pub post_update_stabilize_ms: Option<f64>,
    /// Flush, compaction and close.
    pub settle_ms: Option<f64>,
    /// Opening the settled store again.
    pub reopen_ms: Option<f64>,
    /// Reading back the profiles of the final checksum.
    pub verify_ms: Option<f64>,
    /// Final checksum, 16 upper-case hexadecimal digits.
    pub verify_checksum: Option<String>,
    /// Checksum over all nine fields of every profile after reopen, outside every clock; compared between engines.
    #[serde(default)]
    pub all_fields_checksum: Option<String>,
    /// Sum of the lengths of the store's files after settle and close.
    pub storage_bytes: Option<u64>,
    /// Blocks those files occupy.
    pub storage_allocated_bytes: Option<u64>,
    /// Peak resident set of the engine's process.
    pub peak_memory_bytes: Option<u64>,
    /// Resident set of that process before the store is opened, with room for the operations of any phase.
    pub baseline_memory_bytes: Option<u64>,
    /// Bytes the process caused to be written to storage.
    pub io_write_bytes: Option<u64>,
    /// Every index walked against the primary, both ways, after reopen.
    pub index_check: Option<IndexCheckResult>,
}

impl EngineResult {
    /// A first repetition of which nothing is known yet.
    pub fn unmeasured(engine: &str, durability: &str, status: Status) -> Self {
        Self {
            engine: engine.to_owned(),
            version: String::new(),
            durability: durability.to_owned(),
            repetition: 1,
            settings: BTreeMap::new(),
            status,
            message: None,
            phases: Vec::new(),
            completed_phase_ms: None,
            run_ms: None,
            pre_read_stabilize_ms: None,
            post_update_stabilize_ms: None,
            settle_ms: None,
            reopen_ms: None,
            verify_ms: None,
            verify_checksum: None,
            all_fields_checksum: None,
            storage_bytes: None,
            storage_allocated_bytes: None,
            peak_memory_bytes: None,
            baseline_memory_bytes: None,
            io_write_bytes: None,
            index_check: None,
        }
    }
}

fn one() -> u64 {
    1
}

/// One phase of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// As in the published report, such as `insert profiles`.
    pub name: String,
    /// Operations done.
    pub operations: u64,
    /// From the opening of the gate to the end of the last worker; `null` in the file if it is not a finite number.
    #[serde(deserialize_with = "null_is_nan")]
    pub elapsed_ms: f64,
    /// Operations per second; `None` where there is nothing to divide.
    pub ops_per_s: Option<f64>,
    /// 16 upper-case hexadecimal digits.
    pub checksum: String,
    /// Bytes of user data handed to the store, see [`data_bytes`](super::dataset::data_bytes); `None` for reads.
    #[serde(default)]
    pub data_bytes: Option<u64>,
    /// Service time of sampled operations; `None` where none were sampled.
    pub latency_us: Option<Latency>,
}

fn null_is_nan<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Percentiles of sampled service times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest sample.
    pub max: f64,
}

/// Result of walking every index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCheckResult {
    /// Records and entries looked at.
    pub checked: u64,
    /// One sentence for each disagreement.
    pub problems: Vec<String>,
}

/// How the checksums compare with published ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Name of the published result, such as `100k-linux`.
    pub name: String,
    /// Checksums of the worst engine that equal the published ones.
    pub equal: u64,
    /// Checksums published.
    pub of: u64,
}
