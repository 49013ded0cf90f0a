//! The page that the crawler's user agent names: what it does, and how to be left out.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, web};
use askama::Template;

use crate::context::Context;
use crate::ownership::challenges::registry_host;
use crate::pages::frame::Frame;
use crate::pages::text;
use crate::pages::text::ADDRESS;

/// The page.
#[derive(Template)]
#[template(path = "crawler.html")]
struct CrawlerPage {
    frame: Frame,
    /// The record by which a domain opts out, for an example.
    record: String,
    contact: Option<String>,
}

/// Shows it.
#[get("/crawler")]
pub(crate) async fn show(context: web::Data<Context>) -> HttpResponse {
    let contact = context.config().crawler.contact.as_str();
    let page = CrawlerPage {
        frame: Frame::new(context.config(), "crawler"),
        record: format!(
            "_a2a-registry.agents.example.com TXT \"{}; policy=none\"",
            text::line(&registry_host(&context), ADDRESS)
        ),
        contact: (!contact.is_empty()).then(|| text::line(contact, ADDRESS)),
    };
    crate::pages::page(StatusCode::OK, &page)
}
