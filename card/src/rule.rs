//! Rules: what they require, their severity, and how to fix a breach.

use serde::{Deserialize, Serialize};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information; nothing is wrong.
    Info,
    /// It works today, but some clients may fail.
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

/// One rule: what it requires, its severity, and how to fix a breach.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable identifier of the rule, `<subject>.<matter>`.
    pub id: &'static str,
    /// The severity of a breach.
    pub severity: Severity,
    /// The section of the specification it follows, such as `1.0 §8.4`, or another standard.
    pub section: &'static str,
    /// The requirement, in one line.
    pub summary: &'static str,
    /// How to fix a breach, in one line.
    pub hint: &'static str,
}

impl Rule {
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
