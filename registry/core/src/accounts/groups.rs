//! Groups of accounts. Groups of the origin `admin` are managed here; those of other origins are read-only.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::limits::{MAX_GROUP_MEMBERS, MAX_GROUPS, MAX_GROUPS_PER_ACCOUNT};
use a2a_registry_api::{Group, GroupList, GroupMembers};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, account_group, group_member};
use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use a2a_registry_store::{Executor, WriteTransaction, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::name_rules::{check_name, check_unreserved_name};
use crate::paging::{ListPage, PageRequest};
use crate::precondition::IfMatch;
use crate::visibility::audience::resolve_accounts;
use crate::visibility::caller::Caller;

pub async fn group_list(
    context: &AppContext,
    caller: &Caller,
    page: &PageRequest,
) -> Result<GroupList> {
    caller.require_permission(Permission::ReadAccounts)?;
    let list = ListPage::new(&context.page_token_signer, caller, "groups", page)?;
    let mut rows =
        groups::group_page(&context.store, list.start_position()?, list.row_limit()).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    Ok(GroupList {
        groups: load_groups(&context.store, rows).await?,
        next_page_token,
    })
}

pub async fn group_show(context: &AppContext, caller: &Caller, name: &str) -> Result<Group> {
    caller.require_permission(Permission::ReadAccounts)?;
    let row = groups::group_by_name(&context.store, ADMIN_ORIGIN, name).await?;
    let row = row.ok_or_else(|| AppError::no_group(name))?;
    load_group(&context.store, row).await
}

/// Sets the members of a group of the origin `admin`, creating the group if it does not exist.
pub async fn group_put(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    members: &GroupMembers,
    if_match: &IfMatch,
) -> Result<Group> {
    let admin = caller.require_permission(Permission::Administer)?;
    // A group with an invalid name cannot exist.
    check_name("group", name).map_err(|_| AppError::no_group(name))?;
    check_group_member_names(&members.members)?;
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let row = groups::group_by_name(&write, ADMIN_ORIGIN, name).await?;
    let before = match row.clone() {
        Some(row) => Some(load_group(&write, row).await?),
        None => None,
    };
    if_match.check(before.as_ref())?;
    let row = match row {
        Some(row) => row,
        None => create_group(context, &write, name).await?,
    };
    let accounts = resolve_accounts(&write, &members.members).await?;
    set_group_members(&write, &row, &accounts).await?;
    let after = load_group(&write, row).await?;
    if before.as_ref() != Some(&after) {
        let data = json!({"group": name, "origin": ADMIN_ORIGIN, "members": after.members,
            "members_before": before.map(|before| before.members)});
        change_set.add_event(EventKind::GroupChanged, name, &admin.name, data);
    }
    commit_changes(context, write, change_set).await?;
    Ok(after)
}

/// Deletes a group of the origin `admin`. Its member accounts stay.
pub async fn group_delete(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    if_match: &IfMatch,
) -> Result<()> {
    let admin = caller.require_permission(Permission::Administer)?;
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let row = groups::group_by_name(&write, ADMIN_ORIGIN, name).await?;
    let row = row.ok_or_else(|| AppError::no_group(name))?;
    let before = load_group(&write, row.clone()).await?;
    if_match.check(Some(&before))?;
    write.delete_group(row.id).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"group": name, "origin": ADMIN_ORIGIN, "members_before": before.members});
    change_set.add_event(EventKind::GroupDeleted, name, &admin.name, data);
    commit_changes(context, write, change_set).await
}

async fn create_group(
    context: &AppContext,
    write: &WriteTransaction,
    name: &str,
) -> Result<account_group::Model> {
    check_unreserved_name("group", name)?;
    if groups::group_count_by_origin(write, ADMIN_ORIGIN).await? >= MAX_GROUPS {
        return Err(AppError::limit_reached(format!(
            "The limit of {MAX_GROUPS} groups is reached. Delete some first."
        )));
    }
    let now = context.now();
    let row = account_group::Model {
        id: new_uuid(now, context.entropy.as_ref()),
        origin: ADMIN_ORIGIN.into(),
        name: name.into(),
        created_at: now.0,
    };
    write.insert_group(row.clone()).await?;
    Ok(row)
}

fn check_group_member_names(names: &[String]) -> Result<()> {
    if names.len() > MAX_GROUP_MEMBERS {
        return Err(AppError::invalid(
            "/members",
            format!("a group can have at most {MAX_GROUP_MEMBERS} members"),
        ));
    }
    let mut numbered = names.iter().enumerate();
    numbered.try_for_each(|(at, name)| check_name(&format!("/members/{at}"), name))
}

async fn set_group_members(
    write: &WriteTransaction,
    group: &account_group::Model,
    accounts: &[account::Model],
) -> Result<()> {
    let member_ids = groups::group_member_ids(write, group.id, MAX_GROUP_MEMBERS as u64).await?;
    let member_ids: HashSet<Uuid> = member_ids.into_iter().collect();
    let wanted: HashSet<Uuid> = accounts.iter().map(|account| account.id).collect();
    let removed_ids: Vec<Uuid> = member_ids.difference(&wanted).copied().collect();
    write.delete_group_members(group.id, &removed_ids).await?;
    let added = accounts
        .iter()
        .filter(|account| !member_ids.contains(&account.id));
    let added: Vec<&account::Model> = added.collect();
    check_account_group_limit(write, &added).await?;
    let row = |account: &account::Model| group_member::Model {
        group_id: group.id,
        account_id: account.id,
    };
    write
        .insert_group_members(added.into_iter().map(row).collect())
        .await?;
    Ok(())
}

/// Rejects accounts that have reached the limit of groups.
async fn check_account_group_limit(
    write: &WriteTransaction,
    accounts: &[&account::Model],
) -> Result<()> {
    let ids: Vec<Uuid> = accounts.iter().map(|account| account.id).collect();
    let memberships = groups::groups_by_account(write, &ids).await?;
    let mut counts: HashMap<Uuid, usize> = HashMap::new();
    for (account, group) in &memberships {
        *counts.entry(*account).or_default() += usize::from(group.origin == ADMIN_ORIGIN);
    }
    let count = |account: &account::Model| counts.get(&account.id).copied().unwrap_or(0);
    let mut accounts = accounts.iter();
    let at_limit = accounts.find(|account| count(account) >= MAX_GROUPS_PER_ACCOUNT);
    match at_limit {
        None => Ok(()),
        Some(account) => Err(AppError::limit_reached(format!(
            "The account {} is already in {MAX_GROUPS_PER_ACCOUNT} groups, the maximum.",
            account.name
        ))),
    }
}

async fn load_group(db: &impl Executor, row: account_group::Model) -> Result<Group> {
    let name = row.name.clone();
    let mut views = load_groups(db, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_group(name))
}

/// Loads groups as callers see them, in the order of their rows, with members sorted by name. The members of an
/// identity provider's group may be listed incompletely.
async fn load_groups(db: &impl Executor, rows: Vec<account_group::Model>) -> Result<Vec<Group>> {
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let ids = groups::group_member_ids(db, row.id, MAX_GROUP_MEMBERS as u64).await?;
        let accounts = accounts::accounts_by_ids(db, &ids).await?;
        let mut members: Vec<String> = accounts.into_iter().map(|account| account.name).collect();
        members.sort_unstable();
        let member_count = match ids.len() < MAX_GROUP_MEMBERS {
            true => ids.len() as u64,
            false => groups::group_member_count(db, row.id).await?,
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
