//! Agents that are written after descriptions of A2A other than the specification are found by every word of their
//! cards.

use a2a_card::ConversionTarget;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::agents::cards::convert_agent_card;
use a2a_registry_core::visibility::caller::Caller;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::in_process_registry::InProcessRegistry;

both_databases!(
    tools_beside_skills_are_found_shown_and_counted,
    schemes_and_examples_of_the_0_3_reference_are_shown_and_found,
    addresses_are_completed_by_the_url_of_their_card
);

/// An approved agent with that card.
async fn publish(registry: &InProcessRegistry, domain: &str, card: &Value) -> Uuid {
    let bytes = serde_json::to_vec(card).unwrap();
    registry.register_approved_card(domain, &bytes).await.id
}

/// Asserts that each of these searches finds the agent.
async fn finds(registry: &InProcessRegistry, agent: Uuid, searches: &[&str]) {
    for text in searches {
        let query = SearchQuery {
            q: Some((*text).into()),
            ..SearchQuery::default()
        };
        let list = registry.search_all(&Caller::default(), &query).await;
        let ids: Vec<Uuid> = list.agents.iter().map(|hit| hit.summary.id).collect();
        assert_eq!(ids, [agent], "{text}");
    }
}

/// A card of `AgentOS` names tools beside its skills, of which it may have thousands.
async fn tools_beside_skills_are_found_shown_and_counted(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for (domain, skills, tool, word) in [
        ("one.agents-test.com", 1, "summarize", "postcards"),
        ("two.agents-test.com", 2_000, "transcribe", "telegrams"),
    ] {
        let skills: Vec<Value> = (0..skills)
            .map(|n| json!({"id": format!("plan-{n}"), "name": format!("Plan {n}"), "description": "Plans journeys"}))
            .collect();
        let card = json!({
            "name": "Desk", "description": format!("Answers {word}"), "url": format!("https://{domain}/a2a/rpc"),
            "capabilities": {"tools": [tool], "streaming": false, "pushNotifications": false},
            "skills": skills, "authentication": {"schemes": ["bearer"]},
            "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
        });
        let agent = publish(&registry, domain, &card).await;
        registry.catch_up().await;
        finds(&registry, agent, &[tool, word]).await;
        let query = SearchQuery {
            skill: vec![tool.into()],
            facets: vec!["skill".into()],
            ..SearchQuery::default()
        };
        let list = registry.search_all(&Caller::default(), &query).await;
        assert_eq!(list.total, 1);
        let mut shown = list.agents[0].summary.skills.iter();
        assert!(shown.any(|skill| skill.name == tool), "{tool} is shown");
        assert_eq!(list.agents[0].summary.auth, ["http:bearer"]);
        let mut values = list.facets["skill"].values.iter();
        let counted = values.any(|one| one.value == tool && one.count == 1);
        assert!(counted || skills.len() > 1, "{tool} is counted");
    }
}

/// A card after the protocol reference of 0.3.0, which lists schemes at the top and describes examples with objects.
async fn schemes_and_examples_of_the_0_3_reference_are_shown_and_found(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let domain = "reference.agents-test.com";
    let card = json!({
        "name": "Harbour", "description": "Answers letters", "version": "1", "url": format!("https://{domain}/a2a"),
        "provider": {"name": "Lighthouse", "url": "https://lighthouse.io"},
        "skills": [{"id": "tides", "name": "Tides", "description": "Tells tides",
            "examples": [{"name": "Neap", "input": "When does it ebb?", "output": "Around noon"}]}],
        "capabilities": {"streaming": true, "stateTransitionHistory": true},
        "schemes": [{"scheme": "apiKey", "in": "header", "name": "X-Key"}, {"scheme": "bearer"}],
    });
    let agent = publish(&registry, domain, &card).await;
    registry.catch_up().await;
    finds(&registry, agent, &["Lighthouse", "ebb", "Neap", "noon"]).await;
    let found = |auth: &str| SearchQuery {
        auth: vec![auth.into()],
        ..SearchQuery::default()
    };
    for (auth, count) in [("none", 0), ("apiKey", 1), ("http:bearer", 1)] {
        let list = registry.search_all(&Caller::default(), &found(auth)).await;
        assert_eq!(list.total, count, "{auth}");
    }
}

/// The same bytes at two places are two agents with an address each, in the view, in the look-up and in conversions.
async fn addresses_are_completed_by_the_url_of_their_card(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let card = json!({
        "name": "Desk", "description": "Answers letters", "version": "1", "url": "/a2a/rpc",
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "S", "tags": ["s"]}],
    });
    for domain in ["one.agents-test.com", "two.agents-test.com"] {
        let agent = publish(&registry, domain, &card).await;
        registry.catch_up().await;
        let address = format!("https://{domain}/a2a/rpc");
        let list = registry
            .search_all(&Caller::default(), &SearchQuery::default())
            .await;
        let hit = list
            .agents
            .iter()
            .find(|hit| hit.summary.id == agent)
            .unwrap();
        assert_eq!(hit.summary.interfaces[0].url, address);
        let caller = Caller::default();
        let id = agent.to_string();
        for _ in 0..2 {
            let converted =
                convert_agent_card(&registry.app, &caller, &id, None, ConversionTarget::V1_0)
                    .await
                    .unwrap();
            let converted: Value = serde_json::from_slice(&converted.bytes).unwrap();
            assert_eq!(converted["supportedInterfaces"][0]["url"], address.as_str());
        }
        let original = registry.public_card_bytes(agent).await.unwrap();
        assert_eq!(original, serde_json::to_vec(&card).unwrap());
        let version = registry.versions(agent).await.remove(0);
        assert!(
            version.findings.contains("endpoint.relative"),
            "{}",
            version.findings
        );
        assert!(!version.has_error, "{}", version.findings);
    }
}
