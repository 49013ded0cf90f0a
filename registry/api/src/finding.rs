//! Lint findings as callers see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One lint finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingView {
    /// Stable id of the rule.
    pub rule: String,
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// RFC 6901 pointer into the card.
    pub pointer: String,
    /// Value that the card has there.
    pub found: String,
    /// What the card's protocol version requires.
    pub wanted: String,
    /// How to fix it.
    pub hint: String,
    /// Section of the specification.
    pub section: String,
    /// Line of the member in the card's text, from 1; only if a card was sent to be linted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub line: Option<usize>,
    /// Column of the member in its line, from 1, in Unicode code points; only together with `line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub column: Option<usize>,
}

impl From<a2a_card::Finding> for FindingView {
    fn from(finding: a2a_card::Finding) -> Self {
        let severity = match finding.severity {
            a2a_card::Severity::Info => "info",
            a2a_card::Severity::Warning => "warning",
            a2a_card::Severity::Error => "error",
        };
        Self {
            rule: finding.rule,
            severity: severity.into(),
            pointer: finding.pointer,
            found: finding.found,
            wanted: finding.wanted,
            hint: finding.hint,
            section: finding.section,
            line: None,
            column: None,
        }
    }
}
