//! Report form on an agent's page, which does the same as `POST /v1/agents/{agent}:report`.

use a2a_registry_api::{NewReport, ReportAccepted};
use a2a_registry_core::reviews::reports::report_agent;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::requests::auth::{AnyoneWriting, Read};
use crate::requests::body::PendingBody;
use crate::requests::forms::{FormFields, PermittedForm, read_form};
use crate::requests::path_parameters::AgentRef;

/// Maximum number of bytes of the form: each character of a reason may be escaped.
const MAX_FORM_BYTES: usize = 16 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportForm {
    reason: String,
    contact: String,
}

#[derive(Template)]
#[template(path = "reported.html")]
struct ReportConfirmationPage {
    frame: Frame,
    agent: String,
}

/// Form fields for a signed-in visitor.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SignedInReportForm {
    agent: String,
    reason: String,
    contact: String,
}

impl FormFields for SignedInReportForm {}

/// Reports the agent anonymously, or for the account of a token, and shows a confirmation.
pub(crate) async fn submit_report(
    caller: AnyoneWriting,
    AgentRef(agent): AgentRef,
    request: HttpRequest,
    body: PendingBody,
) -> HandlerResult {
    let form: ReportForm = read_form(&request, body, MAX_FORM_BYTES).await?;
    let new_report = NewReport {
        reason: form.reason,
        contact: form.contact,
    };
    let accepted = report_agent(&caller.context, &caller, &agent, &new_report).await?;
    let frame = Frame::new(&caller.context.config(), "agent");
    Ok(report_confirmation_page(frame, &accepted))
}

/// Reports the agent for the signed-in account, and shows a confirmation.
pub(crate) async fn submit_report_signed_in(
    form: PermittedForm<Read, SignedInReportForm>,
) -> HandlerResult {
    let SignedInReportForm {
        agent,
        reason,
        contact,
    } = form.fields;
    let new = NewReport { reason, contact };
    let accepted = report_agent(&form.context, &form.visitor.caller, &agent, &new).await?;
    let frame = Frame::for_visitor(&form.context.config(), "agent", &form.visitor);
    Ok(report_confirmation_page(frame, &accepted))
}

fn report_confirmation_page(frame: Frame, accepted: &ReportAccepted) -> HttpResponse {
    let page = ReportConfirmationPage {
        frame,
        agent: accepted.agent.to_string(),
    };
    crate::pages::render_page(StatusCode::ACCEPTED, &page)
}
