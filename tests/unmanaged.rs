//! Agents without an accountable person: found by a filter, counted, and removed from the filter once they have one.

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{AgentPatch, Registration};
use a2a_registry_core::config::RegistrationAccess as Admission;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;

use crate::support::both_databases;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};

both_databases!(an_agent_is_unmanaged_until_somebody_answers_for_it);

/// The domains of the agents that are found.
async fn domains(registry: &InProcessRegistry, query: &SearchQuery) -> Vec<String> {
    registry.catch_up().await;
    let list = registry.search_all(&registry.admin, query).await;
    let domains = list.agents.into_iter().map(|hit| hit.summary.domain);
    let mut domains: Vec<String> = domains.collect();
    domains.sort_unstable();
    domains
}

fn unmanaged(value: &str) -> SearchQuery {
    SearchQuery {
        unmanaged: vec![value.into()],
        facets: vec!["unmanaged".into()],
        ..SearchQuery::default()
    }
}

async fn an_agent_is_unmanaged_until_somebody_answers_for_it(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.governance.registration = Admission::Open;
    })
    .await;
    let nomination = Registration {
        domain: Some("nobodys.dev".into()),
        ..Registration::default()
    };
    let anybody = Caller::default();
    register_domain(&registry.app, &anybody, &nomination)
        .await
        .unwrap();
    registry
        .crawl_domain(
            "nobodys.dev",
            OriginResponse::Card(card_bytes("Stray", "1.0")),
        )
        .await;
    let stray = registry.agent("nobodys.dev").await;
    registry.approve_open_review(stray.id).await;
    registry
        .register_approved_card("own.dev", &card_bytes("Kept", "1.0"))
        .await;

    assert_eq!(
        domains(&registry, &unmanaged("true")).await,
        ["nobodys.dev"]
    );
    assert_eq!(domains(&registry, &unmanaged("false")).await, ["own.dev"]);
    let counted = registry.search_all(&anybody, &unmanaged("true")).await;
    assert_eq!(counted.facets["unmanaged"].values[0].value, "true");
    assert_eq!(counted.facets["unmanaged"].values[0].count, 1);

    let sponsored = |name: &str| AgentPatch {
        sponsor: Some(name.into()),
        ..AgentPatch::default()
    };
    let id = stray.id.to_string();
    let patch = async |name: &str| {
        let patch = sponsored(name);
        let patched = agent_patch(&registry.app, &registry.admin, &id, &patch);
        patched.await.unwrap()
    };
    patch("admin").await;
    assert!(domains(&registry, &unmanaged("true")).await.is_empty());
    patch("").await;
    assert_eq!(
        domains(&registry, &unmanaged("true")).await,
        ["nobodys.dev"]
    );

    let neither = search_agents(&registry.app, &anybody, &unmanaged("perhaps")).await;
    assert_eq!(neither.unwrap_err().kind, ErrorKind::Invalid);
}
