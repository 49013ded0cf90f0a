//! Accounts, their roles, and whether they may be used.

use std::collections::BTreeSet;

use a2a_registry_api::limits::{MAX_GROUPS_OF_ACCOUNT, MAX_MEMBERS};
use a2a_registry_api::{Account, AccountList, AccountPatch, Me, NewAccount};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Permission, Role, Roles};
use a2a_registry_store::entity::{account, group_member};
use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use a2a_registry_store::{Write, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::accounts::last_way_in::refuse_without_way_in;
use crate::accounts::records::{
    account_named, account_row, account_view, account_views, check_account_name, set_roles,
    token_view,
};
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::names::check_name;
use crate::paging::{ListPage, PageRequest};
use crate::precondition::Precondition;
use crate::visibility::caller::{self, Caller, Credential};

pub async fn me(context: &Context, caller: &Caller) -> Result<Me> {
    let by = caller.account()?;
    let row = account_named(&context.store, &by.id.to_string()).await?;
    let (token, issuer) = match &by.credential {
        Credential::Token(id) => {
            let token = accounts::token_by_id(&context.store, *id).await?;
            let token = token.ok_or_else(|| AppError::no_token(id))?;
            (Some(token_view(context, token, &row)), None)
        }
        Credential::AccessToken(issuer) => (None, Some(issuer.clone())),
        // The API takes no cookies, and the secret of a feed only for that feed.
        Credential::Session(_) | Credential::Feed => {
            return Err(AppError::internal("a session or a feed asks who it is"));
        }
    };
    Ok(Me {
        account: account_view(&context.store, row).await?,
        scopes: by.scopes.iter().map(Into::into).collect(),
        token,
        issuer,
    })
}

pub async fn account_own(context: &Context, by: &caller::Account) -> Result<Account> {
    let row = account_named(&context.store, &by.id.to_string()).await?;
    account_view(&context.store, row).await
}

pub async fn account_list(
    context: &Context,
    caller: &Caller,
    page: &PageRequest,
) -> Result<AccountList> {
    caller.demand(Permission::ReadAccounts)?;
    let list = ListPage::new(&context.signer, caller, "accounts", page)?;
    let mut rows = accounts::account_page(&context.store, list.start()?, list.limit()).await?;
    let next_page_token = list.cut(&mut rows, |last| last.id);
    Ok(AccountList {
        accounts: account_views(&context.store, rows).await?,
        next_page_token,
    })
}

pub async fn account_show(context: &Context, caller: &Caller, account: &str) -> Result<Account> {
    caller.demand(Permission::ReadAccounts)?;
    let row = account_named(&context.store, account).await?;
    account_view(&context.store, row).await
}

pub async fn account_create(
    context: &Context,
    caller: &Caller,
    new: &NewAccount,
) -> Result<Account> {
    let admin = caller.demand(Permission::Administer)?;
    check_account_name("/name", &new.name)?;
    let roles = roles_of(&new.roles)?;
    check_groups(&new.groups)?;
    let now = context.now();
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    if accounts::account_by_name(&write, &new.name)
        .await?
        .is_some()
    {
        return Err(AppError::conflict(format!(
            "There is an account {} already.",
            new.name
        )));
    }
    let row = account_row(&new.name, &roles, now, context.entropy.as_ref());
    write.account_insert(row.clone()).await?;
    set_groups(&write, row.id, &new.groups).await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let data = json!({"account": row.name, "roles": roles.to_string(), "groups": new.groups});
    ledger.event(EventKind::AccountCreated, row.id, &admin.name, data);
    let view = account_view(&write, row).await?;
    commit_ledger(context, write, ledger).await?;
    Ok(view)
}

pub async fn account_patch(
    context: &Context,
    caller: &Caller,
    account: &str,
    patch: &AccountPatch,
    seen: &Precondition,
) -> Result<Account> {
    let admin = caller.demand(Permission::Administer)?;
    let roles = patch.roles.as_deref().map(roles_of).transpose()?;
    check_groups(patch.groups.as_deref().unwrap_or_default())?;
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let row = account_named(&write, account).await?;
    let before = account_view(&write, row.clone()).await?;
    seen.check(Some(&before))?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let was_admin = is_admin(&row)?;
    let changed = change(&write, &mut ledger, &admin.name, row, patch.disabled, roles).await?;
    if was_admin && !is_admin(&changed)? {
        refuse_without_way_in(context, &write).await?;
    }
    if let Some(groups) = &patch.groups {
        set_groups(&write, changed.id, groups).await?;
    }
    let after = account_view(&write, changed).await?;
    if (&after.roles, &after.groups) != (&before.roles, &before.groups) {
        let data = json!({
            "account": after.name, "roles": after.roles, "groups": after.groups,
            "roles_before": before.roles, "groups_before": before.groups,
        });
        ledger.event(EventKind::AccountChanged, after.id, &admin.name, data);
    }
    commit_ledger(context, write, ledger).await?;
    Ok(after)
}

/// Changes the row of an account. Disabling removes its tokens, sessions and feed, so that enabling it restores none of
/// them.
async fn change(
    write: &Write,
    ledger: &mut Ledger<'_>,
    by: &str,
    row: account::Model,
    disabled: Option<bool>,
    roles: Option<Roles>,
) -> Result<account::Model> {
    let mut changed = row.clone();
    if let Some(roles) = roles {
        set_roles(&mut changed, &roles);
    }
    let data = json!({"account": row.name});
    match disabled {
        Some(true) if row.disabled_at.is_none() => {
            changed.disabled_at = Some(ledger.now().0);
            write.tokens_end(row.id, None).await?;
            write.sessions_end(row.id).await?;
            write.feed_delete(row.id).await?;
            ledger.event(EventKind::AccountDisabled, row.id, by, data);
        }
        Some(false) if row.disabled_at.is_some() => {
            changed.disabled_at = None;
            ledger.event(EventKind::AccountEnabled, row.id, by, data);
        }
        _ => {}
    }
    if is_admin(&row)? && !is_admin(&changed)? {
        let admins = accounts::accounts_enabled_as(write, Role::Admin).await?;
        if admins.iter().all(|admin| admin.id == row.id) {
            return Err(AppError::conflict(format!(
                "{} is the last enabled admin; make another one first.",
                row.name
            )));
        }
    }
    write.account_update(&changed).await?;
    Ok(changed)
}

fn is_admin(row: &account::Model) -> Result<bool> {
    Ok(row.may_be_used() && row.roles()?.has(Role::Admin))
}

fn roles_of(roles: &[Role]) -> Result<Roles> {
    if roles.is_empty() {
        return Err(AppError::invalid(
            "/roles",
            "an account has one role at least",
        ));
    }
    Ok(roles.iter().copied().collect())
}

fn check_groups(names: &[String]) -> Result<()> {
    if names.len() > MAX_GROUPS_OF_ACCOUNT {
        return Err(AppError::invalid(
            "/groups",
            format!("an account has {MAX_GROUPS_OF_ACCOUNT} groups at most"),
        ));
    }
    let mut numbered = names.iter().enumerate();
    numbered.try_for_each(|(at, name)| check_name(&format!("/groups/{at}"), name))
}

/// Sets the groups of the origin `admin` of an account; those of other origins stay.
async fn set_groups(write: &Write, account: Uuid, names: &[String]) -> Result<()> {
    // A name may occur twice.
    let names: BTreeSet<&String> = names.iter().collect();
    let own = groups::groups_of(write, &[account]).await?;
    for (_, group) in own.iter().filter(|(_, group)| group.origin == ADMIN_ORIGIN) {
        if !names.contains(&group.name) {
            write.members_remove(group.id, &[account]).await?;
        }
    }
    for name in names {
        let group = groups::group_by_name(write, ADMIN_ORIGIN, name).await?;
        let group = group.ok_or_else(|| {
            AppError::conflict(format!("There is no group {name} yet; make it first."))
        })?;
        if own.iter().any(|(_, known)| known.id == group.id) {
            continue;
        }
        if groups::member_count(write, group.id).await? >= MAX_MEMBERS as u64 {
            return Err(AppError::limit_reached(format!(
                "The group {name} has {MAX_MEMBERS} members."
            )));
        }
        let row = group_member::Model {
            group_id: group.id,
            account_id: account,
        };
        write.members_add(vec![row]).await?;
    }
    Ok(())
}
