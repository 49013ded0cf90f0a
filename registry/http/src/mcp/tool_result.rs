//! Tool results: structured, and as text for models.

use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::text;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

const MAX_ERROR_CHARS: usize = 500;

/// Message for an agent that does not exist or that the caller may not see: the same for both, and without the
/// requested name.
pub(super) const NO_AGENT_MESSAGE: &str =
    "The agent does not exist, or you may not see it. Find agents with search_agents.";

/// Successful result: structured, as described by the output schema of the tool, and as text. Models read the
/// structured part too, so hidden characters are made visible in all of it: ids, digests and page tokens of the
/// registry have none, and a URL with hidden characters must not be called.
pub(super) fn tool_success_result(
    structured: &impl Serialize,
    texts: Vec<String>,
) -> Result<CallToolResult, AppError> {
    let mut structured =
        serde_json::to_value(structured).map_err(|error| AppError::internal(error.to_string()))?;
    text::show_hidden_in_json(&mut structured);
    let content = texts.into_iter().map(ContentBlock::text).collect();
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(structured);
    Ok(result)
}

/// Error result with one sentence that tells what to do.
pub fn tool_error_result(tool: &str, error: &AppError) -> CallToolResult {
    if error.kind == ErrorKind::Internal {
        tracing::error!(tool, internal = error.log_message(), "a tool failed");
    }
    let sentence = match error.kind {
        ErrorKind::Invalid => invalid_argument_message(error),
        _ => error.public.clone(),
    };
    CallToolResult::error(vec![ContentBlock::text(text::single_line(
        &sentence,
        MAX_ERROR_CHARS,
    ))])
}

fn invalid_argument_message(error: &AppError) -> String {
    let argument = error
        .members
        .first()
        .map(|(pointer, _)| pointer.trim_start_matches('/'));
    let public = error.public.trim_end_matches('.');
    match argument.filter(|name| !name.is_empty()) {
        Some("q") => format!("The argument `text` is invalid: {public}."),
        Some(name) => format!("The argument `{name}` is invalid: {public}."),
        None => format!("The arguments are invalid: {public}."),
    }
}
