//! Findings about each shape and each irregularity of real cards: one row for each.
#![allow(clippy::unwrap_used)]

use a2a_card::{
    CardFamily, ParsedCard, SchemeKind, Severity, UNKNOWN_BINDING, all_findings, parse_card,
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
fn shape_goes_before_the_declared_version() {
    let url = "https://a.agents.dev/a2a";
    let entry = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let other = |member: &str| json!({"supportedInterfaces": [{"url": url, member: "JSONRPC"}]});
    for (members, family, reason) in [
        (
            json!({"url": url, "authentication": {"schemes": ["bearer"]}}),
            CardFamily::V0_1,
            "`authentication`",
        ),
        (
            json!({"url": url, "protocolVersion": "0.1"}),
            CardFamily::V0_1,
            "declares 0.1",
        ),
        (
            json!({"url": url, "protocolVersion": "0.2.6"}),
            CardFamily::V0_2,
            "declares 0.2",
        ),
        (
            json!({"url": url, "securitySchemes": {}}),
            CardFamily::V0_2,
            "members of 0.2",
        ),
        (
            json!({"url": url, "preferredTransport": "GRPC"}),
            CardFamily::V0_2,
            "members of 0.2",
        ),
        (
            json!({"url": url, "protocolVersion": "0.3.0"}),
            CardFamily::V0_3,
            "declares 0.3",
        ),
        (
            json!({"url": url, "protocolVersion": 0.3}),
            CardFamily::V0_3,
            "declares 0.3",
        ),
        (
            json!({"url": url, "signatures": []}),
            CardFamily::V0_3,
            "`signatures`",
        ),
        (
            json!({"additionalInterfaces": [{"url": url}]}),
            CardFamily::V0_2,
            "no `url`",
        ),
        (
            json!({"supportedInterfaces": [entry]}),
            CardFamily::V1_0,
            "no `url`",
        ),
        (
            json!({"supportedInterfaces": [entry], "protocolVersion": "0.2.0"}),
            CardFamily::V1_0,
            "no `url`",
        ),
        (
            json!({"supportedInterfaces": [entry], "url": url}),
            CardFamily::Dual,
            "and `url`",
        ),
        (
            json!({"url": url, "protocolVersion": "1.0"}),
            CardFamily::Flat1,
            "declares 1.0",
        ),
        (
            json!({"url": url, "protocolVersion": "1.2"}),
            CardFamily::Flat1,
            "declares 1.0 or later",
        ),
        (
            json!({"url": url, "protocol_version": "0.3.0"}),
            CardFamily::Snake0,
            "snake_case",
        ),
        (
            json!({"supported_interfaces": [entry]}),
            CardFamily::Snake1,
            "snake_case",
        ),
        (
            other("transport"),
            CardFamily::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            other("type"),
            CardFamily::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            other("protocol"),
            CardFamily::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            json!({"supportedInterfaces": [url]}),
            CardFamily::OtherInterfaces,
            "without `protocolBinding`",
        ),
        (
            json!({"url": url}),
            CardFamily::Undated,
            "nothing that dates it",
        ),
        (
            json!({"url": url, "supportedInterfaces": []}),
            CardFamily::Undated,
            "nothing that dates it",
        ),
        (
            json!({"capabilities": {"tools": [{"name": "grep"}]}}),
            CardFamily::NoAddress,
            "neither",
        ),
        (
            json!({"url": " ", "endpoint": url}),
            CardFamily::NoAddress,
            "neither",
        ),
        (
            json!({"name": null, "agent": {"name": "B", "url": url}}),
            CardFamily::Nested,
            "inside a member",
        ),
        (
            json!({"name": null, "identity": {"name": "B"}, "url": url}),
            CardFamily::Nested,
            "inside a member",
        ),
        (
            json!({"name": null, "agent_name": "B", "url": url}),
            CardFamily::Nested,
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
        let mut interfaces = parsed.card.interfaces.iter();
        let unreachable = interfaces.all(|one| one.binding == UNKNOWN_BINDING);
        let told = parsed.findings.iter().any(|f| f.rule == "card.no-address");
        assert_eq!(unreachable, told, "{members}");
        assert!(
            parsed.family != CardFamily::NoAddress || unreachable,
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
        let parsed = parse_card(bytes.as_bytes()).unwrap();
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
    // A location that no version defines stays as in the card.
    let body = json!({"securitySchemes": {"key": {"type": "apiKey", "in": "Body", "name": "K"}}});
    let card = found(body, "scheme.location");
    assert_eq!(location(&card.security_schemes[0].kind), "body");
}
