//! What the source may not do. Arrows of use point one way: `cli` → `report` → `bench` → `store` → `engine`, tests included.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom up: a room may name itself and those before it.
const ROOMS: [&str; 5] = ["engine", "store", "bench", "report", "cli"];

#[test]
fn no_room_names_a_room_above_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = [0; ROOMS.len()];
    for path in rust_files(&source) {
        let inside = path.strip_prefix(&source).expect("it was found there");
        let Some(room) = room_of(inside) else { continue };
        seen[room] += 1;
        let text = fs::read_to_string(&path).expect("a source file can be read");
        let above = rooms_named(&text).into_iter().find(|named| *named > room);
        assert_eq!(above.map(|above| ROOMS[above]), None, "{} names a room above its own", inside.display());
    }
    assert!(seen.iter().all(|files| *files > 0), "every room was read: {seen:?}");
}

#[test]
fn an_arrow_that_points_upward_is_seen() {
    let named = |text: &str| rooms_named(text).into_iter().map(|room| ROOMS[room]).collect::<Vec<_>>();
    assert_eq!(named("use crate::bench::plan::Plan;"), ["bench"]);
    assert_eq!(named("use crate::{\n    engine::{Batch, cli},\n    report,\n};"), ["engine", "report"]);
    assert_eq!(named("fn f() -> super::super::cli::Exit {}"), ["cli"]);
    assert_eq!(named("pub(in crate::store) fn f() { crate :: engine :: g() }"), ["store", "engine"]);
    assert_eq!(named("profilestore::cli::run()"), ["cli"]);
    assert_eq!(named("// crate::cli is above\nlet bench = engine::open();"), Vec::<&str>::new());
}

#[test]
fn the_engine_takes_what_threads_share_from_one_place() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
    let is_own =
        |path: &Path| path.iter().any(|part| ["sync", "sync.rs", "tests", "tests.rs"].map(OsStr::new).contains(&part));
    let mut elsewhere = Vec::new();
    for path in rust_files(&engine).into_iter().filter(|path| !is_own(path)) {
        let text = fs::read_to_string(&path).expect("a source file can be read");
        let named = tokens(&text);
        let named = named.iter().filter(|name| ["parking_lot", "arc_swap", "atomic"].contains(&name.as_str()));
        elsewhere.extend(named.map(|name| format!("{name} in {}", path.file_name().unwrap_or_default().display())));
    }
    assert_eq!(elsewhere, Vec::<String>::new());
}

/// Whoever embeds it decides what is printed, when the process ends and what its surroundings mean.
#[test]
fn the_library_does_not_print_or_exit_or_look_at_the_environment() {
    const NOT_ITS_OWN: [&str; 11] =
        ["print", "println", "eprint", "eprintln", "dbg", "stdout", "stderr", "exit", "abort", "var", "var_os"];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let is_test = |path: &Path| path.iter().any(|part| ["tests", "tests.rs"].map(OsStr::new).contains(&part));
    let mut found = Vec::new();
    for path in ROOMS[..2].iter().flat_map(|room| rust_files(&source.join(room))).filter(|path| !is_test(path)) {
        let text = fs::read_to_string(&path).expect("a source file can be read");
        let named = tokens(&text);
        let named = named.iter().filter(|name| NOT_ITS_OWN.contains(&name.as_str()));
        found.extend(named.map(|name| format!("{name} in {}", path.file_name().unwrap_or_default().display())));
    }
    assert_eq!(found, Vec::<String>::new());
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the source directory can be read");
    let paths = entries.map(|entry| entry.expect("its entries can be read").path());
    paths
        .flat_map(|path| match path.extension().is_some_and(|extension| extension == "rs") {
            _ if path.is_dir() => rust_files(&path),
            true => vec![path],
            false => Vec::new(),
        })
        .collect()
}

fn room_of(inside: &Path) -> Option<usize> {
    let first = inside.iter().next()?.to_str()?;
    ROOMS.iter().position(|room| first.trim_end_matches(".rs") == *room)
}

/// Rooms that follow the crate's root, or a parent, in a path.
fn rooms_named(text: &str) -> Vec<usize> {
    let tokens = tokens(text);
    let mut named = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        if ["crate", "super", "profilestore"].contains(&token.as_str())
            && tokens.get(place + 1).is_some_and(|next| next == "::")
        {
            named.extend(
                heads(&tokens[place + 2..]).into_iter().filter_map(|head| ROOMS.iter().position(|room| *room == head)),
            );
        }
    }
    named
}

/// First names of a path that goes on here, or of each path of a group that opens here.
fn heads(tokens: &[String]) -> Vec<&str> {
    let Some(first) = tokens.first() else { return Vec::new() };
    if first != "{" {
        return vec![first.as_str()];
    }
    let (mut depth, mut heads, mut before) = (0_usize, Vec::new(), "");
    for token in tokens {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            name if depth == 1 && (before == "{" || before == ",") => heads.push(name),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        before = token;
    }
    heads
}

/// Names, `::`, and single signs; no line comments.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let end = match first {
                _ if rest.starts_with("::") => 2,
                first if is_name(first) => rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()),
                first => first.len_utf8(),
            };
            tokens.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
        }
    }
    tokens
}
