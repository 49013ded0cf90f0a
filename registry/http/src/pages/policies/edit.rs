//! Policy editor: one text field per policy with its errors, and the changes that the set would make.

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_api::{Policies, PolicyPreview, PreviewedAgent};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::PolicyError;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::pages::policies::edit_form::{
    PolicyEditForm, PolicyEditorAction, PolicyEditorOutcome, PolicySetDraft,
};
use crate::pages::policies::set::{PolicyTemplateView, policy_template_views};
use crate::problems::problem::Problem;
use crate::requests::auth::Administer;
use crate::requests::forms::PermittedForm;
use crate::requests::query;
use crate::requests::visitor::{PermittedVisitor, Visitor};

/// Maximum number of characters of the message about a policy.
const MESSAGE: usize = 600;
/// Number of visible lines of a policy.
const VISIBLE_LINES: std::ops::RangeInclusive<usize> = 4..=24;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PolicyEditorParams {
    template: String,
}

#[derive(Template)]
#[template(path = "policy_edit.html")]
struct PolicyEditorPage {
    frame: Frame,
    now: Timestamp,
    seen: u64,
    policies: Vec<PolicyField>,
    reason: String,
    templates: Vec<PolicyTemplateView>,
    /// Errors that belong to no policy of the form.
    faults: Vec<PolicyError>,
    /// Positions of policies with errors, and a text with their number.
    faulty: Vec<(usize, String)>,
    good: Option<&'static str>,
    /// Warnings about a set without errors.
    warnings: Vec<String>,
    problem: Option<String>,
    /// Set that was created in the meantime.
    lost: Option<Box<Policies>>,
    preview: Option<PolicyPreview>,
    confirmation: Option<PolicyConfirmationView>,
}

struct PolicyConfirmationView {
    gone: Vec<String>,
    /// Whether the set hides every agent.
    hides_all: bool,
    /// Token of the preview.
    token: String,
}

struct PolicyField {
    id: String,
    text: String,
    lines: usize,
    faults: Vec<PolicyError>,
    /// Whether the policy is new and gets the keyboard focus.
    is_new: bool,
}

/// Shows the editor with the newest set.
pub(crate) async fn show_policy_editor(
    visitor: PermittedVisitor<Administer>,
    request: HttpRequest,
) -> HandlerResult {
    let params: PolicyEditorParams = query::parse_query(request.query_string())?;
    let mut draft = PolicySetDraft::load_newest(&visitor.context, &visitor.caller).await?;
    let adds = !params.template.is_empty();
    if adds {
        draft.add_policy(&params.template)?;
    }
    let frame = Frame::for_visitor(&visitor.context.config(), "policies", &visitor);
    let mut page = PolicyEditorPage::new(frame, &draft, &[], visitor.context.now());
    page.focus_last_policy(adds);
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Runs the action of a button, and shows the input with the result.
pub(crate) async fn submit_policy_editor(
    form: PermittedForm<Administer, PolicyEditForm>,
) -> HandlerResult {
    let (action, mut draft) = form.fields.parse()?;
    let changes_nothing = matches!(
        action,
        PolicyEditorAction::Check | PolicyEditorAction::Format
    );
    let result = draft
        .run_action(&form.context, &form.visitor.caller, action)
        .await;
    let frame = Frame::for_visitor(&form.context.config(), "policies", &form.visitor);
    let (outcome, faults) = match result {
        Ok(done) => done,
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log_problem(&problem);
            let mut page = PolicyEditorPage::new(frame, &draft, &[], form.context.now());
            page.problem = Some(text::single_line(&problem.to_string(), BLOCK));
            return Ok(crate::pages::render_page(problem.kind().status, &page));
        }
    };
    let mut page = PolicyEditorPage::new(frame, &draft, &faults, form.context.now());
    let mut status = match faults.is_empty() || changes_nothing {
        true => StatusCode::OK,
        false => StatusCode::BAD_REQUEST,
    };
    match outcome {
        PolicyEditorOutcome::Updated => {}
        PolicyEditorOutcome::PolicyAdded => page.focus_last_policy(true),
        PolicyEditorOutcome::Valid(warnings) => {
            page.good = Some("No policy has an error.");
            page.warnings = warnings;
        }
        PolicyEditorOutcome::Formatted if faults.is_empty() => page.good = Some("Formatted."),
        PolicyEditorOutcome::Formatted => {}
        PolicyEditorOutcome::Previewed(preview) => page.preview = Some(preview),
        PolicyEditorOutcome::NeedsConfirmation(preview, dropped) => {
            page.require_confirmation(preview, &dropped)
        }
        PolicyEditorOutcome::Conflict(newest) => {
            status = StatusCode::PRECONDITION_FAILED;
            page.lost = Some(newest);
        }
        PolicyEditorOutcome::Applied => {
            return Ok(crate::pages::see_other("/policies"));
        }
    }
    Ok(crate::pages::render_page(status, &page))
}

/// Page on which a draft is confirmed before it is put in force.
pub(super) fn policy_confirmation_response(
    context: &AppContext,
    visitor: &Visitor,
    draft: &PolicySetDraft,
    (preview, dropped): (PolicyPreview, Vec<String>),
) -> HttpResponse {
    let frame = Frame::for_visitor(&context.config(), "policies", visitor);
    let mut page = PolicyEditorPage::new(frame, draft, &[], context.now());
    page.require_confirmation(preview, &dropped);
    crate::pages::render_page(StatusCode::OK, &page)
}

impl PolicyEditorPage {
    fn new(frame: Frame, draft: &PolicySetDraft, faults: &[PolicyError], now: Timestamp) -> Self {
        let faults_of = |id: Option<&str>| {
            let matching = faults.iter().filter(|fault| match id {
                Some(id) => fault.policy == id,
                None => !draft.policies.iter().any(|one| one.id == fault.policy),
            });
            matching.cloned().collect::<Vec<_>>()
        };
        let mut fields: Vec<PolicyField> = Vec::with_capacity(draft.policies.len());
        for one in &draft.policies {
            // If two policies have the same identifier, the errors are shown with the first.
            let is_first = !fields.iter().any(|field| field.id == one.id);
            let faults = match is_first && !faults.is_empty() {
                true => faults_of(Some(&one.id)),
                false => Vec::new(),
            };
            let lines = one.text.lines().count() + 1;
            fields.push(PolicyField {
                id: one.id.clone(),
                text: one.text.clone(),
                lines: lines.clamp(*VISIBLE_LINES.start(), *VISIBLE_LINES.end()),
                faults,
                is_new: false,
            });
        }
        let faulty = (0..).zip(&fields).filter(|(_, one)| !one.faults.is_empty());
        Self {
            frame,
            now,
            seen: draft.base_number,
            faulty: faulty
                .map(|(index, field)| (index, text::single_line(&field.id, LINE)))
                .collect(),
            policies: fields,
            reason: draft.reason.clone(),
            templates: policy_template_views(),
            faults: faults_of(None),
            good: None,
            warnings: Vec::new(),
            problem: None,
            lost: None,
            preview: None,
            confirmation: None,
        }
    }

    /// Shows what the set would change, and a button to confirm.
    fn require_confirmation(&mut self, preview: PolicyPreview, dropped: &[String]) {
        self.confirmation = Some(PolicyConfirmationView {
            gone: dropped
                .iter()
                .map(|id| text::single_line(id, LINE))
                .collect(),
            hides_all: preview.hides_every_agent,
            token: preview.token.clone(),
        });
        self.preview = Some(preview);
    }

    /// Whether more agents are gained or lost than the listed ones.
    fn has_more_agents(count: &u64, agents: &[PreviewedAgent]) -> bool {
        *count > agents.len() as u64
    }

    /// Sets the keyboard focus to the last policy if it is new.
    fn focus_last_policy(&mut self, is_new: bool) {
        if let Some(last) = self.policies.last_mut() {
            last.is_new = is_new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, policies, policy_preview, read};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| {
            let fault = PolicyError {
                policy: text.to_owned(),
                line: 1,
                column: 1,
                excerpt: text.to_owned(),
                message: text.to_owned(),
            };
            let draft = PolicySetDraft::default();
            let mut page = PolicyEditorPage::new(admin_frame("policies"), &draft, &[fault], NOW);
            page.lost = Some(Box::new(read(policies(text))));
            page.require_confirmation(read(policy_preview(text)), &[text.to_owned()]);
            page
        });
    }
}
