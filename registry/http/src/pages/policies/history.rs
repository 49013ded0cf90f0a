//! Policy history page: all policy sets, each of which can be put in force again.

use a2a_registry_api::PolicySetEntry;
use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::policies::sets::{PolicySetQuery, policies_show, policy_history};
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::pages::policies::edit::policy_confirmation_response;
use crate::pages::policies::edit_form::{PolicyEditorOutcome, PolicySetDraft};
use crate::problems::problem::Problem;
use crate::requests::auth::{Administer, SeeAll};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::query;
use crate::requests::visitor::{PermittedVisitor, Visitor};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PolicyHistoryParams {
    page_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RestorePolicySetForm {
    number: String,
    /// Number of the newest set when the page was rendered.
    seen: String,
    reason: String,
}

impl FormFields for RestorePolicySetForm {}

#[derive(Template)]
#[template(path = "policy_history.html")]
struct PolicyHistoryPage {
    frame: Frame,
    now: Timestamp,
    /// Sets; the shipped one is last, with the number 0.
    sets: Vec<PolicySetEntry>,
    newest: u64,
    in_force: u64,
    next: Option<String>,
    restores: bool,
    /// Error of a rejected request.
    problem: Option<String>,
    /// Set to put in force, and the reason entered for it.
    typed: Option<(u64, String)>,
}

/// Shows all policy sets.
pub(crate) async fn show_policy_history(
    visitor: PermittedVisitor<SeeAll>,
    request: HttpRequest,
) -> HandlerResult {
    let params: PolicyHistoryParams = query::parse_query(request.query_string())?;
    let page = PolicyHistoryPage::load(&visitor.context, &visitor, params).await?;
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Puts an earlier set in force as a new set, and redirects to it. Asks for confirmation if the set lacks policies or
/// hides every agent.
pub(crate) async fn restore_policy_set(
    form: PermittedForm<Administer, RestorePolicySetForm>,
) -> HandlerResult {
    let fields = &form.fields;
    let restored = apply_earlier_policy_set(&form.context, &form.visitor.caller, fields).await;
    let (status, problem) = match restored {
        Ok((_, PolicyEditorOutcome::Applied)) => {
            return Ok(crate::pages::see_other("/policies"));
        }
        Ok((draft, PolicyEditorOutcome::NeedsConfirmation(preview, dropped))) => {
            return Ok(policy_confirmation_response(
                &form.context,
                &form.visitor,
                &draft,
                (preview, dropped),
            ));
        }
        Ok(_) => (StatusCode::PRECONDITION_FAILED, None),
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log_problem(&problem);
            (problem.kind().status, Some(problem.to_string()))
        }
    };
    let mut page =
        PolicyHistoryPage::load(&form.context, &form.visitor, PolicyHistoryParams::default())
            .await?;
    page.problem = Some(match problem {
        None => format!(
            "Set {} was created meanwhile, so nothing was changed. Review it first.",
            page.newest
        ),
        Some(problem) => text::single_line(&problem, BLOCK),
    });
    let number = fields.number.parse::<u64>().ok();
    page.typed = number.map(|number| (number, fields.reason.clone()));
    Ok(crate::pages::render_page(status, &page))
}

/// Puts an earlier set in force. The result is applied, needs confirmation, or conflicts with another set.
async fn apply_earlier_policy_set(
    context: &AppContext,
    caller: &Caller,
    form: &RestorePolicySetForm,
) -> Result<(PolicySetDraft, PolicyEditorOutcome)> {
    let parse_number = |member: &str, text: &str| {
        text.parse::<u64>()
            .map_err(|_| AppError::invalid(member, "This is not the number of a policy set."))
    };
    let base_number = parse_number("/seen", &form.seen)?;
    let query = PolicySetQuery {
        number: Some(parse_number("/number", &form.number)?),
    };
    let earlier = policies_show(context, caller, &query).await?;
    let draft = PolicySetDraft {
        base_number,
        reason: form.reason.clone(),
        ..PolicySetDraft::from_set(earlier)
    };
    let outcome = draft.apply_unless_unconfirmed(context, caller).await?;
    Ok((draft, outcome))
}

impl PolicyHistoryPage {
    async fn load(
        context: &AppContext,
        visitor: &Visitor,
        params: PolicyHistoryParams,
    ) -> Result<Self> {
        let caller = &visitor.caller;
        let page_request = PageRequest {
            page_size: None,
            page_token: Some(params.page_token).filter(|token| !token.is_empty()),
        };
        let (list, newest) = futures::try_join!(
            policy_history(context, caller, &page_request),
            policies_show(context, caller, &PolicySetQuery { number: None }),
        )?;
        let mut sets = list.sets;
        if list.next_page_token.is_none() {
            let query = PolicySetQuery { number: Some(0) };
            let built_in = policies_show(context, caller, &query).await?;
            let custom_count = built_in.policies.iter().filter(|one| !one.shipped).count();
            sets.push(PolicySetEntry {
                number: 0,
                policies: custom_count as u64,
                author: String::new(),
                reason: String::new(),
                // The page shows no time for the shipped set.
                created_at: Timestamp(0),
            });
        }
        let next = list.next_page_token.as_deref().and_then(|token| {
            let pairs = serde_html_form::to_string([("page_token", token)]).ok()?;
            Some(format!("/policies/history?{pairs}"))
        });
        Ok(Self {
            frame: Frame::for_visitor(&context.config(), "policies", visitor),
            now: context.now(),
            sets,
            newest: newest.number,
            in_force: newest.in_force,
            next,
            restores: caller.has_permission(Permission::Administer),
            problem: None,
            typed: None,
        })
    }

    /// Reason entered for putting this set in force.
    fn entered_reason(&self, number: &u64) -> &str {
        match &self.typed {
            Some((typed, reason)) if typed == number => reason,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::admin_frame;
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| PolicyHistoryPage {
            frame: admin_frame("policies"),
            now: NOW,
            sets: vec![PolicySetEntry {
                number: 2,
                policies: 1,
                author: text.to_owned(),
                reason: text.to_owned(),
                created_at: NOW,
            }],
            newest: 3,
            in_force: 3,
            next: None,
            restores: true,
            problem: None,
            typed: None,
        });
    }
}
