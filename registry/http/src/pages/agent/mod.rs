//! Agent page: what the agent does, how to call it, and the evidence for it.

pub mod act_requests;
pub mod acts;
pub mod card;
pub mod console;
pub mod diff;
pub mod facts;
pub mod governance;
pub mod page_extras;
pub mod uptime;

use a2a_card::CardFamily;
use a2a_registry_api::limits::DEFAULT_SIMILAR_AGENTS;
use a2a_registry_api::{Agent, FindingList, FindingView, Similar, VersionList};
use a2a_registry_core::agents::similar::find_similar_agents;
use a2a_registry_core::agents::snippet::{self, AgentUrls, SnippetUnavailable, Snippets};
use a2a_registry_core::agents::views::{
    build_agent_view, list_versions, require_visible_agent_record, version_findings,
};
use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::text::{self, ADDRESS, BLOCK, LINE, TEASER};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use acts::{AgentAct, offered_acts};
use askama::Template;
use console::{ConsoleView, call_denial_reason};
use facts::{ReportContactView, VERSIONS};
use governance::AgentPoliciesView;
use page_extras::AgentPageExtras;
use uptime::UptimeView;
use uuid::Uuid;

use crate::answers::content_security_policy::csp_with_connect_sources;
use crate::pages::frame::Frame;
use crate::pages::trust::{self, Badge};
use crate::pages::{assets, moment};
use crate::requests::path_parameters::AgentRef;
use crate::requests::visitor::Visitor;

/// Maximum number of findings on the page.
const FINDINGS: usize = 25;
const FINDINGS_SEEN: usize = 5;
/// Maximum number of holds, labels and collections on the page.
const FEW: usize = 20;
const LINKED: usize = 5;

#[derive(Template)]
#[template(path = "agent.html")]
pub(crate) struct AgentPage {
    frame: Frame,
    now: Timestamp,
    id: Uuid,
    agent: Agent,
    domain: String,
    domain_link: String,
    snippets: Result<Snippets, SnippetUnavailable>,
    assumed: Option<AssumedUrlView>,
    console: ConsoleView,
    console_script: String,
    /// Badges for lifecycle and visibility, unless they are the defaults.
    unusual: Vec<Badge>,
    fetched: Badge,
    /// Badge of the last endpoint check, unless there was none.
    endpoint: Option<Badge>,
    /// Whether the sunset time of a deprecated agent has passed.
    is_past_sunset: bool,
    /// Whether the agent is listed, so that clients get its card.
    is_listed: bool,
    uptime: Option<UptimeView>,
    /// Versions, or the reason why they cannot be shown.
    versions: Result<VersionList, String>,
    findings: Vec<FindingView>,
    similar: Option<Similar>,
    background: AgentPageExtras,
    report: Option<ReportContactView>,
    governed: Option<AgentPoliciesView>,
    /// From whom policies hide the agent, for its owner and callers with full access.
    hidden: Option<String>,
    /// Actions that the caller may take.
    acts: Vec<&'static AgentAct>,
}

struct AssumedUrlView {
    url: String,
    command: String,
}

impl AssumedUrlView {
    fn for_agent(agent: &Agent, location: AgentUrls<'_>) -> Option<Self> {
        Some(Self {
            url: text::single_line(agent.assumed_url.as_deref()?, text::ADDRESS),
            command: snippet::build_send_command(&agent.card, location),
        })
    }
}

pub(crate) struct AgentPageData {
    pub agent: Agent,
    /// Versions, or the error of loading them.
    pub versions: Result<VersionList>,
    pub findings: Option<FindingList>,
    /// Similar agents; `None` if they cannot be determined now.
    pub similar: Option<Similar>,
    pub background: AgentPageExtras,
    pub governed: Option<AgentPoliciesView>,
    /// Reason why the caller may not call the agent; `None` if it may.
    pub call_denial_reason: Option<String>,
    /// Whether the 1.0 card is in `snake_case`, as the a2a-protocol skill writes it.
    pub is_snake_case: bool,
}

pub(crate) async fn show_agent_page(
    context: web::Data<AppContext>,
    visitor: Visitor,
    AgentRef(agent): AgentRef,
) -> HttpResponse {
    let frame = Frame::for_visitor(&context.config(), "agent", &visitor);
    let caller = &visitor.caller;
    match load_agent_page_data(&context, caller, &agent).await {
        Ok(material) => {
            let mut page = AgentPage::new(frame, material, &context.config(), context.now());
            page.acts = offered_acts(&page.agent, caller, &page.background);
            let mut response = crate::pages::render_page(StatusCode::OK, &page);
            let policy = csp_with_connect_sources(page.console.connect_origins());
            response
                .headers_mut()
                .insert(CONTENT_SECURITY_POLICY, policy);
            response
        }
        Err(error) => crate::pages::problems::framed_error_page(frame, error),
    }
}

/// Redirects to the URL with a trailing slash, under which SDK resolvers find the card.
pub(crate) async fn redirect_to_trailing_slash(request: HttpRequest) -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, format!("{}/", request.uri().path())))
        .finish()
}

async fn load_agent_page_data(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<AgentPageData> {
    // One version more than shown, so that each version has a previous one for comparison.
    let first_page = PageRequest {
        page_size: u32::try_from(VERSIONS + 1).ok(),
        page_token: None,
    };
    let record = require_visible_agent_record(context, caller, agent).await?;
    let row = &record.agent;
    let (agent, versions, similar, background, governed) = futures::join!(
        build_agent_view(context, caller, &record),
        list_versions(context, caller, row, &first_page),
        find_similar_agents(context, caller, row.id, DEFAULT_SIMILAR_AGENTS),
        AgentPageExtras::load(context, caller, &record),
        AgentPoliciesView::load(context, caller, &record),
    );
    let agent = agent?;
    Ok(AgentPageData {
        call_denial_reason: call_denial_reason(context, caller, &agent).await,
        is_snake_case: record.version.wire_family == CardFamily::Snake1.as_str(),
        agent,
        versions,
        findings: version_findings(context, row, record.version.clone()).ok(),
        similar: similar.ok(),
        background: background?,
        governed: governed?,
    })
}

impl AgentPage {
    pub(crate) fn new(frame: Frame, data: AgentPageData, config: &Config, now: Timestamp) -> Self {
        let AgentPageData {
            agent,
            versions,
            findings,
            similar,
            background,
            governed,
            call_denial_reason: refused,
            is_snake_case,
        } = data;
        let summary = &agent.hit.summary;
        let location = AgentUrls {
            agent: &summary.id.to_string(),
            resolver: &summary.links.resolver,
            registry: &config.public_url(),
        };
        Self {
            frame,
            now,
            id: summary.id,
            domain: text::single_line(&summary.domain, LINE),
            domain_link: format!("/domains/{}", text::path_segment(&summary.domain)),
            snippets: build_agent_snippets(&agent, location, is_snake_case),
            assumed: AssumedUrlView::for_agent(&agent, location),
            console: ConsoleView::new(&agent, refused, location, is_snake_case),
            console_script: assets::asset_url("console.js"),
            unusual: facts::status_badges(summary),
            fetched: trust::liveness_badge(&summary.liveness, now),
            endpoint: trust::endpoint_badge(&summary.endpoint),
            is_past_sunset: summary
                .deprecation
                .as_ref()
                .is_some_and(|deprecation| deprecation.is_past_sunset(now)),
            is_listed: is_listed(&agent),
            uptime: UptimeView::new(&background.days, now),
            versions: versions.map_err(|error| text::single_line(&error.public, BLOCK)),
            findings: findings.map(|list| list.findings).unwrap_or_default(),
            similar: similar.filter(has_similar_or_duplicates),
            report: ReportContactView::new(&config.crawler.contact, &summary.links.page),
            governed,
            background,
            hidden: agent
                .hidden_from
                .as_ref()
                .map(|hidden| text::single_line(&hidden.sentence(), BLOCK)),
            acts: Vec::new(),
            agent,
        }
    }
}

/// Whether the agent is listed, so that clients get its card.
fn is_listed(agent: &Agent) -> bool {
    let lifecycle = agent.hit.summary.lifecycle.as_str();
    matches!(lifecycle, "approved" | "deprecated") && agent.holds.is_empty()
}

/// Snippets for an agent, with a note if the agent may not support the methods that they call.
fn build_agent_snippets(
    agent: &Agent,
    location: AgentUrls<'_>,
    is_snake_case: bool,
) -> Result<Snippets, SnippetUnavailable> {
    let mut snippets = snippet::build_snippets(&agent.card, location)?;
    if is_snake_case {
        let note = "The card is in snake_case, as in agents based on the a2a-protocol skill. They may not support \
        the methods that curl and the SDKs call; a2a-registry send uses the methods that they support.";
        snippets.notes.push(note.to_owned());
    }
    Ok(snippets)
}

fn has_similar_or_duplicates(similar: &Similar) -> bool {
    let duplicates = similar.duplicates.as_ref();
    !similar.agents.is_empty() || duplicates.is_some_and(|one| one.count > 0)
}
