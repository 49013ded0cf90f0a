//! A new version of a card: its row, events and decision.

use std::borrow::Cow;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::entity::{agent, body, version, version_source};
use a2a_registry_store::versions::VersionKey;
use a2a_registry_store::{Kept, Write};
use serde_json::json;
use uuid::Uuid;

use crate::admission::change::{bytes_of, change_between};
use crate::admission::decision::DecisionInput;
use crate::commit::approver::CRAWLER;
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::crawl::derivation::{CardSurroundings, derive};
use crate::crawl::ingest::arrival::Arrival;
use crate::crawl::ingest::group::Group;
use crate::crawl::ingest::ruling::{decision_input, registration_approver, rule};
use crate::error::AppError;

/// Adds a version with content that is new to its agent, and applies the rules.
pub async fn add_version(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    card: &Arrival<'_>,
) -> Result<(), AppError> {
    let now = ledger.now();
    ledger.bodies.push(body::Model {
        digest: card.content.digest.clone(),
        bytes: card.fetched.bytes.clone(),
    });
    let previous = previous_body(write, ledger, card).await?;
    let domain = group.domains.get(&state.agent.domain_id);
    let bytes = previous.as_ref().map(|body| body.bytes.as_slice());
    let around = CardSurroundings::of(&state.agent, domain, bytes);
    let mut row = version_row(ledger.new_id(), state.agent.id, card, &around, now.0);
    let key = key_of(&row);
    let compared = compared_bodies(group, ledger, state, &key, previous);
    let class = class_of_change(context, write, group, state, card, &key, &compared).await?;
    row.change_class = class.map(Kept::from);
    let has_error = row.has_error;
    tell_foreign_keys(ledger, state, card);
    ledger.versions.push(row);
    group.versions.insert(key.id, key.clone());
    state.agent.newest_version = Some(key.id);
    state.agent.last_changed_at = Some(now.0);
    if let Some(newest) = &card.newest {
        count_change(&mut state.agent, now.0);
        let data = json!({"digest": key.digest, "previous": newest.digest, "change_class": class});
        ledger.agent_event(EventKind::AgentChanged, state.agent.id, CRAWLER, data);
        trim_but_shown(group, state, key.id);
    }
    ledger.touch(state);
    // An approval with the registration does not apply to an agent that had a card before.
    let word = card.word.filter(|_| card.newest.is_none());
    let input = DecisionInput {
        change: class,
        has_error,
        registration_approval: word.and_then(|account| registration_approver(group, account)),
        ..decision_input(group, &state.agent, &key)
    };
    rule(context, write, ledger, state, input).await?;
    note_giver(group, ledger, key.id, card);
    Ok(())
}

async fn previous_body(
    write: &Write,
    ledger: &Ledger<'_>,
    card: &Arrival<'_>,
) -> Result<Option<body::Model>, AppError> {
    let Some(newest) = &card.newest else {
        return Ok(None);
    };
    let bytes = bytes_of(write, &newest.digest, &ledger.bodies).await?;
    let digest = newest.digest.clone();
    Ok(bytes.map(|bytes| body::Model { digest, bytes }))
}

/// The bytes that a new version is compared by: its own and those of the served version, where that is the `previous` one, as
/// it mostly is; else all that are about to be inserted.
fn compared_bodies<'a>(
    group: &Group,
    ledger: &'a Ledger<'_>,
    state: &AgentState,
    key: &VersionKey,
    previous: Option<body::Model>,
) -> Cow<'a, [body::Model]> {
    let served = state.agent.approved_version;
    let served = served.and_then(|id| group.versions.get(&id));
    let is_served = |body: &body::Model| served.is_some_and(|key| key.digest == body.digest);
    let Some(previous) = previous.filter(is_served) else {
        return Cow::Borrowed(&ledger.bodies);
    };
    let mut bodies = ledger.bodies.iter();
    let own = bodies.find(|body| body.digest == key.digest);
    Cow::Owned(own.cloned().into_iter().chain([previous]).collect())
}

/// The class of a version's change against the served one; `None` if none is served.
async fn class_of_change(
    context: &Context,
    write: &Write,
    group: &Group,
    state: &AgentState,
    card: &Arrival<'_>,
    key: &VersionKey,
    known: &[body::Model],
) -> Result<Option<ChangeClass>, AppError> {
    let approved = state.agent.approved_version;
    let Some(approved) = approved.and_then(|id| group.versions.get(&id)) else {
        return Ok(None);
    };
    if card.rotated {
        return Ok(Some(ChangeClass::Critical));
    }
    let binding = group.key_binding(card.source);
    let agent = &state.agent;
    let class = change_between(context, write, agent, approved, key, &binding, known).await?;
    Ok(Some(class))
}

/// Appends an event for key set URLs of a card that are outside its own domain.
fn tell_foreign_keys(ledger: &mut Ledger<'_>, state: &AgentState, card: &Arrival<'_>) {
    let foreign = card.content.signatures.foreign();
    if !foreign.is_empty() {
        let data = json!({"digest": card.content.digest, "key_sets": foreign});
        ledger.agent_event(EventKind::AgentForeignKeys, state.agent.id, CRAWLER, data);
    }
}

/// Has the oldest versions of an agent trimmed after this write, except the served one and those in review.
fn trim_but_shown(group: &mut Group, state: &AgentState, version: Uuid) {
    let open = state.open_review.iter().chain(&state.further_reviews);
    let asked = open.flat_map(|question| [Some(question.version_id), question.previous_version]);
    let keep = [Some(version), state.agent.approved_version];
    let keep = keep.into_iter().chain(asked).flatten().collect();
    group.changed.push((state.agent.id, keep));
}

pub fn note_giver(group: &mut Group, ledger: &mut Ledger<'_>, version: Uuid, card: &Arrival<'_>) {
    let (source, answered_by) = (card.source, &card.answered_by);
    let known = group.gave.insert((version, source), answered_by.clone());
    if known.as_ref() != Some(answered_by) {
        ledger.gave.push(version_source::Model {
            version_id: version,
            source_id: source,
            answered_by: answered_by.clone(),
        });
    }
}

/// Counts new versions by the day, so that a card that flaps is noticed.
fn count_change(agent: &mut agent::Model, now: i64) {
    if now - agent.changes_since >= DAY {
        agent.changes_since = now;
        agent.changes = 0;
    }
    agent.changes = agent.changes.saturating_add(1);
}

fn key_of(row: &version::Model) -> VersionKey {
    VersionKey {
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

/// The row of a new version, before anything is decided on it.
fn version_row(
    id: Uuid,
    agent_id: Uuid,
    card: &Arrival<'_>,
    around: &CardSurroundings,
    now: i64,
) -> version::Model {
    let (fetched, content) = (card.fetched, &card.content);
    let derived = derive(&fetched.parsed, &fetched.bytes, &content.signatures, around);
    version::Model {
        id,
        agent_id,
        digest: content.digest.clone(),
        content_digest: content.content_digest.clone(),
        signing: content.signing.clone(),
        signature: content.signatures.state().into(),
        key_sets: content.signatures.kept(),
        thumbprints: content.signatures.thumbprints(),
        verdicts: content.signatures.verdicts(),
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
        standing: card.standing.into(),
    }
}
