//! Hooks and their deliveries as callers see them.

use std::collections::HashMap;

use a2a_registry_api::limits::MAX_INBOX_ENTRIES;
use a2a_registry_api::{Hook, HookDelivery, HookDeliveryList, HookList};
use a2a_registry_domain::hook::DeliveryState;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::accounts;
use a2a_registry_store::entity::{hook, hook_delivery};
use a2a_registry_store::hook_deliveries::{hook_delivery_count, hook_delivery_page};
use a2a_registry_store::hooks::{failing_hooks, hook_by_id, hook_page};
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::hooks::target::HookTarget;
use crate::paging::{ListPage, PageRequest};
use crate::visibility::caller::{Caller, CallerAccount};

/// Lists the caller's hooks, or those of all accounts for an admin, the newest first.
pub async fn hook_list(
    context: &AppContext,
    caller: &Caller,
    all: bool,
    page: &PageRequest,
) -> Result<HookList> {
    let account = match all {
        true => {
            caller.require_permission(Permission::Administer)?;
            None
        }
        false => Some(caller.require_permission(Permission::Read)?.id),
    };
    let query = format!("hooks {all}");
    let list = ListPage::new(&context.page_token_signer, caller, &query, page)?;
    let before = list.start_position()?;
    let mut rows = hook_page(&context.store, account, before, list.row_limit()).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    Ok(HookList {
        hooks: load_hook_views(context, rows).await?,
        next_page_token,
    })
}

/// The hooks of an account that fail, or those of all accounts for an admin.
pub async fn load_failing_hooks(
    context: &AppContext,
    account: &CallerAccount,
) -> Result<Vec<Hook>> {
    let sees_all = account.has_permission(Permission::Administer);
    let own = (!sees_all).then_some(account.id);
    let rows = failing_hooks(&context.store, own, MAX_INBOX_ENTRIES as u64).await?;
    load_hook_views(context, rows).await
}

async fn load_hook_views(context: &AppContext, rows: Vec<hook::Model>) -> Result<Vec<Hook>> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.account_id).collect();
    let owners = accounts::accounts_by_ids(&context.store, &ids).await?;
    let names: HashMap<Uuid, String> = owners.into_iter().map(|row| (row.id, row.name)).collect();
    let mut hooks = Vec::with_capacity(rows.len());
    for row in rows {
        let name = names.get(&row.account_id).cloned().unwrap_or_default();
        hooks.push(hook_view(context, row, name).await?);
    }
    Ok(hooks)
}

pub async fn hook_show(context: &AppContext, caller: &Caller, id: Uuid) -> Result<Hook> {
    let row = find_hook(context, caller, id).await?;
    load_hook_view(context, row).await
}

/// The row of a hook of the caller, or of any account for an admin.
pub async fn find_hook(context: &AppContext, caller: &Caller, id: Uuid) -> Result<hook::Model> {
    let account = caller.require_permission(Permission::Read)?;
    let sees_all = account.has_permission(Permission::Administer);
    let row = hook_by_id(&context.store, id).await?;
    let row = row.filter(|row| sees_all || row.account_id == account.id);
    row.ok_or_else(|| AppError::no_hook(id))
}

/// The view of a hook, with the name of its account.
pub async fn load_hook_view(context: &AppContext, row: hook::Model) -> Result<Hook> {
    let owner = accounts::accounts_by_ids(&context.store, &[row.account_id]).await?;
    let name = owner.into_iter().next().map(|owner| owner.name);
    hook_view(context, row, name.unwrap_or_default()).await
}

async fn hook_view(context: &AppContext, row: hook::Model, account: String) -> Result<Hook> {
    let store = &context.store;
    let waiting = hook_delivery_count(store, row.id, DeliveryState::Waiting).await?;
    let dead = hook_delivery_count(store, row.id, DeliveryState::Dead).await?;
    Ok(Hook {
        waiting,
        dead,
        id: row.id,
        account,
        format: row.format.0.clone(),
        state: row.state.0.clone(),
        // One that only a later version can read is shown empty, and not told of anything.
        filter: serde_json::from_str(&row.filter).unwrap_or_default(),
        target: HookTarget::open(context, &row).map(|target| target.origin()),
        created_at: Timestamp(row.created_at),
        last_success_at: row.last_success_at.map(Timestamp),
        failing_since: row.failing_since.map(Timestamp),
        last_error: row.last_error,
        name: row.name,
    })
}

/// Lists the deliveries of a hook, the newest first.
pub async fn hook_deliveries(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    state: Option<DeliveryState>,
    page: &PageRequest,
) -> Result<HookDeliveryList> {
    find_hook(context, caller, id).await?;
    let query = format!("deliveries {id} {state:?}");
    let list = ListPage::new(&context.page_token_signer, caller, &query, page)?;
    let before = list.start_position()?;
    let store = &context.store;
    let mut rows = hook_delivery_page(store, id, state, before, list.row_limit()).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    Ok(HookDeliveryList {
        deliveries: rows.into_iter().map(delivery_view).collect(),
        next_page_token,
    })
}

fn delivery_view(row: hook_delivery::Model) -> HookDelivery {
    HookDelivery {
        id: row.message_id,
        kind: row.kind.0,
        subject: row.subject,
        at: Timestamp(row.at),
        state: row.state.0,
        attempts: u32::try_from(row.attempts).unwrap_or(0),
        due_at: row.due_at.map(Timestamp),
        status: row.status.and_then(|status| u16::try_from(status).ok()),
        error: row.error,
    }
}
