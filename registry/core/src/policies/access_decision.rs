//! An access decision: whether a caller may perform an action on an agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_api::{DecisionRequest, PolicyDecision};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, AuthorizationDecision, PolicySet};

use crate::agents::rendering::require_rendered_agent;
use crate::context::AppContext;
use crate::database_health::database_silence;
use crate::decision_log::{DecisionFacts, asker_name, decision_asker, record_decision};
use crate::error::{AppError, Result};
use crate::policies::subject_decisions::{
    MAX_DATABASE_SILENCE, SILENT_DATABASE, decide_for_subject,
};
use crate::policy_sets::notices::{decision_notices, denial_text};
use crate::process_state::agent_cache::RenderedAgent;
use crate::visibility::caller::Caller;

/// How often an agent is read again because another policy set has come into force meanwhile.
pub(super) const MAX_SET_CHANGES: usize = 3;

/// Decides whether the caller may find or call an agent that it can see, or what the request asks about others.
pub async fn decide_access(
    context: &AppContext,
    caller: &Caller,
    request: &DecisionRequest,
) -> Result<PolicyDecision> {
    decide_request(context, caller, request, None).await
}

/// Decides like [`decide_access`]; `subject_token` is the access token of somebody else, about whom the request asks.
pub async fn decide_request(
    context: &AppContext,
    caller: &Caller,
    request: &DecisionRequest,
    subject_token: Option<&str>,
) -> Result<PolicyDecision> {
    match (request, subject_token) {
        (
            DecisionRequest {
                agent: Some(agent),
                url: None,
                subject: None,
                ..
            },
            None,
        ) => decide_for_caller(context, caller, &request.action, agent).await,
        _ => decide_for_subject(context, caller, request, subject_token).await,
    }
}

/// Decides whether the caller may find or call an agent that it can see. A caller that can see an agent may find it.
async fn decide_for_caller(
    context: &AppContext,
    caller: &Caller,
    action: &str,
    agent: &str,
) -> Result<PolicyDecision> {
    let action = parse_decision_action(action)?;
    let question = AccessQuestion::about_caller(caller, action, agent);
    if let Some(verdict) = silent_database_verdict(context) {
        let set = context.policy_sets.enforced_set();
        return Ok(question.record_verdict(context, &set, verdict, None));
    }
    let (set, entry) = load_evaluated_agent(context, caller, agent).await?;
    let verdict = match action {
        Action::Invoke => decide_call(context, &set, caller, &entry),
        _ => AccessVerdict::allowed(),
    };
    Ok(question.record_verdict(context, &set, verdict, Some(&entry)))
}

/// The verdict of a process that has not heard from its database for too long: what others have changed meanwhile is
/// not known, so it denies everything, alike for agents that exist and that do not.
pub(super) fn silent_database_verdict(context: &AppContext) -> Option<AccessVerdict> {
    let is_silent = database_silence(context) > MAX_DATABASE_SILENCE;
    is_silent.then(|| AccessVerdict::denied(SILENT_DATABASE))
}

/// The set in force, and an agent that the caller can see, evaluated under that set.
async fn load_evaluated_agent(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<(Arc<PolicySet>, Arc<RenderedAgent>)> {
    for _ in 0..MAX_SET_CHANGES {
        let entry = require_rendered_agent(context, caller, agent).await?;
        let set = context.policy_sets.enforced_set();
        if is_evaluated_under(&entry, &set) {
            return Ok((set, entry));
        }
    }
    Err(changing_sets_error())
}

/// Whether the matches of an agent are those of this set.
pub(super) fn is_evaluated_under(entry: &RenderedAgent, set: &PolicySet) -> bool {
    entry.stamp.policies.0 == set.number()
}

pub(super) fn changing_sets_error() -> AppError {
    AppError::unavailable("The policies are being replaced. Try again.", 1)
}

pub(super) fn parse_decision_action(action: &str) -> Result<Action> {
    let action = Action::parse(action).filter(|action| Action::DEFAULTS.contains(action));
    action.ok_or_else(|| AppError::invalid("/action", "the action must be `discover` or `invoke`"))
}

/// Decides whether the caller may find an agent that it can see, and whether it may call the agent.
pub async fn decide_discover_and_invoke(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<(PolicyDecision, PolicyDecision)> {
    let request = |action: Action| DecisionRequest {
        action: action.as_str().to_owned(),
        agent: Some(agent.to_owned()),
        ..DecisionRequest::default()
    };
    let discover = decide_access(context, caller, &request(Action::Discover)).await?;
    let invoke = decide_access(context, caller, &request(Action::Invoke)).await?;
    Ok((discover, invoke))
}

/// Why a caller may not call an agent that it can see, in sentences with the id of the decision; `None` if it may.
pub async fn call_denial_reason(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Option<String>> {
    let (set, entry) = load_evaluated_agent(context, caller, agent).await?;
    let (principal, no_waivers) = (caller.principal(), BTreeSet::new());
    let matches = &entry.invoke_matches;
    let decision = set.decide(Action::Invoke, &principal, matches, &no_waivers);
    if decision.allowed {
        return Ok(None);
    }
    let verdict = AccessVerdict {
        decision,
        other_reason: None,
    };
    let question = AccessQuestion::about_caller(caller, Action::Invoke, agent);
    let answer = question.record_verdict(context, &set, verdict, Some(&entry));
    let reason = answer.reason.unwrap_or_default();
    Ok(Some(format!("{reason} This is decision {}.", answer.id)))
}

/// What policies decide, unless something else denies it.
#[derive(Debug, Clone)]
pub(super) struct AccessVerdict {
    pub decision: AuthorizationDecision,
    /// Why it is denied whatever policies decide.
    pub other_reason: Option<String>,
}

impl AccessVerdict {
    pub fn allowed() -> Self {
        Self {
            decision: AuthorizationDecision {
                allowed: true,
                policies: Vec::new(),
            },
            other_reason: None,
        }
    }

    pub fn denied(reason: impl Into<String>) -> Self {
        Self {
            other_reason: Some(reason.into()),
            ..Self::allowed()
        }
    }

    pub fn is_allowed(&self) -> bool {
        self.decision.allowed && self.other_reason.is_none()
    }
}

/// Decides whether a caller may call an agent that it can see.
pub(super) fn decide_call(
    context: &AppContext,
    set: &PolicySet,
    caller: &Caller,
    entry: &RenderedAgent,
) -> AccessVerdict {
    let (action, principal) = (Action::Invoke, caller.principal());
    let (matches, no_waivers) = (&entry.invoke_matches, BTreeSet::new());
    let decision = set.decide(action, &principal, matches, &no_waivers);
    let dry_run_changes =
        set.decision_changing_dry_runs(action, &principal, matches, &no_waivers, &decision);
    let (id, day) = (entry.id.to_string(), context.now().days_since_epoch());
    context
        .dry_runs
        .count_changes(set, action, &id, &principal, &dry_run_changes, day);
    AccessVerdict {
        decision,
        other_reason: uncallable_agent_reason(entry),
    }
}

/// Explains why policies do not matter for a call of the agent: only a listed agent can be called.
pub(super) fn uncallable_agent_reason(entry: &RenderedAgent) -> Option<String> {
    let lifecycle = entry.lifecycle.as_str();
    let is_listed = matches!(lifecycle, "approved" | "deprecated");
    (!is_listed).then(|| format!("The agent is {lifecycle}."))
}

/// A question, as its record has it.
pub(super) struct AccessQuestion<'a> {
    pub asker: &'a Caller,
    pub action: Action,
    pub subject: String,
    pub resource: String,
    /// Whether the asker is told the names of policies.
    pub sees_policies: bool,
}

impl<'a> AccessQuestion<'a> {
    /// A question of a caller about itself.
    fn about_caller(caller: &'a Caller, action: Action, agent: &str) -> Self {
        Self {
            asker: caller,
            action,
            subject: asker_name(caller).to_owned(),
            resource: agent.to_owned(),
            sees_policies: caller.has_permission(Permission::SeeAll),
        }
    }

    /// Records the answer to the question and returns it.
    pub fn record_verdict(
        self,
        context: &AppContext,
        set: &PolicySet,
        verdict: AccessVerdict,
        entry: Option<&RenderedAgent>,
    ) -> PolicyDecision {
        let is_allowed = verdict.is_allowed();
        let AccessVerdict {
            decision,
            other_reason,
        } = verdict;
        let (reason, notices) = match other_reason {
            Some(reason) => (Some(reason), Vec::new()),
            None => {
                let notices = decision_notices(set, &decision);
                let reason = (!is_allowed).then(|| denial_text(&decision, &notices));
                (reason, notices)
            }
        };
        let answer = PolicyDecision {
            allowed: is_allowed,
            reason,
            policies: decision.policies,
            notices,
            number: set.number(),
            agent: entry.map(|entry| entry.id),
            card_digest: entry.map(|entry| entry.card_digest.clone()),
            ..PolicyDecision::default()
        };
        let facts = DecisionFacts {
            action: self.action.as_str(),
            subject: self.subject,
            resource: self.resource,
        };
        let asker = decision_asker(self.asker);
        let mut answer = record_decision(context, asker, asker_name(self.asker), facts, answer);
        if !self.sees_policies {
            answer.policies.clear();
        }
        answer
    }
}
