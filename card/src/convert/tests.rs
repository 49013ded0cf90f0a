//! Tests of conversions: what is added, what is removed, and the findings about it.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::member_reader::MAX_LIST_ELEMENTS;
use crate::{CardFamily, SecurityRequirement, Severity, auth_labels, parse_card};

/// Parses the card.
fn read(card: &Value) -> ParsedCard {
    parse_card(card.to_string().as_bytes()).unwrap()
}

/// The card converted to 1.0, and to 0.3.
fn both(card: &Value) -> [ConvertedCard; 2] {
    ConversionTarget::ALL.map(|target| convert_card(&read(card), target))
}

/// A flat card of 0.3 with further members.
fn flat(members: &Value) -> Value {
    let mut card = json!({"name": "A", "url": "https://a.example", "protocolVersion": "0.3.0"});
    for (name, value) in members.as_object().unwrap() {
        card[name] = value.clone();
    }
    card
}

/// The pointers at which a rule was violated, with the values found.
fn found<'a>(converted: &'a ConvertedCard, rule: &str) -> Vec<(&'a str, &'a str)> {
    let broken = converted.findings.iter().filter(|f| f.rule == rule);
    broken
        .map(|f| (f.pointer.as_str(), f.found.as_str()))
        .collect()
}

/// The converted card, as a value and parsed again.
fn again(converted: &ConvertedCard) -> (Value, ParsedCard) {
    let card = Value::Object(converted.card.clone());
    let parsed = read(&card);
    (card, parsed)
}

#[test]
fn targets_are_told_by_their_names() {
    for target in ConversionTarget::ALL {
        assert_eq!(target.as_str().parse(), Ok(target));
        assert_eq!(target.to_string(), target.as_str());
    }
    for name in ["0.2", "1", "1.0.0", "", " 1.0"] {
        let error = name.parse::<ConversionTarget>().unwrap_err();
        assert_eq!(error, UnknownTarget(name.to_owned()));
        assert!(error.to_string().contains("1.0 and 0.3"), "{error}");
    }
}

#[test]
fn a_name_and_an_address_suffice_for_a_whole_card() {
    let [new, old] = both(&json!({"name": "A", "url": "https://a.example"}));
    let mark = json!([{
        "uri": "urn:a2a-registry:converted", "required": false, "params": {"from": "0.x"},
        "description": "Written by a registry from a card of another form"
    }]);
    let wanted = json!({
        "name": "A", "description": "A", "version": "0.0.0",
        "supportedInterfaces": [{"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}],
        "capabilities": {"extensions": mark},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "default", "name": "A", "description": "A", "tags": ["default"]}]
    });
    assert_eq!(Value::Object(new.card.clone()), wanted);
    let put_in = [
        ("/description", "A"),
        ("/version", "0.0.0"),
        ("/defaultInputModes", "text/plain"),
        ("/defaultOutputModes", "text/plain"),
        ("/skills", "default"),
    ];
    assert_eq!(found(&new, "convert.default"), put_in);
    let assumed = [("/supportedInterfaces", "1 of 1 undated: 0.3 assumed")];
    assert_eq!(found(&new, "convert.version-assumed"), assumed);
    assert_eq!(found(&new, "convert.protocol"), [("", "0.3")]);

    let wanted = json!({
        "name": "A", "description": "A", "version": "0.0.0", "protocolVersion": "0.3.0",
        "url": "https://a.example", "preferredTransport": "JSONRPC",
        "capabilities": {"extensions": mark},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": []
    });
    assert_eq!(Value::Object(old.card.clone()), wanted);
    assert_eq!(found(&old, "convert.default"), put_in[..4]);
    assert_eq!(found(&old, "convert.protocol"), []);
}

#[test]
fn a_card_without_an_address_says_so_and_invents_none() {
    let [new, old] = both(&json!({"name": "A", "endpoint": "https://a.example"}));
    for converted in [&new, &old] {
        assert_eq!(
            found(converted, "convert.no-address"),
            [("", "https://a.example")]
        );
        let gravest = converted.findings.iter().map(|f| f.severity).max();
        assert_eq!(gravest, Some(Severity::Error));
        assert!(!json!(converted.card).to_string().contains("a.example"));
        assert_eq!(again(converted).1.family, CardFamily::NoAddress);
    }
    assert!(!new.card.contains_key("supportedInterfaces"));
    assert!(!old.card.contains_key("url") && !old.card.contains_key("preferredTransport"));
}

#[test]
fn undated_interfaces_are_dated_by_the_form_of_their_card() {
    let entries = json!([{"url": "https://a.example", "protocolBinding": "GRPC"}]);
    let card = json!({"name": "A", "supportedInterfaces": entries});
    let [new, old] = both(&card);
    assert_eq!(new.card["supportedInterfaces"][0]["protocolVersion"], "1.0");
    assert_eq!(found(&new, "convert.protocol"), []);
    assert_eq!(old.card["protocolVersion"], "1.0.0");
    assert_eq!(old.card["preferredTransport"], "GRPC");
    assert_eq!(found(&old, "convert.protocol"), [("", "1.0")]);
}

#[test]
fn a_0_3_card_has_the_addresses_that_speak_0_3() {
    let entry = |host: &str, binding: &str, version: &str| json!({"url": format!("https://{host}.example"), "protocolBinding": binding, "protocolVersion": version});
    let card = |entries: Value| read(&json!({"name": "A", "supportedInterfaces": entries}));
    let mixed = convert_to_0_3(&card(json!([
        entry("new", "JSONRPC", "1.0"),
        entry("old", "HTTP+JSON", "0.3"),
        entry("older", "JSONRPC", "0.2"),
        entry("old", "GRPC", "0.3"),
    ])));
    assert_eq!(mixed.card["url"], "https://old.example");
    assert_eq!(mixed.card["preferredTransport"], "HTTP+JSON");
    assert_eq!(mixed.card["protocolVersion"], "0.3.0");
    let additional = json!([
        {"url": "https://old.example", "transport": "HTTP+JSON"},
        {"url": "https://old.example", "transport": "GRPC"}
    ]);
    assert_eq!(mixed.card["additionalInterfaces"], additional);
    let left = [
        (
            "/additionalInterfaces",
            "https://new.example (JSONRPC, 1.0)",
        ),
        (
            "/additionalInterfaces",
            "https://older.example (JSONRPC, 0.2)",
        ),
    ];
    assert_eq!(found(&mixed, "convert.interface"), left);
    assert_eq!(found(&mixed, "convert.protocol"), []);

    let none = convert_to_0_3(&card(json!([
        entry("new", "JSONRPC", "1.0"),
        entry("older", "JSONRPC", "0.2"),
    ])));
    assert_eq!(none.card["url"], "https://older.example");
    assert_eq!(none.card["protocolVersion"], "0.3.0");
    assert!(!none.card.contains_key("additionalInterfaces"));
    let raised = [("/additionalInterfaces", "1 of 1 of 0.2: written as 0.3")];
    assert_eq!(found(&none, "convert.version-raised"), raised);
    assert_eq!(found(&none, "convert.no-client"), []);

    let newer = convert_to_0_3(&card(json!([
        entry("newest", "JSONRPC", "1.2"),
        entry("new", "JSONRPC", "1.0"),
    ])));
    assert_eq!(newer.card["url"], "https://newest.example");
    assert_eq!(newer.card["protocolVersion"], "1.2.0");
    assert_eq!(found(&newer, "convert.interface").len(), 1);
    assert_eq!(
        found(&newer, "convert.no-client"),
        [("", "JSONRPC 1.2 at https://newest.example")]
    );
}

#[test]
fn clients_of_the_version_can_call_the_agent_or_it_is_said_that_none_can() {
    let flat = |members: Value| {
        let mut card = json!({"name": "A", "url": "https://a.example"});
        for (name, value) in members.as_object().unwrap() {
            card[name] = value.clone();
        }
        card
    };
    let labels = json!({"schemes": ["bearer"]});
    // Declared or apparent version, written version, and whether clients of either target can call it.
    for (card, written, new_clients, old_clients) in [
        (flat(json!({})), "0.3", true, true),
        (flat(json!({"authentication": labels})), "0.3", true, true),
        (flat(json!({"security": []})), "0.3", true, true),
        (flat(json!({"protocolVersion": "0.2.6"})), "0.3", true, true),
        (flat(json!({"protocolVersion": "0.3.0"})), "0.3", true, true),
        (flat(json!({"protocolVersion": "0.1"})), "0.1", false, false),
        (
            flat(json!({"protocolVersion": "0.1", "authentication": labels})),
            "0.1",
            false,
            false,
        ),
        (flat(json!({"protocolVersion": "1.0"})), "1.0", true, false),
        (
            flat(json!({"protocolVersion": "0.3.0", "preferredTransport": "MCP"})),
            "0.3",
            false,
            false,
        ),
    ] {
        let [new, old] = both(&card);
        let interface = &new.card["supportedInterfaces"][0];
        assert_eq!(interface["protocolVersion"], written, "{card}");
        assert_eq!(
            old.card["protocolVersion"],
            format!("{written}.0"),
            "{card}"
        );
        let clients = |converted: &ConvertedCard| found(converted, "convert.no-client").is_empty();
        assert_eq!(clients(&new), new_clients, "{card} as 1.0");
        assert_eq!(clients(&old), old_clients, "{card} as 0.3");
    }
}

#[test]
fn tenants_are_for_1_0_alone() {
    let entry = |tenant: &str| json!({"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": "0.3", "tenant": tenant});
    let card = json!({"name": "A", "supportedInterfaces": [entry("red"), entry("blue")]});
    let [new, old] = both(&card);
    assert_eq!(new.card["supportedInterfaces"], card["supportedInterfaces"]);
    assert!(
        !old.card.contains_key("additionalInterfaces"),
        "one address"
    );
    let tenants = [
        ("/additionalInterfaces", "https://a.example (JSONRPC): red"),
        ("/additionalInterfaces", "https://a.example (JSONRPC): blue"),
    ];
    assert_eq!(found(&old, "convert.tenant"), tenants);
}

#[test]
fn capabilities_are_kept_where_the_version_has_them() {
    let [new, old] = both(&flat(&json!({
        "supportsAuthenticatedExtendedCard": true,
        "capabilities": {
            "streaming": true, "pushNotifications": false, "stateTransitionHistory": true,
            "extensions": [
                {"uri": "urn:x:a", "required": true, "params": {"a": [null, 1.5]}},
                {"uri": "urn:x:b", "params": [1]}, ""
            ]
        }
    })));
    let kept = json!([
        {"uri": "urn:x:a", "required": true, "params": {"a": [null, 1.5]}},
        {"uri": "urn:x:b", "required": false}
    ]);
    for converted in [&new, &old] {
        let capabilities = &converted.card["capabilities"];
        assert_eq!(capabilities["streaming"], true);
        assert!(capabilities.get("pushNotifications").is_none());
        let extensions = capabilities["extensions"].as_array().unwrap();
        assert_eq!(extensions[..2], kept.as_array().unwrap()[..]);
        assert_eq!(extensions.len(), 3, "and the mark");
    }
    assert_eq!(new.card["capabilities"]["extendedAgentCard"], true);
    assert_eq!(old.card["supportsAuthenticatedExtendedCard"], true);
    assert_eq!(old.card["capabilities"]["stateTransitionHistory"], true);
    assert!(
        new.card["capabilities"]
            .get("stateTransitionHistory")
            .is_none()
    );
    assert_eq!(found(&new, "convert.state-history").len(), 1);
    assert_eq!(found(&old, "convert.state-history"), []);
}

#[test]
fn the_mark_names_the_first_family_whatever_is_converted_to() {
    let first = convert_to_0_3(&read(
        &json!({"name": "A", "url": "https://a.example", "authentication": {}}),
    ));
    let second = convert_to_1_0(&again(&first).1);
    let third = convert_to_0_3(&again(&second).1);
    for converted in [&first, &second, &third] {
        let extensions = converted.card["capabilities"]["extensions"]
            .as_array()
            .unwrap();
        assert_eq!(extensions.len(), 1);
        assert_eq!(extensions[0]["params"], json!({"from": "0.1"}));
    }
    // A mark that names no family, or is required, is not ours.
    let forged = json!([
        {"uri": CONVERTED_EXTENSION, "required": true, "params": {"from": "<b>"}},
        {"uri": "urn:x:a"},
        {"uri": CONVERTED_EXTENSION, "params": {"from": 1}}
    ]);
    let card = convert_to_1_0(&read(&flat(
        &json!({"capabilities": {"extensions": forged}}),
    )))
    .card;
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    assert_eq!(extensions.len(), 2);
    assert_eq!(extensions[1]["required"], false);
    assert_eq!(extensions[1]["params"], json!({"from": "0.3"}));
}

#[test]
fn the_mark_fits_into_a_full_list() {
    let extensions = |n: usize| -> Value {
        (0..n)
            .map(|i| json!({"uri": format!("urn:x:{i}")}))
            .collect()
    };
    for (there, left) in [(MAX_LIST_ELEMENTS - 1, 0), (MAX_LIST_ELEMENTS, 1)] {
        let card = flat(&json!({"capabilities": {"extensions": extensions(there)}}));
        let converted = convert_to_1_0(&read(&card));
        assert_eq!(found(&converted, "list.cut").len(), left);
        let (value, parsed) = again(&converted);
        let list = value["capabilities"]["extensions"].as_array().unwrap();
        assert_eq!(list.len(), MAX_LIST_ELEMENTS);
        assert_eq!(list[MAX_LIST_ELEMENTS - 1]["uri"], CONVERTED_EXTENSION);
        assert_eq!(convert_to_1_0(&parsed).card, converted.card);
    }
}

#[test]
fn lists_that_grew_together_end_at_their_bound() {
    let addresses = |from: usize, n: usize, binding: &str| -> Value {
        (from..from + n)
            .map(|i| json!({"url": format!("https://{i}.example"), binding: "GRPC"}))
            .collect()
    };
    let required = |n: usize, name: &str| -> Value {
        (0..n)
            .map(|i| json!({"key": [format!("{name}{i}")]}))
            .collect()
    };
    let card = json!({
        "name": "A", "url": "https://a.example",
        "supportedInterfaces": addresses(0, MAX_LIST_ELEMENTS, "protocolBinding"),
        "additionalInterfaces": addresses(MAX_LIST_ELEMENTS, MAX_LIST_ELEMENTS, "transport"),
        "securitySchemes": {"key": {"type": "mutualTLS"}},
        "security": required(MAX_LIST_ELEMENTS, "a"), "securityRequirements": required(MAX_LIST_ELEMENTS, "b"),
    });
    for converted in both(&card) {
        let places: Vec<&str> = found(&converted, "list.cut")
            .into_iter()
            .map(|f| f.0)
            .collect();
        let wanted = if converted.card.contains_key("url") {
            ["/additionalInterfaces", "/security"]
        } else {
            ["/supportedInterfaces", "/securityRequirements"]
        };
        assert_eq!(places, wanted);
        let (_, parsed) = again(&converted);
        assert_eq!(parsed.card.interfaces.len(), MAX_LIST_ELEMENTS);
        assert_eq!(parsed.card.security.len(), MAX_LIST_ELEMENTS);
    }
}

#[test]
fn modes_are_media_types() {
    let long = format!("text/plain; x={}", "İ".repeat(1_000));
    let [new, old] = both(&flat(&json!({
        "defaultInputModes": ["text", "voice", long],
        "defaultOutputModes": ["voice"],
        "skills": [{"id": "a", "name": "A", "tags": ["t"], "inputModes": ["voice", "image/*"]}]
    })));
    for converted in [&new, &old] {
        assert_eq!(converted.card["defaultInputModes"], json!(["text/plain"]));
        assert_eq!(converted.card["defaultOutputModes"], json!(["text/plain"]));
        assert_eq!(
            converted.card["skills"][0]["inputModes"],
            json!(["image/*"])
        );
        let places: Vec<&str> = found(converted, "convert.mode")
            .into_iter()
            .map(|f| f.0)
            .collect();
        let wanted = [
            "/defaultInputModes",
            "/defaultInputModes",
            "/defaultOutputModes",
            "/skills/0/inputModes",
        ];
        assert_eq!(places, wanted);
    }
}

#[test]
fn half_a_provider_is_kept() {
    for converted in both(&flat(&json!({"provider": "Harbour Light"}))) {
        let wanted = json!({"organization": "Harbour Light", "url": "about:blank"});
        assert_eq!(converted.card["provider"], wanted);
        let told = ("/provider/url", "about:blank");
        assert!(found(&converted, "convert.default").contains(&told));
    }
    for converted in both(&flat(
        &json!({"provider": {"url": "https://harbour.example/"}}),
    )) {
        let wanted = json!({"organization": "harbour.example", "url": "https://harbour.example/"});
        assert_eq!(converted.card["provider"], wanted);
    }
    for converted in both(&flat(&json!({"provider": ""}))) {
        assert!(!converted.card.contains_key("provider"), "nothing of it");
    }
}

#[test]
fn what_a_caller_must_bring_is_never_less_than_before() {
    let schemes = json!({
        "key": {"type": "apiKey", "in": "query", "name": "k"},
        "place": {"type": "apiKey", "in": "body", "name": "k"},
        "pay": {"type": "x402"},
        "door": {"type": "none"}
    });
    let [new, old] = both(&flat(&json!({
        "securitySchemes": schemes,
        "security": [{"key": ["a", "b"]}, {"pay": []}, {"place": [], "door": []}, {"gone": []}, {"door": []}]
    })));
    let required = |list: Value| -> Vec<SecurityRequirement> {
        let card = flat(&json!({"security": list}));
        read(&card).card.security
    };
    let wanted =
        required(json!([{"key": ["a", "b"]}, {"pay": []}, {"place": []}, {"gone": []}, {}]));
    for converted in [&new, &old] {
        let (value, parsed) = again(converted);
        assert_eq!(parsed.card.security, wanted);
        let names: Vec<&String> = value["securitySchemes"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(names, ["key"]);
        let unsaid = [
            ("/securitySchemes/pay", "x402"),
            ("/securitySchemes/place", "body"),
            ("/securitySchemes/gone", "required, not described"),
        ];
        assert_eq!(found(converted, "convert.scheme"), unsaid);
    }
    let requirement = &new.card["securityRequirements"][0];
    assert_eq!(
        requirement,
        &json!({"schemes": {"key": {"list": ["a", "b"]}}})
    );
    assert_eq!(
        new.card["securityRequirements"][1],
        json!({"schemes": {"pay": {}}})
    );
    assert_eq!(new.card["securityRequirements"][4], json!({}));
    assert_eq!(old.card["security"][0], json!({"key": ["a", "b"]}));
}

#[test]
fn requirements_of_skills_are_kept() {
    let card = flat(&json!({
        "securitySchemes": {"key": {"type": "mutualTLS"}, "door": {"type": "noAuth"}},
        "skills": [{"id": "a", "name": "A", "tags": ["t"], "security": [{"key": []}, {"door": []}]}]
    }));
    let [new, old] = both(&card);
    let wanted = json!([{"schemes": {"key": {}}}, {}]);
    assert_eq!(new.card["skills"][0]["securityRequirements"], wanted);
    assert_eq!(old.card["skills"][0]["security"], json!([{"key": []}, {}]));
    assert_eq!(
        new.card["securitySchemes"]["key"],
        json!({"mtlsSecurityScheme": {}})
    );
}

#[test]
fn labels_of_0_1_become_schemes_that_own_up_to_guesses() {
    let labels = [
        "apiKey", "bearer", "basic", "oauth2", "oidc", "http", "none",
    ];
    let card =
        json!({"name": "A", "url": "https://a.example", "authentication": {"schemes": labels}});
    let before = auth_labels(&read(&card).card);
    for converted in both(&card) {
        let (_, parsed) = again(&converted);
        let guessed: Vec<&str> = found(&converted, "convert.scheme-assumed")
            .into_iter()
            .map(|f| f.0)
            .collect();
        let wanted = [
            "/securitySchemes/apiKey",
            "/securitySchemes/http",
            "/securitySchemes/oauth2",
            "/securitySchemes/oidc",
        ];
        assert_eq!(guessed, wanted);
        for scheme in &parsed.card.security_schemes {
            let guess = wanted
                .iter()
                .any(|at| at.ends_with(&scheme.name) && at.len() == 17 + scheme.name.len());
            assert_eq!(scheme.description.is_some(), guess, "{scheme:?}");
        }
        let mut after = auth_labels(&parsed.card);
        let mut before = before.clone();
        before.retain(|label| label != "http");
        after.sort();
        before.sort();
        assert_eq!(after, before);
    }
}

#[test]
fn security_that_was_not_read_is_an_error() {
    let [new, old] = both(&flat(
        &json!({"security": {"authRequired": true}, "x-price": 3}),
    ));
    for converted in [&new, &old] {
        let unread = [("/security", "{\"authRequired\":true}")];
        assert_eq!(found(converted, "convert.security"), unread);
        assert_eq!(
            found(converted, "convert.unknown-member"),
            [("/x-price", "3")]
        );
        assert!(!converted.card.contains_key("security"));
    }
}

#[test]
fn flows_are_kept_as_far_as_the_version_has_room() {
    let code = json!({"authorizationUrl": "https://a.example/a", "token_url": "https://a.example/t", "scopes": ["read"], "pkceRequired": true});
    let device = json!({"deviceAuthorizationUrl": "https://a.example/d", "tokenUrl": "https://a.example/t", "refreshUrl": "https://a.example/r"});
    let flows = json!({
        "password": {"tokenUrl": ""}, "implicit": {"authorizationUrl": "https://a.example/a", "scopes": {"a": "b", "c": null}},
        "deviceCode": device, "authorization_code": code, "magic": {}
    });
    let [new, old] = both(&flat(
        &json!({"securitySchemes": {"o": {"type": "oauth2", "flows": flows}}}),
    ));
    let code = json!({"authorizationUrl": "https://a.example/a", "tokenUrl": "https://a.example/t", "scopes": {"read": ""}, "pkceRequired": true});
    let written = &new.card["securitySchemes"]["o"]["oauth2SecurityScheme"];
    assert_eq!(written, &json!({"flows": {"authorizationCode": code}}));
    let written = &old.card["securitySchemes"]["o"]["flows"];
    let implicit =
        json!({"authorizationUrl": "https://a.example/a", "scopes": {"a": "b", "c": ""}});
    assert_eq!(written["implicit"], implicit);
    assert_eq!(written.as_object().unwrap().len(), 2);
    let places = |converted| -> Vec<String> {
        let at = "/securitySchemes/o/flows/";
        let found = found(converted, "convert.flow").into_iter();
        found.map(|f| f.0.replace(at, "")).collect()
    };
    assert_eq!(
        places(&new),
        ["deviceCode", "implicit", "password", "magic"]
    );
    assert_eq!(
        places(&old),
        [
            "authorizationCode/pkceRequired",
            "deviceCode",
            "password",
            "magic"
        ]
    );

    let device =
        json!({"deviceAuthorizationUrl": "https://a.example/d", "tokenUrl": "https://a.example/t"});
    let only = flat(
        &json!({"securitySchemes": {"o": {"type": "oauth2", "flows": {"deviceCode": device}}}}),
    );
    let [new, old] = both(&only);
    let inner = &new.card["securitySchemes"]["o"]["oauth2SecurityScheme"];
    assert_eq!(inner["flows"]["deviceCode"]["scopes"], json!({}));
    assert_eq!(old.card["securitySchemes"]["o"]["flows"], json!({}));
    assert_eq!(found(&old, "convert.scheme-assumed").len(), 1);
    // The reader has already reported that these are not flows.
    let text = flat(&json!({"securitySchemes": {"o": {"type": "oauth2", "flows": "code"}}}));
    assert!(found(&convert_to_1_0(&read(&text)), "convert.flow").is_empty());
}

#[test]
fn signatures_stay_with_the_bytes_they_were_made_for() {
    for converted in both(&flat(
        &json!({"signatures": [{"protected": "e30", "signature": "AAAA"}]}),
    )) {
        assert!(!converted.card.contains_key("signatures"));
        assert_eq!(
            found(&converted, "convert.unsigned"),
            [("/signatures", "1 signatures")]
        );
    }
}

#[test]
fn a_scheme_no_longer_fits_when_lower_case_is_longer() {
    let card = |n: usize| {
        flat(&json!({"securitySchemes": {"h": {"type": "http", "scheme": "İ".repeat(n)}}}))
    };
    for (length, unsaid) in [(512, 0), (513, 1)] {
        let converted = convert_to_1_0(&read(&card(length)));
        assert_eq!(
            found(&converted, "convert.scheme").len(),
            unsaid,
            "{length}"
        );
        assert_eq!(convert_to_1_0(&again(&converted).1).card, converted.card);
    }
}
