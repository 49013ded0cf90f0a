//! What is loaded of agents to show them: their rows, read and judged as one record each.

use std::collections::HashMap;

use a2a_card::AgentCard;
use a2a_registry_api::{Deprecation, Liveness, SignatureVerdict, Trust};
use a2a_registry_domain::coverage::{Coverage, Standing};
use a2a_registry_domain::lifecycle::{
    Hold, Lifecycle, LivenessState, ShownLifecycle, Visibility, listed, shown,
};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::VersionState;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_domain::trust::TrustLevel;
use a2a_registry_store::entity::{agent, hold, source, version};
use a2a_registry_store::{Handle, Kept, StoreError, agents, coverage, domains, versions};
use uuid::Uuid;

use crate::error::AppError;
use crate::signatures::KeyBinding;
use crate::visibility::{Openness, visible_to};

/// What the rows of an agent say it is, all of it known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    lifecycle: Lifecycle,
    pub(crate) visibility: Visibility,
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
    pub(crate) sources: Vec<source::Model>,
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
    pub(crate) fn deprecation(&self) -> Option<Deprecation> {
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
    pub(crate) fn trust(&self) -> Trust {
        let version = &self.version;
        let signature = self.binding.state(version.into());
        let key_enrolled = self.binding.has_enrolled(&version.thumbprints);
        let level = match (
            self.agent.tls,
            self.binding.proves(&version.standing),
            signature,
        ) {
            (false, ..) => None,
            (true, true, SignatureState::Valid) if key_enrolled => Some(TrustLevel::L3),
            (true, true, SignatureState::Valid) => Some(TrustLevel::L2),
            (true, true, _) => Some(TrustLevel::L1),
            (true, false, _) => Some(TrustLevel::L0),
        };
        Trust {
            level: level.map(Into::into),
            domain: self.known.domain.into(),
            signature: signature.into(),
        }
    }

    pub(crate) fn liveness(&self) -> Liveness {
        Liveness {
            state: self.known.liveness.into(),
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
pub(crate) async fn records(
    on: &impl Handle,
    rows: Vec<agent::Model>,
) -> Result<Vec<AgentRecord>, AppError> {
    let mut beside = RowsBesideAgents::load(on, &rows).await?;
    Ok(rows
        .into_iter()
        .filter_map(|agent| beside.take_record(agent))
        .collect())
}

/// The rows that make records of some agents' own rows.
struct RowsBesideAgents {
    /// The versions shown.
    versions: HashMap<Uuid, version::Model>,
    /// By the domain.
    bindings: HashMap<i64, KeyBinding>,
    /// By the domain.
    states: HashMap<i64, Kept<DomainState>>,
    /// By the agent.
    holds: HashMap<Uuid, Vec<hold::Model>>,
    /// By the agent.
    sources: HashMap<Uuid, Vec<source::Model>>,
    /// The accounts that have registered a source, by the source.
    registrants: HashMap<i64, Vec<Uuid>>,
}

impl RowsBesideAgents {
    async fn load(on: &impl Handle, rows: &[agent::Model]) -> Result<Self, StoreError> {
        let version_ids: Vec<Uuid> = rows.iter().filter_map(shown_version).collect();
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let mut domain_ids: Vec<i64> = rows.iter().map(|row| row.domain_id).collect();
        domain_ids.sort_unstable();
        domain_ids.dedup();
        let versions = versions::versions_by_ids(on, &version_ids).await?;
        let domain_rows = domains::domains_by_ids(on, &domain_ids).await?;
        let bindings = KeyBinding::of_domains(on, &domain_rows).await?;
        let mut holds: HashMap<Uuid, Vec<hold::Model>> = HashMap::new();
        for row in agents::holds_of(on, &ids).await? {
            holds.entry(row.agent_id).or_default().push(row);
        }
        let sources = sources_by_agent(on, &domain_ids).await?;
        let registrants = registrants_by_source(on, rows, &sources).await?;
        Ok(Self {
            versions: versions.into_iter().map(|row| (row.id, row)).collect(),
            bindings,
            states: domain_rows
                .into_iter()
                .map(|row| (row.id, row.state))
                .collect(),
            holds,
            sources,
            registrants,
        })
    }

    /// The record of an agent; `None` where it is left out, which is logged where it should not be.
    fn take_record(&mut self, agent: agent::Model) -> Option<AgentRecord> {
        let version = shown_version(&agent).and_then(|id| self.versions.remove(&id))?;
        // A newer build may have written it. It costs nobody but its own agent.
        let card = serde_json::from_str(&version.model)
            .inspect_err(|error| {
                let (agent, version) = (agent.id, version.id);
                tracing::error!(%agent, %version, %error, "an agent is left out: its card's model cannot be read");
            })
            .ok()?;
        let state = self.states.get(&agent.domain_id)?;
        // As it is with the card.
        let known = Known::of(&agent, &version, state)
            .inspect_err(|error| tracing::error!(agent = %agent.id, %error, "an agent is left out"))
            .ok()?;
        let sources = self.sources.remove(&agent.id).unwrap_or_default();
        let binding = self.bindings.get(&agent.domain_id).cloned();
        Some(AgentRecord {
            registrants: self.registrants_of(&sources),
            known,
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

/// The sources of these domains that have brought an agent, by the agent.
async fn sources_by_agent(
    on: &impl Handle,
    domains: &[i64],
) -> Result<HashMap<Uuid, Vec<source::Model>>, StoreError> {
    let mut sources: HashMap<Uuid, Vec<source::Model>> = HashMap::new();
    for row in domains::sources_of(on, domains).await? {
        // What only a later build can ask counts for nothing here.
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
    let feeding: Vec<i64> = agents
        .iter()
        .flat_map(|row| sources.get(&row.id).into_iter().flatten())
        .map(|source| source.id)
        .collect();
    let mut registrants: HashMap<i64, Vec<Uuid>> = HashMap::new();
    for row in coverage::registrants_of(on, &feeding).await? {
        let accounts = registrants.entry(row.source_id).or_default();
        accounts.extend(row.account_id);
    }
    Ok(registrants)
}

/// The version that is shown of an agent: the approved one, or the newest where none is.
pub(crate) fn shown_version(agent: &agent::Model) -> Option<Uuid> {
    agent.approved_version.or(agent.newest_version)
}
