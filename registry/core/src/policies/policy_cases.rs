//! Tests of policies: cases with the decision that policies must make.

use std::collections::BTreeSet;

use a2a_registry_api::{PolicyCase, PolicyCaseResult, PolicyCaseResults, PolicyCases};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{
    ANONYMOUS_ACCOUNT, Action, AuthorizationDecision, PolicyMatches, PolicySet, PolicyText,
    Principal,
};
use a2a_registry_store::agents;

use crate::agents::policy_attributes::{agent_attributes, waived_forbid_indices};
use crate::agents::records::load_agent_records;
use crate::agents::views::require_visible_agent;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::policies::sets::{compile_requested_set, to_policy_text};
use crate::policy_sets::{load_newest_policy_set, with_current_collections};
use crate::visibility::caller::Caller;

const MAX_CASES: usize = 500;

pub async fn policies_test(
    context: &AppContext,
    caller: &Caller,
    request: &PolicyCases,
) -> Result<PolicyCaseResults> {
    caller.require_permission(Permission::SeeAll)?;
    if !(1..=MAX_CASES).contains(&request.cases.len()) {
        let detail = format!("a request must have 1 to {MAX_CASES} cases");
        return Err(AppError::invalid("/cases", detail));
    }
    let set = match &request.policies {
        Some(new) => {
            let texts: Vec<PolicyText> = new.iter().map(to_policy_text).collect();
            let set = compile_requested_set(context, &texts).await?;
            with_current_collections(&context.store, set).await?
        }
        None => {
            load_newest_policy_set(
                &context.policy_sets.compiled,
                &context.store,
                &context.rules(),
            )
            .await?
        }
    };
    let mut results = Vec::with_capacity(request.cases.len());
    for (index, case) in request.cases.iter().enumerate() {
        let decision = evaluate_policy_case(context, caller, &set, case)
            .await
            .map_err(|error| {
                let members = error.members.iter();
                let members = members
                    .map(|(pointer, detail)| (format!("/cases/{index}{pointer}"), detail.clone()));
                AppError {
                    members: members.collect(),
                    ..error
                }
            })?;
        let expected = case.expect == "allow";
        let because = case.because.as_ref();
        results.push(PolicyCaseResult {
            passed: decision.allowed == expected
                && because.is_none_or(|policy| decision.policies.contains(policy)),
            allowed: decision.allowed,
            policies: decision.policies,
        });
    }
    Ok(PolicyCaseResults {
        passed: results.iter().all(|result| result.passed),
        results,
    })
}

async fn evaluate_policy_case(
    context: &AppContext,
    caller: &Caller,
    set: &PolicySet,
    case: &PolicyCase,
) -> Result<AuthorizationDecision> {
    if !["allow", "deny"].contains(&case.expect.as_str()) {
        return Err(AppError::invalid(
            "/expect",
            "the expected decision must be `allow` or `deny`",
        ));
    }
    let action = Action::parse(&case.action).ok_or_else(|| {
        let detail = "the action must be `discover`, `invoke`, `admit` or `register`";
        AppError::invalid("/action", detail)
    })?;
    let account = case.account.as_ref();
    let principal = Principal {
        account: account.filter(|name| *name != ANONYMOUS_ACCOUNT).cloned(),
        groups: case.groups.clone(),
    };
    if action == Action::Register {
        let domain = case.resource.clone();
        let matches = evaluate_policies_blocking(set, move |set| set.match_domain(&domain)).await?;
        return Ok(set.decide(action, &principal, &matches, &BTreeSet::new()));
    }
    let missing = |error: AppError| match error.kind {
        ErrorKind::NotFound => {
            AppError::invalid("/resource", "no agent has this identifier or URN")
        }
        _ => error,
    };
    let row = require_visible_agent(context, caller, &case.resource)
        .await
        .map_err(missing)?;
    let rows = agents::agents_by_ids(&context.store, &[row.id]).await?;
    let record = load_agent_records(&context.store, rows).await?.pop();
    let record =
        record.ok_or_else(|| AppError::invalid("/resource", "this agent has no card yet"))?;
    let known = agent_attributes(context, &record);
    let matches =
        evaluate_policies_blocking(set, move |set| set.match_agent(action, &known)).await?;
    let waived = waived_forbid_indices(context, &record, set);
    Ok(set.decide(action, &principal, &matches, &waived))
}

/// Evaluates a set on a thread that does not serve requests: a large set takes some milliseconds for each case.
async fn evaluate_policies_blocking(
    set: &PolicySet,
    evaluation: impl FnOnce(&PolicySet) -> PolicyMatches + Send + 'static,
) -> Result<PolicyMatches> {
    let set = set.clone();
    tokio::task::spawn_blocking(move || evaluation(&set))
        .await
        .map_err(|error| {
            AppError::internal(format!("the evaluation of policies was aborted: {error}"))
        })
}
