//! The same primitives for threads that take turns.
//!
//! An exploration runs all threads of a case on one thread of the system. Whenever one of them touches a lock, an atomic, a
//! pointer that is swapped or a condition, `shuttle` decides who goes on, so a case runs in an order that is drawn, and
//! the same draw runs it again. Who waits for what nobody will ever do is found at once, because then no thread can go on.
//!
//! Each primitive is the real one with a turn before it: the values are in the real ones, so that what is made inside of
//! an exploration can be looked at outside of it, and the other way round. Only locks and conditions have a twin of
//! `shuttle`'s besides, which knows who waits for whom; who has the twin finds the real lock free.
//!
//! Every access counts as sequentially consistent: an order of memory that is too weak is not found here.

use std::cell::Cell;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use shuttle::sync as turns;

thread_local! {
    static IS_EXPLORING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `explore`, inside of which threads take turns. Called by the first thread of an execution of `shuttle`'s.
pub(crate) fn exploring<R>(explore: impl FnOnce() -> R) -> R {
    IS_EXPLORING.set(true);
    let result = explore();
    IS_EXPLORING.set(false);
    result
}

/// Takes turns no more: an exploration did not come to its end.
pub(crate) fn give_up_exploring() {
    IS_EXPLORING.set(false);
}

/// Lets others go on.
fn turn() {
    if IS_EXPLORING.get() {
        shuttle::thread::sleep(Duration::ZERO);
    }
}

/// Something that each access to is a turn.
#[derive(Debug, Default)]
pub(crate) struct InTurn<T>(T);

impl<T> Deref for InTurn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        turn();
        &self.0
    }
}

pub(crate) type ArcSwap<T> = InTurn<arc_swap::ArcSwap<T>>;
pub(crate) type ArcSwapOption<T> = InTurn<arc_swap::ArcSwapOption<T>>;
pub(crate) type AtomicBool = InTurn<std::sync::atomic::AtomicBool>;
pub(crate) type AtomicIsize = InTurn<std::sync::atomic::AtomicIsize>;
pub(crate) type AtomicU64 = InTurn<std::sync::atomic::AtomicU64>;
pub(crate) type AtomicUsize = InTurn<std::sync::atomic::AtomicUsize>;
pub(crate) type OnceLock<T> = InTurn<std::sync::OnceLock<T>>;

impl<T> InTurn<arc_swap::ArcSwap<T>> {
    pub(crate) fn from_pointee(value: T) -> Self {
        Self(arc_swap::ArcSwap::from_pointee(value))
    }
}

impl AtomicBool {
    pub(crate) const fn new(value: bool) -> Self {
        Self(std::sync::atomic::AtomicBool::new(value))
    }
}

impl AtomicU64 {
    pub(crate) const fn new(value: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(value))
    }
}

impl AtomicUsize {
    pub(crate) const fn new(value: usize) -> Self {
        Self(std::sync::atomic::AtomicUsize::new(value))
    }
}

#[derive(Default)]
pub(crate) struct Mutex<T> {
    turns: turns::Mutex<()>,
    value: parking_lot::Mutex<T>,
}

pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// Not there while it waits for a condition. Given back before the turns are.
    value: Option<parking_lot::MutexGuard<'a, T>>,
    /// Not there outside of an exploration.
    turns: Option<turns::MutexGuard<'a, ()>>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { turns: turns::Mutex::new(()), value: parking_lot::Mutex::new(value) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let turns = IS_EXPLORING.get().then(|| self.turns.lock().unwrap_or_else(PoisonError::into_inner));
        MutexGuard { mutex: self, value: Some(self.value.lock()), turns }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("nobody looks while it waits")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("nobody looks while it waits")
    }
}

/// Whether the time was over.
pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

#[derive(Default)]
pub(crate) struct Condvar {
    turns: turns::Condvar,
    real: parking_lot::Condvar,
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { turns: turns::Condvar::new(), real: parking_lot::Condvar::new() }
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(turns) = guard.turns.take() {
            guard.value = None;
            guard.turns = Some(self.turns.wait(turns).unwrap_or_else(PoisonError::into_inner));
            guard.value = Some(guard.mutex.value.lock());
        } else {
            self.real.wait(guard.value.as_mut().expect("it waits once"));
        }
    }

    /// Inside of an exploration nobody knows what time it is: others go on, and then it is over.
    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> WaitTimeoutResult {
        if guard.turns.is_none() {
            let value = guard.value.as_mut().expect("it waits once");
            return WaitTimeoutResult(self.real.wait_until(value, until).timed_out());
        }
        guard.value = None;
        guard.turns = None;
        turn();
        *guard = guard.mutex.lock();
        WaitTimeoutResult(true)
    }

    pub(crate) fn notify_one(&self) {
        if IS_EXPLORING.get() {
            self.turns.notify_one();
        } else {
            self.real.notify_one();
        }
    }

    pub(crate) fn notify_all(&self) {
        if IS_EXPLORING.get() {
            self.turns.notify_all();
        } else {
            self.real.notify_all();
        }
    }
}

#[derive(Default)]
pub(crate) struct RwLock<T> {
    turns: turns::RwLock<()>,
    value: parking_lot::RwLock<T>,
}

/// What a lock is held by: the real lock, given back first, and the turns.
pub(crate) struct InTurns<G, H> {
    value: G,
    _turns: Option<H>,
}

impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> InTurns<parking_lot::RwLockReadGuard<'_, T>, turns::RwLockReadGuard<'_, ()>> {
        let turns = IS_EXPLORING.get().then(|| self.turns.read().unwrap_or_else(PoisonError::into_inner));
        InTurns { value: self.value.read(), _turns: turns }
    }

    pub(crate) fn write(&self) -> InTurns<parking_lot::RwLockWriteGuard<'_, T>, turns::RwLockWriteGuard<'_, ()>> {
        let turns = IS_EXPLORING.get().then(|| self.turns.write().unwrap_or_else(PoisonError::into_inner));
        InTurns { value: self.value.write(), _turns: turns }
    }
}

impl<G: Deref, H> Deref for InTurns<G, H> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.value
    }
}

impl<G: DerefMut, H> DerefMut for InTurns<G, H> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.value
    }
}

/// A thread of the system's, or one that takes turns.
pub(crate) enum JoinHandle<T> {
    Real(std::thread::JoinHandle<T>),
    InTurn(shuttle::thread::JoinHandle<T>),
}

impl<T> JoinHandle<T> {
    pub(crate) fn join(self) -> std::thread::Result<T> {
        match self {
            Self::Real(thread) => thread.join(),
            Self::InTurn(thread) => thread.join(),
        }
    }
}

pub(crate) struct Builder {
    name: Option<String>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { name: None }
    }

    pub(crate) fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    pub(crate) fn spawn<T: Send + 'static>(
        self,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let name = self.name.unwrap_or_default();
        if IS_EXPLORING.get() {
            shuttle::thread::Builder::new().name(name).spawn(run).map(JoinHandle::InTurn)
        } else {
            std::thread::Builder::new().name(name).spawn(run).map(JoinHandle::Real)
        }
    }
}
