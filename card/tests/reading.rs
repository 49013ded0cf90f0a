//! Findings about each shape and each irregularity of real cards: one row for each.
#![allow(clippy::unwrap_used)]

use a2a_card::{
    ConversionTarget, Family, MAX_LIST, Parsed, SchemeKind, Severity, Spoken, UNKNOWN_BINDING,
    all_findings, parse, ranked_interfaces,
};
use serde_json::{Value, json};

/// The parsed card of these members and a name.
fn read(members: Value) -> Parsed {
    let mut card = json!({"name": "A"});
    let object = card.as_object_mut().unwrap();
    object.extend(members.as_object().unwrap().clone());
    parse(card.to_string().as_bytes()).unwrap()
}

#[test]
fn shape_goes_before_the_declared_version() {
    let url = "https://a.agents.dev/a2a";
    let entry = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let other = |member: &str| json!({"supportedInterfaces": [{"url": url, member: "JSONRPC"}]});
    for (members, family, reason) in [
        (
            json!({"url": url, "authentication": {"schemes": ["bearer"]}}),
            Family::V0_1,
            "`authentication`",
        ),
        (
            json!({"url": url, "protocolVersion": "0.1"}),
            Family::V0_1,
            "declares 0.1",
        ),
        (
            json!({"url": url, "protocolVersion": "0.2.6"}),
            Family::V0_2,
            "declares 0.2",
        ),
        (
            json!({"url": url, "securitySchemes": {}}),
            Family::V0_2,
            "members of 0.2",
        ),
        (
            json!({"url": url, "preferredTransport": "GRPC"}),
            Family::V0_2,
            "members of 0.2",
        ),
        (
            json!({"url": url, "protocolVersion": "0.3.0"}),
            Family::V0_3,
            "declares 0.3",
        ),
        (
            json!({"url": url, "protocolVersion": 0.3}),
            Family::V0_3,
            "declares 0.3",
        ),
        (
            json!({"url": url, "signatures": []}),
            Family::V0_3,
            "`signatures`",
        ),
        (
            json!({"additionalInterfaces": [{"url": url}]}),
            Family::V0_2,
            "no `url`",
        ),
        (
            json!({"supportedInterfaces": [entry]}),
            Family::V1_0,
            "no `url`",
        ),
        (
            json!({"supportedInterfaces": [entry], "protocolVersion": "0.2.0"}),
            Family::V1_0,
            "no `url`",
        ),
        (
            json!({"supportedInterfaces": [entry], "url": url}),
            Family::Dual,
            "and `url`",
        ),
        (
            json!({"url": url, "protocolVersion": "1.0"}),
            Family::Flat1,
            "declares 1.0",
        ),
        (
            json!({"url": url, "protocolVersion": "1.2"}),
            Family::Flat1,
            "declares 1.0 or later",
        ),
        (
            json!({"url": url, "protocol_version": "0.3.0"}),
            Family::Snake0,
            "snake_case",
        ),
        (
            json!({"supported_interfaces": [entry]}),
            Family::Snake1,
            "snake_case",
        ),
        (
            other("transport"),
            Family::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            other("type"),
            Family::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            other("protocol"),
            Family::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            json!({"supportedInterfaces": [url]}),
            Family::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            json!({"url": url}),
            Family::Undated,
            "nothing that dates it",
        ),
        (
            json!({"url": url, "supportedInterfaces": []}),
            Family::Undated,
            "nothing that dates it",
        ),
        (
            json!({"capabilities": {"tools": [{"name": "grep"}]}}),
            Family::NoAddress,
            "neither",
        ),
        (
            json!({"url": " ", "endpoint": url}),
            Family::NoAddress,
            "neither",
        ),
        (
            json!({"name": null, "agent": {"name": "B", "url": url}}),
            Family::Nested,
            "inside a member",
        ),
        (
            json!({"name": null, "identity": {"name": "B"}, "url": url}),
            Family::Nested,
            "inside a member",
        ),
        (
            json!({"name": null, "agent_name": "B", "url": url}),
            Family::Nested,
            "`agent_name`",
        ),
    ] {
        let parsed = read(members.clone());
        assert_eq!(parsed.family, family, "{members}");
        assert!(
            parsed.reason.contains(reason),
            "{members}: {}",
            parsed.reason
        );
        let unreachable = parsed.card.interfaces.is_empty();
        let told = parsed.findings.iter().any(|f| f.rule == "card.no-address");
        assert_eq!(unreachable, told, "{members}");
        assert!(
            parsed.family != Family::NoAddress || unreachable,
            "{members}"
        );
    }
}

#[test]
fn every_member_is_read_on_its_own() {
    let wrong = [
        json!(null),
        json!(7),
        json!(true),
        json!("x"),
        json!([[]]),
        json!({"x": {}}),
    ];
    let members = [
        "description",
        "version",
        "provider",
        "url",
        "preferredTransport",
        "additionalInterfaces",
        "supportedInterfaces",
        "protocolVersion",
        "capabilities",
        "securitySchemes",
        "security",
        "securityRequirements",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
        "documentationUrl",
        "iconUrl",
        "signatures",
        "authentication",
        "supportsAuthenticatedExtendedCard",
    ];
    let whole = json!({
        "description": "d", "version": "1", "url": "https://a.agents.dev/", "iconUrl": "https://a.agents.dev/i",
        "skills": [{"id": "s", "name": "s", "tags": ["t"]}], "capabilities": {"streaming": true},
    });
    for member in members {
        for value in &wrong {
            let mut card = whole.clone();
            card[member] = value.clone();
            let card = read(card).card;
            // All the other members are as they were.
            assert!(
                member == "description" || card.description.as_deref() == Some("d"),
                "{member} {value}"
            );
            assert!(
                member == "skills" || card.skills.len() == 1,
                "{member} {value}"
            );
            assert!(
                member == "iconUrl" || card.icon_url.is_some(),
                "{member} {value}"
            );
            assert!(
                member == "capabilities" || card.capabilities.streaming,
                "{member} {value}"
            );
            let address = ["url", "supportedInterfaces", "additionalInterfaces"].contains(&member);
            assert!(address || card.interfaces.len() == 1, "{member} {value}");
        }
    }
}

#[test]
fn a_finding_says_all_there_is_to_say() {
    let parsed = read(json!({"documentationUrl": false, "capabilities": {"streaming": "yes"}}));
    let finding = parsed
        .findings
        .iter()
        .find(|f| f.pointer == "/documentationUrl")
        .unwrap();
    assert_eq!(finding.rule, "member.type");
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.found, "false");
    assert_eq!(finding.wanted, "a text");
    assert!(finding.hint.contains("type"));
    assert_eq!(finding.section, "1.0 §4.4");
    let flag = parsed
        .findings
        .iter()
        .find(|f| f.pointer == "/capabilities/streaming")
        .unwrap();
    assert_eq!(
        (flag.found.as_str(), flag.wanted.as_str()),
        ("\"yes\"", "true or false")
    );
    assert_eq!(
        parsed.card.unknown["documentationUrl"],
        json!(false),
        "nothing is lost"
    );
}

#[test]
fn irregular_forms_are_understood_and_reported() {
    let found = |members: Value, rule: &str| {
        let mut card = json!({"name": "A", "url": "https://a.agents.dev/"});
        card.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let bytes = card.to_string();
        let parsed = parse(bytes.as_bytes()).unwrap();
        let findings = all_findings(&parsed, bytes.as_bytes());
        assert!(
            findings.iter().any(|f| f.rule == rule),
            "{rule}: {findings:?}"
        );
        parsed.card
    };
    let card = found(json!({"skills": ["Book flights"]}), "skill.text");
    assert_eq!(card.skills[0].name, "Book flights");
    let card = found(
        json!({"capabilities": ["streaming", "x"]}),
        "capabilities.list",
    );
    assert!(card.capabilities.streaming && !card.capabilities.push_notifications);
    let card = found(
        json!({"capabilities": [{"name": "pushNotifications"}]}),
        "capabilities.list",
    );
    assert!(card.capabilities.push_notifications);
    let card = found(
        json!({"capabilities": {"streaming": "True"}}),
        "member.coerced",
    );
    assert!(card.capabilities.streaming);
    let card = found(
        json!({"capabilities": {"tools": {"grep": {}}}}),
        "capabilities.tools",
    );
    assert_eq!(card.skills[0].id, "grep");
    let card = found(json!({"provider": "Agents"}), "provider.text");
    assert_eq!(
        card.provider.unwrap().organization.as_deref(),
        Some("Agents")
    );
    let schemes = json!({"key": {"type": "apiKey", "in": "header", "name": "K"}});
    for security in [json!({"key": []}), json!([["key"]]), json!(["key"])] {
        let card = found(
            json!({"securitySchemes": schemes, "security": security}),
            "security.shape",
        );
        assert_eq!(card.security[0].schemes[0].0, "key");
    }
    let new_form = json!({"key": {"apiKeySecurityScheme": {"location": "header", "name": "K"}}});
    let old = found(json!({"securitySchemes": schemes}), "security.unrequired");
    let new = found(json!({"securitySchemes": new_form}), "scheme.form");
    assert_eq!(old.security_schemes, new.security_schemes);
    let listed = found(
        json!({"securitySchemes": [{"type": "mutualTLS"}]}),
        "scheme.list",
    );
    assert_eq!(listed.security_schemes[0].kind, SchemeKind::MutualTls);
    let card = found(
        json!({"defaultInputModes": ["text", "JSON"]}),
        "mode.not-media-type",
    );
    assert_eq!(card.input_modes, ["text/plain", "application/json"]);
    let card = found(
        json!({"defaultInputModes": {"text": true, "file": false}}),
        "mode.list",
    );
    assert_eq!(card.input_modes, ["text/plain"]);
    let card = found(
        json!({"preferredTransport": "http+json"}),
        "interface.binding-spelling",
    );
    assert_eq!(card.interfaces[0].binding, "HTTP+JSON");
    let card = found(
        json!({"securitySchemes": {"key": {"type": "APIKEY", "in": "HEADER", "name": "K"}}}),
        "scheme.location",
    );
    let location = |kind: &SchemeKind| match kind {
        SchemeKind::ApiKey { location, .. } => location.clone(),
        _ => String::new(),
    };
    assert_eq!(location(&card.security_schemes[0].kind), "header");
    for place in [
        json!({"in_": "header"}),
        json!({"in_": "In.header"}),
        json!({"in": "HEADER"}),
        json!({"location": "HTTP_HEADER"}),
        json!({"in": "Headers"}),
    ] {
        let mut flat = json!({"type": "apiKey", "name": "K"});
        flat.as_object_mut()
            .unwrap()
            .extend(place.as_object().unwrap().clone());
        let wrapped = json!({"apiKeySecurityScheme": flat});
        let detailed = json!({"schemes": ["apiKey"], "apiKey": flat});
        let mut untyped = flat.clone();
        untyped.as_object_mut().unwrap().remove("type");
        for members in [
            json!({"securitySchemes": {"key": flat}}),
            json!({"securitySchemes": {"key": untyped}}),
            json!({"securitySchemes": {"key": wrapped}}),
            json!({"authentication": detailed}),
        ] {
            let card = found(members.clone(), "scheme.location");
            assert_eq!(
                location(&card.security_schemes[0].kind),
                "header",
                "{members}"
            );
            assert_eq!(
                a2a_card::security_sentences(&card),
                ["Send an API key in the header `K`"]
            );
        }
    }
    // A place that no version knows stays as the card has it.
    let body = json!({"securitySchemes": {"key": {"type": "apiKey", "in": "Body", "name": "K"}}});
    let card = found(body, "scheme.location");
    assert_eq!(location(&card.security_schemes[0].kind), "body");
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
        parse(card.to_string().as_bytes()).unwrap()
    };
    let names = |parsed: &Parsed| -> Vec<String> {
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
        let converted = a2a_card::to_1_0(&parsed);
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
    let many = (0..2 * MAX_LIST).map(|n| json!({"id": n.to_string(), "name": n.to_string()}));
    let parsed = card(json!({"tools": ["summarize"]}), many.collect());
    let names = names(&parsed);
    assert_eq!(
        (names.len(), names[0].as_str(), names[1].as_str()),
        (MAX_LIST, "summarize", "0")
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
    let parsed = parse(card.to_string().as_bytes()).unwrap();
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
        let parsed = parse(card.to_string().as_bytes()).unwrap();
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
        // Nobody calls it by itself, and no conversion makes it an address of A2A.
        let spoken = [Spoken {
            binding: "JSONRPC",
            versions: &["1"],
        }];
        let ranked = ranked_interfaces(&parsed.card, &spoken);
        assert_eq!(ranked[0].spoken, None);
        assert!(
            ranked[0].reason.contains("does not name the binding"),
            "{}",
            ranked[0].reason
        );
        for target in ConversionTarget::ALL {
            let converted = a2a_card::convert(&parsed, target);
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
        let parsed = parse(card.to_string().as_bytes()).unwrap();
        let converted = a2a_card::to_1_0(&parsed);
        let lost = converted
            .findings
            .iter()
            .any(|f| f.rule == "convert.no-client");
        assert!(!lost, "{card}");
    }
    for entry in [
        json!({"url": "https://a.agents.dev/mcp", "transport": "streamable-http"}),
        json!({"url": url, "type": "mcp", "transport": "streamable-http"}),
    ] {
        let parsed = read(json!({"supportedInterfaces": [entry]}));
        assert_eq!(parsed.card.interfaces[0].binding, "streamable-http");
        let converted = a2a_card::to_1_0(&parsed);
        assert!(
            converted
                .findings
                .iter()
                .any(|f| f.rule == "convert.no-client")
        );
    }
}
