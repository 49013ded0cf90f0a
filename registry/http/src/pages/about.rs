//! About page: the purpose of this registry, its trust levels, statistics, and the crawling policy, which the
//! crawler's user agent links to.

use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::embeddings::embedding_progress;
use a2a_registry_core::ownership::challenges::registry_host;
use a2a_registry_core::process_state::semantic_search::search_method_text;
use a2a_registry_core::protocol_versions::{self, ProtocolView};
use a2a_registry_core::search::registry_stats::{RegistryStats, load_registry_stats};
use a2a_registry_core::text::{self, ADDRESS};
use a2a_registry_domain::role::Permission;
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
    /// Statistics of the agents that the caller may find; `None` if the index cannot be read.
    overview: Option<RegistryStats>,
    ladder: &'static [(&'static str, &'static str)],
    /// Example DNS record with which a domain opts out.
    record: String,
    contact: Option<ContactView>,
    /// How searches find agents.
    search: String,
    dialects: Vec<ProtocolView>,
    version: &'static str,
}

struct ContactView {
    label: String,
    /// Link target, for web and mail addresses only.
    link: Option<String>,
}

/// Shows the about page. The crawler's user agent names the second path.
pub(crate) async fn about_page(context: web::Data<AppContext>, visitor: Visitor) -> HttpResponse {
    let overview = match load_registry_stats(&context, &visitor.caller).await {
        Ok(overview) => Some(overview),
        Err(error) => {
            tracing::warn!(%error, "the about page has no statistics");
            None
        }
    };
    let config = context.config();
    let page = AboutPage::new(
        Frame::for_visitor(&config, "about", &visitor),
        overview,
        describe_search(&context, &visitor),
        &registry_host(&context),
        &config,
    );
    crate::pages::render_page(StatusCode::OK, &page)
}

/// Describes how searches find agents, and the progress of the models.
fn describe_search(context: &AppContext, visitor: &Visitor) -> String {
    let sees_all = visitor.caller.has_permission(Permission::SeeAll);
    search_method_text(&embedding_progress(context), sees_all)
}

impl AboutPage {
    pub(crate) fn new(
        frame: Frame,
        overview: Option<RegistryStats>,
        search: String,
        host: &str,
        config: &Config,
    ) -> Self {
        let contact = &config.crawler.contact;
        Self {
            frame,
            overview,
            ladder: &trust::TRUST_LEVELS,
            record: format!(
                "_a2a-registry.agents.example.com TXT \"{}; policy=none\"",
                text::single_line(host, ADDRESS)
            ),
            contact: (!contact.is_empty()).then(|| ContactView::new(contact)),
            search,
            dialects: protocol_versions::enabled_protocols(config),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl ContactView {
    fn new(contact: &str) -> Self {
        let mail = contact.starts_with("mailto:");
        Self {
            label: text::single_line(contact.trim_start_matches("mailto:"), ADDRESS),
            link: text::safe_web_url(contact).or_else(|| mail.then(|| contact.to_owned())),
        }
    }
}
