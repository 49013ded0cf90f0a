//! Linter on converted cards: no errors that the original does not have. Real cards are read as `corpus.rs` describes;
//! without them the fixtures are used.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::Path;

use a2a_card::{ConversionTarget, Finding, Severity, all_findings, convert_card, parse_card};

/// Adds every document below a folder.
fn documents(folder: &Path, all: &mut Vec<(String, Vec<u8>)>) {
    if !folder.is_dir() {
        eprintln!("SKIPPED: no folder {}", folder.display());
        return;
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, all);
        } else if path.extension().is_some_and(|kind| kind == "json") {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

/// The errors as (rule, finding) without pointers and rule numbers: a conversion moves members, and each version requires
/// its members by a rule of its own.
fn errors(findings: &[Finding]) -> BTreeSet<(String, String)> {
    findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| {
            let rule = finding
                .rule
                .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            // For a missing address the finding quotes other members, which differ between original and conversion.
            let found = if rule == "card.no-address" {
                ""
            } else {
                &finding.found
            };
            (rule.to_owned(), found.to_owned())
        })
        .collect()
}

#[test]
fn a_converted_card_has_no_error_that_the_original_did_not_have() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("A2A_REGISTRY_SHARED")
        .map_or_else(|| package.join("../../shared"), Into::into);
    let mut all = Vec::new();
    for folder in [
        package.join("tests"),
        shared.join("cards"),
        shared.join("signed"),
    ] {
        documents(&folder, &mut all);
    }
    let (mut converted, mut worse) = (0, Vec::new());
    for (name, bytes) in &all {
        let Ok(parsed) = parse_card(bytes) else {
            continue;
        };
        let before = errors(&all_findings(&parsed, bytes));
        for target in ConversionTarget::ALL {
            let bytes = serde_json::to_vec(&convert_card(&parsed, target).card).unwrap();
            let after = errors(&all_findings(&parse_card(&bytes).unwrap(), &bytes));
            let new: Vec<_> = after.difference(&before).collect();
            if !new.is_empty() {
                worse.push(format!("{name} as {target}: {new:?}"));
            }
            converted += 1;
        }
    }
    println!("{converted} conversions of {} documents", all.len());
    assert!(converted > 40, "{converted}");
    assert!(worse.is_empty(), "{}:\n{}", worse.len(), worse.join("\n"));
}
