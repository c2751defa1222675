//! `profilebench compare`: what became faster or slower from one result to another.

use std::path::Path;

use anyhow::{Context, Result};

use crate::report::{self, change};

use super::Terminal;
use super::exit::{self, Exit, Usage};

/// Compares two results of the same work.
pub(super) fn run(before: &Path, after: &Path, json: bool, terminal: &mut Terminal) -> Result<Exit> {
    let load = |file: &Path| report::load_any(file).map_err(|error| Usage(format!("{error:#}")));
    let (first, second) = (load(before)?, load(after)?);
    let comparison = change::compare(&first, &second).map_err(|differences| {
        let (before, after) = (before.display(), after.display());
        Usage(format!("{before} and {after} cannot be compared: {}", differences.join("; ")))
    })?;
    let told = if json {
        vec![serde_json::to_string(&comparison).context("could not write the comparison as JSON")?]
    } else {
        change::sentences(&comparison)
    };
    exit::unless_closed(terminal.say(&told))?;
    Ok(if comparison.has_wrong_answers() {
        Exit::Mismatch
    } else if comparison.has_slower() {
        Exit::Slower
    } else {
        Exit::Done
    })
}
