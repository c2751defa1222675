//! Results for the tests of this room.

use std::collections::BTreeMap;

use crate::bench::dataset::DataSet;
use crate::bench::result::{EngineResult, IndexCheckResult, Latency, PhaseResult, RunResult, SCHEMA, Status, Workload};

use super::published;

/// The published workload with every count at its default.
pub(crate) fn workload(profiles: u64, query_limit: u64, workers: u64) -> Workload {
    let queries = if profiles <= 10_000 { profiles } else { profiles / 4 };
    Workload {
        name: published::WORKLOAD.to_owned(),
        profiles,
        workers,
        reads: profiles,
        email_reads: profiles,
        queries,
        updates: profiles,
        post_reads: profiles,
        post_email_reads: profiles,
        post_queries: queries,
        query_limit,
        seed: 570_123_434,
        dataset: DataSet::Published,
        memory_bytes: None,
    }
}

/// A completed run of 100 K profiles with the published answers; the second engine is slower than the first, and so on.
pub(crate) fn run(engines: &[&str]) -> RunResult {
    let engines = engines.iter().enumerate().map(|(place, name)| engine(name, slowness(name, place))).collect();
    RunResult {
        schema: SCHEMA,
        workload: workload(100_000, 100, 1),
        environment: BTreeMap::from([("cpu".to_owned(), "Sample 9000".to_owned())]),
        engines,
        published: None,
    }
}

fn slowness(name: &str, place: usize) -> f64 {
    if name == "floor" { 0.3 } else { 1.0 + 1.7 * place as f64 }
}

/// One completed engine, `slowness` times as slow as the published `RocksDB`.
pub(crate) fn engine(name: &str, slowness: f64) -> EngineResult {
    let reference = published::load("100k-linux").expect("an embedded file").run.engines.swap_remove(1);
    let ms = |value: Option<f64>| value.map(|value| value * slowness);
    let phases: Vec<PhaseResult> = reference.phases.iter().map(|phase| slowed(phase, slowness)).collect();
    EngineResult {
        engine: name.to_owned(),
        version: "1.2.3".to_owned(),
        durability: "process".to_owned(),
        repetition: 1,
        settings: BTreeMap::from([("compression".to_owned(), "zstd".to_owned())]),
        status: Status::Completed,
        message: None,
        completed_phase_ms: Some(phases.iter().map(|phase| phase.elapsed_ms).sum()),
        phases,
        run_ms: ms(reference.run_ms),
        pre_read_stabilize_ms: ms(reference.pre_read_stabilize_ms),
        post_update_stabilize_ms: ms(reference.post_update_stabilize_ms),
        settle_ms: Some(16.0 * slowness),
        reopen_ms: Some(4.0 * slowness),
        verify_ms: Some(1.5),
        verify_checksum: reference.verify_checksum,
        all_fields_checksum: Some("00000000000000AA".to_owned()),
        storage_bytes: Some((7_000_000.0 * slowness) as u64),
        storage_allocated_bytes: Some((7_100_000.0 * slowness) as u64),
        peak_memory_bytes: Some((120_000_000.0 * slowness) as u64),
        baseline_memory_bytes: Some(30_000_000),
        io_write_bytes: Some((55_000_000.0 * slowness) as u64),
        index_check: Some(IndexCheckResult { checked: 500_000, problems: Vec::new() }),
    }
}

fn slowed(phase: &PhaseResult, slowness: f64) -> PhaseResult {
    let elapsed_ms = phase.elapsed_ms * slowness;
    PhaseResult {
        elapsed_ms,
        ops_per_s: Some(phase.operations as f64 * 1000.0 / elapsed_ms),
        latency_us: Some(Latency { p50: 1.5, p90: 2.0, p99: 4.0, p999: 16.0, max: 310.0 }),
        ..phase.clone()
    }
}

/// Another repetition of a result, `slowness` times as slow.
pub(crate) fn again(result: &EngineResult, repetition: u64, slowness: f64) -> EngineResult {
    let phases: Vec<PhaseResult> = result.phases.iter().map(|phase| slowed(phase, slowness)).collect();
    EngineResult {
        repetition,
        completed_phase_ms: Some(phases.iter().map(|phase| phase.elapsed_ms).sum()),
        phases,
        ..result.clone()
    }
}

/// A run that was stopped after `done` phases.
pub(crate) fn stopped(mut result: EngineResult, done: usize) -> EngineResult {
    result.phases.truncate(done);
    result.status = Status::Timeout;
    result.message = Some("stopped after 60 s in a phase".to_owned());
    result.verify_checksum = None;
    result.all_fields_checksum = None;
    result.index_check = None;
    result.storage_bytes = None;
    result
}

/// Labels that a careless writer would let through.
pub(crate) fn hostile() -> Vec<String> {
    let mut labels = [
        "</script><img src=x onerror=alert(1)>",
        "a|b",
        "two\nlines",
        "\x1b]0;owned\x07",
        "=HYPERLINK(\"http://x\")",
        "\"><svg/onload=alert(1)>",
        "\u{202e}desrever",
        "",
    ]
    .map(str::to_owned)
    .to_vec();
    labels.push("long".repeat(75));
    labels
}
