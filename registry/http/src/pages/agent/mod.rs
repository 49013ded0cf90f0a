//! The page of one agent: what it does, how to call it, and the evidence for it.

pub mod background;
pub mod card;
pub mod console;
pub mod diff;
pub mod facts;
pub mod governed;
pub mod uptime;

use a2a_card::Family;
use a2a_registry_api::limits::DEFAULT_SIMILAR;
use a2a_registry_api::{Agent, FindingList, FindingView, Similar, VersionList};
use a2a_registry_core::agents::similar::similar_to;
use a2a_registry_core::agents::snippet::{self, AgentLocation, NoPlan, Snippets};
use a2a_registry_core::agents::views::{agent_view, findings_of, record_visible, versions_of};
use a2a_registry_core::config::Config;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::Result;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::text::{self, ADDRESS, BLOCK, LINE, TEASER};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use background::Background;
use console::{ConsoleView, refusal_to_call};
use facts::{ReportView, VERSIONS};
use governed::GovernedView;
use uptime::UptimeView;
use uuid::Uuid;

use crate::answers::page_policy::page_policy;
use crate::pages::frame::Frame;
use crate::pages::trust::{self, Badge};
use crate::pages::{assets, moment};
use crate::requests::path::AgentRef;
use crate::requests::visitor::Visitor;

/// Findings on the page, and how many of them are visible at once.
const FINDINGS: usize = 25;
const FINDINGS_SEEN: usize = 5;
/// Holds, labels and collections on the page.
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
    snippets: Result<Snippets, NoPlan>,
    assumed: Option<AssumedAddress>,
    console: ConsoleView,
    console_script: String,
    /// The lifecycle and visibility, unless they are the usual ones.
    unusual: Vec<Badge>,
    fetched: Badge,
    /// Whether the time has passed after which a deprecated agent may stop working.
    is_past_sunset: bool,
    /// Whether clients get its card.
    is_listed: bool,
    uptime: Option<UptimeView>,
    /// The versions, or why they cannot be shown.
    versions: Result<VersionList, String>,
    findings: Vec<FindingView>,
    similar: Option<Similar>,
    background: Background,
    report: Option<ReportView>,
    governed: Option<GovernedView>,
}

struct AssumedAddress {
    url: String,
    command: String,
}

impl AssumedAddress {
    fn of(agent: &Agent, place: AgentLocation<'_>) -> Option<Self> {
        Some(Self {
            url: text::line(agent.assumed_url.as_deref()?, text::ADDRESS),
            command: snippet::send_command(&agent.card, place),
        })
    }
}

pub(crate) struct Material {
    pub agent: Agent,
    /// The versions, or the error that hides them.
    pub versions: Result<VersionList>,
    pub findings: Option<FindingList>,
    /// `None` if they cannot be found now.
    pub similar: Option<Similar>,
    pub background: Background,
    pub governed: Option<GovernedView>,
    /// Why the caller may not call it; `None` if it may.
    pub refused: Option<String>,
    /// Whether its 1.0 card is in `snake_case`, as the a2a-protocol skill writes it.
    pub is_snake_case: bool,
}

pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: Visitor,
    AgentRef(agent): AgentRef,
) -> HttpResponse {
    let frame = Frame::of(context.config(), "agent", &visitor);
    let caller = &visitor.caller;
    match material(&context, caller, &agent).await {
        Ok(material) => {
            let page = AgentPage::new(frame, material, context.config(), context.now());
            let mut response = crate::pages::page(StatusCode::OK, &page);
            let policy = page_policy(page.console.origins());
            response
                .headers_mut()
                .insert(CONTENT_SECURITY_POLICY, policy);
            response
        }
        Err(error) => crate::pages::problems::problem(frame, error),
    }
}

/// Redirects to the page with a trailing slash, below which an SDK's resolver finds the card.
pub(crate) async fn without_slash(request: HttpRequest) -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, format!("{}/", request.uri().path())))
        .finish()
}

async fn material(context: &Context, caller: &Caller, agent: &str) -> Result<Material> {
    // One more than is shown, so that each version has a predecessor to compare with.
    let first = PageRequest {
        page_size: u32::try_from(VERSIONS + 1).ok(),
        page_token: None,
    };
    let record = record_visible(context, caller, agent).await?;
    let row = &record.agent;
    let (agent, versions, similar, background, governed) = futures::join!(
        agent_view(context, caller, &record),
        versions_of(context, caller, row, &first),
        similar_to(context, caller, row.id, DEFAULT_SIMILAR),
        Background::load(context, caller, &record),
        GovernedView::load(context, caller, &record),
    );
    let agent = agent?;
    Ok(Material {
        refused: refusal_to_call(context, caller, &agent).await,
        is_snake_case: record.version.wire_family == Family::Snake1.as_str(),
        agent,
        versions,
        findings: findings_of(context, row, record.version.clone()).ok(),
        similar: similar.ok(),
        background: background?,
        governed: governed?,
    })
}

impl AgentPage {
    pub(crate) fn new(frame: Frame, material: Material, config: &Config, now: Timestamp) -> Self {
        let Material {
            agent,
            versions,
            findings,
            similar,
            background,
            governed,
            refused,
            is_snake_case,
        } = material;
        let summary = &agent.hit.summary;
        let place = AgentLocation {
            agent: &summary.id.to_string(),
            resolver: &summary.links.resolver,
            registry: &config.public_url(),
        };
        Self {
            frame,
            now,
            id: summary.id,
            domain: text::line(&summary.domain, LINE),
            domain_link: format!("/domains/{}", text::segment(&summary.domain)),
            snippets: snippets(&agent, place, is_snake_case),
            assumed: AssumedAddress::of(&agent, place),
            console: ConsoleView::new(&agent, refused, place, is_snake_case),
            console_script: assets::address("console.js"),
            unusual: facts::unusual_badges(summary),
            fetched: trust::liveness_badge(&summary.liveness, now),
            is_past_sunset: summary
                .deprecation
                .as_ref()
                .is_some_and(|deprecation| deprecation.has_passed(now)),
            is_listed: is_listed(&agent),
            uptime: UptimeView::new(&background.days, now),
            versions: versions.map_err(|error| text::line(&error.public, BLOCK)),
            findings: findings.map(|list| list.findings).unwrap_or_default(),
            similar: similar.filter(has_similar),
            report: ReportView::new(&config.crawler.contact, &summary.links.page),
            governed,
            background,
            agent,
        }
    }
}

/// Whether the agent is listed, so that clients get its card.
fn is_listed(agent: &Agent) -> bool {
    let lifecycle = agent.hit.summary.lifecycle.as_str();
    matches!(lifecycle, "approved" | "deprecated") && agent.holds.is_empty()
}

/// The snippets of an agent, with a note where it may not know the methods that they call.
fn snippets(
    agent: &Agent,
    place: AgentLocation<'_>,
    is_snake_case: bool,
) -> Result<Snippets, NoPlan> {
    let mut snippets = snippet::snippets(&agent.card, place)?;
    if is_snake_case {
        let note = "The card is in snake_case, as agents written after the a2a-protocol skill have it. They may not \
                    know what curl and the SDKs call; a2a-registry send calls what they know.";
        snippets.notes.push(note.to_owned());
    }
    Ok(snippets)
}

fn has_similar(similar: &Similar) -> bool {
    let duplicates = similar.duplicates.as_ref();
    !similar.agents.is_empty() || duplicates.is_some_and(|one| one.count > 0)
}
