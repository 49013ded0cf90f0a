//! Lint findings as pages show them, of an agent's card and of one that was pasted.

use a2a_registry_api::FindingView as Finding;

use crate::pages::text;
use crate::pages::text::LINE;

/// The first findings on a card, those that are folded, and how many more there are.
pub(crate) struct FindingsView {
    pub findings: Vec<FindingView>,
    pub folded: Vec<FindingView>,
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
    /// Whether what was found is that a member is missing, so that it is no text of the card.
    pub is_missing: bool,
    pub wanted: String,
    pub hint: String,
    pub section: String,
}

impl FindingsView {
    /// The view of at most `most` findings, of which all but the first `seen` are folded.
    pub fn new(findings: &[Finding], seen: usize, most: usize) -> Self {
        let shown = |list: &[Finding]| list.iter().map(FindingView::new).collect();
        let (listed, left_out) = findings.split_at(findings.len().min(most));
        let (first, folded) = listed.split_at(listed.len().min(seen));
        Self {
            more: left_out.len(),
            findings: shown(first),
            folded: shown(folded),
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
            is_missing: finding.found.starts_with("no `"),
            found: text::line(&finding.found, 200),
            wanted: text::line(&finding.wanted, 300),
            hint: text::line(&finding.hint, 500),
            section: text::line(&finding.section, LINE),
        }
    }
}
