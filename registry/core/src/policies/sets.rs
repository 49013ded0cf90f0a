//! Policy sets: reading them, and making a new one.

use a2a_registry_api::limits::MAX_PREVIEW_TOKEN_CHARS;
use a2a_registry_api::{
    NewPolicies, Policies, PoliciesAccepted, PolicyHistory, PolicySetEntry, PolicyView,
    deserialize_nonempty_parameter,
};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{Policy, PolicyError, PolicySet, PolicyText};
use a2a_registry_store::entity::policy_set;
use a2a_registry_store::policies;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::policy_set_numbers::{NewPolicySet, add_policy_set};
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::paging::{ListPage, PageRequest};
use crate::policies::principal_warnings::unknown_principal_warnings;
use crate::policies::set_checks::check_new_policy_set;
use crate::policy_sets::{
    compile_earlier_set, compile_new_draft, compile_stored_set, parse_stored_policies,
    policy_set_number,
};
use crate::precondition::IfMatch;
use crate::search::policy_replicas::load_policy_replicas;
use crate::visibility::caller::Caller;

/// The selection of a policy set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PolicySetQuery {
    /// Number of the set; by default the newest one.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    #[param(minimum = 0)]
    pub number: Option<u64>,
}

/// Returns the newest policy set, or the one with this number.
pub async fn policies_show(
    context: &AppContext,
    caller: &Caller,
    query: &PolicySetQuery,
) -> Result<Policies> {
    caller.require_permission(Permission::SeeAll)?;
    let row = match query.number {
        None => policies::newest_policy_set(&context.store).await?,
        Some(0) => None,
        Some(number) => Some(load_policy_set_row(context, number).await?),
    };
    let sets = &context.policy_sets.compiled;
    let set = match query.number {
        None => compile_stored_set(sets, row.clone(), &context.rules()).await?,
        Some(_) => compile_earlier_set(sets, row.clone(), &context.rules()).await?,
    };
    policies_view(context, &set, row.as_ref()).await
}

async fn load_policy_set_row(context: &AppContext, number: u64) -> Result<policy_set::Model> {
    let missing = || AppError::not_found(format!("There is no policy set {number}."));
    let number = i64::try_from(number).map_err(|_| missing())?;
    let row = policies::policy_set_by_number(&context.store, number).await?;
    row.ok_or_else(missing)
}

async fn policies_view(
    context: &AppContext,
    set: &PolicySet,
    row: Option<&policy_set::Model>,
) -> Result<Policies> {
    Ok(Policies {
        number: set.number(),
        in_force: context.policy_sets.enforced_set().number(),
        policies: set.policies().iter().map(policy_view).collect(),
        author: row.map(|row| row.author.clone()),
        reason: row.map(|row| row.reason.clone()),
        created_at: row.map(|row| Timestamp(row.created_at)),
        replicas: load_policy_replicas(context).await?,
    })
}

fn policy_view(policy: &Policy) -> PolicyView {
    PolicyView {
        id: policy.id.clone(),
        text: policy.text.clone(),
        mode: policy.mode.as_str().to_owned(),
        effect: policy.effect.as_str().to_owned(),
        actions: policy
            .actions
            .iter()
            .map(|action| action.as_str().to_owned())
            .collect(),
        shipped: policy.is_built_in,
    }
}

pub async fn policy_history(
    context: &AppContext,
    caller: &Caller,
    page: &PageRequest,
) -> Result<PolicyHistory> {
    caller.require_permission(Permission::SeeAll)?;
    let list = ListPage::new(&context.page_token_signer, caller, "policies", page)?;
    let mut rows =
        policies::policy_set_page(&context.store, list.start_position()?, list.row_limit()).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.number);
    let mut sets = Vec::with_capacity(rows.len());
    for head in rows {
        // Loaded one by one: the policies of a whole page could be hundreds of megabytes.
        let row = policies::policy_set_by_number(&context.store, head.number).await?;
        let count = row
            .as_ref()
            .map(parse_stored_policies)
            .transpose()?
            .map_or(0, |all| all.len());
        sets.push(PolicySetEntry {
            number: u64::try_from(head.number).unwrap_or(0),
            policies: count as u64,
            author: head.author,
            reason: head.reason,
            created_at: Timestamp(head.created_at),
        });
    }
    Ok(PolicyHistory {
        sets,
        next_page_token,
    })
}

/// Makes a policy set, which is in force once all agents were evaluated under it. `seen` has the number of the newest
/// set that the caller knows.
pub async fn policies_put(
    context: &AppContext,
    caller: &Caller,
    new: &NewPolicies,
    precondition: &IfMatch,
) -> Result<PoliciesAccepted> {
    let admin = caller.require_permission(Permission::Administer)?;
    check_new_policies_fields(new)?;
    let texts: Vec<PolicyText> = new.policies.iter().map(to_policy_text).collect();
    let set = compile_requested_set(context, &texts, context.now()).await?;
    let expected_number = precondition.policy_set_number()?;
    let overrides = (new.allow_no_permit, new.preview.as_deref());
    let previewed_number = check_new_policy_set(context, caller, &set, &texts, overrides).await?;
    let warnings = unknown_principal_warnings(context, &set).await?;
    let write = context.store.begin_write().await?;
    write.lock_policy_sets().await?;
    let newest = policies::newest_policy_set(&write).await?;
    let newest = newest.as_ref().map_or(0, policy_set_number);
    if expected_number.is_some_and(|seen| seen != newest) {
        return Err(AppError::new(
            ErrorKind::Changed,
            format!(
                "The newest policy set is {newest}, not the one that `If-Match` names. Nothing was changed. \
                 Read it again."
            ),
        ));
    }
    if let Some(previewed_number) = previewed_number.filter(|previewed| *previewed != newest) {
        return Err(AppError::new(
            ErrorKind::Changed,
            format!(
                "The newest policy set is {newest}, and the preview was compared with set {previewed_number}. Nothing was changed; \
                 look at the preview again."
            ),
        ));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let new_set = NewPolicySet {
        policies: &texts,
        depends_on_collections: set.uses_collections(),
        author: &admin.name,
        reason: &new.reason,
    };
    let number = add_policy_set(&write, &mut change_set, newest, new_set).await?;
    commit_changes(context, write, change_set).await?;
    Ok(PoliciesAccepted {
        number,
        in_force: context.policy_sets.enforced_set().number(),
        warnings,
    })
}

pub fn to_policy_text(new: &a2a_registry_api::NewPolicy) -> PolicyText {
    PolicyText {
        id: new.id.clone(),
        text: new.text.clone(),
    }
}

/// Refuses a reason or preview token of invalid length.
pub(super) fn check_new_policies_fields(new: &NewPolicies) -> Result<()> {
    check_reason(&new.reason)?;
    let token = new.preview.as_deref().unwrap_or_default();
    if token.chars().count() > MAX_PREVIEW_TOKEN_CHARS {
        return Err(AppError::invalid(
            "/preview",
            format!("The token of a preview has at most {MAX_PREVIEW_TOKEN_CHARS} characters."),
        ));
    }
    Ok(())
}

/// Compiles the set of these policies and the shipped ones as of a moment, without a number.
pub(super) async fn compile_requested_set(
    context: &AppContext,
    texts: &[PolicyText],
    as_of: Timestamp,
) -> Result<PolicySet> {
    let compiled = compile_new_draft(
        &context.policy_sets.compiled,
        texts.to_vec(),
        &context.rules(),
        &context.config().identity,
        as_of,
    )
    .await?;
    compiled.map_err(|faults| invalid_policies_error(texts, &faults))
}

/// Reports the errors of a set as invalid members of the request.
fn invalid_policies_error(texts: &[PolicyText], faults: &[PolicyError]) -> AppError {
    let members = faults.iter().map(|fault| {
        let index = texts.iter().position(|text| text.id == fault.policy);
        let pointer = index.map_or_else(
            || "/policies".to_owned(),
            |place| format!("/policies/{place}/text"),
        );
        (pointer, format!("{fault} ({})", fault.excerpt.trim()))
    });
    AppError {
        members: members.collect(),
        ..AppError::new(
            ErrorKind::Invalid,
            "These policies are invalid. Nothing was changed.",
        )
    }
}
