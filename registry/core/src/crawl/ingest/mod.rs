//! Ingest of outcomes: versions, decisions, lifecycle, attempts, next visits and events, for a whole group of visits in
//! one transaction.
//!
//! Everything a group needs is loaded in a handful of queries, processed in memory, and written in a
//! handful of multi-row statements: one transaction a card would be fifteen times slower.

pub mod arrival;
pub mod attempts;
pub mod by_domain;
pub mod card;
pub mod catalog;
pub mod evidence;
pub mod group;
pub mod nominations;
pub mod registries;
pub mod relisting;
pub mod ruling;
pub mod slot;
pub mod source;
pub mod version;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use a2a_crawler::network::block_of;
use a2a_crawler::{AttemptOutcome, SourceOutcome, SourceVerdict, VisitOutcome, schedule};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::unit_random;
use a2a_registry_domain::lifecycle::{LivenessState, Visibility, listed};
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::{SECOND, Timestamp};
use a2a_registry_store::{Write, coverage, versions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage::origin_of;
use crate::admission::covering::follow_coverage;
use crate::commit::approver::{CRAWLER, SYSTEM};
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_written;
use crate::commit::state::AgentState;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::crawl::ingest::card::ingest_card;
use crate::crawl::ingest::catalog::{catalog_is_the_same, ingest_catalog};
use crate::crawl::ingest::evidence::note_fetches;
use crate::crawl::ingest::group::{Group, HostLimits};
use crate::crawl::ingest::registries::ingest_registries;
use crate::crawl::ingest::source::{FetchedContent, JitterPlacement};
use crate::error::AppError;
use crate::memory::last_crawl::{NOTED, store_last_crawl};
use crate::visits::SPACING;
use crate::visits::leasing::is_exempt;
use crate::visits::outage::{remember_outage, store_outage};

/// What is wrong with a card whose bytes are not those that the catalog promises.
const OTHER_DIGEST: &str = "the catalog states another digest for this card, so it is not taken; \
     it is compared again when the catalog is fetched";

/// What is wrong with a catalog at the URL of an agent's card.
const NO_CARD_ANY_MORE: &str = "this URL has brought the card of an agent, which is kept; withdraw \
     and register it again for what this catalog lists";

/// Ingests a group of outcomes in one transaction. An outcome whose lease has ended is dropped: another process has
/// made that visit.
pub async fn ingest(context: &Context, group: &[VisitOutcome]) -> Result<(), AppError> {
    let now = context.now();
    let write = context.store.write().await?;
    hold_answering(&write, group).await?;
    let mut state = Group::load(&write, group, context.now()).await?;
    state.breaker_open = note_fetches(context, &state, group, now);
    let noted = store_outage(context, &write).await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    ledger.first_registrants = state.first_registrants();
    for outcome in group {
        if state.holds_lease(outcome) {
            ingest_visit(context, &write, &mut state, &mut ledger, outcome).await?;
        }
    }
    state.write_crawl(&write, now).await?;
    let crawl_noted = note_crawl(context, &write, &state, now).await?;
    let trimmed = std::mem::take(&mut state.changed);
    let touched = ledger.write(&write).await?;
    trim_versions(&write, &trimmed).await?;
    let regarded = regard_anew(context, &write, &state, now).await?;
    commit_written(context, write, [&touched, &regarded]).await?;
    remember_outage(context, noted);
    if crawl_noted {
        context.stream.crawl_noted.store(now.0, Ordering::Relaxed);
    }
    if state.marked {
        context.wake.derive.notify_one();
    }
    Ok(())
}

/// Deletes the oldest versions of these agents beyond those that are stored, but none of those named with an agent.
async fn trim_versions(write: &Write, changed: &[(Uuid, Vec<Uuid>)]) -> Result<(), AppError> {
    let agents: Vec<Uuid> = changed.iter().map(|(agent, _)| *agent).collect();
    let many = versions::agents_with_many_versions(write, &agents).await?;
    for (agent, keep) in changed.iter().filter(|(agent, _)| many.contains(agent)) {
        write.versions_trim(*agent, keep).await?;
    }
    Ok(())
}

/// Stores the time of this group where it has fetched the card of an agent that everybody finds, at most once a minute.
async fn note_crawl(
    context: &Context,
    write: &Write,
    group: &Group,
    now: Timestamp,
) -> Result<bool, AppError> {
    let noted = context.stream.crawl_noted.load(Ordering::Relaxed);
    let is_shown = |state: &AgentState| {
        let agent = &state.agent;
        agent.last_seen_at == Some(now.0)
            && agent.visibility.known() == Some(Visibility::Public)
            && agent
                .lifecycle
                .known()
                .is_some_and(|lifecycle| listed(lifecycle, &state.holds))
    };
    if now.0.saturating_sub(noted) < NOTED || !group.agents.values().any(is_shown) {
        return Ok(false);
    }
    store_last_crawl(write, now).await?;
    Ok(true)
}

/// Updates the agents of domains whose coverage this group may have changed. The group is written before that.
async fn regard_anew(
    context: &Context,
    write: &Write,
    group: &Group,
    now: Timestamp,
) -> Result<Touched, AppError> {
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    for domain in &group.coverage_changed {
        if let Some(row) = group.domains.get(domain) {
            follow_coverage(context, write, &mut ledger, row).await?;
        }
    }
    ledger.write(write).await
}

async fn ingest_visit(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    outcome: &VisitOutcome,
) -> Result<(), AppError> {
    let now = ledger.now();
    let mut fed = BTreeSet::new();
    let mut placement =
        JitterPlacement::new(&context.stream, unit_random(context.entropy.as_ref()));
    for result in &outcome.sources {
        if group.sources.contains_key(&result.source_key) {
            fed.extend(group.agent_of_source(result.source_key));
            ingest_source(context, write, group, ledger, result, &mut placement).await?;
            fed.extend(group.agent_of_source(result.source_key));
        }
    }
    let domain = outcome.domain_key;
    fed.extend(group.unfed_of(domain));
    // After all sources: one that fails does not matter while another one answers.
    for agent in fed {
        follow_liveness(group, ledger, agent, now);
    }
    let manners = manners(context, group, outcome);
    let mut planned = context.stream.planned();
    group.finish_visit(outcome.domain_key, now, &manners, &mut planned);
    Ok(())
}

async fn ingest_source(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    result: &SourceOutcome,
    placement: &mut JitterPlacement<'_>,
) -> Result<(), AppError> {
    let now = ledger.now();
    group.record_attempts(result, now);
    let source = result.source_key;
    match &result.verdict {
        SourceVerdict::Fetched(fetched) if group.has_other_digest(source, &fetched.bytes) => {
            group.explain(source, OTHER_DIGEST);
            group.want_catalogs_of(source);
            group.failed(source, AttemptOutcome::NotACard, None, now, placement);
        }
        SourceVerdict::Fetched(fetched) => {
            let changed = ingest_card(context, write, group, ledger, source, fetched).await?;
            let success = FetchedContent::of_whole(changed);
            group.succeeded(source, &fetched.freshness, success, now, placement);
        }
        SourceVerdict::Catalog(_) if group.agent_of_source(source).is_some() => {
            group.explain(source, NO_CARD_ANY_MORE);
            group.failed(source, AttemptOutcome::NotACard, None, now, placement);
        }
        SourceVerdict::Catalog(fetched) => {
            let mut changed =
                ingest_catalog(context, write, group, ledger, source, fetched).await?;
            changed |= ingest_registries(write, group, source, fetched).await?;
            let success = FetchedContent::of_whole(changed);
            group.succeeded(source, &fetched.freshness, success, now, placement);
        }
        SourceVerdict::NotModified(freshness) => {
            catalog_is_the_same(write, group, ledger, source).await?;
            let success = FetchedContent::NotModified;
            group.succeeded(source, freshness, success, now, placement);
        }
        SourceVerdict::Failed {
            outcome,
            retry_after,
        } if group.is_catalog(source) => {
            group.catalog_failed(source, *outcome, *retry_after, now, placement);
        }
        SourceVerdict::Failed {
            outcome,
            retry_after,
        } => {
            group.failed(source, *outcome, *retry_after, now, placement);
            if *outcome == AttemptOutcome::TlsInvalid {
                distrust(group, source);
            }
        }
    }
    Ok(())
}

/// Updates an agent's liveness from its sources, appends an event if it changed, and retires an agent that was gone for
/// too long.
fn follow_liveness(group: &mut Group, ledger: &mut Ledger<'_>, agent: Uuid, now: Timestamp) {
    let Some(seen) = group.liveness_of(agent) else {
        return;
    };
    let breaker_open = group.breaker_open;
    let Some(state) = group.agents.get_mut(&agent) else {
        return;
    };
    let row = &mut state.agent;
    let known = (row.liveness.clone(), row.liveness_reason.clone());
    row.last_seen_at = row.last_seen_at.max(seen.last_seen_at);
    row.liveness = seen.state.into();
    row.liveness_reason.clone_from(&seen.reason);
    row.gone_since = match seen.state {
        LivenessState::Gone => row.gone_since.or(Some(now.0)),
        LivenessState::Fresh | LivenessState::Stale => None,
    };
    ledger.put_agent(row);
    if known != (row.liveness.clone(), row.liveness_reason.clone()) {
        let data = json!({"state": row.liveness, "reason": row.liveness_reason});
        ledger.agent_event(EventKind::AgentLiveness, agent, CRAWLER, data);
    }
    let retires = |since| source::retires(since, now);
    if !breaker_open && row.gone_since.is_some_and(retires) {
        ledger.retire(state, SYSTEM, "the card could not be reached for 30 days");
    }
}

/// The limits of a visit's host from now on.
fn manners(context: &Context, group: &Group, outcome: &VisitOutcome) -> HostLimits {
    let asked_for = outcome
        .sources
        .iter()
        .filter_map(SourceOutcome::retry_after);
    let asked_for = asked_for
        .max()
        .map_or(0, |seconds| i64::from(seconds) * SECOND);
    if visit_is_exempt(context, group, outcome) {
        return HostLimits {
            spacing: asked_for,
            network: Some(None),
        };
    }
    let attempts = outcome.sources.iter().flat_map(|result| &result.attempts);
    let spoken_to = attempts.filter_map(|attempt| attempt.address).next_back();
    let spacing = if group.is_retried_soon(outcome) {
        schedule::TIMEOUT_RETRY.whole_seconds() * SECOND
    } else {
        SPACING
    };
    HostLimits {
        spacing: asked_for.max(spacing),
        network: spoken_to.map(|address| Some(block_of(address).to_string())),
    }
}

fn visit_is_exempt(context: &Context, group: &Group, outcome: &VisitOutcome) -> bool {
    let addressed = outcome
        .sources
        .iter()
        .flat_map(|result| &result.attempts)
        .filter_map(|attempt| attempt.address);
    let literal = group.domain_literal(outcome.domain_key);
    addressed
        .chain(literal)
        .any(|address| is_exempt(context, address))
}

/// Locks the domains of a group, and those that answered for them by a redirect, in one order: their owners decide the
/// coverage of the cards, and a change of owner locks them too.
async fn hold_answering(write: &Write, group: &[VisitOutcome]) -> Result<(), AppError> {
    let results = group.iter().flat_map(|outcome| &outcome.sources);
    let origins: BTreeSet<String> = results.filter_map(answered_elsewhere).collect();
    if origins.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = origins
        .iter()
        .filter_map(|origin| Some(origin.split_once("://")?.1))
        .collect();
    let mut ids = coverage::domains_named(write, &names).await?;
    ids.extend(group.iter().map(|outcome| outcome.domain_key));
    coverage::domains_locked(write, &ids).await?;
    Ok(())
}

/// The origin that answered, if it is not the requested one.
fn answered_elsewhere(result: &SourceOutcome) -> Option<String> {
    let answered = match &result.verdict {
        SourceVerdict::Fetched(fetched) => origin_of(&fetched.url),
        SourceVerdict::Catalog(fetched) => origin_of(&fetched.url),
        SourceVerdict::NotModified(_) | SourceVerdict::Failed { .. } => return None,
    };
    let asked = &result.attempts.first()?.url;
    Some(answered).filter(|answered| *answered != origin_of(asked))
}

/// Removes the trust level for valid TLS from an agent whose card cannot be fetched over it any more, unless another
/// of its sources still gives it.
fn distrust(group: &mut Group, source: i64) {
    let Some(agent) = group.agent_of_source(source) else {
        return;
    };
    let still_given = group
        .sources
        .values()
        .filter(|row| row.agent_id == Some(agent) && row.ended_at.is_none())
        .any(|row| row.liveness == SourceState::Fresh);
    if let Some(state) = group.agents.get_mut(&agent)
        && !still_given
    {
        state.agent.tls = false;
    }
}
