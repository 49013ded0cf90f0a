//! One decision: whether the caller may do something with an agent.

use std::collections::BTreeSet;

use a2a_registry_api::{Agent, DecisionRequest, PolicyDecision};
use a2a_registry_domain::ids::new_id;
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, Verdict};

use crate::agents::rendered::{agent_entry, parsed};
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// Decides whether the caller may find or call an agent that it sees. A caller that sees an agent may find it.
pub async fn decide(
    context: &Context,
    caller: &Caller,
    request: &DecisionRequest,
) -> Result<PolicyDecision> {
    let action = Action::parse(&request.action);
    let action = action
        .filter(|action| Action::UNNAMED.contains(action))
        .ok_or_else(|| AppError::invalid("/action", "an action is `discover` or `invoke`"))?;
    let set = context.policies.in_force();
    let entry = agent_entry(context, caller, &request.agent).await?;
    let agent = parsed(&entry.without_holds)?;
    let principal = caller.principal();
    let verdict = match action {
        Action::Invoke => {
            let (matches, waived) = (&entry.invoke, BTreeSet::new());
            let verdict = set.verdict(action, &principal, matches, &waived);
            let tried = set.would_change(action, &principal, matches, &waived, &verdict);
            let (id, day) = (agent.hit.summary.id.to_string(), context.now().day());
            context
                .dry_runs
                .note(&set, action, &id, &principal, &tried, day);
            verdict
        }
        // A caller that sees it may find it.
        _ => Verdict {
            allowed: true,
            policies: Vec::new(),
        },
    };
    let barred = barred(action, &agent);
    let allowed = verdict.allowed && barred.is_none();
    let told = caller.may(Permission::SeeAll);
    Ok(PolicyDecision {
        id: new_id(context.now(), context.entropy.as_ref()),
        allowed,
        reason: (!allowed).then(|| barred.unwrap_or_else(|| by_policy(&verdict))),
        policies: verdict.policies.into_iter().filter(|_| told).collect(),
        number: set.number(),
        agent: agent.hit.summary.id,
        card_digest: agent.hit.summary.card_digest,
        decided_at: context.now(),
    })
}

/// Decides whether the caller may find an agent that it sees, and whether it may call it.
pub async fn decide_both(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<(PolicyDecision, PolicyDecision)> {
    let request = |action: Action| DecisionRequest {
        action: action.as_str().to_owned(),
        agent: agent.to_owned(),
    };
    let discover = decide(context, caller, &request(Action::Discover)).await?;
    let invoke = decide(context, caller, &request(Action::Invoke)).await?;
    Ok((discover, invoke))
}

/// Why the agent cannot be called, whatever policies say: only a listed one can be.
fn barred(action: Action, agent: &Agent) -> Option<String> {
    let lifecycle = agent.hit.summary.lifecycle.as_str();
    let is_listed = matches!(lifecycle, "approved" | "deprecated");
    (action == Action::Invoke && !is_listed).then(|| format!("The agent is {lifecycle}."))
}

fn by_policy(verdict: &Verdict) -> String {
    match verdict.policies.is_empty() {
        true => "No policy permits it.".to_owned(),
        false => "A policy forbids it.".to_owned(),
    }
}
