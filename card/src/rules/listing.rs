//! The listing of all rules, for people.

use super::rules;

/// All rules as a Markdown table: identifier, severity, section, what is wanted, how to mend a breach.
///
/// ```
/// assert!(a2a_card::rules_table().contains("| `endpoint.http` | warning |"));
/// ```
pub fn rules_table() -> String {
    let mut table = String::from(
        "| rule | severity | section | wanted | to mend it |\n|---|---|---|---|---|\n",
    );
    for rule in rules() {
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
    use super::*;

    #[test]
    fn every_rule_has_a_row_of_five_cells() {
        let table = rules_table();
        assert_eq!(table.lines().count(), rules().len() + 2);
        for line in table.lines() {
            let cells = line.replace("\\|", "").matches('|').count();
            assert_eq!(cells, 6, "{line}");
        }
    }
}
