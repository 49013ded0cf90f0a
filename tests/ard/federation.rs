//! Federation: two registries, a ring of them, and peers that are down, slow or lying.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_core::config::{AllowPorts, Config, PeerConfig};
use reqwest::Method;
use serde_json::{Value, json};

use super::{AGENTS, ArdRegistry, Audience, TestCaller, domain_of, identifiers, urn_of};
use crate::support::database::Database;
use crate::support::exchange::ValidatingProxy;
use crate::support::origin::{Origin, OriginReply, ResponseGate};
use crate::support::setup::RegistrySetup;

const MISSING: &str = "a2a-registry-peers-missing";

/// These peers, each with whether it is told what signed-in callers search for.
fn peers(config: &mut Config, peers: &[(&str, String, bool)]) {
    let federation = &mut config.federation;
    federation.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    federation.allow_http = true;
    federation.allow_ports = AllowPorts::Word("any".into());
    federation.peers = peers
        .iter()
        .map(|(name, url, share_private)| {
            let peer = PeerConfig {
                url: url.clone(),
                share_private: *share_private,
            };
            ((*name).to_owned(), peer)
        })
        .collect::<BTreeMap<_, _>>();
}

fn ard(proxy: &ValidatingProxy) -> String {
    format!("{}/ard", proxy.url())
}

/// Every result of a federated search, page after page.
async fn search_all_pages(registry: &ArdRegistry, who: &TestCaller, size: u32) -> Vec<Value> {
    let mut found = Vec::new();
    let mut body = json!({"query": {"text": "parcel tracking"}, "pageSize": size});
    loop {
        let page = registry.post(who, "/ard/search", &body).await;
        let results = page["results"].as_array().unwrap();
        assert!(results.len() <= size as usize);
        found.extend(results.iter().cloned());
        match page.get("pageToken") {
            Some(token) => body["pageToken"] = token.clone(),
            None => return found,
        }
    }
}

/// The public agents of a registry that the question finds.
fn public_matches(prefix: &str) -> BTreeSet<String> {
    (0..AGENTS.len())
        .filter(|number| AGENTS[*number].1 == Audience::Everybody && AGENTS[*number].3 > 0)
        .map(|number| urn_of(prefix, number))
        .collect()
}

/// The identifiers, each with the registry that has it.
fn sources(results: &[Value]) -> BTreeMap<String, String> {
    let named = results.iter().map(|result| {
        let text = |name: &str| result[name].as_str().unwrap().to_owned();
        (text("identifier"), text("source"))
    });
    let all: BTreeMap<String, String> = named.collect();
    assert_eq!(all.len(), results.len(), "an identifier stands twice");
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registries_in_a_ring_find_each_others_agents_once() {
    let databases = [Database::sqlite(), Database::sqlite(), Database::sqlite()];
    let taps = [
        ValidatingProxy::new().await,
        ValidatingProxy::new().await,
        ValidatingProxy::new().await,
    ];
    let prefixes = ["d", "e", "f"];
    let mut registries = Vec::new();
    for place in 0..3 {
        let next = (place + 1) % 3;
        let named = [("next", ard(&taps[next]), false)];
        let (proxy, prefix) = (taps[place].clone(), prefixes[place]);
        let database = databases[place].url();
        registries
            .push(ArdRegistry::with(database, proxy, prefix, |config| peers(config, &named)).await);
    }
    for (place, registry) in registries.iter().enumerate() {
        let next = (place + 1) % 3;
        let results = search_all_pages(registry, registry.anonymous(), 4).await;
        let found = sources(&results);
        let mut expected: BTreeMap<String, String> = BTreeMap::new();
        for at in [place, next] {
            let urns = public_matches(prefixes[at]).into_iter();
            expected.extend(urns.map(|urn| (urn, ard(&taps[at]))));
        }
        assert_eq!(found, expected);
        let scores: Vec<u64> = results
            .iter()
            .map(|one| one["score"].as_u64().unwrap())
            .collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        for result in &results {
            let foreign = result["source"] != ard(&taps[place]);
            assert_eq!(
                result["metadata"].get("reviewed") == Some(&json!(false)),
                foreign,
                "{result}"
            );
        }
        // What a signed-in caller asks is told to no peer here.
        let member = &registry.identities[2];
        let found = sources(&search_all_pages(registry, member, 4).await);
        assert!(found.values().all(|source| *source == ard(&taps[place])));
        let referred = json!({"query": {"text": "parcel"}, "federation": "referrals"});
        let referred = registry
            .post(registry.anonymous(), "/ard/search", &referred)
            .await;
        assert_eq!(
            referred["referrals"][0]["url"],
            format!("{}/search", ard(&taps[next]))
        );
        assert_eq!(
            referred["referrals"][0]["type"],
            "application/ai-registry+json"
        );
    }
    // What is suspended is gone from a list that was frozen before.
    let registry = &registries[0];
    let body = json!({"query": {"text": "parcel tracking"}, "pageSize": 1});
    let first = registry
        .post(registry.anonymous(), "/ard/search", &body)
        .await;
    let taken = first["results"][0]["identifier"]
        .as_str()
        .unwrap()
        .to_owned();
    let gone = public_matches("d")
        .into_iter()
        .find(|urn| *urn != taken)
        .unwrap();
    let domain = gone.split(':').nth(2).unwrap();
    let id = registry.inner.agent(domain).await.id;
    let act = a2a_registry_api::Act {
        reason: "a test".into(),
        hold: None,
    };
    let (app, admin) = (&registry.inner.app, &registry.inner.admin);
    a2a_registry_core::agents::lifecycle_actions::agent_suspend(app, admin, &id.to_string(), &act)
        .await
        .unwrap();
    let mut body = body;
    let mut later = Vec::new();
    let mut token = first["pageToken"].clone();
    while !token.is_null() {
        body["pageToken"] = token;
        let page = registry
            .post(registry.anonymous(), "/ard/search", &body)
            .await;
        later.extend(identifiers(&page["results"]));
        token = page["pageToken"].clone();
    }
    assert!(!later.contains(&gone) && later.len() > 5, "{later:?}");
    for registry in registries {
        registry.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agents_of_another_registry_are_registered_each_at_its_own_domain() {
    let database = Database::sqlite();
    let other = ArdRegistry::new(database.url()).await;
    let here = RegistrySetup::new().start().await;
    let from = other.api.url.clone();
    let ended = here
        .run_admin_command(&["register", "--from-registry", &from, "--no-wait", "--json"])
        .await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let registered: BTreeSet<String> = ended
        .stdout
        .iter()
        .map(|line| {
            let domain: Value = serde_json::from_str(line).unwrap();
            domain["domain"].as_str().unwrap().to_owned()
        })
        .collect();
    let public = (0..AGENTS.len()).filter(|number| AGENTS[*number].1 == Audience::Everybody);
    let expected: BTreeSet<String> = public.map(|number| domain_of("d", number)).collect();
    assert_eq!(registered, expected);
    let nothing = here
        .run_admin_command(&["register", "--from-registry", &here.api.url])
        .await;
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
    assert!(
        nothing.stderr.concat().contains("lists no public agents"),
        "{nothing:?}"
    );
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_dead_slow_or_broken_costs_its_own_results_only() {
    let dead = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/ard", listener.local_addr().unwrap())
    };
    let origin = Origin::start();
    let gate = ResponseGate::default();
    origin.set_reply(
        "/slow/search",
        OriginReply::json("{\"results\":[]}").gated_by(&gate),
    );
    origin.set_reply(
        "/large/search",
        OriginReply::json(format!(
            "{{\"results\":[], \"x\":\"{}\"}}",
            "y".repeat(10_000_000)
        )),
    );
    origin.set_reply("/endless/search", OriginReply::endless());
    origin.set_reply("/html/search", OriginReply::html("<p>hello</p>"));
    origin.set_reply("/list/search", OriginReply::json("[1, 2]"));
    origin.set_reply(
        "/moved/search",
        OriginReply::redirect("http://127.0.0.1:1/"),
    );
    origin.set_reply("/error/search", OriginReply::status(503));
    origin.set_reply("/refuse/search", OriginReply::status(400));
    let names = [
        "endless", "error", "html", "large", "list", "moved", "refuse", "slow",
    ];
    let database = Database::sqlite();
    let registry = ArdRegistry::with(
        database.url(),
        ValidatingProxy::new().await,
        "d",
        |config| {
            let mut all = vec![("dead", dead.clone(), true)];
            all.extend(names.map(|name| (name, origin.url(&format!("/{name}")), true)));
            peers(config, &all);
            config.federation.deadline_ms = 300;
        },
    )
    .await;
    let who = registry.curator();
    let body = json!({"query": {"text": "parcel tracking"}, "pageSize": 100});
    let own = json!({"query": {"text": "parcel tracking"}, "pageSize": 100, "federation": "none"});
    let own = identifiers(&registry.post(who, "/ard/search", &own).await["results"]);
    // What is refused here is asked nowhere, so nobody has peers left alone by it.
    let long = json!({"query": {"text": "parcel ".repeat(100)}});
    let refused = registry
        .ask(who, Method::POST, "/ard/search", Some(&long))
        .await;
    refused.expect_status(400);
    assert!(origin.requests_to("/error/search").is_empty());
    for _ in 0..3 {
        let answer = registry
            .ask(who, Method::POST, "/ard/search", Some(&body))
            .await;
        let missing = answer.headers[MISSING].to_str().unwrap();
        assert_eq!(
            missing,
            "dead, endless, error, html, large, list, moved, refuse, slow"
        );
        assert_eq!(identifiers(&answer.expect_status(200)["results"]), own);
    }
    // After three failures they are left alone.
    let asked = origin.requests_to("/error/search").len();
    assert_eq!(asked, 3);
    let answer = registry
        .ask(who, Method::POST, "/ard/search", Some(&body))
        .await;
    assert_eq!(identifiers(&answer.expect_status(200)["results"]), own);
    assert_eq!(origin.requests_to("/error/search").len(), asked);
    let told = registry.get(who, "/v1/peers").await;
    for peer in told["peers"].as_array().unwrap() {
        // A peer that refuses a query is asked the next one.
        let fails = peer["name"] != "refuse";
        assert_eq!(peer["left_alone"], fails, "{peer}");
        assert_eq!(peer["last_failure"].is_string(), fails, "{peer}");
    }
    assert_eq!(origin.requests_to("/refuse/search").len(), 4);
    // No credential and no further federation is passed on.
    let request = &origin.requests_to("/error/search")[0];
    assert_eq!(request.method, "POST");
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("cookie"), None);
    gate.open();
    registry.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_lies_harms_nothing() {
    let origin = Origin::start();
    let result = |identifier: &str, change: Value| {
        let mut result = json!({
            "identifier": identifier,
            "displayName": "From elsewhere",
            "type": "application/a2a-agent-card+json",
            "url": "https://honest.agents-test.com/card.json",
            "score": 100,
            "source": "https://third.agents-test.com/ard",
        });
        for (name, value) in change.as_object().unwrap() {
            result[name] = value.clone();
        }
        result
    };
    let honest = "urn:air:honest.agents-test.com:agents:parcels";
    let beside = format!("urn:air:{}:agents:beside", domain_of("d", 0));
    let proxy = ValidatingProxy::new().await;
    let own = proxy.url();
    let results = json!({
        "results": [
            // Agents of this registry: one that everybody sees, one for accounts only, one on hold.
            result(&urn_of("d", 0), json!({"displayName": "Fake Alpha"})),
            result(&urn_of("d", 2), json!({})),
            result(&urn_of("d", 6), json!({})),
            // The one on hold and one for accounts only by names that this registry does not know, and names that nobody has
            // in a domain that is proved here.
            result(&format!("urn:air:{}:agents:renamed", domain_of("d", 6)), json!({})),
            result(&format!("urn:air:{}:agents:renamed", domain_of("d", 2)), json!({})),
            result(&beside, json!({"url": "https://third.agents-test.com/v1/agents/1/card"})),
            // Whoever says that it is ours, in other words.
            result("urn:air:ours.agents-test.com:agents:x", json!({"source": format!("HTTP://{}/x/../ard?y", own.trim_start_matches("http://"))})),
            result("urn:air:local.agents-test.com:agents:x", json!({"source": "http://localhost:8080/ard"})),
            result("urn:air:denied.agents-test.com:agents:x", json!({})),
            result("urn:air:metadata.agents-test.com:agents:x", json!({"url": "https://169.254.169.254/card.json"})),
            result("urn:air:script.agents-test.com:agents:x", json!({"url": "javascript:alert(1)"})),
            result("urn:air:other.agents-test.com:agents:x", json!({"trustManifest": {"identity": "did:web:victim.agents-test.com"}})),
            result("urn:air:127.0.0.1:agents:x", json!({})),
            // Names under the authority of this registry, of an agent that has one or not.
            result("urn:air:company.agents-test.com:hosts:10.0.0.9:x", json!({})),
            result("urn:air:company.agents-test.com:agents:x", json!({})),
            json!("text"), json!(null), json!({"identifier": 7}),
            result(honest, json!({
                "score": "high",
                "displayName": "\u{202e}<script>alert(1)</script>",
                "metadata": {
                    "lifecycle": "approved", "trustLevel": "L3", "reviewed": true, "deep": {"x": [1]}, "a2aStreaming": true,
                },
                "publisher": {"identifier": "did:web:victim.agents-test.com", "displayName": "Victim"},
                "trustManifest": {"identity": "did:web:honest.agents-test.com", "attestations": [{"type": "A2A-Card-JWS"}]},
            })),
            result(honest, json!({"displayName": "Again"})),
        ],
        "pageToken": "more",
        "referrals": [{"url": "https://evil.agents-test.com"}],
    });
    origin.set_reply("/ard/search", OriginReply::json(results.to_string()));
    let database = Database::sqlite();
    let registry = ArdRegistry::with(database.url(), proxy, "d", |config| {
        peers(config, &[("liar", origin.url("/ard"), true)]);
        config.governance.deny_domains = vec![a2a_registry_domain::admission_rules::DomainPattern(
            "denied.agents-test.com".into(),
        )];
        config.ard.authority = "company.agents-test.com".into();
    })
    .await;
    for who in &registry.identities {
        let own =
            json!({"query": {"text": "parcel tracking"}, "pageSize": 100, "federation": "none"});
        let own = registry.post(who, "/ard/search", &own).await;
        let mut expected: BTreeSet<String> = identifiers(&own["results"]).into_iter().collect();
        expected.insert(honest.to_owned());
        let results = search_all_pages(&registry, who, 5).await;
        let found = sources(&results);
        assert_eq!(
            found.keys().cloned().collect::<BTreeSet<_>>(),
            expected,
            "{}",
            who.name
        );
        let alpha = results
            .iter()
            .find(|one| one["identifier"] == urn_of("d", 0))
            .unwrap();
        assert_eq!(alpha["displayName"], "Alpha Parcels");
        let taken = results
            .iter()
            .find(|one| one["identifier"] == honest)
            .unwrap();
        assert_eq!(
            taken["metadata"],
            json!({"a2aStreaming": true, "reviewed": false})
        );
        for member in ["publisher", "trustManifest"] {
            assert_eq!(taken.get(member), None, "{taken}");
        }
        assert_eq!(taken["source"], "https://third.agents-test.com/ard");
    }
    // One page of it is read a search, however many it promises.
    let bodies = origin.requests_to("/ard/search");
    assert_eq!(bodies.len(), registry.identities.len());
    // No other door shows what peers say.
    let native = registry
        .get(registry.curator(), "/v1/agents?q=elsewhere")
        .await;
    assert_eq!(native["total"], 0);
    let body = json!({"query": {"text": "parcel"}, "resultType": {"facets": [{"field": "publisher", "limit": 100}]}});
    let explored = registry
        .post(registry.curator(), "/ard/explore", &body)
        .await;
    assert!(!explored.to_string().contains("honest.agents-test.com"));
    registry.stop().await;
}

/// What is withheld leaves no trace: with a peer that sends names of hidden agents, guessed names and names that are listed
/// here between others, every page is the one that the others alone give.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_withheld_shows_in_no_page() {
    let origin = Origin::start();
    let result = |identifier: &str| {
        json!({
            "identifier": identifier,
            "displayName": "From elsewhere",
            "type": "application/a2a-agent-card+json",
            "url": "https://honest.agents-test.com/card.json",
            "score": 90,
            "source": "https://third.agents-test.com/ard",
        })
    };
    let others: Vec<String> = (0..9)
        .map(|number| format!("urn:air:honest.agents-test.com:agents:n{number}"))
        .collect();
    // Listed, for accounts only, on hold; names that nobody has beside each of them.
    let withheld: Vec<String> = [0, 2, 6]
        .into_iter()
        .flat_map(|number| {
            let guessed = format!("urn:air:{}:agents:guessed", domain_of("d", number));
            [urn_of("d", number), guessed]
        })
        .collect();
    let database = Database::sqlite();
    let registry = ArdRegistry::with(
        database.url(),
        ValidatingProxy::new().await,
        "d",
        |config| {
            peers(config, &[("liar", origin.url("/ard"), true)]);
        },
    )
    .await;
    let send = |names: Vec<&String>| {
        let results: Vec<Value> = names.into_iter().map(|name| result(name)).collect();
        let body = json!({"results": results}).to_string();
        origin.set_reply("/ard/search", OriginReply::json(body));
    };
    for who in &registry.identities {
        send(others.iter().collect());
        let expected = search_all_pages(&registry, who, 3).await;
        let mut mixed: Vec<&String> = Vec::new();
        for (place, other) in others.iter().enumerate() {
            mixed.extend(withheld.get(place));
            mixed.push(other);
        }
        send(mixed);
        assert_eq!(
            search_all_pages(&registry, who, 3).await,
            expected,
            "{}",
            who.name
        );
        send(Vec::new());
        let alone = registry
            .post(
                who,
                "/ard/search",
                &json!({"query": {"text": "parcel tracking"}, "pageSize": 3}),
            )
            .await;
        send(withheld.iter().collect());
        let only_withheld = registry
            .post(
                who,
                "/ard/search",
                &json!({"query": {"text": "parcel tracking"}, "pageSize": 3}),
            )
            .await;
        assert_eq!(only_withheld["results"], alone["results"], "{}", who.name);
        assert_eq!(
            only_withheld.get("pageToken").is_some(),
            alone.get("pageToken").is_some()
        );
    }
    registry.stop().await;
}
