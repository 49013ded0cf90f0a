//! Audiences: the groups that something is shown to, stored by id and written as policies name groups.
//!
//! A group is identified by its origin and its name: `NAME` is a group set by an admin, `ORIGIN#NAME` a group of
//! another origin. A group that is created again under an old name is a different one.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::limits::{MAX_AUDIENCE_GROUPS, MAX_GROUP_NAME_CHARS};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::Principal;
use a2a_registry_store::entity::{account, account_group};
use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use a2a_registry_store::{Executor, StoreError, WriteTransaction, accounts};
use uuid::Uuid;

use crate::config::IdentityConfig;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// The groups of a stored audience. An unreadable audience has no groups.
pub fn decode_audience(stored: Option<&str>) -> Vec<Uuid> {
    stored
        .and_then(|kept| serde_json::from_str(kept).ok())
        .unwrap_or_default()
}

pub fn encode_audience(groups: &[Uuid]) -> String {
    serde_json::to_string(groups).unwrap_or_else(|_| "[]".to_owned())
}

/// The name of a group in policies.
pub fn policy_group_name(group: &account_group::Model) -> String {
    let issuer = (group.origin != ADMIN_ORIGIN).then_some(group.origin.as_str());
    Principal::format_group_id(issuer, &group.name)
}

pub async fn group_names_by_id(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, String>, StoreError> {
    let rows = groups::groups_by_ids(db, ids).await?;
    let names = rows
        .iter()
        .map(|group| (group.id, policy_group_name(group)));
    Ok(names.collect())
}

/// Finds a group by its name in policies.
pub async fn find_group_by_name(
    db: &impl Executor,
    name: &str,
) -> Result<Option<account_group::Model>, StoreError> {
    let (origin, short_name) = name.split_once('#').unwrap_or((ADMIN_ORIGIN, name));
    // No stored text contains this character, and PostgreSQL refuses it in a query.
    if name.contains('\0') {
        return Ok(None);
    }
    groups::group_by_name(db, origin, short_name).await
}

/// Resolves groups by name. A caller who is not a curator may name only its own groups and those already set on the
/// changed item; other groups are treated as if they did not exist.
pub async fn resolve_groups(
    db: &impl Executor,
    caller: &Caller,
    names: &[String],
    current_groups: &[Uuid],
) -> Result<Vec<Uuid>> {
    let own_groups = caller.account.as_ref().map(|account| &account.groups);
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let group = find_group_by_name(db, name).await?;
        let may_name = |id: &Uuid| {
            let is_own = own_groups.is_some_and(|groups| groups.contains(id));
            caller.has_permission(Permission::Curate) || is_own || current_groups.contains(id)
        };
        match group.map(|group| group.id).filter(may_name) {
            Some(id) => ids.push(id),
            None => return Err(unknown_group_error(name)),
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Resolves accounts by name.
pub async fn resolve_accounts(
    write: &WriteTransaction,
    names: &[String],
) -> Result<Vec<account::Model>> {
    let rows = accounts::accounts_by_names(write, names).await?;
    let existing_names: HashSet<&String> = rows.iter().map(|account| &account.name).collect();
    if let Some(name) = names.iter().find(|name| !existing_names.contains(name)) {
        return Err(AppError::conflict(format!(
            "Account {name} does not exist. Create it first."
        )));
    }
    Ok(rows)
}

/// Refuses an invalid list of groups, and a list with a group that the configuration leaves out.
pub fn check_audience_groups(
    identity: &IdentityConfig,
    pointer: &str,
    names: &[String],
) -> Result<()> {
    let is_valid_name = |name: &String| (1..=MAX_GROUP_NAME_CHARS).contains(&name.chars().count());
    if names.len() > MAX_AUDIENCE_GROUPS || !names.iter().all(is_valid_name) {
        let detail = format!(
            "at most {MAX_AUDIENCE_GROUPS} groups, each with 1 to {MAX_GROUP_NAME_CHARS} characters"
        );
        return Err(AppError::invalid(pointer, detail));
    }
    let deselected = names
        .iter()
        .find_map(|name| identity.group_deselection_error(name));
    deselected.map_or(Ok(()), |text| Err(AppError::invalid(pointer, text)))
}

fn unknown_group_error(name: &str) -> AppError {
    let name: String = name.chars().take(100).collect();
    AppError::conflict(format!(
        "The group {name} does not exist, or you are not in it. Ask an admin to create it or to add you."
    ))
}
