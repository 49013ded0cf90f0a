//! The form on an agent's page that reports it: the same act as `POST /v1/agents/{agent}:report`.

use a2a_registry_api::{NewReport, ReportAccepted};
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, post, web};
use askama::Template;
use serde::Deserialize;

use crate::caller::Caller;
use crate::context::Context;
use crate::http::auth::AnyoneWriting;
use crate::http::body::UnreadBody;
use crate::http::forms::read_form;
use crate::http::path::AgentRef;
use crate::http::problem::Problem;
use crate::pages::frame::Frame;
use crate::reviews::reporting::agent_report;

/// The most bytes of the form: each character of a reason may be escaped.
const FORM: usize = 16 * 1024;

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportForm {
    reason: String,
    contact: String,
}

/// The page after a report.
#[derive(Template)]
#[template(path = "reported.html")]
struct ReportedPage {
    frame: Frame,
    agent: String,
}

/// Reports the agent, and says so.
///
/// # Errors
/// As the act, and `forbidden` for a form that another site sends.
#[post("/agents/{agent}/report")]
pub(crate) async fn submit(
    context: web::Data<Context>,
    AnyoneWriting(caller): AnyoneWriting,
    AgentRef(agent): AgentRef,
    request: HttpRequest,
    body: UnreadBody,
) -> Result<HttpResponse, Problem> {
    let accepted = reported(&context, &caller, &agent, &request, body).await?;
    let page = ReportedPage {
        frame: Frame::new(context.config(), "agent"),
        agent: accepted.agent.to_string(),
    };
    Ok(crate::pages::page(StatusCode::ACCEPTED, &page))
}

async fn reported(
    context: &Context,
    caller: &Caller,
    agent: &str,
    request: &HttpRequest,
    body: UnreadBody,
) -> Result<ReportAccepted, Problem> {
    let form: ReportForm = read_form(request, body, FORM).await?;
    let new = NewReport {
        reason: form.reason,
        contact: form.contact,
    };
    Ok(agent_report(context, caller, agent, &new).await?)
}
