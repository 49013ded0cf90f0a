//! Accounts of the people and services of identity providers: made when somebody first comes, and brought up to date by
//! every newer token.
//!
//! The roles that an admin has set hold: the map changes the roles of an account only while they are what it gave last.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_store::entity::{account, account_group, group_member, identity};
use a2a_registry_store::{Handle, Write, accounts, groups, identities};
use serde_json::json;
use uuid::Uuid;

use crate::commit::ledger::Ledger;
use crate::commit::publish::after_write;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::providers::Holder;

/// Accounts of one issuer.
const MAX_ACCOUNTS: u64 = 100_000;
/// Groups of one issuer.
const MAX_GROUPS: u64 = 10_000;

/// The account of the holder of a token, as the token says it is. It may be disabled.
///
/// # Errors
/// `LimitReached` where there are too many accounts or groups of the issuer.
pub async fn account_of(context: &Context, holder: &Holder) -> Result<account::Model, AppError> {
    let store = &context.store;
    if let Some(known) = identities::identity_of(store, &holder.issuer, &holder.subject).await?
        && let Some(account) = accounts::accounts_by_ids(store, &[known.account_id])
            .await?
            .pop()
    {
        if account.disabled_at.is_some() || holder.issued_at < known.claims_at {
            return Ok(account);
        }
        if holder.issued_at == known.claims_at
            && is_current(store, &known, &account, holder).await?
        {
            return Ok(account);
        }
    }
    brought_up_to_date(context, holder).await
}

/// Whether an account is already as the token says.
async fn is_current(
    on: &impl Handle,
    known: &identity::Model,
    account: &account::Model,
    holder: &Holder,
) -> Result<bool, AppError> {
    let Some(names) = &holder.groups else {
        return Ok(true);
    };
    let mapped = holder.roles.to_string();
    let follows_map = account.roles.as_deref() == Some(known.roles.as_str());
    if follows_map && known.roles != mapped {
        return Ok(false);
    }
    let own = own_groups(on, account.id, &holder.issuer).await?;
    let own: BTreeSet<&str> = own.iter().map(|group| group.name.as_str()).collect();
    Ok(own == names.iter().map(String::as_str).collect())
}

/// Makes the account or changes it, under the lock of all accounts, so that two processes do so once.
async fn brought_up_to_date(
    context: &Context,
    holder: &Holder,
) -> Result<account::Model, AppError> {
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let known = identities::identity_of(&write, &holder.issuer, &holder.subject).await?;
    let account = match known {
        Some(known) => changed(&write, &mut ledger, known, holder).await?,
        None => made(&write, &mut ledger, holder).await?,
    };
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(account)
}

async fn made(
    write: &Write,
    ledger: &mut Ledger<'_>,
    holder: &Holder,
) -> Result<account::Model, AppError> {
    if identities::identity_count(write, &holder.issuer).await? >= MAX_ACCOUNTS {
        return Err(AppError::new(
            ErrorKind::LimitReached,
            format!("There are {MAX_ACCOUNTS} accounts of this identity provider."),
        ));
    }
    let name = free_name(write, holder).await?;
    let now = ledger.now().0;
    let row = account::Model {
        id: ledger.new_id(),
        name,
        role: holder.roles.main().into(),
        roles: Some(holder.roles.to_string()),
        disabled_at: None,
        news_seen_at: None,
        created_at: now,
    };
    write.account_insert(row.clone()).await?;
    let known = identity::Model {
        issuer: holder.issuer.clone(),
        subject: holder.subject.clone(),
        account_id: row.id,
        roles: holder.roles.to_string(),
        claims_at: holder.issued_at,
        created_at: now,
    };
    write.identity_insert(known).await?;
    let names = holder.groups.as_deref().unwrap_or_default();
    set_groups(write, ledger, row.id, &holder.issuer, names).await?;
    let data = json!({
        "account": row.name, "roles": holder.roles.to_string(), "issuer": holder.issuer,
        "subject": holder.subject, "issuer_groups": names,
    });
    let subject = row.id.to_string();
    ledger.event(EventKind::AccountCreated, &subject, &holder.issuer, data);
    Ok(row)
}

/// A name that no account has.
async fn free_name(write: &Write, holder: &Holder) -> Result<String, AppError> {
    for name in [holder.account_name.clone(), holder.other_account_name()] {
        if accounts::account_by_name(write, &name).await?.is_none() {
            return Ok(name);
        }
    }
    Err(AppError::new(
        ErrorKind::Conflict,
        "Another account has the name that yours would get; an admin has to look into it.",
    ))
}

async fn changed(
    write: &Write,
    ledger: &mut Ledger<'_>,
    known: identity::Model,
    holder: &Holder,
) -> Result<account::Model, AppError> {
    let found = accounts::accounts_by_ids(write, &[known.account_id]).await?;
    let mut account = found
        .into_iter()
        .next()
        .ok_or_else(|| AppError::internal("an identity without its account"))?;
    // A token of before says nothing new, and a disabled account stays as it is.
    if account.disabled_at.is_some() || holder.issued_at < known.claims_at {
        return Ok(account);
    }
    let mut next = identity::Model {
        claims_at: holder.issued_at,
        ..known.clone()
    };
    if let Some(names) = &holder.groups {
        let before = account.roles.clone();
        if before.as_deref() == Some(known.roles.as_str())
            && may_have(write, &account, &holder.roles).await?
        {
            account.role = holder.roles.main().into();
            account.roles = Some(holder.roles.to_string());
            next.roles = holder.roles.to_string();
            write.account_update(&account).await?;
        }
        let groups = set_groups(write, ledger, account.id, &holder.issuer, names).await?;
        if account.roles != before || groups.is_some() {
            let data = json!({
                "account": account.name, "roles": account.roles, "roles_before": before,
                "issuer": holder.issuer, "issuer_groups": names, "issuer_groups_before": groups,
            });
            let subject = account.id.to_string();
            ledger.event(EventKind::AccountChanged, &subject, &holder.issuer, data);
        }
    }
    write.identity_update(&next).await?;
    Ok(account)
}

/// Whether an account may get these roles: the last enabled admin stays one.
async fn may_have(
    write: &Write,
    account: &account::Model,
    roles: &Roles,
) -> Result<bool, AppError> {
    if roles.has(Role::Admin) || !account.roles()?.has(Role::Admin) {
        return Ok(true);
    }
    let admins = accounts::accounts_enabled_as(write, Role::Admin).await?;
    let another = admins.iter().any(|admin| admin.id != account.id);
    if !another {
        tracing::warn!(account = %account.id, "the last enabled admin keeps that role, whatever the identity provider says");
    }
    Ok(another)
}

/// The groups that an issuer has put an account in.
async fn own_groups(
    on: &impl Handle,
    account: Uuid,
    issuer: &str,
) -> Result<Vec<account_group::Model>, AppError> {
    let all = groups::groups_of(on, &[account]).await?;
    let own = all.into_iter().map(|(_, group)| group);
    Ok(own.filter(|group| group.origin == issuer).collect())
}

/// Sets the groups that an issuer puts an account in; those of other origins stay. Returns the names before, if they differ.
async fn set_groups(
    write: &Write,
    ledger: &Ledger<'_>,
    account: Uuid,
    issuer: &str,
    names: &[String],
) -> Result<Option<Vec<String>>, AppError> {
    let own = own_groups(write, account, issuer).await?;
    for group in own.iter().filter(|group| !names.contains(&group.name)) {
        write.members_remove(group.id, &[account]).await?;
        // Nobody knows a group of an issuer but by its members. What is shown to it names the row, and is shown to those who
        // join it again.
        if groups::group_is_empty(write, group.id).await?
            && !groups::group_is_named(write, group.id).await?
        {
            write.group_delete(group.id).await?;
        }
    }
    let is_new = |name: &&String| own.iter().all(|group| group.name != **name);
    let mut rows = Vec::new();
    for name in names.iter().filter(is_new) {
        rows.push(group_member::Model {
            group_id: group_named(write, ledger, issuer, name).await?,
            account_id: account,
        });
    }
    let is_other = !rows.is_empty() || own.len() != names.len();
    write.members_add(rows).await?;
    Ok(is_other.then(|| own.into_iter().map(|group| group.name).collect()))
}

/// The group of that issuer and name, which is made if it does not exist.
async fn group_named(
    write: &Write,
    ledger: &Ledger<'_>,
    issuer: &str,
    name: &str,
) -> Result<Uuid, AppError> {
    if let Some(group) = groups::group_by_name(write, issuer, name).await? {
        return Ok(group.id);
    }
    if groups::group_count(write, issuer).await? >= MAX_GROUPS {
        return Err(AppError::new(
            ErrorKind::LimitReached,
            format!("There are {MAX_GROUPS} groups of this identity provider."),
        ));
    }
    let row = account_group::Model {
        id: ledger.new_id(),
        origin: issuer.to_owned(),
        name: name.to_owned(),
        created_at: ledger.now().0,
    };
    let id = row.id;
    write.group_insert(row).await?;
    Ok(id)
}
