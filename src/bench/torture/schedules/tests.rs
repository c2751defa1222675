//! The subjects in a few orders, and whether the exploration finds what it is there for.

use super::*;
use crate::bench::torture::{caught, sound_cases};
use crate::engine::sync::{AtomicU64, Mutex, Ordering};

#[test]
fn threads_get_what_they_were_promised_in_every_order() {
    let cases = sound_cases(|session| (0..200).for_each(|seed| round(session, seed)));
    assert_eq!(cases, 200 * SUBJECTS.len() as u64);
}

#[test]
fn the_same_seed_gives_the_same_calls_in_the_same_order() {
    let calls = |subject, seed| {
        let case = explore(seed, move || Case::run(subject, seed)).expect("it goes well");
        case.disk.trace().iter().map(|call| format!("{call:?}")).collect::<Vec<_>>()
    };
    for subject in SUBJECTS {
        for seed in 0..5 {
            assert_eq!(calls(subject, seed), calls(subject, seed), "schedule of {} with seed {seed}", subject.name);
        }
    }
}

/// How many of four hundred orders of two threads go wrong.
fn wrong_orders(act: fn(usize, &[Arc<Mutex<u64>>; 2], &AtomicU64), is_right: fn(u64) -> bool) -> usize {
    let case = move || {
        let (locks, sum) = (<[Arc<Mutex<u64>>; 2]>::default(), Arc::new(AtomicU64::new(0)));
        let threads = [0, 1].map(|number| {
            let (locks, sum) = (locks.clone(), Arc::clone(&sum));
            shuttle::thread::spawn(move || act(number, &locks, &sum))
        });
        for thread in threads {
            thread.join().expect("no panic");
        }
        is_right(sum.load(Ordering::Relaxed))
    };
    (0..400).filter(|&seed| caught(|| Ok(explore(seed, case))) != Ok(true)).count()
}

#[test]
fn an_addition_that_is_lost_between_two_threads_is_found() {
    let add_in_two_steps = |_, _: &_, sum: &AtomicU64| {
        let before = sum.load(Ordering::Relaxed);
        sum.store(before + 1, Ordering::Relaxed);
    };
    let add = |_, _: &_, sum: &AtomicU64| {
        sum.fetch_add(1, Ordering::Relaxed);
    };
    assert!(wrong_orders(add_in_two_steps, |sum| sum == 2) > 5);
    assert_eq!(wrong_orders(add, |sum| sum == 2), 0);
}

#[test]
fn two_locks_that_are_taken_in_either_order_are_found() {
    let own_first = |number: usize, locks: &[Arc<Mutex<u64>>; 2], _: &_| {
        let _first = locks[number].lock();
        *locks[1 - number].lock() += 1;
    };
    let same_first = |_: usize, locks: &[Arc<Mutex<u64>>; 2], _: &_| {
        let _first = locks[0].lock();
        *locks[1].lock() += 1;
    };
    assert!(wrong_orders(own_first, |_| true) > 5);
    assert_eq!(wrong_orders(same_first, |_| true), 0);
}
