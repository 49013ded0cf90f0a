//! Converts real cards and loads the results with the SDKs of the protocol.
//!
//! The cards are not in the repository, as `corpus.rs` describes; `A2A_REGISTRY_TEST_PY1` (a2a-sdk 1.3.0) and
//! `A2A_REGISTRY_TEST_PY03` (0.3.26) name the Python interpreters that have an SDK. If cards or SDKs are missing, the
//! tests print a note and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use a2a_card::{
    CONVERTED_EXTENSION, ConversionTarget, ConvertedCard, ParsedCard, Severity, UNKNOWN_BINDING,
    convert_card, parse_card,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Minimum share of callable cards that the SDK of the target version must load, in percent.
const WANTED_PERCENT: usize = 95;

/// Result of loading one card with the SDK.
#[derive(Deserialize)]
struct LoadResult {
    name: String,
    error: Option<String>,
    read: Option<Value>,
    client: Option<String>,
    no_client: Option<String>,
}

/// The value of an environment variable; `None`, with a loud note, if it is not set.
fn named(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable);
    if value.is_none() {
        eprintln!("SKIPPED: {variable} is not set");
    }
    value.map(PathBuf::from)
}

/// All callable cards of the corpus, converted, by file name.
fn converted(target: ConversionTarget) -> Option<BTreeMap<String, ConvertedCard>> {
    let originals = originals()?.into_iter();
    Some(
        originals
            .map(|(name, bytes)| (name, convert_card(&parse_card(&bytes).unwrap(), target)))
            .collect(),
    )
}

/// All callable cards of the corpus, by file name.
fn originals() -> Option<BTreeMap<String, Vec<u8>>> {
    let shared = std::env::var_os("A2A_REGISTRY_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let mut all = BTreeMap::new();
    for folder in ["cards", "signed"].map(|name| shared.join(name)) {
        if !folder.is_dir() {
            eprintln!("SKIPPED: no folder {}", folder.display());
            return None;
        }
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "json") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let is_callable = |parsed: ParsedCard| {
                let mut interfaces = parsed.card.interfaces.iter();
                interfaces.any(|one| one.binding != UNKNOWN_BINDING)
            };
            if parse_card(&bytes).is_ok_and(is_callable) {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                all.insert(name, bytes);
            }
        }
    }
    assert!(all.len() > 50, "{} callable cards", all.len());
    Some(all)
}

/// Passes all cards to one process of the SDK, and reads its results.
fn load(
    python: &Path,
    target: ConversionTarget,
    cards: &BTreeMap<String, Value>,
) -> Vec<LoadResult> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/load_cards.py");
    let mut process = Command::new(python)
        .arg(script)
        .arg(target.as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
    let mut input = process.stdin.take().unwrap();
    let lines: String = cards
        .iter()
        .map(|(name, card)| format!("{}\n", json!({"name": name, "card": card})))
        .collect();
    // The process writes results while it still reads, so the input needs a thread of its own: else both could block.
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = process.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The converted cards as JSON.
fn documents(cards: &BTreeMap<String, ConvertedCard>) -> BTreeMap<String, Value> {
    let documents = cards.iter();
    documents
        .map(|(name, converted)| (name.clone(), Value::Object(converted.card.clone())))
        .collect()
}

/// Prints how many cards were loaded and why others were not; fails below the wanted share.
fn report(target: ConversionTarget, answers: &[LoadResult]) {
    let refused: Vec<&LoadResult> = answers.iter().filter(|a| a.error.is_some()).collect();
    let loaded = answers.len() - refused.len();
    let clients = answers.iter().filter(|a| a.client.is_some()).count();
    println!(
        "to {target}: the SDK loads {loaded} of {} cards ({} %) and has a client for {clients}",
        answers.len(),
        loaded * 100 / answers.len()
    );
    for answer in &refused {
        println!("  {}: {}", answer.name, answer.error.as_deref().unwrap());
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for answer in answers {
        if let Some(reason) = &answer.no_client {
            reasons.entry(reason).or_default().push(&answer.name);
        }
    }
    for (reason, names) in reasons {
        println!(
            "  no client for {}, {reason}: {}",
            names.len(),
            names.join(" ")
        );
    }
    assert!(
        loaded * 100 >= answers.len() * WANTED_PERCENT,
        "{loaded} of {}",
        answers.len()
    );
}

/// The elements of a member that is a list; empty if the member is missing.
fn elements<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// One member of every element of a list.
fn each(value: &Value, list: &str, name: &str) -> Vec<Value> {
    let elements = elements(value, list).iter();
    elements.map(|element| element[name].clone()).collect()
}

/// The names in a member that is an object, each with the names in its value, which for a wrapper is one.
fn kinds(value: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let Some(schemes) = value.get("securitySchemes").and_then(Value::as_object) else {
        return BTreeMap::new();
    };
    let names = |scheme: &Value| scheme.as_object().unwrap().keys().cloned().collect();
    schemes
        .iter()
        .map(|(name, scheme)| (name.clone(), names(scheme)))
        .collect()
}

/// Fails unless the object has all required members, and beside them only optional ones.
fn has_members(name: &str, object: &Value, required: &[&str], optional: &[&str]) {
    let object = object
        .as_object()
        .unwrap_or_else(|| panic!("{name}: {object}"));
    for member in required {
        let value = object.get(*member);
        let value = value.unwrap_or_else(|| panic!("{name}: no {member}"));
        assert!(!value.is_null(), "{name}: {member}");
    }
    for member in object.keys() {
        let known = required.contains(&member.as_str()) || optional.contains(&member.as_str());
        assert!(known, "{name}: unknown {member}");
    }
}

/// Fails if a list of media types is missing, empty or contains another type.
fn has_modes(name: &str, card: &Value) {
    for list in ["defaultInputModes", "defaultOutputModes"] {
        let modes = elements(card, list);
        assert!(!modes.is_empty(), "{name}: {list}");
        for mode in modes {
            assert!(mode.as_str().unwrap().contains('/'), "{name}: {mode}");
        }
    }
}

/// Fails unless the card is marked as converted.
fn is_marked(name: &str, card: &Value) {
    let mut uris = each(&card["capabilities"], "extensions", "uri");
    uris.retain(|uri| uri == CONVERTED_EXTENSION);
    assert_eq!(uris.len(), 1, "{name}");
}

/// Fails unless the card conforms strictly to 1.0.
fn is_1_0(name: &str, card: &Map<String, Value>) {
    let card = &Value::Object(card.clone());
    let required = [
        "name",
        "description",
        "supportedInterfaces",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ];
    let optional = [
        "provider",
        "documentationUrl",
        "iconUrl",
        "securitySchemes",
        "securityRequirements",
    ];
    has_members(name, card, &required, &optional);
    has_modes(name, card);
    is_marked(name, card);
    let interfaces = elements(card, "supportedInterfaces");
    assert!(!interfaces.is_empty(), "{name}");
    for interface in interfaces {
        let required = ["url", "protocolBinding", "protocolVersion"];
        has_members(name, interface, &required, &["tenant"]);
        let version = interface["protocolVersion"].as_str().unwrap();
        assert_eq!(version.matches('.').count(), 1, "{name}: {version}");
    }
    let capabilities = [
        "streaming",
        "pushNotifications",
        "extensions",
        "extendedAgentCard",
    ];
    has_members(name, &card["capabilities"], &[], &capabilities);
    let skills = elements(card, "skills");
    assert!(!skills.is_empty(), "{name}");
    for skill in skills {
        let required = ["id", "name", "description", "tags"];
        let optional = [
            "examples",
            "inputModes",
            "outputModes",
            "securityRequirements",
        ];
        has_members(name, skill, &required, &optional);
        for list in [
            "tags",
            "examples",
            "inputModes",
            "outputModes",
            "securityRequirements",
        ] {
            let empty = skill.get(list).is_some_and(|list| list == &json!([]));
            assert!(!empty, "{name}: {list}");
        }
    }
    for (scheme, wrappers) in kinds(card) {
        assert_eq!(wrappers.len(), 1, "{name}: {scheme} {wrappers:?}");
        let wrapper = wrappers.first().unwrap();
        assert!(wrapper.ends_with("SecurityScheme"), "{name}: {wrapper}");
    }
}

/// Fails unless the card conforms strictly to 0.3.
fn is_0_3(name: &str, card: &Map<String, Value>) {
    let card = &Value::Object(card.clone());
    let required = [
        "protocolVersion",
        "name",
        "description",
        "url",
        "preferredTransport",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ];
    let optional = [
        "additionalInterfaces",
        "provider",
        "documentationUrl",
        "iconUrl",
        "securitySchemes",
        "security",
        "supportsAuthenticatedExtendedCard",
    ];
    has_members(name, card, &required, &optional);
    has_modes(name, card);
    is_marked(name, card);
    for interface in elements(card, "additionalInterfaces") {
        has_members(name, interface, &["url", "transport"], &[]);
    }
    let capabilities = [
        "streaming",
        "pushNotifications",
        "stateTransitionHistory",
        "extensions",
    ];
    has_members(name, &card["capabilities"], &[], &capabilities);
    for skill in elements(card, "skills") {
        let required = ["id", "name", "description", "tags"];
        let optional = ["examples", "inputModes", "outputModes", "security"];
        has_members(name, skill, &required, &optional);
    }
    for (scheme, members) in kinds(card) {
        assert!(members.contains("type"), "{name}: {scheme}");
    }
}

/// The members that must be equal in the card as written and as the SDK of 1.0 read it.
fn essence_1_0(card: &Value) -> Value {
    json!({
        "name": card["name"],
        "interfaces": each(card, "supportedInterfaces", "url"),
        "bindings": each(card, "supportedInterfaces", "protocolBinding"),
        "versions": each(card, "supportedInterfaces", "protocolVersion"),
        "skills": each(card, "skills", "id"),
        "schemes": kinds(card),
        "requirements": elements(card, "securityRequirements"),
    })
}

/// The members that must be equal in the card as written and as the SDK of 0.3 read it.
fn essence_0_3(card: &Value) -> Value {
    json!({
        "name": card["name"],
        "url": card["url"],
        "transport": card["preferredTransport"],
        "version": card["protocolVersion"],
        "additional": elements(card, "additionalInterfaces"),
        "skills": each(card, "skills", "id"),
        "schemes": card.get("securitySchemes"),
        "requirements": elements(card, "security"),
    })
}

/// Whether a client with both JSON bindings and no version before 0.3 finds an interface.
fn has_interface(card: &Map<String, Value>) -> bool {
    let card = Value::Object(card.clone());
    elements(&card, "supportedInterfaces")
        .iter()
        .any(|interface| {
            let version = interface["protocolVersion"].as_str().unwrap();
            let binding = interface["protocolBinding"].as_str().unwrap();
            matches!(binding, "JSONRPC" | "HTTP+JSON") && !matches!(version, "0.0" | "0.1" | "0.2")
        })
}

#[test]
fn the_1_0_sdk_loads_cards_converted_to_1_0() {
    let Some(cards) = converted(ConversionTarget::V1_0) else {
        return;
    };
    for (name, converted) in &cards {
        is_1_0(name, &converted.card);
    }
    let Some(python) = named("A2A_REGISTRY_TEST_PY1") else {
        return;
    };
    let answers = load(&python, ConversionTarget::V1_0, &documents(&cards));
    assert_eq!(answers.len(), cards.len());
    for answer in &answers {
        let Some(read) = &answer.read else { continue };
        let card = &cards[&answer.name].card;
        let written = essence_1_0(&Value::Object(card.clone()));
        assert_eq!(essence_1_0(read), written, "{}", answer.name);
        assert_eq!(
            answer.client.is_some(),
            has_interface(card),
            "{}",
            answer.name
        );
    }
    report(ConversionTarget::V1_0, &answers);
}

#[test]
fn no_card_loses_its_client_by_being_converted_to_1_0() {
    let Some(originals) = originals() else {
        return;
    };
    let Some(python) = named("A2A_REGISTRY_TEST_PY1") else {
        return;
    };
    // The SDK reads texts as UTF-8 only; a card that its JSON parser rejects has no clients to lose.
    let readable: BTreeMap<String, Value> = originals
        .iter()
        .filter_map(|(name, bytes)| Some((name.clone(), serde_json::from_slice(bytes).ok()?)))
        .collect();
    let cards: BTreeMap<String, ConvertedCard> = originals
        .iter()
        .map(|(name, bytes)| {
            let converted = convert_card(&parse_card(bytes).unwrap(), ConversionTarget::V1_0);
            (name.clone(), converted)
        })
        .collect();
    let clients = |cards: &BTreeMap<String, Value>| -> BTreeSet<String> {
        let answers = load(&python, ConversionTarget::V1_0, cards).into_iter();
        answers
            .filter(|answer| answer.client.is_some())
            .map(|answer| answer.name)
            .collect()
    };
    let before = clients(&readable);
    let after = clients(&documents(&cards));
    println!(
        "of {} cards the SDK of 1.0 has a client for {} as published and for {} as converted",
        cards.len(),
        before.len(),
        after.len()
    );
    let lost: Vec<&String> = before.difference(&after).collect();
    assert!(lost.is_empty(), "{}: {lost:?}", lost.len());
    for (name, converted) in &cards {
        let mut findings = converted.findings.iter();
        let told = findings.any(|finding| finding.rule == "convert.no-client");
        assert_ne!(after.contains(name), told, "{name}: {:?}", converted.card);
    }
}

#[test]
fn the_0_3_sdk_loads_cards_converted_to_0_3() {
    let Some(cards) = converted(ConversionTarget::V0_3) else {
        return;
    };
    for (name, converted) in &cards {
        is_0_3(name, &converted.card);
    }
    let Some(python) = named("A2A_REGISTRY_TEST_PY03") else {
        return;
    };
    let answers = load(&python, ConversionTarget::V0_3, &documents(&cards));
    assert_eq!(answers.len(), cards.len());
    for answer in &answers {
        let Some(read) = &answer.read else { continue };
        let card = &cards[&answer.name].card;
        let written = essence_0_3(&Value::Object(card.clone()));
        assert_eq!(essence_0_3(read), written, "{}", answer.name);
    }
    report(ConversionTarget::V0_3, &answers);
}

#[test]
fn what_conversions_of_real_cards_find() {
    for target in ConversionTarget::ALL {
        let Some(cards) = converted(target) else {
            return;
        };
        let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
        let mut broken = 0;
        for converted in cards.values() {
            let ids: BTreeSet<&str> = converted.findings.iter().map(|f| f.rule.as_str()).collect();
            let error = |f: &a2a_card::Finding| f.severity == Severity::Error;
            broken += usize::from(converted.findings.iter().any(error));
            for id in ids {
                *rules.entry(id).or_default() += 1;
            }
            assert!(
                !converted
                    .findings
                    .iter()
                    .any(|f| f.rule == "convert.no-address")
            );
        }
        println!("to {target}: {} cards, {broken} with errors", cards.len());
        for (rule, count) in rules {
            println!("  {rule:<28}{count:>4}");
        }
    }
}
