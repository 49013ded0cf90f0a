//! Audiences: the groups that something is shown to, stored by id and written as policies name groups.
//!
//! A group is identified by its origin and its name: `NAME` is one that an admin has set, `ORIGIN#NAME` one of another
//! origin. A group that is created again under an old name is a different one.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::limits::{MAX_AUDIENCE, MAX_GROUP};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::Principal;
use a2a_registry_store::entity::{account, account_group};
use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use a2a_registry_store::{Handle, StoreError, Write, accounts};
use uuid::Uuid;

use crate::config::IdentityConfig;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// The groups of a stored audience. One that cannot be read has no groups.
pub fn groups_in(kept: Option<&str>) -> Vec<Uuid> {
    kept.and_then(|kept| serde_json::from_str(kept).ok())
        .unwrap_or_default()
}

pub fn kept(groups: &[Uuid]) -> String {
    serde_json::to_string(groups).unwrap_or_else(|_| "[]".to_owned())
}

fn name_of(group: &account_group::Model) -> String {
    let issuer = (group.origin != ADMIN_ORIGIN).then_some(group.origin.as_str());
    Principal::group(issuer, &group.name)
}

pub async fn named_by_id(
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, String>, StoreError> {
    let found = groups::groups_by_ids(on, ids).await?;
    let named = found.iter().map(|group| (group.id, name_of(group)));
    Ok(named.collect())
}

pub async fn group_has_members(on: &impl Handle, name: &str) -> Result<bool, StoreError> {
    Ok(match group_by_full_name(on, name).await? {
        Some(group) => !groups::group_is_empty(on, group.id).await?,
        None => false,
    })
}

async fn group_by_full_name(
    on: &impl Handle,
    name: &str,
) -> Result<Option<account_group::Model>, StoreError> {
    let (origin, bare) = name.split_once('#').unwrap_or((ADMIN_ORIGIN, name));
    // No stored text contains this character, and PostgreSQL refuses it in a query.
    if name.contains('\0') {
        return Ok(None);
    }
    groups::group_by_name(on, origin, bare).await
}

/// The groups with these names. A caller who does not curate may name only its own groups and those of what it changes;
/// other groups are treated as if they did not exist.
pub async fn groups_named(
    on: &impl Handle,
    caller: &Caller,
    names: &[String],
    present: &[Uuid],
) -> Result<Vec<Uuid>> {
    let own = caller.account.as_ref().map(|account| &account.groups);
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let found = group_by_full_name(on, name).await?;
        let may_name = |id: &Uuid| {
            let is_own = own.is_some_and(|groups| groups.contains(id));
            caller.may(Permission::Curate) || is_own || present.contains(id)
        };
        match found.map(|group| group.id).filter(may_name) {
            Some(id) => ids.push(id),
            None => return Err(missing(name)),
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// The accounts with these names.
pub async fn accounts_named(write: &Write, names: &[String]) -> Result<Vec<account::Model>> {
    let found = accounts::accounts_by_names(write, names).await?;
    let known: HashSet<&String> = found.iter().map(|account| &account.name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(AppError::conflict(format!(
            "There is no account {name}; make it first."
        )));
    }
    Ok(found)
}

/// Refuses what is no list of groups, and a list with one that the configuration leaves out.
pub fn check_groups(identity: &IdentityConfig, pointer: &str, names: &[String]) -> Result<()> {
    let fits = |name: &String| (1..=MAX_GROUP).contains(&name.chars().count());
    if names.len() > MAX_AUDIENCE || !names.iter().all(fits) {
        let detail =
            format!("at most {MAX_AUDIENCE} groups, each with 1 to {MAX_GROUP} characters");
        return Err(AppError::invalid(pointer, detail));
    }
    let deselected = names.iter().find_map(|name| identity.deselection(name));
    deselected.map_or(Ok(()), |text| Err(AppError::invalid(pointer, text)))
}

fn missing(name: &str) -> AppError {
    let name: String = name.chars().take(100).collect();
    AppError::conflict(format!(
        "There is no group {name} that you may name: an admin makes it first, or you are in it."
    ))
}
