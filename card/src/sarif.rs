//! Findings as SARIF 2.1.0 (OASIS), the format that code hosting services accept.

use serde_json::{Value, json};

use crate::hidden_characters::escape_and_truncate;
use crate::text_position::{TextRegion, value_regions};
use crate::{Finding, ParseError, Rule, Severity, all_rules, bytes_digest};

const SARIF_SCHEMA_URL: &str = "https://json.schemastore.org/sarif-2.1.0.json";

const TOOL_NAME: &str = "a2a-registry";

/// Converts the findings about one card to a SARIF log with one run.
///
/// `artifact_uri` is the card's path in its repository, or its address; characters that a URI must not contain are
/// percent-encoded. `bytes` are the card's bytes, from which each finding gets its line and column. `tool_version` is
/// the tool's version in the log. Invisible characters of the card's text are written as `\u{…}`, so that they cannot
/// affect a viewer; print the log through [`crate::terminal_safe_json`].
///
/// ```
/// let bytes = br#"{"name": "Echo", "url": "http://localhost:9000"}"#;
/// let parsed = a2a_card::parse_card(bytes)?;
/// let findings = a2a_card::all_findings(&parsed, bytes);
/// let log = a2a_card::sarif_log("cards/echo.json", bytes, &findings, "1.0.0");
/// assert_eq!(log["version"], "2.1.0");
/// assert_eq!(log["runs"][0]["results"][0]["level"], "error");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn sarif_log(
    artifact_uri: &str,
    bytes: &[u8],
    findings: &[Finding],
    tool_version: &str,
) -> Value {
    new_sarif_log(sarif_results(artifact_uri, bytes, findings), tool_version)
}

/// The SARIF results alone, which depend on the card.
pub fn sarif_results(artifact_uri: &str, bytes: &[u8], findings: &[Finding]) -> Vec<Value> {
    let pointers: Vec<&str> = findings
        .iter()
        .map(|finding| finding.pointer.as_str())
        .collect();
    let regions = value_regions(bytes, &pointers);
    let results = findings.iter().zip(regions).map(|(finding, region)| {
        let region = region.map_or_else(first_line_region, sarif_region);
        let mut location = sarif_physical_location(artifact_uri, &region);
        if !finding.pointer.is_empty() {
            location["logicalLocations"] = json!([sarif_logical_location(&finding.pointer)]);
        }
        let message = finding_message(finding);
        let mut result = new_sarif_result(&finding.rule, finding.severity, &message, location);
        let fingerprint = bytes_digest(format!("{} {}", finding.rule, finding.pointer).as_bytes());
        result["partialFingerprints"] = json!({"ruleAndPointer/v1": fingerprint});
        result["properties"] = json!({
            "found": finding.found, "wanted": finding.wanted, "section": finding.section,
        });
        result
    });
    results.collect()
}

/// SARIF log for a document that is not a card, with one result of level `error`.
///
/// The parameters are those of [`sarif_log`]; the region is the line at which parsing stopped, if there is one.
pub fn parse_error_sarif_log(artifact_uri: &str, error: &ParseError, tool_version: &str) -> Value {
    let line = match error {
        ParseError::NotJson { line, .. } => (*line).max(1),
        _ => 1,
    };
    let location = sarif_physical_location(artifact_uri, &json!({"startLine": line}));
    let rule = error.rule();
    let text = format!("{error}. To fix it, {}.", rule.hint);
    new_sarif_log(
        vec![new_sarif_result(rule.id, rule.severity, &text, location)],
        tool_version,
    )
}

fn new_sarif_log(results: Vec<Value>, tool_version: &str) -> Value {
    let descriptors: Vec<Value> = all_rules().iter().map(sarif_rule_descriptor).collect();
    json!({
        "$schema": SARIF_SCHEMA_URL,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": TOOL_NAME, "version": tool_version, "rules": descriptors}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn sarif_rule_descriptor(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": {"text": escape_sarif_message(rule.summary)},
        "fullDescription": {"text": escape_sarif_message(&format!("Expected: {}. See {}.", rule.summary, rule.section))},
        "help": {"text": escape_sarif_message(&format!("To fix it, {}.", rule.hint))},
        "defaultConfiguration": {"level": sarif_level(rule.severity)},
        "properties": {"section": rule.section, "tags": ["a2a", "agent-card"]},
    })
}

/// Builds one result. A rule that is not in the table keeps its name but has no index.
fn new_sarif_result(rule: &str, severity: Severity, text: &str, location: Value) -> Value {
    let mut result = json!({
        "ruleId": rule,
        "level": sarif_level(severity),
        "message": {"text": escape_sarif_message(text)},
        "locations": [location],
    });
    if let Some(index) = all_rules().iter().position(|known| known.id == rule) {
        result["ruleIndex"] = index.into();
    }
    result
}

fn sarif_level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn finding_message(finding: &Finding) -> String {
    let found_phrase = match finding.found.as_str() {
        "" => String::new(),
        found => format!(" Found: {found}."),
    };
    format!(
        "Expected: {}.{found_phrase} To fix it, {}.",
        finding.wanted, finding.hint
    )
}

/// Escapes text for a SARIF message: braces would name arguments and brackets make links, which text of a card must
/// not do (SARIF 2.1.0 §3.11.5, §3.11.6). Invisible characters are escaped first.
fn escape_sarif_message(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in escape_and_truncate(text, usize::MAX).chars() {
        match character {
            '{' | '}' => escaped.extend([character, character]),
            '[' | ']' | '\\' => escaped.extend(['\\', character]),
            other => escaped.push(other),
        }
    }
    escaped
}

fn sarif_physical_location(artifact_uri: &str, region: &Value) -> Value {
    let artifact = json!({"uri": to_uri_reference(artifact_uri)});
    json!({"physicalLocation": {"artifactLocation": artifact, "region": region}})
}

/// The region used if the position is not in the bytes: services require one for every result.
fn first_line_region() -> Value {
    json!({"startLine": 1})
}

fn sarif_region(region: TextRegion) -> Value {
    json!({
        "startLine": region.start_line,
        "startColumn": region.start_column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
    })
}

fn sarif_logical_location(pointer: &str) -> Value {
    let name = pointer.rsplit('/').next().unwrap_or_default();
    let is_index = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    json!({
        "name": escape_and_truncate(&name.replace("~1", "/").replace("~0", "~"), usize::MAX),
        "fullyQualifiedName": escape_and_truncate(pointer, usize::MAX),
        "kind": if is_index { "value" } else { "property" },
    })
}

/// Converts a path or an address to a URI reference (RFC 3986 §2).
fn to_uri_reference(text: &str) -> String {
    let mut uri = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
#[path = "sarif_tests.rs"]
mod tests;
