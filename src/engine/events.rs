//! What a database tells of its background work, through the crate `tracing`; nothing unless the application listens.
//!
//! There is one event for each piece of work and each failure, never one for an operation. All have the target
//! `profilestore`. Some are told under locks: what listens must not call the database.
//!
//! | level | message | fields |
//! |---|---|---|
//! | info | `opened` | `dir`, `trees`, `replayed_batches`, `elapsed_us` |
//! | warn | `dropped the end of a log` | `file`, `offset`, `bytes`: what a crash had left half written, acknowledged to nobody |
//! | debug | `background work` | `work` (`flush`, `merge`, `join`, `settle`), `tree` (of a merge or join), `segment_bytes`, `elapsed_us` |
//! | debug | `a commit waited` | `waited_for` (`flush`, `merge`, `settle`), `elapsed_us` |
//! | error | `writes are refused` | `cause` |
//! | info | `writes are taken again` | |
//! | info | `closed` | `dir` |

use std::path::Path;
use std::time::Duration;

use super::error::Error;
use super::stalls::StallReason;
use super::wal::RecoveryReport;

const TARGET: &str = "profilestore";

pub(super) fn opened(dir: &Path, trees: usize, report: &RecoveryReport, elapsed: Duration) {
    let replayed_batches = report.replayed_batches;
    let elapsed_us = micros(elapsed);
    tracing::info!(target: TARGET, dir = %dir.display(), trees, replayed_batches, elapsed_us, "opened");
    if let Some((file, offset)) = &report.dropped_from {
        let bytes = report.dropped_bytes;
        tracing::warn!(target: TARGET, file = file.as_str(), offset, bytes, "dropped the end of a log");
    }
}

/// Of one `tree`, or of all.
pub(super) fn worked(work: &'static str, tree: Option<&str>, segment_bytes: u64, elapsed: Duration) {
    let elapsed_us = micros(elapsed);
    tracing::debug!(target: TARGET, work, tree, segment_bytes, elapsed_us, "background work");
}

pub(super) fn stalled(reason: StallReason, waited: Duration) {
    let (waited_for, elapsed_us) = (reason.name(), micros(waited));
    tracing::debug!(target: TARGET, waited_for, elapsed_us, "a commit waited");
}

pub(super) fn refused(failure: &Error) {
    tracing::error!(target: TARGET, cause = %failure, "writes are refused");
}

pub(super) fn recovered() {
    tracing::info!(target: TARGET, "writes are taken again");
}

pub(super) fn closed(dir: &Path) {
    tracing::info!(target: TARGET, dir = %dir.display(), "closed");
}

fn micros(elapsed: Duration) -> u64 {
    elapsed.as_micros() as u64
}
