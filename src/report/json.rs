//! `result.json`: saved with a final line end, loaded with distrust.
//!
//! Numbers are finite or `null`. A file may come from anywhere, so its size is limited, its schema is checked before
//! the rest is read, and every error names the file, the line and the column.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::bench::result::{EngineResult, Latency, RunResult, SCHEMA};

/// Largest result file that is read.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Most engine runs in one file, and most phases in one run: far more than a report can show.
pub const ENTRIES_MAX: usize = 1000;

/// The text of `result.json`.
pub fn encode(run: &RunResult) -> Result<String> {
    let mut run = run.clone();
    run.engines.iter_mut().for_each(drop_what_is_not_finite);
    Ok(serde_json::to_string_pretty(&run).context("could not write the results as JSON")? + "\n")
}

/// A duration that is not a number is written as `null` by the encoder itself; percentiles are kept whole or not at all.
fn drop_what_is_not_finite(engine: &mut EngineResult) {
    for phase in &mut engine.phases {
        phase.latency_us = phase.latency_us.filter(is_finite);
    }
}

fn is_finite(latency: &Latency) -> bool {
    [latency.p50, latency.p90, latency.p99, latency.p999, latency.max].iter().all(|value| value.is_finite())
}

/// Results out of the text of a `result.json`.
pub fn decode(text: &str) -> Result<RunResult> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    let head: Head = serde_json::from_str(text).context("not a result file")?;
    if head.schema != SCHEMA {
        bail!("the results have schema {}; this build reads schema {SCHEMA}", head.schema);
    }
    let run: RunResult = serde_json::from_str(text).context("not a sound result file")?;
    let most_phases = run.engines.iter().map(|engine| engine.phases.len()).max().unwrap_or(0);
    ensure!(run.engines.len() <= ENTRIES_MAX, "{} engine runs; at most {ENTRIES_MAX} are read", run.engines.len());
    ensure!(most_phases <= ENTRIES_MAX, "{most_phases} phases in one run; at most {ENTRIES_MAX} are read");
    Ok(run)
}

/// Reads a text file no larger than [`FILE_BYTES_MAX`].
pub fn read_text(path: &Path) -> Result<String> {
    let file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("could not read {}", path.display()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("{} is larger than 64 MiB, the most a result file may hold", path.display());
    }
    let text = String::from_utf8(bytes).ok();
    text.with_context(|| format!("{} is not UTF-8 text, so it is no result file", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn loading_undoes_saving() {
        let run = samples::run(&["profilestore", "floor", "fjall"]);
        let text = encode(&run).unwrap();
        assert!(text.ends_with("}\n"));
        assert_eq!(decode(&text).unwrap(), run);
    }

    #[test]
    fn what_is_not_finite_becomes_null_and_loads_again() {
        let mut run = samples::run(&["fjall"]);
        run.engines[0].run_ms = Some(f64::INFINITY);
        run.engines[0].phases[0].elapsed_ms = f64::NAN;
        run.engines[0].phases[0].ops_per_s = Some(f64::NEG_INFINITY);
        run.engines[0].phases[0].latency_us.as_mut().unwrap().p99 = f64::NAN;
        let text = encode(&run).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf"));
        let loaded = decode(&text).unwrap();
        assert!(loaded.engines[0].phases[0].elapsed_ms.is_nan());
        assert_eq!(loaded.engines[0].run_ms, None);
        assert_eq!(loaded.engines[0].phases[0].latency_us, None);
    }

    #[test]
    fn an_error_says_where() {
        let message = |text: &str| format!("{:#}", decode(text).unwrap_err());
        let text = encode(&samples::run(&["fjall"])).unwrap();
        let wrong = message(&text.replace("\"workers\": 1", "\"workers\": \"one\""));
        assert!(wrong.contains("line 6 column"), "{wrong}");
        let huge = message(&text.replacen("\"p50\": 1.5", "\"p50\": 1e999", 1));
        assert!(huge.contains("number out of range at line"), "{huge}");
        assert!(message("").contains("line 1"));
        assert!(message(&"[".repeat(100_000)).contains("line 1"));
        assert!(message("{\"schema\": 2}").contains("have schema 2; this build reads schema 1"));
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let run = samples::run(&["fjall"]);
        let text = encode(&run).unwrap().replacen('{', "{\"added_later\": [1, {}],", 1);
        assert_eq!(decode(&text).unwrap(), run);
    }

    #[test]
    fn a_crowd_is_refused() {
        let mut run = samples::run(&["fjall"]);
        run.engines = vec![run.engines[0].clone(); ENTRIES_MAX + 1];
        assert!(decode(&encode(&run).unwrap()).unwrap_err().to_string().contains("1001 engine runs"));
    }

    #[test]
    fn a_file_over_the_limit_is_refused_unread() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("huge.json");
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(read_text(&path).unwrap_err().to_string().contains("larger than 64 MiB"));
        assert!(read_text(&directory.path().join("absent")).unwrap_err().to_string().contains("could not open"));
    }
}
