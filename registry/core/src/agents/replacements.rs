//! Replacements of deprecated agents, which are shown only to callers who may see them.

use a2a_registry_api::Agent;
use a2a_registry_search::HitRow;
use serde_json::Value;
use uuid::Uuid;

use crate::agents::hit_members::mark_hidden_hit_members;
use crate::agents::views::require_visible_agent;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::visibility::caller::Caller;

/// The text that every stored hit with a replacement contains.
const REPLACEMENT_MEMBER: &str = r#""replacement":""#;

/// Whether the caller may see a replacement. It may have been hidden, retired or deleted since it was named.
pub async fn is_replacement_visible(
    context: &AppContext,
    caller: &Caller,
    replacement: Uuid,
) -> Result<bool> {
    match require_visible_agent(context, caller, &replacement.to_string()).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the replacement from the view of an agent, unless the caller may see it.
pub async fn redact_agent_replacement(
    context: &AppContext,
    caller: &Caller,
    view: &mut Agent,
) -> Result<()> {
    let deprecation = view.hit.summary.deprecation.as_ref();
    let Some(replacement) = deprecation.and_then(|deprecation| deprecation.replacement) else {
        return Ok(());
    };
    if !is_replacement_visible(context, caller, replacement).await?
        && let Some(deprecation) = &mut view.hit.summary.deprecation
    {
        deprecation.replacement = None;
    }
    Ok(())
}

/// Removes replacements that the caller may not see from stored hits. A hit without one is not parsed.
pub async fn redact_hit_replacements(
    context: &AppContext,
    caller: &Caller,
    rows: &mut [HitRow],
) -> Result<()> {
    for row in rows {
        // Every search passes here; the standard library's substring search compares many bytes at once.
        if !std::str::from_utf8(&row.hit).is_ok_and(|hit| hit.contains(REPLACEMENT_MEMBER)) {
            continue;
        }
        let parse_error =
            |error| AppError::internal(format!("a stored hit cannot be parsed: {error}"));
        let mut hit: Value = serde_json::from_slice(&row.hit).map_err(parse_error)?;
        let Some(deprecation) = hit.get_mut("deprecation").and_then(Value::as_object_mut) else {
            continue;
        };
        let replacement = deprecation.get("replacement").and_then(Value::as_str);
        let replacement = replacement.and_then(|named| named.parse::<Uuid>().ok());
        if let Some(replacement) = replacement
            && !is_replacement_visible(context, caller, replacement).await?
        {
            deprecation.remove("replacement");
            let hit = serde_json::to_vec(&hit).map_err(parse_error)?;
            row.hit = mark_hidden_hit_members(&hit).map_err(parse_error)?;
        }
    }
    Ok(())
}
