//! Erasure of a domain by an admin: its agents end, and what their cards said is deleted everywhere.

use a2a_registry_api::Erasure;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, domain};
use a2a_registry_store::erasure::{agents_by_domain_name, removed_domains_with_fetches};
use a2a_registry_store::{Executor, WriteTransaction, agents, domains, reviews};
use serde_json::json;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::locks::lock_domain_with_dependents;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::domains::actions::normalize_host_name;
use crate::domains::withdrawal::add_domain_end;
use crate::error::{AppError, ErrorKind, Result};
use crate::ownership::dispute_error;
use crate::ownership::is_disputed_domain;
use crate::visibility::caller::Caller;

/// Ends a domain, and deletes the versions, vectors and bytes of its agents' cards and the results of its fetches,
/// also of agents that were retired before and of earlier registrations of the name. Bytes that an agent of another
/// domain has too stay. Refused while the domain is disputed, or one of its live agents has an open review or a hold:
/// the card is evidence until then.
pub async fn domain_erase(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    request: &Erasure,
) -> Result<()> {
    let admin = caller.require_permission(Permission::Administer)?;
    check_reason(&request.reason)?;
    let name = normalize_host_name(domain);
    let (write, live) = begin_erasure(context, &name).await?;
    let agents = erasable_agents(&write, &name, live.as_ref().map(|live| &live.row)).await?;
    let mut domains = removed_domains_with_fetches(&write, &name).await?;
    if live.is_none() && agents.is_empty() && domains.is_empty() {
        return Err(AppError::no_domain(&name));
    }
    require_no_open_case(&write, &agents).await?;
    let ids: Vec<Uuid> = agents.iter().map(|row| row.id).collect();
    let erased = write.erase_agent_content(&ids).await?;
    domains.extend(agents.iter().map(|row| row.domain_id));
    domains.extend(live.iter().map(|live| live.row.id));
    write.delete_fetch_attempts(domains).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    if let Some(LockedDomain { row, followers }) = &live {
        add_domain_end(
            context,
            &write,
            &mut change_set,
            row,
            followers,
            &admin.name,
        )
        .await?;
    }
    for row in &agents {
        change_set.clear_agent_versions(row);
    }
    let data = json!({"reason": request.reason, "agents": agents.len(), "versions": erased.versions,
        "cards": erased.bodies});
    change_set.add_event(EventKind::DomainErased, &name, &admin.name, data);
    commit_changes(context, write, change_set).await?;
    if let Err(error) = context.store.empty_write_ahead_log().await {
        tracing::warn!(
            %error,
            "the database's write-ahead log may contain erased cards; stop and start the registry, which empties it"
        );
    }
    Ok(())
}

/// A live domain that is locked together with its followers.
struct LockedDomain {
    row: domain::Model,
    followers: Vec<domain::Model>,
}

/// Begins the write, with the live domain of that name if there is one.
async fn begin_erasure(
    context: &AppContext,
    name: &str,
) -> Result<(WriteTransaction, Option<LockedDomain>)> {
    let Some(unlocked) = domains::domain_by_name(&context.store, name).await? else {
        return Ok((context.store.begin_write().await?, None));
    };
    let (write, row, followers) = match lock_domain_with_dependents(context, &unlocked).await {
        // Deleted meanwhile, which leaves its content to be erased.
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Ok((context.store.begin_write().await?, None));
        }
        locked => locked?,
    };
    if is_disputed_domain(&row)? {
        return Err(dispute_error(&row));
    }
    Ok((write, Some(LockedDomain { row, followers })))
}

/// The agents of the domain, and retired ones of its name that still have content. Without a live domain this leaves
/// out agents of one that was registered meanwhile.
async fn erasable_agents(
    write: &WriteTransaction,
    name: &str,
    live: Option<&domain::Model>,
) -> Result<Vec<agent::Model>> {
    let mut agents = agents_by_domain_name(write, name).await?;
    let has_content =
        |row: &agent::Model| row.newest_version.is_some() || row.approved_version.is_some();
    agents.retain(|row| match row.retired_at {
        Some(_) => has_content(row),
        None => live.is_some_and(|live| live.id == row.domain_id),
    });
    Ok(agents)
}

/// Refuses the erasure while a live agent has an open review, which reports open too, or a hold. Reviews and holds of
/// retired agents have ended with them.
async fn require_no_open_case(db: &impl Executor, agents: &[agent::Model]) -> Result<()> {
    let live = agents.iter().filter(|row| row.retired_at.is_none());
    let live: Vec<Uuid> = live.map(|row| row.id).collect();
    if let Some(review) = reviews::open_reviews_by_agent(db, &live).await?.first() {
        return Err(AppError::conflict(format!(
            "The review {} ({}) of the agent {} is open. Decide it first.",
            review.id,
            review.kind.as_str(),
            review.agent_id
        )));
    }
    if let Some(hold) = agents::holds_of_agents(db, &live).await?.first() {
        return Err(AppError::conflict(format!(
            "The agent {} is on hold ({}). Lift the hold, or retire the agent, first.",
            hold.agent_id,
            hold.hold.as_str()
        )));
    }
    Ok(())
}
