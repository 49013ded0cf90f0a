//! Parts of a domain's page that the template cannot derive.

use a2a_registry_api::{AttemptView, Challenge, SourceCredentialView, SourceView};
use a2a_registry_core::text::{self, ADDRESS, LINE};
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::source::{CredentialKind, SourceKind, SourceState};

use crate::pages::domains::DomainAgentRow;
use crate::pages::trust::{self, Badge};

const MAX_ATTEMPTS: usize = 10;

pub(crate) struct AgentLinkView {
    /// Page of the agent, unless only callers with a token may see it.
    pub link: Option<String>,
    pub name: String,
    pub description: String,
    /// Badge for the lifecycle, unless the agent is approved.
    pub badge: Option<Badge>,
}

/// Location of the record or file that proves the domain.
pub(super) fn challenge_location(challenge: &Challenge) -> &str {
    let place = challenge.name.as_deref().or(challenge.url.as_deref());
    place.unwrap_or_default()
}

pub(super) fn challenge_content(challenge: &Challenge) -> &str {
    let content = challenge.value.as_deref().or(challenge.body.as_deref());
    content.unwrap_or_default()
}

pub(super) fn source_card_url(source: &SourceView) -> String {
    text::single_line(source.card_url.as_ref().unwrap_or(&source.url), ADDRESS / 4)
}

/// Latest requests of a source, newest first.
pub(super) fn latest_fetch_attempts(source: &SourceView) -> Vec<&AttemptView> {
    let all = source.last_attempt.iter().chain(&source.attempts);
    all.take(MAX_ATTEMPTS).collect()
}

pub(super) fn fetch_outcome_text(attempt: &AttemptView) -> String {
    text::single_line(&attempt.outcome.replace('_', " "), LINE)
}

/// Duration of a request, and how the cached copy was used.
pub(super) fn fetch_details_text(attempt: &AttemptView) -> String {
    match &attempt.cache {
        Some(cache) => format!(
            "{} ms, {}",
            attempt.elapsed_ms,
            text::single_line(cache, LINE)
        ),
        None => format!("{} ms", attempt.elapsed_ms),
    }
}

pub(super) fn source_kind_name(kind: &OpenEnum<SourceKind>) -> &'static str {
    match kind.known_value() {
        Some(SourceKind::WellKnown) => "well-known path",
        Some(SourceKind::Url) => "card URL",
        Some(SourceKind::Entry) => "card in a catalog",
        Some(SourceKind::Ard) => "agent catalog (ARD)",
        Some(SourceKind::AiCatalog) => "agent catalog (AI Catalog)",
        None => "other",
    }
}

/// State of a source in words.
pub(super) fn source_state_text(state: &OpenEnum<SourceState>) -> String {
    let words = match state.known_value() {
        Some(SourceState::New) => "new",
        Some(SourceState::Recorded) => "recorded",
        Some(SourceState::Fresh) => "fetched",
        Some(SourceState::Stale) => "last fetch failed",
        Some(SourceState::Gone) => "unreachable",
        Some(SourceState::Absent) => "nothing there",
        None => return text::single_line(state.as_str(), LINE),
    };
    words.to_owned()
}

pub(super) fn source_state_tone(state: &OpenEnum<SourceState>) -> &'static str {
    match state.known_value() {
        Some(SourceState::Fresh) => "good",
        Some(SourceState::Stale) => "warn",
        Some(SourceState::Gone) => "bad",
        Some(SourceState::New | SourceState::Recorded | SourceState::Absent) | None => "plain",
    }
}

/// How a source is fetched that has a credential.
pub(super) fn credential_sentence(credential: &SourceCredentialView) -> String {
    let kind = match credential.kind.known_value() {
        Some(CredentialKind::Bearer) => "a bearer token",
        Some(CredentialKind::Basic) => "a user name and a password",
        Some(CredentialKind::Header) => "a header field",
        Some(CredentialKind::ClientCredentials) => "OAuth 2 client credentials",
        None => "a credential",
    };
    let by = credential.set_by.as_ref();
    let by = by.map(|by| format!(" by {}", text::single_line(by, LINE)));
    format!("Fetched with {kind}, set{}", by.unwrap_or_default())
}

pub(super) fn cache_validator_names(source: &SourceView) -> Option<&'static str> {
    let validators = source.validators?;
    match (validators.etag, validators.last_modified) {
        (true, true) => Some("ETag and Last-Modified"),
        (true, false) => Some("ETag"),
        (false, true) => Some("Last-Modified"),
        (false, false) => None,
    }
}

impl AgentLinkView {
    /// Link view of the agent with this id, with its name if it is one of these rows.
    pub fn new(id: &str, agent_rows: &[DomainAgentRow]) -> Self {
        let row = agent_rows.iter().find(|agent| agent.id == id);
        let lifecycle = row.and_then(|agent| agent.lifecycle);
        let hidden = lifecycle.is_some_and(|lifecycle| {
            !matches!(
                lifecycle,
                ShownLifecycle::Approved | ShownLifecycle::Deprecated
            )
        });
        Self {
            link: (!hidden).then(|| format!("/agents/{id}/")),
            name: text::single_line(row.map_or(id, |agent| &agent.name), LINE),
            description: text::single_line(row.map_or("", |agent| &agent.description), 200),
            badge: lifecycle.and_then(trust::lifecycle_badge),
        }
    }
}
