//! Rules: what they require, their severity, and how to fix a breach.

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// The severity of a finding.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// For information; nothing is wrong.
        Info = "info",
        /// It works today, but some clients may fail.
        Warning = "warning",
        /// The card breaks a rule of its own version.
        Error = "error",
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

/// Defines a table of rules, with a constant for each. A row has the rule's identifier, its severity and its section,
/// then what it requires, then how to fix a breach.
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
