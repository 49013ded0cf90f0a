//! Reads every card of `data/<family>/` and compares all results with the `.expected.json` beside it. `UPDATE_EXPECT=1`
//! rewrites these files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use a2a_card::{
    CardFamily, all_findings, auth_labels, bytes_digest, capability_labels, content_digest,
    parse_card, security_sentences, signature_state, signature_summary, skill_tags,
};
use serde_json::{Value, json};

/// The cards of one folder, without their expectation files.
fn cards(folder: &Path) -> Vec<PathBuf> {
    let mut cards: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".json") && !name.ends_with(".expected.json")
        })
        .collect();
    cards.sort();
    cards
}

/// All results about a card.
fn summary(bytes: &[u8]) -> Value {
    let digests = json!({"raw": bytes_digest(bytes), "content": content_digest(bytes)});
    match parse_card(bytes) {
        Err(error) => json!({"error": error.to_string(), "digests": digests}),
        Ok(parsed) => json!({
            "family": parsed.family.as_str(),
            "reason": parsed.reason,
            "card": parsed.card,
            "findings": all_findings(&parsed, bytes),
            "auth": auth_labels(&parsed.card),
            "security": security_sentences(&parsed.card),
            "tags": skill_tags(&parsed.card),
            "capabilities": capability_labels(&parsed.card),
            "signature": signature_state(&parsed.card).as_str(),
            "signing_summary": signature_summary(&parsed.card),
            "digests": digests,
        }),
    }
}

#[test]
fn every_family_reads_as_expected() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let folders = CardFamily::ALL
        .map(CardFamily::as_str)
        .into_iter()
        .chain(["refused"]);
    for folder in folders {
        let cards = cards(&data.join(folder));
        assert!(!cards.is_empty(), "{folder} has a card of its own");
        for path in cards {
            let told = summary(&std::fs::read(&path).unwrap());
            let family = told.get("family").and_then(Value::as_str);
            assert_eq!(family.unwrap_or("refused"), folder, "{}", path.display());
            let expected = path.with_extension("expected.json");
            if update {
                let text = serde_json::to_string_pretty(&told).unwrap();
                std::fs::write(&expected, text + "\n").unwrap();
                continue;
            }
            let bytes = std::fs::read(&expected).unwrap_or_default();
            if serde_json::from_slice::<Value>(&bytes).ok().as_ref() != Some(&told) {
                wrong.push(format!("{}:\n{told:#}", path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "these differ; look at them, then run with UPDATE_EXPECT=1:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_fixtures_show_nearly_every_rule() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut seen = std::collections::BTreeSet::new();
    for path in cards(&data.join("refused")) {
        let error = parse_card(&std::fs::read(&path).unwrap()).unwrap_err();
        seen.insert(error.rule().id.to_owned());
    }
    for family in CardFamily::ALL {
        for path in cards(&data.join(family.as_str())) {
            let bytes = std::fs::read(&path).unwrap();
            let parsed = parse_card(&bytes).unwrap();
            let findings = all_findings(&parsed, &bytes).into_iter();
            seen.extend(findings.map(|finding| finding.rule));
        }
    }
    // The first rules need bytes or sizes that a fixture cannot hold: `bounds.rs` has them. The next need facts from
    // outside the card, or are tested with the linter; the last need keys. Conversions have fixtures of their own.
    let elsewhere = [
        "document.too-large",
        "document.too-deep",
        "findings.cut",
        "json.bom",
        "text.too-long",
        "list.cut",
        "signature.count",
        "endpoint.not-agent",
        "endpoint.other-domain",
        "endpoint.relative",
        "version.alone",
        "version.kept",
        "signature.uncovered",
        "signature.uncovered-address",
        "signature.uncovered-security",
        "text.instructs",
    ];
    let unseen: Vec<&str> = a2a_card::all_rules()
        .iter()
        .map(|rule| rule.id)
        .filter(|id| !id.starts_with("convert."))
        .filter(|id| !seen.contains(*id) && !elsewhere.contains(id))
        .collect();
    assert!(unseen.is_empty(), "no fixture breaks {unseen:?}");
}
