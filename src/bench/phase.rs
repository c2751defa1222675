//! The sixteen phases of the workload, in order.

use super::result::Workload;

/// What each operation of a phase does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Generates a profile and stores it.
    Insert,
    /// Reads a profile by its id.
    Read,
    /// Builds an e-mail and finds its profile.
    FindByEmail,
    /// Reads ids from an index.
    Scan(Index),
    /// Reads ids from an index and the profile of each.
    Query(Index),
    /// Reads a profile, changes it and stores it.
    Update,
}

/// An index that is read in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// By country and status, then id.
    CountryStatus,
    /// By creation time, then id.
    CreatedAt,
    /// By reputation, descending, then id.
    TopReputation,
}

/// Which part of the plan a phase draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Up to the updates.
    First,
    /// After the updates.
    PostUpdate,
}

/// One phase: a name as in the published report, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Name in results.
    pub name: &'static str,
    /// What each operation does.
    pub operation: Operation,
    /// Which part of the plan it draws from.
    pub part: Part,
}

use Index::{CountryStatus, CreatedAt, TopReputation};
use Operation::{FindByEmail, Insert, Query, Read, Scan, Update};
use Part::{First, PostUpdate};

/// Every phase, in the order they run.
pub const PHASES: [Phase; 16] = [
    phase("insert profiles", Insert, First),
    phase("read by user id", Read, First),
    phase("lookup by email", FindByEmail, First),
    phase("scan country/status index", Scan(CountryStatus), First),
    phase("query country/status", Query(CountryStatus), First),
    phase("scan created-at index", Scan(CreatedAt), First),
    phase("query created-at range", Query(CreatedAt), First),
    phase("scan top reputation index", Scan(TopReputation), First),
    phase("query top reputation", Query(TopReputation), First),
    phase("update profiles", Update, First),
    phase("post-update read by user id", Read, PostUpdate),
    phase("post-update lookup by email", FindByEmail, PostUpdate),
    phase("post-update scan country/status index", Scan(CountryStatus), PostUpdate),
    phase("post-update query country/status", Query(CountryStatus), PostUpdate),
    phase("post-update scan top reputation index", Scan(TopReputation), PostUpdate),
    phase("post-update query top reputation", Query(TopReputation), PostUpdate),
];

const fn phase(name: &'static str, operation: Operation, part: Part) -> Phase {
    Phase { name, operation, part }
}

impl Phase {
    /// Operations this phase does in `workload`, over all workers.
    pub fn operations(&self, workload: &Workload) -> u64 {
        match (self.operation, self.part) {
            (Insert, _) => workload.profiles,
            (Update, _) => workload.updates,
            (Read, First) => workload.reads,
            (Read, PostUpdate) => workload.post_reads,
            (FindByEmail, First) => workload.email_reads,
            (FindByEmail, PostUpdate) => workload.post_email_reads,
            (Scan(_) | Query(_), First) => workload.queries,
            (Scan(_) | Query(_), PostUpdate) => workload.post_queries,
        }
    }
}
