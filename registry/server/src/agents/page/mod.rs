//! The page of one agent: all that is known of it, and how to talk to it.

mod card;

use a2a_registry_api::{Agent, FindingList, SignatureEntryView, Version, VersionList};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, get, web};
use askama::Template;
use card::CardView;

use crate::agents::snippet;
use crate::agents::snippet::{NoPlan, Place, Snippets};
use crate::agents::views::{FindingsQuery, agent_findings, agent_show, agent_versions};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::http::auth::Anyone;
use crate::http::path::AgentRef;
use crate::pages::frame::Frame;
use crate::pages::moment::Moment;
use crate::pages::text::{BLOCK, LINE};
use crate::pages::trust::{Badge, Step};
use crate::pages::{text, trust};
use crate::paging::PageRequest;

/// Versions on the page.
const VERSIONS: u32 = 10;
/// Findings on the page.
const FINDINGS: usize = 25;
/// Holds, labels and rules on the page.
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

struct LivenessView {
    badge: Badge,
    reason: Option<String>,
    last_seen: Option<Moment>,
    last_changed: Option<Moment>,
    next_due: Option<Moment>,
}

struct TrustView {
    level: Option<String>,
    ladder: Vec<Step>,
    domain: &'static str,
    coverage: &'static str,
    signature: &'static str,
    /// Why the signatures are worth that, in a sentence.
    reason: String,
    entries: Vec<SignatureView>,
}

struct SignatureView {
    kid: Option<String>,
    alg: Option<String>,
    key: Option<String>,
    from: Option<String>,
    verdict: &'static str,
    reason: String,
}

struct DecisionView {
    state: &'static str,
    by: String,
    rules: String,
    at: Moment,
    reason: Option<String>,
    self_approved: bool,
}

struct DeprecationView {
    message: String,
    since: Moment,
    sunset: Option<Moment>,
    replacement: Option<String>,
}

struct HoldView {
    hold: &'static str,
    reason: String,
    since: Moment,
}

struct VersionsView {
    versions: Vec<VersionView>,
    more: bool,
}

struct VersionView {
    digest: String,
    short: String,
    link: String,
    observed: Moment,
    state: &'static str,
    change: &'static str,
    family: String,
    served: bool,
    signature: &'static str,
    signature_reason: String,
}

struct FindingsView {
    findings: Vec<FindingView>,
    more: usize,
}

struct FindingView {
    rule: String,
    severity: &'static str,
    pointer: String,
    hint: String,
}

struct LinksView {
    this: String,
    card: String,
    versions: String,
    resolver: String,
}

/// What the page is made of.
pub(crate) struct Material {
    /// The agent.
    pub agent: Agent,
    /// Its versions, or why they are not there.
    pub versions: Result<VersionList, AppError>,
    /// Its findings, for whom they are shown to.
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
        Err(error) => crate::pages::problem(frame, error),
    }
}

/// The page lies behind a slash, so that an SDK's resolver finds the card below it.
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
    /// The page of an agent as seen at `now`.
    pub(crate) fn new(frame: Frame, material: Material, registry: &str, now: Timestamp) -> Self {
        let Material {
            agent,
            versions,
            findings,
        } = material;
        let summary = &agent.hit.summary;
        let id = summary.id.to_string();
        let place = Place {
            agent: &id,
            resolver: &summary.links.resolver,
            registry,
        };
        let mut badges = vec![
            trust::trust_badge(&summary.trust),
            trust::liveness_badge(&summary.liveness),
        ];
        badges.extend(trust::lifecycle_badge(summary.lifecycle));
        badges.extend(trust::visibility_badge(summary.visibility));
        let api = format!("/v1/agents/{id}");
        Self {
            frame,
            urn: summary.urn.as_deref().map(|urn| text::line(urn, 300)),
            card: CardView::new(&agent.card, &agent.security),
            domain: text::line(&summary.domain, LINE),
            domain_link: format!("/domains/{}", text::segment(&summary.domain)),
            badges,
            labels: summary
                .labels
                .iter()
                .take(FEW)
                .map(|(key, value)| (text::line(key, LINE), text::line(value, LINE)))
                .collect(),
            snippets: snippet::snippets(&agent.card, place),
            liveness: LivenessView {
                badge: trust::liveness_badge(&summary.liveness),
                reason: summary
                    .liveness
                    .reason
                    .as_deref()
                    .map(|reason| text::line(reason, BLOCK)),
                last_seen: Moment::maybe(summary.liveness.last_seen, now),
                last_changed: Moment::maybe(summary.liveness.last_changed, now),
                next_due: Moment::maybe(summary.liveness.next_due, now),
            },
            trust: TrustView {
                level: summary
                    .trust
                    .level
                    .as_deref()
                    .map(|level| text::line(level, 8)),
                ladder: trust::ladder(&summary.trust),
                domain: trust::domain_meaning(&summary.trust.domain),
                coverage: agent.coverage.meaning(),
                signature: trust::signature_meaning(&summary.trust.signature),
                reason: text::line(&agent.signature_verdict.reason, 500),
                entries: agent
                    .signature_verdict
                    .signatures
                    .iter()
                    .take(FEW)
                    .map(SignatureView::new)
                    .collect(),
            },
            decision: DecisionView {
                state: agent.decision.state.as_str(),
                by: text::line(&agent.decision.by, LINE),
                rules: text::line(&agent.decision.rules.join(", "), BLOCK),
                at: Moment::new(agent.decision.at, now),
                reason: agent
                    .decision
                    .reason
                    .as_deref()
                    .map(|reason| text::block(reason, BLOCK)),
                self_approved: agent.decision.self_approved,
            },
            deprecation: summary.deprecation.as_ref().map(|said| DeprecationView {
                message: text::block(&said.message, BLOCK),
                since: Moment::new(said.since, now),
                sunset: Moment::maybe(said.sunset, now),
                replacement: said.replacement.map(|agent| agent.to_string()),
            }),
            holds: agent
                .holds
                .iter()
                .take(FEW)
                .map(|hold| HoldView {
                    hold: hold.hold.as_str(),
                    reason: text::block(&hold.reason, BLOCK),
                    since: Moment::new(hold.since, now),
                })
                .collect(),
            versions: versions
                .map(|list| VersionsView {
                    more: list.next_page_token.is_some(),
                    versions: list
                        .versions
                        .iter()
                        .map(|v| VersionView::new(v, &api, now))
                        .collect(),
                })
                .map_err(|error| text::line(&error.public, BLOCK)),
            findings: findings
                .filter(|list| !list.findings.is_empty())
                .map(FindingsView::new),
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

impl VersionView {
    fn new(version: &Version, api: &str, now: Timestamp) -> Self {
        let digest = text::line(&version.digest, LINE);
        Self {
            short: digest.chars().skip("sha256:".len()).take(12).collect(),
            link: format!("{api}/card?version={}", text::segment(&version.digest)),
            digest,
            observed: Moment::new(version.observed_at, now),
            state: version.state.as_str(),
            change: version
                .change_class
                .map_or("first card", |class| class.as_str()),
            family: text::line(&version.wire_family, 20),
            served: version.served,
            signature: version.signature_verdict.state.as_str(),
            signature_reason: text::line(&version.signature_verdict.reason, 500),
        }
    }
}

impl SignatureView {
    fn new(entry: &SignatureEntryView) -> Self {
        let shown = |text: &Option<String>| text.as_deref().map(|text| text::line(text, LINE));
        Self {
            kid: shown(&entry.kid),
            alg: shown(&entry.alg),
            key: shown(&entry.key_thumbprint),
            from: shown(&entry.key_from),
            verdict: entry.verdict.as_str(),
            reason: text::line(&entry.reason, 500),
        }
    }
}

impl FindingsView {
    fn new(list: FindingList) -> Self {
        Self {
            more: list.findings.len().saturating_sub(FINDINGS),
            findings: list
                .findings
                .iter()
                .take(FINDINGS)
                .map(|finding| FindingView {
                    rule: text::line(&finding.rule, LINE),
                    severity: match finding.severity.as_str() {
                        "error" => "error",
                        "warning" => "warning",
                        _ => "info",
                    },
                    pointer: text::line(&finding.pointer, LINE),
                    hint: text::line(&finding.hint, 500),
                })
                .collect(),
        }
    }
}
