//! Acts on collections: everyone lists and shows those that they may see; curators create, change and delete them.

use std::collections::BTreeSet;

use a2a_registry_api::limits::{MAX_COLLECTION_NAME, MAX_COLLECTIONS, MAX_DESCRIPTION, MAX_OWNERS};
use a2a_registry_api::{Collection, CollectionContent, CollectionList};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::collections::{collections, collections_by_names};
use a2a_registry_store::entity::collection;
use a2a_registry_store::{Handle, Write, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::agents::shown_collections::follow_audience;
use crate::collection_filters::collection_rows::{owners_of, read_filter, sees_collection};
use crate::commit::ledger::Ledger;
use crate::commit::policy_numbers::follow_collections;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::names::check_names;
use crate::precondition::Precondition;
use crate::visibility::audience::{
    accounts_named, check_groups, groups_in, groups_named, kept, named_by_id,
};
use crate::visibility::caller::Caller;

pub async fn collection_list(context: &Context, caller: &Caller) -> Result<CollectionList> {
    let mut rows = collections(&context.store).await?;
    rows.retain(|row| sees_collection(caller, row));
    Ok(CollectionList {
        collections: views(&context.store, caller, rows).await?,
    })
}

pub async fn collection_show(context: &Context, caller: &Caller, name: &str) -> Result<Collection> {
    let row = row(&context.store, name).await?;
    let row = row.filter(|row| sees_collection(caller, row));
    let row = row.ok_or_else(|| AppError::no_collection(name))?;
    view(&context.store, caller, row).await
}

/// Sets the content of a collection, which is created if it does not exist.
pub async fn collection_put(
    context: &Context,
    caller: &Caller,
    name: &str,
    content: &CollectionContent,
    seen: &Precondition,
) -> Result<Collection> {
    put(context, caller, name, content, Expected::Seen(seen)).await
}

/// Makes a collection that does not exist yet.
pub async fn collection_make(
    context: &Context,
    caller: &Caller,
    name: &str,
    content: &CollectionContent,
) -> Result<Collection> {
    put(context, caller, name, content, Expected::None).await
}

/// What the caller expects to exist before its change.
enum Expected<'a> {
    /// What the caller has seen.
    Seen(&'a Precondition),
    /// No collection of that name.
    None,
}

impl Expected<'_> {
    fn check(&self, before: Option<&Collection>) -> Result<()> {
        match (self, before) {
            (Self::Seen(seen), before) => seen.check(before),
            (Self::None, None) => Ok(()),
            (Self::None, Some(_)) => {
                let detail = "There is a collection of this name; change it on its page.";
                Err(AppError::invalid("/name", detail))
            }
        }
    }
}

async fn put(
    context: &Context,
    caller: &Caller,
    name: &str,
    content: &CollectionContent,
    expected: Expected<'_>,
) -> Result<Collection> {
    let curator = caller.demand(Permission::Curate)?;
    // An invalid name in the path belongs to no collection.
    if !is_name(name) {
        return Err(AppError::no_collection(name));
    }
    check_description(&content.description)?;
    check_names("/owners", &content.owners, MAX_OWNERS)?;
    let names = content.audience.as_deref().unwrap_or_default();
    check_groups(&context.config.identity, "/audience", names)?;
    let (filter, _) = read_filter(&content.filter)?;
    let write = locked(context).await?;
    let known = row(&write, name).await?;
    let before = match known.clone() {
        Some(row) => Some(view(&write, caller, row).await?),
        None => None,
    };
    expected.check(before.as_ref())?;
    let audience = match &content.audience {
        Some(groups) => Some(groups_named(&write, caller, groups, &[]).await?),
        None => None,
    };
    let owners = accounts_named(&write, &content.owners).await?;
    let owners: Vec<Uuid> = owners.iter().map(|owner| owner.id).collect();
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let now = ledger.now().0;
    let (id, created_at) = match &known {
        Some(row) => (row.id, row.created_at),
        None => (admitted(&write, &mut ledger).await?, now),
    };
    let row = collection::Model {
        id,
        name: name.into(),
        description: content.description.clone(),
        filter,
        audience: audience.as_deref().map(kept),
        owners: kept(&owners),
        created_at,
        updated_at: now,
    };
    write.collection_put(row.clone()).await?;
    let after = view(&write, caller, row).await?;
    let data = json!({"collection": name, "filter": after.filter, "audience": after.audience, "owners": after.owners,
        "filter_before": before.map(|before| before.filter)});
    ledger.event(EventKind::CollectionChanged, name, &curator.name, data);
    follow_audience(&write, &mut ledger, id, name, &curator.name).await?;
    let reason = format!("the collection {name} was changed");
    follow_collections(&write, &mut ledger, &curator.name, &reason).await?;
    commit_ledger(context, write, ledger).await?;
    Ok(after)
}

/// Its agents are not changed.
pub async fn collection_delete(
    context: &Context,
    caller: &Caller,
    name: &str,
    seen: &Precondition,
) -> Result<()> {
    let curator = caller.demand(Permission::Curate)?;
    let write = locked(context).await?;
    let row = row(&write, name).await?;
    let row = row.ok_or_else(|| AppError::no_collection(name))?;
    let id = row.id;
    let before = view(&write, caller, row).await?;
    seen.check(Some(&before))?;
    write.collection_delete(id).await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let data = json!({"collection": name, "filter_before": before.filter});
    ledger.event(EventKind::CollectionDeleted, name, &curator.name, data);
    follow_audience(&write, &mut ledger, id, name, &curator.name).await?;
    let reason = format!("the collection {name} was deleted");
    follow_collections(&write, &mut ledger, &curator.name, &reason).await?;
    commit_ledger(context, write, ledger).await
}

/// A write in which no other one changes collections or makes policy sets: always locked in this order.
async fn locked(context: &Context) -> Result<Write> {
    let write = context.store.write().await?;
    write.policies_lock().await?;
    write.collections_lock().await?;
    Ok(write)
}

async fn row(on: &impl Handle, name: &str) -> Result<Option<collection::Model>> {
    Ok(collections_by_names(on, &[name.to_owned()]).await?.pop())
}

async fn admitted(write: &Write, ledger: &mut Ledger<'_>) -> Result<Uuid> {
    if collections(write).await?.len() >= MAX_COLLECTIONS {
        return Err(AppError::limit_reached(format!(
            "There are {MAX_COLLECTIONS} collections; delete some first."
        )));
    }
    Ok(ledger.new_id())
}

/// Lower-case letters and digits, with `.`, `_` and `-` inside.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_COLLECTION_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| plain(byte) || b"._-".contains(&byte))
        && name.bytes().next().is_some_and(plain)
}

fn check_description(description: &str) -> Result<()> {
    if description.chars().count() <= MAX_DESCRIPTION && !description.contains('\0') {
        return Ok(());
    }
    let detail = format!("a description has at most {MAX_DESCRIPTION} characters, without U+0000");
    Err(AppError::invalid("/description", detail))
}

async fn view(on: &impl Handle, caller: &Caller, row: collection::Model) -> Result<Collection> {
    let name = row.name.clone();
    let mut views = views(on, caller, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_collection(name))
}

/// Collections as the caller sees them, in the order of their rows: a caller who does not see everything is shown only
/// its own groups.
async fn views(
    on: &impl Handle,
    caller: &Caller,
    rows: Vec<collection::Model>,
) -> Result<Vec<Collection>> {
    let own = caller.account.as_ref().map(|account| &account.groups);
    let told = |group: &Uuid| {
        caller.may(Permission::SeeAll) || own.is_some_and(|groups| groups.contains(group))
    };
    let audience = |row: &collection::Model| {
        let kept = row.audience.as_deref()?;
        Some(groups_in(Some(kept)).into_iter().filter(&told).collect())
    };
    let audiences: Vec<Option<Vec<Uuid>>> = rows.iter().map(audience).collect();
    let groups: BTreeSet<Uuid> = audiences.iter().flatten().flatten().copied().collect();
    let groups: Vec<Uuid> = groups.into_iter().collect();
    let groups = named_by_id(on, &groups).await?;
    let owners: BTreeSet<Uuid> = rows.iter().flat_map(owners_of).collect();
    let owners: Vec<Uuid> = owners.into_iter().collect();
    let owners = accounts::accounts_by_ids(on, &owners).await?;
    let view = |(row, audience): (collection::Model, Option<Vec<Uuid>>)| {
        let of_it = owners_of(&row);
        let owners = owners.iter().filter(|account| of_it.contains(&account.id));
        Collection {
            owners: sorted(owners.map(|account| account.name.clone())),
            audience: audience
                .map(|ids| sorted(ids.iter().filter_map(|id| groups.get(id).cloned()))),
            name: row.name,
            description: row.description,
            filter: row.filter,
            created_at: Timestamp(row.created_at),
            updated_at: Timestamp(row.updated_at),
        }
    };
    Ok(rows.into_iter().zip(audiences).map(view).collect())
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}
