//! Policy sets: read, and a new one made.

use a2a_registry_api::limits::MAX_PREVIEW_TOKEN;
use a2a_registry_api::{
    NewPolicies, Policies, PoliciesAccepted, PolicyHistory, PolicySetEntry, PolicyView,
};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{Fault, Policy, PolicySet, PolicyText};
use a2a_registry_store::entity::policy_set;
use a2a_registry_store::policies;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::commit::approver::check_reason;
use crate::commit::ledger::Ledger;
use crate::commit::policy_numbers::{MadeSet, add_set};
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::paging::{ListPage, PageRequest, not_empty};
use crate::policies::apply_checks::check_set;
use crate::policy_sets::{compile_earlier, compile_new, compiled, number_of, written};
use crate::precondition::Precondition;
use crate::visibility::caller::Caller;

/// Which policy set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PoliciesQuery {
    /// Its number; by default the newest one.
    #[serde(default, deserialize_with = "not_empty")]
    #[param(minimum = 0)]
    pub number: Option<u64>,
}

/// The newest policy set, or the one with this number.
pub async fn policies_show(
    context: &Context,
    caller: &Caller,
    query: &PoliciesQuery,
) -> Result<Policies> {
    caller.demand(Permission::SeeAll)?;
    let row = match query.number {
        None => policies::policy_set_newest(&context.store).await?,
        Some(0) => None,
        Some(number) => Some(set_numbered(context, number).await?),
    };
    let sets = &context.policies.compiled;
    let set = match query.number {
        None => compiled(sets, row.clone(), &context.rules).await?,
        Some(_) => compile_earlier(sets, row.clone(), &context.rules).await?,
    };
    Ok(view(context, &set, row.as_ref()))
}

async fn set_numbered(context: &Context, number: u64) -> Result<policy_set::Model> {
    let missing = || AppError::not_found(format!("There is no policy set {number}."));
    let number = i64::try_from(number).map_err(|_| missing())?;
    let row = policies::policy_set_by_number(&context.store, number).await?;
    row.ok_or_else(missing)
}

fn view(context: &Context, set: &PolicySet, row: Option<&policy_set::Model>) -> Policies {
    Policies {
        number: set.number(),
        in_force: context.policies.in_force().number(),
        policies: set.policies().iter().map(policy_view).collect(),
        author: row.map(|row| row.author.clone()),
        reason: row.map(|row| row.reason.clone()),
        created_at: row.map(|row| Timestamp(row.created_at)),
    }
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
        shipped: policy.is_shipped,
    }
}

pub async fn policy_history(
    context: &Context,
    caller: &Caller,
    page: &PageRequest,
) -> Result<PolicyHistory> {
    caller.demand(Permission::SeeAll)?;
    let list = ListPage::new(&context.signer, caller, "policies", page)?;
    let mut rows = policies::policy_set_page(&context.store, list.start()?, list.limit()).await?;
    let next_page_token = list.cut(&mut rows, |last| last.number);
    let mut sets = Vec::with_capacity(rows.len());
    for head in rows {
        // One after another: the policies of a whole page would be hundreds of megabytes.
        let row = policies::policy_set_by_number(&context.store, head.number).await?;
        let count = row
            .as_ref()
            .map(written)
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

/// Makes a policy set, which decides once all agents were evaluated under it. `seen` has the number of the newest set
/// that the caller knows.
pub async fn policies_put(
    context: &Context,
    caller: &Caller,
    new: &NewPolicies,
    seen: &Precondition,
) -> Result<PoliciesAccepted> {
    let admin = caller.demand(Permission::Administer)?;
    check_texts(new)?;
    let texts: Vec<PolicyText> = new.policies.iter().map(text_of).collect();
    let set = read_set(context, &texts).await?;
    let seen = seen.number()?;
    let said = (new.allow_no_permit, new.preview.as_deref());
    let previewed = check_set(context, caller, &set, &texts, said).await?;
    let write = context.store.write().await?;
    write.policies_lock().await?;
    let newest = policies::policy_set_newest(&write).await?;
    let newest = newest.as_ref().map_or(0, number_of);
    if seen.is_some_and(|seen| seen != newest) {
        return Err(AppError::new(
            ErrorKind::Changed,
            format!(
                "The newest policy set is {newest}, not the one that `If-Match` names. Nothing was changed; read it again."
            ),
        ));
    }
    if let Some(previewed) = previewed.filter(|previewed| *previewed != newest) {
        return Err(AppError::new(
            ErrorKind::Changed,
            format!(
                "The newest policy set is {newest}, and the preview was compared with set {previewed}. Nothing was changed; \
                 look at the preview again."
            ),
        ));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let made = MadeSet {
        policies: &texts,
        asks_about_collections: set.asks_about_collections(),
        author: &admin.name,
        reason: &new.reason,
    };
    let number = add_set(&write, &mut ledger, newest, made).await?;
    commit_ledger(context, write, ledger).await?;
    Ok(PoliciesAccepted {
        number,
        in_force: context.policies.in_force().number(),
    })
}

pub fn text_of(new: &a2a_registry_api::NewPolicy) -> PolicyText {
    PolicyText {
        id: new.id.clone(),
        text: new.text.clone(),
    }
}

/// Refuses a reason and a preview's token that are invalid by their length alone.
pub(super) fn check_texts(new: &NewPolicies) -> Result<()> {
    check_reason(&new.reason)?;
    let token = new.preview.as_deref().unwrap_or_default();
    if token.chars().count() > MAX_PREVIEW_TOKEN {
        return Err(AppError::invalid(
            "/preview",
            format!("The token of a preview has at most {MAX_PREVIEW_TOKEN} characters."),
        ));
    }
    Ok(())
}

/// The set of these policies with the shipped ones, without a number.
pub(super) async fn read_set(context: &Context, texts: &[PolicyText]) -> Result<PolicySet> {
    let compiled = compile_new(
        &context.policies.compiled,
        texts.to_vec(),
        &context.rules,
        &context.config.identity,
    )
    .await?;
    compiled.map_err(|faults| refused(texts, &faults))
}

/// The faults of a set as invalid members of the request.
fn refused(texts: &[PolicyText], faults: &[Fault]) -> AppError {
    let members = faults.iter().map(|fault| {
        let place = texts.iter().position(|text| text.id == fault.policy);
        let pointer = place.map_or_else(
            || "/policies".to_owned(),
            |place| format!("/policies/{place}/text"),
        );
        (pointer, format!("{fault} ({})", fault.excerpt.trim()))
    });
    AppError {
        members: members.collect(),
        ..AppError::new(
            ErrorKind::Invalid,
            "These policies are not accepted; nothing was changed.",
        )
    }
}
