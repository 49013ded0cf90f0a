//! Finds who registered the sources that were stored without their registrants, and decides again on their agents
//! (docs/ownership.md#coverage).
//!
//! Done once at a start, domain by domain; a start that is interrupted does the rest the next time. Later starts handle
//! only sources without a registrant, which a process of an older release adds.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::{
    account, agent, domain, event, source, source_registrant, version_source, withdrawn_urn,
};
use a2a_registry_store::{Write, accounts, agents, coverage, domains, events, settings};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::admission::coverage::origin_of;
use crate::admission::covering::{DomainCoverage, cover_agent};
use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::publish::after_write;
use crate::commit::state::{AgentState, state_of};
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::AppError;
use crate::sources::slot_of;

/// The setting that marks every domain as done.
const DONE: &str = "sources_attributed";
/// Domains per transaction.
const PAGE: u64 = 200;

/// Attributes the sources without a registrant, and decides again on their agents.
pub(crate) async fn attribute_sources(context: &Context) -> Result<(), AppError> {
    let done = settings::setting_get(&context.store, DONE).await?.is_some();
    let mut after = 0;
    loop {
        let ids = coverage::domains_walk(&context.store, after, done, PAGE).await?;
        let Some(last) = ids.last() else { break };
        after = *last;
        let write = context.store.write().await?;
        let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
        for row in coverage::domains_locked(&write, &ids).await? {
            attribute(context, &write, &mut ledger, &row).await?;
        }
        let touched: Touched = ledger.write(&write).await?;
        write.commit().await?;
        after_write(context, &touched);
    }
    if !done {
        let write = context.store.write().await?;
        write.setting_put(DONE, "1").await?;
        write.commit().await?;
    }
    Ok(())
}

async fn attribute(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
) -> Result<(), AppError> {
    let agents = agents::agents_of(write, &[row.id]).await?;
    let sources = domains::sources_of(write, &[row.id]).await?;
    store_registrants(write, row, &sources).await?;
    store_version_sources(write, row, &agents, &sources).await?;
    // The origin that answered was not stored: a full fetch of every source finds it.
    write.sources_want_full(row.id).await?;
    let once_owners = coverage::accounts_that_proved(write, row.id).await?;
    let mut covering = DomainCoverage::load(write, row, ledger.now()).await?;
    for agent in agents {
        let mut state = state_of(write, agent.id).await?;
        // For an agent without a source nobody knows who placed its card, and its URN is not withdrawn on suspicion.
        let is_fed = covering.is_fed(agent.id);
        if is_fed && !covering.was_ever_covered(agent.id, &once_owners) {
            withdraw_urn(write, ledger, row, &mut state).await?;
        }
        cover_agent(context, write, ledger, &mut covering, &mut state).await?;
        name_submitter(ledger, &covering, &mut state);
        ledger.put_agent(&state.agent);
    }
    Ok(())
}

/// The submitter of an agent becomes the account that was the first to register a source of it; the log keeps both.
fn name_submitter(ledger: &mut Ledger<'_>, covering: &DomainCoverage<'_>, state: &mut AgentState) {
    let before = state.agent.submitter;
    let first = covering.first_account(state.agent.id);
    if first.is_some() && first != before {
        state.agent.submitter = first;
        let data = json!({"submitter": first, "before": before});
        ledger.agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM, data);
    }
}

/// Withdraws the URN of an agent whose card was never covered by a proof of its domain.
async fn withdraw_urn(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    state: &mut AgentState,
) -> Result<(), AppError> {
    let Some(urn) = state.agent.urn.take() else {
        return Ok(());
    };
    write
        .urn_withdraw(withdrawn_urn::Model {
            urn: urn.clone(),
            domain: row.name.clone(),
            agent_id: state.agent.id,
            at: ledger.now().0,
        })
        .await?;
    ledger.touch(state);
    let data = json!({"urn": null, "withdrawn": urn});
    ledger.agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM, data);
    Ok(())
}

/// Stores the registrants of a domain's sources: the accounts in the registration events, else the account that
/// registered the domain.
async fn store_registrants(
    write: &Write,
    row: &domain::Model,
    sources: &[source::Model],
) -> Result<(), AppError> {
    let sources = without_registrants(write, sources).await?;
    if sources.is_empty() {
        return Ok(());
    }
    let registrations = Registrations::load(write, row).await?;
    let first: Vec<Uuid> = row.account_id.into_iter().collect();
    let first = accounts::accounts_by_ids(write, &first).await?.pop();
    for source in sources {
        let mut registrants = registrations.of_source(source);
        if registrants.is_empty() {
            registrants.push((first.clone(), source.created_at));
        }
        for (account, at) in registrants {
            write
                .registrant_add(registrant(row, source, account, at))
                .await?;
        }
    }
    Ok(())
}

/// The sources that need a registrant and have none.
async fn without_registrants<'a>(
    write: &Write,
    sources: &'a [source::Model],
) -> Result<Vec<&'a source::Model>, AppError> {
    let ids: Vec<i64> = sources.iter().map(|source| source.id).collect();
    let known: BTreeSet<i64> = coverage::registrants_of(write, &ids)
        .await?
        .into_iter()
        .map(|known| known.source_id)
        .collect();
    let is_registered = |kind: SourceKind| kind != SourceKind::Entry;
    let unknown = |source: &&source::Model| {
        !known.contains(&source.id) && source.kind.known().is_some_and(is_registered)
    };
    Ok(sources.iter().filter(unknown).collect())
}

/// The events of registrations on a domain, and the accounts that they name.
struct Registrations {
    events: Vec<event::Model>,
    accounts: BTreeMap<String, Option<account::Model>>,
}

impl Registrations {
    async fn load(write: &Write, row: &domain::Model) -> Result<Self, AppError> {
        let mut events = events::registrations_of(write, &row.name).await?;
        events.retain(|event| event.at >= row.created_at);
        let mut accounts = BTreeMap::new();
        for event in &events {
            if !accounts.contains_key(&event.actor) {
                let account = accounts::account_by_name(write, &event.actor).await?;
                accounts.insert(event.actor.clone(), account);
            }
        }
        Ok(Self { events, accounts })
    }

    /// The accounts that registered a source, with the time; `None` for an anonymous registration.
    fn of_source(&self, source: &source::Model) -> Vec<(Option<account::Model>, i64)> {
        let account = |event: &event::Model| self.accounts.get(&event.actor).cloned().flatten();
        let matching = self.events.iter().filter(|event| registers(event, source));
        matching.map(|event| (account(event), event.at)).collect()
    }
}

/// A registrant row of a source: of the account, or of the network that the domain was nominated from.
fn registrant(
    row: &domain::Model,
    source: &source::Model,
    account: Option<account::Model>,
    at: i64,
) -> source_registrant::Model {
    source_registrant::Model {
        id: 0,
        source_id: source.id,
        account_id: account.as_ref().map(|account| account.id),
        network: match account {
            Some(_) => None,
            None => row.nominated_from.clone(),
        },
        role: account.map(|account| account.role),
        registered_at: at,
    }
}

/// Whether an event is a registration of this source. The event of a bare domain names the first source that it added.
fn registers(event: &event::Model, source: &source::Model) -> bool {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let text = |member: &str| data.get(member).and_then(Value::as_str).unwrap_or_default();
    let kind: Option<SourceKind> = text("kind").parse().ok();
    let of_domain = |kind: SourceKind| kind == SourceKind::WellKnown || kind.is_catalog();
    match kind {
        Some(kind) if of_domain(kind) => {
            source.kind.known().is_some_and(of_domain)
                && origin_of(text("url")) == origin_of(&source.url)
        }
        _ => text("url") == source.url,
    }
}

/// Stores the sources of the versions that are shown: the newest version came from all of an agent's sources, an older
/// one from the source whose slot the agent has.
async fn store_version_sources(
    write: &Write,
    row: &domain::Model,
    agents: &[agent::Model],
    sources: &[source::Model],
) -> Result<(), AppError> {
    let shown: Vec<Uuid> = agents
        .iter()
        .flat_map(|agent| [agent.newest_version, agent.approved_version])
        .flatten()
        .collect();
    let known: BTreeSet<Uuid> = coverage::version_sources_of(write, &shown)
        .await?
        .into_iter()
        .map(|gave| gave.version_id)
        .collect();
    let mut gave = Vec::new();
    for agent in agents {
        let feeding = sources
            .iter()
            .filter(|source| source.agent_id == Some(agent.id));
        for source in feeding {
            let newest = agent.newest_version;
            let own_slot = slot_of(row, source, source.identifier.as_deref()) == agent.slot;
            let older = agent
                .approved_version
                .filter(|approved| own_slot && Some(*approved) != newest);
            for version in newest.into_iter().chain(older) {
                if !known.contains(&version) {
                    gave.push(version_source::Model {
                        version_id: version,
                        source_id: source.id,
                        answered_by: origin_of(&source.url),
                    });
                }
            }
        }
    }
    Ok(write.version_sources_put(gave).await?)
}
