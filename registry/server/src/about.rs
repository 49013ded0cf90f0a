//! The page about this registry: what it is, what its words on trust mean, what it holds, and the policy for crawling,
//! which the crawler's user agent links to.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template;

use crate::config::Config;
use crate::context::Context;
use crate::dialects::{self, DialectView};
use crate::http::visitor::Visitor;
use crate::ownership::challenges::registry_host;
use crate::pages::frame::Frame;
use crate::pages::text::ADDRESS;
use crate::pages::{self, text, trust};
use crate::search::overview::{Overview, overview};

/// The most protocol versions shown.
const PROTOCOLS: usize = 8;

/// The page.
#[derive(Template)]
#[template(path = "about.html")]
pub(crate) struct AboutPage {
    frame: Frame,
    /// What the caller may find here; `None` while the index cannot be read.
    overview: Option<Overview>,
    ladder: &'static [(&'static str, &'static str)],
    /// The record by which a domain opts out, for an example.
    record: String,
    contact: Option<ContactView>,
    /// The protocols that this registry itself speaks, with their versions.
    dialects: Vec<DialectView>,
    version: &'static str,
}

/// Where the operator can be reached.
struct ContactView {
    label: String,
    /// The address to link to, if it is one of the web or of mail.
    link: Option<String>,
}

/// Shows it. The crawler's user agent names the second address.
pub(crate) async fn show(context: web::Data<Context>, visitor: Visitor) -> HttpResponse {
    let overview = match overview(&context, &visitor.caller).await {
        Ok(overview) => Some(overview),
        Err(error) => {
            tracing::warn!(%error, "the page about the registry has no numbers");
            None
        }
    };
    let config = context.config();
    let page = AboutPage::new(
        Frame::of(config, "about", &visitor),
        overview,
        &registry_host(&context),
        config,
    );
    crate::pages::page(StatusCode::OK, &page)
}

impl AboutPage {
    /// The page of a registry with that host name.
    pub(crate) fn new(
        frame: Frame,
        overview: Option<Overview>,
        host: &str,
        config: &Config,
    ) -> Self {
        let contact = &config.crawler.contact;
        Self {
            frame,
            overview,
            ladder: &trust::LADDER,
            record: format!(
                "_a2a-registry.agents.example.com TXT \"{}; policy=none\"",
                text::line(host, ADDRESS)
            ),
            contact: (!contact.is_empty()).then(|| ContactView::new(contact)),
            dialects: dialects::shown(config),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl ContactView {
    fn new(contact: &str) -> Self {
        let mail = contact.starts_with("mailto:");
        Self {
            label: text::line(contact.trim_start_matches("mailto:"), ADDRESS),
            link: text::web_address(contact).or_else(|| mail.then(|| contact.to_owned())),
        }
    }
}
