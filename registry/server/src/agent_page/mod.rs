//! The page of one agent: what it does, how to call it, and the evidence for it.

pub(crate) mod background;
mod card;
pub(crate) mod console;
pub mod diff;
mod facts;
pub(crate) mod governed;
pub(crate) mod parts;
mod similar;
mod uptime;

use a2a_card::Family;
use a2a_registry_api::limits::DEFAULT_SIMILAR;
use a2a_registry_api::{Agent, FindingList, Similar, Summary, VersionList};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use background::Background;
use card::CardView;
use console::{ConsoleView, refusal_to_call};
use facts::{OwnerView, ReportView, StateView, TrustView};
use governed::GovernedView;
use parts::{DeprecationView, GlassView, HoldView, VersionsView};
use similar::SimilarView;
use uptime::UptimeView;

use crate::agents::similar::similar_to;
use crate::agents::snippet;
use crate::agents::snippet::{AgentLocation, NoPlan, Snippets};
use crate::agents::views::{agent_view, findings_of, record_visible, versions_of};
use crate::caller::Caller;
use crate::config::Config;
use crate::context::Context;
use crate::error::AppError;
use crate::http::page_policy::page_policy;
use crate::http::path::AgentRef;
use crate::http::visitor::Visitor;
use crate::pages::assets;
use crate::pages::findings::FindingsView;
use crate::pages::frame::Frame;
use crate::pages::text;
use crate::pages::text::{BLOCK, LINE};
use crate::paging::PageRequest;

/// Versions on the page.
const VERSIONS: usize = 10;
/// Findings on the page, and how many of them are seen at once.
const FINDINGS: usize = 25;
const FINDINGS_SEEN: usize = 5;
/// Holds and labels on the page.
const FEW: usize = 20;

/// The page.
#[derive(Template)]
#[template(path = "agent.html")]
pub(crate) struct AgentPage {
    frame: Frame,
    id: String,
    urn: Option<String>,
    card: CardView,
    domain: String,
    domain_link: String,
    labels: Vec<(String, String)>,
    snippets: Result<Snippets, NoPlan>,
    assumed: Option<AssumedAddress>,
    console: ConsoleView,
    console_script: String,
    state: StateView,
    trust: TrustView,
    owner: OwnerView,
    uptime: Option<UptimeView>,
    deprecation: Option<DeprecationView>,
    glass: Option<GlassView>,
    holds: Vec<HoldView>,
    versions: Result<VersionsView, String>,
    findings: Option<FindingsView>,
    similar: Option<SimilarView>,
    report: Option<ReportView>,
    governed: Option<GovernedView>,
    links: LinksView,
    digest: String,
}

/// The address that `send` assumes where the card names none.
struct AssumedAddress {
    url: String,
    /// The command that calls it.
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

struct LinksView {
    this: String,
    card: String,
    versions: String,
    resolver: String,
    origin: Option<String>,
}

impl LinksView {
    fn new(agent: &Summary) -> Self {
        let api = format!("/v1/agents/{}", agent.id);
        let address = |url: &str| text::line(url, text::ADDRESS);
        Self {
            card: format!("{api}/card"),
            versions: format!("{api}/versions"),
            resolver: address(&agent.links.resolver),
            origin: agent.links.origin.as_deref().map(address),
            this: api,
        }
    }
}

/// The data of the page.
pub(crate) struct Material {
    /// The agent.
    pub agent: Agent,
    /// Its versions, or the error that hides them.
    pub versions: Result<VersionList, AppError>,
    /// Its findings, if the caller may see them.
    pub findings: Option<FindingList>,
    /// Similar agents; `None` if they cannot be found now.
    pub similar: Option<Similar>,
    /// The history of its fetches, and the proofs of its domain.
    pub background: Background,
    /// Its policies and waivers, if the caller may see them.
    pub governed: Option<GovernedView>,
    /// Why the caller may not call it; `None` if it may.
    pub refused: Option<String>,
    /// Whether its card is one of 1.0 in `snake_case`, as the a2a-protocol skill has it.
    pub is_snake_case: bool,
}

/// Shows an agent.
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

/// Redirects to the page with a slash at its end, below which an SDK's resolver finds the card.
pub(crate) async fn without_slash(request: HttpRequest) -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, format!("{}/", request.uri().path())))
        .finish()
}

async fn material(context: &Context, caller: &Caller, agent: &str) -> Result<Material, AppError> {
    // One more than is shown: what changed is told by the version before.
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
    /// The page of an agent at `now`.
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
        let id = summary.id.to_string();
        let place = AgentLocation {
            agent: &id,
            resolver: &summary.links.resolver,
            registry: &config.public_url(),
        };
        Self {
            frame,
            urn: summary.urn.as_deref().map(|urn| text::line(urn, 300)),
            card: CardView::new(&agent.card, &agent.security),
            domain: text::line(&summary.domain, LINE),
            domain_link: format!("/domains/{}", text::segment(&summary.domain)),
            labels: labels(summary),
            snippets: snippets(&agent, place, is_snake_case),
            assumed: AssumedAddress::of(&agent, place),
            console: ConsoleView::new(&agent, refused, place, is_snake_case),
            console_script: assets::address("console.js"),
            state: StateView::new(&agent, now),
            trust: TrustView::new(&agent),
            owner: OwnerView::new(&agent, &background, now),
            uptime: UptimeView::new(&background.days, now),
            deprecation: summary
                .deprecation
                .as_ref()
                .map(|deprecation| DeprecationView::new(deprecation, now)),
            glass: GlassView::maybe(agent.break_glass.as_ref(), now),
            holds: holds(&agent, now),
            versions: versions
                .map(|list| VersionsView::new(&list, &agent, VERSIONS, now))
                .map_err(|error| text::line(&error.public, BLOCK)),
            findings: findings
                .filter(|list| !list.findings.is_empty())
                .map(|list| FindingsView::new(&list.findings, FINDINGS_SEEN, FINDINGS)),
            similar: similar.as_ref().and_then(SimilarView::new),
            report: ReportView::new(&config.crawler.contact, &summary.links.page),
            governed,
            links: LinksView::new(summary),
            digest: text::line(&summary.card_digest, LINE),
            id,
        }
    }
}

/// Whether the agent is listed, so that clients get its card.
fn is_listed(agent: &Agent) -> bool {
    let lifecycle = agent.hit.summary.lifecycle.as_str();
    matches!(lifecycle, "approved" | "deprecated") && agent.holds.is_empty()
}

/// The snippets of an agent, with a note where it may know none of what they call.
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

fn holds(agent: &Agent, now: Timestamp) -> Vec<HoldView> {
    let holds = agent.holds.iter().take(FEW);
    holds.map(|hold| HoldView::new(hold, now)).collect()
}

/// The labels of an agent as key and value.
fn labels(agent: &Summary) -> Vec<(String, String)> {
    agent
        .labels
        .iter()
        .take(FEW)
        .map(|(key, value)| (text::line(key, LINE), text::line(value, LINE)))
        .collect()
}
