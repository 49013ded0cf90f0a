//! Cached responses about one agent: every change takes effect at once, for each caller as that caller may see it.

use std::collections::BTreeMap;

use a2a_registry_api::{Act, Agent, AgentPatch, NewToken, Recrawl};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::agents::owner_updates;
use a2a_registry_core::agents::rendering::render_agent;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::domains::actions::domain_recrawl;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use time::Duration;

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::database::Database;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};

const DOMAIN: &str = "travel.agents-test.com";

/// A publisher account of that name.
async fn create_publisher(registry: &InProcessRegistry, name: &str) -> Caller {
    let new = NewToken {
        account: name.into(),
        role: Some(Role::Publisher),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    authenticate_token(&registry.app, &made.secret)
        .await
        .unwrap()
}

/// The agent as anyone, an account and the admin see it, each `None` where it is hidden. Each of them asks twice.
async fn views_by_caller(
    registry: &InProcessRegistry,
    account: &Caller,
    agent: &str,
) -> [Option<Agent>; 3] {
    let mut seen = [None, None, None];
    for _ in 0..2 {
        let callers = [&Caller::default(), account, &registry.admin];
        for (seen, caller) in seen.iter_mut().zip(callers) {
            *seen = agent_show_checked(&registry.app, caller, agent).await.ok();
        }
    }
    seen
}

fn act() -> Act {
    Act {
        reason: "reported".into(),
        hold: None,
    }
}

both_databases!(
    a_fetch_without_a_change_shows_in_the_answer,
    acts_show_in_the_answer_to_each_caller,
    a_change_is_made_to_the_state_that_was_seen
);

/// The answer about an agent and the answer to a change name the state for the next one. A state is only what people
/// edit, so a hold is no other one.
async fn a_change_is_made_to_the_state_that_was_seen(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = card_bytes("Travel", "Books flights");
    let agent = registry.register_approved_card(DOMAIN, &first).await.id;
    let agent = agent.to_string();
    let (app, admin) = (&registry.app, &registry.admin);
    let seen = async || {
        let answer = render_agent(app, admin, &agent).await.unwrap();
        IfMatch(Some(answer.tag))
    };
    let patch = async |team: &str, seen: &IfMatch| {
        let patch = AgentPatch {
            labels: Some(BTreeMap::from([("team".to_owned(), team.to_owned())])),
            ..AgentPatch::default()
        };
        owner_updates::agent_patch(app, admin, &agent, &patch, seen).await
    };
    let before = seen().await;
    agent_suspend(app, admin, &agent, &act()).await.unwrap();
    let changed = patch("blue", &before).await.unwrap();
    let stale = patch("red", &before).await.unwrap_err();
    assert_eq!(stale.kind, ErrorKind::Changed);
    for current in [IfMatch(Some(changed.tag)), seen().await] {
        patch("blue", &current).await.unwrap();
    }
    patch("green", &IfMatch::default()).await.unwrap();
}

/// The times of fetches change without an event.
async fn a_fetch_without_a_change_shows_in_the_answer(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Travel", "Books flights");
    let agent = registry
        .register_approved_card(DOMAIN, &bytes)
        .await
        .id
        .to_string();
    let account = create_publisher(&registry, "somebody").await;
    let liveness = async || {
        let [anyone, account, admin] = views_by_caller(&registry, &account, &agent).await;
        let anyone = anyone.unwrap().hit.summary.liveness;
        assert_eq!(account.unwrap().hit.summary.liveness, anyone);
        assert_eq!(admin.unwrap().hit.summary.liveness, anyone);
        anyone
    };
    let first = liveness().await;
    for answer in [OriginResponse::Card(bytes), OriginResponse::NotModified] {
        let before = liveness().await;
        registry.advance(Duration::days(3));
        assert_eq!(registry.run_due_visits(|_| answer.clone()).await, 1);
        let after = liveness().await;
        assert!(after.last_seen > before.last_seen, "{before:?} {after:?}");
        assert!(after.next_due > before.next_due, "{before:?} {after:?}");
    }
    let before = liveness().await;
    assert_eq!(before.last_changed, first.last_changed);
    // Nobody has fetched it yet: it is only due.
    let now = Recrawl { full: true };
    domain_recrawl(&registry.app, &registry.admin, DOMAIN, &now)
        .await
        .unwrap();
    assert!(liveness().await.next_due < before.next_due);
}

/// Holds, labels, visibility and a new card, each while the answers from before it are kept.
async fn acts_show_in_the_answer_to_each_caller(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = card_bytes("Travel", "Books flights");
    let agent = registry
        .register_approved_card(DOMAIN, &first)
        .await
        .id
        .to_string();
    let account = create_publisher(&registry, "somebody").await;
    let everybody = [true; 3];
    let sees = async || {
        let seen = views_by_caller(&registry, &account, &agent).await;
        seen.map(|agent| agent.is_some())
    };
    assert_eq!(sees().await, everybody);
    let patch = async |patch: AgentPatch| {
        agent_patch(&registry.app, &registry.admin, &agent, &patch)
            .await
            .unwrap();
    };
    let labels = BTreeMap::from([("team".to_owned(), "blue".to_owned())]);
    patch(AgentPatch {
        labels: Some(labels.clone()),
        visibility: None,
        ..AgentPatch::default()
    })
    .await;
    for seen in views_by_caller(&registry, &account, &agent).await {
        assert_eq!(seen.unwrap().hit.summary.labels, labels);
    }
    for (visibility, expected) in [
        (Visibility::Internal, [false, true, true]),
        (Visibility::Restricted, [false, false, true]),
        (Visibility::Public, everybody),
    ] {
        patch(AgentPatch {
            visibility: Some(visibility),
            labels: None,
            ..AgentPatch::default()
        })
        .await;
        assert_eq!(sees().await, expected, "{visibility:?}");
    }
    agent_suspend(&registry.app, &registry.admin, &agent, &act())
        .await
        .unwrap();
    let [anyone, other, admin] = views_by_caller(&registry, &account, &agent).await;
    assert!(anyone.is_none() && other.is_none());
    assert_eq!(admin.unwrap().holds[0].reason, "reported");
    agent_resume(&registry.app, &registry.admin, &agent, &act())
        .await
        .unwrap();
    for seen in views_by_caller(&registry, &account, &agent).await {
        assert!(seen.unwrap().holds.is_empty());
    }
    let second = card_bytes("Travel", "Books hotels");
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(second))
        .await;
    let id = agent.parse().unwrap();
    if registry.find_open_review(id).await.is_some() {
        views_by_caller(&registry, &account, &agent).await;
        registry.approve_open_review(id).await;
    }
    for seen in views_by_caller(&registry, &account, &agent).await {
        let summary = seen.unwrap().hit.summary;
        assert_eq!(summary.description.as_deref(), Some("Books hotels"));
    }
}

/// Acts of another process show with its events, and fetches that append none a second later.
#[tokio::test]
async fn a_change_by_another_process_shows_within_a_second() {
    let database = Database::postgres().await;
    let first = InProcessRegistry::new(database.url()).await;
    let bytes = card_bytes("Travel", "Books flights");
    let agent = first
        .register_approved_card(DOMAIN, &bytes)
        .await
        .id
        .to_string();
    let second = first.second_process().await;
    second.catch_up().await;
    let anyone = Caller::default();
    let last_seen = async || {
        let shown = agent_show_checked(&second.app, &anyone, &agent)
            .await
            .unwrap();
        shown.hit.summary.liveness.last_seen
    };
    let before = last_seen().await;
    first.advance(Duration::days(3));
    let group = first
        .lease_due_outcomes(|_| OriginResponse::Card(bytes.clone()))
        .await;
    assert_eq!(last_seen().await, before);
    ingest_outcomes(&first.app, &group).await.unwrap();
    first.advance(Duration::seconds(1));
    assert!(last_seen().await > before);
    // No time passes between this act and the answer.
    agent_suspend(&first.app, &first.admin, &agent, &act())
        .await
        .unwrap();
    second.catch_up().await;
    assert!(
        agent_show_checked(&second.app, &anyone, &agent)
            .await
            .is_err()
    );
}
