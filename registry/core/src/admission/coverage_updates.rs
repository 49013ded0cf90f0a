//! Updates a domain's agents when the coverage of their cards changes: names, trust levels, slots and decisions
//! (docs/publish/prove.md#what-a-proof-covers).

use std::collections::BTreeSet;

use a2a_card::AgentCard;
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, decision, domain, source, version_source};
use a2a_registry_store::{WriteTransaction, agents, decisions, domains, registrants, versions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage::CoverageEvidence;
use crate::admission::decision::{redecide_pending_version, revoke_approval};
use crate::admission::policies::update_policy_hold;
use crate::admission::urn;
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::sources::source_slot;

pub struct DomainCoverageState<'a> {
    domain: &'a domain::Model,
    evidence: CoverageEvidence,
    sources: Vec<source::Model>,
    version_sources: Vec<version_source::Model>,
    slots: BTreeSet<String>,
}

impl<'a> DomainCoverageState<'a> {
    /// Loads the state of a domain that the caller has locked.
    pub async fn load(
        write: &WriteTransaction,
        row: &'a domain::Model,
        now: Timestamp,
    ) -> Result<Self> {
        let agents = agents::live_agents_by_domain(write, &[row.id]).await?;
        let sources = domains::live_sources_by_domain(write, &[row.id]).await?;
        let version_ids: Vec<Uuid> = agents
            .iter()
            .flat_map(|agent| [agent.newest_version, agent.approved_version])
            .flatten()
            .collect();
        Ok(Self {
            evidence: CoverageEvidence::load(write, [row], &sources, now).await?,
            version_sources: registrants::version_sources_by_version(write, &version_ids).await?,
            slots: agents.into_iter().map(|agent| agent.slot).collect(),
            domain: row,
            sources,
        })
    }

    fn version_coverage(&self, version: Uuid) -> CoverageLevel {
        let sources = self
            .version_sources
            .iter()
            .filter(|one| one.version_id == version);
        self.evidence.version_coverage(sources, self.sources.iter())
    }

    pub fn first_registrant_account(&self, agent: Uuid) -> Option<Uuid> {
        let agent_sources = self.sources_of_agent(agent);
        let mut all = agent_sources
            .iter()
            .flat_map(|(source, _)| self.evidence.registrants(source.id));
        all.find_map(|one| one.account_id)
    }

    /// The identifier of a catalog entry, if a catalog of the domain contains it.
    fn own_catalog_entry_identifier<'r>(&self, row: &'r source::Model) -> Option<&'r str> {
        let mut sources = self.sources.iter();
        let catalog = sources.find(|other| Some(other.id) == row.catalog_id);
        self.evidence.own_catalog_entry_identifier(row, catalog)
    }

    /// The sources of an agent with the coverage of each, oldest first.
    fn sources_of_agent(&self, agent: Uuid) -> Vec<(&source::Model, CoverageLevel)> {
        let is_of_agent = |row: &&source::Model| row.agent_id == Some(agent);
        let source_coverage =
            |row: &'_ source::Model| self.evidence.source_coverage(row, self.sources.iter());
        self.sources
            .iter()
            .filter(is_of_agent)
            .map(|row| (row, source_coverage(row)))
            .collect()
    }
}

pub async fn update_domain_coverage(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
) -> Result<()> {
    let mut coverage_state = DomainCoverageState::load(write, row, change_set.now()).await?;
    for agent in agents::live_agents_by_domain(write, &[row.id]).await? {
        let mut state = load_agent_state(write, agent.id).await?;
        update_agent_coverage(context, write, change_set, &mut coverage_state, &mut state).await?;
    }
    Ok(())
}

/// Updates one agent after the coverage of its cards changed: the sources that keep its slot, its URN, and its
/// decisions.
pub async fn update_agent_coverage(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    coverage_state: &mut DomainCoverageState<'_>,
    state: &mut AgentChangeState,
) -> Result<()> {
    split_agent_sources(write, change_set, coverage_state, state).await?;
    let version_ids: BTreeSet<Uuid> = [state.agent.newest_version, state.agent.approved_version]
        .into_iter()
        .flatten()
        .collect();
    let version_ids: Vec<Uuid> = version_ids.into_iter().collect();
    let keys = versions::version_summaries(write, &version_ids).await?;
    for key in &keys {
        let (before, now) = (
            change_set.version_coverage_level(key),
            coverage_state.version_coverage(key.id),
        );
        if before != now {
            change_set.set_version_coverage(key.id, now);
            let data = json!({"digest": key.digest, "coverage": now.coverage()});
            change_set.add_agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM_ACTOR, data);
        }
    }
    let row = coverage_state.domain;
    let newest = state.agent.newest_version;
    let newest_coverage = newest.map_or(CoverageLevel::Nomination, |id| {
        coverage_state.version_coverage(id)
    });
    name_agent(
        context,
        write,
        change_set,
        coverage_state,
        state,
        newest_coverage,
    )
    .await?;
    let approved = state.agent.approved_version;
    let nominated =
        approved.is_some_and(|id| coverage_state.version_coverage(id) == CoverageLevel::Nomination);
    if nominated
        && !is_domain_on_hold(row)
        && is_approved_by_domain_trust(write, &state.agent).await?
    {
        return revoke_approval(context, write, change_set, state, SYSTEM_ACTOR).await;
    }
    redecide_pending_version(context, write, change_set, state, SYSTEM_ACTOR).await?;
    update_policy_hold(context, write, change_set, state).await
}

/// Gives an agent the URNs that it may have now.
async fn name_agent(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    coverage_state: &DomainCoverageState<'_>,
    state: &mut AgentChangeState,
    newest_coverage: CoverageLevel,
) -> Result<()> {
    let row = coverage_state.domain;
    let is_named = !urn::lacks_own_urn(&state.agent, row)
        && !urn::lacks_authority_urn(&context.config().ard, &state.agent, row);
    if is_named {
        return Ok(());
    }
    let Some(name) = newest_card_name(write, &state.agent).await? else {
        return Ok(());
    };
    let id = state.agent.id;
    let agent_sources = coverage_state
        .sources
        .iter()
        .filter(|source| source.agent_id == Some(id));
    let identifiers: Vec<&str> = agent_sources
        .filter_map(|source| coverage_state.own_catalog_entry_identifier(source))
        .collect();
    let identifiers = identifiers.into_iter();
    let card = (name.as_str(), newest_coverage);
    urn::assign_urns(context, write, change_set, state, row, identifiers, card).await
}

/// Separates the sources of an agent that differ in coverage: those with the highest level keep the agent, and the
/// oldest one on a tie; nominated sources become separate agents.
async fn split_agent_sources(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    coverage_state: &mut DomainCoverageState<'_>,
    state: &mut AgentChangeState,
) -> Result<()> {
    let id = state.agent.id;
    let agent_sources = coverage_state.sources_of_agent(id);
    let best_coverage = agent_sources.iter().map(|(_, standing)| *standing).max();
    let Some(best_coverage) = best_coverage.filter(|best| best.is_admitted()) else {
        return Ok(());
    };
    let slot = |row: &source::Model| {
        source_slot(
            coverage_state.domain,
            row,
            coverage_state.own_catalog_entry_identifier(row),
        )
    };
    let keeps_slot = agent_sources
        .iter()
        .any(|(row, standing)| *standing == best_coverage && slot(row) == state.agent.slot);
    let new_slot = agent_sources
        .iter()
        .filter(|(_, standing)| *standing == best_coverage)
        .map(|(row, _)| slot(row))
        .find(|slot| !coverage_state.slots.contains(slot));
    let nominated_sources: Vec<(i64, String)> = agent_sources
        .iter()
        .filter(|(_, standing)| !standing.is_admitted())
        .map(|(row, _)| (row.id, row.url.clone()))
        .collect();
    if !keeps_slot && let Some(slot) = new_slot {
        coverage_state.slots.insert(slot.clone());
        coverage_state.slots.remove(&state.agent.slot);
        state.agent.slot = slot;
        change_set.mark_agent_changed(state);
    }
    let ids: Vec<i64> = nominated_sources.iter().map(|(id, _)| *id).collect();
    write.detach_sources(&ids).await?;
    for (source, url) in nominated_sources {
        let data = json!({"source": url, "fed": false});
        change_set.add_agent_event(EventKind::AgentUpdated, id, SYSTEM_ACTOR, data);
        for row in coverage_state
            .sources
            .iter_mut()
            .filter(|row| row.id == source)
        {
            row.agent_id = None;
        }
    }
    Ok(())
}

/// Whether all agents of a domain are on hold because of the domain's state. They are not decided during that hold:
/// their approvals are valid again when it ends, unless the domain has a new owner by then. A state of a later build
/// counts as such a hold, because its agents are hidden from everyone.
fn is_domain_on_hold(row: &domain::Model) -> bool {
    match row.state.known_value() {
        Some(DomainState::Unverified | DomainState::Verified) => false,
        Some(DomainState::Lapsed | DomainState::Disputed | DomainState::OptedOut) | None => true,
    }
}

/// Whether the served version was approved only by a rule that trusts the domain. Such an approval ends with that
/// trust.
async fn is_approved_by_domain_trust(
    write: &WriteTransaction,
    agent: &agent::Model,
) -> Result<bool> {
    let agent_decisions = decisions::decisions_by_agent(write, &[agent.id]).await?;
    Ok(last_approval_trusts_domain(
        &agent_decisions,
        agent.approved_version,
    ))
}

/// Whether the last approval that stands by itself was by such a rule. An approval of a small change relies on the one
/// before, and so does one that is not confirmed. An approval by a rule of a later build is left for that build to
/// revoke.
fn last_approval_trusts_domain(
    agent_decisions: &[decision::Model],
    approved: Option<Uuid>,
) -> bool {
    let rule = |made: &decision::Model| made.rule.known_value();
    let is_small_change = |made: &&decision::Model| {
        matches!(
            rule(made),
            Some(Rule::LowChange | Rule::NoChange | Rule::BreakGlass)
        )
    };
    let approvals = agent_decisions.iter().rev().filter(|made| made.approved);
    let mut until_served = approvals.skip_while(|made| Some(made.version_id) != approved);
    let root = until_served.find(|made| !is_small_change(made));
    root.is_some_and(|made| {
        // A custom policy may trust the domain too, so it is evaluated again.
        let trusts = [Rule::AllowDomains, Rule::VerifiedDomain, Rule::Policy];
        rule(made).is_some_and(|rule| trusts.contains(&rule))
    })
}

async fn newest_card_name(
    write: &WriteTransaction,
    agent: &agent::Model,
) -> Result<Option<String>> {
    let ids: Vec<Uuid> = agent.newest_version.into_iter().collect();
    let rows = versions::versions_by_ids(write, &ids).await?;
    let card = rows
        .first()
        .map(|row| serde_json::from_str::<AgentCard>(&row.model));
    let card = card.transpose().map_err(|error| {
        AppError::internal(format!("a stored card model cannot be parsed: {error}"))
    })?;
    Ok(card.map(|card| card.name))
}
