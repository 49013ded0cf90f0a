//! Checks of this machine: secret files, disk space and clocks.

use std::path::Path;

use a2a_registry_core::config::Config;
use a2a_registry_core::config::secret_file::{read_secret_bytes, readable_secret_warning};
use a2a_registry_core::health::disk_space::free_disk_bytes;

use super::{CheckStatus, DoctorCheck};

/// More than any file with a secret has.
const MAX_SECRET_BYTES: u64 = 64 * 1024;
const MEGABYTE: u64 = 1024 * 1024;
/// Below this an index commit or a database write soon fails.
const MIN_FREE_MEGABYTES: u64 = 100;
/// Below this a rebuilt index, which is written beside the old one, may not fit.
const LOW_FREE_MEGABYTES: u64 = 1024;

/// Difference of clocks in seconds from which tokens and leases of other machines are misjudged.
const MAX_CLOCK_LEAD: i64 = 30;
/// Difference that the whole seconds and the duration of a request do not explain.
const LOW_CLOCK_LEAD: i64 = 3;

/// Checks all files with secrets: one result if all are in order, else one for each other file.
pub(super) fn check_secret_files(config: &Config) -> Vec<DoctorCheck> {
    let files = config.secret_files();
    let findings: Vec<DoctorCheck> = files
        .iter()
        .filter_map(|(setting, path)| check_secret_file(setting, path))
        .collect();
    if files.is_empty() || !findings.is_empty() {
        return findings;
    }
    let detail = format!("only their owner can read the {} files", files.len());
    vec![DoctorCheck::new("secret files", CheckStatus::Ok, detail)]
}

/// The finding about a file; `None` if it is in order.
fn check_secret_file(setting: &str, path: &Path) -> Option<DoctorCheck> {
    let (verdict, detail) = match read_secret_bytes(setting, path, MAX_SECRET_BYTES) {
        Err(error) => (CheckStatus::Fail, error),
        Ok(_) => (CheckStatus::Warn, readable_secret_warning(setting, path)?),
    };
    Some(DoctorCheck::new("secret files", verdict, detail))
}

/// Checks the free space at the data folder; `None` if it is missing, or the system does not tell.
pub(super) fn check_disk_space(folder: &Path) -> Option<DoctorCheck> {
    let free = free_disk_bytes(folder).ok()??;
    Some(judge_disk_space(folder, free / MEGABYTE))
}

fn judge_disk_space(folder: &Path, free: u64) -> DoctorCheck {
    let shown = folder.display();
    let (verdict, rest) = match free {
        0..MIN_FREE_MEGABYTES => (
            CheckStatus::Fail,
            "; writes will fail soon: free some, or move the folder to a larger disk",
        ),
        MIN_FREE_MEGABYTES..LOW_FREE_MEGABYTES => (
            CheckStatus::Warn,
            "; a rebuilt index needs room beside the old one: free some",
        ),
        _ => (CheckStatus::Ok, ""),
    };
    let detail = format!("{free} MB are free at {shown}{rest}");
    DoctorCheck::new("disk space", verdict, detail)
}

/// Checks by how many seconds the clock of the database server is ahead of this one.
pub(super) fn check_database_clock(lead: i64) -> DoctorCheck {
    let (verdict, sentence) = judge_clock_lead("the database server", lead);
    DoctorCheck::new("clock", verdict, sentence)
}

/// Judges by how many seconds the clock of another machine is ahead of this one.
pub(super) fn judge_clock_lead(machine: &str, lead: i64) -> (CheckStatus, String) {
    let direction = if lead < 0 { "behind" } else { "ahead of" };
    let seconds = lead.unsigned_abs();
    let difference = format!("the clock of {machine} is {seconds} s {direction} this one");
    match lead.saturating_abs() {
        0..LOW_CLOCK_LEAD => (
            CheckStatus::Ok,
            format!("the clock of {machine} agrees with this one"),
        ),
        LOW_CLOCK_LEAD..MAX_CLOCK_LEAD => (
            CheckStatus::Warn,
            format!("{difference}; synchronize both with NTP"),
        ),
        _ => (
            CheckStatus::Fail,
            format!("{difference}, so tokens and leases are misjudged; synchronize both with NTP"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_space_is_judged_at_its_bounds() {
        let verdict = |free| judge_disk_space(Path::new("/data"), free).verdict;
        assert_eq!(verdict(0), CheckStatus::Fail);
        assert_eq!(verdict(MIN_FREE_MEGABYTES - 1), CheckStatus::Fail);
        assert_eq!(verdict(MIN_FREE_MEGABYTES), CheckStatus::Warn);
        assert_eq!(verdict(LOW_FREE_MEGABYTES - 1), CheckStatus::Warn);
        assert_eq!(verdict(LOW_FREE_MEGABYTES), CheckStatus::Ok);
    }

    #[test]
    fn clocks_are_judged_in_both_directions() {
        for (lead, expected, words) in [
            (0, CheckStatus::Ok, "agrees"),
            (-2, CheckStatus::Ok, "agrees"),
            (3, CheckStatus::Warn, "3 s ahead of"),
            (-29, CheckStatus::Warn, "29 s behind"),
            (30, CheckStatus::Fail, "30 s ahead of"),
            (i64::MIN, CheckStatus::Fail, "behind"),
        ] {
            let (verdict, sentence) = judge_clock_lead("a server", lead);
            assert_eq!(verdict, expected, "{lead}");
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
