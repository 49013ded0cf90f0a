//! Properties of the diff that hold for any two cards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use a2a_card::ChangeClass::{self, Low};
use a2a_card::{
    AgentCard, CardDiff, MAX_CHANGES, Skill, content_digest, diff_cards, parse_card,
    signature_summary,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const OWNER: &str = "https://registry.agents-r-us.io/ext/owner/v1";

/// Cards of every protocol generation to start from.
const CARDS: [&str; 6] = [
    include_str!("data/0.1/weather.json"),
    include_str!("data/0.2/declared.json"),
    include_str!("data/0.3/multi.json"),
    include_str!("data/1.0/full.json"),
    include_str!("data/1.0+0.3/dual.json"),
    include_str!("data/snake-1.0/snake.json"),
];

/// Names and texts that have a meaning for readers of cards.
const WORDS: [&str; 40] = [
    "name",
    "url",
    "URL",
    "version",
    "tenant",
    "description",
    "provider",
    "organization",
    "skills",
    "id",
    "supportedInterfaces",
    "supported_interfaces",
    "additionalInterfaces",
    "preferredTransport",
    "protocolBinding",
    "protocolVersion",
    "protocol_version",
    "transport",
    "capabilities",
    "extensions",
    "uri",
    "required",
    "params",
    "account",
    "streaming",
    "securitySchemes",
    "securityRequirements",
    "security",
    "schemes",
    "list",
    "type",
    "tokenUrl",
    "scopes",
    "tags",
    "inputModes",
    "signatures",
    "documentationUrl",
    "authentication",
    "x-else",
    "a\u{0}1",
];

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(&WORDS[..]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        word().prop_map(Value::from),
        proptest::sample::select(vec![
            json!("https://evil.io/a2a"),
            json!("JSONRPC"),
            json!("1.0"),
            json!("0.3.0"),
            json!(OWNER),
            json!({"uri": OWNER}),
            json!({"url": "https://evil.io", "protocolBinding": "JSONRPC"}),
            json!({"type": "apiKey", "in": "header", "name": "X"}),
            json!([{"key": []}]),
            json!([{}]),
            json!({"id": "a", "name": "a", "security": [{}]}),
            json!("x\u{202e}"),
            json!(""),
            json!(1.5),
        ]),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((word(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// One change of a card: its place, its kind, and its values.
#[derive(Debug, Clone)]
struct Mutation {
    place: prop::sample::Index,
    kind: u8,
    name: String,
    value: Value,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    (any::<prop::sample::Index>(), 0..7_u8, word(), value()).prop_map(
        |(place, kind, name, value)| Mutation {
            place,
            kind,
            name,
            value,
        },
    )
}

/// Every list and object of a value, with the value itself.
fn places(value: &Value, at: String, all: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, format!("{at}/{name}"), all);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                places(value, format!("{at}/{index}"), all);
            }
        }
        _ => {}
    }
    all.push(at);
}

/// The card after the change.
fn apply(card: &Value, mutation: &Mutation) -> Value {
    let mut card = card.clone();
    let mut all = Vec::new();
    places(&card, String::new(), &mut all);
    let at: &String = mutation.place.get(&all);
    let place = card.pointer_mut(at).unwrap();
    let other = mutation.value.clone();
    match (place, mutation.kind) {
        (Value::Object(members), 0) => {
            members.insert(mutation.name.clone(), other);
        }
        (Value::Object(members), 1) => {
            let name = members.keys().next_back().cloned();
            name.map(|name| members.shift_remove(&name));
        }
        (Value::Object(members), 2) => {
            let last = members.keys().next_back().cloned();
            let value = last.and_then(|name| members.shift_remove(&name));
            value.map(|value| members.insert(mutation.name.clone(), value));
        }
        (Value::Array(list), 0) => list.push(other),
        (Value::Array(list), 1) => drop(list.pop()),
        (Value::Array(list), 2) => list.reverse(),
        (Value::Array(list), 3) => list.extend(list.first().cloned()),
        (Value::String(text), 4) => text.push(' '),
        (Value::String(text), 5) => *text = text.to_uppercase(),
        (Value::Bool(flag), 6) => *flag = !*flag,
        (place, _) if !at.is_empty() => *place = other,
        _ => {}
    }
    card["name"] = card
        .get("name")
        .filter(|n| n.is_string())
        .cloned()
        .unwrap_or(json!("A"));
    if card["name"]
        .as_str()
        .is_some_and(|name| name.trim().is_empty())
    {
        card["name"] = json!("A");
    }
    card
}

fn base() -> impl Strategy<Value = Value> {
    proptest::sample::select(&CARDS[..]).prop_map(|text| serde_json::from_str(text).unwrap())
}

fn compare(before: &Value, after: &Value) -> CardDiff {
    let (before, after) = (before.to_string(), after.to_string());
    diff_cards(before.as_bytes(), after.as_bytes(), Some(OWNER)).unwrap()
}

fn read(card: &Value) -> AgentCard {
    parse_card(card.to_string().as_bytes()).unwrap().card
}

/// The text and security of a skill, without the order of lists.
fn words(skill: &Skill) -> Value {
    let sorted = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    json!([
        skill.id,
        skill.name,
        skill.description,
        sorted(&skill.tags),
        sorted(&skill.examples),
        skill
            .security
            .iter()
            .map(|one| json!(one).to_string())
            .collect::<BTreeSet<_>>(),
    ])
}

/// Checks what must be equal in two cards whose change needs no review, from the models alone.
fn assert_harmless(before: &AgentCard, after: &AgentCard, told: &CardDiff) {
    assert_eq!(before.name, after.name, "{told:#?}");
    assert_eq!(before.provider, after.provider, "{told:#?}");
    assert_eq!(before.description, after.description, "{told:#?}");
    assert_eq!(before.security_schemes, after.security_schemes, "{told:#?}");
    for (name, value) in &after.unknown {
        assert_eq!(before.unknown.get(name), Some(value), "{name}: {told:#?}");
    }
    let targets = |card: &AgentCard| -> BTreeSet<String> {
        card.interfaces
            .iter()
            .map(|one| json!(one).to_string())
            .collect()
    };
    assert_eq!(targets(before), targets(after), "{told:#?}");
    let asked = |card: &AgentCard| -> BTreeSet<String> {
        card.security
            .iter()
            .map(|one| json!(one).to_string())
            .collect()
    };
    assert_eq!(asked(before), asked(after), "{told:#?}");
    let known: Vec<Value> = before.skills.iter().map(words).collect();
    for skill in &after.skills {
        assert!(known.contains(&words(skill)), "{skill:?}: {told:#?}");
    }
    let (old, new) = (&before.capabilities, &after.capabilities);
    assert!(old.streaming || !new.streaming, "{told:#?}");
    assert!(
        old.push_notifications || !new.push_notifications,
        "{told:#?}"
    );
    assert!(
        old.extended_agent_card || !new.extended_agent_card,
        "{told:#?}"
    );
    for extension in &new.extensions {
        let proof = extension.uri == OWNER && !extension.required;
        assert!(
            proof || old.extensions.contains(extension),
            "{extension:?}: {told:#?}"
        );
    }
    let modes = |card: &AgentCard| [card.input_modes.clone(), card.output_modes.clone()].concat();
    let known = modes(before);
    assert!(
        modes(after).iter().all(|mode| known.contains(mode)),
        "{told:#?}"
    );
    if told.class == ChangeClass::None {
        assert_eq!(
            signature_summary(before),
            signature_summary(after),
            "{told:#?}"
        );
    }
}

/// Writes JSON with its members in reverse order.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .rev()
                .map(|(name, value)| format!("{}: {}", json!(name), reversed(value)))
                .collect();
            format!("{{ {} }}", members.join(" ,"))
        }
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(reversed).collect();
            format!("[{}]", list.join(", "))
        }
        leaf => leaf.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_is_empty_exactly_when_the_content_is_the_same(
        base in base(), mutations in proptest::collection::vec(mutation(), 0..3),
    ) {
        let after = mutations.iter().fold(base.clone(), |card, mutation| apply(&card, mutation));
        let (forth, back) = (compare(&base, &after), compare(&after, &base));
        prop_assert_eq!(forth.changes.is_empty(), back.changes.is_empty());
        let unsigned = |card: &Value| {
            let mut card = card.clone();
            card.as_object_mut().unwrap().remove("signatures");
            card
        };
        let content = |card: &Value| content_digest(card.to_string().as_bytes());
        let rest = compare(&unsigned(&base), &unsigned(&after));
        prop_assert_eq!(rest.changes.is_empty(), content(&base) == content(&after));
        prop_assert_eq!(forth.class, forth.changes.first().map_or(ChangeClass::None, |c| c.class));
        prop_assert!(forth.changes.len() <= MAX_CHANGES);
        prop_assert!(forth.changes.is_sorted_by(|a, b| a.class >= b.class));
    }

    #[test]
    fn nothing_that_matters_is_low(
        base in base(), mutations in proptest::collection::vec(mutation(), 1..4),
    ) {
        let after = mutations.iter().fold(base.clone(), |card, mutation| apply(&card, mutation));
        for (before, after) in [(&base, &after), (&after, &base)] {
            let told = compare(before, after);
            if told.class <= Low {
                assert_harmless(&read(before), &read(after), &told);
            }
        }
    }

    #[test]
    fn order_of_members_and_space_are_no_change(
        base in base(), mutations in proptest::collection::vec(mutation(), 0..3),
    ) {
        let card = mutations.iter().fold(base, |card, mutation| apply(&card, mutation));
        let (plain, other) = (card.to_string(), reversed(&card));
        let told = diff_cards(plain.as_bytes(), other.as_bytes(), None).unwrap();
        prop_assert!(told.changes.is_empty(), "{told:#?}");
    }

    #[test]
    fn a_change_is_no_less_for_another_beside_it(
        base in base(), first in mutation(), second in value(),
    ) {
        // The description matters in no other rule.
        let changed = apply(&base, &first);
        let alone = compare(&base, &changed).class;
        let mut both = changed.clone();
        both["description"] = second.clone();
        prop_assume!(base.get("description") == changed.get("description"));
        let mut other = base.clone();
        other["description"] = second;
        let beside = compare(&base, &other).class;
        prop_assert_eq!(compare(&base, &both).class, alone.max(beside));
    }

    #[test]
    fn repeated_names_never_panic(text in r#"(\{"(url|name|security|skills|a)":(1|"a"|\[\]|\{\}),"(url|name|a)":(2|"b")\},){0,3}"#) {
        let text = text.trim_end_matches(',');
        let card = format!(r#"{{"name":"A","skills":[{text}],"supportedInterfaces":[{text}],"name":"A"}}"#);
        let plain = r#"{"name":"A"}"#;
        let told = diff_cards(plain.as_bytes(), card.as_bytes(), None).unwrap();
        prop_assert!(!told.changes.is_empty());
        prop_assert!(diff_cards(card.as_bytes(), card.as_bytes(), None).unwrap().changes.is_empty());
    }
}

#[test]
fn every_member_of_a_card_counts() {
    for text in CARDS {
        let card: Value = serde_json::from_str(text).unwrap();
        let mut all = Vec::new();
        places(&card, String::new(), &mut all);
        for place in all.iter().filter(|place| !place.is_empty()) {
            for other in [
                json!(null),
                json!("other"),
                json!(7),
                json!([]),
                json!({}),
                json!(true),
            ] {
                let mut after = card.clone();
                *after.pointer_mut(place).unwrap() = other.clone();
                if after == card || parse_card(after.to_string().as_bytes()).is_err() {
                    continue;
                }
                let told = compare(&card, &after);
                assert!(!told.changes.is_empty(), "{place} = {other} in {text}");
            }
            let (parent, last) = place.rsplit_once('/').unwrap();
            let mut after = card.clone();
            match after.pointer_mut(parent).unwrap() {
                Value::Object(members) => drop(members.shift_remove(last)),
                Value::Array(list) => drop(list.remove(last.parse().unwrap())),
                _ => unreachable!("a place stands in a list or an object"),
            }
            if parse_card(after.to_string().as_bytes()).is_ok() {
                assert!(
                    !compare(&card, &after).changes.is_empty(),
                    "{place} in {text}"
                );
            }
        }
    }
}

#[test]
fn unequal_names_of_members_never_meet() {
    // The internal name of a repeated member must not equal a real member's name in another card.
    let cards = [
        r#"{"name":"A","a":1,"a":2}"#,
        r#"{"name":"A","a":2,"a\u00001":1}"#,
        r#"{"name":"A","a":2,"a\u0000":1}"#,
        r#"{"name":"A","a":2,"a\u0000\u00001":1}"#,
        r#"{"name":"A","a":2}"#,
    ];
    for (i, before) in cards.iter().enumerate() {
        for (j, after) in cards.iter().enumerate() {
            let told = diff_cards(before.as_bytes(), after.as_bytes(), None).unwrap();
            assert_eq!(told.changes.is_empty(), i == j, "{before} to {after}");
        }
    }
}
