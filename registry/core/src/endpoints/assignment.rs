//! Assigns agents the addresses that are checked for them, by the events of agents and domains, and once a day for
//! all agents.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use a2a_crawler::endpoint_check::{EndpointAddress, EndpointForm};
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::event::EventKind;
use a2a_registry_policy::{AgentAge, PolicySet};
use a2a_registry_store::endpoint_checks::{
    NewEndpointCheck, address_counts_by_host, endpoint_checks_by_keys, host_counts_by_site,
    live_domains_by_names,
};
use a2a_registry_store::endpoint_scans::{ENDPOINT_SCAN_SETTING, ScanPosition};
use a2a_registry_store::entity::{agent, endpoint_check, event};
use a2a_registry_store::{Executor, WriteTransaction, agents, events, settings};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::admission::policy_subject::crosses_age_threshold;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::CRAWLER_ACTOR;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::endpoints::selection::select_endpoints;
use crate::error::{AppError, Result};

/// The setting with the number of the last event by which agents were assigned their addresses.
const SEQ_SETTING: &str = "endpoint_checks_seq";
/// Agents per transaction of a scan.
const SCAN_BATCH: u64 = 100;
/// Events per transaction.
const EVENT_BATCH: u64 = 200;
/// Agents of events per transaction, beyond which no further event is applied in it.
const MAX_EVENT_AGENTS: usize = 500;
/// Maximum number of addresses on one host: about as many as can be asked in a day, eight a minute.
pub const MAX_ADDRESSES_PER_HOST: u64 = 10_000;
/// Maximum number of hosts of one registrable domain, so that nobody with a proof for all hosts below a domain makes
/// the registry ask ever more of them.
pub const MAX_HOSTS_PER_SITE: u64 = 10_000;

/// Applies the next events, and the next part of a scan that is due; returns whether there may be more to do.
pub async fn advance_endpoint_assignments(context: &AppContext) -> Result<bool> {
    let store = &context.store;
    let now = context.now().0;
    let highest = events::highest_event_seq(store).await?;
    // The events up to here are covered by the first scan, which begins at the first agent.
    let stored_seq = store
        .get_or_insert_setting(SEQ_SETTING, &highest.to_string())
        .await?;
    let scan = store
        .get_or_insert_setting(ENDPOINT_SCAN_SETTING, "")
        .await?;
    if stored_seq.parse() == Ok(highest) && !ScanPosition::parse(&scan).is_due(now) {
        return Ok(false);
    }
    let write = store.begin_write().await?;
    // Held until the end, so that processes take turns, and no request for a new scan is overwritten.
    let seq = settings::lock_setting(&write, SEQ_SETTING).await?;
    let seq: i64 = seq.and_then(|seq| seq.parse().ok()).unwrap_or(highest);
    let scan = ScanPosition::lock(&write).await?;
    let rows = events::events_after(&write, seq, EVENT_BATCH).await?;
    let (mut batch, applied) = AgentBatch::from_events(&write, &rows).await?;
    if let Some(applied) = applied {
        write.set_setting(SEQ_SETTING, &applied.to_string()).await?;
    }
    let mut is_scanning = false;
    if scan.is_due(now) {
        let page = agents::agents_page_by_id(&write, scan.last_agent(), SCAN_BATCH).await?;
        let is_full = page.len() as u64 == SCAN_BATCH;
        let page_end = page.last().filter(|_| is_full).map(|row| row.id);
        let next = scan.after_page(page_end, now);
        is_scanning = next.is_due(now);
        next.store(&write).await?;
        batch.ids.extend(page.iter().map(|row| row.id));
    }
    assign_and_commit(context, write, &batch).await?;
    Ok(is_scanning || applied.is_some_and(|applied| applied < highest))
}

/// Takes the addresses away from agents after checks were turned off; returns whether there may be more of them.
pub async fn clear_endpoint_assignments(context: &AppContext) -> Result<bool> {
    let store = &context.store;
    if settings::setting_value(store, SEQ_SETTING).await?.is_none() {
        return Ok(false);
    }
    let write = store.begin_write().await?;
    let page = agents::agents_with_endpoint_check(&write, SCAN_BATCH).await?;
    let is_last = (page.len() as u64) < SCAN_BATCH;
    let batch = AgentBatch {
        ids: page.into_iter().collect(),
        approved: HashSet::new(),
    };
    if is_last {
        // Turned on again, checks begin with a scan.
        write.delete_setting(SEQ_SETTING).await?;
        write.delete_setting(ENDPOINT_SCAN_SETTING).await?;
    }
    assign_and_commit(context, write, &batch).await?;
    Ok(!is_last)
}

/// Assigns these agents anew, because one of them may not be checked any more.
pub async fn assign_endpoints_again(context: &AppContext, agents: &[Uuid]) -> Result<()> {
    let batch = AgentBatch {
        ids: agents.iter().copied().collect(),
        approved: HashSet::new(),
    };
    let write = context.store.begin_write().await?;
    assign_and_commit(context, write, &batch).await
}

/// Agents to assign their addresses.
#[derive(Debug, Default)]
struct AgentBatch {
    ids: BTreeSet<Uuid>,
    /// Those whose served card has changed.
    approved: HashSet<Uuid>,
}

impl AgentBatch {
    /// The agents that the first of these events are about, and the number of the last one that was applied: the events
    /// of domains with many agents take several transactions.
    async fn from_events(
        write: &WriteTransaction,
        rows: &[event::Model],
    ) -> Result<(Self, Option<i64>)> {
        let mut batch = Self::default();
        let mut domain_names = BTreeSet::new();
        let mut applied = None;
        for row in rows {
            let kind = row.kind.known_value();
            match row.agent_id {
                // Written here.
                Some(_) if kind == Some(EventKind::AgentEndpoint) => {}
                Some(agent) => {
                    batch.ids.insert(agent);
                    if kind == Some(EventKind::AgentApproved) {
                        batch.approved.insert(agent);
                    }
                }
                None if kind.is_some_and(changes_permissions)
                    && domain_names.insert(row.subject.as_str()) =>
                {
                    let domains =
                        live_domains_by_names(write, std::slice::from_ref(&row.subject)).await?;
                    let ids: Vec<i64> = domains.iter().map(|row| row.id).collect();
                    let others = agents::live_agent_ids_by_domain(write, &ids).await?;
                    batch.ids.extend(others);
                }
                None => {}
            }
            applied = Some(row.seq);
            if batch.ids.len() >= MAX_EVENT_AGENTS {
                break;
            }
        }
        Ok((batch, applied))
    }
}

/// Whether an event of a domain may change what may be checked of its agents.
const fn changes_permissions(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::DomainProved
            | EventKind::DomainProofEnded
            | EventKind::DomainState
            | EventKind::DomainGeneration
            | EventKind::DomainUpdated
    )
}

async fn assign_and_commit(
    context: &AppContext,
    write: WriteTransaction,
    batch: &AgentBatch,
) -> Result<()> {
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let ids: Vec<Uuid> = batch.ids.iter().copied().collect();
    let rows = agents::agents_by_ids(&write, &ids).await?;
    let selected = select_endpoints(context, &write, rows.clone()).await?;
    let checks = known_and_new_checks(&write, &selected, change_set.now().0).await?;
    let policies = context.policy_sets.newest_set();
    let mut changed_rows = Vec::new();
    let mut released_checks = Vec::new();
    for mut row in rows {
        let key = selected.get(&row.id).map(endpoint_key);
        let check = key.and_then(|key| checks.get(&key));
        if let Some(check) = check
            && check.checked_at.is_some()
            && row.endpoint_check_id == Some(check.id)
            && batch.approved.contains(&row.id)
        {
            write
                .make_endpoint_check_due(check, change_set.now().0)
                .await?;
        }
        let released = row.endpoint_check_id;
        let released = released.filter(|old| check.is_none_or(|check| check.id != *old));
        released_checks.extend(released);
        if copy_check_to_agent(&mut change_set, &policies, &mut row, check) {
            changed_rows.push(row);
        }
    }
    write.upsert_agents(changed_rows).await?;
    released_checks.sort_unstable();
    released_checks.dedup();
    write
        .delete_unused_endpoint_checks(&released_checks)
        .await?;
    commit_changes(context, write, change_set).await?;
    context.signals.endpoints.notify_one();
    Ok(())
}

/// Copies an address and its last result to an agent, with an event if the result in one word changes, or if the agent
/// answered after longer than a policy permits. Returns whether the row has changed; the caller writes it.
pub(super) fn copy_check_to_agent(
    change_set: &mut ChangeSet<'_>,
    policies: &PolicySet,
    row: &mut agent::Model,
    check: Option<&endpoint_check::Model>,
) -> bool {
    let before = row.clone();
    row.endpoint_check_id = check.map(|check| check.id);
    row.endpoint = check.map_or_else(
        || EndpointState::NotChecked.into(),
        |check| check.state.clone(),
    );
    row.endpoint_checked_at = check.and_then(|check| check.checked_at);
    row.endpoint_answered_at = check.and_then(|check| check.answered_at);
    if row.endpoint != before.endpoint {
        let data = json!({"state": row.endpoint});
        change_set.add_agent_event(EventKind::AgentEndpoint, row.id, CRAWLER_ACTOR, data);
    } else if crosses_age_threshold(
        policies,
        AgentAge::Answered,
        (before.endpoint_answered_at, row.endpoint_answered_at),
        change_set.now(),
    ) {
        let data = json!({"age": AgentAge::Answered.as_str()});
        change_set.add_agent_event(EventKind::AgentUpdated, row.id, CRAWLER_ACTOR, data);
    }
    *row != before
}

/// The rows of these addresses by key; those that are not stored yet are stored, and due now.
async fn known_and_new_checks(
    write: &WriteTransaction,
    selected: &HashMap<Uuid, EndpointAddress>,
    now: i64,
) -> Result<HashMap<String, endpoint_check::Model>> {
    let addresses: BTreeMap<String, &EndpointAddress> = selected
        .values()
        .map(|address| (endpoint_key(address), address))
        .collect();
    let keys: Vec<String> = addresses.keys().cloned().collect();
    let mut known = checks_by_key(write, &keys).await?;
    let missing: Vec<NewEndpointCheck> = addresses
        .into_iter()
        .filter(|(key, _)| !known.contains_key(key))
        .map(|(key, address)| NewEndpointCheck {
            key,
            origin: address.origin(),
            site: address.site().to_owned(),
            form: address.form.as_str().to_owned(),
            url: address.url.to_string(),
            tenant: address.tenant.clone(),
        })
        .collect();
    if !missing.is_empty() {
        let missing = retain_within_bounds(write, missing).await?;
        write.insert_endpoint_checks(&missing, now).await?;
        let keys: Vec<String> = missing.into_iter().map(|new| new.key).collect();
        known.extend(checks_by_key(write, &keys).await?);
    }
    Ok(known)
}

/// Those of these new addresses that fit into the bounds of their hosts and sites. The others are not checked until
/// addresses fall away.
async fn retain_within_bounds(
    write: &WriteTransaction,
    mut missing: Vec<NewEndpointCheck>,
) -> Result<Vec<NewEndpointCheck>> {
    let hosts: BTreeSet<String> = missing.iter().map(|new| new.origin.clone()).collect();
    let sites: BTreeSet<String> = missing.iter().map(|new| new.site.clone()).collect();
    let hosts: Vec<String> = hosts.into_iter().collect();
    let sites: Vec<String> = sites.into_iter().collect();
    let mut addresses = address_counts_by_host(write, &hosts).await?;
    let mut hosts = host_counts_by_site(write, &sites).await?;
    missing.retain(|new| {
        let addresses = addresses.entry(new.origin.clone()).or_default();
        let hosts = hosts.entry(new.site.clone()).or_default();
        let is_new_host = *addresses == 0;
        let is_site_full = is_new_host && *hosts >= MAX_HOSTS_PER_SITE;
        if is_site_full || *addresses >= MAX_ADDRESSES_PER_HOST {
            return false;
        }
        *addresses += 1;
        *hosts += u64::from(is_new_host);
        true
    });
    Ok(missing)
}

async fn checks_by_key(
    db: &impl Executor,
    keys: &[String],
) -> Result<HashMap<String, endpoint_check::Model>> {
    let rows = endpoint_checks_by_keys(db, keys).await?;
    Ok(rows.into_iter().map(|row| (row.key.clone(), row)).collect())
}

/// The key of an address: agents with the same form, URL and tenant share it.
pub fn endpoint_key(address: &EndpointAddress) -> String {
    let tenant = address.tenant.as_deref().unwrap_or_default();
    let text = format!("{}\0{}\0{tenant}", address.form, address.url);
    HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref())
}

/// The address of a stored row.
pub fn stored_address(row: &endpoint_check::Model) -> Result<EndpointAddress> {
    let parsed = EndpointForm::from_name(&row.form).zip(Url::parse(&row.url).ok());
    let (form, url) = parsed
        .ok_or_else(|| AppError::internal(format!("endpoint_checks {}: not an address", row.id)))?;
    Ok(EndpointAddress {
        form,
        url,
        tenant: row.tenant.clone(),
    })
}
