//! Deprecation: only callers who may see the replacement are shown it, and the date changes nothing by itself, on both
//! engines.

use a2a_registry_api::search_query::{LookupQuery, SearchQuery};
use a2a_registry_api::{Act, AgentList, AgentPatch, Deprecate};
use a2a_registry_core::agents::lifecycle_actions::{
    agent_deprecate, agent_retire, agent_suspend, agent_undeprecate,
};
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::{lookup_agents, search_agents};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::Timestamp;
use time::Duration;
use uuid::Uuid;

use crate::reviews::create_account;
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch, card_bytes};

both_databases!(
    a_replacement_is_told_to_whom_may_see_it,
    a_date_that_passes_changes_nothing_and_all_can_be_taken_back
);

/// The replacement that a caller is told of: by the agent, by its kept answer, by a search and by a look-up, which agree.
async fn visible_replacement(
    registry: &InProcessRegistry,
    caller: &Caller,
    agent: Uuid,
) -> Option<Uuid> {
    let id = agent.to_string();
    let shown = agent_show_checked(&registry.app, caller, &id)
        .await
        .unwrap();
    let kept = load_cached_agent_view(&registry.app, caller, &id)
        .await
        .unwrap();
    let query = SearchQuery {
        q: Some("old".into()),
        ..SearchQuery::default()
    };
    let found = search_agents(&registry.app, caller, &query).await.unwrap();
    let found: AgentList = serde_json::from_slice(&found).unwrap();
    let hit = found.agents.into_iter().find(|hit| hit.summary.id == agent);
    let query = LookupQuery {
        url: Some("old.dev".into()),
        ..LookupQuery::default()
    };
    let looked_up = lookup_agents(&registry.app, caller, &query).await.unwrap();
    let all = [
        shown.hit,
        kept.hit,
        hit.unwrap(),
        looked_up.agents.into_iter().next().unwrap(),
    ];
    let all = all.map(|hit| hit.summary.deprecation.unwrap().replacement);
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    all[0]
}

async fn a_replacement_is_told_to_whom_may_see_it(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let old = registry
        .register_approved_card("old.dev", &card_bytes("Old", "old"))
        .await;
    let new = registry
        .register_approved_card("new.dev", &card_bytes("New", "other"))
        .await;
    let reader = create_account(&registry, "reader", Role::Reader).await;
    let what = Deprecate {
        reason: "moved".into(),
        replacement: Some(new.id.to_string()),
        sunset: None,
    };
    agent_deprecate(app, admin, &old.id.to_string(), &what)
        .await
        .unwrap();
    registry.catch_up().await;
    let anyone = Caller::default();
    assert_eq!(
        visible_replacement(&registry, &anyone, old.id).await,
        Some(new.id)
    );
    let internal = AgentPatch {
        visibility: Some(Visibility::Internal),
        ..AgentPatch::default()
    };
    agent_patch(app, admin, &new.id.to_string(), &internal)
        .await
        .unwrap();
    registry.catch_up().await;
    assert_eq!(visible_replacement(&registry, &anyone, old.id).await, None);
    assert_eq!(
        visible_replacement(&registry, &reader, old.id).await,
        Some(new.id)
    );
    let act = Act {
        reason: "a complaint".into(),
        hold: None,
    };
    agent_suspend(app, admin, &new.id.to_string(), &act)
        .await
        .unwrap();
    registry.catch_up().await;
    assert_eq!(visible_replacement(&registry, &reader, old.id).await, None);
    assert_eq!(
        visible_replacement(&registry, admin, old.id).await,
        Some(new.id)
    );
    // One that the caller may not see cannot be named, as if there were none.
    let publisher = create_account(&registry, "publisher", Role::Publisher).await;
    let hidden = agent_deprecate(app, &publisher, &old.id.to_string(), &what).await;
    let hidden = hidden.unwrap_err();
    let missing = Deprecate {
        replacement: Some(Uuid::from_u128(7).to_string()),
        ..what.clone()
    };
    let missing = agent_deprecate(app, &publisher, &old.id.to_string(), &missing).await;
    assert_eq!(hidden.public, missing.unwrap_err().public);
}

async fn a_date_that_passes_changes_nothing_and_all_can_be_taken_back(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let agent = registry
        .register_approved_card("old.dev", &card_bytes("Old", "old"))
        .await;
    let id = agent.id.to_string();
    let sunset = Timestamp::from(registry.now() + Duration::days(10));
    let what = Deprecate {
        reason: "it ends".into(),
        replacement: None,
        sunset: Some(sunset),
    };
    agent_deprecate(app, admin, &id, &what).await.unwrap();
    registry.advance(Duration::days(11));
    registry.catch_up().await;
    assert!(registry.publicly_found_ids().await.contains(&agent.id));
    let shown = agent_show_checked(app, &Caller::default(), &id)
        .await
        .unwrap();
    let deprecation = shown.hit.summary.deprecation.unwrap();
    assert!(deprecation.is_past_sunset(app.now()) && !deprecation.is_past_sunset(Timestamp(0)));
    // Neither the date nor a hold keeps it from being taken back; retirement does.
    let act = Act {
        reason: "it stays".into(),
        hold: None,
    };
    agent_suspend(app, admin, &id, &act).await.unwrap();
    agent_undeprecate(app, admin, &id, &act).await.unwrap();
    let what = Deprecate {
        sunset: None,
        ..what
    };
    agent_deprecate(app, admin, &id, &what).await.unwrap();
    agent_retire(app, admin, &id, &act).await.unwrap();
    let late = agent_undeprecate(app, admin, &id, &act).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Conflict);
}
