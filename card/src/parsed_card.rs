//! Parser from bytes to the model.

use serde_json::Value;

use crate::finding::{Finding, FindingCollector};
use crate::json_document::{self, NulHandling};
use crate::parse_error::ParseError;
use crate::{AgentCard, CardFamily, wire};

/// A parsed card, with facts about its wire format and findings.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCard {
    /// The model of the card.
    pub card: AgentCard,
    /// The wire format of the document.
    pub family: CardFamily,
    /// The feature of the card that determined the wire format, as a phrase for people.
    pub reason: &'static str,
    /// Whether the card declares no protocol version, so that its flat address gets the version of the wire format.
    pub version_from_format: bool,
    /// The findings of reading, at most [`crate::MAX_FINDINGS`].
    pub findings: Vec<Finding>,
}

/// Parses a card of any protocol version.
///
/// A malformed member affects only that member and gives a [`Finding`]. The work is limited by the size and depth of
/// the document, by [`crate::MAX_LIST_ELEMENTS`] elements in a list and by [`crate::MAX_FINDINGS`] findings.
pub fn parse_card(bytes: &[u8]) -> Result<ParsedCard, ParseError> {
    let mut findings = FindingCollector::default();
    let document = json_document::parse_json(bytes, NulHandling::Replace, &mut findings)?;
    let Value::Object(members) = document.value else {
        return Err(ParseError::NotACard {
            reason: format!(
                "the document is {}, not an object",
                json_type_name(&document.value)
            ),
        });
    };
    let wire_card = wire::decode_card(members, &mut findings)?;
    Ok(ParsedCard {
        card: wire_card.card,
        family: wire_card.family,
        reason: wire_card.reason,
        version_from_format: wire_card.version_from_format,
        findings: findings.into_findings(),
    })
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
