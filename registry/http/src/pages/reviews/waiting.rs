//! The page of the pending tasks of the signed-in account.

use std::collections::HashMap;

use a2a_registry_api::{Seen, Waiting};
use a2a_registry_core::agents::agent_names::{AgentName, agent_names};
use a2a_registry_core::error::AppError;
use a2a_registry_core::reviews::waiting::{news_seen, waiting};
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::answer::Answer;
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::pages::reviews::words;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, FormOf};
use crate::requests::visitor::PageOf;

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

pub(crate) async fn show(visitor: PageOf<Read>) -> Answer {
    let waiting = waiting(&visitor.context, &visitor.caller).await?;
    let frame = Frame::of(visitor.context.config(), "waiting", &visitor);
    let agents = waiting.news.iter().map(|news| news.agent).collect();
    let names = agent_names(&visitor.context, agents).await?;
    let page = WaitingPage {
        frame,
        now: waiting.at,
        waiting,
        names,
    };
    Ok(crate::pages::page(StatusCode::OK, &page))
}

pub(crate) async fn seen(form: FormOf<Read, SeenForm>) -> Answer {
    let at: Result<Timestamp, String> = form.fields.at.parse();
    let at = at.map_err(|text| AppError::invalid("/at", text))?;
    news_seen(&form.context, &form.visitor.caller, &Seen { at }).await?;
    Ok(crate::pages::see_other("/waiting"))
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
