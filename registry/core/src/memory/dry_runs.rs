//! What policies on a dry run would have changed in this process, until it is written to the database.

use std::collections::HashMap;
use std::sync::Mutex;

use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, Effect, PolicySet, Principal};
use a2a_registry_store::entity::dry_run_change;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::visibility::caller::Caller;

/// Changes of distinct agents and callers that are kept until they are written; further ones are not counted.
const MAX_KEPT: usize = 20_000;

/// What a policy on a dry run would have changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Change {
    policy: String,
    fingerprint: String,
    day: i32,
    action: Action,
    resource: String,
    /// Empty for callers without an account.
    caller: String,
    allows: bool,
}

/// Pending answers about found agents; beyond this number not all are counted.
const MAX_WAITING: usize = 1_000;

/// What a caller was shown while policies about finding agents are on a dry run.
#[derive(Debug, Clone)]
pub struct Answered {
    pub principal: Principal,
    /// The account, which sees its own agents whatever policies say.
    pub account: Option<Uuid>,
    pub what: Shown,
}

#[derive(Debug, Clone)]
pub enum Shown {
    Agent(Uuid),
    /// The answer to a search.
    Hits(Bytes),
    /// Agents, which a search found.
    Agents(Vec<Uuid>),
}

#[derive(Debug, Default)]
pub struct DryRuns {
    counts: Mutex<HashMap<Change, i64>>,
    answered: Mutex<Vec<Answered>>,
}

impl DryRuns {
    /// Records what a caller was shown, if policies bind it and are on a dry run about that.
    pub fn answered(&self, set: &PolicySet, caller: &Caller, what: impl FnOnce() -> Shown) {
        if !set.tries(Action::Discover) || caller.may(Permission::SeeAll) {
            return;
        }
        if let Ok(mut answered) = self.answered.lock()
            && answered.len() < MAX_WAITING
        {
            answered.push(Answered {
                principal: caller.principal(),
                account: caller.account.as_ref().map(|account| account.id),
                what: what(),
            });
        }
    }

    pub fn take_answered(&self) -> Vec<Answered> {
        match self.answered.lock() {
            Ok(mut answered) => std::mem::take(&mut *answered),
            Err(_) => Vec::new(),
        }
    }

    /// Counts that these policies of a set would have changed an answer about a resource.
    pub fn note(
        &self,
        set: &PolicySet,
        action: Action,
        resource: &str,
        principal: &Principal,
        places: &[u16],
        day: i32,
    ) {
        let policies = places
            .iter()
            .filter_map(|place| set.policies().get(usize::from(*place)));
        for policy in policies {
            let change = Change {
                policy: policy.id.clone(),
                fingerprint: fingerprint(&policy.text),
                day,
                action,
                resource: resource.to_owned(),
                caller: principal.account.clone().unwrap_or_default(),
                allows: policy.effect == Effect::Permit,
            };
            let Ok(mut counts) = self.counts.lock() else {
                return;
            };
            if counts.len() < MAX_KEPT || counts.contains_key(&change) {
                *counts.entry(change).or_default() += 1;
            }
        }
    }

    /// Takes all counts, as rows.
    pub fn take(&self) -> Vec<dry_run_change::Model> {
        let counts = match self.counts.lock() {
            Ok(mut counts) => std::mem::take(&mut *counts),
            Err(_) => return Vec::new(),
        };
        let row = |(change, count): (Change, i64)| dry_run_change::Model {
            policy: change.policy,
            fingerprint: change.fingerprint,
            day: change.day,
            action: change.action.as_str().to_owned(),
            resource: change.resource,
            caller: change.caller,
            allows: change.allows,
            count,
        };
        // In one order, so that two processes which write the same rows do not deadlock.
        let mut rows: Vec<dry_run_change::Model> = counts.into_iter().map(row).collect();
        rows.sort_unstable_by(|one, other| key_of(one).cmp(&key_of(other)));
        rows
    }

    /// Takes back counts that could not be written.
    pub fn take_back(&self, rows: Vec<dry_run_change::Model>) {
        let Ok(mut counts) = self.counts.lock() else {
            return;
        };
        for row in rows {
            let Some(action) = Action::parse(&row.action) else {
                continue;
            };
            let change = Change {
                policy: row.policy,
                fingerprint: row.fingerprint,
                day: row.day,
                action,
                resource: row.resource,
                caller: row.caller,
                allows: row.allows,
            };
            *counts.entry(change).or_default() += row.count;
        }
    }
}

/// The columns by which a row is counted.
fn key_of(row: &dry_run_change::Model) -> (&str, &str, i32, &str, &str, &str) {
    (
        &row.policy,
        &row.fingerprint,
        row.day,
        &row.action,
        &row.resource,
        &row.caller,
    )
}

/// Distinguishes the texts of policies.
pub fn fingerprint(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    HEXLOWER.encode(&digest.as_ref()[..8])
}
