//! The page of one agent: its card, state and versions, and snippets that call it.

mod card;
mod parts;

use a2a_registry_api::{Agent, FindingList, Summary, VersionList};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, get, web};
use askama::Template;
use card::CardView;
use parts::{
    DecisionView, DeprecationView, FindingsView, HoldView, LivenessView, TrustView, VersionsView,
};

use crate::agents::snippet;
use crate::agents::snippet::{AgentLocation, NoPlan, Snippets};
use crate::agents::views::{FindingsQuery, agent_findings, agent_show, agent_versions};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::http::auth::Anyone;
use crate::http::path::AgentRef;
use crate::pages::frame::Frame;
use crate::pages::text::{BLOCK, LINE};
use crate::pages::trust::Badge;
use crate::pages::{text, trust};
use crate::paging::PageRequest;

/// Versions on the page.
const VERSIONS: u32 = 10;
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
    badges: Vec<Badge>,
    labels: Vec<(String, String)>,
    snippets: Result<Snippets, NoPlan>,
    liveness: LivenessView,
    trust: TrustView,
    decision: DecisionView,
    deprecation: Option<DeprecationView>,
    holds: Vec<HoldView>,
    versions: Result<VersionsView, String>,
    findings: Option<FindingsView>,
    links: LinksView,
    digest: String,
}

struct LinksView {
    this: String,
    card: String,
    versions: String,
    resolver: String,
}

/// The data of the page.
pub(crate) struct Material {
    /// The agent.
    pub agent: Agent,
    /// Its versions, or the error that hides them.
    pub versions: Result<VersionList, AppError>,
    /// Its findings, if the caller may see them.
    pub findings: Option<FindingList>,
}

/// Shows an agent.
#[get("/agents/{agent}/")]
pub(crate) async fn show(
    context: web::Data<Context>,
    Anyone(caller): Anyone,
    AgentRef(agent): AgentRef,
) -> HttpResponse {
    let frame = Frame::new(context.config(), "agent");
    match material(&context, &caller, &agent).await {
        Ok(material) => {
            let registry = context.config().public_url();
            crate::pages::page(
                StatusCode::OK,
                &AgentPage::new(frame, material, &registry, context.now()),
            )
        }
        Err(error) => crate::pages::problems::problem(frame, error),
    }
}

/// Redirects to the page with a slash at its end, below which an SDK's resolver finds the card.
#[get("/agents/{agent}")]
pub(crate) async fn without_slash(request: HttpRequest) -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, format!("{}/", request.uri().path())))
        .finish()
}

async fn material(context: &Context, caller: &Caller, agent: &str) -> Result<Material, AppError> {
    let first = PageRequest {
        page_size: Some(VERSIONS),
        page_token: None,
    };
    let shown = FindingsQuery::default();
    let (agent, versions, findings) = futures::join!(
        agent_show(context, caller, agent),
        agent_versions(context, caller, agent, &first),
        agent_findings(context, caller, agent, &shown),
    );
    Ok(Material {
        agent: agent?,
        versions,
        findings: findings.ok(),
    })
}

impl AgentPage {
    /// The page of an agent at `now`.
    pub(crate) fn new(frame: Frame, material: Material, registry: &str, now: Timestamp) -> Self {
        let Material {
            agent,
            versions,
            findings,
        } = material;
        let summary = &agent.hit.summary;
        let id = summary.id.to_string();
        let place = AgentLocation {
            agent: &id,
            resolver: &summary.links.resolver,
            registry,
        };
        let api = format!("/v1/agents/{id}");
        Self {
            frame,
            urn: summary.urn.as_deref().map(|urn| text::line(urn, 300)),
            card: CardView::new(&agent.card, &agent.security),
            domain: text::line(&summary.domain, LINE),
            domain_link: format!("/domains/{}", text::segment(&summary.domain)),
            badges: trust::badges(summary, now),
            labels: labels(summary),
            snippets: snippet::snippets(&agent.card, place),
            liveness: LivenessView::new(&summary.liveness, now),
            trust: TrustView::new(&agent),
            decision: DecisionView::new(&agent.decision, now),
            deprecation: summary
                .deprecation
                .as_ref()
                .map(|deprecation| DeprecationView::new(deprecation, now)),
            holds: agent
                .holds
                .iter()
                .take(FEW)
                .map(|hold| HoldView::new(hold, now))
                .collect(),
            versions: versions
                .map(|list| VersionsView::new(&list, &api, now))
                .map_err(|error| text::line(&error.public, BLOCK)),
            findings: findings
                .filter(|list| !list.findings.is_empty())
                .map(|list| FindingsView::new(&list)),
            links: LinksView {
                card: format!("{api}/card"),
                versions: format!("{api}/versions"),
                resolver: summary.links.resolver.clone(),
                this: api,
            },
            digest: text::line(&summary.card_digest, LINE),
            id,
        }
    }
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
