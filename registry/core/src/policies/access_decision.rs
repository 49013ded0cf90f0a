//! An access decision: whether the caller may perform an action on an agent.

use std::collections::BTreeSet;

use a2a_registry_api::{Agent, DecisionRequest, PolicyDecision};
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, AuthorizationDecision};

use crate::agents::rendering::{parse_rendered_agent, require_rendered_agent};
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// Decides whether the caller may find or call an agent that it can see. A caller that can see an agent may find it.
pub async fn decide_access(
    context: &AppContext,
    caller: &Caller,
    request: &DecisionRequest,
) -> Result<PolicyDecision> {
    let action = Action::parse(&request.action);
    let action = action
        .filter(|action| Action::DEFAULTS.contains(action))
        .ok_or_else(|| AppError::invalid("/action", "the action must be `discover` or `invoke`"))?;
    let set = context.policy_sets.enforced_set();
    let entry = require_rendered_agent(context, caller, &request.agent).await?;
    let agent = parse_rendered_agent(&entry.without_holds)?;
    let principal = caller.principal();
    let decision = match action {
        Action::Invoke => {
            let (matches, waived) = (&entry.invoke_matches, BTreeSet::new());
            let decision = set.decide(action, &principal, matches, &waived);
            let dry_run_changes =
                set.decision_changing_dry_runs(action, &principal, matches, &waived, &decision);
            let (id, day) = (
                agent.hit.summary.id.to_string(),
                context.now().days_since_epoch(),
            );
            context
                .dry_runs
                .count_changes(&set, action, &id, &principal, &dry_run_changes, day);
            decision
        }
        // A caller that can see the agent may find it.
        _ => AuthorizationDecision {
            allowed: true,
            policies: Vec::new(),
        },
    };
    let unlisted_reason = uncallable_agent_reason(action, &agent);
    let allowed = decision.allowed && unlisted_reason.is_none();
    let sees_policies = caller.has_permission(Permission::SeeAll);
    Ok(PolicyDecision {
        id: new_uuid(context.now(), context.entropy.as_ref()),
        allowed,
        reason: (!allowed)
            .then(|| unlisted_reason.unwrap_or_else(|| policy_decision_reason(&decision))),
        policies: decision
            .policies
            .into_iter()
            .filter(|_| sees_policies)
            .collect(),
        number: set.number(),
        agent: agent.hit.summary.id,
        card_digest: agent.hit.summary.card_digest,
        decided_at: context.now(),
    })
}

/// Decides whether the caller may find an agent that it can see, and whether it may call the agent.
pub async fn decide_discover_and_invoke(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<(PolicyDecision, PolicyDecision)> {
    let request = |action: Action| DecisionRequest {
        action: action.as_str().to_owned(),
        agent: agent.to_owned(),
    };
    let discover = decide_access(context, caller, &request(Action::Discover)).await?;
    let invoke = decide_access(context, caller, &request(Action::Invoke)).await?;
    Ok((discover, invoke))
}

/// Explains why policies do not matter for a call of the agent: only a listed agent can be called.
fn uncallable_agent_reason(action: Action, agent: &Agent) -> Option<String> {
    let lifecycle = agent.hit.summary.lifecycle.as_str();
    let is_listed = matches!(lifecycle, "approved" | "deprecated");
    (action == Action::Invoke && !is_listed).then(|| format!("The agent is {lifecycle}."))
}

fn policy_decision_reason(decision: &AuthorizationDecision) -> String {
    match decision.policies.is_empty() {
        true => "No policy permits it.".to_owned(),
        false => "A policy forbids it.".to_owned(),
    }
}
