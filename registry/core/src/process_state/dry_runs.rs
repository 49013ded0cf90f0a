//! The changes that policies on a dry run would have made in this process, until they are written to the database.

use std::collections::BTreeMap;
use std::sync::Mutex;

use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, Effect, PolicySet, Principal};
use a2a_registry_store::entity::dry_run_change;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::visibility::caller::Caller;

/// Maximum number of changes, of distinct agents and callers, that are kept until they are written; further ones are
/// not counted.
const MAX_CHANGES: usize = 20_000;

/// A change that a policy on a dry run would have made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DryRunChange {
    policy: String,
    fingerprint: String,
    day: i32,
    action: String,
    resource: String,
    /// The name of the account; empty for callers without one.
    caller: String,
    allows: bool,
}

/// Maximum number of pending observations; beyond it some are not counted.
const MAX_OBSERVATIONS: usize = 1_000;

/// A response to a caller while policies about finding agents are on a dry run.
#[derive(Debug, Clone)]
pub struct DryRunObservation {
    pub principal: Principal,
    /// The account, which sees its own agents regardless of policies.
    pub account: Option<Uuid>,
    pub response: DryRunObservedResponse,
}

#[derive(Debug, Clone)]
pub enum DryRunObservedResponse {
    Agent(Uuid),
    /// The response to a search.
    Hits(Bytes),
    /// The agents that a search found.
    Agents(Vec<Uuid>),
}

#[derive(Debug, Default)]
pub struct DryRunCounters {
    /// In a fixed order, so that two processes that write the same rows do not deadlock.
    counts: Mutex<BTreeMap<DryRunChange, i64>>,
    observations: Mutex<Vec<DryRunObservation>>,
}

impl DryRunCounters {
    /// Records a response if policies bind its caller and policies about finding agents are on a dry run.
    pub fn observe_response(
        &self,
        set: &PolicySet,
        caller: &Caller,
        response: impl FnOnce() -> DryRunObservedResponse,
    ) {
        if !set.has_dry_run(Action::Discover) || caller.has_permission(Permission::SeeAll) {
            return;
        }
        if let Ok(mut observations) = self.observations.lock()
            && observations.len() < MAX_OBSERVATIONS
        {
            observations.push(DryRunObservation {
                principal: caller.principal(),
                account: caller.account.as_ref().map(|account| account.id),
                response: response(),
            });
        }
    }

    pub fn take_observations(&self) -> Vec<DryRunObservation> {
        match self.observations.lock() {
            Ok(mut observations) => std::mem::take(&mut *observations),
            Err(_) => Vec::new(),
        }
    }

    /// Counts that these policies of a set would have changed a response about a resource.
    pub fn count_changes(
        &self,
        set: &PolicySet,
        action: Action,
        resource: &str,
        principal: &Principal,
        positions: &[u16],
        day: i32,
    ) {
        let policies = positions
            .iter()
            .filter_map(|place| set.policies().get(usize::from(*place)));
        for policy in policies {
            let change = DryRunChange {
                policy: policy.id.clone(),
                fingerprint: policy_fingerprint(&policy.text),
                day,
                action: action.as_str().to_owned(),
                resource: resource.to_owned(),
                caller: principal.account.clone().unwrap_or_default(),
                allows: policy.effect == Effect::Permit,
            };
            let Ok(mut counts) = self.counts.lock() else {
                return;
            };
            if counts.len() < MAX_CHANGES || counts.contains_key(&change) {
                *counts.entry(change).or_default() += 1;
            }
        }
    }

    /// Takes all counts, as rows.
    pub fn take_rows(&self) -> Vec<dry_run_change::Model> {
        let counts = match self.counts.lock() {
            Ok(mut counts) => std::mem::take(&mut *counts),
            Err(_) => return Vec::new(),
        };
        let row = |(change, count): (DryRunChange, i64)| dry_run_change::Model {
            policy: change.policy,
            fingerprint: change.fingerprint,
            day: change.day,
            action: change.action,
            resource: change.resource,
            caller: change.caller,
            allows: change.allows,
            count,
        };
        counts.into_iter().map(row).collect()
    }

    /// Takes back counts that could not be written.
    pub fn restore_rows(&self, rows: Vec<dry_run_change::Model>) {
        let Ok(mut counts) = self.counts.lock() else {
            return;
        };
        for row in rows {
            let change = DryRunChange {
                policy: row.policy,
                fingerprint: row.fingerprint,
                day: row.day,
                action: row.action,
                resource: row.resource,
                caller: row.caller,
                allows: row.allows,
            };
            *counts.entry(change).or_default() += row.count;
        }
    }
}

/// Distinguishes the texts of policies.
pub fn policy_fingerprint(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    HEXLOWER.encode(&digest.as_ref()[..8])
}
