//! Actions: the operations that policies permit or forbid.

use serde::{Deserialize, Serialize};

/// An operation that a policy permits or forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Find an agent in searches, lists and lookups, or by identifier.
    Discover,
    Invoke,
    /// Admit the content of a card. The principal is the account that registered it.
    Admit,
    Register,
}

impl Action {
    pub const ALL: [Self; 4] = [Self::Discover, Self::Invoke, Self::Admit, Self::Register];
    /// The actions of a policy that names none; so no policy admits or registers by omission.
    pub const DEFAULTS: [Self; 2] = [Self::Discover, Self::Invoke];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::Invoke => "invoke",
            Self::Admit => "admit",
            Self::Register => "register",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}
