//! Agents that nobody answers for: found by a filter, counted, and no longer among them once somebody does.

use a2a_registry_api::{AgentPatch, Registration};
use a2a_registry_core::agents::owner::agent_patch;
use a2a_registry_core::config::Registration as Admission;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::search::search;
use a2a_registry_core::visibility::caller::Caller;

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

both_databases!(an_agent_is_unmanaged_until_somebody_answers_for_it);

/// The domains of the agents that are found.
async fn domains(stage: &Stage, query: &SearchQuery) -> Vec<String> {
    stage.settle().await;
    let list = stage.found(&stage.admin, query).await;
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
    let stage = Stage::with(url, |config| {
        config.governance.registration = Admission::Open;
    })
    .await;
    let nomination = Registration {
        domain: Some("nobodys.dev".into()),
        ..Registration::default()
    };
    let anybody = Caller::default();
    register(&stage.app, &anybody, &nomination).await.unwrap();
    stage
        .crawl("nobodys.dev", OriginAnswer::Card(card("Stray", "1.0")))
        .await;
    let stray = stage.agent("nobodys.dev").await;
    stage.approve(stray.id).await;
    stage
        .publish_approved("own.dev", &card("Kept", "1.0"))
        .await;

    assert_eq!(domains(&stage, &unmanaged("true")).await, ["nobodys.dev"]);
    assert_eq!(domains(&stage, &unmanaged("false")).await, ["own.dev"]);
    let counted = stage.found(&anybody, &unmanaged("true")).await;
    assert_eq!(counted.facets["unmanaged"].values[0].value, "true");
    assert_eq!(counted.facets["unmanaged"].values[0].count, 1);

    let sponsored = |name: &str| AgentPatch {
        sponsor: Some(name.into()),
        ..AgentPatch::default()
    };
    let id = stray.id.to_string();
    let patch = async |name: &str| {
        let patch = sponsored(name);
        let patched = agent_patch(&stage.app, &stage.admin, &id, &patch);
        patched.await.unwrap()
    };
    patch("admin").await;
    assert!(domains(&stage, &unmanaged("true")).await.is_empty());
    patch("").await;
    assert_eq!(domains(&stage, &unmanaged("true")).await, ["nobodys.dev"]);

    let neither = search(&stage.app, &anybody, &unmanaged("perhaps")).await;
    assert_eq!(neither.unwrap_err().kind, ErrorKind::Invalid);
}
