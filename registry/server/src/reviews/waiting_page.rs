//! The page of what waits for the account that is signed in.

use std::collections::HashMap;

use a2a_registry_api::{News, Review, Seen, Waiting, WaitingDomain};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, get, post, web};
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
use crate::pages::moment::TimeView;
use crate::pages::text::{self, BLOCK, LINE};
use crate::pages::trust::Badge;
use crate::reviews::waiting::{news_seen, waiting};
use crate::reviews::words::change_badge;

/// The page.
#[derive(Template)]
#[template(path = "waiting.html")]
struct WaitingPage {
    frame: Frame,
    reviews: Vec<ReviewLine>,
    news: Vec<NewsLine>,
    domains: Vec<DomainLine>,
    /// The time of the page, up to which its news can be noted as seen.
    at: String,
}

struct ReviewLine {
    id: String,
    name: String,
    domain: String,
    change: Badge,
    opened: TimeView,
    due: Option<TimeView>,
}

struct NewsLine {
    /// The name of the agent.
    name: String,
    what: &'static str,
    link: String,
    by: String,
    text: String,
    at: TimeView,
}

struct DomainLine {
    name: String,
    link: String,
    expires: TimeView,
}

/// Up to when the news are seen.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SeenForm {
    at: String,
}

impl FormFields for SeenForm {}

/// Shows it.
///
/// # Errors
/// Where the database fails.
#[get("/waiting")]
pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: PageOf<Read>,
) -> Result<HttpResponse, Problem> {
    let waiting = waiting(&context, &visitor.0.caller).await?;
    let frame = Frame::of(context.config(), "waiting", &visitor.0);
    let agents = waiting.news.iter().map(|news| news.agent).collect();
    let names = agent_names(&context, agents).await?;
    let page = WaitingPage::new(frame, &waiting, &names);
    Ok(crate::pages::page(StatusCode::OK, &page))
}

/// Notes the news as seen, and leads back to the page.
///
/// # Errors
/// `form-refused`; `invalid-request` for what is no time.
#[post("/waiting")]
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
    fn new(frame: Frame, waiting: &Waiting, names: &HashMap<Uuid, String>) -> Self {
        let now = waiting.at;
        let review = |review: &Review| ReviewLine {
            id: review.id.to_string(),
            name: text::line(&review.name, LINE),
            domain: text::line(&review.domain, LINE),
            change: change_badge(review),
            opened: TimeView::new(review.created_at, now),
            due: TimeView::maybe(review.due, now),
        };
        let domain = |domain: &WaitingDomain| DomainLine {
            name: text::line(&domain.domain, LINE),
            link: format!("/domains/{}", text::segment(&domain.domain)),
            expires: TimeView::new(domain.expires, now),
        };
        let news = |news: &News| NewsLine {
            name: AgentName::new(news.agent, names).name,
            what: match news.kind.as_str() {
                "approved" => "Approved",
                "rejected" => "Rejected",
                _ => "Comment",
            },
            link: match news.review {
                Some(review) => format!("/reviews/{review}"),
                None => format!("/agents/{}/", news.agent),
            },
            by: text::line(&news.by, LINE),
            text: text::block(news.text.as_deref().unwrap_or_default(), BLOCK),
            at: TimeView::new(news.at, now),
        };
        Self {
            frame,
            reviews: waiting.reviews.iter().map(review).collect(),
            news: waiting.news.iter().map(news).collect(),
            domains: waiting.domains.iter().map(domain).collect(),
            at: now.to_rfc3339(),
        }
    }
}
