//! Chapters of the manual that follow other files: the runbook has a section for each alert, and the cookbook each
//! policy as it stands in its file.

use super::assert_tidy;
use super::tree::{read, repository_files};

#[test]
fn the_runbook_has_a_section_for_each_alert() {
    let rules = read("packaging/prometheus/alerts.yml");
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    let runbook = read("docs/operate/runbook.md");
    let sections: Vec<&str> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert!(!alerts.is_empty());
    assert_eq!(alerts, sections);
}

#[test]
fn the_cookbook_has_each_policy_as_in_its_file() {
    let cookbook = read("docs/govern/cookbook.md");
    let files = repository_files();
    let policies = files
        .iter()
        .filter(|path| path.starts_with("docs/policies/") && path.ends_with(".cedar"));
    let missing: Vec<String> = policies
        .filter(|path| !cookbook.contains(&format!("```cedar\n{}```\n", read(path))))
        .map(|path| format!("docs/govern/cookbook.md: {path} does not stand there word for word"))
        .collect();
    assert_tidy(&missing);
}
