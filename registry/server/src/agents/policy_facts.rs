//! Agents as policies see them: their facts, and the labels that they carry by the policies that match.

use std::collections::HashMap;

use a2a_card::{all_input_modes, all_output_modes, auth_labels, capability_labels, tags};
use a2a_registry_policy::{Action, AgentFacts, Matches};
use a2a_registry_store::entity::agent;
use serde::Deserialize;
use url::Url;
use uuid::Uuid;

use crate::agents::documents::{distinct, labels, organization, trust_rank};
use crate::agents::records::{AgentRecord, records};
use crate::caller::account_label;
use crate::context::Context;
use crate::error::AppError;
use crate::policy_labels::{carried, is_open};

/// A finding, as far as policies ask for it.
#[derive(Deserialize)]
struct BrokenRule {
    rule: String,
}

/// The facts about an agent that policies may ask for.
pub(crate) fn facts(record: &AgentRecord) -> AgentFacts {
    let (agent, card, version) = (&record.agent, &record.card, &record.version);
    let interfaces = &card.interfaces;
    let hosts = interfaces.iter().filter_map(|interface| {
        let url = Url::parse(&interface.url).ok()?;
        url.host_str().map(str::to_owned)
    });
    let findings: Vec<BrokenRule> = serde_json::from_str(&version.findings).unwrap_or_default();
    let trust = record.trust();
    let level = trust.level.as_ref().and_then(|level| level.known());
    let labels = labels(agent).into_iter();
    AgentFacts {
        id: agent.id.to_string(),
        domain: agent.domain.clone(),
        verified: record.is_of_verified_domain(),
        covered: record.is_admitted(),
        labels: labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect(),
        provider: organization(card),
        skills: distinct(card.skills.iter().map(|skill| skill.id.clone())),
        tags: tags(card),
        capabilities: capability_labels(card),
        input_modes: all_input_modes(card),
        output_modes: all_output_modes(card),
        auth: auth_labels(card),
        bindings: distinct(interfaces.iter().map(|one| one.binding.clone())),
        endpoint_hosts: distinct(hosts),
        protocol_versions: distinct(
            interfaces
                .iter()
                .filter_map(|one| one.protocol_version.clone()),
        ),
        trust: level.and_then(trust_rank).map_or(-1, i64::from),
        signature: trust.signature.as_str().to_owned(),
        findings: distinct(findings.into_iter().map(|finding| finding.rule)),
        has_error: version.has_error,
        lifecycle: record.lifecycle().as_str().to_owned(),
        liveness: record.liveness().state.as_str().to_owned(),
        owner_present: agent.owner_id.is_some(),
        sponsor_present: agent.sponsor_id.is_some(),
        visibility: record.known.visibility.as_str().to_owned(),
    }
}

/// The labels that an agent carries: those that may find it, and those of the policies that match it under every set that
/// agents are evaluated under. Its owner, which is its submitter while it has none, sees it whatever policies say.
pub(crate) fn labels_of(context: &Context, record: &AgentRecord) -> Vec<String> {
    let mut labels = record.visible_to();
    let owner = record.agent.owner_id.or(record.agent.submitter);
    let owner = owner.map(account_label);
    let owner = owner.filter(|owner| !labels.is_empty() && !labels.contains(owner));
    labels.extend(owner);
    let sets: Vec<_> = context.policies.evaluated().collect();
    if sets.iter().any(|set| !set.is_plain(Action::Discover)) {
        let facts = facts(record);
        labels.extend(sets.iter().flat_map(|set| carried(set, &facts)));
    }
    labels
}

/// The labels of these agents, by agent; none of those that nobody sees.
pub(crate) async fn labels_of_all(
    context: &Context,
    rows: Vec<agent::Model>,
) -> Result<HashMap<Uuid, Vec<String>>, AppError> {
    let records = records(&context.store, rows).await?;
    let labelled = records
        .iter()
        .map(|record| (record.agent.id, labels_of(context, record)));
    Ok(labelled.collect())
}

/// Whether rows alone say who sees an agent: no policy asks for anything else.
pub(crate) fn rows_decide(context: &Context) -> bool {
    context.policies.evaluated().all(|set| is_open(&set))
}

/// The policies about calling an agent that match it, of the set in force.
pub(crate) fn invoke_matches(context: &Context, record: &AgentRecord) -> Matches {
    let set = context.policies.in_force();
    match set.is_plain(Action::Invoke) {
        true => set.matches(Action::Invoke, &AgentFacts::default()),
        false => set.matches(Action::Invoke, &facts(record)),
    }
}
