//! What a rule says: what it asks, how much it matters and how to mend a breach.

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Works today, but clients may stumble.
    Warning,
    /// The card breaks a rule of its own version.
    Error,
}

impl Severity {
    /// The name used in JSON: `info`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One rule: what it asks, how much it matters and how to mend a breach.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable identifier, `<subject>.<matter>`.
    pub id: &'static str,
    /// How much a breach matters.
    pub severity: Severity,
    /// The section of the specification it follows, such as `1.0 §8.4`, or another standard.
    pub section: &'static str,
    /// What is wanted, in one line.
    pub summary: &'static str,
    /// How to mend a breach, in one line.
    pub hint: &'static str,
}

impl Rule {
    /// A rule, in the order of its table's columns.
    pub(crate) const fn new(
        id: &'static str,
        severity: Severity,
        section: &'static str,
        summary: &'static str,
        hint: &'static str,
    ) -> Self {
        Rule {
            id,
            severity,
            section,
            summary,
            hint,
        }
    }
}
