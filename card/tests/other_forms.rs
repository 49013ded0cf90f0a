//! Members in forms that no version has: what they are read as.
#![allow(clippy::unwrap_used)]

use a2a_card::{
    ConversionTarget, MAX_LIST_ELEMENTS, ParsedCard, SchemeKind, SupportedBinding, UNKNOWN_BINDING,
    all_findings, parse_card, ranked_interfaces,
};
use serde_json::{Value, json};

/// The parsed card of these members and a name.
fn read(members: Value) -> ParsedCard {
    let mut card = json!({"name": "A"});
    let object = card.as_object_mut().unwrap();
    object.extend(members.as_object().unwrap().clone());
    parse_card(card.to_string().as_bytes()).unwrap()
}

#[test]
fn tools_are_skills_beside_the_skills() {
    let card = |capabilities: Value, skills: Value| {
        let card = json!({
            "name": "Desk", "url": "https://desk.agents.dev/a2a/rpc",
            "capabilities": capabilities, "skills": skills,
            "authentication": {"schemes": ["bearer"]},
            "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
        });
        parse_card(card.to_string().as_bytes()).unwrap()
    };
    let names = |parsed: &ParsedCard| -> Vec<String> {
        parsed.card.skills.iter().map(|s| s.name.clone()).collect()
    };
    let skills = json!([{"id": "plan", "name": "Plan trips"}]);
    for tools in [
        json!(["summarize", "plan", "Plan trips", "", 7]),
        json!([{"name": "summarize"}, {"id": "plan", "name": "plan"}]),
        json!({"summarize": {}, "plan": {}}),
    ] {
        let parsed = card(json!({"tools": tools, "streaming": true}), skills.clone());
        assert_eq!(names(&parsed), ["Plan trips", "summarize"], "{tools}");
        assert!(parsed.card.capabilities.streaming);
        let found = parsed.findings.iter();
        let found = found.filter(|f| f.pointer.starts_with("/capabilities/tools"));
        let errors: Vec<_> = found.filter(|f| f.rule == "skill.text").collect();
        assert!(errors.is_empty(), "{errors:?}");
        let converted = a2a_card::convert_to_1_0(&parsed);
        assert_eq!(converted.card["skills"][1]["name"], "summarize");
    }
    // Numbers and flags are no tools.
    for tools in [json!(true), json!(72), json!([])] {
        assert_eq!(
            names(&card(json!({"tools": tools}), skills.clone())).len(),
            1
        );
    }
    // A long list of skills leaves room for the tools.
    let many =
        (0..2 * MAX_LIST_ELEMENTS).map(|n| json!({"id": n.to_string(), "name": n.to_string()}));
    let parsed = card(json!({"tools": ["summarize"]}), many.collect());
    let names = names(&parsed);
    assert_eq!(
        (names.len(), names[0].as_str(), names[1].as_str()),
        (MAX_LIST_ELEMENTS, "summarize", "0")
    );
    assert!(parsed.findings.iter().any(|f| f.rule == "list.cut"));
}

/// Cards that are written after a reference of 0.3.0 beside the specification.
#[test]
fn a_list_of_schemes_and_examples_that_are_objects_are_read() {
    let card = json!({
        "name": "Desk", "description": "Answers", "url": "https://desk.agents.dev/", "version": "1",
        "provider": {"name": "Harbour Light", "url": "https://harbourlight.io"},
        "schemes": [
            {"scheme": "apiKey", "in": "header", "name": "X-Desk-Key"},
            {"scheme": "apiKey", "in": "query", "name": "key"},
            {"scheme": "bearer"}, {"scheme": "basic"}, {"scheme": "mtls"},
            {"scheme": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://desk.agents.dev/t", "scopes": {}}}},
            {"scheme": "oidc"},
        ],
        "skills": [{"id": "ask", "name": "Ask", "examples": [
            "plain", {"name": "Weather", "input": "Will it rain?", "output": "It will pour"},
            {"input": {"parts": [{"text": "And tomorrow?"}]}}, {"cost": 3}, 4,
        ]}],
    });
    let parsed = parse_card(card.to_string().as_bytes()).unwrap();
    let card = &parsed.card;
    assert_eq!(
        a2a_card::auth_labels(card),
        [
            "apiKey",
            "http:bearer",
            "http:basic",
            "mutualTLS",
            "oauth2",
            "openIdConnect"
        ]
    );
    let sentences = a2a_card::security_sentences(card);
    assert_eq!(
        sentences[..2],
        [
            "Send an API key in the header `X-Desk-Key`",
            "Send an API key in the query parameter `key`"
        ]
    );
    let flows = card
        .security_schemes
        .iter()
        .find_map(|scheme| match &scheme.kind {
            SchemeKind::Oauth2 { flows, .. } => {
                Some(flows["clientCredentials"]["tokenUrl"].clone())
            }
            _ => None,
        });
    assert_eq!(flows, Some(json!("https://desk.agents.dev/t")));
    let provider = card.provider.as_ref().unwrap();
    assert_eq!(provider.organization.as_deref(), Some("Harbour Light"));
    assert_eq!(
        card.skills[0].examples,
        ["plain", "Will it rain?", "And tomorrow?", "4"]
    );
    assert_eq!(card.other_texts, ["Weather", "It will pour"]);
    assert!(card.unknown.is_empty(), "{:?}", card.unknown);
    let found = parsed
        .findings
        .iter()
        .find(|f| f.rule == "security.elsewhere")
        .unwrap();
    assert_eq!(found.pointer, "/schemes");

    // What is no list of schemes stays what it is.
    for schemes in [
        json!(["red", "blue"]),
        json!([]),
        json!({"bearer": 1}),
        json!([7]),
    ] {
        let parsed = read(json!({"url": "https://desk.agents.dev/", "schemes": schemes}));
        assert_eq!(a2a_card::auth_labels(&parsed.card), ["none"], "{schemes}");
        assert!(parsed.card.unknown.contains_key("schemes"));
    }
    // Declared schemes are those of the version.
    let parsed = read(json!({
        "url": "https://desk.agents.dev/", "schemes": [{"scheme": "basic"}],
        "securitySchemes": {"k": {"type": "mutualTLS"}},
    }));
    assert_eq!(a2a_card::auth_labels(&parsed.card), ["mutualTLS"]);
}

#[test]
fn texts_by_language_are_read_in_english_and_found_in_all() {
    let languages = json!({"de": "Hafenbuch", "en-GB": "Harbour book"});
    let listed = json!([
        {"language": "de", "text": "Hafenbuch"}, {"lang": "en", "value": "Harbour book"}
    ]);
    for text in [languages, listed] {
        let card = json!({
            "name": text, "description": text, "url": "https://a.agents.dev/",
            "skills": [{"id": "s", "name": text, "description": {"default": "Tides"}, "tags": "sea, tides ,, moon"}],
        });
        let parsed = parse_card(card.to_string().as_bytes()).unwrap();
        let card = parsed.card;
        assert_eq!(card.name, "Harbour book");
        assert_eq!(card.description.as_deref(), Some("Harbour book"));
        assert_eq!(card.skills[0].name, "Harbour book");
        assert_eq!(card.skills[0].description.as_deref(), Some("Tides"));
        assert_eq!(card.skills[0].tags, ["sea", "tides", "moon"]);
        assert_eq!(card.other_texts, ["Hafenbuch"]);
        let coerced = parsed
            .findings
            .iter()
            .filter(|f| f.rule == "member.coerced");
        assert_eq!(coerced.count(), 5, "{:?}", parsed.findings);
    }
    // Without English the first one; other objects are no texts, and an address has no language.
    let first = read(
        json!({"description": {"fr": "Marées", "de": "Gezeiten"}, "url": "https://a.agents.dev/"}),
    );
    assert_eq!(first.card.description.as_deref(), Some("Marées"));
    for other in [
        json!({"short": "x"}),
        json!({}),
        json!([]),
        json!({"en": 7}),
        json!(["x"]),
    ] {
        let parsed = read(json!({"description": other, "url": "https://a.agents.dev/"}));
        assert_eq!(parsed.card.description, None, "{other}");
    }
    let parsed = read(json!({"url": {"en": "https://a.agents.dev/"}}));
    assert!(parsed.card.interfaces.is_empty());
}

#[test]
fn skills_are_read_where_cards_have_them() {
    let names = |members: Value| -> Vec<String> {
        let skills = read(members).card.skills;
        skills.into_iter().map(|skill| skill.name).collect()
    };
    let plan = json!([{"id": "plan", "name": "Plan trips"}]);
    assert_eq!(
        names(json!({"capabilities": {"skills": plan}})),
        ["Plan trips"]
    );
    assert_eq!(
        names(json!({"capabilities": {"skills": ["grep"], "tools": ["sed"]}, "skills": plan})),
        ["Plan trips", "sed", "grep"]
    );
    let tiers = json!({"profile": "/a/b.json", "tier1": ["route", "verify"], "tier2": ["grow", {"id": "x"}, "route"]});
    assert_eq!(
        names(json!({"skills": tiers})),
        ["route", "verify", "grow", "x"]
    );
    let parsed = read(json!({"skills": tiers}));
    assert!(parsed.findings.iter().any(|f| f.rule == "skill.list"));
    assert!(!parsed.card.unknown.contains_key("skills"));
    let noted = json!({"skills": {"tier1": [{"id": "x", "note": "Only by night"}]}});
    assert_eq!(read(noted).card.other_texts, ["Only by night"]);
    assert!(names(json!({"skills": {"profile": "/a/b.json"}})).is_empty());
    let classes = json!([
        {"category_name": "nlp"}, {"class_name": "summarization", "category_name": "nlp"},
        {"name": "Plan", "class_name": "planning"}, {"class_uid": 7}
    ]);
    assert_eq!(
        names(json!({"skills": classes})),
        ["nlp", "summarization", "Plan"]
    );
}

#[test]
fn an_address_that_is_listed_twice_counts_once() {
    let entry =
        |url: &str| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let parsed = read(json!({"supportedInterfaces": [
        entry("https://a.agents.dev"), entry("https://A.agents.dev:443/"), entry(" https://a.agents.dev/ "),
        entry("https://a.agents.dev/x"), entry("https://a.agents.dev/x/"),
    ]}));
    let urls: Vec<_> = parsed
        .card
        .interfaces
        .iter()
        .map(|one| one.url.as_str())
        .collect();
    assert_eq!(
        urls,
        [
            "https://a.agents.dev",
            "https://a.agents.dev/x",
            "https://a.agents.dev/x/"
        ]
    );
    let flat = read(json!({
        "url": "https://a.agents.dev", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": "https://a.agents.dev/", "transport": "JSONRPC"}],
    }));
    assert_eq!(flat.card.interfaces.len(), 1);
    // With and without a version it is one address, in either order.
    let entry = json!({"url": "https://a.agents.dev/", "transport": "JSONRPC"});
    let dated = read(json!({
        "url": "https://a.agents.dev/", "protocolVersion": "0.3.0",
        "supportedInterfaces": [entry], "additionalInterfaces": [entry],
    }));
    assert_eq!(dated.card.interfaces.len(), 1);
    let version = dated.card.interfaces[0].protocol_version.as_deref();
    assert_eq!(version, Some("0.3"));
    // Two versions at one address are two ways to call it.
    let two = read(json!({
        "url": "https://a.agents.dev/", "protocolVersion": "0.3.0",
        "supportedInterfaces": [
            {"url": "https://a.agents.dev/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
    }));
    assert_eq!(two.card.interfaces.len(), 2);
}

#[test]
fn an_address_in_a_member_of_no_version_has_an_unknown_binding() {
    for (members, url, pointer) in [
        (
            json!({"endpoint": "http://a.agents.dev/run"}),
            "http://a.agents.dev/run",
            "/endpoint",
        ),
        (
            json!({"endpoints": {"base_url": "http://a.agents.dev", "health": "http://a.agents.dev/h"}}),
            "http://a.agents.dev",
            "/endpoints/base_url",
        ),
        (
            json!({"url": "", "endpoints": {"baseUrl": "http://a.agents.dev/b"}}),
            "http://a.agents.dev/b",
            "/endpoints/baseUrl",
        ),
    ] {
        let parsed = read(members.clone());
        let interface = &parsed.card.interfaces[0];
        assert_eq!(
            (interface.url.as_str(), interface.binding.as_str()),
            (url, UNKNOWN_BINDING)
        );
        assert_eq!(parsed.card.interfaces.len(), 1, "{members}");
        assert!(parsed.findings.iter().any(|f| f.rule == "card.no-address"));
        let mut card = members.clone();
        card["name"] = json!("A");
        let findings = all_findings(&parsed, card.to_string().as_bytes());
        let http = findings.iter().find(|f| f.rule == "endpoint.http").unwrap();
        assert_eq!(http.pointer, pointer);
        // No client calls it by itself, and no conversion makes it an address of A2A.
        let spoken = [SupportedBinding {
            binding: "JSONRPC",
            versions: &["1"],
        }];
        let ranked = ranked_interfaces(&parsed.card, &spoken);
        assert_eq!(ranked[0].client_binding, None);
        assert!(
            ranked[0].reason.contains("does not name the binding"),
            "{}",
            ranked[0].reason
        );
        for target in ConversionTarget::ALL {
            let converted = a2a_card::convert_card(&parsed, target);
            assert!(
                converted
                    .findings
                    .iter()
                    .any(|f| f.rule == "convert.no-address")
            );
            assert!(!json!(converted.card).to_string().contains("a.agents.dev"));
        }
    }
    // It counts only where there is no other, and is an address at all.
    for members in [
        json!({"url": "https://a.agents.dev/", "endpoint": "https://b.agents.dev/"}),
        json!({"endpoint": "ask us", "url": "https://a.agents.dev/"}),
    ] {
        let parsed = read(members);
        assert_eq!(parsed.card.interfaces.len(), 1);
        assert_eq!(parsed.card.interfaces[0].url, "https://a.agents.dev/");
    }
    assert!(
        read(json!({"endpoint": "local harness"}))
            .card
            .interfaces
            .is_empty()
    );
}

#[test]
fn streamable_http_is_json_rpc_but_of_an_mcp_server() {
    let bindings = |members: Value| -> Vec<String> {
        let interfaces = read(members).card.interfaces;
        interfaces.into_iter().map(|one| one.binding).collect()
    };
    let url = "https://a.agents.dev/a2a";
    for members in [
        json!({"url": url, "protocolVersion": "0.3.0", "preferredTransport": "streamable-http"}),
        json!({"supportedInterfaces": [{"url": url, "transport": "Streamable HTTP"}]}),
        json!({"additionalInterfaces": [{"url": url, "transport": "streamable_http"}]}),
    ] {
        assert_eq!(bindings(members.clone()), ["JSONRPC"], "{members}");
        let mut card = members;
        card["name"] = json!("A");
        let parsed = parse_card(card.to_string().as_bytes()).unwrap();
        let converted = a2a_card::convert_to_1_0(&parsed);
        let lost = converted
            .findings
            .iter()
            .any(|f| f.rule == "convert.no-client");
        assert!(!lost, "{card}");
    }
    for (entry, binding) in [
        (
            json!({"url": "https://a.agents.dev/mcp", "transport": "streamable-http"}),
            "streamable-http",
        ),
        (
            json!({"url": url, "type": "mcp", "transport": "streamable-http"}),
            "MCP",
        ),
    ] {
        let parsed = read(json!({"supportedInterfaces": [entry]}));
        assert_eq!(parsed.card.interfaces[0].binding, binding);
        let converted = a2a_card::convert_to_1_0(&parsed);
        assert!(
            converted
                .findings
                .iter()
                .any(|f| f.rule == "convert.no-client")
        );
        let again = parse_card(&serde_json::to_vec(&converted.card).unwrap()).unwrap();
        assert_eq!(again.card.interfaces[0].binding, binding);
    }
}
