//! The page of the pending tasks of the signed-in account.

use std::collections::HashMap;

use a2a_registry_api::{Seen, Waiting};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use crate::agents::agent_names::{AgentName, agent_names};
use crate::context::Context;
use crate::error::AppError;
use crate::http::auth::Read;
use crate::http::forms::{FormFields, FormOf};
use crate::http::problem::Problem;
use crate::http::visitor::PageOf;
use crate::pages::frame::Frame;
use crate::pages::text::{BLOCK, LINE};
use crate::pages::{moment, text};
use crate::reviews::waiting::{news_seen, waiting};
use crate::reviews::words;

#[derive(Template)]
#[template(path = "waiting.html")]
struct WaitingPage {
    frame: Frame,
    /// The time of the page, up to which its news can be marked as seen.
    now: Timestamp,
    waiting: Waiting,
    names: HashMap<Uuid, String>,
}

/// Up to when the news are seen.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SeenForm {
    at: String,
}

impl FormFields for SeenForm {}

pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: PageOf<Read>,
) -> Result<HttpResponse, Problem> {
    let waiting = waiting(&context, &visitor.0.caller).await?;
    let frame = Frame::of(context.config(), "waiting", &visitor.0);
    let agents = waiting.news.iter().map(|news| news.agent).collect();
    let names = agent_names(&context, agents).await?;
    let page = WaitingPage {
        frame,
        now: waiting.at,
        waiting,
        names,
    };
    Ok(crate::pages::page(StatusCode::OK, &page))
}

pub(crate) async fn seen(
    context: web::Data<Context>,
    form: FormOf<Read, SeenForm>,
) -> Result<HttpResponse, Problem> {
    let at: Result<Timestamp, String> = form.fields.at.parse();
    let at = at.map_err(|text| AppError::invalid("/at", text))?;
    news_seen(&context, &form.visitor.caller, &Seen { at }).await?;
    Ok(HttpResponse::SeeOther()
        .insert_header((LOCATION, "/waiting"))
        .finish())
}

impl WaitingPage {
    fn agent_name(&self, agent: &Uuid) -> String {
        AgentName::new(*agent, &self.names).name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, read, waiting};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| WaitingPage {
            frame: admin_frame("waiting"),
            now: NOW,
            waiting: read(waiting(text)),
            names: HashMap::new(),
        });
    }
}
