//! Ingest of outcomes: versions, decisions, lifecycle, attempts, next visits and events, for a whole batch of visits
//! in one transaction.
//!
//! A batch loads everything it needs in a handful of queries, processes it in memory, and writes it in a handful of
//! multi-row statements: one transaction per card would be fifteen times slower.

pub mod agent_matching;
pub mod attempts;
pub mod batch;
pub mod breaker_evidence;
pub mod card;
pub mod catalog;
pub mod domain_index;
pub mod ingested_card;
pub mod new_version;
pub mod nominations;
pub mod registries;
pub mod source_state;
pub mod source_updates;
pub mod version_admission;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use a2a_crawler::address_block::enclosing_address_block;
use a2a_crawler::{AttemptOutcome, SourceOutcome, SourceResult, VisitOutcome, schedule};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::random_fraction;
use a2a_registry_domain::lifecycle::{LivenessState, Visibility, is_listed};
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::{SECOND, Timestamp};
use a2a_registry_policy::{AgentAge, PolicySet};
use a2a_registry_store::{WriteTransaction, registrants, versions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage::url_origin;
use crate::admission::coverage_updates::update_domain_coverage;
use crate::admission::policy_subject::crosses_age_threshold;
use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::{CRAWLER_ACTOR, SYSTEM_ACTOR};
use crate::commit::publish::commit_and_publish;
use crate::context::AppContext;
use crate::crawl::ingest::batch::{HostCrawlLimits, IngestBatch};
use crate::crawl::ingest::breaker_evidence::feed_circuit_breaker;
use crate::crawl::ingest::card::ingest_card;
use crate::crawl::ingest::catalog::{end_unlisted_entries, ingest_catalog};
use crate::crawl::ingest::registries::ingest_registries;
use crate::crawl::ingest::source_state::{ContentChange, JitterPicker};
use crate::error::AppError;
use crate::process_state::last_crawl::{STORE_INTERVAL, store_last_crawl};
use crate::visits::VISIT_SPACING;
use crate::visits::leases::is_exempt_address;
use crate::visits::outage::{cache_outage, store_outage};

/// The error for a card whose bytes do not match the digest in the catalog.
const DIGEST_MISMATCH: &str = "the catalog states a different digest for this card, so the card is not accepted; it \
    is compared again when the catalog is fetched";

/// The error for a catalog at the URL of an agent's card.
const CARD_BECAME_CATALOG: &str = "this URL returned the card of an agent before, which is kept; to fetch the \
    entries of this catalog, withdraw the URL and register it again";

/// Ingests a batch of outcomes in one transaction. An outcome whose lease has expired is dropped: another process has
/// made that visit.
pub async fn ingest_outcomes(
    context: &AppContext,
    outcomes: &[VisitOutcome],
) -> Result<(), AppError> {
    let now = context.now();
    let write = context.store.begin_write().await?;
    lock_responding_domains(&write, outcomes).await?;
    let mut batch = IngestBatch::load(&write, outcomes, context.now()).await?;
    batch.breaker_open = feed_circuit_breaker(context, &batch, outcomes, now);
    let outage = store_outage(context, &write).await?;
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    change_set.first_registrants = batch.first_registrants();
    for outcome in outcomes {
        if batch.has_lease(outcome) {
            ingest_visit(context, &write, &mut batch, &mut change_set, outcome).await?;
        }
    }
    batch.write_crawl_results(&write, now).await?;
    let crawl_time_stored = store_crawl_time(context, &write, &batch, now).await?;
    let trimmed = std::mem::take(&mut batch.changed_agents);
    let committed = change_set.write(&write).await?;
    trim_versions(&write, &trimmed).await?;
    let coverage_changes = update_changed_coverage(context, &write, &batch, now).await?;
    commit_and_publish(context, write, [&committed, &coverage_changes]).await?;
    cache_outage(context, outage);
    if crawl_time_stored {
        context
            .crawl_state
            .crawl_stored_at
            .store(now.0, Ordering::Relaxed);
    }
    if batch.needs_reverification {
        context.signals.rederive.notify_one();
    }
    Ok(())
}

/// Deletes the oldest versions of these agents beyond the limit, but none of those given with an agent.
async fn trim_versions(
    write: &WriteTransaction,
    changed_agents: &[(Uuid, Vec<Uuid>)],
) -> Result<(), AppError> {
    let agents: Vec<Uuid> = changed_agents.iter().map(|(agent, _)| *agent).collect();
    let many = versions::agents_over_version_limit(write, &agents).await?;
    for (agent, keep) in changed_agents
        .iter()
        .filter(|(agent, _)| many.contains(agent))
    {
        write.trim_versions(*agent, keep).await?;
    }
    Ok(())
}

/// Stores the time of this batch if it has fetched the card of a publicly visible agent, at most once a minute.
async fn store_crawl_time(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &IngestBatch,
    now: Timestamp,
) -> Result<bool, AppError> {
    let last_stored = context.crawl_state.crawl_stored_at.load(Ordering::Relaxed);
    let is_listed_and_public = |state: &AgentChangeState| {
        let agent = &state.agent;
        agent.last_seen_at == Some(now.0)
            && agent.visibility.known_value() == Some(Visibility::Public)
            && agent
                .lifecycle
                .known_value()
                .is_some_and(|lifecycle| is_listed(lifecycle, &state.holds))
    };
    if now.0.saturating_sub(last_stored) < STORE_INTERVAL
        || !batch.agents.values().any(is_listed_and_public)
    {
        return Ok(false);
    }
    store_last_crawl(write, now).await?;
    Ok(true)
}

/// Updates the agents of domains whose coverage this batch may have changed. The batch is written before.
async fn update_changed_coverage(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &IngestBatch,
    now: Timestamp,
) -> Result<CommittedChanges, AppError> {
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    for domain in &batch.coverage_changed {
        if let Some(row) = batch.domains.get(domain) {
            update_domain_coverage(context, write, &mut change_set, row).await?;
        }
    }
    change_set.write(write).await
}

async fn ingest_visit(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    outcome: &VisitOutcome,
) -> Result<(), AppError> {
    let now = change_set.now();
    let mut affected_agents = BTreeSet::new();
    let mut jitter = JitterPicker::new(
        &context.crawl_state,
        random_fraction(context.entropy.as_ref()),
    );
    for result in &outcome.sources {
        if batch.sources.contains_key(&result.source_key) {
            affected_agents.extend(batch.agent_of_source(result.source_key));
            ingest_source(context, write, batch, change_set, result, &mut jitter).await?;
            affected_agents.extend(batch.agent_of_source(result.source_key));
        }
    }
    let domain = outcome.domain_key;
    affected_agents.extend(batch.agents_without_source(domain));
    // This comes after all sources: a failed source does not matter while another one responds.
    let policies = context.policy_sets.newest_set();
    for agent in affected_agents {
        update_liveness(batch, change_set, &policies, agent, now);
    }
    let manners = host_crawl_limits(context, batch, outcome);
    let mut planned = context.crawl_state.lock_visit_calendar();
    batch.finish_domain_visit(outcome.domain_key, now, &manners, &mut planned);
    Ok(())
}

async fn ingest_source(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    result: &SourceOutcome,
    jitter: &mut JitterPicker<'_>,
) -> Result<(), AppError> {
    let now = change_set.now();
    batch.record_attempts(result, now);
    let source = result.source_key;
    match &result.result {
        SourceResult::Fetched(fetched)
            if batch.differs_from_entry_digest(source, &fetched.bytes) =>
        {
            batch.append_attempt_detail(source, DIGEST_MISMATCH);
            batch.schedule_domain_catalog_fetches(source);
            batch.record_failure(source, AttemptOutcome::NotACard, None, now, jitter);
        }
        SourceResult::Fetched(fetched) => {
            let changed = ingest_card(context, write, batch, change_set, source, fetched).await?;
            let success = ContentChange::from_full_fetch(changed);
            batch.record_success(source, &fetched.freshness, success, now, jitter);
        }
        SourceResult::Catalog(_) if batch.agent_of_source(source).is_some() => {
            batch.append_attempt_detail(source, CARD_BECAME_CATALOG);
            batch.record_failure(source, AttemptOutcome::NotACard, None, now, jitter);
        }
        SourceResult::Catalog(fetched) => {
            let mut changed =
                ingest_catalog(context, write, batch, change_set, source, fetched).await?;
            changed |= ingest_registries(write, batch, source, fetched).await?;
            let success = ContentChange::from_full_fetch(changed);
            batch.record_success(source, &fetched.freshness, success, now, jitter);
        }
        SourceResult::NotModified(freshness) => {
            end_unlisted_entries(write, batch, change_set, source).await?;
            let success = ContentChange::NotModified;
            batch.record_success(source, freshness, success, now, jitter);
        }
        SourceResult::Failed {
            outcome,
            retry_after,
        } if batch.is_catalog_source(source) => {
            batch.record_catalog_failure(source, *outcome, *retry_after, now, jitter);
        }
        SourceResult::Failed {
            outcome,
            retry_after,
        } => {
            batch.record_failure(source, *outcome, *retry_after, now, jitter);
            if *outcome == AttemptOutcome::TlsInvalid {
                drop_tls_trust(batch, source);
            }
        }
    }
    Ok(())
}

/// Updates an agent's liveness from its sources, appends an event if it changed, and retires an agent that was gone
/// for too long.
fn update_liveness(
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    policies: &PolicySet,
    agent: Uuid,
    now: Timestamp,
) {
    let Some(combined) = batch.agent_liveness(agent) else {
        return;
    };
    let breaker_open = batch.breaker_open;
    let Some(state) = batch.agents.get_mut(&agent) else {
        return;
    };
    let row = &mut state.agent;
    let previous = (row.liveness.clone(), row.liveness_reason.clone());
    let seen_before = row.last_seen_at;
    row.last_seen_at = row.last_seen_at.max(combined.last_seen_at);
    row.liveness = combined.state.into();
    row.liveness_reason.clone_from(&combined.reason);
    row.gone_since = match combined.state {
        LivenessState::Gone => row.gone_since.or(Some(now.0)),
        LivenessState::Fresh | LivenessState::Stale => None,
    };
    change_set.put_agent(row);
    if previous != (row.liveness.clone(), row.liveness_reason.clone()) {
        let data = json!({"state": row.liveness, "reason": row.liveness_reason});
        change_set.add_agent_event(EventKind::AgentLiveness, agent, CRAWLER_ACTOR, data);
    } else if crosses_age_threshold(
        policies,
        AgentAge::Fetched,
        (seen_before, row.last_seen_at),
        now,
    ) {
        let data = json!({"age": AgentAge::Fetched.as_str()});
        change_set.add_agent_event(EventKind::AgentUpdated, agent, CRAWLER_ACTOR, data);
    }
    let retires = |since| source_state::is_retirement_due(since, now);
    if !breaker_open && row.gone_since.is_some_and(retires) {
        change_set.retire_agent(
            state,
            SYSTEM_ACTOR,
            "the card could not be reached for 30 days",
        );
    }
}

/// The crawl limits of a visit's host from now on.
fn host_crawl_limits(
    context: &AppContext,
    batch: &IngestBatch,
    outcome: &VisitOutcome,
) -> HostCrawlLimits {
    let retry_after = outcome
        .sources
        .iter()
        .filter_map(SourceOutcome::retry_after);
    let retry_after = retry_after
        .max()
        .map_or(0, |seconds| i64::from(seconds) * SECOND);
    if is_visit_spacing_exempt(context, batch, outcome) {
        return HostCrawlLimits {
            spacing: retry_after,
            network: Some(None),
        };
    }
    let attempts = outcome.sources.iter().flat_map(|result| &result.attempts);
    let last_address = attempts.filter_map(|attempt| attempt.address).next_back();
    let spacing = if batch.has_begun_timing_out(outcome) {
        schedule::TIMEOUT_RETRY.whole_seconds() * SECOND
    } else {
        VISIT_SPACING
    };
    HostCrawlLimits {
        spacing: retry_after.max(spacing),
        network: last_address.map(|address| Some(enclosing_address_block(address).to_string())),
    }
}

fn is_visit_spacing_exempt(
    context: &AppContext,
    batch: &IngestBatch,
    outcome: &VisitOutcome,
) -> bool {
    let addresses = outcome
        .sources
        .iter()
        .flat_map(|result| &result.attempts)
        .filter_map(|attempt| attempt.address);
    let literal = batch.domain_ip_literal(outcome.domain_key);
    addresses
        .chain(literal)
        .any(|address| is_exempt_address(context, address))
}

/// Locks the domains of a batch, and those that responded for them by a redirect, in one order: their owners determine
/// the coverage of the cards, and a change of owner locks them too.
async fn lock_responding_domains(
    write: &WriteTransaction,
    outcomes: &[VisitOutcome],
) -> Result<(), AppError> {
    let results = outcomes.iter().flat_map(|outcome| &outcome.sources);
    let origins: BTreeSet<String> = results.filter_map(redirected_origin).collect();
    if origins.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = origins
        .iter()
        .filter_map(|origin| Some(origin.split_once("://")?.1))
        .collect();
    let mut ids = registrants::domain_ids_by_name(write, &names).await?;
    ids.extend(outcomes.iter().map(|outcome| outcome.domain_key));
    registrants::lock_domains(write, &ids).await?;
    Ok(())
}

/// The origin that responded, if it is not the requested one.
fn redirected_origin(result: &SourceOutcome) -> Option<String> {
    let response_origin = match &result.result {
        SourceResult::Fetched(fetched) => url_origin(&fetched.url),
        SourceResult::Catalog(fetched) => url_origin(&fetched.url),
        SourceResult::NotModified(_) | SourceResult::Failed { .. } => return None,
    };
    let asked = &result.attempts.first()?.url;
    Some(response_origin).filter(|answered| *answered != url_origin(asked))
}

/// Removes the trust level for valid TLS from an agent whose card can no longer be fetched over it, unless another of
/// its sources still gives it.
fn drop_tls_trust(batch: &mut IngestBatch, source: i64) {
    let Some(agent) = batch.agent_of_source(source) else {
        return;
    };
    let has_fresh_source = batch
        .sources
        .values()
        .filter(|row| row.agent_id == Some(agent) && row.ended_at.is_none())
        .any(|row| row.liveness == SourceState::Fresh);
    if let Some(state) = batch.agents.get_mut(&agent)
        && !has_fresh_source
    {
        state.agent.tls = false;
    }
}
