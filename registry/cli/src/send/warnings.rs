//! Warnings about calling an agent.

use a2a_registry_api::{Agent, DecisionRequest};
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;

use crate::client::Client;
use crate::client_error::ClientError;
use crate::list_format::PageArgs;
use crate::program_name::program_name;
use crate::terminal;

/// Maximum number of characters of the reason why a call is forbidden, which repeats what policies say.
const MAX_REASON_CHARS: usize = 1_000;

/// Collects the registry's warnings about an agent, as phrases about it. Facts that cannot be checked are warnings
/// too. Commands are included only for a reader with a shell.
pub(super) async fn collect_agent_warnings(
    agent: &Agent,
    client: &Client,
    now: Timestamp,
    has_shell: bool,
) -> Vec<String> {
    let mut warnings = agent_state_warnings(agent, now);
    let (versions, decision) = futures::future::join(
        changed_card_warning(agent, client, has_shell),
        forbidden_call_warning(agent, client, has_shell),
    )
    .await;
    warnings.extend(versions);
    warnings.extend(decision);
    warnings
}

/// Whether the agent has published another card since the served one was approved.
async fn changed_card_warning(agent: &Agent, client: &Client, has_shell: bool) -> Option<String> {
    let id = agent.hit.summary.id;
    let served = &agent.hit.summary.card_digest;
    match client.versions(id, &PageArgs::with_max_limit(None)).await {
        // The newest one comes first. Callers who may not see others get only the served one.
        Ok(list) => {
            let newest = list.value.versions.first()?;
            let what = "has changed its card since it was approved";
            (newest.digest != *served).then(|| match has_shell {
                true => format!("{what}; see {} show {id} --diff", program_name()),
                false => what.to_owned(),
            })
        }
        Err(error) => Some(format!(
            "may have changed its card since it was approved: {}",
            client_error_text(&error, has_shell)
        )),
    }
}

/// Whether policies forbid the caller to call an agent that is otherwise open to everyone.
async fn forbidden_call_warning(agent: &Agent, client: &Client, has_shell: bool) -> Option<String> {
    let summary = &agent.hit.summary;
    // Policies are not evaluated for other agents, which cannot be called.
    let is_listed = matches!(
        summary.lifecycle.known_value(),
        Some(ShownLifecycle::Approved | ShownLifecycle::Deprecated)
    );
    if !is_listed {
        return None;
    }
    let request = DecisionRequest {
        action: "invoke".to_owned(),
        agent: Some(summary.id.to_string()),
        ..DecisionRequest::default()
    };
    match client.policy_decision(&request).await {
        Ok(reply) if reply.value.allowed => None,
        Ok(reply) => {
            let reason = reply.value.reason.unwrap_or_default();
            let reason =
                terminal::escape_and_truncate(reason.trim_end_matches('.'), MAX_REASON_CHARS);
            let id = reply.value.id;
            Some(format!(
                "may not be called by you: {reason} (decision {id})"
            ))
        }
        Err(error) => Some(format!(
            "could not be checked against the policies: {}",
            client_error_text(&error, has_shell)
        )),
    }
}

fn client_error_text(error: &ClientError, has_shell: bool) -> String {
    match has_shell {
        true => error.to_string(),
        false => error.message_without_commands(),
    }
}

/// Warnings from the agent's state.
fn agent_state_warnings(agent: &Agent, now: Timestamp) -> Vec<String> {
    let summary = &agent.hit.summary;
    let mut warnings = Vec::new();
    match summary.lifecycle.known_value() {
        Some(ShownLifecycle::Approved | ShownLifecycle::Deprecated) => {}
        Some(ShownLifecycle::Pending) => {
            warnings.push("is not approved: it waits for a decision".to_owned());
        }
        Some(ShownLifecycle::Rejected) => {
            warnings.push("is not approved: it was rejected".to_owned())
        }
        Some(ShownLifecycle::Retired) => warnings.push("has been retired".to_owned()),
        Some(ShownLifecycle::Suspended) => {
            let holds = agent.holds.iter();
            let holds: Vec<_> = holds
                .map(|hold| format!("{}: {}", hold.hold, hold.reason))
                .collect();
            warnings.push(format!("is on hold ({})", holds.join("; ")));
        }
        // A newer registry has this state. It may be as serious as a hold.
        None => warnings.push(format!(
            "is in a state that this program does not know: {}",
            summary.lifecycle
        )),
    }
    // A hold does not end a deprecation. A deprecation from before messages were stored has none.
    let deprecation = summary.deprecation.as_ref();
    if deprecation.is_some() || summary.lifecycle == ShownLifecycle::Deprecated {
        let text = deprecation.map(|deprecation| format!(": {}", deprecation.sentence()));
        let has_passed = deprecation.is_some_and(|deprecation| deprecation.is_past_sunset(now));
        let passed_note = if has_passed {
            " (that date has passed)"
        } else {
            ""
        };
        warnings.push(format!(
            "is deprecated{}{passed_note}",
            text.unwrap_or_default()
        ));
    }
    let verdict = &agent.signature_verdict;
    if verdict.state == SignatureState::Invalid {
        let reason = verdict.reason.trim_end_matches('.');
        warnings.push(format!("has an invalid signature: {reason}"));
    }
    warnings
}
