//! Accounts: their roles, and whether they are enabled.

use std::collections::BTreeSet;

use a2a_registry_api::limits::{MAX_GROUP_MEMBERS, MAX_GROUPS_PER_ACCOUNT};
use a2a_registry_api::{Account, AccountList, AccountPatch, Me, NewAccount};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Permission, Role, Roles};
use a2a_registry_store::entity::{account, group_member};
use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use a2a_registry_store::{WriteTransaction, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::accounts::admin_access::require_remaining_admin_access;
use crate::accounts::records::{
    account_view, account_views, check_account_name, find_account, new_account_row,
    set_account_roles, token_view,
};
use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::name_rules::check_name;
use crate::paging::{ListPage, PageRequest};
use crate::precondition::IfMatch;
use crate::visibility::caller::{self, Caller, Credential};

pub async fn me(context: &AppContext, caller: &Caller) -> Result<Me> {
    let actor = caller.require_account()?;
    let row = find_account(&context.store, &actor.id.to_string()).await?;
    let (token, issuer) = match &actor.credential {
        Credential::Token(id) => {
            let token = accounts::token_by_id(&context.store, *id).await?;
            let token = token.ok_or_else(|| AppError::no_token(id))?;
            (Some(token_view(context, token, &row)), None)
        }
        Credential::AccessToken(issuer) => (None, Some(issuer.clone())),
        // The API accepts no cookies, and accepts the secret of a feed only for that feed.
        Credential::Session(_) | Credential::Feed => {
            return Err(AppError::internal(
                "own_account was called with a session or feed credential",
            ));
        }
    };
    Ok(Me {
        account: account_view(&context.store, row).await?,
        scopes: actor.scopes.iter().map(Into::into).collect(),
        token,
        issuer,
    })
}

pub async fn own_account(context: &AppContext, actor: &caller::CallerAccount) -> Result<Account> {
    let row = find_account(&context.store, &actor.id.to_string()).await?;
    account_view(&context.store, row).await
}

pub async fn account_list(
    context: &AppContext,
    caller: &Caller,
    page: &PageRequest,
) -> Result<AccountList> {
    caller.require_permission(Permission::ReadAccounts)?;
    let list = ListPage::new(&context.page_token_signer, caller, "accounts", page)?;
    let mut rows =
        accounts::account_page(&context.store, list.start_position()?, list.row_limit()).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    Ok(AccountList {
        accounts: account_views(&context.store, rows).await?,
        next_page_token,
    })
}

pub async fn account_show(context: &AppContext, caller: &Caller, account: &str) -> Result<Account> {
    caller.require_permission(Permission::ReadAccounts)?;
    let row = find_account(&context.store, account).await?;
    account_view(&context.store, row).await
}

pub async fn account_create(
    context: &AppContext,
    caller: &Caller,
    new: &NewAccount,
) -> Result<Account> {
    let admin = caller.require_permission(Permission::Administer)?;
    check_account_name("/name", &new.name)?;
    let roles = parse_roles(&new.roles)?;
    check_group_names(&new.groups)?;
    let now = context.now();
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    if accounts::account_by_name(&write, &new.name)
        .await?
        .is_some()
    {
        return Err(AppError::conflict(format!(
            "The account {} already exists.",
            new.name
        )));
    }
    let row = new_account_row(&new.name, &roles, now, context.entropy.as_ref());
    write.insert_account(row.clone()).await?;
    set_account_groups(&write, row.id, &new.groups).await?;
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    let data = json!({"account": row.name, "roles": roles.to_string(), "groups": new.groups});
    change_set.add_event(EventKind::AccountCreated, row.id, &admin.name, data);
    let view = account_view(&write, row).await?;
    commit_changes(context, write, change_set).await?;
    Ok(view)
}

pub async fn account_patch(
    context: &AppContext,
    caller: &Caller,
    account: &str,
    patch: &AccountPatch,
    if_match: &IfMatch,
) -> Result<Account> {
    let admin = caller.require_permission(Permission::Administer)?;
    let roles = patch.roles.as_deref().map(parse_roles).transpose()?;
    check_group_names(patch.groups.as_deref().unwrap_or_default())?;
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let row = find_account(&write, account).await?;
    let before = account_view(&write, row.clone()).await?;
    if_match.check(Some(&before))?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let was_admin = is_active_admin(&row)?;
    let changed = update_account(
        &write,
        &mut change_set,
        &admin.name,
        row,
        patch.disabled,
        roles,
    )
    .await?;
    if was_admin && !is_active_admin(&changed)? {
        require_remaining_admin_access(context, &write).await?;
    }
    if let Some(groups) = &patch.groups {
        set_account_groups(&write, changed.id, groups).await?;
    }
    let after = account_view(&write, changed).await?;
    if (&after.roles, &after.groups) != (&before.roles, &before.groups) {
        let data = json!({
            "account": after.name, "roles": after.roles, "groups": after.groups,
            "roles_before": before.roles, "groups_before": before.groups,
        });
        change_set.add_event(EventKind::AccountChanged, after.id, &admin.name, data);
    }
    commit_changes(context, write, change_set).await?;
    Ok(after)
}

/// Changes the row of an account. Disabling deletes its tokens, sessions and feed; enabling restores none of them.
async fn update_account(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    actor_name: &str,
    row: account::Model,
    disabled: Option<bool>,
    roles: Option<Roles>,
) -> Result<account::Model> {
    let mut changed = row.clone();
    if let Some(roles) = roles {
        set_account_roles(&mut changed, &roles);
    }
    let data = json!({"account": row.name});
    match disabled {
        Some(true) if row.disabled_at.is_none() => {
            changed.disabled_at = Some(change_set.now().0);
            write.delete_account_tokens(row.id, None).await?;
            write.delete_account_sessions(row.id).await?;
            write.delete_feed(row.id).await?;
            change_set.add_event(EventKind::AccountDisabled, row.id, actor_name, data);
        }
        Some(false) if row.disabled_at.is_some() => {
            changed.disabled_at = None;
            change_set.add_event(EventKind::AccountEnabled, row.id, actor_name, data);
        }
        _ => {}
    }
    if is_active_admin(&row)? && !is_active_admin(&changed)? {
        let admins = accounts::enabled_accounts_by_role(write, Role::Admin).await?;
        if admins.iter().all(|admin| admin.id == row.id) {
            return Err(AppError::conflict(format!(
                "{} is the last enabled admin. Create another admin first.",
                row.name
            )));
        }
    }
    write.update_account_access(&changed).await?;
    Ok(changed)
}

fn is_active_admin(row: &account::Model) -> Result<bool> {
    Ok(row.is_account_active() && row.account_roles()?.contains(Role::Admin))
}

fn parse_roles(roles: &[Role]) -> Result<Roles> {
    if roles.is_empty() {
        return Err(AppError::invalid(
            "/roles",
            "an account must have at least one role",
        ));
    }
    Ok(roles.iter().copied().collect())
}

fn check_group_names(names: &[String]) -> Result<()> {
    if names.len() > MAX_GROUPS_PER_ACCOUNT {
        return Err(AppError::invalid(
            "/groups",
            format!("an account can be in at most {MAX_GROUPS_PER_ACCOUNT} groups"),
        ));
    }
    let mut numbered = names.iter().enumerate();
    numbered.try_for_each(|(at, name)| check_name(&format!("/groups/{at}"), name))
}

/// Sets the groups of an account that have the origin `admin`; groups of other origins stay.
async fn set_account_groups(
    write: &WriteTransaction,
    account: Uuid,
    names: &[String],
) -> Result<()> {
    // A name may occur twice.
    let names: BTreeSet<&String> = names.iter().collect();
    let current_groups = groups::groups_by_account(write, &[account]).await?;
    for (_, group) in current_groups
        .iter()
        .filter(|(_, group)| group.origin == ADMIN_ORIGIN)
    {
        if !names.contains(&group.name) {
            write.delete_group_members(group.id, &[account]).await?;
        }
    }
    for name in names {
        let group = groups::group_by_name(write, ADMIN_ORIGIN, name).await?;
        let group = group.ok_or_else(|| {
            AppError::conflict(format!("The group {name} does not exist. Create it first."))
        })?;
        if current_groups.iter().any(|(_, known)| known.id == group.id) {
            continue;
        }
        if groups::group_member_count(write, group.id).await? >= MAX_GROUP_MEMBERS as u64 {
            return Err(AppError::limit_reached(format!(
                "The group {name} already has {MAX_GROUP_MEMBERS} members, the maximum."
            )));
        }
        let row = group_member::Model {
            group_id: group.id,
            account_id: account,
        };
        write.insert_group_members(vec![row]).await?;
    }
    Ok(())
}
