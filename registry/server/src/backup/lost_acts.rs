//! Lost acts: what the lost database records after the last event of a backup, and what comes into force again because
//! its end is lost.

use a2a_registry_core::config::Config;
use a2a_registry_core::config::validate::sqlite_url;
use a2a_registry_core::error::StartError;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::event;
use a2a_registry_store::events::{events_after, highest_event_seq};
use a2a_registry_store::{Store, StoreError, StoreOptions};
use serde::Serialize;

use super::manifest::BackupManifest;
use crate::startup::store_options;

/// Maximum number of acts listed; all are counted. Those that bring something into force again come first.
const MAX_LISTED_ACTS: usize = 1000;
/// Number of events read at once.
const EVENT_BATCH: u64 = 500;

#[derive(Debug, Clone, Default, Serialize)]
pub struct LostActs {
    /// Number of the last event of the lost database.
    pub last_event: i64,
    pub act_count: u64,
    pub revival_count: u64,
    /// The first acts that revive something, and then the first others, at most 1,000 together.
    pub acts: Vec<LostAct>,
}

#[derive(Debug, Clone, Serialize)]
pub struct LostAct {
    pub seq: i64,
    pub at: Timestamp,
    pub kind: String,
    pub subject: String,
    pub actor: String,
    /// What is in force again without this act.
    pub revives: Option<&'static str>,
}

/// Reads the acts since the backup from the lost database, which is the path of an SQLite file or a URL.
pub async fn find_lost_acts(
    config: &Config,
    database: &str,
    manifest: &BackupManifest,
) -> Result<LostActs, StartError> {
    let is_url = ["sqlite:", "postgres:", "postgresql:"]
        .iter()
        .any(|scheme| database.starts_with(scheme));
    let url = match is_url {
        true => database.to_owned(),
        false => sqlite_url(database.as_ref()),
    };
    let options = StoreOptions {
        url: url.replace("mode=rwc", "mode=ro"),
        ..store_options(config)
    };
    // The URL may contain a password, so it is not repeated.
    let to_start_error = |error: StoreError| {
        StartError(format!(
            "the database to compare with cannot be read: {error}; leave it out if it is lost"
        ))
    };
    let store = Store::connect(&options).await.map_err(to_start_error)?;
    let lost = read_lost_acts(&store, manifest.last_event).await;
    store.close().await.map_err(to_start_error)?;
    let lost = lost.map_err(to_start_error)?;
    if lost.last_event < manifest.last_event {
        return Err(StartError(format!(
            "the database to compare with ends at event {}, and the backup has events up to {}: it is another or an \
             older database; give the one that the backup was made of",
            lost.last_event, manifest.last_event
        )));
    }
    Ok(lost)
}

async fn read_lost_acts(store: &Store, after: i64) -> Result<LostActs, StoreError> {
    let mut lost = LostActs {
        last_event: highest_event_seq(store).await?,
        ..LostActs::default()
    };
    let (mut position, mut others) = (after, Vec::new());
    loop {
        let batch = events_after(store, position, EVENT_BATCH).await?;
        let Some(last) = batch.last() else {
            break;
        };
        position = last.seq;
        for row in batch {
            // A kind that only a later version knows may be an act.
            if row.kind().is_ok_and(|kind| !kind.is_action()) {
                continue;
            }
            lost.act_count += 1;
            let act = LostAct::from_row(row);
            let list = match act.revives {
                Some(_) => {
                    lost.revival_count += 1;
                    &mut lost.acts
                }
                None => &mut others,
            };
            if list.len() < MAX_LISTED_ACTS {
                list.push(act);
            }
        }
    }
    others.truncate(MAX_LISTED_ACTS - lost.acts.len());
    lost.acts.append(&mut others);
    Ok(lost)
}

impl LostAct {
    fn from_row(row: event::Model) -> Self {
        Self {
            revives: row.kind().ok().and_then(revived_right),
            seq: row.seq,
            at: Timestamp(row.at),
            kind: row.kind.as_str().to_owned(),
            subject: row.subject,
            actor: row.actor,
        }
    }
}

/// What is in force again if an act of this kind is lost.
const fn revived_right(kind: EventKind) -> Option<&'static str> {
    Some(match kind {
        EventKind::TokenRevoked => "the token is valid again",
        EventKind::FeedRevoked => "the URL of the feed works again",
        EventKind::AccountDisabled | EventKind::AccountAccessEnded => {
            "the account has access again, with its tokens"
        }
        EventKind::AccountChanged | EventKind::GroupChanged | EventKind::GroupDeleted => {
            "the former roles and memberships are valid again"
        }
        EventKind::AgentReleased => "the hold is in force again",
        EventKind::AgentHeld => "the agent is without this hold again",
        EventKind::AgentRejected | EventKind::AgentReturned | EventKind::AgentRetired => {
            "the former approval is valid again"
        }
        EventKind::ReviewApproval => "the approvals of the review are as they were at the backup",
        EventKind::DomainDeleted
        | EventKind::DomainGeneration
        | EventKind::DomainProofEnded
        | EventKind::DomainOwnerVouchEnded => {
            "the domain and its approvals are as they were at the backup"
        }
        EventKind::DomainCredentialRemoved => "the credential of the source is sent again",
        EventKind::DomainEndpointsVouchEnded => "the endpoints of the host may be checked again",
        EventKind::PolicySet => "the former policies are in force again",
        EventKind::WaiverEnded => "the waiver is in force again",
        EventKind::CollectionChanged | EventKind::CollectionDeleted => {
            "the former collection is in force again"
        }
        _ => return None,
    })
}
