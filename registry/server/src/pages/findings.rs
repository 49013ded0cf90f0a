//! Lint findings as pages show them, of an agent's card and of one that was pasted.

use a2a_registry_api::FindingView as Finding;

use crate::pages::text;
use crate::pages::text::LINE;

/// The first findings on a card, and how many more there are.
pub(crate) struct FindingsView {
    pub findings: Vec<FindingView>,
    pub more: usize,
}

/// One finding on a card.
pub(crate) struct FindingView {
    pub rule: String,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// The tone of its badge.
    pub tone: &'static str,
    pub pointer: String,
    /// Line and column, where they are known.
    pub place: Option<String>,
    pub found: String,
    pub wanted: String,
    pub hint: String,
    pub section: String,
}

impl FindingsView {
    /// The view of at most that many findings.
    pub fn new(findings: &[Finding], most: usize) -> Self {
        Self {
            more: findings.len().saturating_sub(most),
            findings: findings.iter().take(most).map(FindingView::new).collect(),
        }
    }
}

impl FindingView {
    fn new(finding: &Finding) -> Self {
        let (severity, tone) = match finding.severity.as_str() {
            "error" => ("error", "bad"),
            "warning" => ("warning", "warn"),
            _ => ("info", "plain"),
        };
        let place = finding.line.zip(finding.column);
        Self {
            rule: text::line(&finding.rule, LINE),
            severity,
            tone,
            pointer: text::line(&finding.pointer, LINE),
            place: place.map(|(line, column)| format!("line {line}, column {column}")),
            found: text::line(&finding.found, 200),
            wanted: text::line(&finding.wanted, 300),
            hint: text::line(&finding.hint, 500),
            section: text::line(&finding.section, LINE),
        }
    }
}
