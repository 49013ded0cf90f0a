//! Agents as the index keeps them and as callers see them: one way from the rows to both.

use std::collections::{BTreeMap, HashMap, HashSet};

use a2a_card::{
    AgentCard, all_input_modes, all_output_modes, auth_labels, capability_labels, tags,
};
use a2a_registry_api::{
    Capabilities, Deprecation, HitSkill, Interface, Links, Liveness, Provider, SignatureVerdict,
    Summary, Trust,
};
use a2a_registry_domain::coverage::{Coverage, Standing};
use a2a_registry_domain::lifecycle::{
    Hold, Lifecycle, LivenessState, ShownLifecycle, Visibility, listed, shown,
};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::VersionState;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::{Document, SkillText};
use a2a_registry_store::entity::{agent, hold, source, version};
use a2a_registry_store::{Handle, Kept, StoreError, agents, coverage, domains, versions};
use url::Url;
use uuid::Uuid;

use crate::context::Context;
use crate::error::AppError;
use crate::sight::{Openness, visible_to};
use crate::signatures::KeyBinding;

/// What the rows of an agent say it is, all of it known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    lifecycle: Lifecycle,
    visibility: Visibility,
    liveness: LivenessState,
    /// What was decided on the version shown.
    pub(crate) state: VersionState,
    /// Whose word stands behind that.
    standing: Standing,
    domain: DomainState,
}

impl Known {
    fn of(
        agent: &agent::Model,
        version: &version::Model,
        domain: &Kept<DomainState>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            lifecycle: agent.lifecycle()?,
            visibility: agent.visibility()?,
            liveness: agent.liveness()?,
            state: version.state()?,
            standing: version.standing()?,
            domain: domain.of("domains", "state", agent.domain_id)?,
        })
    }
}

/// An agent with everything that is shown of it.
#[derive(Debug, Clone)]
pub(crate) struct AgentRecord {
    pub(crate) agent: agent::Model,
    /// The version shown: the approved one, or the newest where none is.
    pub(crate) version: version::Model,
    pub(crate) card: AgentCard,
    pub(crate) known: Known,
    /// Whether an account has proved the domain, and the keys that are enrolled for it; an admin's word is no
    /// proof (docs/ownership.md#coverage).
    binding: KeyBinding,
    pub(crate) holds: Vec<hold::Model>,
    sources: Vec<source::Model>,
    /// The accounts that have registered those sources.
    registrants: Vec<Uuid>,
}

impl AgentRecord {
    fn hold_kinds(&self) -> Vec<Hold> {
        self.holds.iter().map(hold::Model::shown).collect()
    }

    pub(crate) fn shown(&self) -> ShownLifecycle {
        shown(self.known.lifecycle, &self.hold_kinds())
    }

    pub(crate) fn listed(&self) -> bool {
        listed(self.known.lifecycle, &self.hold_kinds())
    }

    /// Whether a proof of the domain covers the version shown.
    pub(crate) fn coverage(&self) -> Coverage {
        self.known.standing.coverage()
    }

    /// Who may find it: whoever holds one of these labels.
    pub(crate) fn visible_to(&self) -> Vec<String> {
        let openness = Openness::of(self.listed(), !self.holds.is_empty());
        visible_to(&self.agent, openness, &self.registrants)
    }

    /// What was said of its way out, where it is on it. Whoever sees the agent under a hold sees this too.
    fn deprecation(&self) -> Option<Deprecation> {
        let kept = self.agent.deprecation.as_deref();
        let kept = kept.filter(|_| self.known.lifecycle == Lifecycle::Deprecated);
        kept.and_then(|kept| serde_json::from_str(kept).ok())
    }

    /// What the signatures of the version shown are worth, and why.
    pub(crate) fn signature_verdict(&self) -> SignatureVerdict {
        self.binding.verdict(Some(&self.version))
    }

    /// The ladder. A signature is judged as of an unproved domain when its card comes in: its key lies on the
    /// card's own site, so a proof of the domain binds it.
    fn trust(&self) -> Trust {
        let version = &self.version;
        let signature = self.binding.state(version.into());
        let key_enrolled = self.binding.has_enrolled(&version.thumbprints);
        let level = match (
            self.agent.tls,
            self.binding.proves(&version.standing),
            signature,
        ) {
            (false, ..) => None,
            (true, true, SignatureState::Valid) if key_enrolled => Some("L3"),
            (true, true, SignatureState::Valid) => Some("L2"),
            (true, true, _) => Some("L1"),
            (true, false, _) => Some("L0"),
        };
        Trust {
            level: level.map(str::to_owned),
            domain: self.known.domain.as_str().to_owned(),
            signature: signature.as_str().to_owned(),
        }
    }

    fn liveness(&self) -> Liveness {
        Liveness {
            state: self.known.liveness,
            reason: self.agent.liveness_reason.clone(),
            last_seen: self.agent.last_seen_at.map(Timestamp),
            // Of what is shown: what waits for a decision is not everybody's to know.
            last_changed: Some(Timestamp(self.version.observed_at)),
            next_due: self
                .sources
                .iter()
                .map(|source| Timestamp(source.next_due_at))
                .min(),
        }
    }
}

/// The records of these agents, in no order; those that never had a card are left out, and so are those whose card
/// this build cannot read, or of which it does not know how they stand.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn records(
    on: &impl Handle,
    rows: Vec<agent::Model>,
) -> Result<Vec<AgentRecord>, AppError> {
    let version_ids: Vec<Uuid> = rows.iter().filter_map(shown_version).collect();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let mut domain_ids: Vec<i64> = rows.iter().map(|row| row.domain_id).collect();
    domain_ids.sort_unstable();
    domain_ids.dedup();
    let mut cards: HashMap<Uuid, version::Model> = versions::versions_by_ids(on, &version_ids)
        .await?
        .into_iter()
        .map(|row| (row.id, row))
        .collect();
    let domain_rows = domains::domains_by_ids(on, &domain_ids).await?;
    let bindings = KeyBinding::of_domains(on, &domain_rows).await?;
    let states: HashMap<i64, Kept<DomainState>> = domain_rows
        .into_iter()
        .map(|row| (row.id, row.state))
        .collect();
    let mut holds: HashMap<Uuid, Vec<hold::Model>> = HashMap::new();
    for row in agents::holds_of(on, &ids).await? {
        holds.entry(row.agent_id).or_default().push(row);
    }
    let mut sources: HashMap<Uuid, Vec<source::Model>> = HashMap::new();
    for row in domains::sources_of(on, &domain_ids).await? {
        // What only a later build can ask counts for nothing here.
        if let Some(agent) = row.agent_id.filter(|_| row.kind.known().is_some()) {
            sources.entry(agent).or_default().push(row);
        }
    }
    let feeding: Vec<i64> = rows
        .iter()
        .flat_map(|row| sources.get(&row.id).into_iter().flatten())
        .map(|source| source.id)
        .collect();
    let mut registrants: HashMap<i64, Vec<Uuid>> = HashMap::new();
    for row in coverage::registrants_of(on, &feeding).await? {
        let accounts = registrants.entry(row.source_id).or_default();
        accounts.extend(row.account_id);
    }
    let mut records = Vec::with_capacity(rows.len());
    for agent in rows {
        let Some(version) = shown_version(&agent).and_then(|id| cards.remove(&id)) else {
            continue;
        };
        let card = match serde_json::from_str(&version.model) {
            Ok(card) => card,
            // A newer build may have written it. It costs nobody but its own agent.
            Err(error) => {
                let (agent, version) = (agent.id, version.id);
                tracing::error!(%agent, %version, %error, "an agent is left out: its card's model cannot be read");
                continue;
            }
        };
        let domain = agent.domain_id;
        let Some(state) = states.get(&domain) else {
            continue;
        };
        let known = match Known::of(&agent, &version, state) {
            Ok(known) => known,
            // As it is with the card.
            Err(error) => {
                tracing::error!(agent = %agent.id, %error, "an agent is left out");
                continue;
            }
        };
        let sources = sources.remove(&agent.id).unwrap_or_default();
        let mut registrants: Vec<Uuid> = sources
            .iter()
            .flat_map(|source| registrants.get(&source.id).into_iter().flatten())
            .copied()
            .collect();
        registrants.sort_unstable();
        registrants.dedup();
        records.push(AgentRecord {
            registrants,
            known,
            binding: bindings.get(&domain).cloned().unwrap_or_default(),
            holds: holds.remove(&agent.id).unwrap_or_default(),
            sources,
            agent,
            version,
            card,
        });
    }
    Ok(records)
}

/// What every list shows of an agent.
pub(crate) fn summary(context: &Context, record: &AgentRecord) -> Summary {
    let AgentRecord { agent, card, .. } = record;
    let links = links(context, agent.id);
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
        tags: tags(card),
        auth: auth_labels(card),
        labels: labels(agent),
        trust: record.trust(),
        lifecycle: record.shown(),
        deprecation: record.deprecation(),
        visibility: record.known.visibility,
        liveness: record.liveness(),
        card_digest: record.version.digest.clone(),
        links,
    }
}

fn links(context: &Context, id: Uuid) -> Links {
    let base = context.config.public_url();
    Links {
        this: format!("{base}/v1/agents/{id}"),
        card: format!("{base}/v1/agents/{id}/card"),
        page: format!("{base}/agents/{id}/"),
        resolver: format!("{base}/agents/{id}/"),
    }
}

/// The document the index keeps of an agent.
///
/// # Errors
/// Where the summary cannot be rendered, which no card can bring about.
pub(crate) fn document(context: &Context, record: &AgentRecord) -> Result<Document, AppError> {
    let mut summary = summary(context, record);
    // A look that changes nothing is no event: these would only age here, differently in every process.
    summary.liveness.last_seen = None;
    summary.liveness.next_due = None;
    let hit = serde_json::to_vec(&summary)
        .map_err(|error| AppError::internal(format!("a summary does not render: {error}")))?;
    let card = &record.card;
    let organization = card
        .provider
        .as_ref()
        .and_then(|one| one.organization.clone());
    let organization = organization.unwrap_or_default();
    let distinct = |values: Vec<String>| {
        let mut seen = std::collections::BTreeSet::new();
        values
            .into_iter()
            .filter(|value| seen.insert(value.clone()))
            .collect::<Vec<_>>()
    };
    Ok(Document {
        id: record.agent.id,
        hit,
        name: card.name.clone(),
        description: card.description.clone().unwrap_or_default(),
        provider_key: organization.to_lowercase(),
        provider: organization,
        domain: record.agent.domain.clone(),
        skills: card
            .skills
            .iter()
            .map(|skill| SkillText {
                id: skill.id.clone(),
                name: skill.name.clone(),
                description: skill.description.clone().unwrap_or_default(),
                tags: skill.tags.clone(),
                examples: skill.examples.clone(),
            })
            .collect(),
        tags: summary.tags,
        skill_ids: distinct(card.skills.iter().map(|skill| skill.id.clone()).collect()),
        capabilities: capability_labels(card),
        bindings: distinct(
            card.interfaces
                .iter()
                .map(|one| one.binding.clone())
                .collect(),
        ),
        protocol_versions: distinct(
            card.interfaces
                .iter()
                .filter_map(|one| one.protocol_version.clone())
                .collect(),
        ),
        auth: summary.auth,
        input_modes: all_input_modes(card),
        output_modes: all_output_modes(card),
        labels: summary
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect(),
        lifecycle: summary.lifecycle.as_str().into(),
        liveness: summary.liveness.state.as_str().into(),
        signature: summary.trust.signature.clone(),
        trust: summary.trust.level.as_deref().and_then(trust_level),
        visible_to: record.visible_to(),
        lookups: distinct(lookups(record)),
        created_at: record.agent.created_at,
        updated_at: record.version.observed_at,
    })
}

/// The levels of trust, the lowest first.
pub(crate) const TRUST_LEVELS: [&str; 5] = ["L0", "L1", "L2", "L3", "L4"];

/// Where a card says that its agent can be reached, in the order to try.
pub(crate) fn interfaces(card: &AgentCard) -> Vec<Interface> {
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

/// `L0` to `L4` as a number.
pub(crate) fn trust_level(text: &str) -> Option<u8> {
    let level = TRUST_LEVELS.iter().position(|level| *level == text)?;
    u8::try_from(level).ok()
}

/// The version that is shown of an agent: the approved one, or the newest where none is.
pub(crate) fn shown_version(agent: &agent::Model) -> Option<Uuid> {
    agent.approved_version.or(agent.newest_version)
}

fn labels(agent: &agent::Model) -> BTreeMap<String, String> {
    serde_json::from_str(&agent.labels).unwrap_or_default()
}

/// Everything an agent can be looked up by.
fn lookups(record: &AgentRecord) -> Vec<String> {
    let mut keys = vec![
        format!("digest:{}", record.version.digest),
        format!("digest:{}", record.version.content_digest),
        format!("host:{}", record.agent.domain),
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
        }
    }
    for url in urls {
        let Ok(url) = Url::parse(&url) else { continue };
        keys.push(format!("url:{url}"));
        keys.extend(url.host_str().map(|host| format!("host:{host}")));
    }
    keys
}

/// The documents of these agents, and the agents that are no more. One that cannot be read is neither.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn documents(
    context: &Context,
    ids: &[Uuid],
) -> Result<(Vec<Document>, Vec<Uuid>), AppError> {
    let rows = agents::agents_by_ids(&context.store, ids).await?;
    let living: Vec<agent::Model> = rows
        .into_iter()
        .filter(|row| row.retired_at.is_none() && shown_version(row).is_some())
        .collect();
    let there: HashSet<Uuid> = living.iter().map(|row| row.id).collect();
    let gone = ids.iter().copied();
    let gone = gone.filter(|id| !there.contains(id)).collect();
    Ok((documents_of(context, living).await?, gone))
}

/// The documents of the next agents by id, and the id to go on after; `None` at the end.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn documents_walk(
    context: &Context,
    after: Option<Uuid>,
    limit: u64,
) -> Result<(Vec<Document>, Option<Uuid>), AppError> {
    let rows = agents::agents_walk(&context.store, after, limit).await?;
    let last = rows.last().map(|row| row.id);
    let living = rows
        .into_iter()
        .filter(|row| row.retired_at.is_none())
        .collect();
    Ok((documents_of(context, living).await?, last))
}

pub(crate) async fn documents_of(
    context: &Context,
    rows: Vec<agent::Model>,
) -> Result<Vec<Document>, AppError> {
    let records = records(&context.store, rows).await?;
    records
        .iter()
        .map(|record| document(context, record))
        .collect()
}

/// Agents read at a time while the index is built anew.
pub(crate) const WALK: u64 = 1000;
