//! Number of checked responses per documented operation and status: of one registry, and of a whole run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Number of checked exchanges, by operation and status.
pub type Tally = BTreeMap<String, BTreeMap<u16, u64>>;

/// Variable with the folder in which every process of a run writes its counts. `tests/run` sets it.
const FOLDER: &str = "A2A_REGISTRY_TEST_EXCHANGES";

static WHOLE: Mutex<Tally> = Mutex::new(Tally::new());

fn add(tally: &Mutex<Tally>, operation: &str, status: u16) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    let statuses = tally.entry(operation.to_owned()).or_default();
    *statuses.entry(status).or_default() += 1;
}

/// Counts an exchange for its registry and for the run.
pub fn count(own: &Mutex<Tally>, operation: &str, status: u16) {
    add(own, operation, status);
    add(&WHOLE, operation, status);
}

/// Writes the counts of this process to the folder of the run, if there is one.
pub fn write() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
        let file = Path::new(&folder).join(format!("{}.json", std::process::id()));
        std::fs::write(file, serde_json::to_vec(&*whole).unwrap()).unwrap();
    }
}

/// The counts of all processes of the run; `None` without a folder.
pub fn gathered() -> Option<Tally> {
    let folder = std::env::var_os(FOLDER)?;
    let mut whole = Tally::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        let tally: Tally = serde_json::from_slice(&text).unwrap();
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
