//! `profilebench inspect`: what a database holds, tree by tree, for a person or as a line of JSON.

use std::path::Path;

use anyhow::Result;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Cell, CellAlignment, Table};
use serde_json::json;

use crate::engine::{Database, Options, RecoveryReport, Stats, TreeStats};
use crate::report::format;
use crate::report::text::plain;

use super::Terminal;
use super::check::find;
use super::exit::{self, Exit, Usage};

/// Characters of a tree's name in the table.
const NAME_CHARS: usize = 40;

/// Tells what is in the database in `dir`, or in the store that a run left there.
pub(super) fn run(dir: &Path, json: bool, terminal: &mut Terminal) -> Result<Exit> {
    let dir = find(dir);
    let database = Database::open(&dir, Options { create: false, ..Options::default() })
        .map_err(|error| Usage(error.to_string()))?;
    let stats = database.stats();
    let text = if json {
        as_json(&stats, database.recovery()).to_string()
    } else {
        as_text(&dir, &stats, database.recovery())
    };
    exit::unless_closed(writeln!(terminal.out, "{text}").map_err(Into::into))?;
    Ok(Exit::Done)
}

/// What is told of a tree: a heading, and the cell under it.
type Column = (&'static str, fn(&TreeStats) -> String);

const COLUMNS: [Column; 8] = [
    ("entries", |tree| format::grouped(tree.entries)),
    ("tombstones", |tree| format::grouped(tree.tombstones)),
    ("runs", |tree| tree.runs.to_string()),
    ("segments", |tree| tree.segments.to_string()),
    ("blocks", |tree| format::grouped(tree.blocks)),
    ("size", |tree| format::bytes(tree.segment_bytes as f64)),
    ("bytes an entry", |tree| {
        format::decimal((tree.entries > 0).then(|| tree.segment_bytes as f64 / tree.entries as f64))
    }),
    ("space amplification", |tree| format::factor(tree.space_amplification())),
];

fn as_text(dir: &Path, stats: &Stats, recovery: &RecoveryReport) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(std::iter::once("tree").chain(COLUMNS.map(|(heading, _)| heading)));
    for tree in &stats.trees {
        let number = |(_, cell): Column| Cell::new(cell(tree)).set_alignment(CellAlignment::Right);
        table.add_row(std::iter::once(Cell::new(plain(&tree.name, NAME_CHARS))).chain(COLUMNS.map(number)));
    }
    let segments: u64 = stats.trees.iter().map(|tree| tree.segments).sum();
    let bytes: u64 = stats.trees.iter().map(|tree| tree.segment_bytes).sum();
    let mut lines = vec![
        format!(
            "{}: {} trees in {segments} segments of {}",
            dir.display(),
            stats.trees.len(),
            format::bytes(bytes as f64)
        ),
        format!("commits so far: {}", format::grouped(stats.sequence)),
        format!("memory after opening: {}", format::bytes(stats.memory_bytes as f64)),
    ];
    if recovery.replayed_batches > 0 {
        lines.push(format!("replayed from the log: {} batches", format::grouped(recovery.replayed_batches)));
    }
    lines.extend([String::new(), table.to_string(), String::new()]);
    lines.push("A settle brings every tree to one run, no tombstone and a space amplification of 1.".to_owned());
    lines.join("\n")
}

fn as_json(stats: &Stats, recovery: &RecoveryReport) -> serde_json::Value {
    let tree = |tree: &TreeStats| {
        json!({
            "name": tree.name, "entries": tree.entries, "tombstones": tree.tombstones, "run_bytes": tree.run_bytes,
            "segments": tree.segments, "segment_bytes": tree.segment_bytes, "blocks": tree.blocks,
            "space_amplification": tree.space_amplification(),
        })
    };
    json!({
        "trees": stats.trees.iter().map(tree).collect::<Vec<_>>(),
        "commits": stats.sequence,
        "memory_bytes": stats.memory_bytes,
        "replayed_batches": recovery.replayed_batches,
        "dropped_log_bytes": recovery.dropped_bytes,
    })
}
