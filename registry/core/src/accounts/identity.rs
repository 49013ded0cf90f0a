//! Accounts of the people and services of identity providers: created at their first token, and updated by every newer
//! one.
//!
//! Roles set by an admin stay: the role map changes the roles of an account only while they equal those it assigned
//! last.
//!
//! Claims that do not admit a person end the access of the account if they are newer than the claims applied last: the
//! account loses its roles and groups from the provider, its sessions, tokens and feed. Newer claims that admit it
//! restore the roles.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::entity::{account, account_group, group_member, identity};
use a2a_registry_store::{Executor, WriteTransaction, accounts, groups, identities};
use serde_json::json;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, CredentialRefusal, Result};
use crate::providers::{AccountGrant, GrantRejection, TokenSubject};

const MAX_ACCOUNTS: u64 = 100_000;
const MAX_GROUPS: u64 = 10_000;

/// Finds or creates the account of a token's subject and updates it by the token's claims. The account may be
/// disabled.
pub async fn resolve_subject_account(
    context: &AppContext,
    token_subject: &TokenSubject,
) -> Result<account::Model> {
    let grant = match &token_subject.grant {
        Ok(entry) => entry,
        Err(rejection) => {
            return Err(reject_subject_ending_access(context, token_subject, rejection).await?);
        }
    };
    let store = &context.store;
    if let Some(identity) =
        identities::identity_by_subject(store, &token_subject.issuer, &token_subject.subject)
            .await?
        && let Some(account) = accounts::accounts_by_ids(store, &[identity.account_id])
            .await?
            .pop()
    {
        reject_outdated_claims(&identity, &account, token_subject)?;
        if account.disabled_at.is_some() || token_subject.issued_at < identity.claims_at {
            return Ok(account);
        }
        if token_subject.issued_at == identity.claims_at
            && account_matches_grant(store, &identity, &account, grant).await?
        {
            return Ok(account);
        }
    }
    sync_account(context, token_subject, grant).await
}

/// Rejects a token if claims that are as new or newer have ended the access of the account.
fn reject_outdated_claims(
    identity: &identity::Model,
    account: &account::Model,
    token_subject: &TokenSubject,
) -> Result<()> {
    if account.access_ended_at.is_none() || token_subject.issued_at > identity.claims_at {
        return Ok(());
    }
    let text =
        "The identity provider has not let you in since it issued this token. Sign in again.";
    Err(AppError::forbidden(text).with_refusal(CredentialRefusal::NotAdmitted))
}

async fn account_matches_grant(
    db: &impl Executor,
    identity: &identity::Model,
    account: &account::Model,
    grant: &AccountGrant,
) -> Result<bool> {
    let Some(names) = &grant.groups else {
        return Ok(true);
    };
    let mapped_roles = grant.roles.to_string();
    let follows_map = account.roles.as_deref() == Some(identity.roles.as_str());
    if follows_map && identity.roles != mapped_roles {
        return Ok(false);
    }
    let current_groups = provider_groups(db, account.id, &identity.issuer).await?;
    let current_names: BTreeSet<&str> = current_groups
        .iter()
        .map(|group| group.name.as_str())
        .collect();
    Ok(current_names == names.iter().map(String::as_str).collect())
}

/// Creates or changes the account under the lock of all accounts, so that two processes do it only once.
async fn sync_account(
    context: &AppContext,
    token_subject: &TokenSubject,
    grant: &AccountGrant,
) -> Result<account::Model> {
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let identity =
        identities::identity_by_subject(&write, &token_subject.issuer, &token_subject.subject)
            .await?;
    let account = match identity {
        Some(identity) => {
            update_identity_account(&write, &mut change_set, identity, token_subject, grant).await?
        }
        None => create_identity_account(&write, &mut change_set, token_subject, grant).await?,
    };
    commit_changes(context, write, change_set).await?;
    Ok(account)
}

/// Returns the error for a subject that the claims do not admit. The access of its account ends, if the account exists
/// and the claims are complete enough and newer than the claims applied last.
async fn reject_subject_ending_access(
    context: &AppContext,
    token_subject: &TokenSubject,
    rejection: &GrantRejection,
) -> Result<AppError> {
    let is_newer = |known: &identity::Model| token_subject.issued_at > known.claims_at;
    let identity = identities::identity_by_subject(
        &context.store,
        &token_subject.issuer,
        &token_subject.subject,
    )
    .await?;
    if rejection.ends_access && identity.as_ref().is_some_and(is_newer) {
        let write = context.store.begin_write().await?;
        write.lock_accounts().await?;
        let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
        let identity =
            identities::identity_by_subject(&write, &token_subject.issuer, &token_subject.subject)
                .await?;
        if let Some(identity) = identity.filter(is_newer) {
            end_account_access(&write, &mut change_set, identity, token_subject).await?;
        }
        commit_changes(context, write, change_set).await?;
    }
    let error = AppError::forbidden(rejection.text.clone());
    Ok(error.with_refusal(CredentialRefusal::NotAdmitted))
}

/// Ends everything that an account has from its provider, and all its credentials. Roles set by an admin stay until
/// the account is admitted again, and so does the role of the last enabled admin.
async fn end_account_access(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    identity: identity::Model,
    token_subject: &TokenSubject,
) -> Result<()> {
    let mut account = account_by_id(write, identity.account_id).await?;
    let mut updated_identity = identity::Model {
        claims_at: token_subject.issued_at,
        ..identity.clone()
    };
    if account.access_ended_at.is_some() {
        // Only the time changes: tokens issued before it no longer admit the account.
        return Ok(write.update_identity(&updated_identity).await?);
    }
    let roles_before = account.roles.clone();
    if roles_before.as_deref() == Some(identity.roles.as_str()) {
        let no_roles = Roles::default();
        let remaining = match roles_keep_an_admin(write, &account, &no_roles).await? {
            true => no_roles,
            false => [Role::Admin].into_iter().collect(),
        };
        set_mapped_roles(&mut account, &mut updated_identity, &remaining);
    }
    account.access_ended_at = Some(change_set.now().0);
    write.update_account_access(&account).await?;
    write.update_identity(&updated_identity).await?;
    let tokens = write.delete_account_tokens(account.id, None).await?;
    write.delete_account_sessions(account.id).await?;
    write.delete_feed(account.id).await?;
    let groups =
        sync_provider_groups(write, change_set, account.id, &token_subject.issuer, &[]).await?;
    let data = json!({
        "account": account.name, "roles": account.roles, "roles_before": roles_before, "issuer": token_subject.issuer,
        "issuer_groups_before": groups, "tokens_ended": tokens,
    });
    let kind = EventKind::AccountAccessEnded;
    change_set.add_event(kind, account.id, &token_subject.issuer, data);
    Ok(())
}

async fn account_by_id(write: &WriteTransaction, id: Uuid) -> Result<account::Model> {
    let account = accounts::accounts_by_ids(write, &[id]).await?.pop();
    account.ok_or_else(|| AppError::internal("an identity has no account"))
}

/// Gives an account roles, and records them as those assigned last by the role map.
fn set_mapped_roles(account: &mut account::Model, identity: &mut identity::Model, roles: &Roles) {
    account.role = roles.main_role().into();
    account.roles = Some(roles.to_string());
    identity.roles = roles.to_string();
}

async fn create_identity_account(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    token_subject: &TokenSubject,
    grant: &AccountGrant,
) -> Result<account::Model> {
    if identities::identity_count_by_issuer(write, &token_subject.issuer).await? >= MAX_ACCOUNTS {
        return Err(AppError::limit_reached(format!(
            "The limit of {MAX_ACCOUNTS} accounts of this identity provider is reached."
        )));
    }
    let name = unused_account_name(write, grant, &token_subject.subject).await?;
    let now = change_set.now().0;
    let row = account::Model {
        id: change_set.new_id(),
        name,
        role: grant.roles.main_role().into(),
        roles: Some(grant.roles.to_string()),
        disabled_at: None,
        claims_valid_at: Some(token_subject.issued_at.saturating_mul(SECOND)),
        access_ended_at: None,
        news_seen_at: None,
        created_at: now,
    };
    write.insert_account(row.clone()).await?;
    let identity = identity::Model {
        issuer: token_subject.issuer.clone(),
        subject: token_subject.subject.clone(),
        account_id: row.id,
        roles: grant.roles.to_string(),
        claims_at: token_subject.issued_at,
        created_at: now,
    };
    write.insert_identity(identity).await?;
    let names = grant.groups.as_deref().unwrap_or_default();
    sync_provider_groups(write, change_set, row.id, &token_subject.issuer, names).await?;
    let data = json!({
        "account": row.name, "roles": grant.roles.to_string(), "issuer": token_subject.issuer,
        "subject": token_subject.subject, "issuer_groups": names,
    });
    change_set.add_event(
        EventKind::AccountCreated,
        row.id,
        &token_subject.issuer,
        data,
    );
    Ok(row)
}

/// Chooses a name that no account has.
async fn unused_account_name(
    write: &WriteTransaction,
    grant: &AccountGrant,
    subject: &str,
) -> Result<String> {
    for name in [
        grant.account_name.clone(),
        grant.alternative_account_name(subject),
    ] {
        if accounts::account_by_name(write, &name).await?.is_none() {
            return Ok(name);
        }
    }
    Err(AppError::conflict(
        "Another account already has the name that your account would get. Ask an admin to resolve this.",
    ))
}

async fn update_identity_account(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    identity: identity::Model,
    token_subject: &TokenSubject,
    grant: &AccountGrant,
) -> Result<account::Model> {
    let mut account = account_by_id(write, identity.account_id).await?;
    reject_outdated_claims(&identity, &account, token_subject)?;
    // An older token brings no news, and a disabled account is not changed.
    if account.disabled_at.is_some() || token_subject.issued_at < identity.claims_at {
        return Ok(account);
    }
    let mut updated_identity = identity::Model {
        claims_at: token_subject.issued_at,
        ..identity.clone()
    };
    let had_ended = account.access_ended_at.take().is_some();
    let issued_at = token_subject.issued_at.saturating_mul(SECOND);
    account.claims_valid_at = account.claims_valid_at.max(Some(issued_at));
    let roles_before = account.roles.clone();
    if (grant.groups.is_some() || had_ended)
        && roles_before.as_deref() == Some(identity.roles.as_str())
        && roles_keep_an_admin(write, &account, &grant.roles).await?
    {
        set_mapped_roles(&mut account, &mut updated_identity, &grant.roles);
    }
    write.update_account_access(&account).await?;
    write.update_identity(&updated_identity).await?;
    let groups = match &grant.groups {
        Some(names) => {
            sync_provider_groups(write, change_set, account.id, &token_subject.issuer, names)
                .await?
        }
        None => None,
    };
    if account.roles != roles_before || groups.is_some() || had_ended {
        let data = json!({
            "account": account.name, "roles": account.roles, "roles_before": roles_before,
            "issuer": token_subject.issuer, "issuer_groups": grant.groups, "issuer_groups_before": groups,
            "access_restored": had_ended,
        });
        change_set.add_event(
            EventKind::AccountChanged,
            account.id,
            &token_subject.issuer,
            data,
        );
    }
    Ok(account)
}

/// Whether an account may get these roles: the last enabled admin must stay an admin.
async fn roles_keep_an_admin(
    write: &WriteTransaction,
    account: &account::Model,
    roles: &Roles,
) -> Result<bool> {
    if roles.contains(Role::Admin) || !account.account_roles()?.contains(Role::Admin) {
        return Ok(true);
    }
    let admins = accounts::enabled_accounts_by_role(write, Role::Admin).await?;
    let another = admins.iter().any(|admin| admin.id != account.id);
    if !another {
        tracing::warn!(account = %account.id, "the last enabled admin keeps the admin role, although the identity \
         provider does not grant it");
    }
    Ok(another)
}

async fn provider_groups(
    db: &impl Executor,
    account: Uuid,
    issuer: &str,
) -> Result<Vec<account_group::Model>> {
    let all = groups::groups_by_account(db, &[account]).await?;
    let own = all.into_iter().map(|(_, group)| group);
    Ok(own.filter(|group| group.origin == issuer).collect())
}

/// Sets the groups that an issuer assigns to an account; groups of other origins stay. Returns the previous names if
/// they differ.
async fn sync_provider_groups(
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    account: Uuid,
    issuer: &str,
    names: &[String],
) -> Result<Option<Vec<String>>> {
    let current_groups = provider_groups(write, account, issuer).await?;
    for group in current_groups
        .iter()
        .filter(|group| !names.contains(&group.name))
    {
        write.delete_group_members(group.id, &[account]).await?;
        // Only its members know a group of an issuer. Agents that are shown to the group refer to its row, so that
        // members who rejoin see them again.
        if groups::is_group_empty(write, group.id).await?
            && !groups::any_audience_has_group(write, group.id).await?
        {
            write.delete_group(group.id).await?;
        }
    }
    let is_new = |name: &&String| current_groups.iter().all(|group| group.name != **name);
    let mut rows = Vec::new();
    for name in names.iter().filter(is_new) {
        rows.push(group_member::Model {
            group_id: find_or_create_group(write, change_set, issuer, name).await?,
            account_id: account,
        });
    }
    let has_changed = !rows.is_empty() || current_groups.len() != names.len();
    write.insert_group_members(rows).await?;
    Ok(has_changed.then(|| current_groups.into_iter().map(|group| group.name).collect()))
}

/// The group of that issuer and name, created if it does not exist.
async fn find_or_create_group(
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    issuer: &str,
    name: &str,
) -> Result<Uuid> {
    if let Some(group) = groups::group_by_name(write, issuer, name).await? {
        return Ok(group.id);
    }
    if groups::group_count_by_origin(write, issuer).await? >= MAX_GROUPS {
        return Err(AppError::limit_reached(format!(
            "The limit of {MAX_GROUPS} groups of this identity provider is reached."
        )));
    }
    let row = account_group::Model {
        id: change_set.new_id(),
        origin: issuer.to_owned(),
        name: name.to_owned(),
        created_at: change_set.now().0,
    };
    let id = row.id;
    write.insert_group(row).await?;
    Ok(id)
}
