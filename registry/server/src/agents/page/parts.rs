//! The parts of an agent's page, formatted for the template.

use a2a_registry_api::{
    Agent, Decision, Deprecation, FindingList, FindingView as Finding, HoldView as Hold, Liveness,
    SignatureEntryView, Version, VersionList,
};
use a2a_registry_domain::timestamp::Timestamp;

use crate::pages::moment::TimeView;
use crate::pages::text::{BLOCK, LINE};
use crate::pages::trust::{Badge, TrustStep};
use crate::pages::{text, trust};

/// Findings on the page.
const FINDINGS: usize = 25;
/// Signatures on the page.
const SIGNATURES: usize = 20;

/// The liveness of the card, with the time of its last fetch.
pub(crate) struct LivenessView {
    pub badge: Badge,
    pub reason: Option<String>,
    pub last_seen: Option<TimeView>,
    pub last_changed: Option<TimeView>,
    pub next_due: Option<TimeView>,
}

/// The ladder with its evidence: domain, coverage and signatures.
pub(crate) struct TrustView {
    pub level: Option<String>,
    pub ladder: Vec<TrustStep>,
    pub domain: &'static str,
    pub coverage: String,
    pub signature: &'static str,
    /// The reason of the signature state, as a sentence.
    pub reason: String,
    pub entries: Vec<SignatureView>,
}

/// One signature of the card.
pub(crate) struct SignatureView {
    pub kid: Option<String>,
    pub alg: Option<String>,
    pub key: Option<String>,
    pub from: Option<String>,
    pub verdict: String,
    pub reason: String,
}

/// The decision on the version that is shown.
pub(crate) struct DecisionView {
    pub state: String,
    pub by: String,
    pub rules: String,
    pub at: TimeView,
    pub reason: Option<String>,
    pub self_approved: bool,
}

/// The deprecation of the agent.
pub(crate) struct DeprecationView {
    pub message: String,
    pub since: TimeView,
    pub sunset: Option<TimeView>,
    pub replacement: Option<String>,
}

/// A hold on the agent.
pub(crate) struct HoldView {
    pub hold: String,
    pub reason: String,
    pub since: TimeView,
}

/// The newest versions of the card.
pub(crate) struct VersionsView {
    pub versions: Vec<VersionView>,
    pub more: bool,
}

/// One version of the card.
pub(crate) struct VersionView {
    pub digest: String,
    pub short: String,
    pub link: String,
    pub observed: TimeView,
    pub state: String,
    pub change: String,
    pub family: String,
    pub served: bool,
    pub signature: String,
    pub signature_reason: String,
}

/// The first findings on the card.
pub(crate) struct FindingsView {
    pub findings: Vec<FindingView>,
    pub more: usize,
}

/// One finding on the card.
pub(crate) struct FindingView {
    pub rule: String,
    pub severity: &'static str,
    pub pointer: String,
    pub hint: String,
}

impl LivenessView {
    pub fn new(liveness: &Liveness, now: Timestamp) -> Self {
        Self {
            badge: trust::liveness_badge(liveness, now),
            reason: liveness
                .reason
                .as_deref()
                .map(|reason| text::line(reason, BLOCK)),
            last_seen: TimeView::maybe(liveness.last_seen, now),
            last_changed: TimeView::maybe(liveness.last_changed, now),
            next_due: TimeView::maybe(liveness.next_due, now),
        }
    }
}

impl TrustView {
    pub fn new(agent: &Agent) -> Self {
        let trust = &agent.hit.summary.trust;
        let verdict = &agent.signature_verdict;
        Self {
            level: trust
                .level
                .as_ref()
                .map(|level| text::line(level.as_str(), 8)),
            ladder: trust::ladder(trust),
            domain: trust::domain_meaning(&trust.domain),
            coverage: agent.coverage_meaning(),
            signature: trust::signature_meaning(&trust.signature),
            reason: text::line(&verdict.reason, 500),
            entries: verdict
                .signatures
                .iter()
                .take(SIGNATURES)
                .map(SignatureView::new)
                .collect(),
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
            verdict: text::line(entry.verdict.as_str(), LINE),
            reason: text::line(&entry.reason, 500),
        }
    }
}

impl DecisionView {
    pub fn new(decision: &Decision, now: Timestamp) -> Self {
        Self {
            state: text::line(decision.state.as_str(), LINE),
            by: text::line(&decision.by, LINE),
            rules: text::line(&decision.rules.join(", "), BLOCK),
            at: TimeView::new(decision.at, now),
            reason: decision
                .reason
                .as_deref()
                .map(|reason| text::block(reason, BLOCK)),
            self_approved: decision.self_approved,
        }
    }
}

impl DeprecationView {
    pub fn new(deprecation: &Deprecation, now: Timestamp) -> Self {
        Self {
            message: text::block(&deprecation.message, BLOCK),
            since: TimeView::new(deprecation.since, now),
            sunset: TimeView::maybe(deprecation.sunset, now),
            replacement: deprecation.replacement.map(|agent| agent.to_string()),
        }
    }
}

impl HoldView {
    pub fn new(hold: &Hold, now: Timestamp) -> Self {
        Self {
            hold: text::line(hold.hold.as_str(), LINE),
            reason: text::block(&hold.reason, BLOCK),
            since: TimeView::new(hold.since, now),
        }
    }
}

impl VersionsView {
    /// The view of a list of versions of the agent at that path of the API.
    pub fn new(list: &VersionList, api: &str, now: Timestamp) -> Self {
        Self {
            more: list.next_page_token.is_some(),
            versions: list
                .versions
                .iter()
                .map(|version| VersionView::new(version, api, now))
                .collect(),
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
            observed: TimeView::new(version.observed_at, now),
            state: text::line(version.state.as_str(), LINE),
            change: match &version.change_class {
                Some(class) => text::line(class.as_str(), LINE),
                None => "first card".to_owned(),
            },
            family: text::line(&version.wire_family, 20),
            served: version.served,
            signature: text::line(version.signature_verdict.state.as_str(), LINE),
            signature_reason: text::line(&version.signature_verdict.reason, 500),
        }
    }
}

impl FindingsView {
    pub fn new(list: &FindingList) -> Self {
        Self {
            more: list.findings.len().saturating_sub(FINDINGS),
            findings: list
                .findings
                .iter()
                .take(FINDINGS)
                .map(FindingView::new)
                .collect(),
        }
    }
}

impl FindingView {
    fn new(finding: &Finding) -> Self {
        Self {
            rule: text::line(&finding.rule, LINE),
            severity: match finding.severity.as_str() {
                "error" => "error",
                "warning" => "warning",
                _ => "info",
            },
            pointer: text::line(&finding.pointer, LINE),
            hint: text::line(&finding.hint, 500),
        }
    }
}
