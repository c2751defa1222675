//! Which calls fail, and how.

use std::io;

use super::state::AfterFailedSync;

/// The calls of [`super::Disk`] and [`super::DiskFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Lock,
    List,
    BootId,
    Create,
    Open,
    Len,
    Read,
    Append,
    /// Room for a log, without which it goes on like any other file: nobody has to hear of it.
    Allocate,
    Sync,
    Rename,
    Remove,
    SyncDir,
}

impl CallKind {
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::List => "list",
            Self::BootId => "read the boot id of",
            Self::Create => "create",
            Self::Open => "open",
            Self::Len => "stat",
            Self::Read => "read",
            Self::Append => "append to",
            Self::Allocate => "allocate room for",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::SyncDir => "sync directory",
        }
    }
}

/// One fault. Start from [`Fault::once`] or [`Fault::for_ever`] and set what matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// Which calls it is about; `None` for all.
    pub(crate) kind: Option<CallKind>,
    /// How the names of the files it is about end; empty for all.
    pub(crate) ending: &'static str,
    /// How many such calls go well before.
    pub(crate) after: usize,
    pub(crate) for_ever: bool,
    pub(crate) error: rustix::io::Errno,
    /// Whether a part of an append lands before it fails.
    pub(crate) short: bool,
    pub(crate) after_failed_sync: AfterFailedSync,
}

impl Fault {
    /// Fails one call of `kind`, after `after` that go well, with an I/O error.
    pub(crate) fn once(kind: impl Into<Option<CallKind>>, after: usize) -> Self {
        Self {
            kind: kind.into(),
            ending: "",
            after,
            for_ever: false,
            error: rustix::io::Errno::IO,
            short: false,
            after_failed_sync: AfterFailedSync::CacheKeepsNew,
        }
    }

    /// The same, and every such call after it.
    pub(crate) fn for_ever(kind: impl Into<Option<CallKind>>, after: usize) -> Self {
        Self { for_ever: true, ..Self::once(kind, after) }
    }

    pub(super) fn error(&self) -> io::Error {
        self.error.into()
    }

    /// How many of the bytes of a failing append land.
    pub(super) fn landed(&self, len: usize) -> usize {
        if self.short { len / 2 } else { 0 }
    }

    fn is_about(&self, kind: CallKind, name: &str) -> bool {
        self.kind.is_none_or(|about| about == kind) && name.ends_with(self.ending)
    }
}

/// The faults in force, and how often they struck.
#[derive(Default)]
pub(super) struct Faults {
    in_force: Vec<Fault>,
    struck: usize,
    /// Those of them that somebody has to hear of.
    told: usize,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.in_force.push(fault);
    }

    pub(super) fn clear(&mut self) -> usize {
        self.in_force.clear();
        self.told = 0;
        std::mem::take(&mut self.struck)
    }

    pub(super) fn told(&self) -> usize {
        self.told
    }

    /// Counts a call, and answers the fault it fails with.
    pub(super) fn strike(&mut self, kind: CallKind, name: &str) -> Option<Fault> {
        let due = |fault: &mut Fault| {
            if !fault.is_about(kind, name) {
                return false;
            }
            let due = fault.after == 0;
            fault.after = fault.after.saturating_sub(1);
            due
        };
        let index = (0..self.in_force.len()).find(|&index| due(&mut self.in_force[index]))?;
        self.struck += 1;
        self.told += usize::from(kind != CallKind::Allocate);
        Some(if self.in_force[index].for_ever { self.in_force[index] } else { self.in_force.remove(index) })
    }
}
