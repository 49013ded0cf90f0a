//! Badges for trust, liveness and lifecycle. Trust is shown as a ladder with evidence, never as a single check mark.

use a2a_registry_api::{EndpointSummary, Liveness, Summary, Trust};
use a2a_registry_core::text::{self, LINE};
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle, Visibility};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::{DomainState, Method};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;

use crate::pages::moment;

/// Maximum number of characters of the reason of a failed fetch on a badge.
const MAX_REASON_CHARS: usize = 60;

/// A label with its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Badge {
    pub label: String,
    pub meaning: String,
    /// Tone of the badge: `good`, `plain`, `warn` or `bad`.
    pub tone: &'static str,
    /// Page that explains the badge.
    pub link: Option<&'static str>,
}

/// Reason why a card has no trust level.
const NO_TLS_REASON: &str = "the card was not fetched over valid TLS";
const TRUST_HELP_PATH: &str = "/about#trust";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustStep {
    /// Trust level, `L0` to `L3`.
    pub level: &'static str,
    pub claim: &'static str,
    /// Whether the agent has reached the level.
    pub reached: bool,
}

/// Levels of the ladder, each with its condition.
pub(crate) const TRUST_LEVELS: [(&str, &str); 4] = [
    ("L0", "The card was fetched over valid TLS."),
    ("L1", "The domain's owner has proved control over it."),
    (
        "L2",
        "The card's signature is valid, and its key is bound to that domain.",
    ),
    (
        "L3",
        "The signing key was enrolled by the owner or the operator.",
    ),
];

/// Ladder with the levels that this agent has reached.
pub(crate) fn trust_ladder(trust: &Trust) -> Vec<TrustStep> {
    let reached = TRUST_LEVELS
        .iter()
        .position(|(level, _)| Some(*level) == trust.level.as_ref().map(OpenEnum::as_str));
    TRUST_LEVELS
        .iter()
        .enumerate()
        .map(|(index, (level, claim))| TrustStep {
            level,
            claim,
            reached: reached.is_some_and(|reached| index <= reached),
        })
        .collect()
}

pub(crate) fn trust_level_description(level: &str) -> &'static str {
    TRUST_LEVELS
        .iter()
        .find(|(name, _)| *name == level)
        .map_or("", |(_, claim)| claim)
}

fn trust_level_with_description(level: &str) -> String {
    let shown = text::single_line(level, 8);
    match trust_level_description(level) {
        "" => shown,
        meaning => format!("{shown}: {meaning}"),
    }
}

/// Trust level of a card with its condition, or the reason why it has none: a badge may show that the domain is proved
/// although a search by trust level does not find the agent.
pub(crate) fn trust_level_sentence(trust: &Trust) -> String {
    match &trust.level {
        Some(level) => trust_level_with_description(level.as_str()),
        None if trust.is_proved() => format!(
            "none: {NO_TLS_REASON}. The domain is verified, but that does not prove that the card arrived unchanged."
        ),
        None => format!("none: {NO_TLS_REASON}"),
    }
}

/// Trust badge: whether the owner of the domain is proved. The explanation has the level.
pub(crate) fn trust_badge(trust: &Trust) -> Badge {
    let level = trust.level.as_ref().map(OpenEnum::as_str);
    let is_proved = trust.is_proved();
    Badge {
        label: if is_proved {
            "owner proved"
        } else {
            "unproved"
        }
        .to_owned(),
        meaning: match level {
            Some(level) => trust_level_with_description(level),
            None => format!("No trust level: {NO_TLS_REASON}."),
        },
        tone: if is_proved { "good" } else { "plain" },
        link: Some(TRUST_HELP_PATH),
    }
}

/// Badges of an agent: trust, a card that could not be fetched, the result of its endpoint check, and lifecycle and
/// visibility unless they are the defaults.
pub(crate) fn agent_badges(agent: &Summary, now: Timestamp) -> Vec<Badge> {
    let mut badges = vec![trust_badge(&agent.trust)];
    let liveness = liveness_badge(&agent.liveness, now);
    badges.extend(Some(liveness).filter(|badge| badge.tone != "good"));
    badges.extend(endpoint_badge(&agent.endpoint));
    badges.extend(agent.lifecycle.known_value().and_then(lifecycle_badge));
    badges.extend(agent.visibility.known_value().and_then(visibility_badge));
    badges
}

pub(crate) fn signature_meaning(signature: &OpenEnum<SignatureState>) -> &'static str {
    match signature.known_value() {
        Some(SignatureState::Valid) => {
            "valid: verified with a key that is bound to the domain or enrolled"
        }
        Some(SignatureState::Untrusted) => {
            "untrusted: verified, but the key is not bound to the domain"
        }
        Some(SignatureState::Invalid) => "invalid: no signature verifies",
        Some(SignatureState::Unknown) => "unknown: the key could not be fetched",
        Some(SignatureState::Unsigned) | None => "none: the card is not signed",
    }
}

pub(crate) fn domain_state_meaning(state: &OpenEnum<DomainState>) -> &'static str {
    match state.known_value() {
        Some(DomainState::Verified) => {
            "verified: proved by the owner, or vouched for by the operator"
        }
        Some(DomainState::Lapsed) => "lapsed: the proof is no longer valid",
        Some(DomainState::Disputed) => "disputed: two accounts claim the domain",
        Some(DomainState::OptedOut) => "opted out: the owner does not want the domain listed",
        Some(DomainState::Unverified) | None => "unverified: no account has proved the domain",
    }
}

/// Proof method as a phrase after "proved by".
pub(crate) fn proof_method_phrase(method: &OpenEnum<Method>) -> String {
    match method.known_value() {
        Some(Method::Dns) => "a DNS TXT record".to_owned(),
        Some(Method::DnsParent) => "a DNS TXT record of a parent domain".to_owned(),
        Some(Method::Http) => "a file on the site".to_owned(),
        Some(Method::Operator) => "the vouch of an admin of this registry".to_owned(),
        None => text::single_line(method.as_str(), LINE),
    }
}

/// Liveness badge: when the card was fetched, or why it could not be fetched.
pub(crate) fn liveness_badge(liveness: &Liveness, now: Timestamp) -> Badge {
    let (label, meaning, tone) = match liveness.state.known_value() {
        Some(LivenessState::Fresh) => (
            match &liveness.last_seen {
                Some(seen) => format!("card fetched {}", moment::short_relative_time(seen, &now)),
                None => "card fetched".to_owned(),
            },
            "The last fetch of the card succeeded. This does not show whether the agent \
            responds.",
            "good",
        ),
        Some(LivenessState::Stale) => (
            match &liveness.reason {
                Some(reason) => format!(
                    "last fetch failed ({})",
                    text::single_line(reason, MAX_REASON_CHARS)
                ),
                None => "last fetch failed".to_owned(),
            },
            "The last fetch of the card failed; the last valid card is shown.",
            "warn",
        ),
        Some(LivenessState::Gone) => (
            match &liveness.last_seen {
                Some(seen) => format!("unreachable since {}", moment::format_day(seen)),
                None => "unreachable".to_owned(),
            },
            "The card has been unreachable for so long that the agent is no longer listed.",
            "bad",
        ),
        None => (
            text::single_line(liveness.state.as_str(), LINE),
            "",
            "plain",
        ),
    };
    Badge {
        label,
        meaning: meaning.to_owned(),
        tone,
        link: None,
    }
}

/// Badge of the last endpoint check, with its day; `None` for an agent that was not checked.
pub(crate) fn endpoint_badge(endpoint: &EndpointSummary) -> Option<Badge> {
    let (meaning, tone) = match endpoint.state.known_value() {
        Some(EndpointState::NotChecked) => return None,
        Some(EndpointState::Answers) => (
            "The agent answered when the registry last asked it for a task that does not exist.",
            "good",
        ),
        Some(EndpointState::NeedsCredentials) => (
            "The agent's server required credentials when the registry last checked it, and the registry has none.",
            "plain",
        ),
        Some(EndpointState::NotA2a) => (
            "When the registry last asked at the agent's address, something other than an A2A agent answered.",
            "bad",
        ),
        Some(EndpointState::Unclear) => (
            "The last answer at the agent's address does not show whether an agent is there.",
            "plain",
        ),
        Some(EndpointState::DoesNotAnswer) => (
            "The agent did not answer when the registry last asked it.",
            "warn",
        ),
        None => ("", "plain"),
    };
    Some(Badge {
        label: text::single_line(&format!("endpoint: {}", endpoint.text()), LINE),
        meaning: meaning.to_owned(),
        tone,
        link: None,
    })
}

/// Lifecycle badge; `None` for an approved agent.
pub(crate) fn lifecycle_badge(lifecycle: ShownLifecycle) -> Option<Badge> {
    let (meaning, tone) = match lifecycle {
        ShownLifecycle::Approved => return None,
        ShownLifecycle::Pending => (
            "The agent is waiting for its first approval. Nothing is served.",
            "warn",
        ),
        ShownLifecycle::Rejected => ("The card was rejected. Nothing is served.", "bad"),
        ShownLifecycle::Deprecated => (
            "The agent is still served, but should no longer be used.",
            "warn",
        ),
        ShownLifecycle::Retired => ("The agent is retired permanently.", "bad"),
        ShownLifecycle::Suspended => ("The agent is on hold. The holds give the reason.", "bad"),
    };
    Some(Badge {
        label: lifecycle.as_str().to_owned(),
        meaning: meaning.to_owned(),
        tone,
        link: None,
    })
}

/// Visibility badge; `None` for a public agent.
pub(crate) fn visibility_badge(visibility: Visibility) -> Option<Badge> {
    let meaning = match visibility {
        Visibility::Public => return None,
        Visibility::Internal => "Only signed-in callers can find the agent.",
        Visibility::Restricted => "Only named groups can find the agent.",
    };
    Some(Badge {
        label: visibility.as_str().to_owned(),
        meaning: meaning.to_owned(),
        tone: "plain",
        link: None,
    })
}
