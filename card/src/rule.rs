//! Rules: what they require, their severity, and how to fix a violation.

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// The severity of a finding.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// For information; nothing is wrong.
        Info = "info",
        /// The card works today, but some clients may fail.
        Warning = "warning",
        /// The card violates a rule of its own version.
        Error = "error",
    }
}

/// One rule: what it requires, its severity, and how to fix a violation.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable identifier of the rule, `<subject>.<matter>`.
    pub id: &'static str,
    /// The severity of a violation.
    pub severity: Severity,
    /// The section of the specification that the rule follows, such as `1.0 §8.4`, or another standard.
    pub section: &'static str,
    /// The requirement, in one line.
    pub summary: &'static str,
    /// How to fix a violation, in one line.
    pub hint: &'static str,
}

/// Defines a table of rules, with a constant for each. A row has the rule's identifier, its severity and its section,
/// then the requirement, then how to fix a violation.
macro_rules! rule_table {
    (
        $(#[$meta:meta])*
        $table:ident:
        $($name:ident = $id:literal, $severity:ident, $section:literal, $summary:literal, $hint:literal;)+
    ) => {
        $(
            pub(crate) const $name: $crate::rule::Rule = $crate::rule::Rule {
                id: $id,
                severity: $crate::rule::Severity::$severity,
                section: $section,
                summary: $summary,
                hint: $hint,
            };
        )+

        $(#[$meta])*
        pub(crate) static $table: &[$crate::rule::Rule] = &[$($name),+];
    };
}

pub(crate) use rule_table;
