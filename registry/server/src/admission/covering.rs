//! What follows for the agents of a domain when another word stands behind their cards: names, levels, slots and
//! decisions (docs/ownership.md#coverage).

use std::collections::BTreeSet;

use a2a_card::AgentCard;
use a2a_registry_domain::admission::Rule;
use a2a_registry_domain::coverage::Standing;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_store::entity::{agent, decision, domain, source, version_source};
use a2a_registry_store::{Write, agents, coverage, decisions, domains, versions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage::Standings;
use crate::admission::decision::{ask_again, decide_waiting};
use crate::admission::urn;
use crate::commit::ledger::{AgentState, Ledger, SYSTEM};
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::AppError;
use crate::sources::slot_of;

/// A domain with its sources and what they gave.
pub(crate) struct Covering<'a> {
    row: &'a domain::Model,
    standings: Standings,
    sources: Vec<source::Model>,
    gave: Vec<version_source::Model>,
    slots: BTreeSet<String>,
}

impl<'a> Covering<'a> {
    /// As the database has it; the domain is locked by whoever calls.
    pub(crate) async fn load(write: &Write, row: &'a domain::Model) -> Result<Self, AppError> {
        let agents = agents::agents_of(write, &[row.id]).await?;
        let sources = domains::sources_of(write, &[row.id]).await?;
        let shown: Vec<Uuid> = agents
            .iter()
            .flat_map(|agent| [agent.newest_version, agent.approved_version])
            .flatten()
            .collect();
        Ok(Self {
            standings: Standings::load(write, [row], &sources).await?,
            gave: coverage::version_sources_of(write, &shown).await?,
            slots: agents.into_iter().map(|agent| agent.slot).collect(),
            row,
            sources,
        })
    }

    fn of_version(&self, version: Uuid) -> Standing {
        let gave = self.gave.iter().filter(|one| one.version_id == version);
        self.standings.of_version(gave, self.sources.iter())
    }

    /// Whether an agent's source is covered now, or was registered by an account that once held the domain's proof: what
    /// such an agent was named stays its name.
    pub(crate) fn was_ever_covered(&self, agent: Uuid, once_owners: &[Uuid]) -> bool {
        let by_owner = |source: &source::Model| {
            let mut registrants = self.standings.registrants(source.id).iter();
            registrants.any(|one| one.account_id.is_some_and(|id| once_owners.contains(&id)))
        };
        self.feeding(agent)
            .into_iter()
            .any(|(source, standing)| standing == Standing::Covered || by_owner(source))
    }

    /// Whether a source feeds an agent that has not ended.
    pub(crate) fn is_fed(&self, agent: Uuid) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| source.agent_id == Some(agent))
    }

    /// The account that was the first to register a source of an agent.
    pub(crate) fn first_account(&self, agent: Uuid) -> Option<Uuid> {
        let feeding = self.feeding(agent);
        let mut all = feeding
            .iter()
            .flat_map(|(source, _)| self.standings.registrants(source.id));
        all.find_map(|one| one.account_id)
    }

    /// The sources that feed an agent, the oldest first, with whose word stands behind each.
    fn feeding(&self, agent: Uuid) -> Vec<(&source::Model, Standing)> {
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

/// Decides on the agents of a domain anew, whose coverage may be another one now.
pub(crate) async fn follow_coverage(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
) -> Result<(), AppError> {
    let mut covering = Covering::load(write, row).await?;
    for agent in agents::agents_of(write, &[row.id]).await? {
        let mut state = state_of(write, agent.id).await?;
        cover_agent(context, write, ledger, &mut covering, &mut state).await?;
    }
    Ok(())
}

/// Lets one agent follow whose word stands behind its cards: who keeps the slot, its name, and what is decided.
pub(crate) async fn cover_agent(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    covering: &mut Covering<'_>,
    state: &mut AgentState,
) -> Result<(), AppError> {
    part_sources(write, ledger, covering, state).await?;
    let shown: BTreeSet<Uuid> = [state.agent.newest_version, state.agent.approved_version]
        .into_iter()
        .flatten()
        .collect();
    let shown: Vec<Uuid> = shown.into_iter().collect();
    let keys = versions::version_keys(write, &shown).await?;
    for key in &keys {
        let (before, now) = (ledger.standing_of(key), covering.of_version(key.id));
        if before != now {
            ledger.set_standing(key.id, now);
            let data = json!({"digest": key.digest, "coverage": now.coverage()});
            ledger.agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM, data);
        }
    }
    let row = covering.row;
    let newest = state.agent.newest_version;
    let newest = newest.map_or(Standing::Nomination, |id| covering.of_version(id));
    if crate::visibility::is_proved(row)
        && state.agent.urn.is_none()
        && let Some(name) = name_of(write, &state.agent).await?
    {
        let id = state.agent.id;
        let fed = covering
            .sources
            .iter()
            .filter(|source| source.agent_id == Some(id));
        let identifiers = fed.filter_map(|source| source.identifier.as_deref());
        urn::assign(write, ledger, state, row, identifiers, &name, newest).await?;
    }
    let approved = state.agent.approved_version;
    let nominated = approved.is_some_and(|id| covering.of_version(id) == Standing::Nomination);
    if nominated && !is_withheld(row) && by_a_rule_that_trusts(write, &state.agent).await? {
        return ask_again(context, write, ledger, state, SYSTEM).await;
    }
    decide_waiting(context, write, ledger, state, SYSTEM).await
}

/// Where the sources of an agent do not stand alike, the strongest keep it, among equals the oldest; what others have
/// nominated goes its own way.
async fn part_sources(
    write: &Write,
    ledger: &mut Ledger<'_>,
    covering: &mut Covering<'_>,
    state: &mut AgentState,
) -> Result<(), AppError> {
    let id = state.agent.id;
    let feeding = covering.feeding(id);
    let best = feeding.iter().map(|(_, standing)| *standing).max();
    let Some(best) = best.filter(|best| best.is_admitted()) else {
        return Ok(());
    };
    let slot = |row: &source::Model| slot_of(covering.row, row);
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

/// Whether all agents of a domain are withheld for what the domain is. Nothing of them is decided then: what was approved
/// is approved still once that ends, unless it has another owner by then. Nobody is shown an agent whose domain's state
/// is not known, so nothing is decided of it either.
fn is_withheld(row: &domain::Model) -> bool {
    match row.state.known() {
        Some(DomainState::Unverified | DomainState::Verified) => false,
        Some(DomainState::Lapsed | DomainState::Disputed | DomainState::OptedOut) | None => true,
    }
}

/// Whether nothing but a rule that trusts the domain has brought an agent what it serves: such an approval ends with what
/// it was given for.
async fn by_a_rule_that_trusts(write: &Write, agent: &agent::Model) -> Result<bool, AppError> {
    let made = decisions::decisions_on(write, &[agent.id]).await?;
    Ok(trusting_rule(&made, agent.approved_version))
}

/// Whether the approval of what is served rests on such a rule, by the decisions on the agent. A small change rests on
/// the approval before it. An approval by a rule that only a later build knows is that build's to end.
fn trusting_rule(made: &[decision::Model], approved: Option<Uuid>) -> bool {
    let rule = |made: &decision::Model| made.rule.known();
    let small =
        |made: &&decision::Model| matches!(rule(made), Some(Rule::LowChange | Rule::NoChange));
    let approvals = made.iter().rev().filter(|made| made.approved);
    let mut until_served = approvals.skip_while(|made| Some(made.version_id) != approved);
    let root = until_served.find(|made| !small(made));
    root.is_some_and(|made| matches!(rule(made), Some(Rule::AllowDomains | Rule::VerifiedDomain)))
}

/// What the card calls the agent that is shown of it; `None` where it has none yet.
async fn name_of(write: &Write, agent: &agent::Model) -> Result<Option<String>, AppError> {
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
