//! Changes, their classes, and the difference of two cards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::SignatureState;

/// Most changes listed for one pair of cards; [`CardDiff::class`] counts all of them.
pub const MAX_CHANGES: usize = 200;

/// The importance of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// Not noticeable by any caller: the card was signed again with the same key.
    None,
    /// Needs no review: a version, a link on the same host, order.
    Low,
    /// Needs a review: texts, new skills and capabilities, and everything that no rule knows.
    High,
    /// Decides which server a caller talks to and with which credentials, or whose signature vouches for the card.
    Critical,
}

impl ChangeClass {
    /// Every class, the least important first.
    pub const ALL: [ChangeClass; 4] = [
        ChangeClass::None,
        ChangeClass::Low,
        ChangeClass::High,
        ChangeClass::Critical,
    ];

    /// The name used in JSON: `none`, `low`, `high` or `critical`.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeClass::None => "none",
            ChangeClass::Low => "low",
            ChangeClass::High => "high",
            ChangeClass::Critical => "critical",
        }
    }
}

impl fmt::Display for ChangeClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text is not the name of a change class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no change class is called {0:?}")]
pub struct UnknownChangeClass(pub String);

impl FromStr for ChangeClass {
    type Err = UnknownChangeClass;

    fn from_str(name: &str) -> Result<Self, UnknownChangeClass> {
        ChangeClass::ALL
            .into_iter()
            .find(|class| class.as_str() == name)
            .ok_or_else(|| UnknownChangeClass(name.to_owned()))
    }
}

/// One change between two versions of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardChange {
    /// RFC 6901 pointer into the newer card, or for a removed member into the older one; empty for the whole card.
    pub pointer: String,
    /// The old value, for display: texts are shortened to about 1 000 characters around the first difference, lists
    /// and objects to 64 values, and invisible characters are written as `\u{…}`. `None` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value, in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The importance of the change.
    pub class: ChangeClass,
    /// The reason for this class, as a phrase for people.
    pub reason: String,
}

/// The difference of two versions of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardDiff {
    /// The most important class of all changes, including those left out of the list.
    pub class: ChangeClass,
    /// The most important first and otherwise in the order in which they were found; at most [`MAX_CHANGES`].
    pub changes: Vec<CardChange>,
    /// Whether changes were left out of the list.
    pub cut: bool,
}

/// The verified states of both cards' signatures; the bytes alone do not show whether a signature verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureStates {
    /// State of the older card's signatures.
    pub before: SignatureState,
    /// State of the newer card's signatures.
    pub after: SignatureState,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_named_and_ordered() {
        for class in ChangeClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
            assert_eq!(serde_json::json!(class), class.as_str());
        }
        assert!(ChangeClass::ALL.is_sorted());
        assert!("High".parse::<ChangeClass>().is_err());
    }
}
