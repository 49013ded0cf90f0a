//! What speaks against calling an agent.

use a2a_registry_api::{Agent, DecisionRequest};
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;

use crate::client::Client;
use crate::invocation::program;
use crate::list::PageArgs;
use crate::refusal::ClientError;
use crate::terminal;

/// What whoever sends to an agent should know before: all that the registry holds against it, as phrases about it. What cannot be
/// found out counts too. Commands are named to a reader who has a shell.
pub(super) async fn of(
    agent: &Agent,
    client: &Client,
    now: Timestamp,
    has_shell: bool,
) -> Vec<String> {
    let mut concerns = shown(agent, now);
    let (versions, decision) = futures::future::join(
        has_changed(agent, client, has_shell),
        is_forbidden(agent, client, has_shell),
    )
    .await;
    concerns.extend(versions);
    concerns.extend(decision);
    concerns
}

/// Whether the agent has shown another card since the one that is served was approved.
async fn has_changed(agent: &Agent, client: &Client, has_shell: bool) -> Option<String> {
    let id = agent.hit.summary.id;
    let served = &agent.hit.summary.card_digest;
    match client.versions(id, &PageArgs::longest(None)).await {
        // The newest one comes first. Callers who may not see others see the served one alone.
        Ok(list) => {
            let newest = list.value.versions.first()?;
            let what = "has changed its card since it was approved";
            (newest.digest != *served).then(|| match has_shell {
                true => format!("{what}; see {} show {id} --diff", program()),
                false => what.to_owned(),
            })
        }
        Err(error) => Some(format!(
            "may have changed its card since it was approved: {}",
            reason(&error, has_shell)
        )),
    }
}

/// Whether policies forbid the caller to call an agent that anybody may call otherwise.
async fn is_forbidden(agent: &Agent, client: &Client, has_shell: bool) -> Option<String> {
    let summary = &agent.hit.summary;
    // About all others no policy is asked: nobody may call them.
    let is_listed = matches!(
        summary.lifecycle.known(),
        Some(ShownLifecycle::Approved | ShownLifecycle::Deprecated)
    );
    if !is_listed {
        return None;
    }
    let request = DecisionRequest {
        action: "invoke".to_owned(),
        agent: summary.id.to_string(),
    };
    match client.policy_decision(&request).await {
        Ok(reply) if reply.value.allowed => None,
        Ok(reply) => {
            let reason = reply.value.reason.unwrap_or_default();
            let reason = terminal::short(reason.trim_end_matches('.'), 200);
            Some(format!("may not be called by you: {reason}"))
        }
        Err(error) => Some(format!(
            "could not be held against the policies: {}",
            reason(&error, has_shell)
        )),
    }
}

fn reason(error: &ClientError, has_shell: bool) -> String {
    match has_shell {
        true => error.to_string(),
        false => error.without_commands(),
    }
}

/// What its page says.
fn shown(agent: &Agent, now: Timestamp) -> Vec<String> {
    let summary = &agent.hit.summary;
    let mut concerns = Vec::new();
    match summary.lifecycle.known() {
        Some(ShownLifecycle::Approved | ShownLifecycle::Deprecated) => {}
        Some(ShownLifecycle::Pending) => {
            concerns.push("is not approved: it waits for a decision".to_owned());
        }
        Some(ShownLifecycle::Rejected) => {
            concerns.push("is not approved: it was rejected".to_owned())
        }
        Some(ShownLifecycle::Retired) => concerns.push("has been retired".to_owned()),
        Some(ShownLifecycle::Suspended) => {
            let holds = agent.holds.iter();
            let holds: Vec<_> = holds
                .map(|hold| format!("{}: {}", hold.hold, hold.reason))
                .collect();
            concerns.push(format!("is on hold ({})", holds.join("; ")));
        }
        // A newer registry has it. What it stands for may be as bad as a hold.
        None => concerns.push(format!(
            "is in a state that this program does not know: {}",
            summary.lifecycle
        )),
    }
    // A hold does not take a deprecation away. One that was made before messages were kept has none.
    let said = summary.deprecation.as_ref();
    if said.is_some() || summary.lifecycle == ShownLifecycle::Deprecated {
        let text = said.map(|deprecation| format!(": {}", deprecation.sentence()));
        let has_passed = said.is_some_and(|deprecation| deprecation.has_passed(now));
        let passed = if has_passed {
            " (that date has passed)"
        } else {
            ""
        };
        concerns.push(format!("is deprecated{}{passed}", text.unwrap_or_default()));
    }
    let verdict = &agent.signature_verdict;
    if verdict.state == SignatureState::Invalid {
        let reason = verdict.reason.trim_end_matches('.');
        concerns.push(format!("has an invalid signature: {reason}"));
    }
    concerns
}
