//! Results in, files out. Knows no database and no clock.
//!
//! ```text
//! OUT/result.json      everything, to be read again by this room
//! OUT/report.md        for people
//! OUT/phases.csv       for spreadsheets
//! OUT/charts/*.svg     six charts, and the same as *.png
//! ```
//!
//! | file | what it knows |
//! |---|---|
//! | [`compare`] | pure: contenders, medians, winners, ratios, disagreements |
//! | [`change`] | pure: what became faster or slower from one result to another |
//! | [`published`] | the published results this build carries, and the comparison with them |
//! | [`verdict`] | whether the answers of a run can be trusted |
//! | [`notes`] | what a reader should know before comparing the numbers |
//! | [`json`], [`csv`], [`markdown`], [`terminal`], [`charts`] | one way to show a run each |
//! | [`format`](mod@format), [`text`] | how numbers read; how foreign text is made safe |

pub mod change;
pub mod charts;
pub mod compare;
pub mod csv;
pub mod format;
pub(crate) mod fuzz;
pub mod json;
pub mod markdown;
pub mod notes;
pub mod published;
pub mod terminal;
pub mod text;
pub mod verdict;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::bench::result::RunResult;

pub use verdict::{Verdict, verify};

/// Writes every format into a directory, which is made if it is not there. Files of an earlier report are replaced.
/// The comparison with published results is made anew.
pub fn write_all(run: &RunResult, out: &Path) -> Result<()> {
    let run = &RunResult { published: verify(run).published, ..run.clone() };
    make_directory(out)?;
    write_whole(&out.join("result.json"), json::encode(run)?.as_bytes())?;
    write_whole(&out.join("report.md"), markdown::report(run).as_bytes())?;
    write_whole(&out.join("phases.csv"), csv::phases(run).as_bytes())?;
    draw_charts(run, &out.join("charts"))
}

/// Draws the six charts into a directory, which is made if it is not there.
pub fn draw_charts(run: &RunResult, directory: &Path) -> Result<()> {
    make_directory(directory)?;
    charts::draw(run, directory)
}

/// Reads a `result.json` or a published result, told apart by content.
pub fn load_any(path: &Path) -> Result<RunResult> {
    let text = json::read_text(path)?;
    let run = if published::is_published(&text) {
        // Its charts should not be taken for those of a run on this machine.
        published::parse(&text).map(|run| published::named(run, path))
    } else if text.trim_start().starts_with('{') {
        json::decode(&text)
    } else {
        bail!("{} is neither a result.json nor a published profile-store result", path.display())
    };
    run.with_context(|| format!("could not read {}", path.display()))
}

fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("could not make the directory {}", path.display()))
}

/// Writes a file so that a reader sees the old one or the new one, never a part.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    written.with_context(|| format!("could not write {}", path.display()))
}
