//! Cases that policies must decide in a certain way.

use std::collections::BTreeSet;

use a2a_registry_api::{PolicyCase, PolicyCaseResult, PolicyCaseResults, PolicyCases};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{ANONYMOUS, Action, Matches, PolicySet, PolicyText, Principal, Verdict};
use a2a_registry_store::agents;

use crate::agents::policy_facts::{facts, waived};
use crate::agents::records::records;
use crate::agents::views::agent_visible;
use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::policies::sets::{read_set, text_of};
use crate::policy_sets::{asking_about_present_collections, newest_set};
use crate::visibility::caller::Caller;

const MAX_CASES: usize = 500;

pub async fn policies_test(
    context: &Context,
    caller: &Caller,
    what: &PolicyCases,
) -> Result<PolicyCaseResults> {
    caller.demand(Permission::SeeAll)?;
    if !(1..=MAX_CASES).contains(&what.cases.len()) {
        let detail = format!("a request has 1 to {MAX_CASES} cases");
        return Err(AppError::invalid("/cases", detail));
    }
    let set = match &what.policies {
        Some(new) => {
            let texts: Vec<PolicyText> = new.iter().map(text_of).collect();
            let set = read_set(context, &texts).await?;
            asking_about_present_collections(&context.store, set).await?
        }
        None => newest_set(&context.policies.compiled, &context.store, &context.rules).await?,
    };
    let mut results = Vec::with_capacity(what.cases.len());
    for (at, case) in what.cases.iter().enumerate() {
        let verdict = decided(context, caller, &set, case)
            .await
            .map_err(|error| {
                let members = error.members.iter();
                let members = members
                    .map(|(pointer, detail)| (format!("/cases/{at}{pointer}"), detail.clone()));
                AppError {
                    members: members.collect(),
                    ..error
                }
            })?;
        let expected = case.expect == "allow";
        let because = case.because.as_ref();
        results.push(PolicyCaseResult {
            passed: verdict.allowed == expected
                && because.is_none_or(|policy| verdict.policies.contains(policy)),
            allowed: verdict.allowed,
            policies: verdict.policies,
        });
    }
    Ok(PolicyCaseResults {
        passed: results.iter().all(|result| result.passed),
        results,
    })
}

async fn decided(
    context: &Context,
    caller: &Caller,
    set: &PolicySet,
    case: &PolicyCase,
) -> Result<Verdict> {
    if !["allow", "deny"].contains(&case.expect.as_str()) {
        return Err(AppError::invalid(
            "/expect",
            "a case expects `allow` or `deny`",
        ));
    }
    let action = Action::parse(&case.action).ok_or_else(|| {
        let detail = "an action is `discover`, `invoke`, `admit` or `register`";
        AppError::invalid("/action", detail)
    })?;
    let named = case.account.as_ref();
    let principal = Principal {
        account: named.filter(|name| *name != ANONYMOUS).cloned(),
        groups: case.groups.clone(),
    };
    if action == Action::Register {
        let domain = case.resource.clone();
        let matches = evaluate(set, move |set| set.matches_domain(&domain)).await?;
        return Ok(set.verdict(action, &principal, &matches, &BTreeSet::new()));
    }
    let missing = |error: AppError| match error.kind {
        ErrorKind::NotFound => {
            AppError::invalid("/resource", "there is no agent with this identifier or URN")
        }
        _ => error,
    };
    let row = agent_visible(context, caller, &case.resource)
        .await
        .map_err(missing)?;
    let rows = agents::agents_by_ids(&context.store, &[row.id]).await?;
    let record = records(&context.store, rows).await?.pop();
    let record =
        record.ok_or_else(|| AppError::invalid("/resource", "this agent has no card yet"))?;
    let known = facts(context, &record);
    let matches = evaluate(set, move |set| set.matches(action, &known)).await?;
    let waived = waived(context, &record, set);
    Ok(set.verdict(action, &principal, &matches, &waived))
}

/// Evaluates a set on another thread than those that answer requests: a large one takes some milliseconds for each
/// case.
async fn evaluate(
    set: &PolicySet,
    evaluation: impl FnOnce(&PolicySet) -> Matches + Send + 'static,
) -> Result<Matches> {
    let set = set.clone();
    tokio::task::spawn_blocking(move || evaluation(&set))
        .await
        .map_err(|error| AppError::internal(format!("evaluating policies was aborted: {error}")))
}
