//! The page that the crawler's user agent names: what it does, and how to be left out.

use crate::app::ownership::challenges::registry_host;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, web};
use askama::Template;

use super::frame::Frame;
use super::text::{self, ADDRESS};
use crate::app::App;

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
pub(super) async fn show(app: web::Data<App>) -> HttpResponse {
    let contact = app.config().crawler.contact.as_str();
    let page = CrawlerPage {
        frame: Frame::new(app.config(), "crawler"),
        record: format!(
            "_a2a-registry.agents.example.com TXT \"{}; policy=none\"",
            text::line(&registry_host(&app), ADDRESS)
        ),
        contact: (!contact.is_empty()).then(|| text::line(contact, ADDRESS)),
    };
    super::page(StatusCode::OK, &page)
}
