//! Inbox page: the pending tasks of the signed-in account.

use std::collections::HashMap;

use a2a_registry_api::{HiddenAgent, Seen, Waiting};
use a2a_registry_core::agents::agent_names::{AgentNameView, load_agent_names};
use a2a_registry_core::error::AppError;
use a2a_registry_core::reviews::inbox::{load_inbox, mark_news_read};
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::pages::reviews::words;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::visitor::PermittedVisitor;

#[derive(Template)]
#[template(path = "waiting.html")]
struct InboxPage {
    frame: Frame,
    /// Time of the page, up to which its news can be marked as read.
    now: Timestamp,
    waiting: Waiting,
    names: HashMap<Uuid, String>,
}

/// Form with the time up to which news are marked as read.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct MarkNewsReadForm {
    at: String,
}

impl FormFields for MarkNewsReadForm {}

pub(crate) async fn show_inbox(visitor: PermittedVisitor<Read>) -> HandlerResult {
    let waiting = load_inbox(&visitor.context, &visitor.caller).await?;
    let frame = Frame::for_visitor(&visitor.context.config(), "waiting", &visitor);
    let news = waiting.news.iter().map(|news| news.agent);
    let agents = news.chain(waiting.hidden.iter().map(|hidden| hidden.agent));
    let names = load_agent_names(&visitor.context, agents.collect()).await?;
    let page = InboxPage {
        frame,
        now: waiting.at,
        waiting,
        names,
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

pub(crate) async fn submit_mark_news_read(
    form: PermittedForm<Read, MarkNewsReadForm>,
) -> HandlerResult {
    let at: Result<Timestamp, String> = form.fields.at.parse();
    let at = at.map_err(|text| AppError::invalid("/at", text))?;
    mark_news_read(&form.context, &form.visitor.caller, &Seen { at }).await?;
    Ok(crate::pages::see_other("/waiting"))
}

impl InboxPage {
    fn agent_name(&self, agent: &Uuid) -> String {
        AgentNameView::new(*agent, &self.names).name
    }

    fn hidden_sentence(&self, hidden: &HiddenAgent) -> String {
        text::single_line(&hidden.hidden_from.sentence(), BLOCK)
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
        assert_harmless(|text| InboxPage {
            frame: admin_frame("waiting"),
            now: NOW,
            waiting: read(waiting(text)),
            names: HashMap::new(),
        });
    }
}
