//! Who goes on: the draw that makes a schedule.
//!
//! Some mistakes show when threads change at every turn, and some only when one of them rests for long at the wrong moment.
//! So schedules are drawn in three ways, see [`Temper`].

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use crate::engine::disk::sim::Random;

/// Draws one schedule.
pub(super) struct Chooser {
    random: Random,
    seed: u64,
    temper: Temper,
    is_used: bool,
}

enum Temper {
    /// Anybody may be next.
    Restless,
    /// Whoever goes on keeps going, but for one turn in so many.
    Steady(usize),
    /// Whoever has the lowest rank of those who can. What goes wrong because of a few changes at the right turns is found
    /// by this one with a probability that is known: the schedules of probabilistic concurrency testing.
    Ranked(Ranks),
}

/// The ranks of threads, by number.
struct Ranks {
    by_thread: Vec<u64>,
    /// Turns at which whoever goes on falls behind all others.
    falls: Vec<usize>,
    turns: usize,
    /// How many fell.
    fallen: u64,
}

impl Chooser {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let temper = match random.below(4) {
            0 => Temper::Restless,
            1 => Temper::Steady(1 << (1 + random.below(6))),
            _ => Temper::Ranked(Ranks::draw(&mut random)),
        };
        Self { random, seed, temper, is_used: false }
    }
}

impl Ranks {
    fn draw(random: &mut Random) -> Self {
        // How many turns there are is not known before.
        let turns = 1 << (5 + random.below(8));
        let falls = (0..=random.below(4)).map(|_| random.below(turns)).collect();
        Self { by_thread: Vec::new(), falls, turns: 0, fallen: 0 }
    }

    fn choose(&mut self, able: &[TaskId], current: Option<TaskId>, random: &mut Random) -> TaskId {
        let count = 1 + able.iter().map(|&task| usize::from(task)).max().expect("somebody can go on");
        while self.by_thread.len() < count {
            self.by_thread.push(random.next() >> 1);
        }
        if able.len() > 1 {
            if let (true, Some(current)) = (self.falls.contains(&self.turns), current) {
                self.fallen += 1;
                self.by_thread[usize::from(current)] = u64::MAX / 2 + self.fallen;
            }
            self.turns += 1;
        }
        *able.iter().min_by_key(|&&task| self.by_thread[usize::from(task)]).expect("somebody can go on")
    }
}

impl Scheduler for Chooser {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.is_used, true)).then(|| Schedule::new(self.seed))
    }

    fn next_task(&mut self, able: &[&Task], current: Option<TaskId>, _: bool) -> Option<TaskId> {
        let able: Vec<TaskId> = able.iter().map(|task| task.id()).collect();
        let stays = current.filter(|current| able.contains(current));
        let random = &mut self.random;
        Some(match (&mut self.temper, stays) {
            (Temper::Ranked(ranks), _) => ranks.choose(&able, current, random),
            (Temper::Steady(changes_in), Some(current)) if !random.once_in(*changes_in) => current,
            _ => *random.pick(&able),
        })
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next()
    }
}
