//! What is shown while a run goes on: bars on a terminal, one plain line for each phase elsewhere, nothing if asked.
//!
//! A bar shows the phase, how much of it is done, its rate and the time left; it has no colour. Plain lines hold no
//! control characters, so that a log of them can be read.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::bench::event::Event;
use crate::bench::fold;
use crate::bench::result::PhaseResult;

const BAR: &str = "{prefix} {msg:<40} [{bar:24}] {percent:>3}% {rate:>10}/s {eta:>5} left";
const STEP: &str = "{prefix} {msg:<40} {elapsed} {spinner}";
const TICK: Duration = Duration::from_millis(120);

/// How to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Bars on the terminal.
    Bars,
    /// A line for each phase.
    Lines,
    /// Nothing.
    Silent,
}

impl Style {
    /// Bars need a terminal, and one that is no log of a build.
    pub(super) fn choose(quiet: bool, is_screen: bool) -> Self {
        let logged = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match (quiet, is_screen && !logged && !dumb) {
            (true, _) => Self::Silent,
            (false, true) => Self::Bars,
            (false, false) => Self::Lines,
        }
    }
}

/// Shows the events of one contender's run.
pub(super) struct Progress<'a> {
    label: String,
    style: Style,
    bar: ProgressBar,
    lines: &'a mut dyn Write,
}

impl<'a> Progress<'a> {
    /// For a contender that is shown as `label`; plain lines go to `lines`.
    pub(super) fn new(label: &str, style: Style, lines: &'a mut dyn Write) -> Self {
        let label = format!("{label:<14}");
        Self { label, style, bar: ProgressBar::hidden(), lines }
    }

    /// Shows one event. Display is not worth failing for.
    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::PhaseStarted { name, operations } => self.start(name, Some(*operations)),
            Event::StepStarted { step } => self.start(fold::describe(*step), None),
            Event::Progress { done } => self.bar.set_position(*done),
            Event::PhaseFinished { phase } => self.line(&phase_line(phase)),
            Event::StepFinished { step, elapsed_ms: Some(ms) } => {
                self.line(&format!("{:<40} {:>32.3} s", fold::describe(*step), ms / 1e3));
            }
            Event::Opened { .. } | Event::StepFinished { .. } | Event::Finished { .. } | Event::Failed { .. } => {}
        }
    }

    /// Starts a bar, with an end if there are operations to count.
    pub(super) fn start(&mut self, what: &str, operations: Option<u64>) {
        if self.style != Style::Bars {
            return;
        }
        self.bar.finish_and_clear();
        let template = if operations.is_some() { BAR } else { STEP };
        let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A display that cannot be written to shows nothing, and that is all.
            let _ = write!(out, "{:.0}", state.per_sec());
        };
        let style =
            ProgressStyle::with_template(template).expect("the templates above are sound").with_key("rate", rate);
        self.bar = ProgressBar::with_draw_target(operations, ProgressDrawTarget::stderr())
            .with_style(style)
            .with_prefix(self.label.clone())
            .with_message(what.to_owned());
        self.bar.enable_steady_tick(TICK);
    }

    /// Moves the bar on; its end may have moved too.
    pub(super) fn advance(&self, done: u64, of: u64) {
        if self.bar.length() != Some(of) {
            self.bar.set_length(of);
        }
        self.bar.set_position(done);
    }

    /// A plain line, where there is no bar.
    pub(super) fn line(&mut self, text: &str) {
        if self.style == Style::Lines {
            let _ = writeln!(self.lines, "{} {text}", self.label);
        }
    }

    /// Something that is said in any case, beside a bar if there is one.
    pub(super) fn complain(&mut self, complaint: &dyn fmt::Display) {
        let (bar, lines) = (&self.bar, &mut self.lines);
        bar.suspend(|| drop(writeln!(lines, "{complaint}")));
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn phase_line(phase: &PhaseResult) -> String {
    let rate = phase.ops_per_s.map(|rate| format!("{rate:.0}/s")).unwrap_or_default();
    format!("{:<40} {:>12} {:>19.3} s {rate:>14}", phase.name, phase.operations, phase.elapsed_ms / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_hold_no_control_characters() {
        let mut lines = Vec::new();
        let checksum = "CBF29CE484222325".to_owned();
        let name = "insert profiles".to_owned();
        let phase = PhaseResult {
            name,
            operations: 0,
            elapsed_ms: 0.0,
            ops_per_s: None,
            checksum,
            data_bytes: None,
            latency_us: None,
        };
        let mut progress = Progress::new("floor", Style::Lines, &mut lines);
        progress.show(&Event::PhaseStarted { name: "insert profiles".to_owned(), operations: 0 });
        progress.show(&Event::Progress { done: 0 });
        progress.show(&Event::PhaseFinished { phase });
        drop(progress);
        let text = String::from_utf8(lines).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("insert profiles") && !text.trim_end().chars().any(char::is_control), "{text:?}");
    }

    #[test]
    fn silence_is_silent() {
        let mut lines = Vec::new();
        let mut progress = Progress::new("floor", Style::Silent, &mut lines);
        progress.show(&Event::PhaseStarted { name: "insert profiles".to_owned(), operations: 5 });
        drop(progress);
        assert!(lines.is_empty());
    }
}
