//! The rules that findings name: one table for what is not read at all, one for what reading notices, one for
//! what the linter checks, one for what conversions notice.

mod conversion;
mod listing;
mod reading;
mod refusal;

use std::sync::LazyLock;

pub(crate) use conversion::*;
pub use listing::rules_table;
pub(crate) use reading::*;

use crate::finding::{Findings, Severity};
use crate::lint::{self, Subject};
use crate::signature::SIGNATURE;

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
    /// Looks for breaches; `None` for a rule that the linter has no part in.
    pub(crate) check: Option<Check>,
}

impl Rule {
    /// Whether reading itself watches over the rule. The linter checks the others, but for those of
    /// conversions and those about verified signatures, which need keys.
    pub fn of_reading(&self) -> bool {
        READING.iter().any(|rule| rule.id == self.id)
    }
}

/// A rule that the linter has no part in: reading, a conversion or a verification watches over it.
const fn unchecked(
    id: &'static str,
    severity: Severity,
    section: &'static str,
    summary: &'static str,
    hint: &'static str,
) -> Rule {
    Rule {
        id,
        severity,
        section,
        summary,
        hint,
        check: None,
    }
}

/// Adds a finding of the rule for every breach in a card.
pub(crate) type Check = fn(&Subject<'_>, &Rule, &mut Findings);

/// Every rule there is: those that [`crate::ParseError`] names, those of reading, of the linter, of the
/// conversions, and those about verified signatures, each table in its own order.
///
/// ```
/// let rules = a2a_card::rules();
/// assert!(rules.iter().any(|rule| rule.id == "endpoint.http"));
/// ```
pub fn rules() -> &'static [Rule] {
    static ALL: LazyLock<Vec<Rule>> =
        LazyLock::new(|| [refusal::REFUSAL, READING, lint::LINT, CONVERSION, SIGNATURE].concat());
    &ALL
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_every_rule_is_told_in_full() {
        let ids: BTreeSet<_> = rules().iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), rules().len());
        for rule in rules() {
            assert!(rule.id.contains('.'), "{}", rule.id);
            for text in [rule.section, rule.summary, rule.hint] {
                assert!(!text.is_empty() && !text.contains('\n'), "{}", rule.id);
            }
        }
    }
}
