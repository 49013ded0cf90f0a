//! The link in the mails of a hook. Whoever has it reads the mails, and may confirm or end them without signing in.

use a2a_registry_domain::hook::{HookFormat, HookState};
use a2a_registry_store::entity::hook;
use a2a_registry_store::hooks::hook_by_id;
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::hooks::actions::activate_hook;
use crate::hooks::target::HookTarget;

/// The state of the hook of a link.
pub async fn mail_link_state(context: &AppContext, id: Uuid, code: &str) -> Result<String> {
    let row = find_linked_hook(context, id, code).await?;
    Ok(row.state.as_str().to_owned())
}

pub async fn mail_link_confirm(context: &AppContext, id: Uuid, code: &str) -> Result<()> {
    let row = find_linked_hook(context, id, code).await?;
    activate_hook(context, &row).await
}

/// Ends the mails of a hook, for good.
pub async fn mail_link_end(context: &AppContext, id: Uuid, code: &str) -> Result<()> {
    find_linked_hook(context, id, code).await?;
    let write = context.store.begin_write().await?;
    let Some(mut row) = write.lock_hook(id).await? else {
        return Ok(());
    };
    let error = "the recipient has ended these mails";
    write
        .give_up_hook_deliveries(id, error, context.now().0)
        .await?;
    row.state = HookState::Ended.into();
    row.due_at = None;
    row.last_error = Some(error.to_owned());
    write.update_hook(row).await?;
    write.commit().await?;
    Ok(())
}

async fn find_linked_hook(context: &AppContext, id: Uuid, code: &str) -> Result<hook::Model> {
    let row = hook_by_id(&context.store, id).await?;
    let row = row.filter(|row| {
        let target = HookTarget::open(context, row);
        row.format == HookFormat::Mail && target.is_some_and(|target| target.challenge == code)
    });
    row.ok_or_else(|| AppError::not_found("This link is not valid, or its hook was deleted."))
}
