//! Trust and liveness in words: a ladder with its evidence, never one tick.

use a2a_registry_api::{Liveness, Summary, Trust};
use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle, Visibility};

use crate::pages::text;

/// A short mark with its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Badge {
    /// What stands in it.
    pub label: String,
    /// What it means.
    pub meaning: String,
    /// How it looks: `good`, `plain`, `warn` or `bad`.
    pub tone: &'static str,
}

/// A step of the ladder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustStep {
    /// `L0` to `L4`.
    pub level: &'static str,
    /// What it takes.
    pub claim: &'static str,
    /// Whether it is reached.
    pub reached: bool,
}

const LADDER: [(&str, &str); 5] = [
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
    (
        "L4",
        "This version can be proved to stand in the public log.",
    ),
];

/// The ladder, with what this agent has reached.
pub(crate) fn ladder(trust: &Trust) -> Vec<TrustStep> {
    let reached = LADDER
        .iter()
        .position(|(level, _)| Some(*level) == trust.level.as_deref());
    LADDER
        .iter()
        .enumerate()
        .map(|(index, (level, claim))| TrustStep {
            level,
            claim,
            reached: reached.is_some_and(|reached| index <= reached),
        })
        .collect()
}

/// What a level means, for a title.
pub(crate) fn level_meaning(level: &str) -> &'static str {
    LADDER
        .iter()
        .find(|(name, _)| *name == level)
        .map_or("The card was not fetched over valid TLS.", |(_, claim)| {
            claim
        })
}

/// The badge of the level reached.
pub(crate) fn trust_badge(trust: &Trust) -> Badge {
    let level = trust.level.as_deref();
    Badge {
        label: level.map_or_else(
            || "trust: none".to_owned(),
            |level| format!("trust {}", text::line(level, 8)),
        ),
        meaning: level_meaning(level.unwrap_or_default()).to_owned(),
        tone: match level {
            None => "warn",
            Some("L0") => "plain",
            Some(_) => "good",
        },
    }
}

/// The badges of an agent: its level and liveness, and where they are worth one, its lifecycle and visibility.
pub(crate) fn badges(agent: &Summary) -> Vec<Badge> {
    let mut badges = vec![trust_badge(&agent.trust), liveness_badge(&agent.liveness)];
    badges.extend(lifecycle_badge(agent.lifecycle));
    badges.extend(visibility_badge(agent.visibility));
    badges
}

/// What is known about the card's signatures.
pub(crate) fn signature_meaning(signature: &str) -> &'static str {
    match signature {
        "valid" => "valid: it verifies with a key that is bound to the domain or enrolled",
        "untrusted" => "untrusted: it verifies, but its key is bound to nothing",
        "invalid" => "invalid: no signature verifies",
        "unknown" => "unknown: the key could not be had",
        _ => "none: the card is not signed",
    }
}

/// What the state of a domain means.
pub(crate) fn domain_meaning(state: &str) -> &'static str {
    match state {
        "verified" => "verified: its owner, or the operator, vouches for it",
        "lapsed" => "lapsed: a proof held once and holds no more",
        "disputed" => "disputed: two accounts claim it",
        "opted_out" => "opted out: its owner wants no listing",
        _ => "unverified: nobody has proved to own it",
    }
}

/// The badge of liveness.
pub(crate) fn liveness_badge(liveness: &Liveness) -> Badge {
    let (label, meaning, tone) = match liveness.state {
        LivenessState::Fresh => (
            "fresh",
            "The card was reachable when it was last looked at. This says nothing about whether the \
             agent answers.",
            "good",
        ),
        LivenessState::Stale => (
            "stale",
            "The last look at the card failed; the last good card is shown.",
            "warn",
        ),
        LivenessState::Gone => (
            "gone",
            "The card has been unreachable for so long that the agent has left the search.",
            "bad",
        ),
    };
    Badge {
        label: label.to_owned(),
        meaning: meaning.to_owned(),
        tone,
    }
}

/// The badge of the lifecycle, where it is worth one.
pub(crate) fn lifecycle_badge(lifecycle: ShownLifecycle) -> Option<Badge> {
    let (meaning, tone) = match lifecycle {
        ShownLifecycle::Approved => return None,
        ShownLifecycle::Pending => (
            "It waits for its first approval; nothing of it is served.",
            "warn",
        ),
        ShownLifecycle::Rejected => ("Its card was rejected; nothing of it is served.", "bad"),
        ShownLifecycle::Deprecated => ("It is still served, with the advice to move on.", "warn"),
        ShownLifecycle::Retired => ("It is gone for good.", "bad"),
        ShownLifecycle::Suspended => ("It is withheld; the holds say why.", "bad"),
    };
    Some(Badge {
        label: lifecycle.as_str().to_owned(),
        meaning: meaning.to_owned(),
        tone,
    })
}

/// The badge of the visibility, where not everybody sees the agent.
pub(crate) fn visibility_badge(visibility: Visibility) -> Option<Badge> {
    let meaning = match visibility {
        Visibility::Public => return None,
        Visibility::Internal => "Only callers who are signed in find it.",
        Visibility::Restricted => "Only named groups find it.",
    };
    Some(Badge {
        label: visibility.as_str().to_owned(),
        meaning: meaning.to_owned(),
        tone: "plain",
    })
}
