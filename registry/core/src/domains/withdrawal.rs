//! Withdrawal of registrations, of a source or a whole domain. A caller withdraws its own registrations, and nothing
//! that others rely on.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, domain, source, source_registrant};
use a2a_registry_store::{Write, accounts, agents, coverage};
use serde_json::json;
use uuid::Uuid;

use crate::admission::covering::{DomainCoverage, follow_coverage};
use crate::agents::views::is_agent_visible;
use crate::commit::ledger::Ledger;
use crate::commit::locks::{domain_locked, write_with_followers};
use crate::commit::publish::{commit_ledger, commit_written, searchable};
use crate::commit::state::state_of;
use crate::context::Context;
use crate::domains::acts::domain_visible;
use crate::domains::registered::{DomainSources, is_approved, lies_there};
use crate::error::{AppError, Result};
use crate::ownership::apply_check::follow_redirects;
use crate::ownership::authorization::require_whole_domain;
use crate::ownership::dispute::is_caller_party;
use crate::ownership::{disputed, is_disputed};
use crate::sources::source_name;
use crate::visibility::caller::{Account, Caller};

/// Withdraws the caller's registration of a source. The source ends with its last registration, and with it the agents
/// that have no other source, unless they were approved. Sources of the proved owner stay. Refuses the last
/// registration of a source of an approved agent, and any while the domain is disputed.
pub async fn source_withdraw(
    context: &Context,
    caller: &Caller,
    domain: &str,
    source: &str,
) -> Result<()> {
    let account = caller.demand(Permission::Register)?;
    let seen = domain_visible(context, caller, domain).await?;
    let missing = || {
        let name = &seen.name;
        AppError::not_found(format!(
            "{name} has no source {source} that you have registered."
        ))
    };
    let write = context.store.write().await?;
    let row = domain_locked(&write, &seen).await?;
    let registered = DomainSources::load(&write, &row, context.now()).await?;
    let mut sources = registered.sources.iter();
    let id = sources
        .find(|known| source_name(context, known) == source)
        .map(|known| known.id)
        .filter(|id| registered.is_own(account.id, *id));
    let ended = coverage::ended_registrations(&write, &[row.id], account.id).await?;
    let ended = ended
        .iter()
        .filter(|(known, _)| source_name(context, known) == source);
    let ended: Vec<i64> = ended.map(|(known, _)| known.id).collect();
    if id.is_none() && ended.is_empty() {
        return Err(missing());
    }
    if is_disputed(&row)? && !caller.may(Permission::Curate) {
        return Err(disputed(&row));
    }
    write.registrations_end(&ended, account.id).await?;
    let Some(id) = id else {
        write.commit().await?;
        return Ok(());
    };
    let mut ending = registered.ending(account.id, &[id]);
    let approved = approved_agent_of(&registered, &ending);
    let is_seen = match approved {
        Some(agent) => is_agent_visible(context, &write, caller, Some(agent)).await?,
        None => false,
    };
    if approved.is_some() && !is_seen {
        // The source stays for the agent; a refusal would reveal an agent that is hidden from the caller.
        ending.clear();
    }
    if let Some(agent) = approved.filter(|_| is_seen) {
        return Err(source_needed_error(agent));
    }
    let withdrawal = Withdrawal {
        by: account,
        withdrawn: vec![id],
        ending,
        waits: may_see_wait(caller, &row, &registered),
    };
    withdraw_registrations(context, write, &row, &registered, withdrawal).await
}

fn source_needed_error(agent: &agent::Model) -> AppError {
    AppError::conflict(format!(
        "This source gives the card of the approved agent {}; retire the agent first, or have another account register the source.",
        agent.id
    ))
}

/// The first approved agent whose card comes from one of these sources.
fn approved_agent_of<'a>(registered: &'a DomainSources, ids: &[i64]) -> Option<&'a agent::Model> {
    let mut sources = registered.sources.iter();
    sources.find_map(|source| {
        let gives = |agent: &&agent::Model| {
            ids.contains(&source.id) && source.agent_id == Some(agent.id) && is_approved(agent)
        };
        registered.agents.iter().find(gives)
    })
}

/// Deletes a domain: its agents are retired, and its name can be registered again. A caller who has only registered it
/// withdraws its own sources, and the domain ends if no source of others is left; it is refused if the domain has
/// approved agents of others.
pub async fn domain_delete(context: &Context, caller: &Caller, domain: &str) -> Result<()> {
    let account = caller.demand(Permission::Register)?;
    let seen = domain_visible(context, caller, domain).await?;
    let (write, row, followers) = write_with_followers(context, &seen).await?;
    let registered = DomainSources::load(&write, &row, context.now()).await?;
    let own: Vec<i64> = registered
        .sources
        .iter()
        .map(|source| source.id)
        .filter(|id| registered.is_own(account.id, *id))
        .collect();
    let ended = coverage::ended_registrations(&write, &[row.id], account.id).await?;
    let ended: Vec<i64> = ended.iter().map(|(source, _)| source.id).collect();
    let may_delete = caller.may(Permission::Curate) || caller.is(row.owner_at(context.now()));
    let is_first = caller.is(row.account_id);
    let is_party = is_caller_party(&write, caller, &row).await?;
    // A caller that is neither party nor first registrant must not learn whether the domain is proved.
    let is_proved = registered.is_proved && (is_first || is_party);
    let has_none = own.is_empty() && ended.is_empty();
    if may_delete || is_proved || (has_none && !is_first) {
        require_whole_domain(&write, caller, &row, context.now()).await?;
        return end_domain(context, write, &row, &followers, &account.name).await;
    }
    let ending = registered.ending(account.id, &own);
    let rest: Vec<&source::Model> = registered
        .sources
        .iter()
        .filter(|source| !ending.contains(&source.id))
        .collect();
    let others: BTreeSet<Uuid> = rest.iter().filter_map(|source| source.agent_id).collect();
    let is_others = |agent: &&agent::Model| others.contains(&agent.id) && is_approved(agent);
    for agent in registered.agents.iter().filter(is_others) {
        // A refusal would reveal an agent that is hidden from the caller.
        if is_agent_visible(context, &write, caller, Some(agent)).await? {
            return Err(AppError::conflict(format!(
                "{} has approved agents that others have registered, such as {}; withdraw your own sources one by one.",
                row.name, agent.id
            )));
        }
    }
    if rest.is_empty() && !registered.is_proved {
        return end_domain(context, write, &row, &followers, &account.name).await;
    }
    write.registrations_end(&ended, account.id).await?;
    let withdrawal = Withdrawal {
        by: account,
        withdrawn: own,
        ending,
        waits: may_see_wait(caller, &row, &registered),
    };
    withdraw_registrations(context, write, &row, &registered, withdrawal).await
}

/// Withdraws registrations and ends sources; agents without another source are retired, and those whose coverage
/// changes are decided again.
async fn withdraw_registrations(
    context: &Context,
    write: Write,
    row: &domain::Model,
    registered: &DomainSources,
    withdrawal: Withdrawal<'_>,
) -> Result<()> {
    let now = context.now();
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    end_registrations(&write, &mut ledger, row, registered, &withdrawal).await?;
    assign_to_owner(context, &write, registered, &withdrawal).await?;
    for agent in registered.without_source(&withdrawal.ending) {
        let mut state = state_of(&write, agent.id).await?;
        let reason = "its registration was withdrawn";
        ledger.retire(&mut state, &withdrawal.by.name, reason);
    }
    update_submitter(&write, &mut ledger, row, registered, &withdrawal).await?;
    if !withdrawal.leaves_own(registered) {
        write.challenge_end(row.id, withdrawal.by.id).await?;
    }
    // Written before the agents are updated, which reads them from the database.
    let touched = ledger.write(&write).await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    follow_coverage(context, &write, &mut ledger, row).await?;
    update_agents(&mut ledger, registered, &withdrawal);
    let regarded = ledger.write(&write).await?;
    commit_written(context, write, [&touched, &regarded]).await?;
    if withdrawal.waits {
        searchable(context, &[&touched, &regarded]).await;
    }
    Ok(())
}

/// Whether the response to a caller may wait for the index. A caller that neither owns the domain nor registered it
/// first would learn from the wait that a source gives a listed agent, hidden from it or not.
fn may_see_wait(caller: &Caller, row: &domain::Model, registered: &DomainSources) -> bool {
    let is_own = caller.is(registered.owner) || caller.is(row.account_id);
    is_own || caller.may(Permission::SeeAll)
}

/// Ends the withdrawn registrations, and the sources that end with them.
async fn end_registrations(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    registered: &DomainSources,
    withdrawal: &Withdrawal<'_>,
) -> Result<()> {
    write
        .registrations_end(&withdrawal.withdrawn, withdrawal.by.id)
        .await?;
    for source in &registered.sources {
        if withdrawal.withdrawn.contains(&source.id) {
            let ends = withdrawal.ending.contains(&source.id);
            let data = json!({"kind": source.kind, "url": source.url, "ended": ends});
            let kind = EventKind::DomainWithdrawn;
            ledger.event(kind, &row.name, &withdrawal.by.name, data);
        }
    }
    for id in &withdrawal.ending {
        write.source_end(*id, ledger.now().0).await?;
    }
    // A source that ends with its registration is no decision on its agent: a catalog may name it again.
    write.sources_detach(&withdrawal.ending).await?;
    if !withdrawal.ending.is_empty() {
        // A catalog that stays is fetched in full: unchanged, it would not list its entries again.
        write.sources_want_full(row.id).await?;
    }
    Ok(())
}

/// Appends events for the agents whose sources lost a registration or ended.
fn update_agents(ledger: &mut Ledger<'_>, registered: &DomainSources, withdrawal: &Withdrawal<'_>) {
    for source in &registered.sources {
        let Some(agent) = source.agent_id else {
            continue;
        };
        let data = if withdrawal.withdrawn.contains(&source.id) {
            // This changes who may see it.
            json!({"source": source.url, "registered": false})
        } else if withdrawal.ending.contains(&source.id) {
            json!({"source": source.url, "fed": false})
        } else {
            continue;
        };
        ledger.agent_event(EventKind::AgentUpdated, agent, &withdrawal.by.name, data);
    }
}

/// Assigns the sources that stay without a registrant: those at a place that only the domain controls go to its owner;
/// catalog entries stay without one, so that they are covered as long as the catalog names them.
async fn assign_to_owner(
    context: &Context,
    write: &Write,
    registered: &DomainSources,
    withdrawal: &Withdrawal<'_>,
) -> Result<()> {
    let owner: Vec<Uuid> = registered.owner.into_iter().collect();
    let owner = accounts::accounts_by_ids(write, &owner).await?.pop();
    for id in &withdrawal.withdrawn {
        if withdrawal.ending.contains(id) || registered.is_others(withdrawal.by.id, *id) {
            continue;
        }
        let mut sources = registered.sources.iter();
        let lies_with_it = |source: &source::Model| source.id == *id && lies_there(source);
        let left_to = owner.as_ref().filter(|_| sources.any(lies_with_it));
        let left = source_registrant::Model {
            id: 0,
            source_id: *id,
            account_id: left_to.map(|owner| owner.id),
            network: None,
            role: left_to.map(|owner| owner.role.clone()),
            registered_at: context.now().0,
        };
        write.registrant_add(left).await?;
    }
    Ok(())
}

/// Sets an agent's submitter to the first account that is still a registrant of one of its sources.
async fn update_submitter(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    registered: &DomainSources,
    withdrawal: &Withdrawal<'_>,
) -> Result<()> {
    let by = Some(withdrawal.by.id);
    let left: BTreeSet<Uuid> = registered
        .sources
        .iter()
        .filter(|source| withdrawal.withdrawn.contains(&source.id))
        .filter_map(|source| source.agent_id)
        .collect();
    let without_source = registered.without_source(&withdrawal.ending);
    let covering = DomainCoverage::load(write, row, ledger.now()).await?;
    for agent in &registered.agents {
        let ends = without_source.iter().any(|one| one.id == agent.id);
        if ends || agent.submitter != by || !left.contains(&agent.id) {
            continue;
        }
        let first = covering.first_account(agent.id);
        ledger.put_agent(&agent::Model {
            submitter: first,
            ..agent.clone()
        });
    }
    Ok(())
}

/// Ends a domain in the write that has checked it, so that no other write comes in between.
async fn end_domain(
    context: &Context,
    write: Write,
    row: &domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<()> {
    let now = context.now();
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    for agent in agents::agents_of(&write, &[row.id]).await? {
        let mut state = state_of(&write, agent.id).await?;
        ledger.retire(&mut state, actor, "the domain was deleted");
    }
    write.peer_candidates_delete(row.id).await?;
    write.domain_end(row.id, now.0).await?;
    ledger.event(EventKind::DomainDeleted, &row.name, actor, json!({}));
    follow_redirects(context, &write, &mut ledger, followers).await?;
    commit_ledger(context, write, ledger).await
}

struct Withdrawal<'a> {
    by: &'a Account,
    /// The sources whose registration it withdraws.
    withdrawn: Vec<i64>,
    /// The sources that end with it: those without another registrant, and the entries of such catalogs.
    ending: Vec<i64>,
    /// Whether the response waits until the index shows the consequences.
    waits: bool,
}

impl Withdrawal<'_> {
    /// Whether the account keeps another registration of a source of the domain.
    fn leaves_own(&self, registered: &DomainSources) -> bool {
        registered.sources.iter().any(|source| {
            registered.is_own(self.by.id, source.id) && !self.withdrawn.contains(&source.id)
        })
    }
}
