//! The catalog at the well-known paths.

use jsonschema::draft202012;
use reqwest::Method;
use reqwest::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LAST_MODIFIED,
};
use serde_json::{Value, json};

use super::{AGENTS, ArdRegistry, Audience, identifiers, urn};
use crate::support::api::ApiResponse;
use crate::support::both_databases;

const ARD: &str = "/.well-known/ard.json";
const AI_CATALOG: &str = "/.well-known/ai-catalog.json";

/// What ARD 0.91 asks of a manifest and its entries, and AI Catalog 1.0 of a catalog, as the two are described.
fn schema() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let texts =
        json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true});
    json!({
        "type": "object",
        "required": ["specVersion", "host", "entries"],
        "not": {"required": ["collections"]},
        "properties": {
            "specVersion": {"const": "1.0"},
            "host": {
                "type": "object",
                "required": ["displayName"],
                "properties": {"displayName": text, "identifier": {"pattern": "^did:web:"}},
            },
            "entries": {"type": "array", "items": {
                "type": "object",
                "required": ["identifier", "displayName", "type"],
                "oneOf": [{"required": ["url"]}, {"required": ["data"]}],
                "properties": {
                    "identifier": {"type": "string", "pattern": "^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$"},
                    "displayName": text,
                    "type": {"type": "string", "pattern": "^[a-z]+/[a-z0-9.+-]+$"},
                    "url": {"type": "string", "pattern": "^https?://"},
                    "data": {"type": "object"},
                    "description": {"type": "string"},
                    "version": {"type": "string"},
                    "tags": texts,
                    "capabilities": texts,
                    "representativeQueries": {"type": "array", "items": text, "minItems": 2, "maxItems": 5},
                    "updatedAt": {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$"},
                    "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
                    "publisher": {"type": "object", "required": ["identifier", "displayName"]},
                    "metadata": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
                    "trustManifest": {"type": "object", "required": ["identity"], "properties": {"identity": text}},
                },
            }},
        },
    })
}

/// Whether a value holds a null anywhere.
fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.iter().any(holds_null),
        Value::Object(members) => members.values().any(holds_null),
        _ => false,
    }
}

both_databases!(the_catalog_is_one_for_everybody);

async fn the_catalog_is_one_for_everybody(url: &str) {
    let registry = ArdRegistry::new(url).await;
    let public: Vec<String> = (0..AGENTS.len())
        .filter(|number| AGENTS[*number].1 == Audience::Everybody)
        .map(urn)
        .collect();
    let first = registry
        .ask(registry.anonymous(), Method::GET, ARD, None)
        .await;
    let catalog = first.expect_status(200);
    let validator = draft202012::new(&schema()).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(&catalog)
        .map(|fault| fault.to_string())
        .collect();
    assert_eq!(faults, Vec::<String>::new(), "{catalog}");
    assert!(!holds_null(&catalog), "{catalog}");
    let mut listed = identifiers(&catalog["entries"]);
    assert_eq!(listed.remove(0), "urn:air:127.0.0.1:registry:main");
    listed.sort_unstable();
    assert_eq!(listed, public);
    assert_eq!(first.headers[CONTENT_TYPE], "application/json");
    assert_eq!(first.headers[CACHE_CONTROL], "public, max-age=300");
    assert_eq!(first.headers["access-control-allow-origin"], "*");
    assert!(!first.headers[ETAG].to_str().unwrap().starts_with("W/"));
    // The same bytes to whoever asks, at both places, and no coding that the tag is not of.
    for who in &registry.identities {
        for (path, kind) in [
            (ARD, "application/json"),
            (AI_CATALOG, "application/ai-catalog+json"),
        ] {
            let mut request = registry
                .api
                .request(Method::GET, path)
                .header("accept-encoding", "gzip, br");
            if let Some(token) = &who.token {
                request = request.bearer_auth(token);
            }
            let again = ApiResponse::send(request).await;
            assert_eq!(again.body, first.body, "{} {path}", who.name);
            assert_eq!(again.headers[CONTENT_TYPE], kind);
            assert_eq!(again.headers[ETAG], first.headers[ETAG]);
            assert_eq!(again.headers[LAST_MODIFIED], first.headers[LAST_MODIFIED]);
            assert!(again.headers.get(CONTENT_ENCODING).is_none());
        }
    }
    let known = registry
        .api
        .request(Method::GET, AI_CATALOG)
        .header(IF_NONE_MATCH, &first.headers[ETAG]);
    assert_eq!(ApiResponse::send(known).await.status, 304);
    // What is suspended leaves the catalog with the act, before the index has applied anything.
    let id = registry.inner.agent(&super::domain(0)).await.id;
    let act = a2a_registry_api::Act {
        reason: "a test".into(),
        hold: None,
    };
    a2a_registry_core::agents::lifecycle_actions::agent_suspend(
        &registry.inner.app,
        &registry.inner.admin,
        &id.to_string(),
        &act,
    )
    .await
    .unwrap();
    let after = registry.get(registry.anonymous(), ARD).await;
    assert!(!identifiers(&after["entries"]).contains(&urn(0)));
    registry.stop().await;
}

#[tokio::test]
async fn pages_and_robots_lead_to_the_catalog() {
    let database = crate::support::database::Database::sqlite();
    let registry = ArdRegistry::new(database.url()).await;
    let page = registry
        .ask(registry.anonymous(), Method::GET, "/", None)
        .await;
    let link = page.headers["link"].to_str().unwrap();
    assert!(
        link.contains("</.well-known/ard.json>; rel=\"ard\""),
        "{link}"
    );
    assert!(
        link.contains("</.well-known/ai-catalog.json>; rel=\"ai-catalog\""),
        "{link}"
    );
    let text = page.text();
    let head = &text[..text.find("</head>").unwrap()];
    assert!(
        head.contains("<link rel=\"ard\" href=\"/.well-known/ard.json\">"),
        "{head}"
    );
    let robots = registry
        .ask(registry.anonymous(), Method::GET, "/robots.txt", None)
        .await;
    let line = format!("Agentmap: {}{ARD}", registry.api.url);
    assert!(
        robots.text().lines().any(|one| one == line),
        "{}",
        robots.text()
    );
    registry.stop().await;
}

#[tokio::test]
async fn off_is_off() {
    let setup =
        crate::support::setup::RegistrySetup::new().with_config_lines("[ard]\nenabled = false");
    let registry = setup.start().await;
    let id = "/ard/agents/urn%3Aair%3Aa.agents-test.com%3Aagents%3Ax";
    for path in [ARD, AI_CATALOG, "/ard/agents", id] {
        let answer = ApiResponse::send(registry.api.request(Method::GET, path)).await;
        assert_eq!(answer.status, 404, "{path}");
    }
    let search = json!({"query": {"text": "parcel"}});
    let explore = json!({"resultType": {"facets": [{"field": "type"}]}});
    for (path, body) in [
        ("/ard/search", &search),
        ("/ard/c/x/search", &search),
        ("/ard/explore", &explore),
    ] {
        let request = registry.api.request(Method::POST, path).json(body);
        let answer = ApiResponse::send(request).await;
        assert_eq!(
            answer.expect_status(404)["errorCode"],
            "NOT_FOUND",
            "{path}"
        );
    }
    for path in ["/", "/about", "/docs/"] {
        let page = ApiResponse::send(registry.api.request(Method::GET, path)).await;
        assert!(!page.headers.contains_key("link"), "{path}");
        assert!(!page.text().contains("ard.json\">"), "{path}");
        assert!(!page.text().contains("Agentic Resource"), "{path}");
    }
    let robots = ApiResponse::send(registry.api.request(Method::GET, "/robots.txt")).await;
    assert!(!robots.text().contains("Agentmap"), "{}", robots.text());
}
