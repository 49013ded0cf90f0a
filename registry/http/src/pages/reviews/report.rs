//! The form on an agent's page that reports it: the same act as `POST /v1/agents/{agent}:report`.

use a2a_registry_api::{NewReport, ReportAccepted};
use a2a_registry_core::reviews::reporting::agent_report;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use serde::Deserialize;

use crate::answers::answer::Answer;
use crate::pages::frame::Frame;
use crate::requests::auth::{AnyoneWriting, Read};
use crate::requests::body::UnreadBody;
use crate::requests::forms::{FormFields, FormOf, read_form};
use crate::requests::path::AgentRef;

/// Maximum number of bytes of the form: each character of a reason may be escaped.
const FORM: usize = 16 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportForm {
    reason: String,
    contact: String,
}

#[derive(Template)]
#[template(path = "reported.html")]
struct ReportedPage {
    frame: Frame,
    agent: String,
}

/// The fields of the form of a signed-in visitor.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OwnReportForm {
    agent: String,
    reason: String,
    contact: String,
}

impl FormFields for OwnReportForm {}

/// Reports the agent without an account, or for that of a token, and confirms it.
pub(crate) async fn submit(
    caller: AnyoneWriting,
    AgentRef(agent): AgentRef,
    request: HttpRequest,
    body: UnreadBody,
) -> Answer {
    let form: ReportForm = read_form(&request, body, FORM).await?;
    let new = NewReport {
        reason: form.reason,
        contact: form.contact,
    };
    let accepted = agent_report(&caller.context, &caller, &agent, &new).await?;
    let frame = Frame::new(caller.context.config(), "agent");
    Ok(reported(frame, &accepted))
}

/// Reports the agent for the signed-in account, and confirms it.
pub(crate) async fn submit_signed_in(form: FormOf<Read, OwnReportForm>) -> Answer {
    let OwnReportForm {
        agent,
        reason,
        contact,
    } = form.fields;
    let new = NewReport { reason, contact };
    let accepted = agent_report(&form.context, &form.visitor.caller, &agent, &new).await?;
    let frame = Frame::of(form.context.config(), "agent", &form.visitor);
    Ok(reported(frame, &accepted))
}

fn reported(frame: Frame, accepted: &ReportAccepted) -> HttpResponse {
    let page = ReportedPage {
        frame,
        agent: accepted.agent.to_string(),
    };
    crate::pages::page(StatusCode::ACCEPTED, &page)
}
