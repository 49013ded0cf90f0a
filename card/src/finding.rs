//! Findings: the errors and oddities of a card.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hidden_characters;
use crate::json_pointer::JsonPointer;
use crate::rule::{Rule, Severity};
use crate::rules;

/// Maximum number of findings for one card; the last of them then says that there were more.
pub const MAX_FINDINGS: usize = 1_000;

/// Maximum number of characters quoted from the member at fault.
const MAX_FOUND_CHARS: usize = 200;

/// One fault with its position and its fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable identifier of the rule, such as `skill.tags`. [`all_rules`](crate::all_rules) lists them all.
    pub rule: String,
    /// The importance of the finding.
    pub severity: Severity,
    /// RFC 6901 pointer to the member; the empty string means the whole card.
    pub pointer: String,
    /// The value found, shortened to 200 characters, with invisible characters written as `\u{…}`.
    pub found: String,
    /// The form that the card's version requires.
    pub wanted: String,
    /// How to fix it.
    pub hint: String,
    /// The section of the specification that the rule follows, such as `1.0 §8.5`.
    pub section: String,
}

#[derive(Debug, Default)]
pub(crate) struct FindingCollector {
    findings: Vec<Finding>,
    is_full: bool,
    /// Rules limited to one finding per card that already have one.
    reported_once: Vec<&'static str>,
}

impl FindingCollector {
    /// Adds a finding: `rule` is broken at `pointer`, by `found_text`.
    pub(crate) fn add(&mut self, rule: &Rule, pointer: &JsonPointer<'_>, found_text: &str) {
        if self.is_full {
            return;
        }
        if self.findings.len() + 1 == MAX_FINDINGS {
            self.is_full = true;
            self.findings
                .push(new_finding(&rules::FINDINGS_CUT, &JsonPointer::Root, ""));
            return;
        }
        self.findings.push(new_finding(rule, pointer, found_text));
    }

    pub(crate) fn add_with_value(
        &mut self,
        rule: &Rule,
        pointer: &JsonPointer<'_>,
        found_value: &Value,
    ) {
        if !self.is_full {
            self.add(rule, pointer, &json_excerpt(found_value));
        }
    }

    /// Adds a finding once per card, for faults that occur throughout a document.
    pub(crate) fn add_once(&mut self, rule: &Rule, pointer: &JsonPointer<'_>, found_text: &str) {
        if !self.reported_once.contains(&rule.id) {
            self.reported_once.push(rule.id);
            self.add(rule, pointer, found_text);
        }
    }

    /// Adds a finding for a value that is not of the expected type and cannot be read.
    pub(crate) fn add_wrong_type(
        &mut self,
        pointer: &JsonPointer<'_>,
        found_value: &Value,
        expected: &str,
    ) {
        self.add_with_value(&rules::MEMBER_TYPE, pointer, found_value);
        self.set_last_expected(expected);
    }

    /// Adds a finding for a value that is not of the expected type but can still be read.
    pub(crate) fn add_coerced_type(
        &mut self,
        pointer: &JsonPointer<'_>,
        found_value: &Value,
        expected: &str,
    ) {
        self.add_with_value(&rules::MEMBER_COERCED, pointer, found_value);
        self.set_last_expected(expected);
    }

    /// Sets the requirement of the last finding, for rules that apply to many members.
    pub(crate) fn set_last_expected(&mut self, expected: &str) {
        if !self.is_full
            && let Some(last) = self.findings.last_mut()
        {
            expected.clone_into(&mut last.wanted);
        }
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}

fn new_finding(rule: &Rule, pointer: &JsonPointer<'_>, found_text: &str) -> Finding {
    Finding {
        rule: rule.id.to_owned(),
        severity: rule.severity,
        pointer: pointer.to_json_pointer(),
        found: escape_found_text(found_text),
        wanted: rule.summary.to_owned(),
        hint: rule.hint.to_owned(),
        section: rule.section.to_owned(),
    }
}

/// Cuts to [`MAX_FOUND_CHARS`] and escapes invisible characters.
fn escape_found_text(found_text: &str) -> String {
    hidden_characters::escape_and_truncate(found_text, MAX_FOUND_CHARS)
}

/// The start of a value's JSON, without writing the rest of it.
fn json_excerpt(value: &Value) -> String {
    struct BoundedWriter(Vec<u8>);
    impl io::Write for BoundedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() > 4 * MAX_FOUND_CHARS {
                return Err(io::ErrorKind::WriteZero.into());
            }
            let accepted_bytes = (8 * MAX_FOUND_CHARS).min(bytes.len());
            self.0.extend_from_slice(&bytes[..accepted_bytes]);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut writer = BoundedWriter(Vec::new());
    // An error only means that enough was written.
    let _ = serde_json::to_writer(&mut writer, value);
    String::from_utf8_lossy(&writer.0).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_ends_at_its_bound_and_says_so() {
        let mut findings = FindingCollector::default();
        for _ in 0..MAX_FINDINGS - 1 {
            findings.add(&rules::SKILL_TEXT, &JsonPointer::Root, "x");
        }
        assert_eq!(findings.findings.len(), MAX_FINDINGS - 1);
        assert!(findings.findings.iter().all(|f| f.rule == "skill.text"));
        findings.add(&rules::SKILL_TEXT, &JsonPointer::Root, "x");
        findings.add(&rules::SKILL_TEXT, &JsonPointer::Root, "x");
        let list = findings.into_findings();
        assert_eq!(list.len(), MAX_FINDINGS);
        assert_eq!(list[MAX_FINDINGS - 1].rule, "findings.cut");
    }

    #[test]
    fn what_was_found_is_short_and_visible() {
        let found = escape_found_text(&format!("a\u{202e}b\u{1b}{}", "c".repeat(500)));
        assert!(found.starts_with("a\\u{202e}b\\u{1b}ccc"));
        assert!(found.ends_with('…'));
        assert_eq!(found.chars().count(), MAX_FOUND_CHARS);
        assert_eq!(escape_found_text("kurz"), "kurz");
    }

    #[test]
    fn quoting_a_huge_value_writes_only_its_beginning() {
        let huge = Value::Array(vec![Value::from("x".repeat(1_000)); 10_000]);
        assert!(json_excerpt(&huge).len() < 20 * MAX_FOUND_CHARS);
        assert_eq!(json_excerpt(&Value::Null), "null");
    }
}
