//! Reading bytes into a model.

use serde_json::Value;

use crate::document::{self, Nul};
use crate::finding::{Finding, Findings};
use crate::refusal::ParseError;
use crate::{AgentCard, Family, wire};

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
