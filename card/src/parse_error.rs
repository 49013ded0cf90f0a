//! Reasons why a document is rejected as a whole, and the rules that it violates.

use crate::json_scan::MAX_DEPTH;
use crate::rule::{Rule, rule_table};

/// Maximum size of a card in bytes: 1 MiB.
pub const MAX_CARD_BYTES: usize = 1 << 20;

/// Why a document cannot be read as a card. Each error displays as one line for the card's publisher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The body is larger than [`MAX_CARD_BYTES`].
    #[error("the card has {size} bytes; at most {MAX_CARD_BYTES} are allowed")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// Arrays and objects are nested beyond [`MAX_DEPTH`].
    #[error("the card nests arrays and objects deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The bytes are not JSON.
    #[error("not JSON: {text} (line {line}, column {column})")]
    NotJson {
        /// Line at which the parser stopped, from 1.
        line: usize,
        /// Byte in that line, from 1; 0 is the end of the previous line.
        column: usize,
        /// The parser's message.
        text: String,
    },
    /// The document is not a card.
    #[error("not an agent card: {reason}")]
    NotACard {
        /// What it is instead, or what it lacks.
        reason: String,
    },
}

rule_table! {
    /// All of these rules.
    REFUSAL:

    TOO_LARGE = "document.too-large", Error, "registry",
        "at most 1 MiB",
        "shorten the card, or move details to an extended card";
    TOO_DEEP = "document.too-deep", Error, "registry",
        "arrays and objects at most 64 levels deep",
        "flatten the document";
    NOT_JSON = "document.not-json", Error, "RFC 8259",
        "JSON in UTF-8",
        "correct the document at this position";
    NOT_A_CARD = "document.not-a-card", Error, "1.0 §4.4.1",
        "an object with the agent's `name`",
        "serve the agent card at this URL";
}

impl ParseError {
    /// The rule that the document violates.
    pub fn rule(&self) -> &'static Rule {
        match self {
            ParseError::TooLarge { .. } => &TOO_LARGE,
            ParseError::TooDeep => &TOO_DEEP,
            ParseError::NotJson { .. } => &NOT_JSON,
            ParseError::NotACard { .. } => &NOT_A_CARD,
        }
    }
}
