//! Whether this process can do its work.

use std::fs::{File, remove_file};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::{StoreErrorKind, agents, events};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Context;
use crate::meaning::meaning_progress;
use crate::search::indexing::index_readable;
use crate::visits::outage::breaker_open_since;

/// How old the oldest event that the index has not applied may be.
const MAX_INDEX_LAG: i64 = 10 * SECOND;

/// How long a check may take: whoever asks for readiness wants to hear within two seconds.
const CHECK_LIMIT: Duration = Duration::from_millis(1500);

/// The file that tells whether the data folder takes writes, and how many bytes of it: more than a file system keeps
/// beside a file's name, so that each look needs space that is free.
const PROBE: &str = "ready";
const PROBE_BYTES: usize = 16 * 1024;

/// For this long the outcome of a look is told again: anybody may ask, and a look waits for the disk.
const PROBED_FOR: i64 = SECOND;

/// Readiness of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// True if every check passes.
    pub ready: bool,
    /// True if the server runs with `--approve-all`, so that every registered card is approved.
    pub approve_all: bool,
    /// Results of the checks.
    pub checks: Vec<Check>,
}

/// One readiness check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// True if it passes.
    pub ok: bool,
    /// Result, as a sentence.
    pub detail: String,
}

/// Checks database, index, disk and crawler, and tells of models where there are any.
pub async fn readiness(context: &Context) -> Readiness {
    let mut checks = Vec::new();
    let mut check = |name: &str, outcome: Result<String, String>| {
        let (ok, detail) = match outcome {
            Ok(detail) => (true, detail),
            Err(detail) => (false, detail),
        };
        checks.push(Check {
            name: name.into(),
            ok,
            detail,
        });
    };
    // At the same time, so that all together take no longer than one of them may.
    let (database, index, disk) = tokio::join!(
        in_time(database(context)),
        in_time(index_standing(context)),
        in_time(disk(context))
    );
    check("database", database);
    check("index", index);
    check("disk", disk);
    check("crawler", Ok(crawler_standing(context)));
    for progress in meaning_progress(context) {
        check("model", Ok(progress.sentence()));
    }
    let ready = checks.iter().all(|check| check.ok);
    Readiness {
        ready,
        approve_all: context.config.governance.approve_all,
        checks,
    }
}

/// Whether the database answers a question of the kind that callers ask.
async fn database(context: &Context) -> Result<String, String> {
    let Err(error) = agents::agents_walk(&context.store, None, 1).await else {
        return Ok("answers".into());
    };
    tracing::warn!(%error, "the database does not answer");
    Err(match error.kind() {
        StoreErrorKind::Away => "does not answer".into(),
        _ => "answers, but agents cannot be read from it".into(),
    })
}

/// Whether the index can be read, and how far it is behind.
async fn index_standing(context: &Context) -> Result<String, String> {
    index_readable(context).await?;
    index_lag(context).await
}

/// How far the index is behind: seconds, as a sentence.
async fn index_lag(context: &Context) -> Result<String, String> {
    let applied = context.index.applied_seq();
    let next = events::events_after(&context.store, applied, 1).await;
    match next {
        Err(_) => Err("cannot be compared with the database".into()),
        Ok(events) => match events.first() {
            None => Ok(format!("has applied every event up to {applied}")),
            Some(oldest) => {
                let age = context.now().0 - oldest.at;
                let text = format!("is {} ms behind", age / 1000);
                if age > MAX_INDEX_LAG {
                    Err(text)
                } else {
                    Ok(text)
                }
            }
        },
    }
}

/// State of the circuit breaker. Requests are served while it is open, so it never makes the process unready.
fn crawler_standing(context: &Context) -> String {
    match breaker_open_since(context) {
        Some(since) => format!(
            "many fetches are failing, probably because of our own network; agents keep their state until it recovers (since {})",
            since.to_rfc3339()
        ),
        None => "fetches succeed; states of agents are updated".into(),
    }
}

/// Whether the data folder still takes a file.
async fn disk(context: &Context) -> Result<String, String> {
    let path = context.config.store.data_dir.join(PROBE);
    let mut last = Arc::clone(&context.disk.0).lock_owned().await;
    let now = context.now();
    let known = last
        .as_ref()
        .filter(|(at, _)| (now.0 - at.0).abs() < PROBED_FOR);
    let outcome = match known {
        Some((_, outcome)) => outcome.clone(),
        None => {
            // Whoever asked may go away meanwhile; the next one looks when this look has ended.
            let look = tokio::task::spawn_blocking(move || {
                let outcome = probe(&path).map_err(|error| error.to_string());
                *last = Some((now, outcome.clone()));
                outcome
            });
            look.await.unwrap_or_else(|error| Err(error.to_string()))
        }
    };
    match outcome {
        Ok(()) => Ok("takes writes".into()),
        Err(error) => Err(format!("the data folder takes no writes: {error}")),
    }
}

/// What a check has found, where it comes to an end before whoever asked gives up.
async fn in_time(check: impl Future<Output = Result<String, String>>) -> Result<String, String> {
    tokio::time::timeout(CHECK_LIMIT, check)
        .await
        .unwrap_or_else(|_| Err("did not answer in time".into()))
}

/// Writes a new file to the disk and takes it away again. Writing over an old one would need no space, and succeed on
/// a full disk.
fn probe(path: &Path) -> io::Result<()> {
    // A process that was ended at the wrong moment has left its own.
    match remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(&[b'.'; PROBE_BYTES])?;
        file.sync_all()
    });
    let removed = remove_file(path);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_probe_leaves_nothing_and_minds_nothing_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROBE);
        probe(&path).unwrap();
        std::fs::write(&path, "left behind").unwrap();
        probe(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_takes_nothing_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROBE);
        // A folder of that name stands for whatever is in the way.
        std::fs::create_dir(&path).unwrap();
        assert!(probe(&path).is_err());
        let gone = folder.path().join("gone").join(PROBE);
        assert_eq!(probe(&gone).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
