//! The policy editor: one text for each policy, its faults beside it, and what the set would change.

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_api::{Policies, PolicyPreview, PreviewedAgent};
use a2a_registry_core::context::Context;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::Fault;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use serde::Deserialize;

use crate::answers::answer::Answer;
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::pages::policies::edit_form::{Act, Draft, EditForm, Outcome};
use crate::pages::policies::set::{TemplateView, templates};
use crate::problems::problem::Problem;
use crate::requests::auth::Administer;
use crate::requests::forms::FormOf;
use crate::requests::query;
use crate::requests::visitor::{PageOf, Visitor};

/// Characters of the message about a policy.
const MESSAGE: usize = 600;
/// Lines of a policy that are visible at once.
const LINES: std::ops::RangeInclusive<usize> = 4..=24;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Begun {
    template: String,
}

#[derive(Template)]
#[template(path = "policy_edit.html")]
struct EditPage {
    frame: Frame,
    now: Timestamp,
    seen: u64,
    policies: Vec<PolicyField>,
    reason: String,
    templates: Vec<TemplateView>,
    /// Faults that belong to no policy of the form.
    faults: Vec<Fault>,
    /// The positions of policies with faults, and how many there are.
    faulty: Vec<(usize, String)>,
    good: Option<&'static str>,
    problem: Option<String>,
    /// The set that was made in the meantime.
    lost: Option<Box<Policies>>,
    preview: Option<PolicyPreview>,
    confirmation: Option<ConfirmationView>,
}

struct ConfirmationView {
    gone: Vec<String>,
    /// Whether every agent is hidden.
    hides_all: bool,
    /// The token of the preview that is shown with it.
    token: String,
}

struct PolicyField {
    id: String,
    text: String,
    lines: usize,
    faults: Vec<Fault>,
    /// Whether it gets the keyboard focus.
    is_new: bool,
}

/// Shows the newest set for editing.
pub(crate) async fn show(visitor: PageOf<Administer>, request: HttpRequest) -> Answer {
    let begun: Begun = query::read(request.query_string())?;
    let mut draft = Draft::of_newest(&visitor.context, &visitor.caller).await?;
    let adds = !begun.template.is_empty();
    if adds {
        draft.add(&begun.template)?;
    }
    let frame = Frame::of(visitor.context.config(), "policies", &visitor);
    let mut page = EditPage::new(frame, &draft, &[], visitor.context.now());
    page.focus_last(adds);
    Ok(crate::pages::page(StatusCode::OK, &page))
}

/// Runs the action of a button, and shows the input with the result.
pub(crate) async fn submit(form: FormOf<Administer, EditForm>) -> Answer {
    let (act, mut draft) = form.fields.read()?;
    let only_looks = matches!(act, Act::Check | Act::Format);
    let done = draft.act(&form.context, &form.visitor.caller, act).await;
    let frame = Frame::of(form.context.config(), "policies", &form.visitor);
    let (outcome, faults) = match done {
        Ok(done) => done,
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log(&problem);
            let mut page = EditPage::new(frame, &draft, &[], form.context.now());
            page.problem = Some(text::line(&problem.to_string(), BLOCK));
            return Ok(crate::pages::page(problem.kind().status, &page));
        }
    };
    let mut page = EditPage::new(frame, &draft, &faults, form.context.now());
    let mut status = match faults.is_empty() || only_looks {
        true => StatusCode::OK,
        false => StatusCode::BAD_REQUEST,
    };
    match outcome {
        Outcome::Shown => {}
        Outcome::Added => page.focus_last(true),
        Outcome::Sound => page.good = Some("No policy has a fault."),
        Outcome::Formatted if faults.is_empty() => page.good = Some("Formatted."),
        Outcome::Formatted => {}
        Outcome::Previewed(told) => page.preview = Some(told),
        Outcome::Unconfirmed(told, gone) => page.demand_confirmation(told, &gone),
        Outcome::Lost(newest) => {
            status = StatusCode::PRECONDITION_FAILED;
            page.lost = Some(newest);
        }
        Outcome::Applied => {
            return Ok(crate::pages::see_other("/policies"));
        }
    }
    Ok(crate::pages::page(status, &page))
}

/// The page on which a draft is confirmed to be put in force.
pub(super) fn confirmation_page(
    context: &Context,
    visitor: &Visitor,
    draft: &Draft,
    (told, gone): (PolicyPreview, Vec<String>),
) -> HttpResponse {
    let frame = Frame::of(context.config(), "policies", visitor);
    let mut page = EditPage::new(frame, draft, &[], context.now());
    page.demand_confirmation(told, &gone);
    crate::pages::page(StatusCode::OK, &page)
}

impl EditPage {
    fn new(frame: Frame, draft: &Draft, faults: &[Fault], now: Timestamp) -> Self {
        let of = |id: Option<&str>| {
            let some = faults.iter().filter(|fault| match id {
                Some(id) => fault.policy == id,
                None => !draft.policies.iter().any(|one| one.id == fault.policy),
            });
            some.cloned().collect::<Vec<_>>()
        };
        let mut fields: Vec<PolicyField> = Vec::with_capacity(draft.policies.len());
        for one in &draft.policies {
            // If two have one identifier, the faults stand beside the first.
            let is_first = !fields.iter().any(|field| field.id == one.id);
            let faults = match is_first && !faults.is_empty() {
                true => of(Some(&one.id)),
                false => Vec::new(),
            };
            let lines = one.text.lines().count() + 1;
            fields.push(PolicyField {
                id: one.id.clone(),
                text: one.text.clone(),
                lines: lines.clamp(*LINES.start(), *LINES.end()),
                faults,
                is_new: false,
            });
        }
        let faulty = (0..).zip(&fields).filter(|(_, one)| !one.faults.is_empty());
        Self {
            frame,
            now,
            seen: draft.seen,
            faulty: faulty
                .map(|(place, field)| (place, text::line(&field.id, LINE)))
                .collect(),
            policies: fields,
            reason: draft.reason.clone(),
            templates: templates(),
            faults: of(None),
            good: None,
            problem: None,
            lost: None,
            preview: None,
            confirmation: None,
        }
    }

    /// Shows what the set would change, and a button that confirms it.
    fn demand_confirmation(&mut self, told: PolicyPreview, gone: &[String]) {
        self.confirmation = Some(ConfirmationView {
            gone: gone.iter().map(|id| text::line(id, LINE)).collect(),
            hides_all: told.hides_every_agent,
            token: told.token.clone(),
        });
        self.preview = Some(told);
    }

    /// Whether more agents are gained or lost than those that are named.
    fn has_more(count: &u64, agents: &[PreviewedAgent]) -> bool {
        *count > agents.len() as u64
    }

    /// Gives the keyboard focus to the last policy if it is new.
    fn focus_last(&mut self, is_new: bool) {
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
            let fault = Fault {
                policy: text.to_owned(),
                line: 1,
                column: 1,
                excerpt: text.to_owned(),
                message: text.to_owned(),
            };
            let draft = Draft::default();
            let mut page = EditPage::new(admin_frame("policies"), &draft, &[fault], NOW);
            page.lost = Some(Box::new(read(policies(text))));
            page.demand_confirmation(read(policy_preview(text)), &[text.to_owned()]);
            page
        });
    }
}
