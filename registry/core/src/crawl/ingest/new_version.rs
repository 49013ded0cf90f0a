//! A new version of a card: its row, events and decision.

use std::borrow::Cow;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::entity::{agent, card_body, version, version_source};
use a2a_registry_store::versions::VersionSummary;
use a2a_registry_store::{StoredEnum, WriteTransaction};
use serde_json::json;
use uuid::Uuid;

use crate::admission::change_class::{classify_change, load_card_bytes};
use crate::admission::decision::AdmissionInput;
use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::CRAWLER_ACTOR;
use crate::context::AppContext;
use crate::crawl::derivation::{DerivationContext, derive_card};
use crate::crawl::ingest::batch::IngestBatch;
use crate::crawl::ingest::ingested_card::IngestedCard;
use crate::crawl::ingest::version_admission::{
    admission_input, decide_ingested_version, registration_approver,
};
use crate::error::AppError;

/// Adds a version with content that is new to its agent, and applies the rules.
pub async fn add_version(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    card: &IngestedCard<'_>,
) -> Result<(), AppError> {
    let now = change_set.now();
    change_set.bodies.push(card_body::Model {
        digest: card.content.digest.clone(),
        bytes: card.fetched.bytes.clone(),
    });
    let previous = load_previous_card_body(write, change_set, card).await?;
    let domain = batch.domains.get(&state.agent.domain_id);
    let bytes = previous.as_ref().map(|body| body.bytes.as_slice());
    let derivation_context = DerivationContext::for_agent(&state.agent, domain, bytes);
    let mut row = new_version_row(
        change_set.new_id(),
        state.agent.id,
        card,
        &derivation_context,
        now.0,
    );
    let key = to_version_summary(&row);
    let compared = card_bodies_to_compare(batch, change_set, state, &key, previous);
    let change_class =
        classify_version_change(context, write, batch, state, card, &key, &compared).await?;
    row.change_class = change_class.map(StoredEnum::from);
    let has_error = row.has_error;
    record_external_key_sets(change_set, state, card);
    change_set.versions.push(row);
    batch.versions.insert(key.id, key.clone());
    state.agent.newest_version = Some(key.id);
    state.agent.last_changed_at = Some(now.0);
    if let Some(newest) = &card.newest {
        count_card_change(&mut state.agent, now.0);
        let data =
            json!({"digest": key.digest, "previous": newest.digest, "change_class": change_class});
        change_set.add_agent_event(EventKind::AgentChanged, state.agent.id, CRAWLER_ACTOR, data);
        schedule_version_trim(batch, state, key.id);
    }
    change_set.mark_agent_changed(state);
    // An approval with the registration does not apply to an agent that had a card before.
    let preapproved_by = card.preapproved_by.filter(|_| card.newest.is_none());
    let input = AdmissionInput {
        change: change_class,
        has_error,
        registration_approval: preapproved_by
            .and_then(|account| registration_approver(batch, account)),
        ..admission_input(batch, &state.agent, &key)
    };
    decide_ingested_version(context, write, change_set, state, input).await?;
    record_version_source(batch, change_set, key.id, card);
    Ok(())
}

async fn load_previous_card_body(
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    card: &IngestedCard<'_>,
) -> Result<Option<card_body::Model>, AppError> {
    let Some(newest) = &card.newest else {
        return Ok(None);
    };
    let bytes = load_card_bytes(write, &newest.digest, &change_set.bodies).await?;
    let digest = newest.digest.clone();
    Ok(bytes.map(|bytes| card_body::Model { digest, bytes }))
}

/// The bodies needed to compare a new version: its own and the served version's, if that is `previous`, which is
/// usual; else all bodies that are about to be inserted.
fn card_bodies_to_compare<'a>(
    batch: &IngestBatch,
    ledger: &'a ChangeSet<'_>,
    state: &AgentChangeState,
    key: &VersionSummary,
    previous: Option<card_body::Model>,
) -> Cow<'a, [card_body::Model]> {
    let served = state.agent.approved_version;
    let served = served.and_then(|id| batch.versions.get(&id));
    let is_served = |body: &card_body::Model| served.is_some_and(|key| key.digest == body.digest);
    let Some(previous) = previous.filter(is_served) else {
        return Cow::Borrowed(&ledger.bodies);
    };
    let mut bodies = ledger.bodies.iter();
    let own = bodies.find(|body| body.digest == key.digest);
    Cow::Owned(own.cloned().into_iter().chain([previous]).collect())
}

/// The class of a version's change against the served one; `None` if none is served.
async fn classify_version_change(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &IngestBatch,
    state: &AgentChangeState,
    card: &IngestedCard<'_>,
    key: &VersionSummary,
    loaded_bodies: &[card_body::Model],
) -> Result<Option<ChangeClass>, AppError> {
    let approved = state.agent.approved_version;
    let Some(approved) = approved.and_then(|id| batch.versions.get(&id)) else {
        return Ok(None);
    };
    if card.keys_rotated {
        return Ok(Some(ChangeClass::Critical));
    }
    let binding = batch.key_binding(card.source);
    let agent = &state.agent;
    let class = classify_change(
        context,
        write,
        agent,
        approved,
        key,
        &binding,
        loaded_bodies,
    )
    .await?;
    Ok(Some(class))
}

/// Appends an event for key set URLs of a card that are outside its own domain.
fn record_external_key_sets(
    change_set: &mut ChangeSet<'_>,
    state: &AgentChangeState,
    card: &IngestedCard<'_>,
) {
    let foreign = card.content.signatures.external_key_set_urls();
    if !foreign.is_empty() {
        let data = json!({"digest": card.content.digest, "key_sets": foreign});
        change_set.add_agent_event(
            EventKind::AgentForeignKeys,
            state.agent.id,
            CRAWLER_ACTOR,
            data,
        );
    }
}

/// Schedules the agent's oldest versions for deletion after this write, except the served one and those in review.
fn schedule_version_trim(batch: &mut IngestBatch, state: &AgentChangeState, version: Uuid) {
    let open = state.open_review.iter().chain(&state.secondary_reviews);
    let asked = open.flat_map(|question| [Some(question.version_id), question.previous_version]);
    let keep = [Some(version), state.agent.approved_version];
    let keep = keep.into_iter().chain(asked).flatten().collect();
    batch.changed_agents.push((state.agent.id, keep));
}

pub fn record_version_source(
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    version: Uuid,
    card: &IngestedCard<'_>,
) {
    let (source, answered_by) = (card.source, &card.answered_by);
    let previous_origin = batch
        .version_sources
        .insert((version, source), answered_by.clone());
    if previous_origin.as_ref() != Some(answered_by) {
        change_set.version_sources.push(version_source::Model {
            version_id: version,
            source_id: source,
            answered_by: answered_by.clone(),
        });
    }
}

/// Counts new versions per day, to detect a flapping card.
fn count_card_change(agent: &mut agent::Model, now: i64) {
    if now - agent.changes_since >= DAY {
        agent.changes_since = now;
        agent.changes = 0;
    }
    agent.changes = agent.changes.saturating_add(1);
}

fn to_version_summary(row: &version::Model) -> VersionSummary {
    VersionSummary {
        id: row.id,
        agent_id: row.agent_id,
        digest: row.digest.clone(),
        content_digest: row.content_digest.clone(),
        signing: row.signing.clone(),
        signature: row.signature.clone(),
        thumbprints: row.thumbprints.clone(),
        state: row.state.clone(),
        observed_at: row.observed_at,
        standing: row.standing.clone(),
    }
}

/// The row of a new version, without any decision yet.
fn new_version_row(
    id: Uuid,
    agent_id: Uuid,
    card: &IngestedCard<'_>,
    derivation_context: &DerivationContext,
    now: i64,
) -> version::Model {
    let (fetched, content) = (card.fetched, &card.content);
    let derived = derive_card(
        &fetched.parsed,
        &fetched.bytes,
        &content.signatures,
        derivation_context,
    );
    version::Model {
        id,
        agent_id,
        digest: content.digest.clone(),
        content_digest: content.content_digest.clone(),
        signing: content.signing.clone(),
        signature: content.signatures.state().into(),
        key_sets: content.signatures.key_sets_json(),
        thumbprints: content.signatures.thumbprints(),
        verdicts: content.signatures.results_json(),
        wire_family: fetched.parsed.family.as_str().into(),
        model: derived.model,
        findings: derived.findings,
        has_error: derived.has_error,
        derivation: derived.derivation,
        observed_at: now,
        change_class: None,
        state: VersionState::Pending.into(),
        ever_approved: false,
        repeats: 0,
        standing: card.coverage_level.into(),
    }
}
