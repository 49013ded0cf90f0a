//! Catalog of all rules, also as a table for people.

use std::sync::LazyLock;

use crate::lint::LINT_RULES;
use crate::parse_error::REFUSAL;
use crate::rule::Rule;
use crate::rules::{CONVERSION, READING};
use crate::signature::SIGNATURE;

/// All rules: those that [`crate::ParseError`] names, those of the reader, the linter and conversions, and those about
/// verified signatures, each table in its own order.
///
/// ```
/// let rules = a2a_card::all_rules();
/// assert!(rules.iter().any(|rule| rule.id == "endpoint.http"));
/// ```
pub fn all_rules() -> &'static [Rule] {
    static ALL_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let lint_rules: Vec<Rule> = LINT_RULES.iter().map(|row| row.rule).collect();
        [REFUSAL, READING, &lint_rules, CONVERSION, SIGNATURE].concat()
    });
    &ALL_RULES
}

/// All rules as a Markdown table: identifier, severity, section, summary, hint.
///
/// ```
/// assert!(a2a_card::rules_as_markdown().contains("| `endpoint.http` | warning |"));
/// ```
pub fn rules_as_markdown() -> String {
    let mut table =
        String::from("| rule | severity | section | requirement | fix |\n|---|---|---|---|---|\n");
    for rule in all_rules() {
        let cells = [rule.section, rule.summary, rule.hint].map(|text| text.replace('|', "\\|"));
        table.push_str(&format!(
            "| `{}` | {} | {} |\n",
            rule.id,
            rule.severity.as_str(),
            cells.join(" | ")
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_every_rule_is_told_in_full() {
        let ids: BTreeSet<_> = all_rules().iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), all_rules().len());
        for rule in all_rules() {
            assert!(rule.id.contains('.'), "{}", rule.id);
            for text in [rule.section, rule.summary, rule.hint] {
                assert!(!text.is_empty() && !text.contains('\n'), "{}", rule.id);
            }
        }
    }

    #[test]
    fn every_rule_has_a_row_of_five_cells() {
        let table = rules_as_markdown();
        assert_eq!(table.lines().count(), all_rules().len() + 2);
        for line in table.lines() {
            let cells = line.replace("\\|", "").matches('|').count();
            assert_eq!(cells, 6, "{line}");
        }
    }
}
