//! The search documents and summaries of agents, both built from their rows.

use std::collections::HashSet;

use a2a_card::{AgentCard, Skill, auth_labels, tags};
use a2a_registry_api::{Capabilities, HitSkill, Interface, Links, Provider, Summary};
use a2a_registry_domain::facet::FacetMap;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_search::{Document, SkillText};
use a2a_registry_store::entity::{agent, source};
use a2a_registry_store::{Handle, agents};
use serde::Serialize;
use url::Url;
use uuid::Uuid;

use crate::admission::agent_facts::{distinct, labels, organization};
use crate::agents::catalog_entry::{ListedAgent, attributes};
use crate::agents::duplicates;
use crate::agents::hit_bounds::bound_summary;
use crate::agents::hit_members::{mark_hit, mark_skill};
use crate::agents::policy_facts::{labels_of, listed_facts};
use crate::agents::records::{AgentRecord, records_with, shown_version};
use crate::commit::agent_rows::AgentRows;
use crate::context::Context;
use crate::error::AppError;
use crate::sources;

/// The summary of an agent, as lists show it.
pub fn summary(context: &Context, record: &AgentRecord) -> Summary {
    let AgentRecord { agent, card, .. } = record;
    let links = links(context, record);
    Summary {
        id: agent.id,
        urn: agent.urn.clone(),
        name: card.name.clone(),
        description: card.description.clone(),
        version: card.version.clone(),
        provider: card.provider.as_ref().map(|provider| Provider {
            organization: provider.organization.clone(),
            url: provider.url.clone(),
        }),
        domain: agent.domain.clone(),
        interfaces: interfaces(card),
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
        tags: tags(card),
        auth: auth_labels(card),
        labels: labels(agent),
        trust: record.trust(),
        lifecycle: record.shown().into(),
        deprecation: record.deprecation(),
        visibility: record.known.visibility.into(),
        liveness: record.liveness(),
        card_digest: record.version.digest.clone(),
        links,
    }
}

fn links(context: &Context, record: &AgentRecord) -> Links {
    let (base, id) = (context.config.public_url(), record.agent.id);
    Links {
        this: format!("{base}/v1/agents/{id}"),
        card: format!("{base}/v1/agents/{id}/card"),
        page: format!("{base}/agents/{id}/"),
        resolver: format!("{base}/agents/{id}/"),
        origin: card_url(&record.sources),
        similar: format!("{base}/v1/agents/{id}/similar"),
    }
}

/// The URL at which the publisher serves a card: of several the one that answers best, and of those a well-known one. `None`
/// where the card is only inside catalogs.
fn card_url(sources: &[source::Model]) -> Option<String> {
    let is_inline =
        |source: &source::Model| Url::parse(&source.url).is_ok_and(|url| url.fragment().is_some());
    let own = sources.iter().filter(|source| !is_inline(source));
    let best = own.min_by_key(|source| {
        let is_failing = source.liveness.known() != Some(SourceState::Fresh);
        (is_failing, source.kind.known(), source.id)
    })?;
    if best.kind != SourceKind::WellKnown {
        return Some(sources::card_url(best).to_owned());
    }
    let origin = best.url.trim_end_matches('/');
    let usual = || format!("{origin}/.well-known/agent-card.json");
    Some(best.validator_url.clone().unwrap_or_else(usual))
}

/// The search document of an agent.
pub fn document(context: &Context, record: &AgentRecord) -> Result<Document, AppError> {
    let card = &record.card;
    let summary = bound_summary(lasting_summary(context, record));
    let facts = listed_facts(context, record);
    let trust = u8::try_from(facts.trust).ok();
    let whole = rendered(&summary)?;
    let listed = ListedAgent::read(&whole).and_then(|agent| agent.entry());
    let (hit, skills) = render_apart(card, summary)?;
    let entry = listed.as_ref().map(rendered).transpose()?;
    Ok(Document {
        id: record.agent.id,
        identifier: listed
            .as_ref()
            .map(|entry| entry.identifier.clone())
            .unwrap_or_default(),
        attributes: listed.as_ref().map(attributes).unwrap_or_default(),
        entry: entry.unwrap_or_default(),
        hit,
        name: card.name.clone(),
        description: card.description.clone().unwrap_or_default(),
        provider: organization(card),
        other_texts: card.other_texts.clone(),
        facets: FacetMap::from_fn(|facet| facts.values(facet)),
        skills,
        visible_to: labels_of(context, record),
        lookups: distinct(lookups(record)),
        group: duplicates::key(card, &record.version.content_digest),
        preference: duplicates::preference(card, &record.agent.domain, trust),
        created_at: record.agent.created_at,
        updated_at: record.version.observed_at,
    })
}

/// The summary of an agent without values that change without an event, such as the last fetch: in the index they
/// would be out of date, differently in every process.
fn lasting_summary(context: &Context, record: &AgentRecord) -> Summary {
    let mut summary = summary(context, record);
    summary.liveness.last_seen = None;
    summary.liveness.next_due = None;
    summary
}

fn rendered(of: &impl Serialize) -> Result<Vec<u8>, AppError> {
    serde_json::to_vec(of).map_err(|error| unwritten(&error))
}

fn unwritten(error: &serde_json::Error) -> AppError {
    AppError::internal(format!("an agent cannot be written as JSON: {error}"))
}

/// Renders a hit and its skills apart from each other, as the index takes them, with marks around the members that are not
/// shown by default.
fn render_apart(
    card: &AgentCard,
    mut summary: Summary,
) -> Result<(Vec<u8>, Vec<SkillText>), AppError> {
    /// The member of a hit without skills. Within a text its quotes would be escaped.
    const NONE: &str = r#""skills":[],"#;
    let shown = std::mem::take(&mut summary.skills);
    let mut hit = rendered(&summary)?;
    if !shown.is_empty() {
        let text = String::from_utf8_lossy(&hit).replacen(NONE, "", 1);
        hit = text.into_bytes();
    }
    let hit = mark_hit(&hit).map_err(|error| unwritten(&error))?;
    let skills = card.skills.iter().zip(&shown);
    let skills = skills.map(|(skill, shown)| skill_text(skill, shown));
    Ok((hit, skills.collect::<Result<_, _>>()?))
}

/// A skill as it is indexed, and as hits show it.
fn skill_text(skill: &Skill, shown: &HitSkill) -> Result<SkillText, AppError> {
    let rendered = serde_json::to_string(shown).and_then(|skill| mark_skill(&skill));
    Ok(SkillText {
        id: shown.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone().unwrap_or_default(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        rendered: rendered.map_err(|error| unwritten(&error))?,
    })
}

/// The interfaces of an agent's card, in the order to try them.
pub fn interfaces(card: &AgentCard) -> Vec<Interface> {
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

/// The key by which agents of this name are looked up.
pub fn name_key(name: &str) -> String {
    format!("name:{}", name.trim().to_lowercase())
}

fn lookups(record: &AgentRecord) -> Vec<String> {
    let mut keys = vec![
        format!("digest:{}", record.version.digest),
        format!("digest:{}", record.version.content_digest),
        format!("host:{}", record.agent.domain),
        name_key(&record.card.name),
    ];
    keys.extend(record.agent.urn.iter().map(|urn| format!("urn:{urn}")));
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
            urls.push(sources::card_url(source).to_owned());
        }
    }
    for url in urls {
        let Ok(url) = Url::parse(&url) else { continue };
        keys.push(format!("url:{url}"));
        keys.extend(url.host_str().map(|host| format!("host:{host}")));
    }
    keys
}

/// The documents of these agents, and the ids of agents to remove. An agent that cannot be read is in neither list.
pub async fn documents(
    context: &Context,
    ids: &[Uuid],
) -> Result<(Vec<Document>, Vec<Uuid>), AppError> {
    let read = context.store.read().await?;
    let rows = AgentRows::by_ids(&read, ids).await?;
    let shown = rows.agents.iter().filter(|row| is_shown(row));
    let there: HashSet<Uuid> = shown.map(|row| row.id).collect();
    let gone = ids.iter().copied();
    let gone = gone.filter(|id| !there.contains(id)).collect();
    Ok((documents_of(context, &read, rows).await?, gone))
}

/// The documents of the next agents by id, and the id to continue after; `None` at the end.
pub async fn documents_walk(
    context: &Context,
    after: Option<Uuid>,
    limit: u64,
) -> Result<(Vec<Document>, Option<Uuid>), AppError> {
    let read = context.store.read().await?;
    let mut rows = agents::agents_walk(&read, after, limit).await?;
    let last = rows.last().map(|row| row.id);
    rows.retain(is_shown);
    let rows = AgentRows::of(&read, rows).await?;
    Ok((documents_of(context, &read, rows).await?, last))
}

/// Whether the index has an agent: one that is not retired, and has a card.
fn is_shown(row: &agent::Model) -> bool {
    row.retired_at.is_none() && shown_version(row).is_some()
}

/// The documents of those of these agents that have one.
pub async fn documents_of(
    context: &Context,
    on: &impl Handle,
    mut rows: AgentRows,
) -> Result<Vec<Document>, AppError> {
    rows.agents.retain(is_shown);
    let records = records_with(on, rows).await?;
    records
        .iter()
        .map(|record| document(context, record))
        .collect()
}

/// Agents per read during a rebuild of the index.
pub const WALK: u64 = 1000;

#[cfg(test)]
mod tests {
    use a2a_registry_domain::timestamp::Timestamp;

    use super::*;
    use crate::sources::new_source;

    fn source(id: i64, kind: SourceKind, url: &str, state: SourceState) -> source::Model {
        source::Model {
            id,
            liveness: state.into(),
            ..new_source(1, kind, url.into(), Timestamp(0))
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
            // The card stands in the catalog, where no client finds it by its URL.
            (
                vec![source(1, Entry, "https://a.example/ard.json#a", Fresh)],
                None,
            ),
        ] {
            assert_eq!(card_url(&sources).as_deref(), expected, "{sources:?}");
        }
    }
}
