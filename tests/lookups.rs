//! Look-ups show a caller the same data as the agent itself: unlisted agents only to the few callers who may see them.

use a2a_registry_api::search_query::LookupQuery;
use a2a_registry_api::{Act, Registration};
use a2a_registry_core::agents::lifecycle_actions::{agent_retire, agent_suspend};
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::lookup_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::reviews::create_account;
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

both_databases!(
    a_look_up_shows_what_the_agent_itself_shows,
    what_is_listed_comes_first,
    a_claimed_base_url_does_not_hide_the_agent_there
);

fn act() -> Act {
    Act {
        reason: "a test".into(),
        hold: None,
    }
}

async fn agents_behind(
    registry: &InProcessRegistry,
    caller: &Caller,
    query: &LookupQuery,
) -> Vec<Uuid> {
    match lookup_agents(&registry.app, caller, query).await {
        Ok(found) => {
            let ids = found.agents.iter().map(|hit| hit.summary.id);
            ids.collect()
        }
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NotFound, "{query:?}");
            Vec::new()
        }
    }
}

/// Whether a caller sees an agent, which every kind of look-up must say alike.
async fn sees(
    registry: &InProcessRegistry,
    caller: &Caller,
    row: &agent::Model,
    name: &str,
) -> bool {
    let digest = registry.versions(row.id).await.pop().unwrap().digest;
    let card_url = format!("https://{}/.well-known/agent-card.json", row.domain);
    let by_url = |url: String| LookupQuery {
        url: Some(url),
        ..LookupQuery::default()
    };
    let by_digest = LookupQuery {
        digest: Some(digest),
        ..LookupQuery::default()
    };
    // Whole, in any case, and nothing less.
    let by_name = |name: String| LookupQuery {
        name: Some(name),
        ..LookupQuery::default()
    };
    let part = by_name(name[..name.len() - 1].to_owned());
    assert!(agents_behind(registry, caller, &part).await.is_empty());
    let by_name = by_name(format!(" {} ", name.to_uppercase()));
    let shown = agent_show_checked(&registry.app, caller, &row.id.to_string()).await;
    let by_host = by_url(row.domain.clone());
    for query in [by_host, by_url(card_url), by_digest, by_name] {
        let found = agents_behind(registry, caller, &query).await;
        assert_eq!(found.contains(&row.id), shown.is_ok(), "{query:?}");
    }
    shown.is_ok()
}

async fn a_look_up_shows_what_the_agent_itself_shows(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let registrant = create_account(&registry, "registrant", Role::Publisher).await;
    let stranger = create_account(&registry, "stranger", Role::Publisher).await;
    let curator = create_account(&registry, "curator", Role::Curator).await;
    let what = Registration {
        domain: Some("waiting.dev".into()),
        ..Registration::default()
    };
    register_domain(&registry.app, &registrant, &what)
        .await
        .unwrap();
    let arrives = OriginResponse::Card(card_bytes("Waiting", "one"));
    registry.crawl_domain("waiting.dev", arrives).await;
    let waiting = registry.agent("waiting.dev").await;
    let held = registry
        .register_approved_card("held.dev", &card_bytes("Held", "two"))
        .await;
    agent_suspend(&registry.app, &registry.admin, &held.id.to_string(), &act())
        .await
        .unwrap();
    registry.assert_index_matches_database().await;
    for (who, caller, expected) in [
        ("the admin", &registry.admin, (true, true)),
        ("a curator", &curator, (true, true)),
        ("who registered it", &registrant, (true, false)),
        ("another publisher", &stranger, (false, false)),
        ("anybody", &Caller::default(), (false, false)),
    ] {
        let seen = (
            sees(&registry, caller, &waiting, "Waiting").await,
            sees(&registry, caller, &held, "Held").await,
        );
        assert_eq!(seen, expected, "{who}");
    }
}

async fn what_is_listed_comes_first(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let shared = card_bytes("Shared", "one");
    let older = registry.register_approved_card("older.dev", &shared).await;
    let newer = registry.register_approved_card("newer.dev", &shared).await;
    let waiting = registry.register_with_card("waiting.dev", &shared).await;
    agent_suspend(
        &registry.app,
        &registry.admin,
        &older.id.to_string(),
        &act(),
    )
    .await
    .unwrap();
    registry.catch_up().await;
    let query = LookupQuery {
        digest: Some(registry.versions(older.id).await.pop().unwrap().digest),
        ..LookupQuery::default()
    };
    let mut found = agents_behind(&registry, &registry.admin, &query).await;
    assert_eq!(found.first(), Some(&newer.id));
    found.sort_unstable();
    let mut all = [older.id, newer.id, waiting.id];
    all.sort_unstable();
    assert_eq!(found, all);
    let anybody = agents_behind(&registry, &Caller::default(), &query).await;
    assert_eq!(anybody, vec![newer.id]);
    // What is retired is in no index any more.
    agent_retire(
        &registry.app,
        &registry.admin,
        &older.id.to_string(),
        &act(),
    )
    .await
    .unwrap();
    registry.catch_up().await;
    let found = agents_behind(&registry, &registry.admin, &query).await;
    assert!(!found.contains(&older.id) && found.len() == 2, "{found:?}");
}

/// Anybody may write the base URL of another agent into a card: the agent whose card lies under it is found all the same.
async fn a_claimed_base_url_does_not_hide_the_agent_there(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let base = "https://bases.dev/agents/one";
    registry
        .register_card_url(&format!("{base}/.well-known/agent-card.json"))
        .await;
    let own = card_bytes("One", "Is there");
    assert_eq!(
        registry
            .run_due_visits(|_| OriginResponse::Card(own.clone()))
            .await,
        1
    );
    let own = registry.agent("bases.dev").await.id;
    registry.approve_open_review(own).await;
    let claim = String::from_utf8(card_bytes("Other", "Only says so")).unwrap();
    let claim = claim.replace("https://endpoint.example.net/a2a/v1", base);
    let claim = registry
        .register_approved_card("claims.dev", claim.as_bytes())
        .await;
    registry.catch_up().await;
    let query = LookupQuery {
        url: Some(base.to_owned()),
        ..LookupQuery::default()
    };
    let found = agents_behind(&registry, &Caller::default(), &query).await;
    assert_eq!(found, vec![claim.id, own]);
}
