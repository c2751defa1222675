//! What may be shared by threads and what may move between them: a change of it breaks users, so it breaks this first.

use crate::engine::{
    Batch, Database, Error, Layout, Options, RecoveryReport, Scan, Snapshot, Stats, Transaction, TreeId,
};
use crate::store::{self, Collection, Profile, Repository};

fn shared<T: Send + Sync>() {}

fn moved<T: Send>() {}

#[test]
fn handles_and_plain_data_are_shared() {
    shared::<Database>();
    shared::<Collection<Profile, Database>>();
    shared::<Repository<Database>>();
    shared::<Snapshot<'_>>();
    shared::<(Batch, Layout, Options, RecoveryReport, Stats, TreeId)>();
    shared::<Error>();
    shared::<store::Error>();
}

#[test]
fn what_goes_on_step_by_step_moves() {
    moved::<Transaction<'_>>();
    moved::<Scan<'_>>();
}
