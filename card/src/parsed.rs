//! Reading bytes into a model.

use serde_json::Value;

use crate::document::{self, MAX_CARD_BYTES, Nul};
use crate::finding::Findings;
use crate::scan::MAX_DEPTH;
use crate::{AgentCard, Family, Finding, wire};

/// A card as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// What the card says.
    pub card: AgentCard,
    /// Which wire format it was read as.
    pub family: Family,
    /// What in the card's shape decided for that family, as a phrase for people.
    pub reason: &'static str,
    /// Whether the card declares no protocol version, and its flat address is dated by its family instead.
    pub dated_by_form: bool,
    /// What was noticed on the way, at most [`crate::MAX_FINDINGS`].
    pub findings: Vec<Finding>,
}

/// Why there is no card to read. Each displays as one line for the card's publisher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The body is larger than [`MAX_CARD_BYTES`].
    #[error("the card has {size} bytes, more than the {MAX_CARD_BYTES} that are read")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// Arrays and objects are nested beyond [`MAX_DEPTH`].
    #[error("the card nests arrays and objects deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The bytes are no JSON.
    #[error("not JSON: {text} (line {line}, column {column})")]
    NotJson {
        /// Where the parser gave up, from 1.
        line: usize,
        /// The byte in that line, from 1; 0 stands for the end of the line before.
        column: usize,
        /// What it missed there.
        text: String,
    },
    /// The document is something else than a card.
    #[error("not an agent card: {reason}")]
    NotACard {
        /// What it is, or what it lacks.
        reason: String,
    },
}

/// Reads a card of any protocol version.
///
/// Whatever is odd about a member costs that member and leaves a [`Finding`]. The work is bounded: by the
/// size and depth of what is read at all, by [`crate::MAX_LIST`] elements in a list and by
/// [`crate::MAX_FINDINGS`] findings.
///
/// # Errors
///
/// [`ParseError`] when the bytes are too large, too deeply nested or no JSON, and when the document is no
/// object or has a name nowhere.
pub fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let mut findings = Findings::default();
    let document = document::read(bytes, Nul::Replace, &mut findings)?;
    let Value::Object(members) = document.value else {
        return Err(ParseError::NotACard {
            reason: format!("the document is {}, not an object", kind(&document.value)),
        });
    };
    let read = wire::read(members, &mut findings)?;
    Ok(Parsed {
        card: read.card,
        family: read.family,
        reason: read.reason,
        dated_by_form: read.dated_by_form,
        findings: findings.into_list(),
    })
}

/// What a value is called in a sentence.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
