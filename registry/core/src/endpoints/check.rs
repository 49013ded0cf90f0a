//! The checks of one host: what is permitted is asked, and the results are stored.

use std::net::IpAddr;

use a2a_crawler::address_block::enclosing_address_block;
use a2a_crawler::endpoint_check::{EndpointCheck, EndpointVerdict};
use a2a_crawler::fetch::Fetcher;
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::identifiers::random_u64;
use a2a_registry_domain::timestamp::{DAY, MINUTE, SECOND};
use a2a_registry_store::endpoint_checks::{agents_by_endpoint_check, endpoint_checks_by_ids};
use a2a_registry_store::endpoint_leases::{
    EndpointLeaseEnd, EndpointLeaseRequest, LeasedEndpointHost,
};
use a2a_registry_store::entity::{agent, endpoint_check, endpoint_host};
use url::Host;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::endpoints::assignment::{
    assign_endpoints_again, copy_check_to_agent, endpoint_key, stored_address,
};
use crate::endpoints::selection::select_endpoints;
use crate::error::Result;
use crate::ownership::opt_out_lookup::{OptOutLookupResult, look_up_host_opt_out};
use crate::visits::VISIT_SPACING;
use crate::visits::leases::is_exempt_address;
use crate::visits::networks::resolve_network;
use crate::visits::outage::{is_breaker_open_anywhere, open_breaker_for_shortage};

/// The duration of a lease: longer than eight checks of ten seconds.
const LEASE_DURATION: i64 = 10 * MINUTE;
/// The interval between two checks of an address.
const CHECK_INTERVAL: i64 = DAY;
/// The pause after a failed look-up of the opt-out record, and after a failure of this process.
const RETRY_PAUSE: i64 = 5 * MINUTE;
/// Agents of one address that are read at a time.
const AGENT_PAGE: u64 = 100;

/// Leases a host with due checks; `None` if there is none, or while many fetches fail because of our own network.
pub async fn lease_due_endpoint_host(context: &AppContext) -> Result<Option<LeasedEndpointHost>> {
    let now = context.now();
    let request = EndpointLeaseRequest {
        now: now.0,
        leased_until: now.plus_micros(LEASE_DURATION).0,
        lease: random_u64(context.entropy.as_ref()).cast_signed(),
    };
    if is_breaker_open_anywhere(context).await? {
        return Ok(None);
    }
    Ok(context.store.lease_endpoint_host(&request).await?)
}

/// What the checks under one lease showed about the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostCheckProgress {
    /// Whether a request was sent.
    was_asked: bool,
    /// Whether its name leads to an address outside `allow_networks`.
    is_limited: bool,
    address: Option<IpAddr>,
    /// Seconds for which the host wants no further request.
    retry_after: u32,
    /// Microseconds for which this process makes no further one.
    pause: i64,
}

impl HostCheckProgress {
    /// Delays the next check of the host, after a failure that says nothing about it.
    pub const fn delay_retry(&mut self) {
        self.pause = RETRY_PAUSE;
    }
}

/// Makes the due checks of a leased host, one after another, unless its address block is busy. `progress` is kept
/// outside, so that a cancelled run still spaces the requests.
pub async fn check_leased_host(
    context: &AppContext,
    leased: &LeasedEndpointHost,
    progress: &mut HostCheckProgress,
) -> Result<()> {
    let Some(first) = leased.checks.first() else {
        return Ok(());
    };
    let url = stored_address(first)?.url;
    // A host can have moved since it was leased, and one that was never asked has no block yet.
    let network = resolve_network(context, &url).await;
    progress.is_limited = network.is_some();
    if let Some(network) = network
        && leased.host.network.as_ref() != Some(&network)
    {
        let (store, now) = (&context.store, context.now().0);
        if !store
            .claim_endpoint_network(&leased.host, &network, now)
            .await?
        {
            return Ok(());
        }
    }
    let opt_out = match url.host() {
        Some(Host::Domain(name)) => {
            look_up_host_opt_out(context, name, leased.host.created_at).await
        }
        _ => OptOutLookupResult::MayVisit,
    };
    let fetcher = context.network.fetcher.for_visit(&url);
    for check in &leased.checks {
        if !is_still_permitted(context, check).await? {
            continue;
        }
        let result = match opt_out {
            OptOutLookupResult::MayVisit => {
                check_address(context, &fetcher, check, progress).await?
            }
            OptOutLookupResult::OptedOut => Some(EndpointCheck::not_sent(
                context.clock.now(),
                "The host has opted out by its TXT record.",
            )),
            OptOutLookupResult::Unknown => {
                progress.delay_retry();
                return Ok(());
            }
        };
        let Some(result) = result else {
            progress.delay_retry();
            return Ok(());
        };
        record_check_result(context, check.id, result).await?;
    }
    Ok(())
}

/// Ends the lease of a host.
pub async fn end_host_lease(
    context: &AppContext,
    host: &endpoint_host::Model,
    progress: HostCheckProgress,
) -> Result<()> {
    let now = context.now();
    let is_exempt = match progress.address {
        Some(address) => is_exempt_address(context, address),
        // If some networks are exempt, a host whose name does not resolve counts as exempt too.
        None => !progress.is_limited && !context.config().crawler.allow_networks.is_empty(),
    };
    let spacing = match progress.was_asked && !is_exempt {
        true => VISIT_SPACING,
        false => 0,
    };
    let pause = spacing
        .max(i64::from(progress.retry_after) * SECOND)
        .max(progress.pause);
    let end = EndpointLeaseEnd {
        not_before: now.plus_micros(pause).0,
        asked_at: (progress.was_asked && !is_exempt).then_some(now.0),
        network: progress
            .address
            .filter(|_| !is_exempt)
            .map(|address| enclosing_address_block(address).to_string()),
    };
    let write = context.store.begin_write().await?;
    write.end_endpoint_lease(host, end).await?;
    write.commit().await?;
    Ok(())
}

/// The state of an agent after a check.
const fn endpoint_state(verdict: EndpointVerdict) -> EndpointState {
    match verdict {
        EndpointVerdict::Answers => EndpointState::Answers,
        EndpointVerdict::NeedsCredentials => EndpointState::NeedsCredentials,
        EndpointVerdict::NotA2a => EndpointState::NotA2a,
        EndpointVerdict::Unclear => EndpointState::Unclear,
        EndpointVerdict::DoesNotAnswer => EndpointState::DoesNotAnswer,
        EndpointVerdict::NotChecked => EndpointState::NotChecked,
    }
}

/// Makes one check. `None` if its result says nothing about the agent: many fetches are failing, or this process has
/// no file descriptors left.
async fn check_address(
    context: &AppContext,
    fetcher: &Fetcher,
    check: &endpoint_check::Model,
    progress: &mut HostCheckProgress,
) -> Result<Option<EndpointCheck>> {
    let address = stored_address(check)?;
    progress.was_asked = true;
    let result = fetcher.check_endpoint(&address).await;
    progress.address = result.address.or(progress.address);
    progress.retry_after = progress.retry_after.max(result.retry_after.unwrap_or(0));
    if result.is_local_failure {
        open_breaker_for_shortage(context);
        return Ok(None);
    }
    if is_breaker_open_anywhere(context).await? {
        return Ok(None);
    }
    Ok(Some(result))
}

/// Whether an agent with this address may still be checked. Agents that may not are assigned anew, which deletes an
/// address that no agent has any more.
async fn is_still_permitted(context: &AppContext, check: &endpoint_check::Model) -> Result<bool> {
    loop {
        let store = &context.store;
        let rows = agents_by_endpoint_check(store, check.id, None, AGENT_PAGE).await?;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        if ids.is_empty() {
            // Otherwise it would stay due for ever.
            let write = store.begin_write().await?;
            write.delete_unused_endpoint_checks(&[check.id]).await?;
            write.commit().await?;
            return Ok(false);
        }
        let selected = select_endpoints(context, store, rows).await?;
        if selected
            .values()
            .any(|address| endpoint_key(address) == check.key)
        {
            return Ok(true);
        }
        assign_endpoints_again(context, &ids).await?;
    }
}

/// Stores the result of a check, and copies it to all agents with the address.
async fn record_check_result(
    context: &AppContext,
    check: i64,
    result: EndpointCheck,
) -> Result<()> {
    let write = context.store.begin_write().await?;
    let mut agents: Vec<agent::Model> = Vec::new();
    loop {
        let last = agents.last().map(|row| row.id);
        let page = agents_by_endpoint_check(&write, check, last, AGENT_PAGE).await?;
        let is_last = (page.len() as u64) < AGENT_PAGE;
        agents.extend(page);
        if is_last {
            break;
        }
    }
    let Some(mut row) = endpoint_checks_by_ids(&write, &[check]).await?.pop() else {
        return Ok(());
    };
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let now = change_set.now();
    row.due_at = now.plus_micros(CHECK_INTERVAL).0;
    let state = endpoint_state(result.verdict);
    row.state = state.into();
    row.reason = Some(result.reason);
    row.auth_scheme = result.auth_scheme;
    row.status = result.status.map(i32::from);
    row.elapsed_ms = Some(i32::try_from(result.elapsed.as_millis()).unwrap_or(i32::MAX));
    if state != EndpointState::NotChecked {
        row.checked_at = Some(now.0);
    }
    if state == EndpointState::Answers {
        row.answered_at = Some(now.0);
    }
    write
        .record_endpoint_check(&row, now.days_since_epoch())
        .await?;
    let policies = context.policy_sets.newest_set();
    let mut changed_rows = Vec::new();
    for mut agent in agents {
        if copy_check_to_agent(&mut change_set, &policies, &mut agent, Some(&row)) {
            changed_rows.push(agent);
        }
    }
    write.upsert_agents(changed_rows).await?;
    commit_changes(context, write, change_set).await
}
