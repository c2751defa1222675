//! Whether a database may still write: the first failure is kept, and everything after it is told the cause.

use super::error::{Error, Result};
use super::events;
use super::sync::{AtomicBool, Mutex, Ordering};

/// Starts out sound. What background work failed with can be gone again, by a resume; anything else stays.
#[derive(Default)]
pub(crate) struct Health {
    /// Whether there is a failure, so that a commit looks at one flag. Changed under the lock of `state`.
    refuses: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failure: Option<Failure>,
    /// Stays, whatever becomes of a failure.
    closed: bool,
    /// From the beginning.
    read_only: bool,
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => Err(failure.error()),
            None if self.closed => Err(Error::Closed),
            None if self.read_only => Err(Error::ReadOnly),
            None => Ok(()),
        }
    }
}

enum Failure {
    /// A log write, or one of names, failed: what is on disk is unknown.
    Poisoned(String),
    /// A flush or merge failed, and left everything as it was.
    Background(String),
    /// A flush or merge panicked.
    Panicked(String),
}

impl Failure {
    fn error(&self) -> Error {
        match self {
            Self::Poisoned(cause) => Error::Poisoned { cause: cause.clone() },
            Self::Background(cause) => Error::Background { cause: cause.clone() },
            Self::Panicked(cause) => Error::Panicked { cause: cause.clone() },
        }
    }
}

impl Health {
    /// Of a database that may not write.
    pub(crate) fn read_only() -> Self {
        let state = State { read_only: true, ..State::default() };
        Self { refuses: AtomicBool::new(true), state: Mutex::new(state) }
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if !self.refuses.load(Ordering::Acquire) {
            return Ok(());
        }
        self.state.lock().check()
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
        let state = self.state.lock();
        match &state.failure {
            Some(Failure::Background(_)) if !state.closed => Ok(true),
            _ => state.check().map(|()| false),
        }
    }

    /// What failed in the background was done after all. Answers whether anything had failed.
    pub(crate) fn background_recovered(&self) -> bool {
        let mut state = self.state.lock();
        let has_failed = matches!(state.failure, Some(Failure::Background(_)));
        if has_failed {
            state.failure = None;
            self.refuses.store(state.closed, Ordering::Release);
            events::recovered();
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
        self.state.lock().closed = true;
        self.refuses.store(true, Ordering::Release);
    }

    /// Keeps the first failure. Whatever fails after background work did takes its place, for it is either what a resume
    /// has met or something worse.
    fn fail(&self, failure: Failure) {
        let mut state = self.state.lock();
        if matches!(state.failure, None | Some(Failure::Background(_))) {
            events::refused(&failure.error());
            state.failure = Some(failure);
        }
        self.refuses.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Health {
        let health = Health::default();
        health.background_failed(&Error::Closed);
        health
    }

    #[test]
    fn what_was_closed_stays_closed_when_a_failure_is_gone() {
        let health = failed();
        health.close();
        assert!(matches!(health.check_writable(), Err(Error::Background { .. })), "the failure is told first");
        assert!(health.can_resume().is_err(), "nothing is resumed after a close");
        assert!(health.background_recovered());
        assert!(matches!(health.check_writable(), Err(Error::Closed)));
        assert!(health.check_sound().is_ok(), "what was begun before the close goes on");
        assert!(!health.background_recovered(), "once");
    }

    #[test]
    fn a_failure_that_is_gone_lets_writes_go_on_and_any_other_does_not() {
        let health = failed();
        assert_eq!(health.can_resume().ok(), Some(true));
        assert!(health.background_recovered() && health.check_writable().is_ok());
        health.background_failed(&Error::Closed);
        health.poison(&Error::Closed);
        assert!(!health.background_recovered() && health.can_resume().is_err());
        assert!(matches!(health.check_writable(), Err(Error::Poisoned { .. })));
    }
}
