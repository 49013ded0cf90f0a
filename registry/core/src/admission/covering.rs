//! Updates the agents of a domain when the coverage of their cards changes: names, trust levels, slots and decisions
//! (docs/ownership.md#coverage).

use std::collections::BTreeSet;

use a2a_card::AgentCard;
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, decision, domain, source, version_source};
use a2a_registry_store::{Write, agents, coverage, decisions, domains, versions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage::SourceCoverage;
use crate::admission::decision::{decide_waiting, revoke_approval};
use crate::admission::policies::follow_policies;
use crate::admission::urn;
use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::sources::slot_of;

pub struct DomainCoverage<'a> {
    row: &'a domain::Model,
    standings: SourceCoverage,
    sources: Vec<source::Model>,
    gave: Vec<version_source::Model>,
    slots: BTreeSet<String>,
}

impl<'a> DomainCoverage<'a> {
    /// The caller has locked the domain.
    pub async fn load(write: &Write, row: &'a domain::Model, now: Timestamp) -> Result<Self> {
        let agents = agents::agents_of(write, &[row.id]).await?;
        let sources = domains::sources_of(write, &[row.id]).await?;
        let shown: Vec<Uuid> = agents
            .iter()
            .flat_map(|agent| [agent.newest_version, agent.approved_version])
            .flatten()
            .collect();
        Ok(Self {
            standings: SourceCoverage::load(write, [row], &sources, now).await?,
            gave: coverage::version_sources_of(write, &shown).await?,
            slots: agents.into_iter().map(|agent| agent.slot).collect(),
            row,
            sources,
        })
    }

    fn of_version(&self, version: Uuid) -> CoverageLevel {
        let gave = self.gave.iter().filter(|one| one.version_id == version);
        self.standings.of_version(gave, self.sources.iter())
    }

    pub fn first_account(&self, agent: Uuid) -> Option<Uuid> {
        let feeding = self.feeding(agent);
        let mut all = feeding
            .iter()
            .flat_map(|(source, _)| self.standings.registrants(source.id));
        all.find_map(|one| one.account_id)
    }

    /// The identifier of an entry, if a catalog of the domain gave it.
    fn identifier<'r>(&self, row: &'r source::Model) -> Option<&'r str> {
        let mut sources = self.sources.iter();
        let catalog = sources.find(|other| Some(other.id) == row.catalog_id);
        self.standings.identifier(row, catalog)
    }

    /// The sources of an agent with the coverage of each, the oldest first.
    fn feeding(&self, agent: Uuid) -> Vec<(&source::Model, CoverageLevel)> {
        let fed = |row: &&source::Model| row.agent_id == Some(agent);
        let with_standing =
            |row: &'_ source::Model| self.standings.of_source(row, self.sources.iter());
        self.sources
            .iter()
            .filter(fed)
            .map(|row| (row, with_standing(row)))
            .collect()
    }
}

pub async fn follow_coverage(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
) -> Result<()> {
    let mut covering = DomainCoverage::load(write, row, ledger.now()).await?;
    for agent in agents::agents_of(write, &[row.id]).await? {
        let mut state = state_of(write, agent.id).await?;
        cover_agent(context, write, ledger, &mut covering, &mut state).await?;
    }
    Ok(())
}

/// Updates one agent for the coverage of its cards: which sources keep the slot, its URN, and the decisions.
pub async fn cover_agent(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    covering: &mut DomainCoverage<'_>,
    state: &mut AgentState,
) -> Result<()> {
    part_sources(write, ledger, covering, state).await?;
    let shown: BTreeSet<Uuid> = [state.agent.newest_version, state.agent.approved_version]
        .into_iter()
        .flatten()
        .collect();
    let shown: Vec<Uuid> = shown.into_iter().collect();
    let keys = versions::version_keys(write, &shown).await?;
    for key in &keys {
        let (before, now) = (ledger.coverage_of(key), covering.of_version(key.id));
        if before != now {
            ledger.set_coverage(key.id, now);
            let data = json!({"digest": key.digest, "coverage": now.coverage()});
            ledger.agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM, data);
        }
    }
    let row = covering.row;
    let newest = state.agent.newest_version;
    let newest = newest.map_or(CoverageLevel::Nomination, |id| covering.of_version(id));
    if row.is_proved()
        && state.agent.urn.is_none()
        && let Some(name) = name_of(write, &state.agent).await?
    {
        let id = state.agent.id;
        let fed = covering
            .sources
            .iter()
            .filter(|source| source.agent_id == Some(id));
        let identifiers: Vec<&str> = fed
            .filter_map(|source| covering.identifier(source))
            .collect();
        let identifiers = identifiers.into_iter();
        urn::assign(write, ledger, state, row, identifiers, &name, newest).await?;
    }
    let approved = state.agent.approved_version;
    let nominated = approved.is_some_and(|id| covering.of_version(id) == CoverageLevel::Nomination);
    if nominated && !is_withheld(row) && by_a_rule_that_trusts(write, &state.agent).await? {
        return revoke_approval(context, write, ledger, state, SYSTEM).await;
    }
    decide_waiting(context, write, ledger, state, SYSTEM).await?;
    follow_policies(context, write, ledger, state).await
}

/// Separates the sources of an agent that differ in coverage: those with the highest level keep the agent, among equals
/// the oldest; nominated ones become agents of their own.
async fn part_sources(
    write: &Write,
    ledger: &mut Ledger<'_>,
    covering: &mut DomainCoverage<'_>,
    state: &mut AgentState,
) -> Result<()> {
    let id = state.agent.id;
    let feeding = covering.feeding(id);
    let best = feeding.iter().map(|(_, standing)| *standing).max();
    let Some(best) = best.filter(|best| best.is_admitted()) else {
        return Ok(());
    };
    let slot = |row: &source::Model| slot_of(covering.row, row, covering.identifier(row));
    let keeps = feeding
        .iter()
        .any(|(row, standing)| *standing == best && slot(row) == state.agent.slot);
    let heir = feeding
        .iter()
        .filter(|(_, standing)| *standing == best)
        .map(|(row, _)| slot(row))
        .find(|slot| !covering.slots.contains(slot));
    let leaving: Vec<(i64, String)> = feeding
        .iter()
        .filter(|(_, standing)| !standing.is_admitted())
        .map(|(row, _)| (row.id, row.url.clone()))
        .collect();
    if !keeps && let Some(slot) = heir {
        covering.slots.insert(slot.clone());
        covering.slots.remove(&state.agent.slot);
        state.agent.slot = slot;
        ledger.touch(state);
    }
    let ids: Vec<i64> = leaving.iter().map(|(id, _)| *id).collect();
    write.sources_detach(&ids).await?;
    for (source, url) in leaving {
        let data = json!({"source": url, "fed": false});
        ledger.agent_event(EventKind::AgentUpdated, id, SYSTEM, data);
        for row in covering.sources.iter_mut().filter(|row| row.id == source) {
            row.agent_id = None;
        }
    }
    Ok(())
}

/// Whether all agents of a domain are on hold for the domain's state. Nothing is decided on them meanwhile: approvals
/// are valid again when the hold ends, unless the domain has a new owner by then. A state that only a later build knows
/// counts as such a hold, because its agents are shown to no one.
fn is_withheld(row: &domain::Model) -> bool {
    match row.state.known() {
        Some(DomainState::Unverified | DomainState::Verified) => false,
        Some(DomainState::Lapsed | DomainState::Disputed | DomainState::OptedOut) | None => true,
    }
}

/// Whether the served version was approved only by a rule that trusts the domain: such an approval ends with that
/// trust.
async fn by_a_rule_that_trusts(write: &Write, agent: &agent::Model) -> Result<bool> {
    let made = decisions::decisions_on(write, &[agent.id]).await?;
    Ok(trusting_rule(&made, agent.approved_version))
}

/// Whether the last decision that is not on a small change was by such a rule: a small change relies on the one before,
/// and so does an approval that is not confirmed. An approval by a rule that only a later build knows is left for that
/// build to revoke.
fn trusting_rule(made: &[decision::Model], approved: Option<Uuid>) -> bool {
    let rule = |made: &decision::Model| made.rule.known();
    let small = |made: &&decision::Model| {
        matches!(
            rule(made),
            Some(Rule::LowChange | Rule::NoChange | Rule::BreakGlass)
        )
    };
    let approvals = made.iter().rev().filter(|made| made.approved);
    let mut until_served = approvals.skip_while(|made| Some(made.version_id) != approved);
    let root = until_served.find(|made| !small(made));
    root.is_some_and(|made| {
        // A written policy may trust the domain too, so it is evaluated again.
        let trusts = [Rule::AllowDomains, Rule::VerifiedDomain, Rule::Policy];
        rule(made).is_some_and(|rule| trusts.contains(&rule))
    })
}

async fn name_of(write: &Write, agent: &agent::Model) -> Result<Option<String>> {
    let ids: Vec<Uuid> = agent.newest_version.into_iter().collect();
    let rows = versions::versions_by_ids(write, &ids).await?;
    let card = rows
        .first()
        .map(|row| serde_json::from_str::<AgentCard>(&row.model));
    let card = card
        .transpose()
        .map_err(|error| AppError::internal(format!("a kept model is broken: {error}")))?;
    Ok(card.map(|card| card.name))
}
