//! Taking back what was registered: a source, or a whole domain. Each caller takes back its own, and nothing that others
//! rely on.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, domain, source, source_registrant};
use a2a_registry_store::{Write, accounts, agents};
use serde_json::json;
use uuid::Uuid;

use crate::admission::covering::{Covering, follow_coverage};
use crate::caller::{Account, Caller};
use crate::commit::ledger::Ledger;
use crate::commit::locks::{domain_locked, write_with_followers};
use crate::commit::publish::{after_write, searchable};
use crate::commit::state::state_of;
use crate::context::Context;
use crate::domains::acts::domain_visible;
use crate::domains::registered::{Registered, is_approved, lies_there};
use crate::error::{AppError, ErrorKind};
use crate::ownership::apply_check::follow_redirects;
use crate::ownership::authorization::require_owner_or_curator;
use crate::ownership::{disputed, is_disputed};
use crate::sources::source_name;

/// Takes back the caller's registration of a source. The source ends with its last registration, and with it what it
/// alone has fed, unless that was approved. What is the proved owner's stays.
///
/// # Errors
/// `NotFound` where there is no such source, or none that the caller has registered; `Conflict` where it is the last
/// registration of a source of an approved agent, and while the domain is disputed.
pub async fn source_withdraw(
    context: &Context,
    caller: &Caller,
    domain: &str,
    source: &str,
) -> Result<(), AppError> {
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
    let registered = Registered::load(&write, &row).await?;
    let mut sources = registered.sources.iter();
    let id = sources
        .find(|known| source_name(context, known) == source)
        .map(|known| known.id)
        .filter(|id| registered.is_own(account.id, *id))
        .ok_or_else(missing)?;
    if is_disputed(&row)? && !caller.may(Permission::Curate) {
        return Err(disputed(&row));
    }
    let ending = registered.ending(account.id, &[id]);
    let approved = registered
        .sources
        .iter()
        .filter(|source| ending.contains(&source.id))
        .find_map(|source| {
            let mut all = registered.agents.iter();
            all.find(|agent| source.agent_id == Some(agent.id) && is_approved(agent))
        });
    if let Some(agent) = approved {
        return Err(AppError::new(
            ErrorKind::Conflict,
            format!(
                "This is the source of the approved agent {}; retire the agent, or let another account register the source first.",
                agent.id
            ),
        ));
    }
    let taken = Taken {
        by: account,
        withdrawn: vec![id],
        ending,
    };
    take_registrations_back(context, write, &row, &registered, taken).await
}

/// Ends a domain: its agents are retired, its name is free again. Whoever has only registered it takes back its own
/// sources, and the domain ends where nothing of others is left.
///
/// # Errors
/// `Forbidden` for whoever neither registered, owns nor curates it; `Conflict` while it is disputed, and for whoever has
/// only registered it where it has approved agents of others; `NotFound`.
pub async fn domain_delete(
    context: &Context,
    caller: &Caller,
    domain: &str,
) -> Result<(), AppError> {
    let account = caller.demand(Permission::Register)?;
    let seen = domain_visible(context, caller, domain).await?;
    let (write, row, followers) = write_with_followers(context, &seen).await?;
    let registered = Registered::load(&write, &row).await?;
    let own: Vec<i64> = registered
        .sources
        .iter()
        .map(|source| source.id)
        .filter(|id| registered.is_own(account.id, *id))
        .collect();
    let keeps = caller.may(Permission::Curate) || caller.is(row.owner_id);
    if keeps || registered.is_proved || (own.is_empty() && !caller.is(row.account_id)) {
        require_owner_or_curator(&write, caller, &row).await?;
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
    if let Some(agent) = registered.agents.iter().find(is_others) {
        return Err(AppError::new(
            ErrorKind::Conflict,
            format!(
                "{} has approved agents that others have registered, such as {}; take back your own sources one by one.",
                row.name, agent.id
            ),
        ));
    }
    if rest.is_empty() {
        return end_domain(context, write, &row, &followers, &account.name).await;
    }
    let taken = Taken {
        by: account,
        withdrawn: own,
        ending,
    };
    take_registrations_back(context, write, &row, &registered, taken).await
}

/// Takes back registrations and ends sources; what they alone have fed is retired, and what they stood for is decided
/// anew.
async fn take_registrations_back(
    context: &Context,
    write: Write,
    row: &domain::Model,
    registered: &Registered,
    taken: Taken<'_>,
) -> Result<(), AppError> {
    let now = context.now();
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    end_registrations(&write, &mut ledger, row, registered, &taken).await?;
    leave_to_owner(context, &write, registered, &taken).await?;
    for agent in registered.unfed(&taken.ending) {
        let mut state = state_of(&write, agent.id).await?;
        let reason = "its registration was taken back";
        ledger.retire(&mut state, &taken.by.name, reason);
    }
    pass_submitter_on(&write, &mut ledger, row, registered, &taken).await?;
    if !taken.leaves_own(registered) {
        write.challenge_end(row.id, taken.by.id).await?;
    }
    // Written before what follows, which finds the agents as they are then.
    let touched = ledger.write(&write).await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    follow_coverage(context, &write, &mut ledger, row).await?;
    tell_agents(&mut ledger, registered, &taken);
    let regarded = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    after_write(context, &regarded);
    searchable(context, &[&touched, &regarded]).await;
    Ok(())
}

/// Ends the registrations that are taken back, and the sources that end with them.
async fn end_registrations(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    registered: &Registered,
    taken: &Taken<'_>,
) -> Result<(), AppError> {
    write
        .registrations_end(&taken.withdrawn, taken.by.id)
        .await?;
    for source in &registered.sources {
        if taken.withdrawn.contains(&source.id) {
            let ends = taken.ending.contains(&source.id);
            let data = json!({"kind": source.kind, "url": source.url, "ended": ends});
            ledger.event(EventKind::DomainWithdrawn, &row.name, &taken.by.name, data);
        }
    }
    for id in &taken.ending {
        write.source_end(*id, ledger.now().0).await?;
    }
    // What ended with its registration is nobody's decision on the agent: a catalog may name it again.
    write.sources_detach(&taken.ending).await?;
    if !taken.ending.is_empty() {
        // A catalog that stays would not say by itself that it names that still.
        write.sources_want_full(row.id).await?;
    }
    Ok(())
}

/// Tells of the agents whose sources are registered by one less, or have ended.
fn tell_agents(ledger: &mut Ledger<'_>, registered: &Registered, taken: &Taken<'_>) {
    for source in &registered.sources {
        let Some(agent) = source.agent_id else {
            continue;
        };
        let data = if taken.withdrawn.contains(&source.id) {
            // Who may see it has changed.
            json!({"source": source.url, "registered": false})
        } else if taken.ending.contains(&source.id) {
            json!({"source": source.url, "fed": false})
        } else {
            continue;
        };
        ledger.agent_event(EventKind::AgentUpdated, agent, &taken.by.name, data);
    }
}

/// Says whose that is which stays and nobody has registered any more: what lies where only the domain puts it is its
/// owner's from now on, and what its catalog names is nobody's, so that it is covered as long as it is named.
async fn leave_to_owner(
    context: &Context,
    write: &Write,
    registered: &Registered,
    taken: &Taken<'_>,
) -> Result<(), AppError> {
    let owner: Vec<Uuid> = registered.owner.into_iter().collect();
    let owner = accounts::accounts_by_ids(write, &owner).await?.pop();
    for id in &taken.withdrawn {
        if taken.ending.contains(id) || registered.is_others(taken.by.id, *id) {
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

/// Whoever has registered an agent's sources no more is not its submitter: the first one is who still has, if anybody.
async fn pass_submitter_on(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    registered: &Registered,
    taken: &Taken<'_>,
) -> Result<(), AppError> {
    let by = Some(taken.by.id);
    let left: BTreeSet<Uuid> = registered
        .sources
        .iter()
        .filter(|source| taken.withdrawn.contains(&source.id))
        .filter_map(|source| source.agent_id)
        .collect();
    let unfed = registered.unfed(&taken.ending);
    let covering = Covering::load(write, row).await?;
    for agent in &registered.agents {
        let ends = unfed.iter().any(|one| one.id == agent.id);
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

/// Ends a domain in the write that has decided on it, so that nothing comes in between.
async fn end_domain(
    context: &Context,
    write: Write,
    row: &domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<(), AppError> {
    let now = context.now();
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    for agent in agents::agents_of(&write, &[row.id]).await? {
        let mut state = state_of(&write, agent.id).await?;
        ledger.retire(&mut state, actor, "the domain was deleted");
    }
    write.domain_end(row.id, now.0).await?;
    ledger.event(EventKind::DomainDeleted, &row.name, actor, json!({}));
    follow_redirects(context, &write, &mut ledger, followers).await?;
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}

/// What an account takes back.
struct Taken<'a> {
    by: &'a Account,
    /// The sources whose registration it takes back.
    withdrawn: Vec<i64>,
    /// The sources that end with it: those of them that nobody else has, and the entries of such catalogs.
    ending: Vec<i64>,
}

impl Taken<'_> {
    /// Whether the account keeps another registration of a source of the domain.
    fn leaves_own(&self, registered: &Registered) -> bool {
        registered.sources.iter().any(|source| {
            registered.is_own(self.by.id, source.id) && !self.withdrawn.contains(&source.id)
        })
    }
}
