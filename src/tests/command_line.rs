//! The whole program in this process: arguments in; exit, text and files out.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::bench::result::{RunResult, Status};
use crate::cli::{self, Exit, Terminal};
use crate::engine::{Batch, Database, KeyRange, Options};
use crate::store::{self, Country, Profile, Repository};

struct Ended {
    exit: Exit,
    out: String,
    /// Standard error, and the error that `main` would print.
    err: String,
}

fn run(arguments: &[&str]) -> Ended {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = std::iter::once("profilebench").chain(arguments.iter().copied()).map(OsString::from);
    let mut terminal = Terminal { out: &mut out, err: &mut err, out_is_screen: false, err_is_screen: false };
    let exit = cli::run(arguments, &mut terminal).unwrap_or_else(|error| {
        err.extend(format!("{error:#}\n").into_bytes());
        Exit::of(&error)
    });
    let text = |bytes| String::from_utf8(bytes).expect("what is printed is text");
    Ended { exit, out: text(out), err: text(err) }
}

/// A run of the floor, small and in this process; results go to `out` below the directory.
fn run_floor(directory: &TempDir, more: &[&str]) -> Ended {
    let out = path(directory, "out");
    let mut arguments = vec!["--engines", "floor", "--in-process", "--profiles", "300", "--out", &out];
    arguments.extend(more);
    run(&arguments)
}

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().expect("a temporary path is text").to_owned()
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

fn load(path: &str) -> RunResult {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_run_writes_every_file_and_leaves_nothing_else() {
    let directory = directory();
    let ended = run_floor(&directory, &["--seed", "-5"]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    let mut names: Vec<_> =
        fs::read_dir(path(&directory, "out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["charts", "phases.csv", "report.md", "result.json"]);
    let result = load(&path(&directory, "out/result.json"));
    assert_eq!((result.workload.seed, result.engines.len()), (-5, 1));
    let floor = &result.engines[0];
    assert_eq!((floor.status, floor.phases.len(), floor.durability.as_str()), (Status::Completed, 16, "none"));
    assert_eq!(floor.peak_memory_bytes, None, "memory shared with the tests means nothing");
    assert!(ended.out.contains("/out; read report.md"), "{}", ended.out);
    assert!(ended.err.contains("insert profiles"), "each phase has its line: {}", ended.err);
}

#[test]
fn results_of_an_earlier_run_are_replaced_and_other_files_stay() {
    let directory = directory();
    run_floor(&directory, &[]);
    fs::write(path(&directory, "out/notes"), "mine").unwrap();
    assert_eq!(run_floor(&directory, &["--repeat", "2"]).exit, Exit::Done);
    assert_eq!(fs::read_to_string(path(&directory, "out/notes")).unwrap(), "mine");
    let repetitions: Vec<_> =
        load(&path(&directory, "out/result.json")).engines.iter().map(|run| run.repetition).collect();
    assert_eq!(repetitions, [1, 2]);
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let directory = directory();
    let out = path(&directory, "out");
    let ended = run(&["--engine", "floor", "--in-process", "--json", "--profiles", "20,30", "--out", &out]);
    let profiles: Vec<_> =
        ended.out.lines().map(|line| serde_json::from_str::<RunResult>(line).unwrap().workload.profiles).collect();
    assert_eq!(profiles, [20, 30]);
    assert!(Path::new(&path(&directory, "out/20/result.json")).exists());
    assert!(Path::new(&path(&directory, "out/30/result.json")).exists());
}

#[test]
fn quiet_is_quiet() {
    let ended = run_floor(&directory(), &["--quiet"]);
    let warnings: Vec<_> =
        ended.err.lines().filter(|line| !line.starts_with("WARNING: this is a debug build")).collect();
    assert_eq!((ended.exit, ended.out.as_str(), warnings), (Exit::Done, "", vec![]));
}

#[test]
fn what_cannot_be_used_is_refused_in_one_sentence() {
    let directory = directory();
    let file = path(&directory, "file");
    fs::write(&file, "profiles = 5\n\nprofils = 6\n").unwrap();
    let (missing, below) = (path(&directory, "missing.toml"), path(&directory, "file/out"));
    for (arguments, part) in [
        (vec!["--engines", "flor"], "choose from profilestore, floor"),
        (vec!["--engines", ""], "choose from profilestore, floor"),
        (vec!["--profiles", "many"], "100K"),
        (vec!["--profiles", "0"], "at least 1"),
        (vec!["--profiles", "5000M"], "profiles"),
        (vec!["--workers", "1M"], "workers"),
        (vec!["--query-limit", "0"], "at least 1"),
        (vec!["--seed", "1.5"], "1.5"),
        (vec!["--timeout", "-1"], "-1"),
        (vec!["--durability", "sometimes"], "none, process or sync"),
        (vec!["--surprise"], "--surprise"),
        (vec!["run", &missing], "could not read the workload file"),
        (vec!["run", &file], "line 3: unknown field `profils`"),
        (vec!["--engines", "floor", "--out", &below], "a directory you may write to"),
        (vec!["--engines", "floor", "--data", &below], "a directory you may write to"),
        (vec!["--data", "natural"], "--dataset natural"),
        (vec!["--dataset", "organic"], "published or natural"),
        (vec!["--memory", "32MB"], "KiB, MiB or GiB"),
        (vec!["--memory", "32"], "1MiB to 1024GiB"),
        (vec!["compare", &missing, &file], "missing.toml"),
        (vec!["verify", &missing], "missing.toml"),
        (vec!["verify", &file], "file"),
        (vec!["chart", &file, "--out", &missing], "file"),
    ] {
        let ended = run(&arguments);
        assert_eq!(ended.exit, Exit::BadArguments, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(part), "{arguments:?}: {}", ended.err);
        assert_eq!(ended.out, "", "{arguments:?}");
    }
}

#[test]
fn an_option_overrides_the_workload_file() {
    let directory = directory();
    let (file, out) = (path(&directory, "work.toml"), path(&directory, "out"));
    fs::write(&file, "name = 'mine'\nprofiles = 40\nseed = 7\nengines = ['floor']\nreads = 3\n").unwrap();
    let ended = run(&["run", &file, "--in-process", "--seed", "8", "--out", &out]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    let workload = load(&path(&directory, "out/result.json")).workload;
    assert_eq!((workload.name.as_str(), workload.profiles, workload.seed, workload.reads), ("mine", 40, 8, 3));
}

#[test]
fn a_directory_of_somebody_else_is_refused_and_survives() {
    let directory = directory();
    let photos = path(&directory, "photos");
    fs::create_dir(&photos).unwrap();
    fs::write(format!("{photos}/holiday.jpg"), "sea").unwrap();
    for more in [vec!["--data", &photos], vec!["--data", &photos, "--clean"]] {
        let ended = run_floor(&directory, &more);
        assert_eq!(ended.exit, Exit::Refused);
        assert!(ended.err.contains("was not made by profilebench"), "{}", ended.err);
        assert_eq!(fs::read_dir(&photos).unwrap().count(), 1);
    }
}

#[test]
fn stores_that_were_kept_are_removed_with_clean_alone() {
    let directory = directory();
    let data = path(&directory, "data");
    assert_eq!(run_floor(&directory, &["--data", &data]).exit, Exit::Done);
    assert!(Path::new(&data).join("floor").is_dir(), "a directory that was named is kept");
    let ended = run_floor(&directory, &["--data", &data]);
    assert_eq!(ended.exit, Exit::Refused);
    assert!(ended.err.contains("--clean"), "{}", ended.err);
    assert_eq!(run_floor(&directory, &["--data", &data, "--clean"]).exit, Exit::Done);
}

#[test]
fn a_class_an_engine_does_not_offer_is_refused() {
    let ended = run_floor(&directory(), &["--durability", "sync"]);
    assert_eq!(ended.exit, Exit::Refused);
    assert!(ended.err.contains("floor does not offer durability sync; it offers none"), "{}", ended.err);
}

#[test]
fn verify_tells_a_mismatch_with_phase_and_both_values() {
    let directory = directory();
    run_floor(&directory, &[]);
    let file = path(&directory, "out/result.json");
    assert_eq!(run(&["verify", &file]).exit, Exit::Done);
    let mut result = load(&file);
    let mut liar = result.engines[0].clone();
    "liar".clone_into(&mut liar.engine);
    "0123456789ABCDEF".clone_into(&mut liar.phases[4].checksum);
    let right = result.engines[0].phases[4].checksum.clone();
    result.engines.push(liar);
    fs::write(&file, serde_json::to_string(&result).unwrap()).unwrap();
    let ended = run(&["verify", &file]);
    assert_eq!(ended.exit, Exit::Mismatch);
    for part in ["query country/status", "0123456789ABCDEF", &right] {
        assert!(ended.out.contains(part), "{part} is missing in {}", ended.out);
    }
}

#[test]
fn charts_are_drawn_again_from_a_result() {
    let directory = directory();
    run_floor(&directory, &[]);
    let (file, out) = (path(&directory, "out/result.json"), path(&directory, "again"));
    let ended = run(&["chart", &file, "--out", &out]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    assert!(fs::read_dir(&out).unwrap().count() >= 6);
}

#[test]
fn engines_are_listed_with_version_and_classes() {
    let ended = run(&["engines"]);
    assert_eq!(ended.exit, Exit::Done);
    let floor = ended.out.lines().find(|line| line.starts_with("floor")).expect("the floor is always there");
    assert!(floor.contains(env!("CARGO_PKG_VERSION")) && floor.contains("none"), "{floor}");
}

/// A database of profiles, as a run leaves it.
fn profiles_in(directory: &TempDir) -> String {
    let data = path(directory, "data");
    let out = path(directory, "out");
    let run = ["--engines", "profilestore", "--in-process", "--profiles", "300", "--data", &data, "--out", &out];
    let ended = self::run(&run);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    data
}

fn segment_of(database: &str) -> PathBuf {
    segments_of(database).into_iter().next().expect("it has segments")
}

#[test]
fn check_says_what_it_looked_at_wherever_the_database_is() {
    let directory = directory();
    let data = profiles_in(&directory);
    for dir in [data.clone(), format!("{data}/profilestore")] {
        let ended = run(&["check", &dir]);
        assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
        let expected = "300 records and 1200 index entries compared: no problem found";
        assert!(ended.out.contains(expected) && ended.out.contains("segments of"), "{}", ended.out);
    }
}

#[test]
fn check_names_file_and_offset_of_damage() {
    let directory = directory();
    let database = profiles_in(&directory) + "/profilestore";
    let segment = segment_of(&database);
    let name = segment.file_name().unwrap().to_str().unwrap();
    let sound = fs::read(&segment).unwrap();
    let mut damaged = sound.clone();
    damaged[40] ^= 1;
    fs::write(&segment, damaged).unwrap();
    let ended = run(&["check", &database]);
    assert_eq!(ended.exit, Exit::EngineFailed);
    assert!(ended.out.contains(&format!("{name} is damaged at byte 0: ")), "{}", ended.out);
    fs::write(&segment, &sound[..sound.len() - 1]).unwrap();
    let ended = run(&["check", &database]);
    assert_eq!(ended.exit, Exit::EngineFailed, "{}", ended.err);
    assert!(ended.out.contains(name) && ended.out.contains("it does not open: 1 problem"), "{}", ended.out);
    fs::remove_file(&segment).unwrap();
    assert_eq!(run(&["check", &database]).exit, Exit::EngineFailed);
}

#[test]
fn check_finds_an_index_that_disagrees() {
    let directory = directory();
    let database = path(&directory, "database");
    let open = || Database::open(&database, Options::default()).unwrap();
    let profiles: Repository<Database> = Repository::open(std::sync::Arc::new(open())).unwrap();
    drop(profiles);
    let engine = open();
    let mut batch = Batch::new();
    batch.put(engine.tree("profiles.created_at").unwrap(), &[0x80; 16], b"");
    engine.commit(&batch).unwrap();
    engine.close().unwrap();
    let ended = run(&["check", &database]);
    assert_eq!(ended.exit, Exit::EngineFailed, "{}", ended.err);
    assert!(ended.out.contains("index created_at names record"), "{}", ended.out);
}

#[test]
fn inspect_tells_what_each_tree_holds() {
    let directory = directory();
    let data = profiles_in(&directory);
    let ended = run(&["inspect", &data]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    let row = ended.out.lines().find(|line| line.starts_with("| profiles.email "));
    let cells: Vec<_> = row.expect("a row for each tree").split('|').map(str::trim).collect();
    assert_eq!((cells[2], cells[3], cells[4]), ("300", "0", "1"), "{}", ended.out);
    let ended = run(&["inspect", &data, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ended.out).expect("one line of JSON");
    let trees = told["trees"].as_array().expect("a list");
    let profiles = trees.iter().find(|tree| tree["name"] == "profiles").expect("the records");
    assert_eq!((&profiles["entries"], &profiles["space_amplification"]), (&300.into(), &1.0.into()));
    let ended = run(&["inspect", &path(&directory, "nowhere")]);
    assert_eq!(ended.exit, Exit::BadArguments);
    assert!(ended.err.contains("nowhere"), "{}", ended.err);
}

/// A database is anybody's: its names must not steer the terminal that they are shown on.
#[test]
fn inspect_shows_no_escape_sequence_of_a_name() {
    let directory = directory();
    let database = path(&directory, "database");
    let hostile = Database::open(&database, Options::default()).unwrap();
    hostile.tree("red \u{1b}[31m\u{202e}|\r\n").unwrap();
    hostile.close().unwrap();
    for arguments in [&["inspect", &database][..], &["inspect", &database, "--json"]] {
        let ended = run(arguments);
        assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
        assert!(ended.out.contains("red"), "{}", ended.out);
        let steers = |char: char| char.is_control() && char != '\n' || char == '\u{202e}' && arguments.len() == 2;
        assert!(!ended.out.contains(steers), "{:?}", ended.out);
    }
}

#[test]
fn a_database_is_backed_up_and_restored() {
    let directory = directory();
    let data = profiles_in(&directory);
    let (full, next, back) = (path(&directory, "full"), path(&directory, "next"), path(&directory, "back"));
    let ended = run(&["backup", &data, "--to", &full]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    assert!(ended.out.contains("read and sound") && !ended.out.contains("linked"), "{}", ended.out);
    let ended = run(&["backup", &data, "--to", &next, "--base", &full]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    assert!(ended.out.contains("linked"), "{}", ended.out);
    assert_eq!(run(&["restore", &next, "--to", &back]).exit, Exit::Done);
    assert_eq!(run(&["check", &back]).exit, Exit::Done);
    assert_eq!(run(&["export", &back]).out, run(&["export", &data]).out);

    for arguments in [
        &["backup", &data, "--to", &full][..],
        &["restore", &next, "--to", &back],
        &["restore", &path(&directory, "nowhere"), "--to", &path(&directory, "new")],
        &["backup", &path(&directory, "nowhere"), "--to", &path(&directory, "new")],
    ] {
        let ended = run(arguments);
        assert_eq!(ended.exit, Exit::BadArguments, "{arguments:?}: {}", ended.out);
    }
    assert!(!Path::new(&path(&directory, "new")).exists());
    let segment = fs::read_dir(&full).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.filter(|path| path.extension().is_some_and(|ending| ending == "seg")).min().unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[100] ^= 1;
    fs::remove_file(&segment).unwrap();
    fs::write(&segment, bytes).unwrap();
    let ended = run(&["restore", &full, "--to", &path(&directory, "new")]);
    assert_eq!(ended.exit, Exit::EngineFailed, "{}", ended.err);
    assert!(ended.out.contains("damaged at byte") && ended.err.contains("salvage"), "{}{}", ended.out, ended.err);
    assert!(!Path::new(&path(&directory, "new")).exists());
}

#[test]
fn profiles_go_out_as_text_and_come_in_again() {
    let directory = directory();
    let data = profiles_in(&directory);
    for format in ["json-lines", "csv"] {
        let text = path(&directory, format);
        let ended = run(&["export", &data, "--format", format, "--out", &text]);
        assert_eq!((ended.exit, ended.out.as_str()), (Exit::Done, ""), "{}", ended.err);
        let printed = run(&["export", &data, "--format", format]);
        assert_eq!(printed.out, fs::read_to_string(&text).unwrap());
        let again = run(&["export", &data, "--format", format, "--out", &text]);
        assert_eq!(again.exit, Exit::BadArguments);
        assert!(again.err.contains("name a new file"), "{}", again.err);

        let copy = path(&directory, &format!("copy-{format}"));
        let ended = run(&["import", &copy, &text, "--format", format]);
        assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
        assert!(ended.err.contains("300 profiles entered, 0 skipped"), "{}", ended.err);
        assert_eq!(run(&["check", &copy]).exit, Exit::Done);
        assert_eq!(run(&["export", &copy, "--format", format]).out, printed.out);

        let ended = run(&["import", &copy, &text, "--format", format]);
        assert_eq!(ended.exit, Exit::BadArguments);
        assert!(ended.err.contains("already holds") && ended.err.contains("go on from line 1"), "{}", ended.err);
        let ended = run(&["import", &copy, &text, "--format", format, "--on-conflict", "skip"]);
        assert!(ended.err.contains("0 profiles entered, 300 skipped"), "{}", ended.err);
        let ended = run(&["import", &copy, &text, "--format", format, "--on-conflict", "replace", "--batch", "7"]);
        assert!(ended.err.contains("300 profiles entered, 0 skipped"), "{}", ended.err);
    }
    let empty = path(&directory, "empty");
    Database::open(&empty, Options::default()).unwrap();
    let ended = run(&["export", &empty]);
    assert_eq!(ended.exit, Exit::BadArguments);
    assert!(ended.err.contains("holds no profiles"), "{}", ended.err);
    let ended = run(&["import", &empty, &path(&directory, "nowhere")]);
    assert_eq!(ended.exit, Exit::BadArguments);
    assert!(ended.err.contains("could not open"), "{}", ended.err);
}

#[test]
fn salvage_copies_what_is_left_and_builds_the_indexes_from_it() {
    let directory = directory();
    let data = profiles_in(&directory);
    let whole = path(&directory, "whole");
    let ended = run(&["salvage", &data, "--to", &whole]);
    assert_eq!(ended.exit, Exit::Done, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("300 profiles with 1200 index entries built from them: nothing lost"), "{}", ended.out);
    let database = data + "/profilestore";
    for (index, file) in fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().path()).enumerate() {
        if file.extension().is_some_and(|ending| ending == "seg") {
            let sound = fs::read(&file).unwrap();
            let mut damaged = sound.clone();
            damaged[40] ^= 1;
            fs::write(&file, damaged).unwrap();
            let rest = path(&directory, &format!("rest{index}"));
            let ended = run(&["salvage", &database, "--to", &rest]);
            let name = file.file_name().unwrap().to_str().unwrap();
            if ended.exit == Exit::EngineFailed {
                assert!(ended.out.contains(&format!("{name} is damaged at byte 0: between \"")), "{}", ended.out);
                // The records, or the names of the indexes that were built: without these all are built anew.
                let of = |tree: &str| ended.out.contains(&format!("entries of tree {tree} are missing"));
                assert!(of("profiles") || of("profiles."), "{}", ended.out);
            } else {
                assert_eq!(ended.exit, Exit::Done, "a damaged index is built anew: {}{}", ended.out, ended.err);
            }
            let checked = run(&["check", &rest]);
            assert_eq!(checked.exit, Exit::Done, "{}{}", checked.out, checked.err);
            fs::write(&file, sound).unwrap();
        }
    }
    let ended = run(&["salvage", &database, "--to", &whole]);
    assert_eq!(ended.exit, Exit::BadArguments, "{}", ended.out);
    assert!(ended.err.contains("which is not empty"), "{}", ended.err);
}

/// A record that lost its change has an e-mail again that somebody else has since.
#[test]
fn what_salvage_copied_is_safe_and_losses_are_told_where_an_index_cannot_be_built() {
    let directory = directory();
    let data = path(&directory, "data");
    let database = Arc::new(Database::open(&data, Options::default()).unwrap());
    let profiles = Repository::open(Arc::clone(&database)).unwrap();
    let person = |id: i64, email: String| Profile {
        user_id: id,
        email,
        country: Country::new("DE").expect("a country"),
        status: store::Status::Active,
        created_at: id * 1000,
        last_login: id * 1001,
        reputation: 5,
        display_name: format!("Name {id}"),
        bio: "x".repeat(60),
    };
    for id in 1..=600 {
        profiles.insert(&person(id, format!("p{id}@example.org"))).unwrap();
    }
    database.settle().unwrap();
    let settled = segments_of(&data);
    for id in 1..=600 {
        profiles.update(&person(id, format!("new{id}@example.org"))).unwrap();
    }
    profiles.insert(&person(5000, "p1@example.org".to_owned())).unwrap();
    database.flush().unwrap();
    database.close().unwrap();
    let mut refused = 0;
    for (index, file) in segments_of(&data).into_iter().filter(|file| !settled.contains(file)).enumerate() {
        let sound = fs::read(&file).unwrap();
        let mut damaged = sound.clone();
        damaged[40] ^= 1;
        fs::write(&file, damaged).unwrap();
        let rest = path(&directory, &format!("rest{index}"));
        let ended = run(&["salvage", &data, "--to", &rest]);
        fs::write(&file, sound).unwrap();
        assert!(matches!(ended.exit, Exit::Done | Exit::EngineFailed), "{:?}: {}", ended.exit, ended.err);
        if ended.out.contains("cannot be built") {
            refused += 1;
            assert_eq!(ended.exit, Exit::EngineFailed);
            assert!(ended.out.contains("is damaged") && ended.out.contains("already has email"), "{}", ended.out);
            let copy = Database::open(&rest, Options::default()).unwrap();
            let records = copy.tree("profiles").and_then(|tree| copy.snapshot().count(tree, &KeyRange::all())).unwrap();
            assert!(records >= 600, "{records} of 601 records");
        }
    }
    assert_eq!(refused, 1, "one of the newer segments holds records");
}

fn segments_of(database: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(database).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "seg")).collect()
}

#[test]
fn check_makes_nothing_in_a_database_of_something_else() {
    let directory = directory();
    let database = path(&directory, "database");
    let trees = || Database::open(&database, Options::default()).unwrap().tree_names();
    Database::open(&database, Options::default()).unwrap().tree("mine").unwrap();
    let ended = run(&["check", &database]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    assert!(ended.out.contains("no collection of profiles"), "{}", ended.out);
    assert_eq!(trees(), ["mine"]);
}

#[test]
fn what_is_no_database_or_in_use_cannot_be_checked() {
    let directory = directory();
    let (missing, photos, database) = (path(&directory, "missing"), path(&directory, "photos"), path(&directory, "db"));
    fs::create_dir(&photos).unwrap();
    fs::write(format!("{photos}/holiday.jpg"), "sea").unwrap();
    let open = Database::open(&database, Options::default()).unwrap();
    for (dir, part) in [(&missing, "missing"), (&photos, "holiday.jpg"), (&database, "already open")] {
        let ended = run(&["check", dir]);
        assert_eq!(ended.exit, Exit::BadArguments, "{dir}: {}{}", ended.out, ended.err);
        assert!(ended.err.contains(part), "{}", ended.err);
    }
    drop(open);
    assert!(!Path::new(&missing).exists());
    assert_eq!(fs::read_dir(&photos).unwrap().count(), 1, "nothing was added");
}

#[test]
fn torture_ends_with_one_line_of_json_for_each_kind() {
    let counts = ["--images", "30", "--nested", "20", "--faults", "10", "--model", "700", "--flips", "20"];
    let ended = run(&[&["torture", "--seed", "7"], &counts[..]].concat());
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    let lines: Vec<serde_json::Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> = lines.iter().map(|line| (line["kind"].as_str().unwrap(), line["tried"].as_u64())).collect();
    let tried = [("images", 30), ("nested", 20), ("faults", 10), ("model", 700), ("flips", 20)];
    assert_eq!(found, tried.map(|(kind, tried)| (kind, Some(tried))));
    for line in &lines {
        assert_eq!((&line["violations"], &line["seed"]), (&0.into(), &7.into()));
        assert!(line["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    }
    assert!(ended.err.contains("700 tried, 0 violations"), "{}", ended.err);
}

#[test]
fn torture_tells_the_seed_it_drew_and_asks_what_to_try() {
    let ended = run(&["torture", "--model", "1"]);
    let line: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(ended.err.lines().next(), Some(format!("seed {}", line["seed"]).as_str()));
    for arguments in [&["torture"][..], &["torture", "--seed", "1"], &["torture", "--images", "0"]] {
        let ended = run(arguments);
        assert_eq!((ended.exit, ended.out.as_str()), (Exit::BadArguments, ""), "{arguments:?}");
        assert!(ended.err.contains("--images"), "{}", ended.err);
    }
}

/// This test is no program that can be started again as a writer, so the first kill goes wrong.
#[test]
fn a_violation_is_told_with_its_seed_and_keeps_the_files() {
    let directory = directory();
    let dir = path(&directory, "killed");
    let arguments = ["torture", "--kill", "3", "--seed", "9", "--dir", &dir];
    let ended = run(&arguments);
    assert_eq!(ended.exit, Exit::EngineFailed, "{}", ended.err);
    let line: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&line["tried"], &line["violations"]), (&1.into(), &1.into()));
    assert!(ended.err.contains("violation with --seed 9, kill 1, "), "{}", ended.err);
    assert!(ended.err.contains("the writer ended by itself"), "{}", ended.err);
    assert!(Path::new(&dir).join("kill").is_dir(), "what went wrong can be looked at");
    let ended = run(&arguments);
    assert_eq!(ended.exit, Exit::Refused);
    assert!(ended.err.contains("name another directory"), "{}", ended.err);
}

/// The result of a run of the floor with so many repetitions.
fn result_of(directory: &TempDir, name: &str, more: &[&str]) -> String {
    let out = path(directory, name);
    let run = ["--engines", "floor", "--in-process", "--profiles", "300", "--quiet", "--out", &out];
    assert_eq!(self::run(&[&run[..], more].concat()).exit, Exit::Done);
    format!("{out}/result.json")
}

#[test]
fn two_results_are_compared_and_other_work_is_refused() {
    let directory = directory();
    let first = result_of(&directory, "first", &["--repeat", "3"]);
    let natural = result_of(&directory, "natural", &["--dataset", "natural"]);
    let ended = run(&["compare", &first, &first]);
    assert_eq!(ended.exit, Exit::Done, "what is compared with itself is no slower: {}{}", ended.out, ended.err);
    assert!(ended.out.contains("| insert profiles") && ended.out.contains("1.00x"), "{}", ended.out);
    let ended = run(&["compare", &first, &first, "--json"]);
    let line: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(line["contenders"][0]["phases"].as_array().map(Vec::len), Some(17));
    let ended = run(&["compare", &first, &natural]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::BadArguments, ""));
    assert!(ended.err.contains("the data set is published in the first and natural in the second"), "{}", ended.err);
}

#[test]
fn results_with_different_memory_budgets_are_not_compared() {
    let directory = directory();
    let usual = result_of(&directory, "usual", &[]);
    let bounded = result_of(&directory, "bounded", &["--memory", "32MiB"]);
    for (before, after, told) in [
        (&usual, &bounded, "the memory budget is none in the first and 33554432 bytes in the second"),
        (&bounded, &usual, "the memory budget is 33554432 bytes in the first and none in the second"),
    ] {
        let ended = run(&["compare", before, after]);
        assert_eq!(ended.exit, Exit::BadArguments);
        assert!(ended.err.contains(told), "{}", ended.err);
    }
}

#[test]
fn a_memory_budget_reaches_every_engine_and_every_file() {
    let directory = directory();
    let file = path(&directory, "work.toml");
    fs::write(&file, "profiles = 200\nmemory = '48MiB'\n").unwrap();
    let out = path(&directory, "out");
    let ended = run(&["run", &file, "--in-process", "--out", &out]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    let result = load(&format!("{out}/result.json"));
    assert_eq!(result.workload.memory_bytes, Some(48 << 20));
    for run in &result.engines {
        let told = run.settings.values().any(|value| {
            let budgets = [48 << 20, 36 << 20].map(|bytes: u64| bytes.to_string());
            budgets.contains(value) || value == "-49152" || value.contains("no budget bounds")
        });
        assert!(told, "{}: {:?}", run.engine, run.settings);
    }
    let report = fs::read_to_string(format!("{out}/report.md")).unwrap();
    assert!(report.contains("| Memory budget of each engine | 48.0 MB |") && report.contains("was given 48.0 MB"));
    assert!(ended.out.contains("48.0 MB of memory"), "{}", ended.out);
}

#[test]
fn a_slower_phase_and_another_answer_have_exits_of_their_own() {
    let directory = directory();
    let first = result_of(&directory, "first", &["--repeat", "3"]);
    let mut result = load(&first);
    result.engines.iter_mut().for_each(|run| run.phases[4].elapsed_ms *= 1000.0);
    let slower = path(&directory, "slower.json");
    fs::write(&slower, serde_json::to_string(&result).unwrap()).unwrap();
    assert_eq!(run(&["compare", &first, &slower]).exit, Exit::Slower);
    assert_eq!(run(&["compare", &slower, &first]).exit, Exit::Done);
    result.engines.iter_mut().for_each(|run| "0".clone_into(&mut run.phases[2].checksum));
    fs::write(&slower, serde_json::to_string(&result).unwrap()).unwrap();
    let ended = run(&["compare", &first, &slower]);
    assert_eq!(ended.exit, Exit::Mismatch);
    assert!(ended.out.contains("the answer to lookup by email is"), "{}", ended.out);
}

#[test]
fn every_file_names_the_data_set() {
    let directory = directory();
    let file = path(&directory, "work.toml");
    fs::write(&file, "profiles = 200\ndata = 'natural'\nengines = ['floor']\n").unwrap();
    let out = path(&directory, "out");
    let ended = run(&["run", &file, "--in-process", "--out", &out]);
    assert_eq!(ended.exit, Exit::Done, "{}", ended.err);
    assert!(ended.out.contains("profile-store · natural data · 200 profiles"), "{}", ended.out);
    assert!(ended.out.contains("no published result of this workload was compared"), "{}", ended.out);
    let read = |name: &str| fs::read_to_string(format!("{out}/{name}")).unwrap();
    assert!(read("result.json").contains("\"dataset\": \"natural\""));
    assert!(read("report.md").contains("| Data set | natural |"));
    assert!(
        read("phases.csv").lines().nth(1).is_some_and(|line| line.starts_with("floor,none,natural,insert profiles"))
    );
    assert!(read("charts/execution-time.svg").contains("natural data"));
}
