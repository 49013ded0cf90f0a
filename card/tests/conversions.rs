//! Converts every card of `conversions/` in both directions and compares the results with the `.expected.json` beside
//! it. `UPDATE_EXPECT=1` rewrites these files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use a2a_card::{ConversionTarget, ConvertedCard, Severity, all_findings, convert_card, parse_card};
use serde_json::{Map, Value, json};

/// The cards, without their expectation files.
fn cards() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversions");
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

/// Converts the bytes of a card.
fn converted(bytes: &[u8], target: ConversionTarget) -> ConvertedCard {
    convert_card(&parse_card(bytes).unwrap(), target)
}

/// Both conversions with their findings.
fn summary(card: &[u8]) -> Value {
    let told = ConversionTarget::ALL.map(|target| {
        let ConvertedCard { card, findings } = converted(card, target);
        let findings: Vec<Value> = findings
            .iter()
            .map(|f| json!([f.severity, f.rule, f.pointer, f.found]))
            .collect();
        let told = json!({"card": card, "findings": findings});
        (target.as_str().to_owned(), told)
    });
    Value::Object(Map::from_iter(told))
}

#[test]
fn cards_are_converted_as_expected() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for path in cards() {
        let told = summary(&std::fs::read(&path).unwrap());
        let expected = path.with_extension("expected.json");
        if update {
            let text = serde_json::to_string_pretty(&told).unwrap();
            std::fs::write(&expected, text + "\n").unwrap();
            continue;
        }
        // Compared as text, because the order of the members matters.
        let text = serde_json::to_string_pretty(&told).unwrap() + "\n";
        if std::fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("{}:\n{told:#}", path.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "these differ; look at them, then run with UPDATE_EXPECT=1:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_rule_of_conversions_is_shown() {
    let mut unseen: BTreeSet<String> = a2a_card::all_rules()
        .iter()
        .map(|rule| rule.id.to_owned())
        .filter(|id| id.starts_with("convert."))
        .collect();
    assert!(unseen.len() > 10, "{unseen:?}");
    for path in cards() {
        let card = std::fs::read(&path).unwrap();
        for target in ConversionTarget::ALL {
            for finding in converted(&card, target).findings {
                unseen.remove(&finding.rule);
            }
        }
    }
    assert!(unseen.is_empty(), "no card breaks {unseen:?}");
}

#[test]
fn a_card_that_its_own_version_could_say_is_said_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversions");
    for (name, target, left_out) in [
        (
            "full-0.3.json",
            ConversionTarget::V0_3,
            &["signatures", "priceList"][..],
        ),
        ("only-1.0.json", ConversionTarget::V1_0, &[][..]),
    ] {
        let original = std::fs::read(folder.join(name)).unwrap();
        let mut wanted: Value = serde_json::from_slice(&original).unwrap();
        for member in left_out {
            wanted.as_object_mut().unwrap().remove(*member);
        }
        let mut card = Value::Object(converted(&original, target).card);
        let extensions = card["capabilities"]["extensions"].as_array_mut().unwrap();
        extensions.pop();
        if extensions.is_empty() {
            let capabilities = card["capabilities"].as_object_mut().unwrap();
            capabilities.remove("extensions");
        }
        assert_eq!(card, wanted, "{name}");
    }
}

#[test]
fn converted_cards_keep_the_rules_of_their_version() {
    for path in cards() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let card = std::fs::read(&path).unwrap();
        for target in ConversionTarget::ALL {
            let bytes = serde_json::to_vec(&converted(&card, target).card).unwrap();
            let parsed = parse_card(&bytes).unwrap();
            let errors = all_findings(&parsed, &bytes)
                .into_iter()
                .filter(|finding| finding.severity == Severity::Error);
            let broken: BTreeSet<String> = errors.map(|finding| finding.rule).collect();
            let wanted: &[&str] = match name.as_str() {
                "no-address.json" => &["card.no-address"],
                _ => &[],
            };
            let told = all_findings(&parsed, &bytes);
            assert!(
                broken.iter().eq(wanted),
                "{name} to {target}: {broken:?}: {told:#?}"
            );
        }
    }
}
