//! Tests of required credentials in members that no version defines.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::{
    ConversionTarget, MAX_LIST_ELEMENTS, ParsedCard, auth_labels, convert_card,
    has_unreadable_auth, parse_card, security_sentences,
};

fn read(members: &Value) -> ParsedCard {
    let mut document = json!({"name": "A", "url": "https://a.example"});
    for (name, value) in members.as_object().unwrap() {
        document[name] = value.clone();
    }
    parse_card(document.to_string().as_bytes()).unwrap()
}

#[test]
fn a_demand_is_never_read_as_an_open_door() {
    for (members, labels) in [
        // Credentials are required, but it is unknown which.
        (json!({"auth": {"required": true}}), &["unknown"][..]),
        (json!({"auth": true}), &["unknown"]),
        (json!({"auth": "required"}), &["unknown"]),
        (json!({"auth": {"note": "ask us"}}), &["unknown"]),
        (json!({"auth_required": true}), &["unknown"]),
        (json!({"authRequired": "True"}), &["unknown"]),
        (json!({"requiresAuthentication": true}), &["unknown"]),
        (json!({"requires_auth": true}), &["unknown"]),
        (json!({"authorizationRequired": true}), &["unknown"]),
        (json!({"api_key_required": 1}), &["unknown"]),
        (json!({"credentials-required": ["send"]}), &["unknown"]),
        (
            json!({"metadata": {"authorizationRequired": true}}),
            &["unknown"],
        ),
        (
            json!({"capabilities": {"authentication": true}}),
            &["unknown"],
        ),
        (json!({"authentication": {"required": true}}), &["unknown"]),
        (json!({"authentication": true}), &["unknown"]),
        // Values about permissions name no scheme.
        (json!({"auth": "role_based"}), &["unknown"]),
        (json!({"authentication": "role_based"}), &["unknown"]),
        (
            json!({"authentication": {"schemes": ["role-based", "auth_required"]}}),
            &["unknown"],
        ),
        (json!({"authorization": {"type": "RBAC"}}), &["unknown"]),
        (json!({"securitySchemes": ["role_based"]}), &["unknown"]),
        (
            json!({"securitySchemes": {"roles": {"type": "role_based"}}}),
            &["unknown"],
        ),
        (
            json!({"calling_pattern": {"auth": "Send the token you were given"}}),
            &["unknown"],
        ),
        (json!({"authentication": "required"}), &["unknown"]),
        (json!({"authentication": {"schemes": [{}]}}), &["unknown"]),
        (
            json!({"authentication": {"schemes": ["none"], "required": true}}),
            &["unknown"],
        ),
        (json!({"security": {"authRequired": true}}), &["unknown"]),
        (
            json!({"security": {"authentication": "Ask the bot for a token"}}),
            &["unknown"],
        ),
        (json!({"security": "https://a.example/auth"}), &["unknown"]),
        (json!({"security": 7}), &["unknown"]),
        (json!({"security": [7]}), &["unknown"]),
        (json!({"security": [[]]}), &["unknown"]),
        (json!({"securitySchemes": {"k": 7}}), &["unknown"]),
        (json!({"securitySchemes": [[]]}), &["unknown"]),
        (json!({"security": [], "auth_required": true}), &["unknown"]),
        (
            json!({"security": [{}], "auth_required": true}),
            &["unknown"],
        ),
        (
            json!({"securitySchemes": {"n": {"type": "none"}}, "auth": {"required": true}}),
            &["unknown"],
        ),
        (
            json!({"auth_required": true, "auth_type": "none"}),
            &["unknown"],
        ),
        // The requirement can be read.
        (
            json!({"auth": {"required": true, "type": "bearer"}}),
            &["http:bearer"],
        ),
        (json!({"auth": "bearer"}), &["http:bearer"]),
        (
            json!({"auth": ["bearer", "apiKey"]}),
            &["apiKey", "http:bearer"],
        ),
        (
            json!({"auth": {"scheme": "oauth2", "token_url": "https://a.example/t"}}),
            &["oauth2"],
        ),
        (json!({"auth": {"scheme": "bearer"}}), &["http:bearer"]),
        (
            json!({"auth": {"bearer": {"token_type": "opaque"}}}),
            &["http:bearer"],
        ),
        (json!({"auth": {"methods": ["oidc"]}}), &["openIdConnect"]),
        (
            json!({"auth": {"type": "Telegram-token"}}),
            &["Telegram-token"],
        ),
        (
            json!({"auth_required": true, "auth_type": "api_key"}),
            &["apiKey"],
        ),
        (json!({"auth_required": "bearer"}), &["http:bearer"]),
        (
            json!({"authentication": {"schemes": ["api_key_required"]}}),
            &["apiKey"],
        ),
        (json!({"auth": "api_key_required"}), &["apiKey"]),
        (
            json!({"security": {"authentication": "api_key", "authorization": "role_based"}}),
            &["apiKey"],
        ),
        (
            json!({"authentication": {"schemes": ["bearer", "role_based"]}}),
            &["http:bearer"],
        ),
        (
            json!({"calling_pattern": {"method": "POST", "auth": {"type": "bearer"}}}),
            &["http:bearer"],
        ),
        (
            json!({"a2a_transport": {"protocol": "jsonrpc-2.0", "authentication": ["bearer_auth", "api_key"]}}),
            &["apiKey", "http:bearer"],
        ),
        (
            json!({"auth_required": true, "auth_schemes": [{"type": "bearer", "scheme": "bearer"}]}),
            &["http:bearer"],
        ),
        (
            json!({"authentication": {"schemes": [{"type": "bearer"}, "basic"]}}),
            &["http:basic", "http:bearer"],
        ),
        (
            json!({"authentication": {"schemes": {"mtls": {}, "jwt": {}}}}),
            &["http:bearer", "mutualTLS"],
        ),
        (
            json!({"authentication": [{"scheme": "oauth2"}]}),
            &["oauth2"],
        ),
        (
            json!({"authentication": {"schemes": ["bearer"], "required": false}}),
            &["http:bearer", "none"],
        ),
        (json!({"security": "bearer"}), &["http:bearer"]),
        (json!({"security": {"bearerAuth": []}}), &["http:bearer"]),
        (
            json!({"security": {"authentication_methods": ["none", "api_key"]}}),
            &["apiKey", "none"],
        ),
        (
            json!({"capabilities": {"authentication": ["bearer"]}}),
            &["http:bearer"],
        ),
        (
            json!({"url": null, "supportedInterfaces": [
                {"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "auth": "bearer"},
            ]}),
            &["http:bearer"],
        ),
        (
            json!({"additionalInterfaces": [
                {"url": "https://a.example/b", "transport": "JSONRPC", "requires_auth": true},
            ]}),
            &["unknown"],
        ),
        // Requirements in the form of a version take precedence.
        (
            json!({"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X"}}, "auth": "bearer", "auth_required": true}),
            &["apiKey"],
        ),
        // The card, or the rule of its version, says that nothing is required.
        (json!({"auth": {"type": "none"}}), &["none"]),
        (json!({"auth": {"required": false}}), &["none"]),
        (
            json!({"auth_required": false, "authentication": {"schemes": []}}),
            &["none"],
        ),
        (
            json!({"security": {"authRequired": false, "note": "localhost"}}),
            &["none"],
        ),
        (
            json!({"capabilities": {"authentication": "none"}}),
            &["none"],
        ),
        (
            json!({"auth": null, "auth_schemes": [], "auth_type": ""}),
            &["none"],
        ),
        (
            json!({"authentication": {"credentials": null, "schemes": null}}),
            &["none"],
        ),
        (
            json!({"authentication": {"credentials": "x", "schemes": []}}),
            &["none"],
        ),
        (
            json!({"auth": [{"type": "none"}, {"type": "none"}]}),
            &["none"],
        ),
        (json!({"securitySchemes": {}, "security": []}), &["none"]),
        (
            json!({"author": "me", "authority_required": true, "authors_needed": true}),
            &["none"],
        ),
        (
            json!({"capabilities": {"authenticated_extended_card": true}}),
            &["none"],
        ),
        (
            json!({"x-tools": [{"auth": "apiKey", "auth_required": true}]}),
            &["none"],
        ),
    ] {
        let parsed = read(&members);
        let mut found = auth_labels(&parsed.card);
        found.sort();
        assert_eq!(found, labels, "{members}");
        let unread = labels == ["unknown"];
        assert_eq!(has_unreadable_auth(&parsed.card), unread, "{members}");
        let open = labels.contains(&"none");
        let sentences = security_sentences(&parsed.card);
        let nothing = sentences.iter().any(|s| s == "Call without credentials");
        assert_eq!(nothing, open, "{members}: {sentences:?}");
        for target in ConversionTarget::ALL {
            let lost = convert_card(&parsed, target).findings;
            let lost = lost
                .iter()
                .any(|finding| finding.rule == "convert.security");
            assert!(lost || !unread, "{members} to {target}");
        }
    }
}

#[test]
fn keys_go_where_the_card_says() {
    let parsed = read(&json!({
        "auth_required": true,
        "auth_schemes": [
            {"type": "bearer", "scheme": "bearer", "bearerFormat": "JWT"},
            {"id": "key", "type": "apiKey", "in": "header", "name": "X-API-Key"},
        ]
    }));
    assert_eq!(
        security_sentences(&parsed.card),
        [
            "Send a bearer token (JWT)",
            "Send an API key in the header `X-API-Key`"
        ]
    );
    let keyed = read(&json!({"auth": {"apiKey": {"in": "query", "name": "k"}}}));
    assert_eq!(
        security_sentences(&keyed.card),
        ["Send an API key in the query parameter `k`"]
    );
}

#[test]
fn what_no_client_reads_is_a_finding_where_it_stands() {
    let found = |members: &Value| -> Vec<(String, String)> {
        let findings = read(members).findings.into_iter();
        findings
            .map(|finding| (finding.rule, finding.pointer))
            .collect()
    };
    let elsewhere = |at: &str| vec![("security.elsewhere".to_owned(), at.to_owned())];
    assert_eq!(found(&json!({"auth": "bearer"})), elsewhere("/auth"));
    let nested = json!({"metadata": {"requiresAuth": true}});
    assert_eq!(found(&nested), elsewhere("/metadata/requiresAuth"));
    let mistyped = vec![("member.type".to_owned(), "/authentication".to_owned())];
    for unread in [json!({"required": true}), json!(true), json!([7])] {
        assert_eq!(found(&json!({"authentication": unread})), mistyped);
    }
    assert_eq!(found(&json!({"auth": {"type": "none"}})), []);
    assert_eq!(found(&json!({"auth_required": false})), []);
    let both = json!({
        "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X"}},
        "auth": "bearer"
    });
    assert_eq!(found(&both), [], "what clients read says it too");
}

#[test]
fn what_was_read_of_a_member_of_a_version_is_no_longer_unknown() {
    let read_of = |members: &Value| read(members).card.unknown;
    assert!(read_of(&json!({"security": "bearer"})).is_empty());
    assert!(read_of(&json!({"security": {"authRequired": true}})).contains_key("security"));
    assert!(read_of(&json!({"auth": "bearer"})).contains_key("auth"));
}

#[test]
fn a_list_is_read_to_its_bound() {
    let many: Vec<String> = (0..=MAX_LIST_ELEMENTS).map(|n| format!("own{n}")).collect();
    let read = |n: usize| {
        read(&json!({"auth": many[..n]}))
            .card
            .security_schemes
            .len()
    };
    assert_eq!(read(MAX_LIST_ELEMENTS), MAX_LIST_ELEMENTS);
    assert_eq!(read(MAX_LIST_ELEMENTS + 1), MAX_LIST_ELEMENTS);
}
