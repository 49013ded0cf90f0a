//! Findings as SARIF 2.1.0 (OASIS), the format that code hosting services accept.

use serde_json::{Value, json};

use crate::position::{Region, regions};
use crate::text::visible;
use crate::{Finding, ParseError, Rule, Severity, digest, rules};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

const TOOL: &str = "a2a-registry";

/// The findings about one card as a SARIF log with one run.
///
/// `artifact_uri` is the card's path in its repository, or its address; characters that a URI must not contain are
/// percent-encoded. `bytes` are the card's bytes, from which each finding gets its line and column. `tool_version` is
/// the tool's version in the log. Invisible characters of the card's text are written as `\u{…}`, so that they cannot
/// affect a viewer; print the log through [`crate::visible_json`].
///
/// ```
/// let bytes = br#"{"name": "Echo", "url": "http://localhost:9000"}"#;
/// let parsed = a2a_card::parse(bytes)?;
/// let findings = a2a_card::all_findings(&parsed, bytes);
/// let log = a2a_card::sarif("cards/echo.json", bytes, &findings, "1.0.0");
/// assert_eq!(log["version"], "2.1.0");
/// assert_eq!(log["runs"][0]["results"][0]["level"], "error");
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn sarif(artifact_uri: &str, bytes: &[u8], findings: &[Finding], tool_version: &str) -> Value {
    log(results(artifact_uri, bytes, findings), tool_version)
}

/// The results alone, which depend on the card.
pub fn results(artifact_uri: &str, bytes: &[u8], findings: &[Finding]) -> Vec<Value> {
    let pointers: Vec<&str> = findings
        .iter()
        .map(|finding| finding.pointer.as_str())
        .collect();
    let regions = regions(bytes, &pointers);
    let results = findings.iter().zip(regions).map(|(finding, region)| {
        let region = region.map_or_else(first_line, place);
        let mut location = physical(artifact_uri, &region);
        if !finding.pointer.is_empty() {
            location["logicalLocations"] = json!([logical(&finding.pointer)]);
        }
        let text = sentence(finding);
        let mut result = result(&finding.rule, finding.severity, &text, location);
        let print = digest(format!("{} {}", finding.rule, finding.pointer).as_bytes());
        result["partialFingerprints"] = json!({"ruleAndPointer/v1": print});
        result["properties"] = json!({
            "found": finding.found, "wanted": finding.wanted, "section": finding.section,
        });
        result
    });
    results.collect()
}

/// A document that is not a card, as a SARIF log with one result of level `error`.
///
/// The parameters are those of [`sarif`]; the region is the line at which parsing stopped, if there is one.
pub fn sarif_of_refusal(artifact_uri: &str, error: &ParseError, tool_version: &str) -> Value {
    let line = match error {
        ParseError::NotJson { line, .. } => (*line).max(1),
        _ => 1,
    };
    let location = physical(artifact_uri, &json!({"startLine": line}));
    let rule = error.rule();
    let text = format!("{error}. To fix it, {}.", rule.hint);
    log(
        vec![result(rule.id, rule.severity, &text, location)],
        tool_version,
    )
}

fn log(results: Vec<Value>, tool_version: &str) -> Value {
    let descriptors: Vec<Value> = rules().iter().map(descriptor).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": TOOL, "version": tool_version, "rules": descriptors}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn descriptor(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": {"text": escaped(rule.summary)},
        "fullDescription": {"text": escaped(&format!("Expected: {}. See {}.", rule.summary, rule.section))},
        "help": {"text": escaped(&format!("To fix it, {}.", rule.hint))},
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"section": rule.section, "tags": ["a2a", "agent-card"]},
    })
}

/// One result. A rule that is not in the table keeps its name but has no index.
fn result(rule: &str, severity: Severity, text: &str, location: Value) -> Value {
    let mut result = json!({
        "ruleId": rule,
        "level": level(severity),
        "message": {"text": escaped(text)},
        "locations": [location],
    });
    if let Some(index) = rules().iter().position(|known| known.id == rule) {
        result["ruleIndex"] = index.into();
    }
    result
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn sentence(finding: &Finding) -> String {
    let found = match finding.found.as_str() {
        "" => String::new(),
        found => format!(" Found: {found}."),
    };
    format!(
        "Expected: {}.{found} To fix it, {}.",
        finding.wanted, finding.hint
    )
}

/// Text as a SARIF message: braces would name arguments and brackets make links, which text of a card must not do
/// (SARIF 2.1.0 §3.11.5, §3.11.6). Invisible characters are escaped first.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in visible(text, usize::MAX).chars() {
        match character {
            '{' | '}' => escaped.extend([character, character]),
            '[' | ']' | '\\' => escaped.extend(['\\', character]),
            other => escaped.push(other),
        }
    }
    escaped
}

fn physical(artifact_uri: &str, region: &Value) -> Value {
    let artifact = json!({"uri": uri(artifact_uri)});
    json!({"physicalLocation": {"artifactLocation": artifact, "region": region}})
}

/// The region used when the bytes do not have the position: services require one for every result.
fn first_line() -> Value {
    json!({"startLine": 1})
}

fn place(region: Region) -> Value {
    json!({
        "startLine": region.start_line,
        "startColumn": region.start_column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
    })
}

fn logical(pointer: &str) -> Value {
    let name = pointer.rsplit('/').next().unwrap_or_default();
    let is_index = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    json!({
        "name": visible(&name.replace("~1", "/").replace("~0", "~"), usize::MAX),
        "fullyQualifiedName": visible(pointer, usize::MAX),
        "kind": if is_index { "value" } else { "property" },
    })
}

/// A path or an address as a URI reference (RFC 3986 §2).
fn uri(text: &str) -> String {
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
