//! Agents under the company's authority as ARD clients see them: once in lists and searches, and by each of their
//! URNs.

use a2a_crawler::dns::{TxtLookup, TxtRecords};
use a2a_registry_api::{Act, NewToken, Registration, Vouch};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::config::{AllowPorts, Config};
use a2a_registry_core::domains::actions::vouch_for_domain;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use super::{ArdRegistry, identifiers};
use crate::support::both_databases;
use crate::support::exchange::ValidatingProxy;
use crate::support::in_process_registry::OriginResponse;

const AUTHORITY: &str = "company.agents-test.com";

both_databases!(
    agents_of_vouched_hosts_are_entries_of_the_company,
    after_a_proof_an_agent_is_retrieved_by_both_names_and_listed_once
);

fn with_authority(config: &mut Config) {
    config.crawler.allow_ports = AllowPorts::Word("any".into());
    config.crawler.allow_http = true;
    config.crawler.allow_networks = vec!["10.0.0.0/8".parse().unwrap()];
    config.ard.authority = AUTHORITY.into();
}

/// The card at a URL; each host has a content of its own.
fn card(url: &str) -> Vec<u8> {
    let way = if url.contains("10.0.0.5") { 2 } else { 1 };
    json!({
        "protocolVersion": "0.3.0",
        "name": "Zebra",
        "description": format!("Counts zebras in way {way}."),
        "url": format!("https://zebra.agents-test.com/a2a/{way}"),
        "preferredTransport": "JSONRPC",
        "version": "1.0.0",
        // The card cannot choose what the company is called.
        "provider": {"organization": "Evil Corporation", "url": "https://evil.example/"},
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "zebras", "name": "zebra counting", "description": "Counts zebras.", "tags": ["zebras"],
        }],
    })
    .to_string()
    .into_bytes()
}

impl ArdRegistry {
    /// Registers a card URL as the admin, crawls it, and vouches for its host; returns the listed agent.
    async fn publish_vouched(&self, host: &str, url: &str) -> Uuid {
        let registry = &self.inner;
        registry.register_card_url(url).await;
        self.crawl_new_sources().await;
        let vouch = Vouch {
            reason: "ours".into(),
            ..Vouch::default()
        };
        vouch_for_domain(&registry.app, &registry.admin, host, &vouch)
            .await
            .unwrap();
        let agent = registry.agent(host).await;
        if registry.find_open_review(agent.id).await.is_some() {
            registry.approve_open_review(agent.id).await;
        }
        registry.catch_up().await;
        agent.id
    }

    async fn crawl_new_sources(&self) {
        self.inner.advance(Duration::minutes(2));
        // The agents that every registry of these tests has stay as they are.
        let is_new = |url: &str| url.contains("zebra") || url.contains("10.0.0.5");
        self.inner
            .run_due_visits(|source| match is_new(&source.url) {
                true => OriginResponse::Card(card(&source.url)),
                false => OriginResponse::NotModified,
            })
            .await;
    }

    async fn entry(&self, identifier: &str) -> Value {
        self.get(self.anonymous(), &retrieval_path(identifier))
            .await
    }

    /// The identifiers with which a search for zebras and a list of this publisher answer.
    async fn found_zebras(&self, publisher: &str) -> (Vec<String>, Vec<String>) {
        let body = json!({"query": {"text": "zebra counting"}, "federation": "none"});
        let found = self.post(self.anonymous(), "/ard/search", &body).await;
        let path = format!("/ard/agents?filter=publisherId%3D{publisher}");
        let listed = self.get(self.anonymous(), &path).await;
        assert_eq!(listed["total"], listed["items"].as_array().unwrap().len());
        (
            identifiers(&found["results"]),
            identifiers(&listed["items"]),
        )
    }
}

fn retrieval_path(identifier: &str) -> String {
    format!("/ard/agents/{}", identifier.replace(':', "%3A"))
}

fn company() -> Value {
    json!({"identifier": format!("did:web:{AUTHORITY}"), "displayName": AUTHORITY})
}

/// The company says that it publishes them; nothing is claimed of the host, and the card says nothing of the company.
async fn agents_of_vouched_hosts_are_entries_of_the_company(url: &str) {
    let proxy = ValidatingProxy::new().await;
    let registry = ArdRegistry::with(url, proxy, "d", with_authority).await;
    let mut urns = Vec::new();
    for (host, card_url) in [
        (
            "zebra.agents-test.com:8443",
            "https://zebra.agents-test.com:8443/card.json",
        ),
        ("10.0.0.5", "http://10.0.0.5/card.json"),
    ] {
        registry.publish_vouched(host, card_url).await;
        let urn = format!("urn:air:{AUTHORITY}:hosts:{host}:zebra");
        let entry = registry.entry(&urn).await;
        assert_eq!(entry["identifier"], urn);
        assert_eq!(entry["publisher"], company(), "{entry}");
        assert_eq!(entry.get("trustManifest"), None, "{entry}");
        let native = registry
            .get(registry.anonymous(), &format!("/v1/agents/{urn}"))
            .await;
        assert_eq!(native["urn"], urn);
        assert_eq!(native.get("former_urn"), None);
        urns.push(urn);
    }
    urns.sort_unstable();
    let (mut found, listed) = registry.found_zebras(AUTHORITY).await;
    found.sort_unstable();
    assert_eq!((&found, &listed), (&urns, &urns));
    let catalog = registry
        .get(registry.anonymous(), "/.well-known/ard.json")
        .await;
    let published = identifiers(&catalog["entries"]);
    assert!(urns.iter().all(|urn| published.contains(urn)));
    registry.stop().await;
}

async fn after_a_proof_an_agent_is_retrieved_by_both_names_and_listed_once(url: &str) {
    const HOST: &str = "zebra.agents-test.com";
    let proxy = ValidatingProxy::new().await;
    let registry = ArdRegistry::with(url, proxy, "d", with_authority).await;
    let plain = format!("http://{HOST}/.well-known/agent-card.json");
    let id = registry.publish_vouched(HOST, &plain).await;
    let old = format!("urn:air:{AUTHORITY}:hosts:{HOST}:zebra");
    let before = registry.entry(&old).await;

    prove_over_tls(&registry, HOST).await;
    let new = format!("urn:air:{HOST}:agents:zebra");
    let (found, listed) = registry.found_zebras(HOST).await;
    let expected = vec![new.clone()];
    assert_eq!((&found, &listed), (&expected, &expected));
    let (_, listed) = registry.found_zebras(AUTHORITY).await;
    assert!(listed.is_empty(), "{listed:?}");
    let entry = registry.entry(&new).await;
    assert_eq!(entry["identifier"], new);
    let domain = format!("did:web:{HOST}");
    assert_eq!(entry["publisher"]["identifier"], domain);
    assert_eq!(entry["trustManifest"]["identity"], domain);

    // The old name is answered as itself, and claims what it claimed before.
    let former = registry.entry(&old).await;
    assert_eq!(former["identifier"], old);
    assert_eq!(former["publisher"], company());
    assert_eq!(former.get("trustManifest"), None, "{former}");
    for member in ["url", "digest", "displayName", "tags"] {
        assert_eq!(former[member], before[member], "{member}");
        assert_eq!(former[member], entry[member], "{member}");
    }
    for urn in [&old, &new] {
        let native = registry
            .get(registry.anonymous(), &format!("/v1/agents/{urn}"))
            .await;
        assert_eq!(
            (&native["id"], &native["urn"], &native["former_urn"]),
            (&json!(id), &json!(new), &json!(old))
        );
    }
    // Only retrieval finds it by that path.
    let filter = json!({"query": {"text": "zebra", "filter": {"identifier.former": [old]}}});
    let refused = registry
        .ask(
            registry.anonymous(),
            Method::POST,
            "/ard/search",
            Some(&filter),
        )
        .await;
    assert_eq!(refused.status, 400);

    // On hold it is missing under both names, byte for byte.
    let act = Act {
        reason: "a test".into(),
        hold: None,
    };
    let (app, admin) = (&registry.inner.app, &registry.inner.admin);
    agent_suspend(app, admin, &id.to_string(), &act)
        .await
        .unwrap();
    registry.inner.catch_up().await;
    let missing = format!("urn:air:{AUTHORITY}:hosts:{HOST}:nothing");
    let mut bodies = Vec::new();
    for urn in [&old, &new, &missing] {
        let answer = registry
            .ask(
                registry.anonymous(),
                Method::GET,
                &retrieval_path(urn),
                None,
            )
            .await;
        assert_eq!(answer.status, 404, "{urn}");
        bodies.push(answer.body);
    }
    assert_eq!(bodies[0], bodies[2]);
    assert_eq!(bodies[1], bodies[2]);
    registry.stop().await;
}

/// Registers a host over https as an account of its own, crawls it, and proves it by a record.
async fn prove_over_tls(registry: &ArdRegistry, host: &str) {
    let inner = &registry.inner;
    let owner = owner_account(registry).await;
    let what = Registration {
        domain: Some(host.into()),
        ..Registration::default()
    };
    register_domain(&inner.app, &owner, &what).await.unwrap();
    registry.crawl_new_sources().await;
    let unproved = domain_verify(&inner.app, &owner, host).await.unwrap();
    let record = &unproved.domain.challenges[0];
    let mut records = TxtRecords::default();
    records.push([record.value.as_deref().unwrap()]);
    let name = record.name.as_deref().unwrap();
    inner.resolver.set_texts(name, TxtLookup::Records(records));
    let proved = domain_verify(&inner.app, &owner, host).await.unwrap();
    assert!(proved.domain.owner.is_some(), "{:#?}", proved.checks);
    inner.catch_up().await;
}

async fn owner_account(registry: &ArdRegistry) -> Caller {
    let new = NewToken {
        account: "zebras".into(),
        role: Some(Role::Publisher),
        name: "a test".into(),
        ..NewToken::default()
    };
    let (app, admin) = (&registry.inner.app, &registry.inner.admin);
    let made = token_create(app, admin, &new).await.unwrap();
    authenticate_token(app, &made.secret).await.unwrap()
}
