//! Readiness: checks of database, writes, index, disk, policies, cards and crawler.

use std::fs::{File, remove_file};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::{MAX_DAMAGED_BODIES, SchemaState, StoreErrorKind, agents, events};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::AppContext;
use crate::embeddings::embedding_progress;
use crate::health::database_writes::check_database_writes;
use crate::health::received_request::ReceivedRequest;
use crate::search::indexing::check_index_readable;
use crate::visits::outage::breaker_open_since;

/// Maximum age of the oldest event that the index has not applied.
const MAX_INDEX_LAG: i64 = 10 * SECOND;

/// Timeout of a check: probes expect a response within two seconds.
const CHECK_TIMEOUT: Duration = Duration::from_millis(1500);

/// The file of the disk check. Its size is more than a file system stores in a directory entry, so that each check
/// needs free space.
const PROBE_FILE_NAME: &str = "ready";
const PROBE_BYTES: usize = 16 * 1024;

/// How long the result of a disk check is reused: anyone may request a check, which waits for the disk.
const PROBE_RESULT_TTL: i64 = SECOND;

/// Readiness of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// True if every check passes.
    pub ready: bool,
    /// True if the server runs with `--approve-all`, so that every registered card is approved.
    pub approve_all: bool,
    /// Results of the checks.
    pub checks: Vec<Check>,
    /// How this request arrived, for callers who may read events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ReceivedRequest>,
}

impl Readiness {
    /// Removes the findings of the checks, which reveal the load and size of the registry.
    #[must_use]
    pub fn without_details(mut self) -> Self {
        for check in &mut self.checks {
            let word = if check.ok { "passes" } else { "fails" };
            word.clone_into(&mut check.detail);
        }
        self
    }
}

/// One readiness check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// True if it passes.
    pub ok: bool,
    /// Result, as a sentence; for callers who may not read events only `passes` or `fails`.
    pub detail: String,
}

/// Checks reads and writes of the database, index, disk and policies, and reports the progress of the decisions by
/// changed rules, damaged cards, the circuit breaker, and models if there are any.
pub async fn check_readiness(context: &AppContext) -> Readiness {
    let mut checks = Vec::new();
    let mut add_check = |name: &str, outcome: Result<String, String>| {
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
    // Concurrently, so that all together take no longer than one timeout.
    let (database, writes, index, disk) = tokio::join!(
        check_with_timeout(check_database(context)),
        check_with_timeout(check_writes(context)),
        check_with_timeout(check_index_and_lag(context)),
        check_with_timeout(check_disk(context))
    );
    add_check("database", database);
    add_check("writes", writes);
    add_check("index", index);
    add_check("disk", disk);
    add_check("policies", context.policy_sets.status_text());
    // Requests are served meanwhile, and agents that the rules may forbid stay hidden.
    add_check("rules", Ok(context.rules_progress.status_text()));
    add_check("cards", Ok(damaged_cards_status(context)));
    add_check("crawler", Ok(crawl_breaker_status(context)));
    for progress in embedding_progress(context) {
        add_check("model", Ok(progress.status_text()));
    }
    let ready = checks.iter().all(|check| check.ok);
    Readiness {
        ready,
        approve_all: context.config().governance.approve_all,
        checks,
        request: None,
    }
}

async fn check_database(context: &AppContext) -> Result<String, String> {
    let Err(error) = agents::agents_page_by_id(&context.store, None, 1).await else {
        return check_schema(context).await;
    };
    tracing::warn!(%error, "the database does not respond");
    Err(match error.kind() {
        StoreErrorKind::Unavailable => "does not respond".into(),
        _ => "responds, but agents cannot be read".into(),
    })
}

/// Checks that this version can still run on the schema, which a newer version may have migrated since the start.
async fn check_schema(context: &AppContext) -> Result<String, String> {
    match context.store.schema_state().await {
        Ok(SchemaState::Known { .. }) => Ok("answers".into()),
        Ok(SchemaState::Newer { migrations }) => Ok(format!(
            "answers; a newer version has migrated it ({}), and this version can run beside it",
            migrations.join(", ")
        )),
        Ok(SchemaState::Incompatible { reason }) => Err(reason),
        Err(error) => {
            tracing::warn!(%error, "the migrations of the database cannot be read");
            Err("responds, but its migrations cannot be read".into())
        }
    }
}

/// Checks that the database accepts writes. Reads are served while it does not.
async fn check_writes(context: &AppContext) -> Result<String, String> {
    match check_database_writes(context).await {
        Ok(()) => Ok("the database accepts them".into()),
        Err(StoreErrorKind::ReadOnly) => {
            Err("the database is read-only; changes are rejected".into())
        }
        Err(StoreErrorKind::StorageFull) => {
            Err("the disk of the database is full; changes are rejected".into())
        }
        Err(StoreErrorKind::Unavailable) => Err("the database does not respond".into()),
        Err(_) => Err("the database rejects them".into()),
    }
}

/// Checks that the index can be read, and how far it lags.
async fn check_index_and_lag(context: &AppContext) -> Result<String, String> {
    check_index_readable(context).await?;
    check_index_lag(context).await
}

/// Describes the lag of the index; an error if it is too long.
async fn check_index_lag(context: &AppContext) -> Result<String, String> {
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

/// Describes the circuit breaker. Requests are served even while it is open, so it never makes a process unready.
fn crawl_breaker_status(context: &AppContext) -> String {
    match breaker_open_since(context) {
        Some(since) => format!(
            "many fetches are failing, probably because of our own network; agents keep their state until it recovers (since {})",
            since.to_rfc3339()
        ),
        None => "fetches succeed; states of agents are updated".into(),
    }
}

/// Describes the number of damaged stored cards. All others are served, so it never makes a process unready. The names
/// of the damaged ones are not public.
fn damaged_cards_status(context: &AppContext) -> String {
    match context.damaged_card_count() {
        0 => "no stored card was found damaged".into(),
        count => {
            let more = if count < MAX_DAMAGED_BODIES {
                ""
            } else {
                "at least "
            };
            format!(
                "{more}{count} stored cards are damaged and not served; `a2a-registry doctor --verify` names them"
            )
        }
    }
}

async fn check_disk(context: &AppContext) -> Result<String, String> {
    let path = context.config().store.data_dir.join(PROBE_FILE_NAME);
    let mut last_result = Arc::clone(&context.disk.0).lock_owned().await;
    let now = context.now();
    let recent = last_result
        .as_ref()
        .filter(|(at, _)| (now.0 - at.0).abs() < PROBE_RESULT_TTL);
    let outcome = match recent {
        Some((_, outcome)) => outcome.clone(),
        None => {
            // The caller may disconnect meanwhile; the next caller waits until this check has ended.
            let check = tokio::task::spawn_blocking(move || {
                let outcome = write_probe_file(&path).map_err(|error| error.to_string());
                *last_result = Some((now, outcome.clone()));
                outcome
            });
            check.await.unwrap_or_else(|error| Err(error.to_string()))
        }
    };
    match outcome {
        Ok(()) => Ok("accepts writes".into()),
        Err(error) => Err(format!("cannot write to the data folder: {error}")),
    }
}

/// The result of a check, or an error after the timeout.
async fn check_with_timeout(
    check: impl Future<Output = Result<String, String>>,
) -> Result<String, String> {
    tokio::time::timeout(CHECK_TIMEOUT, check)
        .await
        .unwrap_or_else(|_| Err("did not respond in time".into()))
}

/// Writes a new file to the disk and removes it. Overwriting an existing file would need no space and so succeed on a
/// full disk.
fn write_probe_file(path: &Path) -> io::Result<()> {
    // A process that was killed during a check may have left its file.
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
        let path = folder.path().join(PROBE_FILE_NAME);
        write_probe_file(&path).unwrap();
        std::fs::write(&path, "left behind").unwrap();
        write_probe_file(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_takes_nothing_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROBE_FILE_NAME);
        // A folder of that name stands for any obstacle.
        std::fs::create_dir(&path).unwrap();
        assert!(write_probe_file(&path).is_err());
        let gone = folder.path().join("gone").join(PROBE_FILE_NAME);
        assert_eq!(
            write_probe_file(&gone).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
