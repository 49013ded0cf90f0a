//! Home page: the purpose of the registry, its content, and links into it.

use a2a_registry_api::FacetValue;
use a2a_registry_core::search::registry_stats::RegistryStats;
use a2a_registry_core::text::quote::{json_string, shell_word};
use a2a_registry_core::text::{self, LINE, TEASER};
use a2a_registry_domain::timestamp::Timestamp;
use askama::Template;

use crate::pages::frame::Frame;
use crate::pages::search::facets;
use crate::pages::{self, auth, moment, trust};

const TAGS: usize = 14;
const SKILLS: usize = 10;

#[derive(Template)]
#[template(path = "home.html")]
pub(crate) struct HomePage {
    frame: Frame,
    now: Timestamp,
    /// Statistics; `None` if the registry is empty or the index cannot be read.
    overview: Option<RegistryStats>,
    /// Instructions to register the first agent, if the registry is empty.
    first_step: Option<GettingStartedView>,
}

/// Instructions to register an agent, on the command line and over HTTP.
pub(crate) struct GettingStartedView {
    pub command: String,
    pub request: String,
}

impl HomePage {
    /// Home page of the registry at this URL.
    pub(crate) fn new(
        frame: Frame,
        overview: Option<RegistryStats>,
        registry: &str,
        now: Timestamp,
    ) -> Self {
        let is_empty = overview.as_ref().is_some_and(|one| one.agents == 0);
        Self {
            frame,
            now,
            overview: overview.filter(|_| !is_empty),
            first_step: is_empty.then(|| GettingStartedView::new(registry)),
        }
    }

    fn most_frequent(values: &[FacetValue], limit: usize) -> impl Iterator<Item = &FacetValue> {
        let shown = values.iter().filter(|one| !one.value.trim().is_empty());
        shown.take(limit)
    }
}

impl GettingStartedView {
    /// Instructions for the registry at this URL.
    pub(crate) fn new(registry: &str) -> Self {
        let body = format!("{{\"domain\": {}}}", json_string("agents.example.com"));
        Self {
            command: format!(
                "a2a-registry register agents.example.com \\\n  --registry {} --token \"$A2A_REGISTRY_TOKEN\"",
                shell_word(registry)
            ),
            request: format!(
                "curl -sS {} \\\n  -H \"Authorization: Bearer $A2A_REGISTRY_TOKEN\" \\\n  \
                 -H 'Content-Type: application/json' \\\n  -d {}",
                shell_word(&format!("{registry}/v1/domains")),
                shell_word(&body)
            ),
        }
    }
}
