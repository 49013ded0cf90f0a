//! Loads agents to show them: all rows of an agent as one record.

use std::collections::HashMap;

use a2a_card::AgentCard;
use a2a_registry_api::{Deprecation, Liveness, SignatureVerdict, Trust};
use a2a_registry_domain::coverage::{Coverage, CoverageLevel};
use a2a_registry_domain::lifecycle::{
    Hold, Lifecycle, LivenessState, ShownLifecycle, Visibility, listed, shown,
};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, domain, hold, source, version, waiver};
use a2a_registry_store::{Handle, Kept, StoreError, coverage, domains, versions, waivers};
use uuid::Uuid;

use crate::admission::agent_facts::{ShownCard, trust_of};
use crate::commit::agent_rows::AgentRows;
use crate::error::AppError;
use crate::signatures::KeyBinding;
use crate::visibility::{Openness, own_submitter, visible_to};

/// The states in an agent's rows, all of them known to this build.
#[derive(Debug, Clone, Copy)]
pub struct AgentStates {
    lifecycle: Lifecycle,
    pub visibility: Visibility,
    liveness: LivenessState,
    /// The decision on the version shown.
    pub state: VersionState,
    standing: CoverageLevel,
    domain: DomainState,
}

impl AgentStates {
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

/// An agent with all rows that its views need.
#[derive(Debug, Clone)]
pub struct AgentRecord {
    pub agent: agent::Model,
    /// The version shown: the approved one, or the newest if none is approved.
    pub version: version::Model,
    pub card: AgentCard,
    pub known: AgentStates,
    /// The methods by which its domain is verified, with spaces between.
    pub proof_methods: String,
    /// Whether an account has proved the domain, and the keys enrolled for it; an admin's vouch is no proof
    /// (docs/ownership.md#coverage).
    binding: KeyBinding,
    pub holds: Vec<hold::Model>,
    pub sources: Vec<source::Model>,
    /// The accounts that have registered those sources.
    registrants: Vec<Uuid>,
    /// The account that first registered its domain.
    first_registrant: Option<Uuid>,
    /// The waivers in force.
    pub waivers: Vec<waiver::Model>,
}

impl AgentRecord {
    /// Its sources, of kinds that this build knows.
    pub fn sources(&self) -> &[source::Model] {
        &self.sources
    }

    fn hold_kinds(&self) -> Vec<Hold> {
        self.holds.iter().map(hold::Model::shown).collect()
    }

    pub fn shown(&self) -> ShownLifecycle {
        shown(self.known.lifecycle, &self.hold_kinds())
    }

    pub fn listed(&self) -> bool {
        listed(self.known.lifecycle, &self.hold_kinds())
    }

    /// Whether a proof of the domain covers the version shown.
    pub fn coverage(&self) -> Coverage {
        self.known.standing.coverage()
    }

    /// The policies that are waived for the content shown.
    pub fn waived_policies(&self, now: Timestamp) -> Vec<&str> {
        let content = self.version.content_digest.as_str();
        let waivers = self.waivers.iter();
        let counting = waivers.filter(|one| one.counts_for(content, now.0));
        counting.map(|one| one.policy.as_str()).collect()
    }

    /// The labels that may find it.
    pub fn visible_to(&self) -> Vec<String> {
        let openness = Openness::of(self.listed(), !self.holds.is_empty());
        let first = self.first_registrant;
        visible_to(&self.agent, openness, first, &self.registrants)
    }

    /// Its owner, or while it has none its submitter, as far as that one sees it.
    pub fn own_account(&self) -> Option<Uuid> {
        let submitter = || own_submitter(&self.agent, self.listed(), self.first_registrant);
        self.agent.owner_id.or_else(submitter)
    }

    /// Its deprecation. A caller who sees the agent on hold sees this too.
    pub fn deprecation(&self) -> Option<Deprecation> {
        let kept = self.agent.deprecation.as_deref();
        let kept = kept.filter(|_| self.known.lifecycle == Lifecycle::Deprecated);
        kept.and_then(|kept| serde_json::from_str(kept).ok())
    }

    pub fn signature_verdict(&self) -> SignatureVerdict {
        self.binding.verdict(Some(&self.version))
    }

    /// The trust level. The stored signature state is that of an unproved domain: a key on the card's own site is
    /// bound by a proof of the domain, which is added here.
    pub fn trust(&self) -> Trust {
        let (level, signature) = trust_of(&self.agent, &self.version, &self.binding);
        Trust {
            level: level.map(Into::into),
            domain: self.known.domain.into(),
            signature: signature.into(),
        }
    }

    pub fn shown_card(&self) -> ShownCard<'_> {
        ShownCard {
            agent: &self.agent,
            version: &self.version,
            card: &self.card,
            binding: &self.binding,
            is_of_verified_domain: self.known.domain == DomainState::Verified,
            proof_methods: &self.proof_methods,
            is_admitted: self.known.standing.is_admitted(),
            change: self.agent.approved_version.map(|_| ChangeClass::None),
        }
    }

    pub fn liveness(&self) -> Liveness {
        Liveness {
            state: self.known.liveness.into(),
            reason: self.agent.liveness_reason.clone(),
            last_seen: self.agent.last_seen_at.map(Timestamp),
            // Of the version shown: a waiting version is not public.
            last_changed: Some(Timestamp(self.version.observed_at)),
            next_due: self
                .sources
                .iter()
                .map(|source| Timestamp(source.next_due_at))
                .min(),
        }
    }
}

/// The records of these agents, in no order, without agents that never had a card, and those whose card or state this
/// build cannot read.
pub async fn records(
    on: &impl Handle,
    rows: Vec<agent::Model>,
) -> Result<Vec<AgentRecord>, AppError> {
    records_with(on, AgentRows::of(on, rows).await?).await
}

/// The same where the first rows are read already.
pub async fn records_with(on: &impl Handle, rows: AgentRows) -> Result<Vec<AgentRecord>, AppError> {
    let AgentRows {
        agents,
        holds,
        domains,
    } = rows;
    let mut beside = RowsBesideAgents::load(on, &agents, holds, domains).await?;
    Ok(agents
        .into_iter()
        .filter_map(|agent| beside.take_record(agent))
        .collect())
}

/// Rows by the agent, the domain or the source that they belong to.
struct RowsBesideAgents {
    /// By their own ids.
    versions: HashMap<Uuid, version::Model>,
    bindings: HashMap<i64, KeyBinding>,
    domains: HashMap<i64, domain::Model>,
    holds: HashMap<Uuid, Vec<hold::Model>>,
    sources: HashMap<Uuid, Vec<source::Model>>,
    /// The accounts that have registered a source, by the source.
    registrants: HashMap<i64, Vec<Uuid>>,
    waivers: HashMap<Uuid, Vec<waiver::Model>>,
}

impl RowsBesideAgents {
    async fn load(
        on: &impl Handle,
        rows: &[agent::Model],
        holds: HashMap<Uuid, Vec<hold::Model>>,
        domains: HashMap<i64, domain::Model>,
    ) -> Result<Self, StoreError> {
        // As much is read of an agent that shows no version: nothing has the nil id.
        let version_ids = rows
            .iter()
            .map(|row| shown_version(row).unwrap_or_default());
        let version_ids: Vec<Uuid> = version_ids.collect();
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let versions = versions::versions_by_ids(on, &version_ids).await?;
        let bindings = KeyBinding::of_domains(on, domains.values()).await?;
        let sources = sources_by_agent(on, &ids).await?;
        let registrants = registrants_by_source(on, rows, &sources).await?;
        let mut waived: HashMap<Uuid, Vec<waiver::Model>> = HashMap::new();
        for row in waivers::waivers_of(on, &ids).await? {
            waived.entry(row.agent_id).or_default().push(row);
        }
        Ok(Self {
            waivers: waived,
            versions: versions.into_iter().map(|row| (row.id, row)).collect(),
            bindings,
            domains,
            holds,
            sources,
            registrants,
        })
    }

    /// The record of an agent; `None` if it is left out, which is logged unless it never had a card.
    fn take_record(&mut self, agent: agent::Model) -> Option<AgentRecord> {
        let version = shown_version(&agent).and_then(|id| self.versions.remove(&id))?;
        // A newer build may have written it: only this agent is left out.
        let card = serde_json::from_str(&version.model)
            .inspect_err(|error| {
                let (agent, version) = (agent.id, version.id);
                tracing::error!(%agent, %version, %error, "an agent is left out: its card's model cannot be read");
            })
            .ok()?;
        let domain = self.domains.get(&agent.domain_id)?;
        // As it is with the card.
        let known = AgentStates::of(&agent, &version, &domain.state)
            .inspect_err(|error| tracing::error!(agent = %agent.id, %error, "an agent is left out"))
            .ok()?;
        let sources = self.sources.remove(&agent.id).unwrap_or_default();
        let binding = self.bindings.get(&agent.domain_id).cloned();
        Some(AgentRecord {
            registrants: self.registrants_of(&sources),
            waivers: self.waivers.remove(&agent.id).unwrap_or_default(),
            known,
            first_registrant: domain.account_id,
            proof_methods: domain.proof_methods.clone().unwrap_or_default(),
            binding: binding.unwrap_or_default(),
            holds: self.holds.remove(&agent.id).unwrap_or_default(),
            sources,
            agent,
            version,
            card,
        })
    }

    /// The accounts that have registered these sources, each once.
    fn registrants_of(&self, sources: &[source::Model]) -> Vec<Uuid> {
        let mut registrants: Vec<Uuid> = sources
            .iter()
            .flat_map(|source| self.registrants.get(&source.id).into_iter().flatten())
            .copied()
            .collect();
        registrants.sort_unstable();
        registrants.dedup();
        registrants
    }
}

async fn sources_by_agent(
    on: &impl Handle,
    agents: &[Uuid],
) -> Result<HashMap<Uuid, Vec<source::Model>>, StoreError> {
    let mut sources: HashMap<Uuid, Vec<source::Model>> = HashMap::new();
    for row in domains::sources_of_agents(on, agents).await? {
        // A source of a kind that only a later build knows does not count.
        if let Some(agent) = row.agent_id.filter(|_| row.kind.known().is_some()) {
            sources.entry(agent).or_default().push(row);
        }
    }
    Ok(sources)
}

/// The accounts that have registered the sources of these agents, by the source.
async fn registrants_by_source(
    on: &impl Handle,
    agents: &[agent::Model],
    sources: &HashMap<Uuid, Vec<source::Model>>,
) -> Result<HashMap<i64, Vec<Uuid>>, StoreError> {
    let mut feeding: Vec<i64> = agents
        .iter()
        .flat_map(|row| sources.get(&row.id).into_iter().flatten())
        .map(|source| source.id)
        .collect();
    if feeding.is_empty() && !agents.is_empty() {
        // As much is read of an agent without sources: nothing has this key.
        feeding.push(0);
    }
    let mut registrants: HashMap<i64, Vec<Uuid>> = HashMap::new();
    for row in coverage::registrants_of(on, &feeding).await? {
        let accounts = registrants.entry(row.source_id).or_default();
        accounts.extend(row.account_id);
    }
    Ok(registrants)
}

/// The version shown of an agent: the approved one, or the newest if none is approved.
pub fn shown_version(agent: &agent::Model) -> Option<Uuid> {
    agent.approved_version.or(agent.newest_version)
}

/// The name of the agent in a version of its card.
pub fn name_in(about: &version::Model) -> Option<String> {
    let card: serde_json::Value = serde_json::from_str(&about.model).ok()?;
    card.get("name")?.as_str().map(str::to_owned)
}
