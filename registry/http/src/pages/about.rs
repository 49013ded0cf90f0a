//! The page about this registry: what it is, what its trust levels mean, what it holds, and its crawling policy, which
//! the crawler's user agent links to.

use a2a_registry_core::config::Config;
use a2a_registry_core::context::Context;
use a2a_registry_core::dialects::{self, DialectView};
use a2a_registry_core::ownership::challenges::registry_host;
use a2a_registry_core::search::overview::{Overview, overview};
use a2a_registry_core::text::{self, ADDRESS};
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template;

use crate::pages::frame::Frame;
use crate::pages::{self, trust};
use crate::requests::visitor::Visitor;

const PROTOCOLS: usize = 8;

#[derive(Template)]
#[template(path = "about.html")]
pub(crate) struct AboutPage {
    frame: Frame,
    /// What the caller may find here; `None` if the index cannot be read.
    overview: Option<Overview>,
    ladder: &'static [(&'static str, &'static str)],
    /// An example of the DNS record by which a domain opts out.
    record: String,
    contact: Option<ContactView>,
    dialects: Vec<DialectView>,
    version: &'static str,
}

struct ContactView {
    label: String,
    /// Set only for a web or mail address.
    link: Option<String>,
}

/// The crawler's user agent names the second address.
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
