//! Counts of how real cards are read, to compare two builds: `cargo test -p a2a-card --test counts -- --ignored --nocapture`.
//! The cards are those of the folder `cards` of `A2A_REGISTRY_SHARED`, by default `../../shared` from this package.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use a2a_card::{
    ParsedCard, Severity, all_findings, auth_labels, convert_to_0_3, convert_to_1_0, parse_card,
};

/// Rows of the table: what is counted, and whether a card counts.
type Row = (&'static str, fn(&ParsedCard) -> bool);

const ROWS: [Row; 8] = [
    ("listed", |_| true),
    ("with an address", |parsed| {
        !parsed.card.interfaces.is_empty()
    }),
    ("callable as 1.0", |parsed| {
        has_client(&convert_to_1_0(parsed).findings)
    }),
    ("callable as 0.3", |parsed| {
        has_client(&convert_to_0_3(parsed).findings)
    }),
    ("without skills", |parsed| parsed.card.skills.is_empty()),
    ("auth unknown", |parsed| {
        auth_labels(&parsed.card) == ["unknown"]
    }),
    ("auth none", |parsed| auth_labels(&parsed.card) == ["none"]),
    ("with words outside the model", |parsed| {
        !parsed.card.other_texts.is_empty()
    }),
];

/// Whether a client of the version can call the agent of a converted card.
fn has_client(findings: &[a2a_card::Finding]) -> bool {
    let no_client = ["convert.no-client", "convert.no-address"];
    !findings
        .iter()
        .any(|finding| no_client.contains(&finding.rule.as_str()))
}

#[test]
#[ignore = "a report on real cards"]
fn real_cards_are_counted() {
    let shared = std::env::var_os("A2A_REGISTRY_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        Into::into,
    );
    let mut counts = [0_usize; ROWS.len()];
    let (mut files, mut errors) = (0, 0);
    for entry in std::fs::read_dir(shared.join("cards")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).unwrap();
        let Ok(parsed) = parse_card(&bytes) else {
            continue;
        };
        let findings = all_findings(&parsed, &bytes);
        errors += usize::from(findings.iter().any(|f| f.severity == Severity::Error));
        for (count, (_, counts)) in counts.iter_mut().zip(ROWS) {
            *count += usize::from(counts(&parsed));
        }
    }
    println!("| {files} cards | count |\n|---|---|");
    for ((what, _), count) in ROWS.iter().zip(counts) {
        println!("| {what} | {count} |");
    }
    println!("| with an error finding | {errors} |");
}
