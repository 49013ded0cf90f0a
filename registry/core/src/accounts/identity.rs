//! Accounts of the people and services of identity providers: created at their first token, and updated by every newer
//! one.
//!
//! Roles set by an admin stay: the map changes the roles of an account only while they are what it gave last.
//!
//! Claims that do not admit a person end the access of the account, if they are newer than those applied last: its
//! roles and groups from the provider, its sessions, tokens and feed. Newer claims that admit it restore the roles.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::entity::{account, account_group, group_member, identity};
use a2a_registry_store::{Handle, Write, accounts, groups, identities};
use serde_json::json;
use uuid::Uuid;

use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::{AppError, RefusalReason, Result};
use crate::providers::{Entry, EntryRefusal, Holder};

const MAX_ACCOUNTS: u64 = 100_000;
const MAX_GROUPS: u64 = 10_000;

/// The account of the holder of a token, as the token describes it. It may be disabled.
pub async fn account_of(context: &Context, holder: &Holder) -> Result<account::Model> {
    let entry = match &holder.entry {
        Ok(entry) => entry,
        Err(refusal) => return Err(refuse_holder(context, holder, refusal).await?),
    };
    let store = &context.store;
    if let Some(known) = identities::identity_of(store, &holder.issuer, &holder.subject).await?
        && let Some(account) = accounts::accounts_by_ids(store, &[known.account_id])
            .await?
            .pop()
    {
        refuse_outdated_claims(&known, &account, holder)?;
        if account.disabled_at.is_some() || holder.issued_at < known.claims_at {
            return Ok(account);
        }
        if holder.issued_at == known.claims_at && is_current(store, &known, &account, entry).await?
        {
            return Ok(account);
        }
    }
    brought_up_to_date(context, holder, entry).await
}

/// Refuses a token if claims issued no earlier have ended the access of the account.
fn refuse_outdated_claims(
    known: &identity::Model,
    account: &account::Model,
    holder: &Holder,
) -> Result<()> {
    if account.access_ended_at.is_none() || holder.issued_at > known.claims_at {
        return Ok(());
    }
    let text =
        "The identity provider has not let you in since it issued this token. Sign in again.";
    Err(AppError::forbidden(text).refused(RefusalReason::NotAdmitted))
}

async fn is_current(
    on: &impl Handle,
    known: &identity::Model,
    account: &account::Model,
    entry: &Entry,
) -> Result<bool> {
    let Some(names) = &entry.groups else {
        return Ok(true);
    };
    let mapped = entry.roles.to_string();
    let follows_map = account.roles.as_deref() == Some(known.roles.as_str());
    if follows_map && known.roles != mapped {
        return Ok(false);
    }
    let own = own_groups(on, account.id, &known.issuer).await?;
    let own: BTreeSet<&str> = own.iter().map(|group| group.name.as_str()).collect();
    Ok(own == names.iter().map(String::as_str).collect())
}

/// Creates or changes the account, under the lock of all accounts, so that two processes do so once.
async fn brought_up_to_date(
    context: &Context,
    holder: &Holder,
    entry: &Entry,
) -> Result<account::Model> {
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let known = identities::identity_of(&write, &holder.issuer, &holder.subject).await?;
    let account = match known {
        Some(known) => changed(&write, &mut ledger, known, holder, entry).await?,
        None => made(&write, &mut ledger, holder, entry).await?,
    };
    commit_ledger(context, write, ledger).await?;
    Ok(account)
}

/// The refusal of a holder whom the claims do not admit. It ends the access of the account, if there is one and the
/// claims are complete enough and newer than those applied last.
async fn refuse_holder(
    context: &Context,
    holder: &Holder,
    refusal: &EntryRefusal,
) -> Result<AppError> {
    let is_newer = |known: &identity::Model| holder.issued_at > known.claims_at;
    let known = identities::identity_of(&context.store, &holder.issuer, &holder.subject).await?;
    if refusal.ends_access && known.as_ref().is_some_and(is_newer) {
        let write = context.store.write().await?;
        write.accounts_lock().await?;
        let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
        let known = identities::identity_of(&write, &holder.issuer, &holder.subject).await?;
        if let Some(known) = known.filter(is_newer) {
            end_access(&write, &mut ledger, known, holder).await?;
        }
        commit_ledger(context, write, ledger).await?;
    }
    let error = AppError::forbidden(refusal.text.clone());
    Ok(error.refused(RefusalReason::NotAdmitted))
}

/// Ends what an account has from its provider, and everything by which it is authenticated. Roles that an admin has set
/// stay until it is admitted again, and so does the role of the last enabled admin.
async fn end_access(
    write: &Write,
    ledger: &mut Ledger<'_>,
    known: identity::Model,
    holder: &Holder,
) -> Result<()> {
    let mut account = account_by_id(write, known.account_id).await?;
    let mut next = identity::Model {
        claims_at: holder.issued_at,
        ..known.clone()
    };
    if account.access_ended_at.is_some() {
        // Only the time is new: tokens issued before it no longer admit the account.
        return Ok(write.identity_update(&next).await?);
    }
    let before = account.roles.clone();
    if before.as_deref() == Some(known.roles.as_str()) {
        let none = Roles::default();
        let left = match may_have(write, &account, &none).await? {
            true => none,
            false => [Role::Admin].into_iter().collect(),
        };
        give_roles(&mut account, &mut next, &left);
    }
    account.access_ended_at = Some(ledger.now().0);
    write.account_update(&account).await?;
    write.identity_update(&next).await?;
    let tokens = write.tokens_end(account.id, None).await?;
    write.sessions_end(account.id).await?;
    write.feed_delete(account.id).await?;
    let groups = set_groups(write, ledger, account.id, &holder.issuer, &[]).await?;
    let data = json!({
        "account": account.name, "roles": account.roles, "roles_before": before, "issuer": holder.issuer,
        "issuer_groups_before": groups, "tokens_ended": tokens,
    });
    let kind = EventKind::AccountAccessEnded;
    ledger.event(kind, account.id, &holder.issuer, data);
    Ok(())
}

async fn account_by_id(write: &Write, id: Uuid) -> Result<account::Model> {
    let found = accounts::accounts_by_ids(write, &[id]).await?.pop();
    found.ok_or_else(|| AppError::internal("an identity without its account"))
}

/// Gives an account roles, and records them as what the map gave last.
fn give_roles(account: &mut account::Model, known: &mut identity::Model, roles: &Roles) {
    account.role = roles.main().into();
    account.roles = Some(roles.to_string());
    known.roles = roles.to_string();
}

async fn made(
    write: &Write,
    ledger: &mut Ledger<'_>,
    holder: &Holder,
    entry: &Entry,
) -> Result<account::Model> {
    if identities::identity_count(write, &holder.issuer).await? >= MAX_ACCOUNTS {
        return Err(AppError::limit_reached(format!(
            "There are {MAX_ACCOUNTS} accounts of this identity provider."
        )));
    }
    let name = free_name(write, entry, &holder.subject).await?;
    let now = ledger.now().0;
    let row = account::Model {
        id: ledger.new_id(),
        name,
        role: entry.roles.main().into(),
        roles: Some(entry.roles.to_string()),
        disabled_at: None,
        claims_valid_at: Some(holder.issued_at.saturating_mul(SECOND)),
        access_ended_at: None,
        news_seen_at: None,
        created_at: now,
    };
    write.account_insert(row.clone()).await?;
    let known = identity::Model {
        issuer: holder.issuer.clone(),
        subject: holder.subject.clone(),
        account_id: row.id,
        roles: entry.roles.to_string(),
        claims_at: holder.issued_at,
        created_at: now,
    };
    write.identity_insert(known).await?;
    let names = entry.groups.as_deref().unwrap_or_default();
    set_groups(write, ledger, row.id, &holder.issuer, names).await?;
    let data = json!({
        "account": row.name, "roles": entry.roles.to_string(), "issuer": holder.issuer,
        "subject": holder.subject, "issuer_groups": names,
    });
    ledger.event(EventKind::AccountCreated, row.id, &holder.issuer, data);
    Ok(row)
}

/// A name that no account has.
async fn free_name(write: &Write, entry: &Entry, subject: &str) -> Result<String> {
    for name in [
        entry.account_name.clone(),
        entry.other_account_name(subject),
    ] {
        if accounts::account_by_name(write, &name).await?.is_none() {
            return Ok(name);
        }
    }
    Err(AppError::conflict(
        "Another account has the name that yours would get; an admin has to look into it.",
    ))
}

async fn changed(
    write: &Write,
    ledger: &mut Ledger<'_>,
    known: identity::Model,
    holder: &Holder,
    entry: &Entry,
) -> Result<account::Model> {
    let mut account = account_by_id(write, known.account_id).await?;
    refuse_outdated_claims(&known, &account, holder)?;
    // An older token has nothing new, and a disabled account stays as it is.
    if account.disabled_at.is_some() || holder.issued_at < known.claims_at {
        return Ok(account);
    }
    let mut next = identity::Model {
        claims_at: holder.issued_at,
        ..known.clone()
    };
    let had_ended = account.access_ended_at.take().is_some();
    let issued_at = holder.issued_at.saturating_mul(SECOND);
    account.claims_valid_at = account.claims_valid_at.max(Some(issued_at));
    let before = account.roles.clone();
    if (entry.groups.is_some() || had_ended)
        && before.as_deref() == Some(known.roles.as_str())
        && may_have(write, &account, &entry.roles).await?
    {
        give_roles(&mut account, &mut next, &entry.roles);
    }
    write.account_update(&account).await?;
    write.identity_update(&next).await?;
    let groups = match &entry.groups {
        Some(names) => set_groups(write, ledger, account.id, &holder.issuer, names).await?,
        None => None,
    };
    if account.roles != before || groups.is_some() || had_ended {
        let data = json!({
            "account": account.name, "roles": account.roles, "roles_before": before,
            "issuer": holder.issuer, "issuer_groups": entry.groups, "issuer_groups_before": groups,
            "access_restored": had_ended,
        });
        ledger.event(EventKind::AccountChanged, account.id, &holder.issuer, data);
    }
    Ok(account)
}

/// Whether an account may get these roles: the last enabled admin stays one.
async fn may_have(write: &Write, account: &account::Model, roles: &Roles) -> Result<bool> {
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

async fn own_groups(
    on: &impl Handle,
    account: Uuid,
    issuer: &str,
) -> Result<Vec<account_group::Model>> {
    let all = groups::groups_of(on, &[account]).await?;
    let own = all.into_iter().map(|(_, group)| group);
    Ok(own.filter(|group| group.origin == issuer).collect())
}

/// Sets the groups that an issuer puts an account in; those of other origins stay. Returns the names before, if they
/// differ.
async fn set_groups(
    write: &Write,
    ledger: &Ledger<'_>,
    account: Uuid,
    issuer: &str,
    names: &[String],
) -> Result<Option<Vec<String>>> {
    let own = own_groups(write, account, issuer).await?;
    for group in own.iter().filter(|group| !names.contains(&group.name)) {
        write.members_remove(group.id, &[account]).await?;
        // A group of an issuer is only known by its members. What is shown to it names the row, and is shown to those
        // who join it again.
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

/// The group of that issuer and name, created if it does not exist.
async fn group_named(write: &Write, ledger: &Ledger<'_>, issuer: &str, name: &str) -> Result<Uuid> {
    if let Some(group) = groups::group_by_name(write, issuer, name).await? {
        return Ok(group.id);
    }
    if groups::group_count(write, issuer).await? >= MAX_GROUPS {
        return Err(AppError::limit_reached(format!(
            "There are {MAX_GROUPS} groups of this identity provider."
        )));
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
