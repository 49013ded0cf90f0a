//! Linter: rules about a card as a whole, checked after parsing.
//!
//! A rule is one row of [`LINT_RULES`] and one function in the file of its subject. The function adds one finding for
//! every violation; severity, section and hint come from the row.

mod endpoint;
mod instruction_words;
mod instructions;
mod lint_rules;
mod previous_version;
mod protocol_version;
mod required_members;
mod secrets;
mod security;
mod security_scheme;
mod signature;
mod target;
mod text_rules;
mod unknown_members;

pub use instructions::INSTRUCTION_RULE;
pub(crate) use lint_rules::LINT_RULES;
pub use target::LintContext;

use crate::ParsedCard;
use crate::finding::{Finding, FindingCollector};
use crate::json_document;
use target::LintTarget;

/// Lints a card. The findings do not repeat [`ParsedCard::findings`].
///
/// `bytes` must be those from which `parsed` was read. At most [`crate::MAX_FINDINGS`] findings are returned.
///
/// ```
/// let bytes = br#"{"name": "Echo", "url": "http://localhost:9000"}"#;
/// let parsed = a2a_card::parse_card(bytes)?;
/// let findings = a2a_card::lint_card(&parsed, bytes);
/// assert!(findings.iter().any(|finding| finding.rule == "endpoint.private"));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn lint_card(parsed: &ParsedCard, bytes: &[u8]) -> Vec<Finding> {
    lint_with_context(parsed, bytes, LintContext::default())
}

/// Lints a card, given facts about it that are not in its bytes.
///
/// ```
/// use a2a_card::{LintContext, lint_with_context, parse_card};
///
/// let bytes = br#"{"name": "Echo", "url": "https://echo.agents.dev/a2a"}"#;
/// let card_url = "https://elsewhere.dev/.well-known/agent.json".parse()?;
/// let context = LintContext { card_url: Some(&card_url), previous: None };
/// let findings = lint_with_context(&parse_card(bytes)?, bytes, context);
/// assert!(findings.iter().any(|finding| finding.rule == "endpoint.other-domain"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lint_with_context(
    parsed: &ParsedCard,
    bytes: &[u8],
    context: LintContext<'_>,
) -> Vec<Finding> {
    let document = json_document::parse_json_without_findings(bytes);
    let target = LintTarget::new(parsed, &document, context);
    let mut out = FindingCollector::default();
    for row in LINT_RULES {
        (row.check)(&target, &row.rule, &mut out);
    }
    out.into_findings()
}

/// All findings about a card, the most severe first: those of parsing and those of [`lint_card`], in this order if
/// they are equally severe. At most twice [`crate::MAX_FINDINGS`].
pub fn all_findings(parsed: &ParsedCard, bytes: &[u8]) -> Vec<Finding> {
    all_findings_with_context(parsed, bytes, LintContext::default())
}

/// All findings about a card, given facts about it that are not in its bytes.
pub fn all_findings_with_context(
    parsed: &ParsedCard,
    bytes: &[u8],
    context: LintContext<'_>,
) -> Vec<Finding> {
    let mut findings = parsed.findings.clone();
    findings.extend(lint_with_context(parsed, bytes, context));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
