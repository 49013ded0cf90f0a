//! The rules that a document breaks which is not read at all.

use super::{Rule, unchecked};
use crate::ParseError;
use crate::finding::Severity::Error;

const TOO_LARGE: Rule = unchecked(
    "document.too-large",
    Error,
    "registry",
    "at most 1 MiB",
    "shorten the card, or move details to an extended card",
);
const TOO_DEEP: Rule = unchecked(
    "document.too-deep",
    Error,
    "registry",
    "arrays and objects at most 64 levels deep",
    "flatten the document",
);
const NOT_JSON: Rule = unchecked(
    "document.not-json",
    Error,
    "RFC 8259",
    "JSON in UTF-8",
    "correct the document where its reading ends",
);
const NOT_A_CARD: Rule = unchecked(
    "document.not-a-card",
    Error,
    "1.0 §4.4.1",
    "an object with the agent's `name`",
    "publish the agent card here",
);

/// All of them.
pub(crate) static REFUSAL: &[Rule] = &[TOO_LARGE, TOO_DEEP, NOT_JSON, NOT_A_CARD];

impl ParseError {
    /// The rule that the document breaks.
    pub fn rule(&self) -> &'static Rule {
        match self {
            ParseError::TooLarge { .. } => &TOO_LARGE,
            ParseError::TooDeep => &TOO_DEEP,
            ParseError::NotJson { .. } => &NOT_JSON,
            ParseError::NotACard { .. } => &NOT_A_CARD,
        }
    }
}
