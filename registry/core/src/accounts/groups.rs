//! Groups of accounts. Those of the origin `admin` are made here; those of other origins are read-only.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::limits::{MAX_GROUPS, MAX_GROUPS_OF_ACCOUNT, MAX_MEMBERS};
use a2a_registry_api::{Group, GroupList, GroupMembers};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::new_id;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, account_group, group_member};
use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use a2a_registry_store::{Handle, Write, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::names::{check_name, check_new_name};
use crate::paging::{ListPage, PageRequest};
use crate::precondition::Precondition;
use crate::visibility::audience::accounts_named;
use crate::visibility::caller::Caller;

pub async fn group_list(
    context: &Context,
    caller: &Caller,
    page: &PageRequest,
) -> Result<GroupList> {
    caller.demand(Permission::ReadAccounts)?;
    let list = ListPage::new(&context.signer, caller, "groups", page)?;
    let mut rows = groups::group_page(&context.store, list.start()?, list.limit()).await?;
    let next_page_token = list.cut(&mut rows, |last| last.id);
    Ok(GroupList {
        groups: views(&context.store, rows).await?,
        next_page_token,
    })
}

pub async fn group_show(context: &Context, caller: &Caller, name: &str) -> Result<Group> {
    caller.demand(Permission::ReadAccounts)?;
    let row = groups::group_by_name(&context.store, ADMIN_ORIGIN, name).await?;
    let row = row.ok_or_else(|| AppError::no_group(name))?;
    view(&context.store, row).await
}

/// Sets the members of a group of the origin `admin`, creating the group if it does not exist.
pub async fn group_put(
    context: &Context,
    caller: &Caller,
    name: &str,
    members: &GroupMembers,
    seen: &Precondition,
) -> Result<Group> {
    let admin = caller.demand(Permission::Administer)?;
    // An invalid name in the path belongs to no group.
    check_name("group", name).map_err(|_| AppError::no_group(name))?;
    check_members(&members.members)?;
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let row = groups::group_by_name(&write, ADMIN_ORIGIN, name).await?;
    let before = match row.clone() {
        Some(row) => Some(view(&write, row).await?),
        None => None,
    };
    seen.check(before.as_ref())?;
    let row = match row {
        Some(row) => row,
        None => begin(context, &write, name).await?,
    };
    let accounts = accounts_named(&write, &members.members).await?;
    set_members(&write, &row, &accounts).await?;
    let after = view(&write, row).await?;
    if before.as_ref() != Some(&after) {
        let data = json!({"group": name, "origin": ADMIN_ORIGIN, "members": after.members,
            "members_before": before.map(|before| before.members)});
        ledger.event(EventKind::GroupChanged, name, &admin.name, data);
    }
    commit_ledger(context, write, ledger).await?;
    Ok(after)
}

/// Deletes a group of the origin `admin`. Its accounts stay.
pub async fn group_delete(
    context: &Context,
    caller: &Caller,
    name: &str,
    seen: &Precondition,
) -> Result<()> {
    let admin = caller.demand(Permission::Administer)?;
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let row = groups::group_by_name(&write, ADMIN_ORIGIN, name).await?;
    let row = row.ok_or_else(|| AppError::no_group(name))?;
    let before = view(&write, row.clone()).await?;
    seen.check(Some(&before))?;
    write.group_delete(row.id).await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let data = json!({"group": name, "origin": ADMIN_ORIGIN, "members_before": before.members});
    ledger.event(EventKind::GroupDeleted, name, &admin.name, data);
    commit_ledger(context, write, ledger).await
}

async fn begin(context: &Context, write: &Write, name: &str) -> Result<account_group::Model> {
    check_new_name("group", name)?;
    if groups::group_count(write, ADMIN_ORIGIN).await? >= MAX_GROUPS {
        return Err(AppError::limit_reached(format!(
            "There are {MAX_GROUPS} groups; delete some first."
        )));
    }
    let now = context.now();
    let row = account_group::Model {
        id: new_id(now, context.entropy.as_ref()),
        origin: ADMIN_ORIGIN.into(),
        name: name.into(),
        created_at: now.0,
    };
    write.group_insert(row.clone()).await?;
    Ok(row)
}

fn check_members(names: &[String]) -> Result<()> {
    if names.len() > MAX_MEMBERS {
        return Err(AppError::invalid(
            "/members",
            format!("a group has {MAX_MEMBERS} members at most"),
        ));
    }
    let mut numbered = names.iter().enumerate();
    numbered.try_for_each(|(at, name)| check_name(&format!("/members/{at}"), name))
}

async fn set_members(
    write: &Write,
    group: &account_group::Model,
    accounts: &[account::Model],
) -> Result<()> {
    let now = groups::members_of(write, group.id, MAX_MEMBERS as u64).await?;
    let now: HashSet<Uuid> = now.into_iter().collect();
    let wanted: HashSet<Uuid> = accounts.iter().map(|account| account.id).collect();
    let gone: Vec<Uuid> = now.difference(&wanted).copied().collect();
    write.members_remove(group.id, &gone).await?;
    let new = accounts.iter().filter(|account| !now.contains(&account.id));
    let new: Vec<&account::Model> = new.collect();
    admit_to_another_group(write, &new).await?;
    let row = |account: &account::Model| group_member::Model {
        group_id: group.id,
        account_id: account.id,
    };
    write
        .members_add(new.into_iter().map(row).collect())
        .await?;
    Ok(())
}

/// Refuses accounts that have reached the limit of groups.
async fn admit_to_another_group(write: &Write, accounts: &[&account::Model]) -> Result<()> {
    let ids: Vec<Uuid> = accounts.iter().map(|account| account.id).collect();
    let memberships = groups::groups_of(write, &ids).await?;
    let mut counts: HashMap<Uuid, usize> = HashMap::new();
    for (account, group) in &memberships {
        *counts.entry(*account).or_default() += usize::from(group.origin == ADMIN_ORIGIN);
    }
    let count = |account: &account::Model| counts.get(&account.id).copied().unwrap_or(0);
    let mut accounts = accounts.iter();
    let full = accounts.find(|account| count(account) >= MAX_GROUPS_OF_ACCOUNT);
    match full {
        None => Ok(()),
        Some(account) => Err(AppError::limit_reached(format!(
            "The account {} is in {MAX_GROUPS_OF_ACCOUNT} groups.",
            account.name
        ))),
    }
}

async fn view(on: &impl Handle, row: account_group::Model) -> Result<Group> {
    let name = row.name.clone();
    let mut views = views(on, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_group(name))
}

/// Groups as callers see them, in the order of their rows, with members by name. A group of an issuer may have more
/// members than are named.
async fn views(on: &impl Handle, rows: Vec<account_group::Model>) -> Result<Vec<Group>> {
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let ids = groups::members_of(on, row.id, MAX_MEMBERS as u64).await?;
        let accounts = accounts::accounts_by_ids(on, &ids).await?;
        let mut members: Vec<String> = accounts.into_iter().map(|account| account.name).collect();
        members.sort_unstable();
        let member_count = match ids.len() < MAX_MEMBERS {
            true => ids.len() as u64,
            false => groups::member_count(on, row.id).await?,
        };
        views.push(Group {
            origin: row.origin,
            name: row.name,
            members,
            member_count,
            created_at: Timestamp(row.created_at),
        });
    }
    Ok(views)
}
