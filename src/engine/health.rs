//! Whether a database may still write: the first failure is kept, and everything after it is told the cause.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::error::{Error, Result};

/// Starts out sound; only a reopen makes it sound again.
#[derive(Default)]
pub(crate) struct Health {
    /// Set with or after `failure`, so that a commit looks at one flag.
    refuses: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

enum Failure {
    /// A log or manifest write failed: what is on disk is unknown.
    Poisoned(String),
    /// A flush or merge failed.
    Background(String),
    Closed,
}

impl Health {
    pub(crate) fn check_writable(&self) -> Result<()> {
        if !self.refuses.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*self.failure.lock() {
            None => Ok(()),
            Some(Failure::Poisoned(cause)) => Err(Error::Poisoned { cause: cause.clone() }),
            Some(Failure::Background(cause)) => Err(Error::Background { cause: cause.clone() }),
            Some(Failure::Closed) => Err(Error::Closed),
        }
    }

    /// As [`Self::check_writable`], for what was begun before a close: that does not fail because of it.
    pub(crate) fn check_sound(&self) -> Result<()> {
        match self.check_writable() {
            Err(Error::Closed) => Ok(()),
            checked => checked,
        }
    }

    pub(crate) fn poison(&self, error: &Error) {
        self.fail(Failure::Poisoned(error.to_string()));
    }

    pub(crate) fn background_failed(&self, cause: String) {
        self.fail(Failure::Background(cause));
    }

    pub(crate) fn close(&self) {
        self.fail(Failure::Closed);
    }

    /// Keeps the first failure; a close takes the place of none, and of nothing else.
    fn fail(&self, failure: Failure) {
        self.failure.lock().get_or_insert(failure);
        self.refuses.store(true, Ordering::Release);
    }
}
