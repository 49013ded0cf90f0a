//! Tests of policies: cases with the decision that policies must make.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::{NewPolicy, PolicyCase, PolicyCaseResult, PolicyCaseResults, PolicyCases};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{
    ANONYMOUS_ACCOUNT, Action, AuthorizationDecision, PolicyMatches, PolicySet, PolicyText,
    Principal, parse_date,
};
use a2a_registry_store::agents;

use crate::agents::policy_attributes::{agent_attributes_as_of, waived_forbid_indices};
use crate::agents::records::load_agent_records;
use crate::agents::views::require_visible_agent;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::policies::sets::{compile_requested_set, to_policy_text};
use crate::policy_sets::{load_newest_policy_set, with_current_collections};
use crate::visibility::caller::Caller;

const MAX_CASES: usize = 500;
/// Maximum number of different dates of cases: the policies are compiled for each.
const MAX_CASE_DATES: usize = 10;

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
    let today = context.now();
    let mut sets: BTreeMap<Timestamp, PolicySet> = BTreeMap::new();
    let mut results = Vec::with_capacity(request.cases.len());
    for (index, case) in request.cases.iter().enumerate() {
        let in_case = |error: AppError| {
            let members = error.members.iter();
            let members = members
                .map(|(pointer, detail)| (format!("/cases/{index}{pointer}"), detail.clone()));
            AppError {
                members: members.collect(),
                ..error
            }
        };
        let moment = case_moment(case, today).map_err(in_case)?;
        let set = match sets.get(&moment) {
            Some(set) => set.clone(),
            None if sets.len() == MAX_CASE_DATES => {
                let detail = format!("the cases may have at most {MAX_CASE_DATES} different dates");
                return Err(in_case(AppError::invalid("/at", detail)));
            }
            None => {
                let policies = request.policies.as_deref();
                let set = load_tested_set(context, policies, moment, today).await?;
                sets.insert(moment, set.clone());
                set
            }
        };
        let decision = evaluate_policy_case(context, caller, (&set, moment), case)
            .await
            .map_err(in_case)?;
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

/// The first moment of the case's date, or `today`.
fn case_moment(case: &PolicyCase, today: Timestamp) -> Result<Timestamp> {
    let Some(date) = &case.at else {
        return Ok(today);
    };
    parse_date(date).ok_or_else(|| {
        AppError::invalid("/at", "this must be a date such as `2026-12-15`".to_owned())
    })
}

/// The given policies, or those of the newest set, as of a moment.
async fn load_tested_set(
    context: &AppContext,
    policies: Option<&[NewPolicy]>,
    moment: Timestamp,
    today: Timestamp,
) -> Result<PolicySet> {
    let texts: Vec<PolicyText> = match policies {
        Some(new) => new.iter().map(to_policy_text).collect(),
        None => {
            let (sets, rules) = (&context.policy_sets.compiled, context.rules());
            let newest = load_newest_policy_set(sets, &context.store, &rules).await?;
            if moment == today {
                return Ok(newest);
            }
            let custom = newest.policies().iter().filter(|one| !one.is_built_in);
            custom
                .map(|one| PolicyText {
                    id: one.id.clone(),
                    text: one.text.clone(),
                })
                .collect()
        }
    };
    let set = compile_requested_set(context, &texts, moment).await?;
    with_current_collections(&context.store, set).await
}

async fn evaluate_policy_case(
    context: &AppContext,
    caller: &Caller,
    (set, moment): (&PolicySet, Timestamp),
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
    let known = agent_attributes_as_of(context, &record, moment);
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
