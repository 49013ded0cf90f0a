//! How often each documented operation was seen answered with each status: by one registry, and by all of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// By operation and status, how many exchanges were judged.
pub type Tally = BTreeMap<String, BTreeMap<u16, u64>>;

/// The folder in which every process of a run leaves what it has seen. `tests/run` names it.
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

/// Leaves what this process has seen so far in the folder of the run, if there is one.
pub fn write() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
        let file = Path::new(&folder).join(format!("{}.json", std::process::id()));
        std::fs::write(file, serde_json::to_vec(&*whole).unwrap()).unwrap();
    }
}

/// What all processes of the run have seen; nothing where there is no folder.
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
