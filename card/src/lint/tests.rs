//! Tests of the linter: each rule found where it is broken, and not where it is kept.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::parse;

/// A card that keeps every rule of 1.0.
fn good() -> Value {
    json!({
        "name": "Flight desk", "description": "Finds and books flights.", "version": "2.1.0",
        "supportedInterfaces": [{"url": "https://desk.agents-r-us.io/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "provider": {"organization": "Agents R Us", "url": "https://agents-r-us.io"},
        "capabilities": {"streaming": true},
        "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
        "securityRequirements": [{"schemes": {"key": {"list": []}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "book", "name": "Book", "description": "Books.", "tags": ["travel"], "examples": ["Book me a flight"]}]
    })
}

/// The ids found in a card, in order.
fn found(card: &Value) -> Vec<(String, String)> {
    let bytes = card.to_string();
    let parsed = parse(bytes.as_bytes()).unwrap();
    all_findings(&parsed, bytes.as_bytes())
        .into_iter()
        .map(|finding| (finding.rule, finding.pointer))
        .collect()
}

/// Whether the rule is broken at the place, and nowhere in the good card.
fn breaks(change: impl FnOnce(&mut Value), rule: &str, pointer: &str) {
    let mut card = good();
    change(&mut card);
    let found = found(&card);
    let wanted = (rule.to_owned(), pointer.to_owned());
    assert!(found.contains(&wanted), "{rule} at {pointer}: {found:?}");
}

#[test]
fn a_good_card_has_no_findings() {
    assert_eq!(found(&good()), []);
}

#[test]
fn every_version_has_its_required_members() {
    breaks(|c| c["description"] = Value::Null, "required.1.0", "");
    breaks(|c| c["skills"] = json!([]), "required.1.0", "");
    breaks(
        |c| c["skills"][0]["tags"] = json!([]),
        "required.1.0",
        "/skills/0",
    );
    breaks(
        |c| c["supportedInterfaces"][0]["protocolVersion"] = Value::Null,
        "required.1.0",
        "/supportedInterfaces/0",
    );
    let flat = |version: Value| {
        let mut card = good();
        card.as_object_mut().unwrap().remove("supportedInterfaces");
        card["url"] = json!("https://desk.agents-r-us.io");
        card["protocolVersion"] = version;
        card
    };
    let ids = |card: &Value| found(card).into_iter().map(|f| f.0).collect::<Vec<_>>();
    assert!(
        !ids(&flat(json!("0.3.0")))
            .iter()
            .any(|id| id.starts_with("required."))
    );
    assert!(ids(&flat(json!("1.0"))).contains(&"required.1.0".to_owned()));
    let mut old = flat(json!("0.3.0"));
    old["defaultInputModes"] = Value::Null;
    assert!(ids(&old).contains(&"required.0.3".to_owned()));
    old["protocolVersion"] = json!("0.2.6");
    assert!(ids(&old).contains(&"required.0.2".to_owned()));
    let undated = json!({"name": "A", "url": "https://a.agents-r-us.io"});
    assert!(ids(&undated).contains(&"required.0.1".to_owned()));
}

#[test]
fn addresses_are_judged() {
    let at = "/supportedInterfaces/0/url";
    let url = |text: &'static str| {
        move |card: &mut Value| card["supportedInterfaces"][0]["url"] = json!(text)
    };
    for private in [
        "http://localhost:8080",
        "https://10.1.2.3/",
        "https://[::1]/",
        "https://[::ffff:192.168.0.1]/",
        "https://[fd00::1]/",
        "https://printer.local/",
        "https://agent/",
        "http://169.254.169.254/a2a",
        "https://100.64.0.1/",
    ] {
        breaks(url(private), "endpoint.private", at);
    }
    breaks(url("http://desk.agents-r-us.io"), "endpoint.http", at);
    breaks(url("/api/a2a"), "endpoint.url", at);
    breaks(url("mailto:a@agents-r-us.io"), "endpoint.url", at);
    breaks(url("https://a.example.com/"), "endpoint.example", at);
    breaks(url("https://{BASE_URL}/"), "text.placeholder", at);
    let mut grpc = good();
    grpc["supportedInterfaces"][0] = json!({"url": "desk.agents-r-us.io:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"});
    assert_eq!(found(&grpc), []);
    breaks(
        |c| c["supportedInterfaces"][0]["protocolBinding"] = json!("https://b.io/binding"),
        "endpoint.no-core-binding",
        "",
    );
    breaks(
        |c| c["iconUrl"] = json!("javascript:alert(1)"),
        "link.scheme",
        "/iconUrl",
    );
    let conflict = json!({
        "name": "A", "url": "https://a.agents-r-us.io", "protocolVersion": "0.3.0",
        "additionalInterfaces": [{"url": "https://a.agents-r-us.io", "transport": "GRPC"}]
    });
    assert!(found(&conflict).iter().any(|f| f.0 == "endpoint.conflict"));
}

#[test]
fn skills_security_and_signatures_are_judged() {
    breaks(
        |c| c["skills"][0]["examples"] = json!([]),
        "skill.examples",
        "/skills/0",
    );
    breaks(
        |c| c["skills"][0]["tags"] = json!([]),
        "skill.tags",
        "/skills/0",
    );
    breaks(
        |c| {
            let skill = c["skills"][0].clone();
            c["skills"].as_array_mut().unwrap().push(skill);
        },
        "skill.duplicate-id",
        "/skills/1",
    );
    breaks(
        |c| c["securityRequirements"] = json!([{"schemes": {"gone": {}}}]),
        "security.undeclared",
        "/securityRequirements",
    );
    breaks(
        |c| c["securityRequirements"] = json!([]),
        "security.unrequired",
        "/securitySchemes",
    );
    let signed = |header: &'static str| {
        move |card: &mut Value| {
            use base64::Engine as _;
            let protected = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(header);
            card["signatures"] = json!([{"protected": protected, "signature": "AAAA"}]);
        }
    };
    breaks(
        signed(r#"{"alg":"ES256"}"#),
        "signature.kid",
        "/signatures/0",
    );
    breaks(signed(r#"{"kid":"k"}"#), "signature.alg", "/signatures/0");
    breaks(
        signed(r#"{"alg":"HS256","kid":"k"}"#),
        "signature.alg",
        "/signatures/0",
    );
    breaks(signed("text"), "signature.form", "/signatures/0");
    let count = |n: usize| move |c: &mut Value| c["signatures"] = vec![json!({}); n].into();
    breaks(count(17), "signature.count", "/signatures");
    let mut full = good();
    count(16)(&mut full);
    assert!(
        found(&full)
            .iter()
            .all(|(rule, _)| rule != "signature.count")
    );
    for header in [
        r#"{"alg":"ES512","kid":"k"}"#,
        r#"{"alg":"ES256","kid":"k","crit":["exp"]}"#,
        r#"{"alg":"ES256","kid":"k","jwk":{}}"#,
    ] {
        breaks(signed(header), "signature.header", "/signatures/0");
    }
    let mut card = good();
    signed(r#"{"alg":"ES256","kid":"k"}"#)(&mut card);
    assert_eq!(found(&card), []);
}
