//! The machine, the system and the build, by name, for whoever reads a result elsewhere.
//!
//! Holds nothing that tells whose machine it is: no host name, no user name, no path. What a system does not tell is
//! left out.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts, by name.
pub type Environment = BTreeMap<String, String>;

/// Whether this build is one whose numbers mean nothing.
pub const DEBUG_BUILD: bool = cfg!(debug_assertions);

/// The facts as they are now, at the start of a run with its stores in `data`.
pub fn at_start(data: &Path) -> Environment {
    let facts = [
        ("profilebench", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("build", Some(if DEBUG_BUILD { "debug: times mean nothing" } else { "release" }.to_owned())),
        ("target", Some(format!("{} {}", std::env::consts::ARCH, std::env::consts::OS))),
        ("started", Some(utc(SystemTime::now()))),
        ("cpu", read("/proc/cpuinfo").and_then(|text| field(&text, "model name"))),
        ("cores", std::thread::available_parallelism().ok().map(|count| count.to_string())),
        ("memory", read("/proc/meminfo").and_then(|text| memory(&text))),
        ("system", read("/etc/os-release").and_then(|text| system(&text))),
        ("kernel", read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned())),
        ("file system", read("/proc/self/mountinfo").and_then(|text| file_system(&text, data))),
        ("load before", load()),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))).collect()
}

/// Adds the facts that are known at the end.
pub fn at_end(environment: &mut Environment) {
    environment.extend(load().map(|load| ("load after".to_owned(), load)));
    environment.insert("finished".to_owned(), utc(SystemTime::now()));
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Load averages of 1, 5 and 15 minutes.
fn load() -> Option<String> {
    let text = read("/proc/loadavg")?;
    Some(text.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}

/// Value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

fn memory(meminfo: &str) -> Option<String> {
    let kib: u64 = field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{:.1} GiB", kib as f64 / f64::from(1 << 20)))
}

fn system(os_release: &str) -> Option<String> {
    let line = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

/// Type of the file system `path` is on, found by its device number: mount points, being paths, are not looked at.
fn file_system(mountinfo: &str, path: &Path) -> Option<String> {
    let device = fs::metadata(path).ok()?.dev();
    let id = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mounted_as(mountinfo, &id)
}

/// A line is `id parent major:minor root mount-point options [tags] - type source options`.
fn mounted_as(mountinfo: &str, device: &str) -> Option<String> {
    let line = mountinfo.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    line.split_once(" - ")?.1.split(' ').next().map(str::to_owned)
}

/// `2023-01-01T00:00:00Z`.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Calendar date of a day counted from 1970-01-01.
fn civil(mut day: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    (year, month as u64 + 1, day + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_672_531_200, "2023-01-01T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn the_facts_do_not_tell_whose_machine_it_is() {
        let mut facts = at_start(&std::env::temp_dir());
        at_end(&mut facts);
        let text = format!("{facts:?}");
        let host = read("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
        let home = std::env::home_dir().map(|home| home.display().to_string());
        for secret in [host, home, std::env::var("USER").ok()].into_iter().flatten().filter(|name| name.len() > 2) {
            assert!(!text.contains(&secret), "{secret} is in {text}");
        }
        assert!(facts["started"] <= facts["finished"]);
    }

    #[test]
    fn a_file_system_is_found_by_its_device() {
        let text = "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n30 22 0:26 / /tmp rw shared:5 - tmpfs tmpfs rw\n";
        assert_eq!(mounted_as(text, "0:26").as_deref(), Some("tmpfs"));
        assert_eq!(mounted_as(text, "8:1").as_deref(), Some("ext4"));
        assert_eq!(mounted_as(text, "9:9"), None);
    }
}
