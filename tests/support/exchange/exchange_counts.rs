//! Counts of checked responses per documented operation and status, for one registry and for a whole run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Number of checked exchanges, by operation and status.
pub type ExchangeCounts = BTreeMap<String, BTreeMap<u16, u64>>;

/// Name of the variable with the folder to which every process of a run writes its counts. `tests/run` sets it.
const FOLDER_VARIABLE: &str = "A2A_REGISTRY_TEST_EXCHANGES";

static RUN_COUNTS: Mutex<ExchangeCounts> = Mutex::new(ExchangeCounts::new());

fn increment(tally: &Mutex<ExchangeCounts>, operation: &str, status: u16) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    let statuses = tally.entry(operation.to_owned()).or_default();
    *statuses.entry(status).or_default() += 1;
}

/// Counts an exchange for its registry and for the run.
pub fn count_exchange(own: &Mutex<ExchangeCounts>, operation: &str, status: u16) {
    increment(own, operation, status);
    increment(&RUN_COUNTS, operation, status);
}

/// Writes the counts of this process to the folder of the run, if there is one.
pub fn write_counts() {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        let whole = RUN_COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        let file = Path::new(&folder).join(format!("{}.json", std::process::id()));
        std::fs::write(file, serde_json::to_vec(&*whole).unwrap()).unwrap();
    }
}

/// The counts of all processes of the run; `None` without a folder.
pub fn read_run_counts() -> Option<ExchangeCounts> {
    let folder = std::env::var_os(FOLDER_VARIABLE)?;
    let mut whole = ExchangeCounts::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        let tally: ExchangeCounts = serde_json::from_slice(&text).unwrap();
        for (operation, statuses) in tally {
            for (status, times) in statuses {
                *whole
                    .entry(operation.clone())
                    .or_default()
                    .entry(status)
                    .or_default() += times;
            }
        }
    }
    Some(whole)
}
