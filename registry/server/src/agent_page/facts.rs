//! The facts beside an agent: its state, the evidence for its trust level, its owner, and how to report it.

use a2a_registry_api::{Agent, Decision, Proof, SignatureEntryView};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;

use super::background::Background;
use crate::pages::moment::TimeView;
use crate::pages::text::{ADDRESS, BLOCK, LINE};
use crate::pages::trust::{Badge, TrustStep};
use crate::pages::{text, trust};

/// Signatures on the page.
const SIGNATURES: usize = 20;
/// Collections on the page.
const FEW: usize = 20;
/// Proofs on the page.
const PROOFS: usize = 10;

/// The state of an agent: the decision on its card, and the last fetch of it.
pub(crate) struct StateView {
    /// Its lifecycle and visibility, unless they are the usual ones.
    pub unusual: Vec<Badge>,
    /// `good`, `warn`, `bad` or `plain`.
    pub tone: &'static str,
    /// How the last fetch went, as a phrase.
    pub fetched: String,
    /// What that phrase means.
    pub meaning: String,
    pub reason: Option<String>,
    pub last_changed: Option<TimeView>,
    pub next_due: Option<TimeView>,
    pub decision: DecisionView,
}

/// The decision on the version that is shown.
pub(crate) struct DecisionView {
    pub state: String,
    pub by: String,
    pub rules: String,
    pub at: TimeView,
    pub reason: Option<String>,
    pub self_approved: bool,
    /// When the approval ends.
    pub expires: Option<TimeView>,
}

/// The trust level with its evidence: domain, coverage and signatures.
pub(crate) struct TrustView {
    pub badge: Badge,
    /// The level with its condition, or the reason why there is none.
    pub level: String,
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
    pub tone: &'static str,
    pub verdict: String,
    pub reason: String,
}

/// The owner of an agent's domain, as far as the caller may know.
pub(crate) struct OwnerView {
    pub name: Option<String>,
    /// Until when an admin vouches for that account, which has proved nothing then.
    pub vouched_until: Option<TimeView>,
    pub proofs: Vec<OwnerProofView>,
    /// Whether an account has proved the domain, or an admin vouches for it.
    pub proved: bool,
    /// The account that answers for the agent inside this company.
    pub sponsor: Option<String>,
    /// The groups that see it while it is restricted, for those who may know.
    pub groups: Vec<String>,
    /// The collections that hold it, of those that the visitor sees, each with its link.
    pub collections: Vec<(String, String)>,
}

/// A proof of the domain in words.
pub(crate) struct OwnerProofView {
    pub words: String,
    pub at: TimeView,
    pub missing: Option<TimeView>,
}

/// The address to report an agent to.
pub(crate) struct ReportView {
    pub address: String,
    /// Whether it is a page of the web, and not an address of mail.
    pub web: bool,
}

impl StateView {
    pub fn new(agent: &Agent, now: Timestamp) -> Self {
        let summary = &agent.hit.summary;
        let liveness = &summary.liveness;
        let badge = trust::liveness_badge(liveness, now);
        let lifecycle = summary.lifecycle.known().and_then(trust::lifecycle_badge);
        let visibility = summary.visibility.known().and_then(trust::visibility_badge);
        Self {
            unusual: lifecycle.into_iter().chain(visibility).collect(),
            tone: badge.tone,
            fetched: badge.label,
            meaning: badge.meaning,
            reason: liveness
                .reason
                .as_deref()
                .map(|reason| text::line(reason, BLOCK)),
            last_changed: TimeView::maybe(liveness.last_changed, now),
            next_due: TimeView::maybe(liveness.next_due, now),
            decision: DecisionView::new(&agent.decision, now),
        }
    }
}

impl DecisionView {
    fn new(decision: &Decision, now: Timestamp) -> Self {
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
            expires: TimeView::maybe(decision.expires_at, now),
        }
    }
}

impl TrustView {
    pub fn new(agent: &Agent) -> Self {
        let trust = &agent.hit.summary.trust;
        let verdict = &agent.signature_verdict;
        Self {
            badge: trust::trust_badge(trust),
            level: trust::level_sentence(trust),
            ladder: trust::ladder(trust),
            domain: trust::domain_meaning(&trust.domain),
            coverage: agent.coverage_meaning(),
            signature: match trust.signature.known() {
                // The card has entries, so that it would be wrong to say that it is not signed; their reason follows.
                Some(SignatureState::Unsigned) if !agent.card.signatures.is_empty() => {
                    "none: no entry has the form of a signature"
                }
                _ => trust::signature_meaning(&trust.signature),
            },
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
        let verdict = text::line(entry.verdict.as_str(), LINE);
        Self {
            kid: shown(&entry.kid),
            alg: shown(&entry.alg),
            key: shown(&entry.key_thumbprint),
            from: shown(&entry.key_from),
            tone: match verdict.as_str() {
                "valid" => "good",
                "invalid" => "bad",
                "unknown" => "warn",
                _ => "plain",
            },
            verdict,
            reason: text::line(&entry.reason, 500),
        }
    }
}

impl OwnerView {
    pub fn new(agent: &Agent, background: &Background, now: Timestamp) -> Self {
        let collections = background.collections.iter().take(FEW);
        Self {
            name: background
                .owner
                .as_deref()
                .map(|name| text::line(name, LINE)),
            vouched_until: TimeView::maybe(background.owner_vouched_until, now),
            proofs: background
                .proofs
                .iter()
                .take(PROOFS)
                .map(|proof| OwnerProofView::new(proof, now))
                .collect(),
            proved: agent.hit.summary.trust.is_proved(),
            sponsor: agent.sponsor.as_deref().map(|name| text::line(name, LINE)),
            groups: agent
                .groups
                .iter()
                .map(|name| text::line(name, LINE))
                .collect(),
            collections: collections.map(|name| collection_link(name)).collect(),
        }
    }
}

/// A collection with the link to it.
fn collection_link(name: &str) -> (String, String) {
    let link = format!("/collections/{}", text::segment(name));
    (text::line(name, LINE), link)
}

impl OwnerProofView {
    fn new(proof: &Proof, now: Timestamp) -> Self {
        Self {
            words: trust::proof_words(&proof.method),
            at: TimeView::new(proof.at, now),
            missing: TimeView::maybe(proof.missing_since, now),
        }
    }
}

impl ReportView {
    /// The operator's contact, with the agent's page in the subject of a mail; `None` without a contact.
    pub fn new(contact: &str, page: &str) -> Option<Self> {
        if let Some(mail) = contact.strip_prefix("mailto:") {
            let subject = serde_html_form::to_string([("subject", format!("Report of {page}"))]);
            let subject = subject.ok()?.replace('+', "%20");
            let mark = if mail.contains('?') { '&' } else { '?' };
            let address = format!("mailto:{mail}{mark}{subject}");
            return (address.len() <= ADDRESS && !mail.is_empty()).then_some(Self {
                address,
                web: false,
            });
        }
        let address = text::web_address(contact)?;
        Some(Self { address, web: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_reported_to_the_operators_contact() {
        let page = "https://registry.example.com/agents/a/";
        let report = |contact: &str| ReportView::new(contact, page);
        let mail = report("mailto:ops@registry.example.com").map(|one| (one.address, one.web));
        let address = "mailto:ops@registry.example.com?subject=Report%20of%20https%3A%2F%2Fregistry.example.com%2Fagents%2Fa%2F";
        assert_eq!(mail, Some((address.to_owned(), false)));
        let mail = report("mailto:ops@a.example?cc=b@a.example").map(|one| one.address);
        assert!(mail.is_some_and(|mail| mail.contains("?cc=b@a.example&subject=")));
        let web = report("https://registry.example.com/abuse").map(|one| (one.address, one.web));
        assert_eq!(
            web,
            Some(("https://registry.example.com/abuse".to_owned(), true))
        );
        for none in [
            "",
            "mailto:",
            "javascript:alert(1)",
            "ops@registry.example.com",
        ] {
            assert!(report(none).is_none(), "{none}");
        }
    }
}
