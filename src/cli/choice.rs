//! Who runs, in which class, in which order, and how much room that takes.

use anyhow::Result;

use crate::bench::contenders::{self, Contender, Durability};
use crate::bench::dataset::DataSet;
use crate::bench::result::Workload;

use super::exit::{Refused, Usage};

/// The harness alone.
const FLOOR: &str = "floor";
/// Class of the published results, and of a run that names none.
const DURABILITY: Durability = Durability::Process;
/// Bytes a profile may take on disk while a run lasts, logs and half-done compactions included; generous.
const BYTES_PER_PROFILE: &[(&str, u64)] = &[("floor", 0), ("profilestore", 1_200), ("fjall", 1_500), ("sqlite", 1_000)];
const BYTES_PER_PROFILE_OF_OTHERS: u64 = 2_000;
/// How many times as much a natural profile may take, whose texts are longer.
const NATURAL_TIMES: u64 = 2;

/// A contender that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entrant {
    /// Name of the contender.
    pub(super) name: &'static str,
    /// Class it runs in.
    pub(super) durability: Durability,
}

/// One run of one entrant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Index of the entrant.
    pub(super) entrant: usize,
    /// From 1.
    pub(super) repetition: u64,
}

/// The entrants `names` asks for, in that order; `None` and `all` are all contenders of this build.
///
/// A class that was asked for must be offered by an engine that was asked for by name; with all engines, those that
/// do not offer it run in the strongest class they have, which every table shows. So does the floor beside others: it
/// keeps nothing, so no class means anything to it.
pub(super) fn entrants(names: Option<&[String]>, durability: Option<Durability>) -> Result<Vec<Entrant>> {
    let Some(names) = names.filter(|names| !names.iter().any(|name| name == "all")) else {
        return Ok(contenders::all().iter().map(|contender| entrant(contender.as_ref(), durability)).collect());
    };
    let mut entrants: Vec<Entrant> = Vec::new();
    for name in names {
        let along = name == FLOOR && names.len() > 1;
        let entrant = named(name, durability.filter(|_| !along))?;
        if !entrants.contains(&entrant) {
            entrants.push(entrant);
        }
    }
    if entrants.is_empty() {
        return Err(Usage(format!("no engine is named; choose from {}", known())).into());
    }
    Ok(entrants)
}

fn named(name: &str, durability: Option<Durability>) -> Result<Entrant> {
    let contender = contenders::by_name(name)
        .ok_or_else(|| Usage(format!("there is no engine {name:?}; choose from {}, or all", known())))?;
    if let Some(class) = durability.filter(|class| !contender.classes().contains(class)) {
        let offered = class_names(contender.classes());
        let class = class.as_str();
        return Err(Refused(format!("{name} does not offer durability {class}; it offers {offered}")).into());
    }
    Ok(entrant(contender.as_ref(), durability))
}

fn entrant(contender: &dyn Contender, durability: Option<Durability>) -> Entrant {
    let classes = contender.classes();
    let wanted = durability.unwrap_or(DURABILITY);
    let strongest = classes.iter().copied().max().unwrap_or(Durability::None);
    let durability = if classes.contains(&wanted) { wanted } else { strongest };
    Entrant { name: contender.name(), durability }
}

fn known() -> String {
    contenders::all().iter().map(|contender| contender.name()).collect::<Vec<_>>().join(", ")
}

/// `none, process`.
pub(super) fn class_names(classes: &[Durability]) -> String {
    classes.iter().map(|class| class.as_str()).collect::<Vec<_>>().join(", ")
}

/// Who runs when: in every repetition another entrant is first, so that a drift of the machine hits all alike.
pub(super) fn schedule(entrants: usize, repetitions: u64) -> Vec<Turn> {
    let round = |repetition: u64| {
        let first = (repetition % entrants.max(1) as u64) as usize;
        (0..entrants).map(move |i| Turn { entrant: (first + i) % entrants, repetition: repetition + 1 })
    };
    (0..repetitions).flat_map(round).collect()
}

/// Bytes of disk the run may need, and why: for all stores at once if they are kept, else for the largest.
pub(super) fn space(entrants: &[Entrant], workload: &Workload, keep: bool) -> (u64, String) {
    let times = if workload.dataset == DataSet::Natural { NATURAL_TIMES } else { 1 };
    let each = entrants.iter().map(|entrant| (bytes_per_profile(entrant.name) * times, entrant.name));
    let (bytes, who) = if keep {
        (each.map(|(bytes, _)| bytes).sum(), "all stores together".to_owned())
    } else {
        each.max().map_or((0, String::new()), |(bytes, name)| (bytes, format!("{name}, the largest")))
    };
    (bytes.saturating_mul(workload.profiles), format!("estimated at {bytes} bytes a profile for {who}"))
}

fn bytes_per_profile(name: &str) -> u64 {
    let known = BYTES_PER_PROFILE.iter().find(|(known, _)| *known == name);
    known.map_or(BYTES_PER_PROFILE_OF_OTHERS, |(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repetition_runs_each_entrant_once_and_starts_with_another() {
        let turns: Vec<_> = schedule(3, 4).iter().map(|turn| (turn.repetition, turn.entrant)).collect();
        let expected = [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (2, 0), (3, 2), (3, 0), (3, 1), (4, 0), (4, 1), (4, 2)];
        assert_eq!(turns, expected);
        assert!(schedule(0, 3).is_empty());
    }

    #[test]
    fn an_unknown_engine_lists_the_known_ones() {
        let error = entrants(Some(&["flor".to_owned()]), None).unwrap_err();
        assert!(error.is::<Usage>());
        assert!(error.to_string().contains("\"flor\"; choose from ") && error.to_string().contains("floor"), "{error}");
    }

    #[test]
    fn all_is_every_contender_and_a_name_given_twice_runs_once() {
        assert_eq!(entrants(Some(&["all".to_owned()]), None).unwrap().len(), contenders::all().len());
        let twice = ["floor".to_owned(), "floor".to_owned()];
        assert_eq!(entrants(Some(&twice), None).unwrap().len(), 1);
    }

    #[test]
    fn a_class_that_a_named_engine_does_not_offer_is_refused() {
        let floor = "floor".to_owned();
        let error = entrants(Some(std::slice::from_ref(&floor)), Some(Durability::Sync)).unwrap_err();
        assert!(error.is::<Refused>(), "{error}");
        let all = entrants(None, Some(Durability::Sync)).unwrap();
        let of_floor = all.iter().find(|entrant| entrant.name == floor).map(|entrant| entrant.durability);
        assert_eq!(of_floor, Some(Durability::None));
    }

    #[test]
    fn kept_stores_need_room_together() {
        let entrant = |name| Entrant { name, durability: Durability::Process };
        let entrants = [entrant("floor"), entrant("sqlite"), entrant("fjall")];
        let workload = |profiles| Workload::published(profiles, 1);
        let (kept, _) = space(&entrants, &workload(1_000), true);
        let (removed, why) = space(&entrants, &workload(1_000), false);
        assert_eq!((kept, removed), (2_500_000, 1_500_000));
        assert!(why.contains("fjall"), "{why}");
        assert_eq!(space(&entrants, &workload(u64::MAX), true).0, u64::MAX);
        let natural = Workload { dataset: DataSet::Natural, ..workload(1_000) };
        assert_eq!(space(&entrants, &natural, true).0, 2 * kept);
    }
}
