//! Parses bytes into the model.

use serde_json::Value;

use crate::document::{self, Nul};
use crate::finding::{Finding, Findings};
use crate::refusal::ParseError;
use crate::{AgentCard, Family, wire};

/// A parsed card, and how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The model of the card.
    pub card: AgentCard,
    /// The wire format of the document.
    pub family: Family,
    /// The feature of the card that determined the wire format, as a phrase for people.
    pub reason: &'static str,
    /// Whether the card declares no protocol version, so that the wire format gives its flat address one.
    pub dated_by_form: bool,
    /// The findings of reading, at most [`crate::MAX_FINDINGS`].
    pub findings: Vec<Finding>,
}

/// Parses a card of any protocol version.
///
/// A fault of a member affects only that member and gives a [`Finding`]. The work is limited by the size and depth of
/// the document, by [`crate::MAX_LIST`] elements in a list and by [`crate::MAX_FINDINGS`] findings.
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

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
