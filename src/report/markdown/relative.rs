//! Sections that set contenders in relation: to the floor, to the data they wrote, and to each other.

use std::fmt::Write as _;

use super::{Table, median_bytes, name, number, s};
use crate::bench::result::{EngineResult, RunResult};
use crate::report::compare::{self, Better, Contender};
use crate::report::format::{self, ABSENT};
use crate::report::verdict::Verdict;

/// The engine that others are set in relation to, where it took part.
const OURS: &str = "profilestore";

/// What of the time is the harness, and what is written for what was to be written.
pub(super) fn costs(contenders: &[Contender]) -> String {
    let floor = contenders.iter().find(|contender| contender.is_floor());
    let floor_ms = floor.and_then(|floor| floor.median(compare::all_phases_ms));
    let mut table = Table::new(&[
        "Engine",
        "All phases ms",
        "Engine time ms",
        "Floor share",
        "User data written",
        "Written to storage",
        "Write amplification",
    ]);
    for contender in contenders.iter().filter(|contender| !contender.is_floor()) {
        let total = contender.median(compare::all_phases_ms);
        let amplification = contender.median(compare::write_amplification);
        table.row([
            name(&contender.label),
            number(total),
            number(compare::above_floor(total, floor_ms)),
            format::percent(compare::floor_share(total, floor_ms)),
            median_bytes(contender, compare::data_bytes),
            median_bytes(contender, |result| result.io_write_bytes.map(|bytes| bytes as f64)),
            format::factor(amplification),
        ]);
    }
    table.text
        + "\nEngine time is what is left without the floor. User data is every field of every profile that was \
        inserted or updated; what the process caused to be written for it, logs and merges included, is counted by the \
        system, in whole pages, up to the end of verify.\n"
}

/// Every contender as a multiple of ours, or of the fastest where ours is not there; then what is left above the floor.
pub(super) fn relative(run: &RunResult, contenders: &[Contender], verdict: &Verdict) -> String {
    let sound: Vec<Contender> =
        contenders.iter().filter(|one| one.completed() && !verdict.doubts(run, one)).cloned().collect();
    let Some(base) = base(&sound) else { return "No completed contender with undisputed answers.".to_owned() };
    let floor = sound.iter().find(|contender| contender.is_floor());
    let mut text = format!(
        "Times as multiples of {}; more than 1 is slower. The winner is the fastest of its durability class.\n\n",
        name(&base.label)
    );
    text += &(multiples(&sound, base, floor) + "\n");
    if let Some(floor) = floor {
        let floor_ms = number(floor.median(compare::all_phases_ms));
        let _ = write!(text, "Time of all phases without the floor's {floor_ms} ms:\n\n");
        text += &above_floor(&sound, base, floor);
    }
    text
}

fn base<'a, 'b>(sound: &'b [Contender<'a>]) -> Option<&'b Contender<'a>> {
    let total = |contender: &&Contender| contender.median(compare::all_phases_ms).unwrap_or(f64::INFINITY);
    let stores = || sound.iter().filter(|contender| !contender.is_floor());
    let fastest = || stores().min_by(|a, b| total(a).total_cmp(&total(b)));
    stores().find(|contender| contender.shown.engine == OURS).or_else(fastest)
}

fn multiples(sound: &[Contender], base: &Contender, floor: Option<&Contender>) -> String {
    let labels = sound.iter().map(|contender| name(&contender.label));
    let header: Vec<String> = [s("Phase"), s("Winner")].into_iter().chain(labels).chain([s("Floor share")]).collect();
    let mut table = Table::with_header(&header);
    let mut row = |title: String, value: &dyn Fn(&EngineResult) -> Option<f64>| {
        let of_base = base.median(value);
        let multiple = |contender: &Contender| {
            let own = contender.median(value).zip(of_base);
            format::factor(own.and_then(|(own, of)| compare::times_of_best(own, of)))
        };
        let share = compare::floor_share(of_base, floor.and_then(|floor| floor.median(value)));
        let cells = [title, winners(sound, value)].into_iter().chain(sound.iter().map(multiple));
        table.row(cells.chain([format::percent(share)]));
    };
    for phase in compare::phase_names(sound) {
        row(name(phase), &|result| compare::phase_ms(result, phase));
    }
    row(s("**all phases**"), &compare::all_phases_ms);
    table.text
}

fn winners(sound: &[Contender], value: &dyn Fn(&EngineResult) -> Option<f64>) -> String {
    let best = compare::best_among_rivals(sound, Better::Lower, value);
    let won = |contender: &&Contender| {
        let own = contender.median(value);
        !contender.is_floor() && own.is_some() && own == best.get(contender.shown.durability.as_str()).copied()
    };
    let names: Vec<String> = sound.iter().filter(won).map(|contender| name(&contender.label)).collect();
    if names.is_empty() { ABSENT.to_owned() } else { names.join(", ") }
}

fn above_floor(sound: &[Contender], base: &Contender, floor: &Contender) -> String {
    let engine_ms = |contender: &Contender| {
        compare::above_floor(contender.median(compare::all_phases_ms), floor.median(compare::all_phases_ms))
    };
    let mut table = Table::new(&["Engine", "Engine time ms", "Multiple"]);
    for contender in sound.iter().filter(|contender| !contender.is_floor()) {
        let own = engine_ms(contender);
        let multiple = own.zip(engine_ms(base)).and_then(|(own, base)| compare::times_of_best(own, base));
        table.row([name(&contender.label), number(own), format::factor(multiple)]);
    }
    table.text
}
