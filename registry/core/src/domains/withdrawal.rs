//! Withdrawal of registrations of a source or a whole domain. A caller can withdraw its own registrations, but nothing
//! that others rely on.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, domain, source, source_registrant};
use a2a_registry_store::{WriteTransaction, accounts, agents, registrants};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage_updates::{DomainCoverageState, update_domain_coverage};
use crate::agents::views::is_agent_visible;
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::locks::{lock_domain, lock_domain_with_dependents};
use crate::commit::publish::{await_searchable_agents, commit_and_publish, commit_changes};
use crate::context::AppContext;
use crate::domains::actions::find_visible_domain;
use crate::domains::registered_sources::{
    DomainSources, has_approved_version, is_domain_controlled_source,
};
use crate::error::{AppError, Result};
use crate::ownership::apply_check::redecide_redirected_cards;
use crate::ownership::authorization::require_whole_domain_owner;
use crate::ownership::dispute::is_caller_dispute_party;
use crate::ownership::{dispute_error, is_disputed_domain};
use crate::secrets::source_credentials::remove_credentials;
use crate::sources::public_source_id;
use crate::visibility::caller::{Caller, CallerAccount};

/// Withdraws the caller's registration of a source. The source ends with its last registration, and so do agents
/// without another source, unless they were approved. Sources of the proved owner stay. Refuses to withdraw the last
/// registration of an approved agent's source, and any registration while the domain is disputed.
pub async fn source_withdraw(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    source: &str,
) -> Result<()> {
    let account = caller.require_permission(Permission::Register)?;
    let unlocked = find_visible_domain(context, caller, domain).await?;
    let not_found = || {
        let name = &unlocked.name;
        AppError::not_found(format!("{name} has no source {source} registered by you."))
    };
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    let domain_sources = DomainSources::load(&write, &row, context.now()).await?;
    let mut sources = domain_sources.sources.iter();
    let id = sources
        .find(|known| public_source_id(context, known) == source)
        .map(|known| known.id)
        .filter(|id| domain_sources.is_registered_by(account.id, *id));
    let ended = registrants::registered_ended_sources(&write, &[row.id], account.id).await?;
    let ended = ended
        .iter()
        .filter(|(known, _)| public_source_id(context, known) == source);
    let ended: Vec<i64> = ended.map(|(known, _)| known.id).collect();
    if id.is_none() && ended.is_empty() {
        return Err(not_found());
    }
    if is_disputed_domain(&row)? && !caller.has_permission(Permission::Curate) {
        return Err(dispute_error(&row));
    }
    write
        .delete_source_registrations(&ended, account.id)
        .await?;
    let Some(id) = id else {
        write.commit().await?;
        return Ok(());
    };
    let mut ending_sources = domain_sources.sources_ending(account.id, &[id]);
    let approved_agent = find_approved_agent(&domain_sources, &ending_sources);
    let is_visible = match approved_agent {
        Some(agent) => is_agent_visible(context, &write, caller, Some(agent)).await?,
        None => false,
    };
    if approved_agent.is_some() && !is_visible {
        // The agent keeps the source. A refusal would reveal an agent that is hidden from the caller.
        ending_sources.clear();
    }
    if let Some(agent) = approved_agent.filter(|_| is_visible) {
        return Err(agent_needs_source_error(agent));
    }
    let withdrawal = RegistrationWithdrawal {
        account,
        withdrawn_sources: vec![id],
        ending_sources,
        waits_for_index: may_wait_for_index(caller, &row, &domain_sources),
    };
    withdraw_registrations(context, write, &row, &domain_sources, withdrawal).await
}

fn agent_needs_source_error(agent: &agent::Model) -> AppError {
    AppError::conflict(format!(
        "This source provides the card of the approved agent {}. Retire the agent first, or have another \
             account register the source.",
        agent.id
    ))
}

/// Finds the first approved agent whose card comes from one of these sources.
fn find_approved_agent<'a>(
    domain_sources: &'a DomainSources,
    ids: &[i64],
) -> Option<&'a agent::Model> {
    let mut sources = domain_sources.sources.iter();
    sources.find_map(|source| {
        let gives = |agent: &&agent::Model| {
            ids.contains(&source.id)
                && source.agent_id == Some(agent.id)
                && has_approved_version(agent)
        };
        domain_sources.agents.iter().find(gives)
    })
}

/// Deletes a domain: its agents are retired, and its name can be registered again. For a caller that is only a
/// registrant this withdraws its own sources, and the domain ends if no source of others is left; it is refused if the
/// domain has approved agents of others.
pub async fn domain_delete(context: &AppContext, caller: &Caller, domain: &str) -> Result<()> {
    let account = caller.require_permission(Permission::Register)?;
    let unlocked = find_visible_domain(context, caller, domain).await?;
    let (write, row, followers) = lock_domain_with_dependents(context, &unlocked).await?;
    let domain_sources = DomainSources::load(&write, &row, context.now()).await?;
    let own_sources: Vec<i64> = domain_sources
        .sources
        .iter()
        .map(|source| source.id)
        .filter(|id| domain_sources.is_registered_by(account.id, *id))
        .collect();
    let ended = registrants::registered_ended_sources(&write, &[row.id], account.id).await?;
    let ended: Vec<i64> = ended.iter().map(|(source, _)| source.id).collect();
    let may_delete = caller.has_permission(Permission::Curate)
        || caller.is_account(row.domain_owner_at(context.now()));
    let is_first_registrant = caller.is_account(row.account_id);
    let is_party = is_caller_dispute_party(&write, caller, &row).await?;
    // A caller that is neither a party nor the first registrant must not learn whether the domain is proved.
    let is_proved = domain_sources.is_proved && (is_first_registrant || is_party);
    let has_none = own_sources.is_empty() && ended.is_empty();
    if may_delete || is_proved || (has_none && !is_first_registrant) {
        require_whole_domain_owner(&write, caller, &row, context.now()).await?;
        return end_domain(context, write, &row, &followers, &account.name).await;
    }
    let ending_sources = domain_sources.sources_ending(account.id, &own_sources);
    let remaining_sources: Vec<&source::Model> = domain_sources
        .sources
        .iter()
        .filter(|source| !ending_sources.contains(&source.id))
        .collect();
    let remaining_agents: BTreeSet<Uuid> = remaining_sources
        .iter()
        .filter_map(|source| source.agent_id)
        .collect();
    let is_others =
        |agent: &&agent::Model| remaining_agents.contains(&agent.id) && has_approved_version(agent);
    for agent in domain_sources.agents.iter().filter(is_others) {
        // A refusal would reveal an agent that is hidden from the caller.
        if is_agent_visible(context, &write, caller, Some(agent)).await? {
            return Err(AppError::conflict(format!(
                "{} has approved agents that others have registered, such as {}. Withdraw your own \
                 sources one by one.",
                row.name, agent.id
            )));
        }
    }
    if remaining_sources.is_empty() && !domain_sources.is_proved {
        return end_domain(context, write, &row, &followers, &account.name).await;
    }
    write
        .delete_source_registrations(&ended, account.id)
        .await?;
    let withdrawal = RegistrationWithdrawal {
        account,
        withdrawn_sources: own_sources,
        ending_sources,
        waits_for_index: may_wait_for_index(caller, &row, &domain_sources),
    };
    withdraw_registrations(context, write, &row, &domain_sources, withdrawal).await
}

/// Withdraws registrations and ends sources. Agents without another source are retired, and those whose coverage
/// changes get a new decision.
async fn withdraw_registrations(
    context: &AppContext,
    write: WriteTransaction,
    row: &domain::Model,
    domain_sources: &DomainSources,
    withdrawal: RegistrationWithdrawal<'_>,
) -> Result<()> {
    let now = context.now();
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    end_registrations(&write, &mut change_set, row, domain_sources, &withdrawal).await?;
    reassign_sources_to_owner(context, &write, domain_sources, &withdrawal).await?;
    for agent in domain_sources.agents_without_source(&withdrawal.ending_sources) {
        let mut state = load_agent_state(&write, agent.id).await?;
        let reason = "its registration was withdrawn";
        change_set.retire_agent(&mut state, &withdrawal.account.name, reason);
    }
    update_submitters(&write, &mut change_set, row, domain_sources, &withdrawal).await?;
    if !withdrawal.keeps_registration(domain_sources) {
        write
            .delete_challenge(row.id, withdrawal.account.id)
            .await?;
    }
    // Written first, because updating the agents reads these rows from the database.
    let committed = change_set.write(&write).await?;
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    update_domain_coverage(context, &write, &mut change_set, row).await?;
    append_withdrawal_events(&mut change_set, domain_sources, &withdrawal);
    let coverage_changes = change_set.write(&write).await?;
    commit_and_publish(context, write, [&committed, &coverage_changes]).await?;
    if withdrawal.waits_for_index {
        await_searchable_agents(context, &[&committed, &coverage_changes]).await;
    }
    Ok(())
}

/// Whether the response to a caller may wait for the index. To a caller that neither owns the domain nor registered it
/// first, the wait would reveal that a source has a listed agent, even a hidden one.
fn may_wait_for_index(
    caller: &Caller,
    row: &domain::Model,
    domain_sources: &DomainSources,
) -> bool {
    let is_own = caller.is_account(domain_sources.owner) || caller.is_account(row.account_id);
    is_own || caller.has_permission(Permission::SeeAll)
}

/// Ends the withdrawn registrations, and the sources that end with them.
async fn end_registrations(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
    domain_sources: &DomainSources,
    withdrawal: &RegistrationWithdrawal<'_>,
) -> Result<()> {
    write
        .delete_source_registrations(&withdrawal.withdrawn_sources, withdrawal.account.id)
        .await?;
    for source in &domain_sources.sources {
        if withdrawal.withdrawn_sources.contains(&source.id) {
            let is_ending = withdrawal.ending_sources.contains(&source.id);
            let data = json!({"kind": source.kind, "url": source.url, "ended": is_ending});
            let kind = EventKind::DomainWithdrawn;
            change_set.add_event(kind, &row.name, &withdrawal.account.name, data);
        }
    }
    for id in &withdrawal.ending_sources {
        write.end_source(*id, change_set.now().0).await?;
    }
    // The end of a source with its registration does not decide about its agent: a catalog may name it again.
    write.detach_sources(&withdrawal.ending_sources).await?;
    if !withdrawal.ending_sources.is_empty() {
        // A catalog that stays is fetched in full: an unchanged response would not list its entries again.
        write.force_full_fetch(row.id).await?;
    }
    Ok(())
}

/// Appends events for agents whose sources lost a registration or ended.
fn append_withdrawal_events(
    change_set: &mut ChangeSet<'_>,
    domain_sources: &DomainSources,
    withdrawal: &RegistrationWithdrawal<'_>,
) {
    for source in &domain_sources.sources {
        let Some(agent) = source.agent_id else {
            continue;
        };
        let data = if withdrawal.withdrawn_sources.contains(&source.id) {
            // The lost registration changes who may see the agent.
            json!({"source": source.url, "registered": false})
        } else if withdrawal.ending_sources.contains(&source.id) {
            json!({"source": source.url, "fed": false})
        } else {
            continue;
        };
        change_set.add_agent_event(
            EventKind::AgentUpdated,
            agent,
            &withdrawal.account.name,
            data,
        );
    }
}

/// Assigns the remaining sources that have no registrant: those at a location that only the domain controls go to its
/// owner. Catalog entries stay without a registrant, so that they are covered as long as the catalog names them.
async fn reassign_sources_to_owner(
    context: &AppContext,
    write: &WriteTransaction,
    domain_sources: &DomainSources,
    withdrawal: &RegistrationWithdrawal<'_>,
) -> Result<()> {
    let owner: Vec<Uuid> = domain_sources.owner.into_iter().collect();
    let owner = accounts::accounts_by_ids(write, &owner).await?.pop();
    for id in &withdrawal.withdrawn_sources {
        if withdrawal.ending_sources.contains(id)
            || domain_sources.is_registered_by_others(withdrawal.account.id, *id)
        {
            continue;
        }
        let mut sources = domain_sources.sources.iter();
        let lies_with_it =
            |source: &source::Model| source.id == *id && is_domain_controlled_source(source);
        let new_registrant = owner.as_ref().filter(|_| sources.any(lies_with_it));
        let registrant_row = source_registrant::Model {
            id: 0,
            source_id: *id,
            account_id: new_registrant.map(|owner| owner.id),
            network: None,
            role: new_registrant.map(|owner| owner.role.clone()),
            registered_at: context.now().0,
        };
        write.insert_registrant(registrant_row).await?;
    }
    Ok(())
}

/// Sets an agent's submitter to the first account that is still a registrant of one of its sources.
async fn update_submitters(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
    domain_sources: &DomainSources,
    withdrawal: &RegistrationWithdrawal<'_>,
) -> Result<()> {
    let withdrawing_account = Some(withdrawal.account.id);
    let affected_agents: BTreeSet<Uuid> = domain_sources
        .sources
        .iter()
        .filter(|source| withdrawal.withdrawn_sources.contains(&source.id))
        .filter_map(|source| source.agent_id)
        .collect();
    let without_source = domain_sources.agents_without_source(&withdrawal.ending_sources);
    let coverage_state = DomainCoverageState::load(write, row, change_set.now()).await?;
    for agent in &domain_sources.agents {
        let ends = without_source.iter().any(|one| one.id == agent.id);
        if ends || agent.submitter != withdrawing_account || !affected_agents.contains(&agent.id) {
            continue;
        }
        let first = coverage_state.first_registrant_account(agent.id);
        change_set.put_agent(&agent::Model {
            submitter: first,
            ..agent.clone()
        });
    }
    Ok(())
}

/// Ends a domain in the transaction that has checked it, so that no other write comes in between.
async fn end_domain(
    context: &AppContext,
    write: WriteTransaction,
    row: &domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<()> {
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    add_domain_end(context, &write, &mut change_set, row, followers, actor).await?;
    commit_changes(context, write, change_set).await
}

/// Adds the end of a domain and of its agents to a change set.
pub(super) async fn add_domain_end(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<()> {
    for agent in agents::live_agents_by_domain(write, &[row.id]).await? {
        let mut state = load_agent_state(write, agent.id).await?;
        change_set.retire_agent(&mut state, actor, "the domain was deleted");
    }
    write.delete_peer_candidates(row.id).await?;
    let reason = "the domain was deleted";
    remove_credentials(write, change_set, row, (actor, reason), |_| true).await?;
    write.end_domain(row.id, change_set.now().0).await?;
    change_set.add_event(EventKind::DomainDeleted, &row.name, actor, json!({}));
    redecide_redirected_cards(context, write, change_set, followers).await
}

struct RegistrationWithdrawal<'a> {
    account: &'a CallerAccount,
    /// The sources whose registration is withdrawn.
    withdrawn_sources: Vec<i64>,
    /// The sources that end with the withdrawal: those without another registrant, and the entries of such catalogs.
    ending_sources: Vec<i64>,
    /// Whether the response waits until the index shows the changes.
    waits_for_index: bool,
}

impl RegistrationWithdrawal<'_> {
    /// Whether the account keeps another registration of a source of the domain.
    fn keeps_registration(&self, domain_sources: &DomainSources) -> bool {
        domain_sources.sources.iter().any(|source| {
            domain_sources.is_registered_by(self.account.id, source.id)
                && !self.withdrawn_sources.contains(&source.id)
        })
    }
}
