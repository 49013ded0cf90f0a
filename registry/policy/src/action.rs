//! What policies decide about.

use serde::{Deserialize, Serialize};

/// What a policy permits or forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Finding an agent: in searches, lists, look-ups, and by its identifier.
    Discover,
    /// Calling an agent.
    Invoke,
    /// Admitting the content of a card, for whoever registered it.
    Admit,
    /// Registering a domain.
    Register,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Discover, Self::Invoke, Self::Admit, Self::Register];
    /// Those that a policy is about which names none: so no policy admits or registers by being brief.
    pub const UNNAMED: [Self; 2] = [Self::Discover, Self::Invoke];

    /// Its identifier, as in `Action::"discover"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::Invoke => "invoke",
            Self::Admit => "admit",
            Self::Register => "register",
        }
    }

    /// The action with this identifier.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}
