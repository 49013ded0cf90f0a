//! Changes, their classes, and the difference between two cards.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{SignatureState, named_enum};

/// Maximum number of changes listed for a pair of cards; [`CardDiff::class`] considers all of them.
pub const MAX_CHANGES: usize = 200;

named_enum! {
    /// Class of a change: its importance.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ChangeClass {
        /// No caller can notice it: the card was signed again with the same key.
        None = "none",
        /// Needs no review: a version, a link on the same host, order.
        Low = "low",
        /// Needs a review: texts, new skills and capabilities, and everything that no rule covers.
        High = "high",
        /// Decides which server a caller talks to and with which credentials, or whose signature vouches for the card.
        Critical = "critical",
    }

    /// Error for a text that is not the name of a change class.
    error UnknownChangeClass = "no change class is called {0:?}";
}

/// One change between two versions of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardChange {
    /// RFC 6901 pointer into the newer card or, for a removed member, into the older one; empty for the whole card.
    pub pointer: String,
    /// The old value, for display: texts are shortened to about 1 000 characters around the first difference, lists
    /// and objects to 64 values, and invisible characters are written as `\u{…}`. `None` if there was none.
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

/// Difference between two versions of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardDiff {
    /// The most important class of all changes, including those omitted from the list.
    pub class: ChangeClass,
    /// The changes, the most important first and otherwise in the order found; at most [`MAX_CHANGES`].
    pub changes: Vec<CardChange>,
    /// Whether changes were omitted from the list.
    pub cut: bool,
}

/// Verified states of both cards' signatures; the bytes alone do not show whether a signature verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureStateChange {
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
