//! Actions on collections: everyone can list and show those that they may see; curators create, change and delete
//! them.

use std::collections::BTreeSet;

use a2a_registry_api::limits::{
    MAX_COLLECTION_NAME, MAX_COLLECTION_OWNERS, MAX_COLLECTIONS, MAX_DESCRIPTION,
};
use a2a_registry_api::{Collection, CollectionContent, CollectionList};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::collections::{all_collections, collections_by_names};
use a2a_registry_store::entity::collection;
use a2a_registry_store::{Executor, WriteTransaction, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::agents::audience_collections::update_agents_naming_collection;
use crate::collection_filters::collection_rows::{
    can_see_collection, collection_owners, parse_collection_filter,
};
use crate::commit::change_set::ChangeSet;
use crate::commit::policy_set_numbers::renumber_newest_policy_set;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::name_rules::check_names;
use crate::precondition::IfMatch;
use crate::visibility::audience::{
    check_audience_groups, decode_audience, encode_audience, group_names_by_id, resolve_accounts,
    resolve_groups,
};
use crate::visibility::caller::Caller;

pub async fn collection_list(context: &AppContext, caller: &Caller) -> Result<CollectionList> {
    let mut rows = all_collections(&context.store).await?;
    rows.retain(|row| can_see_collection(caller, row));
    Ok(CollectionList {
        collections: collection_views(&context.store, caller, rows).await?,
    })
}

pub async fn collection_show(
    context: &AppContext,
    caller: &Caller,
    name: &str,
) -> Result<Collection> {
    let row = find_collection(&context.store, name).await?;
    let row = row.filter(|row| can_see_collection(caller, row));
    let row = row.ok_or_else(|| AppError::no_collection(name))?;
    collection_view(&context.store, caller, row).await
}

/// Sets the content of a collection, which is created if it does not exist.
pub async fn collection_put(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    content: &CollectionContent,
    precondition: &IfMatch,
) -> Result<Collection> {
    put_collection(
        context,
        caller,
        name,
        content,
        PutCondition::Matches(precondition),
    )
    .await
}

/// Creates a collection that must not exist yet.
pub async fn collection_create(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    content: &CollectionContent,
) -> Result<Collection> {
    put_collection(context, caller, name, content, PutCondition::Absent).await
}

/// The precondition of a change.
enum PutCondition<'a> {
    /// The version that the caller has seen.
    Matches(&'a IfMatch),
    /// No collection has this name.
    Absent,
}

impl PutCondition<'_> {
    fn check(&self, before: Option<&Collection>) -> Result<()> {
        match (self, before) {
            (Self::Matches(precondition), before) => precondition.check(before),
            (Self::Absent, None) => Ok(()),
            (Self::Absent, Some(_)) => {
                let detail = "A collection of this name already exists. Change it on its page.";
                Err(AppError::invalid("/name", detail))
            }
        }
    }
}

async fn put_collection(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    content: &CollectionContent,
    condition: PutCondition<'_>,
) -> Result<Collection> {
    let curator = caller.require_permission(Permission::Curate)?;
    // A collection with an invalid name cannot exist.
    if !is_valid_collection_name(name) {
        return Err(AppError::no_collection(name));
    }
    check_collection_description(&content.description)?;
    check_names("/owners", &content.owners, MAX_COLLECTION_OWNERS)?;
    let names = content.audience.as_deref().unwrap_or_default();
    check_audience_groups(&context.config().identity, "/audience", names)?;
    let (filter, _) = parse_collection_filter(&content.filter)?;
    let write = begin_collection_write(context).await?;
    let existing = find_collection(&write, name).await?;
    let before = match existing.clone() {
        Some(row) => Some(collection_view(&write, caller, row).await?),
        None => None,
    };
    condition.check(before.as_ref())?;
    let audience = match &content.audience {
        Some(groups) => Some(resolve_groups(&write, caller, groups, &[]).await?),
        None => None,
    };
    let owners = resolve_accounts(&write, &content.owners).await?;
    let owners: Vec<Uuid> = owners.iter().map(|owner| owner.id).collect();
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let now = change_set.now().0;
    let (id, created_at) = match &existing {
        Some(row) => (row.id, row.created_at),
        None => (allocate_collection_id(&write, &mut change_set).await?, now),
    };
    let row = collection::Model {
        id,
        name: name.into(),
        description: content.description.clone(),
        filter,
        audience: audience.as_deref().map(encode_audience),
        owners: encode_audience(&owners),
        created_at,
        updated_at: now,
    };
    write.upsert_collection(row.clone()).await?;
    let after = collection_view(&write, caller, row).await?;
    let data = json!({"collection": name, "filter": after.filter, "audience": after.audience, "owners": after.owners,
        "filter_before": before.map(|before| before.filter)});
    change_set.add_event(EventKind::CollectionChanged, name, &curator.name, data);
    update_agents_naming_collection(&write, &mut change_set, id, name, &curator.name).await?;
    let reason = format!("the collection {name} was changed");
    renumber_newest_policy_set(&write, &mut change_set, &curator.name, &reason).await?;
    commit_changes(context, write, change_set).await?;
    Ok(after)
}

/// Deletes a collection. Its agents are not changed.
pub async fn collection_delete(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    precondition: &IfMatch,
) -> Result<()> {
    let curator = caller.require_permission(Permission::Curate)?;
    let write = begin_collection_write(context).await?;
    let row = find_collection(&write, name).await?;
    let row = row.ok_or_else(|| AppError::no_collection(name))?;
    let id = row.id;
    let before = collection_view(&write, caller, row).await?;
    precondition.check(Some(&before))?;
    write.delete_collection(id).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"collection": name, "filter_before": before.filter});
    change_set.add_event(EventKind::CollectionDeleted, name, &curator.name, data);
    update_agents_naming_collection(&write, &mut change_set, id, name, &curator.name).await?;
    let reason = format!("the collection {name} was deleted");
    renumber_newest_policy_set(&write, &mut change_set, &curator.name, &reason).await?;
    commit_changes(context, write, change_set).await
}

/// Begins a write that locks changes of collections and of policy sets, always in this order.
async fn begin_collection_write(context: &AppContext) -> Result<WriteTransaction> {
    let write = context.store.begin_write().await?;
    write.lock_policy_sets().await?;
    write.lock_collections().await?;
    Ok(write)
}

async fn find_collection(db: &impl Executor, name: &str) -> Result<Option<collection::Model>> {
    Ok(collections_by_names(db, &[name.to_owned()]).await?.pop())
}

async fn allocate_collection_id(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
) -> Result<Uuid> {
    if all_collections(write).await?.len() >= MAX_COLLECTIONS {
        return Err(AppError::limit_reached(format!(
            "The limit of {MAX_COLLECTIONS} collections is reached. Delete some first."
        )));
    }
    Ok(change_set.new_id())
}

/// Whether a name has only lower-case letters and digits, with `.`, `_` and `-` inside.
fn is_valid_collection_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_COLLECTION_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| is_plain(byte) || b"._-".contains(&byte))
        && name.bytes().next().is_some_and(is_plain)
}

fn check_collection_description(description: &str) -> Result<()> {
    if description.chars().count() <= MAX_DESCRIPTION && !description.contains('\0') {
        return Ok(());
    }
    let detail =
        format!("a description must have at most {MAX_DESCRIPTION} characters, without U+0000");
    Err(AppError::invalid("/description", detail))
}

async fn collection_view(
    db: &impl Executor,
    caller: &Caller,
    row: collection::Model,
) -> Result<Collection> {
    let name = row.name.clone();
    let mut views = collection_views(db, caller, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_collection(name))
}

/// Views of collections, in the order of their rows. A caller who does not see everything is shown only its own
/// groups.
async fn collection_views(
    db: &impl Executor,
    caller: &Caller,
    rows: Vec<collection::Model>,
) -> Result<Vec<Collection>> {
    let caller_groups = caller.account.as_ref().map(|account| &account.groups);
    let is_group_visible = |group: &Uuid| {
        caller.has_permission(Permission::SeeAll)
            || caller_groups.is_some_and(|groups| groups.contains(group))
    };
    let audience = |row: &collection::Model| {
        let stored = row.audience.as_deref()?;
        Some(
            decode_audience(Some(stored))
                .into_iter()
                .filter(&is_group_visible)
                .collect(),
        )
    };
    let audiences: Vec<Option<Vec<Uuid>>> = rows.iter().map(audience).collect();
    let groups: BTreeSet<Uuid> = audiences.iter().flatten().flatten().copied().collect();
    let groups: Vec<Uuid> = groups.into_iter().collect();
    let groups = group_names_by_id(db, &groups).await?;
    let owners: BTreeSet<Uuid> = rows.iter().flat_map(collection_owners).collect();
    let owners: Vec<Uuid> = owners.into_iter().collect();
    let owners = accounts::accounts_by_ids(db, &owners).await?;
    let view = |(row, audience): (collection::Model, Option<Vec<Uuid>>)| {
        let of_it = collection_owners(&row);
        let owners = owners.iter().filter(|account| of_it.contains(&account.id));
        Collection {
            owners: sorted_names(owners.map(|account| account.name.clone())),
            audience: audience
                .map(|ids| sorted_names(ids.iter().filter_map(|id| groups.get(id).cloned()))),
            name: row.name,
            description: row.description,
            filter: row.filter,
            created_at: Timestamp(row.created_at),
            updated_at: Timestamp(row.updated_at),
        }
    };
    Ok(rows.into_iter().zip(audiences).map(view).collect())
}

fn sorted_names(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}
