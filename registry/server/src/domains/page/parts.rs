//! The parts of a domain's page, formatted for the template.

use a2a_crawler::fetch::MAX_SUMMARY;
use a2a_registry_api::{
    AttemptView as Attempt, Challenge, KnownValidators, OwnerFingerprint, Proof, ProofCheck,
    SourceView as Source,
};
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;

use crate::domains::page::{LIST, NEW, NamedAgent};
use crate::pages::moment::TimeView;
use crate::pages::text::{ADDRESS, BLOCK, LINE};
use crate::pages::trust::Badge;
use crate::pages::{text, trust};

/// The most attempts of one source on the page.
const ATTEMPTS: usize = 10;

/// A proof of the domain that holds.
pub(crate) struct ProofView {
    /// The method, as a phrase.
    pub words: String,
    pub since: TimeView,
    /// The last check that found it.
    pub seen: TimeView,
    pub missing: Option<TimeView>,
    pub reason: Option<String>,
}

/// The fingerprint that detects a change of owner.
pub(crate) struct OwnerFingerprintView {
    pub name_servers: Vec<String>,
    pub tls_key: Option<String>,
    pub card_keys: Vec<String>,
    pub at: TimeView,
}

/// A record that would prove the domain, and where to place it.
pub(crate) struct ChallengeView {
    pub method: String,
    pub place: String,
    pub content: String,
    pub expires: Option<TimeView>,
}

/// An attempt to find a proof, and its result.
pub(crate) struct CheckView {
    pub at: TimeView,
    pub outcome: String,
    pub place: String,
    pub detail: String,
}

/// A source of the domain with its newest requests.
pub(crate) struct SourceView {
    pub url: String,
    pub kind: &'static str,
    /// Whether no proof of the domain covers it.
    pub nominated: bool,
    pub state: String,
    pub tone: &'static str,
    pub asked: bool,
    pub recorded: bool,
    /// The newest first.
    pub attempts: Vec<AttemptView>,
    pub uptime: Option<String>,
    pub validators: Option<&'static str>,
    pub next_due: Option<TimeView>,
}

/// One request of a source.
pub(crate) struct AttemptView {
    pub at: TimeView,
    pub outcome: String,
    pub status: Option<u16>,
    /// How long it took, and how the cached copy was used.
    pub aside: String,
    pub detail: String,
}

/// An agent of the domain.
pub(crate) struct AgentView {
    /// Its page, unless only callers with a token may see it.
    pub link: Option<String>,
    pub name: String,
    pub description: String,
    /// Its lifecycle, unless it is approved.
    pub badge: Option<Badge>,
}

impl ProofView {
    pub fn new(proof: &Proof, now: Timestamp) -> Self {
        Self {
            words: trust::proof_words(&proof.method),
            since: TimeView::new(proof.at, now),
            seen: TimeView::new(proof.seen, now),
            missing: TimeView::maybe(proof.missing_since, now),
            reason: proof
                .reason
                .as_deref()
                .map(|reason| text::line(reason, BLOCK)),
        }
    }
}

impl OwnerFingerprintView {
    pub fn new(known: &OwnerFingerprint, now: Timestamp) -> Self {
        let lines = |words: &[String]| {
            let shown = words.iter().take(LIST);
            shown.map(|word| text::line(word, ADDRESS)).collect()
        };
        Self {
            name_servers: lines(&known.name_servers),
            tls_key: known.tls_key.as_deref().map(|key| text::line(key, LINE)),
            card_keys: lines(&known.card_keys),
            at: TimeView::new(known.at, now),
        }
    }
}

impl ChallengeView {
    pub fn new(challenge: &Challenge, now: Timestamp) -> Self {
        let place = challenge.name.as_ref().or(challenge.url.as_ref());
        let content = challenge.value.as_ref().or(challenge.body.as_ref());
        Self {
            method: text::line(challenge.method.as_str(), LINE),
            place: text::line(place.map_or("", |place| place), ADDRESS),
            content: text::line(content.map_or("", |content| content), BLOCK),
            expires: TimeView::maybe(challenge.expires, now),
        }
    }
}

impl CheckView {
    pub fn new(check: &ProofCheck, now: Timestamp) -> Self {
        Self {
            at: TimeView::new(check.at, now),
            outcome: text::line(check.outcome.as_str(), LINE),
            place: text::line(&check.place, ADDRESS),
            detail: text::line(&check.sentence(), BLOCK),
        }
    }
}

impl SourceView {
    pub fn new(source: &Source, now: Timestamp) -> Self {
        Self {
            url: text::line(source.card_url.as_ref().unwrap_or(&source.url), ADDRESS / 4),
            kind: kind_name(&source.kind),
            nominated: source.coverage == Coverage::Nomination,
            asked: source.state != NEW && source.state != SourceState::Recorded,
            recorded: source.state == SourceState::Recorded,
            state: state_words(&source.state),
            tone: state_tone(&source.state),
            attempts: source
                .last_attempt
                .iter()
                .chain(&source.attempts)
                .take(ATTEMPTS)
                .map(|attempt| AttemptView::new(attempt, now))
                .collect(),
            uptime: source.uptime(),
            validators: source.validators.and_then(validators),
            next_due: TimeView::maybe(source.next_due, now),
        }
    }
}

/// The name of a kind of source.
fn kind_name(kind: &OpenEnum<SourceKind>) -> &'static str {
    match kind.known() {
        Some(SourceKind::WellKnown) => "well-known path",
        Some(SourceKind::Url) => "card URL",
        Some(SourceKind::Entry) => "card in a catalog",
        Some(SourceKind::Ard) => "agent catalog (ARD)",
        Some(SourceKind::AiCatalog) => "agent catalog (AI Catalog)",
        None => "other",
    }
}

/// The state of a source as people write it.
fn state_words(state: &OpenEnum<SourceState>) -> String {
    let words = match state.known() {
        Some(SourceState::New) => "new",
        Some(SourceState::Recorded) => "recorded",
        Some(SourceState::Fresh) => "fetched",
        Some(SourceState::Stale) => "last fetch failed",
        Some(SourceState::Gone) => "unreachable",
        Some(SourceState::Absent) => "nothing there",
        None => return text::line(state.as_str(), LINE),
    };
    words.to_owned()
}

/// The tone of the badge of a source in that state.
fn state_tone(state: &OpenEnum<SourceState>) -> &'static str {
    match state.known() {
        Some(SourceState::Fresh) => "good",
        Some(SourceState::Stale) => "warn",
        Some(SourceState::Gone) => "bad",
        Some(SourceState::New | SourceState::Recorded | SourceState::Absent) | None => "plain",
    }
}

/// The validators of the next conditional request.
const fn validators(known: KnownValidators) -> Option<&'static str> {
    match (known.etag, known.last_modified) {
        (true, true) => Some("ETag and Last-Modified"),
        (true, false) => Some("ETag"),
        (false, true) => Some("Last-Modified"),
        (false, false) => None,
    }
}

impl AttemptView {
    fn new(attempt: &Attempt, now: Timestamp) -> Self {
        Self {
            at: TimeView::new(attempt.at, now),
            outcome: text::line(&attempt.outcome.replace('_', " "), LINE),
            status: attempt.status,
            aside: match &attempt.cache {
                Some(cache) => format!("{} ms, {}", attempt.elapsed_ms, text::line(cache, LINE)),
                None => format!("{} ms", attempt.elapsed_ms),
            },
            detail: text::line(&attempt.detail, MAX_SUMMARY),
        }
    }
}

impl AgentView {
    /// The view of the agent with that id, by its name if it is among these.
    pub fn new(id: &str, names: &[NamedAgent]) -> Self {
        let known = names.iter().find(|agent| agent.id == id);
        let lifecycle = known.and_then(|agent| agent.lifecycle);
        let hidden = lifecycle.is_some_and(|lifecycle| {
            !matches!(
                lifecycle,
                ShownLifecycle::Approved | ShownLifecycle::Deprecated
            )
        });
        Self {
            link: (!hidden).then(|| format!("/agents/{id}/")),
            name: text::line(known.map_or(id, |agent| &agent.name), LINE),
            description: text::line(known.map_or("", |agent| &agent.description), 200),
            badge: lifecycle.and_then(trust::lifecycle_badge),
        }
    }
}
