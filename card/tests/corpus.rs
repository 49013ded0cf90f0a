//! Reads real cards, which are not in the repository: folders `cards` and `signed` of the folder that
//! `A2A_REGISTRY_SHARED` names, by default `../../shared` from this package. Without that folder the tests print a note
//! and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use a2a_card::{
    CardFamily, ParseError, SignatureState, UNKNOWN_BINDING, all_findings, bytes_digest,
    content_digest, diff_cards, parse_card, signature_state, signature_summary,
};
use serde_json::Value;

/// The folder of that name; `None`, with a loud note, if it is missing.
fn folder(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("A2A_REGISTRY_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let folder = shared.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "SKIPPED: no folder {}; set A2A_REGISTRY_SHARED to read real cards",
        folder.display()
    );
    None
}

/// The JSON files of a folder, sorted by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Whether a document has a name at the place of a card's name, independently of the reader.
fn has_name(document: &Value) -> bool {
    let text = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .is_some_and(|text| !text.trim().is_empty())
    };
    text(document.get("name"))
        || text(document.get("agent_name"))
        || ["agent", "identity"]
            .iter()
            .any(|nest| text(document.get(nest).and_then(|inner| inner.get("name"))))
}

/// Counts, the largest first.
fn ranked(counts: BTreeMap<String, usize>) -> Vec<(String, usize)> {
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

#[test]
fn every_named_object_of_the_corpus_is_read() {
    let Some(folder) = folder("cards") else {
        return;
    };
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let listed = manifest.lines().skip(1).filter(|l| !l.is_empty()).count();
    let files = files(&folder);
    assert_eq!(
        files.len(),
        listed,
        "the folder has what its manifest lists"
    );

    let known: Vec<&str> = a2a_card::all_rules().iter().map(|rule| rule.id).collect();
    let mut families: BTreeMap<String, usize> = BTreeMap::new();
    let mut rules: BTreeMap<String, usize> = BTreeMap::new();
    let (mut refused, mut callable, mut clean) = (Vec::new(), 0, 0);
    for (name, bytes) in &files {
        let json: Option<Value> = serde_json::from_slice(bytes).ok();
        let readable = json.as_ref().is_some_and(has_name);
        let parsed = match parse_card(bytes) {
            Ok(parsed) => parsed,
            Err(error) => {
                assert!(!readable, "{name} has a name but: {error}");
                let wanted = match json {
                    None => matches!(error, ParseError::NotJson { .. }),
                    Some(_) => matches!(error, ParseError::NotACard { .. }),
                };
                assert!(wanted, "{name}: {error}");
                refused.push(format!("{name}: {error}"));
                continue;
            }
        };
        assert!(!parsed.card.name.is_empty(), "{name}");
        let stored = serde_json::to_string(&parsed.card).unwrap();
        let again = serde_json::from_str(&stored).unwrap();
        assert_eq!(parsed.card, again, "{name}: the model survives storage");
        let mut interfaces = parsed.card.interfaces.iter();
        callable += usize::from(interfaces.any(|one| one.binding != UNKNOWN_BINDING));
        *families.entry(parsed.family.to_string()).or_default() += 1;
        let mut here: Vec<String> = all_findings(&parsed, bytes)
            .into_iter()
            .map(|finding| finding.rule)
            .collect();
        here.sort();
        here.dedup();
        clean += usize::from(here.is_empty());
        for rule in here {
            assert!(known.contains(&rule.as_str()), "{name}: unlisted {rule}");
            *rules.entry(rule).or_default() += 1;
        }
    }

    let read = files.len() - refused.len();
    println!("corpus {}", folder.display());
    println!(
        "read {read} of {}, callable {callable}, without findings {clean}",
        files.len()
    );
    for (family, count) in ranked(families) {
        println!("  {family:<17}{count:>4}  {:>3} %", count * 100 / read);
    }
    println!("the ten most common findings, in cards:");
    for (rule, count) in ranked(rules).into_iter().take(10) {
        println!("  {rule:<28}{count:>4}");
    }
    println!("refused:\n  {}", refused.join("\n  "));
}

#[test]
fn every_change_of_a_real_card_is_seen() {
    let Some(folder) = folder("cards") else {
        return;
    };
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    for (place, (name, bytes)) in files(&folder).into_iter().enumerate() {
        if parse_card(&bytes).is_err() {
            continue;
        }
        let same = diff_cards(&bytes, &bytes, None).unwrap();
        assert!(same.changes.is_empty(), "{name}: {same:#?}");
        let Ok(card) = serde_json::from_slice::<Value>(&bytes) else {
            continue;
        };
        let members: Vec<String> = card.as_object().unwrap().keys().cloned().collect();
        // A quarter of the members of each card, another quarter each time.
        for member in members.into_iter().skip(place % 4).step_by(4) {
            let mut without = card.clone();
            without.as_object_mut().unwrap().shift_remove(&member);
            let mut other = card.clone();
            other[&member] = Value::from("something else 1");
            for after in [without, other].iter().map(Value::to_string) {
                if parse_card(after.as_bytes()).is_err() {
                    continue;
                }
                let forth = diff_cards(&bytes, after.as_bytes(), None).unwrap();
                assert!(!forth.changes.is_empty(), "{name}: {member}");
                *classes.entry(forth.class.to_string()).or_default() += 1;
            }
        }
    }
    println!("a member removed or replaced: {:?}", ranked(classes));
}

#[test]
fn cards_of_the_sdks_are_read() {
    let Some(folder) = folder("signed") else {
        return;
    };
    let cards: BTreeMap<String, Vec<u8>> = files(&folder)
        .into_iter()
        .filter(|(name, _)| name != "jwks.json")
        .collect();
    assert!(cards.len() > 5, "{:?}", cards.keys());
    for (name, bytes) in &cards {
        let parsed = parse_card(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let card = &parsed.card;
        println!(
            "{name}: {}, {} interfaces, {} findings",
            parsed.family,
            card.interfaces.len(),
            parsed.findings.len()
        );
        assert!(!card.interfaces.is_empty(), "{name}");
        assert_eq!(card.skills[0].id, "echo", "{name}");
        assert_ne!(
            content_digest(bytes),
            bytes_digest(bytes),
            "{name} is I-JSON"
        );
        let signed = !card.signatures.is_empty();
        let state = signature_state(card);
        assert_eq!(state == SignatureState::Unknown, signed, "{name}");
        assert_eq!(signature_summary(card).contains("ES256"), signed, "{name}");
    }
    let family = |name: &str| parse_card(&cards[name]).unwrap().family;
    assert_eq!(family("py02-jsonrpc.json"), CardFamily::V0_2);
    assert_eq!(family("py03-multi.json"), CardFamily::V0_3);
    assert_eq!(family("py1-signed.json"), CardFamily::V1_0);
    assert_eq!(family("py1-dual.json"), CardFamily::Dual);

    let dual = parse_card(&cards["py1-dual.json"]).unwrap().card;
    let told: Vec<_> = dual
        .interfaces
        .iter()
        .map(|i| (i.binding.as_str(), i.protocol_version.as_deref()))
        .collect();
    let wanted = [
        ("JSONRPC", Some("1.0")),
        ("HTTP+JSON", Some("1.0")),
        ("JSONRPC", Some("0.3")),
        ("HTTP+JSON", Some("0.3")),
    ];
    assert_eq!(told, wanted, "the flat members repeat the 0.3 entries");
}
