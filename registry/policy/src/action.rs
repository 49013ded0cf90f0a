//! What policies decide about.

use serde::{Deserialize, Serialize};

/// What a policy permits or forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Registering a domain.
    Register,
    /// Admitting a card's content.
    Admit,
    /// Finding an agent: in searches, lists, look-ups, and by its identifier.
    Discover,
    /// Calling an agent.
    Invoke,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Register, Self::Admit, Self::Discover, Self::Invoke];

    /// Its identifier, as in `Action::"discover"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Admit => "admit",
            Self::Discover => "discover",
            Self::Invoke => "invoke",
        }
    }

    /// The action with this identifier.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }

    /// Whether its resource is a domain and not an agent.
    pub const fn is_about_domains(self) -> bool {
        matches!(self, Self::Register)
    }
}
