//! Whether this process can do its work.

use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::error::AppError;
use crate::domain::timestamp::{SECOND, Timestamp};
use crate::store::events;

/// How old the oldest event that the index has not applied may be.
const MAX_INDEX_LAG: i64 = 10 * SECOND;

/// Whether this process can do its work, check by check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Whether every check holds.
    pub ready: bool,
    /// `--approve-all` is in force: every registered card is approved.
    pub approve_all: bool,
    /// The checks.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// Whether it holds.
    pub ok: bool,
    /// What was found.
    pub detail: String,
}

/// When the database was last heard of.
#[derive(Debug)]
pub(super) struct Heard(AtomicI64);

impl Heard {
    pub(super) fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.0))
    }
}

impl App {
    /// Notes that the database has just answered.
    pub fn heard_database(&self) {
        self.heard.0.store(self.now().0, Ordering::Release);
    }

    /// Refuses to answer from memory once the database has been silent for longer than `stale_limit`.
    ///
    /// # Errors
    /// `Unavailable`.
    pub(super) fn demand_database(&self) -> Result<(), AppError> {
        let silent = self.now().0 - self.heard.0.load(Ordering::Acquire);
        let limit = i64::try_from(self.config.store.stale_limit).unwrap_or(i64::MAX / SECOND);
        if silent > limit.saturating_mul(SECOND) {
            return Err(AppError::unavailable(
                "The registry has lost its database and no longer vouches for what it knows.",
                5,
            ));
        }
        Ok(())
    }

    /// Checks database, index, disk and crawler.
    pub async fn readiness(&self) -> Readiness {
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
        match self.store.ping().await {
            Ok(()) => check("database", Ok("answers".into())),
            Err(error) => {
                tracing::warn!(%error, "the database does not answer");
                check("database", Err("does not answer".into()));
            }
        }
        check("index", self.index_lag().await);
        check("disk", self.disk());
        check("crawler", Ok(self.crawler_standing()));
        let ready = checks.iter().all(|check| check.ok);
        Readiness {
            ready,
            approve_all: self.config.governance.approve_all,
            checks,
        }
    }

    /// How far the index is behind: seconds, as a sentence.
    async fn index_lag(&self) -> Result<String, String> {
        let applied = self.index.applied_seq();
        let next = events::events_after(&self.store, applied, 1).await;
        match next {
            Err(_) => Err("cannot be compared with the database".into()),
            Ok(events) => match events.first() {
                None => Ok(format!("has applied every event up to {applied}")),
                Some(oldest) => {
                    let age = self.now().0 - oldest.at;
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

    /// Whether verdicts are frozen. Requests can be answered all the same, so it is never a reason not to be
    /// ready.
    fn crawler_standing(&self) -> String {
        match self.crawl_braked_since() {
            Some(since) => format!(
                "so many fetches fail at once that the fault is likely ours; verdicts are frozen since {}",
                since.to_rfc3339()
            ),
            None => "verdicts are given".into(),
        }
    }

    /// Whether the data folder still takes a file.
    fn disk(&self) -> Result<String, String> {
        let probe = self.config.store.data_dir.join("ready");
        match std::fs::write(&probe, b"ready") {
            Ok(()) => Ok("takes writes".into()),
            Err(error) => Err(format!("the data folder takes no writes: {error}")),
        }
    }
}
