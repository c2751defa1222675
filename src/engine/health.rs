//! Whether a database may still write: the first failure is kept, and everything after it is told the cause.

use super::error::{Error, Result};
use super::sync::{AtomicBool, Mutex, Ordering};

/// Starts out sound. What background work failed with can be gone again, by a resume; anything else stays.
#[derive(Default)]
pub(crate) struct Health {
    /// Whether there is a failure, so that a commit looks at one flag. Changed under the lock of `failure`.
    refuses: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

enum Failure {
    /// A log write, or one of names, failed: what is on disk is unknown.
    Poisoned(String),
    /// A flush or merge failed, and left everything as it was.
    Background(String),
    /// A flush or merge panicked.
    Panicked(String),
    Closed,
}

impl Failure {
    fn error(&self) -> Error {
        match self {
            Self::Poisoned(cause) => Error::Poisoned { cause: cause.clone() },
            Self::Background(cause) => Error::Background { cause: cause.clone() },
            Self::Panicked(cause) => Error::Panicked { cause: cause.clone() },
            Self::Closed => Error::Closed,
        }
    }
}

impl Health {
    pub(crate) fn check_writable(&self) -> Result<()> {
        if !self.refuses.load(Ordering::Acquire) {
            return Ok(());
        }
        self.failure.lock().as_ref().map_or(Ok(()), |failure| Err(failure.error()))
    }

    /// As [`Self::check_writable`], for what was begun before a close: that does not fail because of it.
    pub(crate) fn check_sound(&self) -> Result<()> {
        match self.check_writable() {
            Err(Error::Closed) => Ok(()),
            checked => checked,
        }
    }

    /// Whether there is a failure that can be gone again.
    pub(crate) fn can_resume(&self) -> Result<bool> {
        match &*self.failure.lock() {
            None => Ok(false),
            Some(Failure::Background(_)) => Ok(true),
            Some(failure) => Err(failure.error()),
        }
    }

    /// What failed in the background was done after all. Answers whether anything had failed.
    pub(crate) fn background_recovered(&self) -> bool {
        let mut failure = self.failure.lock();
        let has_failed = matches!(*failure, Some(Failure::Background(_)));
        if has_failed {
            *failure = None;
            self.refuses.store(false, Ordering::Release);
        }
        has_failed
    }

    pub(crate) fn poison(&self, error: &Error) {
        self.fail(Failure::Poisoned(error.to_string()));
    }

    pub(crate) fn background_failed(&self, error: &Error) {
        self.fail(Failure::Background(error.to_string()));
    }

    pub(crate) fn background_panicked(&self, cause: String) {
        self.fail(Failure::Panicked(cause));
    }

    pub(crate) fn close(&self) {
        self.fail(Failure::Closed);
    }

    /// Keeps the first failure; a close takes the place of none, and of nothing else. Whatever fails after background work
    /// did takes its place, for it is either what a resume has met or something worse.
    fn fail(&self, failure: Failure) {
        let mut first = self.failure.lock();
        let takes_its_place = match *first {
            None => true,
            Some(Failure::Background(_)) => !matches!(failure, Failure::Closed),
            Some(_) => false,
        };
        if takes_its_place {
            *first = Some(failure);
        }
        self.refuses.store(true, Ordering::Release);
    }
}
