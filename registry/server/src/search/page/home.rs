//! The first page: what the registry is, what is in it, and ways into it.

use a2a_registry_api::{FacetValue, Hit};
use a2a_registry_domain::timestamp::Timestamp;
use askama::Template;

use crate::pages::frame::Frame;
use crate::pages::quote::{json, shell};
use crate::pages::text::{self, LINE, TEASER};
use crate::pages::trust::{self, Badge};
use crate::pages::{auth, moment, only};
use crate::search::overview::Overview;
use crate::search::page::facets::skill_label;
use crate::search::skill_names::SkillNames;

/// The most tags and skills shown.
const TAGS: usize = 14;
const SKILLS: usize = 10;

/// The page.
#[derive(Template)]
#[template(path = "home.html")]
pub(crate) struct HomePage {
    frame: Frame,
    now: Timestamp,
    /// What is in the registry; `None` while the index cannot be read.
    contents: Option<Contents>,
    /// How to register the first agent, where there is none.
    first_step: Option<FirstStep>,
}

/// What is in the registry, for this caller.
struct Contents {
    agents: String,
    domains: String,
    /// When a card was last fetched.
    crawled: Option<Timestamp>,
    skills: Vec<ValueLink>,
    tags: Vec<ValueLink>,
    newest: Vec<NewAgent>,
}

/// A value with its number of agents, as a link to them.
struct ValueLink {
    label: String,
    count: String,
    link: String,
}

/// An agent among the newest.
struct NewAgent {
    link: String,
    name: String,
    domain: String,
    description: String,
    auth: String,
    trust: Badge,
}

/// How to register an agent, on the command line and over HTTP.
pub(crate) struct FirstStep {
    /// The command.
    pub command: String,
    /// The request.
    pub request: String,
}

impl HomePage {
    /// The page of a registry at that address.
    pub(crate) fn new(
        frame: Frame,
        overview: Option<&Overview>,
        registry: &str,
        now: Timestamp,
    ) -> Self {
        let is_empty = overview.is_some_and(|overview| overview.agents == 0);
        Self {
            frame,
            now,
            contents: overview.filter(|_| !is_empty).map(Contents::new),
            first_step: is_empty.then(|| FirstStep::new(registry)),
        }
    }
}

impl Contents {
    fn new(overview: &Overview) -> Self {
        Self {
            agents: text::with_noun(&overview.agents, "agent", "agents"),
            domains: text::with_noun(&overview.domains, "domain", "domains"),
            crawled: overview.crawled,
            skills: links("skill", &overview.skills, SKILLS, &overview.skill_names),
            tags: links("tag", &overview.tags, TAGS, &SkillNames::new()),
            newest: overview.newest.iter().map(NewAgent::new).collect(),
        }
    }
}

impl NewAgent {
    fn new(hit: &Hit) -> Self {
        let summary = &hit.summary;
        Self {
            link: format!("/agents/{}/", summary.id),
            name: text::line(&summary.name, LINE),
            domain: text::line(&summary.domain, LINE),
            description: text::line(summary.description.as_deref().unwrap_or_default(), TEASER),
            auth: auth::sentence(&summary.auth),
            trust: trust::trust_badge(&summary.trust),
        }
    }
}

impl FirstStep {
    /// How to register an agent with the registry at that address.
    pub(crate) fn new(registry: &str) -> Self {
        let body = format!("{{\"domain\": {}}}", json("agents.example.com"));
        Self {
            command: format!(
                "a2a-registry register agents.example.com \\\n  --registry {} --token \"$A2A_REGISTRY_TOKEN\"",
                shell(registry)
            ),
            request: format!(
                "curl -sS {} \\\n  -H \"Authorization: Bearer $A2A_REGISTRY_TOKEN\" \\\n  \
                 -H 'Content-Type: application/json' \\\n  -d {}",
                shell(&format!("{registry}/v1/domains")),
                shell(&body)
            ),
        }
    }
}

/// The most frequent values of a filter, as links to their agents.
fn links(filter: &str, values: &[FacetValue], most: usize, skills: &SkillNames) -> Vec<ValueLink> {
    let shown = values.iter().filter(|one| !one.value.trim().is_empty());
    shown
        .take(most)
        .map(|one| ValueLink {
            label: match filter {
                "skill" => text::line(&skill_label(&one.value, skills), 40),
                _ => text::line(&one.value, 40),
            },
            count: text::grouped(&one.count),
            link: only(filter, &one.value),
        })
        .collect()
}
