//! Tests that cards are served byte for byte at all their paths.

use std::collections::BTreeSet;

use a2a_registry_api::Registration;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_domain::role::Role;
use actix_web::test::TestRequest;
use ring::digest::{SHA256, digest};

use crate::jobs::{self, JobOptions};
use crate::tests::{ADMIN, Registry, bearer};

/// Registers the sample agents with a registry that approves everything, and waits until one is found.
pub(crate) async fn with_agents(
    registry: &Registry,
) -> (String, jobs::Jobs, a2a_registry_demo::SampleAgents) {
    let jobs = jobs::start_jobs(&registry.state.context, JobOptions::default());
    let samples = a2a_registry_demo::start_sample_agents(registry.context().clock())
        .await
        .unwrap();
    let admin = registry.admin().await;
    for agent in &samples.agents {
        let what = Registration {
            card_url: Some(agent.card_url.clone()),
            ..Registration::default()
        };
        register_domain(registry.context(), &admin, &what)
            .await
            .unwrap();
    }
    let mut signal = registry.context().event_signal();
    let found = async {
        loop {
            let list = registry.get("/v1/agents?q=flights").await.json();
            if let Some(id) = list["agents"][0]["id"].as_str() {
                return id.to_owned();
            }
            let tick = std::time::Duration::from_millis(50);
            let _ = tokio::time::timeout(tick, signal.changed()).await;
        }
    };
    let id = tokio::time::timeout(std::time::Duration::from_secs(20), found)
        .await
        .unwrap();
    (id, jobs, samples)
}

#[actix_web::test]
async fn a_card_is_given_in_the_form_of_another_version() {
    let registry = Registry::with(|config| config.governance.approve_all = true).await;
    let (id, jobs, samples) = with_agents(&registry).await;
    let card = registry.get(&format!("/v1/agents/{id}/card")).await;
    let original = a2a_card::parse_card(&card.body).unwrap();
    assert!(!card.headers.contains_key("a2a-registry-conversion"));
    for (target, members) in [
        ("1.0", ["supportedInterfaces", "skills"]),
        ("0.3", ["url", "protocolVersion"]),
    ] {
        let path = format!("/v1/agents/{id}/card?as={target}");
        let converted = registry.get(&path).await;
        assert_eq!(converted.status, 200);
        assert_eq!(converted.header("content-type"), "application/json");
        let read = a2a_card::parse_card(&converted.body).unwrap();
        let document = converted.json();
        for member in members {
            assert!(document.get(member).is_some(), "{member} to {target}");
        }
        assert_eq!(read.card.name, original.card.name);
        assert!(read.card.signatures.is_empty());
        let mut extensions = read.card.capabilities.extensions.iter();
        assert!(extensions.any(|extension| extension.uri == a2a_card::CONVERTED_EXTENSION));
        let tag = converted.header("etag").to_owned();
        assert_ne!(tag, card.header("etag"));
        let told = converted.header("a2a-registry-conversion").to_owned();
        let told = told.split(", ").filter(|rule| !rule.is_empty());
        let told: BTreeSet<&str> = told.collect();
        let findings = a2a_card::convert_card(&original, target.parse().unwrap()).findings;
        let rules: BTreeSet<&str> = findings.iter().map(|one| one.rule.as_str()).collect();
        assert_eq!(told, rules, "{target}");
        // The agent supports version 1.0 only.
        assert_eq!(told.contains("convert.no-client"), target == "0.3");
        let known = TestRequest::get()
            .uri(&path)
            .insert_header(("if-none-match", tag));
        assert_eq!(registry.ask(known).await.status, 304);
        let digest = a2a_card::bytes_digest(&card.body);
        let version = registry.get(&format!("{path}&version={digest}")).await;
        assert_eq!(version.body, converted.body);
    }
    let unknown = registry.get(&format!("/v1/agents/{id}/card?as=2.0")).await;
    unknown.problem(400, "invalid-request");
    jobs.stop().await;
    samples.stop().await;
}

#[actix_web::test]
async fn cards_are_handed_out_untouched() {
    let registry = Registry::with(|config| config.governance.approve_all = true).await;
    let (id, jobs, samples) = with_agents(&registry).await;
    let card = registry.get(&format!("/v1/agents/{id}/card")).await;
    assert_eq!(
        (card.status.as_u16(), card.header("content-type")),
        (200, "application/json")
    );
    let hash = digest(&SHA256, &card.body);
    let hex: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let tag = card.header("etag").to_owned();
    assert_eq!(tag, format!("\"sha256:{hex}\""));
    assert!(card.header("cache-control").contains("no-cache"));

    for path in [
        format!("/v1/agents/{id}/card"),
        format!("/agents/{id}/.well-known/agent-card.json"),
        format!("/agents/{id}/.well-known/agent.json"),
        format!("/v1/agents/{id}/card?version=sha256:{hex}"),
    ] {
        let eager = TestRequest::get()
            .uri(&path)
            .insert_header(("accept-encoding", "br, gzip"));
        let same = registry.ask(eager).await;
        assert_eq!(same.body, card.body, "{path}");
        assert_eq!(same.header("content-encoding"), "", "{path}");
        assert_eq!(same.header("etag"), tag, "{path}");
        for known in [tag.clone(), format!("W/{tag}"), "*".into()] {
            let request = TestRequest::get()
                .uri(&path)
                .insert_header(("if-none-match", known));
            let again = registry.ask(request).await;
            assert_eq!(
                (again.status.as_u16(), again.header("etag")),
                (304, tag.as_str()),
                "{path}"
            );
            assert!(again.body.is_empty());
        }
        let other = TestRequest::get()
            .uri(&path)
            .insert_header(("if-none-match", "\"sha256:0\""));
        assert_eq!(registry.ask(other).await.status, 200, "{path}");
    }
    let version = registry
        .get(&format!("/v1/agents/{id}/card?version=sha256:{hex}"))
        .await;
    assert_eq!(
        version.header("content-type"),
        "application/a2a-agent-card+json"
    );
    assert!(version.header("cache-control").contains("max-age=300"));
    registry
        .get(&format!(
            "/v1/agents/{id}/card?version=sha256:{}",
            "0".repeat(64)
        ))
        .await
        .problem(404, "not-found");

    // A card on hold is not found by any caller at any path.
    let shown = registry.get(&format!("/v1/agents/{id}")).await;
    assert!(shown.header("etag").starts_with("W/"));
    let act = bearer(
        TestRequest::post().uri(&format!("/v1/agents/{id}:suspend")),
        ADMIN,
    );
    let act = registry
        .ask(act.set_json(serde_json::json!({"reason": "a test"})))
        .await;
    assert_eq!(act.json()["lifecycle"], "suspended");
    for path in [
        format!("/v1/agents/{id}"),
        format!("/v1/agents/{id}/card"),
        format!("/v1/agents/{id}/card?version=sha256:{hex}"),
        format!("/v1/agents/{id}/versions"),
        format!("/agents/{id}/.well-known/agent-card.json"),
    ] {
        let request = TestRequest::get()
            .uri(&path)
            .insert_header(("if-none-match", tag.clone()));
        registry.ask(request).await.problem(404, "not-found");
    }
    jobs.stop().await;
    samples.stop().await;
}

/// SDK resolvers append the well-known path to a base URL, which exists for conversions. A query at that path has its
/// usual meaning.
#[actix_web::test]
async fn conversions_are_served_where_resolvers_look() {
    let registry = Registry::with(|config| config.governance.approve_all = true).await;
    let (id, jobs, samples) = with_agents(&registry).await;
    jobs.stop().await;
    let published = registry.get(&format!("/v1/agents/{id}/card")).await;
    for form in ["1.0", "0.3"] {
        let converted = registry
            .get(&format!("/v1/agents/{id}/card?as={form}"))
            .await;
        assert_eq!(converted.status, 200);
        assert_ne!(converted.body, published.body, "{form}");
        let losses = converted.header("a2a-registry-conversion");
        for file in ["agent-card.json", "agent.json"] {
            for path in [
                format!("/agents/{id}/as/{form}/.well-known/{file}"),
                format!("/agents/{id}/.well-known/{file}?as={form}"),
            ] {
                let served = registry.get(&path).await;
                assert_eq!(served.body, converted.body, "{path}");
                assert_eq!(served.header("a2a-registry-conversion"), losses, "{path}");
                assert_eq!(served.header("etag"), converted.header("etag"), "{path}");
            }
        }
    }
    for path in [
        "as/9.9/.well-known/agent-card.json",
        "as/1.0/.well-known/agent-card.json?as=0.3",
        ".well-known/agent-card.json?as=9.9",
        ".well-known/agent.json?as=9.9",
        ".well-known/agent.json?form=1.0",
    ] {
        let refused = registry.get(&format!("/agents/{id}/{path}")).await;
        refused.problem(400, "invalid-request");
    }
    samples.stop().await;
}

#[actix_web::test]
async fn an_agent_has_a_tag_for_what_each_caller_sees() {
    let registry = Registry::with(|config| config.governance.approve_all = true).await;
    let (id, jobs, samples) = with_agents(&registry).await;
    jobs.stop().await;
    let path = format!("/v1/agents/{id}");
    let ask = async |token: Option<&str>, tag: &str| {
        let request = TestRequest::get()
            .uri(&path)
            .insert_header(("if-none-match", tag));
        let request = match token {
            Some(token) => bearer(request, token),
            None => request,
        };
        registry.ask(request).await
    };
    let post = async |act: &str| {
        let uri = format!("{path}:{act}");
        let request = bearer(TestRequest::post().uri(&uri), ADMIN);
        let body = serde_json::json!({"reason": "a test"});
        assert_eq!(registry.ask(request.set_json(body)).await.status, 200);
    };
    let first = ask(None, "").await.header("etag").to_owned();
    assert!(first.starts_with("W/"));
    for _ in 0..2 {
        for token in [None, Some(ADMIN)] {
            assert_eq!(ask(token, &first).await.status, 304);
            assert_eq!(ask(token, "W/\"other\"").await.status, 200);
        }
    }
    post("suspend").await;
    for _ in 0..2 {
        ask(None, &first).await.problem(404, "not-found");
        let held = ask(Some(ADMIN), &first).await;
        assert_eq!(
            (
                held.status.as_u16(),
                held.json()["holds"].as_array().unwrap().len()
            ),
            (200, 1)
        );
        assert_eq!(ask(Some(ADMIN), held.header("etag")).await.status, 304);
    }
    post("resume").await;
    let patch = bearer(TestRequest::patch().uri(&path), ADMIN);
    let labels = serde_json::json!({"labels": {"team": "blue"}});
    assert_eq!(registry.ask(patch.set_json(labels)).await.status, 200);
    let labelled = ask(None, &first).await;
    assert_eq!(
        (labelled.status.as_u16(), &labelled.json()["labels"]["team"]),
        (200, &"blue".into())
    );
    // An expired token is rejected even if the card is cached.
    let token = registry.token(Role::Publisher).await;
    assert_eq!(ask(Some(&token), "").await.status, 200);
    let gone = a2a_registry_core::accounts::authentication::sha256_hex(&token);
    let (row, _) = a2a_registry_store::accounts::token_by_hash(&registry.context().store, &gone)
        .await
        .unwrap()
        .unwrap();
    let end = TestRequest::delete().uri(&format!("/v1/tokens/{}", row.id));
    assert!(registry.ask(bearer(end, ADMIN)).await.status.is_success());
    ask(Some(&token), "").await.problem(401, "unauthenticated");
    samples.stop().await;
}
