//! A change, its class, and all of them together.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::SignatureState;

/// At most this many changes are told of one pair of cards; [`CardDiff::class`] counts all of them.
pub const MAX_CHANGES: usize = 200;

/// How much a change matters, from nothing to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// Nothing a caller could notice: the card was signed anew with the same key.
    None,
    /// Nothing that anybody has to look at: a version, a link on the same host, order.
    Low,
    /// Wants a look: texts, new skills and abilities, and everything that no rule knows.
    High,
    /// Decides whom a caller talks to and with which credentials, or who vouches for the card.
    Critical,
}

impl ChangeClass {
    /// Every class, the least first.
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

/// The text names no change class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no change class is called {0:?}")]
pub struct UnknownChangeClass(pub String);

impl FromStr for ChangeClass {
    type Err = UnknownChangeClass;

    /// Reads the name that [`ChangeClass::as_str`] gives.
    fn from_str(name: &str) -> Result<Self, UnknownChangeClass> {
        ChangeClass::ALL
            .into_iter()
            .find(|class| class.as_str() == name)
            .ok_or_else(|| UnknownChangeClass(name.to_owned()))
    }
}

/// One thing that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardChange {
    /// RFC 6901 pointer into the newer card, or into the older one for what is gone; the empty string is
    /// the whole card.
    pub pointer: String,
    /// What stood there before, for people: texts are shortened to about 1 000 characters around the
    /// first difference, lists and objects to 64 values, and characters that cannot be seen are written
    /// as `\u{…}`. `None` where nothing stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What stands there now, in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// How much it matters.
    pub class: ChangeClass,
    /// Why it has that class, as a phrase for people.
    pub reason: String,
}

/// What changed between two versions of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardDiff {
    /// The gravest class of all changes, those left out of the list included.
    pub class: ChangeClass,
    /// The changes, the gravest first and otherwise in the order in which they were found; at most
    /// [`MAX_CHANGES`].
    pub changes: Vec<CardChange>,
    /// Whether there were more changes than the list has.
    pub cut: bool,
}

/// What the signatures of the two cards were found to be worth: the bytes alone do not tell whether one verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureStates {
    /// Of the older card.
    pub before: SignatureState,
    /// Of the newer card.
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
