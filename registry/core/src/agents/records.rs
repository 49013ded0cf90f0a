//! Loads agents for display: all rows of an agent as one record.

use std::collections::HashMap;

use a2a_card::AgentCard;
use a2a_registry_api::{Deprecation, EndpointSummary, Liveness, SignatureVerdict, Trust};
use a2a_registry_domain::coverage::{Coverage, CoverageLevel};
use a2a_registry_domain::lifecycle::{
    Hold, Lifecycle, LivenessState, ShownLifecycle, Visibility, effective_lifecycle, is_listed,
};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::entity::{agent, domain, hold, source, version, waiver};
use a2a_registry_store::{
    Executor, StoreError, StoredEnum, domains, policy_inputs, registrants, versions, waivers,
};
use uuid::Uuid;

use crate::admission::policy_subject::{PolicySubject, trust_and_signature};
use crate::commit::agent_rows::AgentRows;
use crate::commit::audit_log::card_model_name;
use crate::error::AppError;
use crate::signatures::DomainKeyBinding;
use crate::visibility::{ListingState, visibility_labels, visible_submitter};

/// The states in an agent's rows; this build knows all of them.
#[derive(Debug, Clone, Copy)]
pub struct KnownAgentStates {
    lifecycle: Lifecycle,
    pub visibility: Visibility,
    liveness: LivenessState,
    /// The decision on the current version.
    pub version_state: VersionState,
    pub(super) coverage_level: CoverageLevel,
    domain_state: DomainState,
}

impl KnownAgentStates {
    fn from_rows(
        agent: &agent::Model,
        version: &version::Model,
        domain: &StoredEnum<DomainState>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            lifecycle: agent.lifecycle()?,
            visibility: agent.visibility()?,
            liveness: agent.liveness()?,
            version_state: version.state()?,
            coverage_level: version.standing()?,
            domain_state: domain.require_known("domains", "state", agent.domain_id)?,
        })
    }
}

/// An agent with all rows that its views need.
#[derive(Debug, Clone)]
pub struct AgentRecord {
    pub agent: agent::Model,
    /// The current version: the approved one, or the newest if none is approved.
    pub version: version::Model,
    pub card: AgentCard,
    pub states: KnownAgentStates,
    /// The methods by which its domain is verified, separated by spaces.
    pub proof_methods: String,
    /// Whether an account has proved the domain, and the keys enrolled for it; an admin's vouch is not a proof
    /// (docs/publish/prove.md#what-a-proof-covers).
    key_binding: DomainKeyBinding,
    /// Scheme, host and port of its domain.
    pub domain_origin: String,
    /// The names whose records, with `policy=subdomains`, prove its domain: they prove every host below them.
    pub proved_zones: Vec<String>,
    pub holds: Vec<hold::Model>,
    pub sources: Vec<source::Model>,
    /// The accounts that have registered those sources.
    source_registrants: Vec<Uuid>,
    /// The account that first registered its domain.
    first_registrant: Option<Uuid>,
    /// The waivers that are in force.
    pub waivers: Vec<waiver::Model>,
}

impl AgentRecord {
    /// Its sources, of kinds that this build knows.
    pub fn sources(&self) -> &[source::Model] {
        &self.sources
    }

    fn hold_kinds(&self) -> Vec<Hold> {
        self.holds.iter().map(hold::Model::hold_kind).collect()
    }

    pub fn shown_lifecycle(&self) -> ShownLifecycle {
        effective_lifecycle(self.states.lifecycle, &self.hold_kinds())
    }

    pub fn is_listed(&self) -> bool {
        is_listed(self.states.lifecycle, &self.hold_kinds())
    }

    /// Whether an owner has proved the domain, and the proof covers the current version.
    pub fn has_covering_proof(&self) -> bool {
        self.key_binding.has_proof_covering(&self.version.standing)
    }

    /// Whether a proof of the domain covers the current version.
    pub fn coverage(&self) -> Coverage {
        self.states.coverage_level.coverage()
    }

    /// The policies that are waived for the current content.
    pub fn waived_policies(&self, now: Timestamp) -> Vec<&str> {
        let content = self.version.content_digest.as_str();
        let waivers = self.waivers.iter();
        let counting = waivers.filter(|one| one.waiver_covers_content(content, now.0));
        counting.map(|one| one.policy.as_str()).collect()
    }

    /// The labels of callers who may see it.
    pub fn audience_labels(&self) -> Vec<String> {
        let openness = ListingState::new(self.is_listed(), !self.holds.is_empty());
        let first = self.first_registrant;
        visibility_labels(&self.agent, openness, first, &self.source_registrants)
    }

    /// Its owner, or its submitter while it has none and the submitter may see it.
    pub fn responsible_account(&self) -> Option<Uuid> {
        let submitter = || visible_submitter(&self.agent, self.is_listed(), self.first_registrant);
        self.agent.owner_id.or_else(submitter)
    }

    /// Its deprecation. A caller who may see the agent on hold also sees this.
    pub fn deprecation(&self) -> Option<Deprecation> {
        let deprecation_json = self.agent.deprecation.as_deref();
        let deprecation_json =
            deprecation_json.filter(|_| self.states.lifecycle == Lifecycle::Deprecated);
        deprecation_json.and_then(|kept| serde_json::from_str(kept).ok())
    }

    pub fn signature_verdict(&self) -> SignatureVerdict {
        self.key_binding.signature_verdict(Some(&self.version))
    }

    /// The trust level. The stored signature state is that of an unverified domain. A proof of the domain binds a key
    /// on the card's own site, which is added here.
    pub fn trust(&self) -> Trust {
        let (level, signature) = trust_and_signature(&self.agent, &self.version, &self.key_binding);
        Trust {
            level: level.map(Into::into),
            domain: self.states.domain_state.into(),
            signature: signature.into(),
        }
    }

    pub fn policy_subject(&self) -> PolicySubject<'_> {
        PolicySubject {
            agent: &self.agent,
            version: &self.version,
            card: &self.card,
            binding: &self.key_binding,
            has_verified_domain: self.states.domain_state == DomainState::Verified,
            proof_methods: &self.proof_methods,
            is_admitted: self.states.coverage_level.is_admitted(),
            change: self.agent.approved_version.map(|_| ChangeClass::None),
        }
    }

    /// Whether it answers at its own address, by the last check.
    pub fn endpoint(&self) -> EndpointSummary {
        EndpointSummary {
            state: self.agent.endpoint.0.clone(),
            checked_on: self
                .agent
                .endpoint_checked_at
                .map(|at| Timestamp(at).day_text()),
        }
    }

    pub fn liveness(&self) -> Liveness {
        Liveness {
            state: self.states.liveness.into(),
            reason: self.agent.liveness_reason.clone(),
            last_seen: self.agent.last_seen_at.map(Timestamp),
            // Taken from the current version: a pending version is not public.
            last_changed: Some(Timestamp(self.version.observed_at)),
            next_due: self
                .sources
                .iter()
                .map(|source| Timestamp(source.next_due_at))
                .min(),
        }
    }
}

/// Loads the records of these agents, in no order. Agents that never had a card are left out, and those whose card or
/// state this build cannot read.
pub async fn load_agent_records(
    db: &impl Executor,
    rows: Vec<agent::Model>,
) -> Result<Vec<AgentRecord>, AppError> {
    build_agent_records(db, AgentRows::load_with_holds_and_domains(db, rows).await?).await
}

/// Like [`load_agent_records`], if the agents' rows are already read.
pub async fn build_agent_records(
    db: &impl Executor,
    rows: AgentRows,
) -> Result<Vec<AgentRecord>, AppError> {
    let AgentRows {
        agents,
        holds,
        domains,
    } = rows;
    let mut related = AgentRelatedRows::load(db, &agents, holds, domains).await?;
    Ok(agents
        .into_iter()
        .filter_map(|agent| related.take_record(agent))
        .collect())
}

/// What policies evaluate of agents, as it was read.
#[derive(Debug)]
pub struct PolicyRecordRows {
    agents: Vec<agent::Model>,
    related: AgentRelatedRows,
}

impl PolicyRecordRows {
    /// Reads the rows of these agents; missing ones are left out. Without `with_cards`, what comes from their cards is
    /// empty.
    pub async fn load(
        db: &impl Executor,
        ids: &[Uuid],
        with_cards: bool,
    ) -> Result<Self, StoreError> {
        let agents = agents_by_ids(db, ids).await?;
        let mut domain_ids: Vec<i64> = agents.iter().map(|row| row.domain_id).collect();
        domain_ids.sort_unstable();
        domain_ids.dedup();
        let domain_rows = domains::domains_by_ids(db, &domain_ids).await?;
        let domains: HashMap<i64, domain::Model> =
            domain_rows.into_iter().map(|row| (row.id, row)).collect();
        let version_ids: Vec<Uuid> = agents.iter().filter_map(current_version_id).collect();
        let versions = policy_inputs::versions_for_policies(db, &version_ids, with_cards).await?;
        let related = AgentRelatedRows {
            versions: versions.into_iter().map(|row| (row.id, row)).collect(),
            key_bindings: DomainKeyBinding::load_for_domains(db, domains.values()).await?,
            waivers: load_waivers_by_agent(db, ids).await?,
            domains,
            has_cards: with_cards,
            zones: HashMap::new(),
            holds: HashMap::new(),
            sources: HashMap::new(),
            registrants: HashMap::new(),
        };
        Ok(Self { agents, related })
    }

    /// The records of the agents, without holds, proved zones, sources and their registrants, which policies cannot
    /// use. Reading many cards takes long, so this belongs on a thread that does not serve requests.
    pub fn into_records(self) -> impl Iterator<Item = AgentRecord> {
        let Self {
            agents,
            mut related,
        } = self;
        agents
            .into_iter()
            .filter_map(move |agent| related.take_record(agent))
    }
}

/// Rows by the agent, domain or source that they belong to.
#[derive(Debug)]
struct AgentRelatedRows {
    /// Whether the versions come with their cards.
    has_cards: bool,
    /// By their own ids.
    versions: HashMap<Uuid, version::Model>,
    key_bindings: HashMap<i64, DomainKeyBinding>,
    /// The proved zones of each domain.
    zones: HashMap<i64, Vec<String>>,
    domains: HashMap<i64, domain::Model>,
    holds: HashMap<Uuid, Vec<hold::Model>>,
    sources: HashMap<Uuid, Vec<source::Model>>,
    /// The accounts that have registered a source, by the source.
    registrants: HashMap<i64, Vec<Uuid>>,
    waivers: HashMap<Uuid, Vec<waiver::Model>>,
}

impl AgentRelatedRows {
    async fn load(
        db: &impl Executor,
        rows: &[agent::Model],
        holds: HashMap<Uuid, Vec<hold::Model>>,
        domains: HashMap<i64, domain::Model>,
    ) -> Result<Self, StoreError> {
        // An agent without a current version causes the same reads: no row has the nil id.
        let version_ids = rows
            .iter()
            .map(|row| current_version_id(row).unwrap_or_default());
        let version_ids: Vec<Uuid> = version_ids.collect();
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let versions = versions::versions_by_ids(db, &version_ids).await?;
        let key_bindings = DomainKeyBinding::load_for_domains(db, domains.values()).await?;
        let zones = load_proved_zones(db, &domains).await?;
        let sources = load_sources_by_agent(db, &ids).await?;
        let registrants = load_registrants_by_source(db, rows, &sources).await?;
        Ok(Self {
            has_cards: true,
            waivers: load_waivers_by_agent(db, &ids).await?,
            versions: versions.into_iter().map(|row| (row.id, row)).collect(),
            key_bindings,
            zones,
            domains,
            holds,
            sources,
            registrants,
        })
    }

    /// The record of an agent; `None` if it is left out, which is logged unless the agent never had a card.
    fn take_record(&mut self, agent: agent::Model) -> Option<AgentRecord> {
        let version = current_version_id(&agent).and_then(|id| self.versions.remove(&id))?;
        // A newer build may have written the model; only this agent is left out.
        let card = match self.has_cards {
            true => serde_json::from_str(&version.model),
            false => Ok(AgentCard::default()),
        };
        let card = card
            .inspect_err(|error| {
                let (agent, version) = (agent.id, version.id);
                tracing::error!(%agent, %version, %error, "an agent is left out: its card's model cannot be read");
            })
            .ok()?;
        let domain = self.domains.get(&agent.domain_id)?;
        // The same applies to the states.
        let states = KnownAgentStates::from_rows(&agent, &version, &domain.state)
            .inspect_err(|error| tracing::error!(agent = %agent.id, %error, "an agent cannot be read and is left out"))
            .ok()?;
        let sources = self.sources.remove(&agent.id).unwrap_or_default();
        let key_binding = self.key_bindings.get(&agent.domain_id).cloned();
        Some(AgentRecord {
            source_registrants: self.source_registrants(&sources),
            waivers: self.waivers.remove(&agent.id).unwrap_or_default(),
            states,
            first_registrant: domain.account_id,
            proof_methods: domain.proof_methods.clone().unwrap_or_default(),
            key_binding: key_binding.unwrap_or_default(),
            domain_origin: domain.domain_origin(),
            proved_zones: self
                .zones
                .get(&agent.domain_id)
                .cloned()
                .unwrap_or_default(),
            holds: self.holds.remove(&agent.id).unwrap_or_default(),
            sources,
            agent,
            version,
            card,
        })
    }

    /// The accounts that have registered these sources, each once.
    fn source_registrants(&self, sources: &[source::Model]) -> Vec<Uuid> {
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

async fn load_waivers_by_agent(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<HashMap<Uuid, Vec<waiver::Model>>, StoreError> {
    let mut by_agent: HashMap<Uuid, Vec<waiver::Model>> = HashMap::new();
    for row in waivers::active_waivers_by_agent(db, agents).await? {
        by_agent.entry(row.agent_id).or_default().push(row);
    }
    Ok(by_agent)
}

/// The zones that prove these domains for their owners, by domain.
async fn load_proved_zones(
    db: &impl Executor,
    rows: &HashMap<i64, domain::Model>,
) -> Result<HashMap<i64, Vec<String>>, StoreError> {
    let ids: Vec<i64> = rows.keys().copied().collect();
    let mut zones: HashMap<i64, Vec<String>> = HashMap::new();
    for proof in domains::valid_proofs_by_domain(db, &ids).await? {
        let owner = rows.get(&proof.domain_id).and_then(|row| row.owner_id);
        let is_owners = owner.is_some() && proof.account_id == owner;
        let zone = proof.zone.filter(|_| is_owners);
        zones.entry(proof.domain_id).or_default().extend(zone);
    }
    Ok(zones)
}

async fn load_sources_by_agent(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<HashMap<Uuid, Vec<source::Model>>, StoreError> {
    let mut sources: HashMap<Uuid, Vec<source::Model>> = HashMap::new();
    for row in domains::live_sources_by_agent(db, agents).await? {
        // A source of a kind that only a later build knows is ignored.
        if let Some(agent) = row.agent_id.filter(|_| row.kind.known_value().is_some()) {
            sources.entry(agent).or_default().push(row);
        }
    }
    Ok(sources)
}

/// The accounts that have registered the sources of these agents, by source.
async fn load_registrants_by_source(
    db: &impl Executor,
    agents: &[agent::Model],
    sources: &HashMap<Uuid, Vec<source::Model>>,
) -> Result<HashMap<i64, Vec<Uuid>>, StoreError> {
    let mut source_ids: Vec<i64> = agents
        .iter()
        .flat_map(|row| sources.get(&row.id).into_iter().flatten())
        .map(|source| source.id)
        .collect();
    if source_ids.is_empty() && !agents.is_empty() {
        // An agent without sources causes the same reads: no row has this key.
        source_ids.push(0);
    }
    let mut registrants: HashMap<i64, Vec<Uuid>> = HashMap::new();
    for row in registrants::registrants_of_sources(db, &source_ids).await? {
        let accounts = registrants.entry(row.source_id).or_default();
        accounts.extend(row.account_id);
    }
    Ok(registrants)
}

/// The current version of an agent: the approved one, or the newest if none is approved.
pub fn current_version_id(agent: &agent::Model) -> Option<Uuid> {
    agent.approved_version.or(agent.newest_version)
}

/// The name of the agent in a version of its card.
pub fn card_name(version: &version::Model) -> Option<String> {
    card_model_name(&version.model)
}
