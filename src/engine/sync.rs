//! Threads and what they share: the engine takes its locks, atomics and threads from here, and from nowhere else.
//!
//! They are those of `parking_lot`, `arc_swap` and the standard library, by name and with nothing in between. In a build
//! with the feature `schedules` they can do more: inside of an exploration of schedules each of them first lets any other
//! thread go on, see `sync/scheduled.rs`; outside of one they are what they are here.
//!
//! Not from here are the threads that settle side by side, which share nothing but what is counted here: a schedule settles
//! on one thread.

#[cfg(feature = "schedules")]
pub(crate) mod scheduled;

pub(crate) use arc_swap::Guard;
pub(crate) use std::sync::atomic::Ordering;

#[cfg(not(feature = "schedules"))]
pub(crate) use parking_lot::Condvar;
#[cfg(not(feature = "schedules"))]
pub(crate) use {
    arc_swap::{ArcSwap, ArcSwapOption},
    parking_lot::{Mutex, MutexGuard, RwLock},
    std::sync::OnceLock,
    std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize},
};

#[cfg(feature = "schedules")]
pub(crate) use self::scheduled::{
    ArcSwap, ArcSwapOption, AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, OnceLock,
    RwLock,
};

/// Threads that outlive the call that starts them.
pub(crate) mod thread {
    #[cfg(feature = "schedules")]
    pub(crate) use super::scheduled::{Builder, JoinHandle};
    #[cfg(not(feature = "schedules"))]
    pub(crate) use std::thread::{Builder, JoinHandle};
}
