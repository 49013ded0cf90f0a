//! Forms on a domain's page with which an admin vouches for an owner and ends the vouch.

use a2a_registry_api::limits::DEFAULT_VOUCH_DAYS;
use a2a_registry_api::{DomainView, NewOwnerVouch};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::owner_vouch::{vouch_for_domain_owner, withdraw_owner_vouch};
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::text::{self, BLOCK};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use actix_web::HttpResponse;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::domains::DomainPage;
use crate::problems::problem::Problem;
use crate::requests::auth::Administer;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::DomainRef;

pub(crate) struct OwnerVouchFormView {
    pub summary: &'static str,
    pub problem: Option<String>,
    pub account: String,
    pub reason: String,
    pub days: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetOwnerVouchForm {
    account: String,
    reason: String,
    days: String,
    confirmed: String,
}

impl FormFields for SetOwnerVouchForm {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EndOwnerVouchForm {
    confirmed: String,
}

impl FormFields for EndOwnerVouchForm {}

/// Vouches for an account as owner, and redirects to the domain. An error is shown above the form, which keeps its
/// input.
pub(crate) async fn set_owner_vouch(
    DomainRef(domain): DomainRef,
    form: PermittedForm<Administer, SetOwnerVouchForm>,
) -> HandlerResult {
    let (visitor, fields) = (&form.visitor, form.fields);
    let problem = match vouch_for_owner(&form.context, &visitor.caller, &domain, &fields).await {
        Ok(_) => return Ok(redirect_to_ownership(&domain)),
        Err(error) => Problem::from(error),
    };
    let Ok(view) = domain_show(&form.context, &visitor.caller, &domain).await else {
        return Err(problem);
    };
    let mut page = DomainPage::load(&form.context, visitor, view, None).await;
    let Some(form) = &mut page.owner_vouch_form else {
        return Err(problem);
    };
    crate::pages::log_problem(&problem);
    form.show_problem(&problem, fields);
    Ok(crate::pages::render_page(problem.kind().status, &page))
}

async fn vouch_for_owner(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    fields: &SetOwnerVouchForm,
) -> Result<DomainView> {
    if fields.confirmed.is_empty() {
        let detail = "Select the checkbox to confirm that the account may act as owner, and submit the form again.";
        return Err(AppError::invalid("/confirmed", detail));
    }
    let vouch = NewOwnerVouch {
        account: fields.account.trim().to_owned(),
        reason: fields.reason.clone(),
        // An invalid number is rejected like 0.
        expires_in_days: Some(fields.days.trim().parse().unwrap_or(0)),
    };
    vouch_for_domain_owner(context, caller, domain, &vouch).await
}

/// Ends the vouch, and redirects to the domain.
pub(crate) async fn end_owner_vouch(
    DomainRef(domain): DomainRef,
    form: PermittedForm<Administer, EndOwnerVouchForm>,
) -> HandlerResult {
    if form.fields.confirmed.is_empty() {
        let detail =
            "Select the checkbox to confirm that the vouch ends, and submit the form again.";
        return Err(AppError::invalid("/confirmed", detail).into());
    }
    withdraw_owner_vouch(&form.context, &form.visitor.caller, &domain).await?;
    Ok(redirect_to_ownership(&domain))
}

fn redirect_to_ownership(domain: &str) -> HttpResponse {
    let here = format!("/domains/{}#ownership", text::path_segment(domain));
    crate::pages::see_other(&here)
}

impl OwnerVouchFormView {
    /// Form for a caller who may vouch, for a host that cannot be proved.
    pub fn for_caller(view: &DomainView, caller: &Caller) -> Option<Self> {
        let fits = view.no_challenge.is_some() && caller.has_permission(Permission::Administer);
        fits.then(|| Self {
            summary: match view.owner_vouch {
                Some(_) => "Change or end the vouch",
                None => "Vouch for an owner",
            },
            problem: None,
            account: String::new(),
            reason: String::new(),
            days: DEFAULT_VOUCH_DAYS.to_string(),
        })
    }

    /// Shows why the form was rejected, and keeps its input. The checkbox must be selected again for each submission.
    fn show_problem(&mut self, problem: &Problem, fields: SetOwnerVouchForm) {
        self.problem = Some(text::single_line(&problem.to_string(), BLOCK));
        self.account = fields.account;
        self.reason = fields.reason;
        self.days = fields.days;
    }
}
