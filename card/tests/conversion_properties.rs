//! Properties of conversions, on our own fixtures and on real cards, with parts exchanged, removed and replaced at
//! random. Real cards are read as `corpus.rs` describes; without them the fixtures are used.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::LazyLock;

use a2a_card::{
    CONVERTED_EXTENSION, ConversionTarget, ConvertedCard, ParsedCard, convert_card, convert_to_0_3,
    convert_to_1_0, parse_card,
};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// All readable cards.
static CARDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("A2A_REGISTRY_SHARED")
        .map_or_else(|| package.join("../../shared"), Into::into);
    let mut cards = Vec::new();
    for folder in [
        package.join("tests"),
        shared.join("cards"),
        shared.join("signed"),
    ] {
        if folder.is_dir() {
            collect(&folder, &mut cards);
        } else {
            eprintln!("SKIPPED: no folder {}", folder.display());
        }
    }
    assert!(cards.len() > 20, "{} cards", cards.len());
    cards
});

/// Adds the readable cards of a folder and its subfolders.
fn collect(folder: &Path, cards: &mut Vec<Value>) {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, cards);
        } else if path.extension().is_some_and(|kind| kind == "json") {
            let bytes = std::fs::read(&path).unwrap();
            if parse_card(&bytes).is_ok() {
                cards.extend(serde_json::from_slice::<Value>(&bytes));
            }
        }
    }
}

/// A change at one place of a card.
#[derive(Debug, Clone)]
enum Mutation {
    Remove,
    Replace(Value),
    /// Puts the value into a list, twice.
    Double,
    /// Replaces the value by a place of another card.
    Graft(Index, Vec<Index>),
}

fn change() -> impl Strategy<Value = Mutation> {
    let odd = proptest::sample::select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(""),
        json!(" \u{a0}İ "),
        json!("none"),
        json!("apiKey"),
        json!("0.3"),
        json!("1.0"),
        json!("text/plain"),
        json!("x".repeat(1_030)),
        json!(format!("{} y", "x".repeat(1_023))),
        json!([]),
        json!({}),
        json!([{}]),
        json!({"": {}}),
        json!([""]),
        json!({"schemes": {"schemes": []}}),
        json!([{"uri": CONVERTED_EXTENSION, "params": {"from": "0.1"}}]),
    ]);
    prop_oneof![
        1 => Just(Mutation::Remove),
        2 => odd.prop_map(Mutation::Replace),
        1 => Just(Mutation::Double),
        3 => (any::<Index>(), way()).prop_map(|(card, way)| Mutation::Graft(card, way)),
    ]
}

/// A path from the root of a card: which child, as long as there are any.
fn way() -> impl Strategy<Value = Vec<Index>> {
    proptest::collection::vec(any::<Index>(), 1..5)
}

/// The place at the end of a path.
fn walk<'a>(mut value: &'a mut Value, way: &[Index]) -> &'a mut Value {
    for step in way {
        let children = match value {
            Value::Object(members) => members.len(),
            Value::Array(list) => list.len(),
            _ => 0,
        };
        if children == 0 {
            return value;
        }
        let child = step.index(children);
        value = match value {
            Value::Object(members) => members.values_mut().nth(child).unwrap(),
            Value::Array(list) => &mut list[child],
            _ => unreachable!("it has children"),
        };
    }
    value
}

/// A card after a few changes; its name may be lost.
fn changed() -> impl Strategy<Value = Value> {
    let changes = proptest::collection::vec((way(), change()), 0..6);
    (any::<Index>(), changes).prop_map(|(which, changes)| {
        let mut card = which.get(&CARDS).clone();
        for (way, change) in changes {
            let place = walk(&mut card, &way);
            *place = match change {
                Mutation::Remove => Value::Null,
                Mutation::Replace(value) => value,
                Mutation::Double => json!([place.clone(), place.clone()]),
                Mutation::Graft(other, way) => walk(&mut other.get(&CARDS).clone(), &way).clone(),
            };
        }
        card
    })
}

/// The converted card, read again.
fn read(converted: &ConvertedCard) -> ParsedCard {
    parse_card(&serde_json::to_vec(&converted.card).unwrap()).unwrap()
}

/// Whether a conversion reported a violation of one of these rules.
fn lost(converted: &ConvertedCard, rules: &[&str]) -> bool {
    let mut findings = converted.findings.iter();
    findings.any(|finding| rules.contains(&finding.rule.as_str()))
}

/// The card without some of its members.
fn without(converted: &ConvertedCard, members: &[&str]) -> Value {
    let mut card = converted.card.clone();
    card.retain(|name, _| !members.contains(&name.as_str()));
    Value::Object(card)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn converting_again_changes_nothing(card in changed()) {
        let Ok(parsed) = parse_card(card.to_string().as_bytes()) else { return Ok(()) };
        for target in ConversionTarget::ALL {
            let converted = convert_card(&parsed, target);
            let again = read(&converted);
            prop_assert_eq!(&convert_card(&again, target).card, &converted.card, "to {}", target);
            // A converted card has no findings, except about the publisher's own values.
            let own = ["card.no-address", "interface.binding-unknown", "text.hidden"];
            let findings = again.findings.iter().map(|f| (f.rule.as_str(), f.pointer.as_str()));
            let odd: Vec<_> = findings.filter(|(rule, _)| !own.contains(rule)).collect();
            prop_assert_eq!(odd, [], "to {}", target);
            prop_assert!(!converted.card.contains_key("signatures"));
            let extensions = converted.card["capabilities"]["extensions"].as_array().unwrap();
            let marks = extensions.iter().filter(|e| e["uri"] == CONVERTED_EXTENSION);
            prop_assert_eq!(marks.count(), 1);
        }
    }

    #[test]
    fn what_both_versions_say_comes_back(card in changed()) {
        let Ok(parsed) = parse_card(card.to_string().as_bytes()) else { return Ok(()) };

        let new = convert_to_1_0(&parsed);
        let old = convert_to_0_3(&read(&new));
        let new_again = convert_to_1_0(&read(&old));
        let mut spared = Vec::new();
        if lost(&old, &["convert.interface", "convert.tenant"]) {
            spared.push("supportedInterfaces");
            let mut told = read(&new).card.interfaces;
            for interface in &mut told {
                interface.tenant = None;
            }
            for interface in read(&new_again).card.interfaces {
                prop_assert!(told.contains(&interface), "{:?}", interface);
            }
        }
        if lost(&old, &["convert.flow"]) {
            spared.push("securitySchemes");
        }
        prop_assert_eq!(without(&new_again, &spared), without(&new, &spared));

        let old = convert_to_0_3(&parsed);
        let new = convert_to_1_0(&read(&old));
        let old_again = convert_to_0_3(&read(&new));
        let mut spared = Vec::new();
        if lost(&new, &["convert.flow"]) {
            spared.push("securitySchemes");
        }
        if lost(&new, &["convert.default"]) {
            spared.push("skills");
        }
        if lost(&new, &["convert.state-history"]) {
            spared.push("capabilities");
            let mut capabilities = old.card["capabilities"].clone();
            capabilities.as_object_mut().unwrap().remove("stateTransitionHistory");
            prop_assert_eq!(&old_again.card["capabilities"], &capabilities);
        }
        prop_assert_eq!(without(&old_again, &spared), without(&old, &spared));
    }

    #[test]
    fn nobody_is_asked_for_less(card in changed()) {
        let Ok(parsed) = parse_card(card.to_string().as_bytes()) else { return Ok(()) };
        // Apart from schemes that require nothing, every alternative names the same schemes.
        let open = |name: &String| {
            let schemes = &parsed.card.security_schemes;
            let named = schemes.iter().find(|scheme| scheme.name == *name);
            named.is_some_and(|scheme| scheme.kind == a2a_card::SchemeKind::None)
        };
        let mut wanted: Vec<Vec<(String, Vec<String>)>> = Vec::new();
        for requirement in &parsed.card.security {
            let mut schemes = requirement.schemes.clone();
            schemes.retain(|(name, _)| !open(name));
            if !wanted.contains(&schemes) {
                wanted.push(schemes);
            }
        }
        for target in ConversionTarget::ALL {
            let security = read(&convert_card(&parsed, target)).card.security;
            let told: Vec<_> = security.into_iter().map(|r| r.schemes).collect();
            prop_assert_eq!(&told, &wanted, "to {}", target);
        }
    }
}
