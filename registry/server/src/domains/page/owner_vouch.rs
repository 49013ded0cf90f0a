//! The owner vouch on a domain's page, and the forms by which an admin vouches for an owner and ends that.

use a2a_registry_api::limits::{DEFAULT_VOUCH_DAYS, MAX_REASON, MAX_VOUCH_DAYS};
use a2a_registry_api::{DomainView, NewOwnerVouch};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, post, web};
use serde::Deserialize;

use crate::caller::Caller;
use crate::context::Context;
use crate::domains::owner_vouch::{owner_vouch_end, owner_vouch_set};
use crate::error::AppError;
use crate::http::auth::Administer;
use crate::http::forms::{FormFields, FormOf};
use crate::http::path::DomainRef;
use crate::http::problem::Problem;
use crate::pages::moment::TimeView;
use crate::pages::text::{self, BLOCK, LINE};

/// An account that an admin vouches for as owner.
pub(crate) struct OwnerVouchView {
    /// `None` for callers who may not see the account.
    pub owner: Option<String>,
    pub since: TimeView,
    pub until: TimeView,
    pub by: Option<String>,
    pub reason: Option<String>,
}

/// The form by which an admin vouches for an owner.
pub(crate) struct OwnerVouchForm {
    /// Its address; ending the vouch is below it.
    pub action: String,
    pub reason_chars: usize,
    pub days: u32,
    pub most_days: u32,
}

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetForm {
    account: String,
    reason: String,
    days: String,
    confirmed: String,
}

impl FormFields for SetForm {}

/// The fields of the form that ends a vouch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EndForm {
    confirmed: String,
}

impl FormFields for EndForm {}

/// Vouches for an account as owner, and leads back to the domain.
///
/// # Errors
/// As the act, and where the box was not ticked.
#[post("/domains/{domain}/owner-vouch")]
pub(crate) async fn set(
    context: web::Data<Context>,
    DomainRef(domain): DomainRef,
    form: FormOf<Administer, SetForm>,
) -> Result<HttpResponse, Problem> {
    let fields = form.fields;
    if fields.confirmed.is_empty() {
        let detail =
            "Tick the box to confirm that the account may act as owner, and send the form again.";
        return Err(AppError::invalid("/confirmed", detail).into());
    }
    let vouch = NewOwnerVouch {
        account: fields.account.trim().to_owned(),
        reason: fields.reason,
        // No number is no number of days.
        expires_in_days: Some(fields.days.trim().parse().unwrap_or(0)),
    };
    owner_vouch_set(&context, &form.visitor.caller, &domain, &vouch).await?;
    Ok(back(&domain))
}

/// Ends the vouch, and leads back to the domain.
///
/// # Errors
/// As the act, and where the box was not ticked.
#[post("/domains/{domain}/owner-vouch/end")]
pub(crate) async fn end(
    context: web::Data<Context>,
    DomainRef(domain): DomainRef,
    form: FormOf<Administer, EndForm>,
) -> Result<HttpResponse, Problem> {
    if form.fields.confirmed.is_empty() {
        let detail = "Tick the box to confirm that the vouch ends, and send the form again.";
        return Err(AppError::invalid("/confirmed", detail).into());
    }
    owner_vouch_end(&context, &form.visitor.caller, &domain).await?;
    Ok(back(&domain))
}

fn back(domain: &str) -> HttpResponse {
    let here = format!("/domains/{}#ownership", text::segment(domain));
    HttpResponse::SeeOther()
        .insert_header((LOCATION, here))
        .finish()
}

impl OwnerVouchView {
    /// The vouch of a domain, if there is one that the caller sees.
    pub fn of(view: &DomainView, now: Timestamp) -> Option<Self> {
        let vouch = view.owner_vouch.as_ref()?;
        let line = |words: &String| text::line(words, LINE);
        Some(Self {
            owner: view.owner.as_ref().map(line),
            since: TimeView::new(vouch.since, now),
            until: TimeView::new(vouch.until, now),
            by: vouch.by.as_ref().map(line),
            reason: vouch
                .reason
                .as_deref()
                .map(|reason| text::line(reason, BLOCK)),
        })
    }
}

impl OwnerVouchForm {
    /// The form for a caller who may vouch, on the page of a host that cannot be proved.
    pub fn of(view: &DomainView, caller: &Caller) -> Option<Self> {
        let fits = view.no_challenge.is_some() && caller.may(Permission::Administer);
        fits.then(|| Self {
            action: format!("/domains/{}/owner-vouch", text::segment(&view.domain)),
            reason_chars: MAX_REASON,
            days: DEFAULT_VOUCH_DAYS,
            most_days: MAX_VOUCH_DAYS,
        })
    }
}
