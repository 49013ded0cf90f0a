//! Search documents and summaries of agents, both built from their rows.

use std::collections::HashSet;

use a2a_card::{AgentCard, Skill, auth_labels, skill_tags};
use a2a_registry_api::{Capabilities, HitSkill, Interface, Links, Provider, Summary};
use a2a_registry_domain::facet::FacetMap;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_search::{AgentDocument, SkillText};
use a2a_registry_store::entity::{agent, source};
use a2a_registry_store::{Executor, agents};
use serde::Serialize;
use url::Url;
use uuid::Uuid;

use crate::admission::policy_subject::{agent_labels, deduplicate, provider_organization};
use crate::agents::catalog_entry::{
    AgentExcerpt, FORMER_IDENTIFIER_ATTRIBUTE, catalog_entry_attributes,
};
use crate::agents::decidable_urls::{decidable_url_key, decidable_urls};
use crate::agents::duplicates;
use crate::agents::hit_limits::truncate_summary;
use crate::agents::hit_members::{mark_hidden_hit_members, mark_hidden_skill_members};
use crate::agents::policy_attributes::{
    agent_audience_labels, agent_policy_labels, listed_agent_attributes,
};
use crate::agents::records::{AgentRecord, build_agent_records, current_version_id};
use crate::commit::agent_rows::AgentRows;
use crate::context::AppContext;
use crate::error::AppError;
use crate::sources;

/// The summary of an agent, as lists show it.
pub fn build_agent_summary(context: &AppContext, record: &AgentRecord) -> Summary {
    let AgentRecord { agent, card, .. } = record;
    let links = build_agent_links(context, record);
    Summary {
        id: agent.id,
        urn: agent.current_urn().map(str::to_owned),
        name: card.name.clone(),
        description: card.description.clone(),
        version: card.version.clone(),
        provider: card.provider.as_ref().map(|provider| Provider {
            organization: provider.organization.clone(),
            url: provider.url.clone(),
        }),
        domain: agent.domain.clone(),
        interfaces: card_interfaces(card),
        capabilities: Capabilities {
            streaming: card.capabilities.streaming,
            push_notifications: card.capabilities.push_notifications,
            extended_agent_card: card.capabilities.extended_agent_card,
            extensions: card
                .capabilities
                .extensions
                .iter()
                .map(|one| one.uri.clone())
                .collect(),
        },
        skills: card
            .skills
            .iter()
            .map(|skill| HitSkill {
                id: skill.id.clone(),
                name: skill.name.clone(),
                description: skill.description.clone(),
                tags: skill.tags.clone(),
            })
            .collect(),
        skills_total: card.skills.len() as u64,
        shortened: false,
        tags: skill_tags(card),
        auth: auth_labels(card),
        labels: agent_labels(agent),
        trust: record.trust(),
        lifecycle: record.shown_lifecycle().into(),
        deprecation: record.deprecation(),
        visibility: record.states.visibility.into(),
        liveness: record.liveness(),
        endpoint: record.endpoint(),
        card_digest: record.version.digest.clone(),
        links,
    }
}

fn build_agent_links(context: &AppContext, record: &AgentRecord) -> Links {
    let (base, id) = (context.config().public_url(), record.agent.id);
    Links {
        this: format!("{base}/v1/agents/{id}"),
        card: format!("{base}/v1/agents/{id}/card"),
        page: format!("{base}/agents/{id}/"),
        resolver: format!("{base}/agents/{id}/"),
        origin: publisher_card_url(&record.sources),
        similar: format!("{base}/v1/agents/{id}/similar"),
    }
}

/// The URL at which the publisher serves a card: among several, the one that responds best, preferably a well-known
/// one. `None` if only catalogs contain the card.
fn publisher_card_url(sources: &[source::Model]) -> Option<String> {
    let is_inline =
        |source: &source::Model| Url::parse(&source.url).is_ok_and(|url| url.fragment().is_some());
    let own = sources.iter().filter(|source| !is_inline(source));
    let best = own.min_by_key(|source| {
        let is_failing = source.liveness.known_value() != Some(SourceState::Fresh);
        (is_failing, source.kind.known_value(), source.id)
    })?;
    if best.kind != SourceKind::WellKnown {
        return Some(sources::source_card_url(best).to_owned());
    }
    let origin = best.url.trim_end_matches('/');
    let usual = || format!("{origin}/.well-known/agent-card.json");
    Some(best.validator_url.clone().unwrap_or_else(usual))
}

/// The search document of an agent.
pub fn build_agent_document(
    context: &AppContext,
    record: &AgentRecord,
) -> Result<AgentDocument, AppError> {
    let card = &record.card;
    let summary = truncate_summary(build_indexed_summary(context, record));
    let agent_attributes = listed_agent_attributes(context, record);
    let trust = u8::try_from(agent_attributes.trust).ok();
    let whole = to_json_bytes(&summary)?;
    let catalog_entry = AgentExcerpt::parse(&whole).and_then(|agent| agent.to_catalog_entry());
    let (hit, skills) = render_hit_and_skills(card, summary)?;
    let entry_json = catalog_entry.as_ref().map(to_json_bytes).transpose()?;
    let mut attributes = catalog_entry
        .as_ref()
        .map(catalog_entry_attributes)
        .unwrap_or_default();
    let former = record.agent.former_urn();
    attributes.extend(former.map(|urn| (FORMER_IDENTIFIER_ATTRIBUTE.to_owned(), urn.to_owned())));
    Ok(AgentDocument {
        id: record.agent.id,
        identifier: catalog_entry
            .as_ref()
            .map(|entry| entry.identifier.clone())
            .unwrap_or_default(),
        attributes,
        catalog_entry: entry_json.unwrap_or_default(),
        hit,
        name: card.name.clone(),
        description: card.description.clone().unwrap_or_default(),
        provider: provider_organization(card),
        other_texts: card.other_texts.clone(),
        facets: FacetMap::from_fn(|facet| agent_attributes.facet_values(facet)),
        skills,
        visible_to: agent_audience_labels(record),
        rule_labels: agent_policy_labels(context, record),
        lookup_keys: deduplicate(agent_lookup_keys(record)),
        duplicate_key: duplicates::duplicate_group_key(card, &record.version.content_digest),
        preference: duplicates::duplicate_preference(card, &record.agent.domain, trust),
        created_at: record.agent.created_at,
        updated_at: record.version.observed_at,
    })
}

/// The summary of an agent without values that change without an event, such as the last fetch: in the index they
/// would be out of date, and differ between processes.
fn build_indexed_summary(context: &AppContext, record: &AgentRecord) -> Summary {
    let mut summary = build_agent_summary(context, record);
    summary.liveness.last_seen = None;
    summary.liveness.next_due = None;
    summary.endpoint.checked_on = None;
    summary
}

fn to_json_bytes(value: &impl Serialize) -> Result<Vec<u8>, AppError> {
    serde_json::to_vec(value).map_err(|error| serialization_error(&error))
}

fn serialization_error(error: &serde_json::Error) -> AppError {
    AppError::internal(format!("an agent cannot be serialized to JSON: {error}"))
}

/// Renders a hit and its skills separately, as the index stores them, with markers around the members that are not
/// shown by default.
fn render_hit_and_skills(
    card: &AgentCard,
    mut summary: Summary,
) -> Result<(Vec<u8>, Vec<SkillText>), AppError> {
    /// The skills member of a hit without skills. Within a text its quotes would be escaped.
    const EMPTY_SKILLS: &str = r#""skills":[],"#;
    let hit_skills = std::mem::take(&mut summary.skills);
    let mut hit = to_json_bytes(&summary)?;
    if !hit_skills.is_empty() {
        let text = String::from_utf8_lossy(&hit).replacen(EMPTY_SKILLS, "", 1);
        hit = text.into_bytes();
    }
    let hit = mark_hidden_hit_members(&hit).map_err(|error| serialization_error(&error))?;
    let skills = card.skills.iter().zip(&hit_skills);
    let skills = skills.map(|(skill, shown)| build_indexed_skill(skill, shown));
    Ok((hit, skills.collect::<Result<_, _>>()?))
}

/// A skill in its indexed form, and as hits show it.
fn build_indexed_skill(skill: &Skill, hit_skill: &HitSkill) -> Result<SkillText, AppError> {
    let rendered =
        serde_json::to_string(hit_skill).and_then(|skill| mark_hidden_skill_members(&skill));
    Ok(SkillText {
        id: hit_skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone().unwrap_or_default(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        rendered: rendered.map_err(|error| serialization_error(&error))?,
    })
}

/// The interfaces of an agent's card, in the order to try them.
pub fn card_interfaces(card: &AgentCard) -> Vec<Interface> {
    card.interfaces
        .iter()
        .map(|interface| Interface {
            url: interface.url.clone(),
            binding: interface.binding.clone(),
            protocol_version: interface.protocol_version.clone(),
            tenant: interface.tenant.clone(),
        })
        .collect()
}

/// The key by which agents are looked up by name.
pub fn name_lookup_key(name: &str) -> String {
    format!("name:{}", name.trim().to_lowercase())
}

fn agent_lookup_keys(record: &AgentRecord) -> Vec<String> {
    let mut keys = vec![
        format!("digest:{}", record.version.digest),
        format!("digest:{}", record.version.content_digest),
        format!("host:{}", record.agent.domain),
        name_lookup_key(&record.card.name),
    ];
    let urns = [record.agent.current_urn(), record.agent.former_urn()];
    keys.extend(urns.into_iter().flatten().map(|urn| format!("urn:{urn}")));
    keys.extend(
        decidable_urls(record)
            .iter()
            .map(|url| decidable_url_key(url)),
    );
    let mut urls: Vec<String> = record
        .card
        .interfaces
        .iter()
        .map(|interface| interface.url.clone())
        .collect();
    for source in &record.sources {
        if source.kind == SourceKind::WellKnown {
            let origin = source.url.trim_end_matches('/');
            urls.push(format!("{origin}/.well-known/agent-card.json"));
            urls.push(format!("{origin}/.well-known/agent.json"));
        } else {
            urls.push(source.url.clone());
            urls.push(sources::source_card_url(source).to_owned());
        }
    }
    for url in urls {
        let Ok(url) = Url::parse(&url) else { continue };
        keys.push(format!("url:{url}"));
        keys.extend(url.host_str().map(|host| format!("host:{host}")));
    }
    keys
}

/// Loads the documents of these agents, and the ids of agents to remove. An agent that cannot be read is in neither
/// list.
pub async fn load_agent_documents(
    context: &AppContext,
    ids: &[Uuid],
) -> Result<(Vec<AgentDocument>, Vec<Uuid>), AppError> {
    let read_tx = context.store.begin_read().await?;
    let rows = AgentRows::load_by_ids(&read_tx, ids).await?;
    let shown = rows.agents.iter().filter(|row| is_agent_indexed(row));
    let indexed_ids: HashSet<Uuid> = shown.map(|row| row.id).collect();
    let candidates = ids.iter().copied();
    let removed_ids = candidates.filter(|id| !indexed_ids.contains(id)).collect();
    Ok((
        build_agent_documents(context, &read_tx, rows).await?,
        removed_ids,
    ))
}

/// Loads the documents of the next agents by id, and the id to continue after; `None` at the end.
pub async fn load_agent_documents_after(
    context: &AppContext,
    after: Option<Uuid>,
    limit: u64,
) -> Result<(Vec<AgentDocument>, Option<Uuid>), AppError> {
    let read_tx = context.store.begin_read().await?;
    let mut rows = agents::agents_page_by_id(&read_tx, after, limit).await?;
    let last = rows.last().map(|row| row.id);
    rows.retain(is_agent_indexed);
    let rows = AgentRows::load_with_holds_and_domains(&read_tx, rows).await?;
    Ok((build_agent_documents(context, &read_tx, rows).await?, last))
}

/// Whether the index contains an agent: it is not retired, and has a card.
fn is_agent_indexed(row: &agent::Model) -> bool {
    row.retired_at.is_none() && current_version_id(row).is_some()
}

/// Builds the documents of these agents; agents without one are left out.
pub async fn build_agent_documents(
    context: &AppContext,
    db: &impl Executor,
    mut rows: AgentRows,
) -> Result<Vec<AgentDocument>, AppError> {
    rows.agents.retain(is_agent_indexed);
    let records = build_agent_records(db, rows).await?;
    records
        .iter()
        .map(|record| build_agent_document(context, record))
        .collect()
}

/// Agents per read during a rebuild of the index.
pub const REBUILD_BATCH: u64 = 1000;

#[cfg(test)]
mod tests {
    use a2a_registry_domain::timestamp::Timestamp;

    use super::*;
    use crate::sources::new_source_row;

    fn source(id: i64, kind: SourceKind, url: &str, state: SourceState) -> source::Model {
        source::Model {
            id,
            liveness: state.into(),
            ..new_source_row(1, kind, url.into(), Timestamp(0))
        }
    }

    #[test]
    fn the_cards_own_url_is_that_of_the_source_that_answers_best() {
        use SourceKind::{Entry, Url, WellKnown};
        use SourceState::{Fresh, Stale};
        let origin = "https://a.example/";
        let (usual, other) = (
            "https://a.example/.well-known/agent-card.json",
            "https://a.example/card.json",
        );
        let at_old_path = source::Model {
            validator_url: Some("https://a.example/.well-known/agent.json".into()),
            ..source(1, WellKnown, origin, Fresh)
        };
        for (sources, expected) in [
            (vec![], None),
            (vec![source(1, WellKnown, origin, Fresh)], Some(usual)),
            (
                vec![at_old_path],
                Some("https://a.example/.well-known/agent.json"),
            ),
            (
                vec![
                    source(1, Url, other, Fresh),
                    source(2, WellKnown, origin, Fresh),
                ],
                Some(usual),
            ),
            (
                vec![
                    source(1, Entry, other, Fresh),
                    source(2, WellKnown, origin, Stale),
                ],
                Some(other),
            ),
            // The card is inside the catalog, where no client finds it by its URL.
            (
                vec![source(1, Entry, "https://a.example/ard.json#a", Fresh)],
                None,
            ),
        ] {
            assert_eq!(
                publisher_card_url(&sources).as_deref(),
                expected,
                "{sources:?}"
            );
        }
    }
}
