//! Look-ups show each caller what the agent itself shows it: what is not listed to the few who see it, and to nobody else.

use a2a_registry_api::{Act, Registration};
use a2a_registry_core::agents::acts::{agent_retire, agent_suspend};
use a2a_registry_core::domains::register::register;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::lookup;
use a2a_registry_core::search::query::LookupQuery;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::reviews::account;
use crate::support::both_databases;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Stage, card};

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

async fn agents_behind(stage: &Stage, caller: &Caller, query: &LookupQuery) -> Vec<Uuid> {
    match lookup(&stage.app, caller, query).await {
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
async fn sees(stage: &Stage, caller: &Caller, row: &agent::Model, name: &str) -> bool {
    let digest = stage.versions(row.id).await.pop().unwrap().digest;
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
    assert!(agents_behind(stage, caller, &part).await.is_empty());
    let by_name = by_name(format!(" {} ", name.to_uppercase()));
    let shown = agent_show(&stage.app, caller, &row.id.to_string()).await;
    let by_host = by_url(row.domain.clone());
    for query in [by_host, by_url(card_url), by_digest, by_name] {
        let found = agents_behind(stage, caller, &query).await;
        assert_eq!(found.contains(&row.id), shown.is_ok(), "{query:?}");
    }
    shown.is_ok()
}

async fn a_look_up_shows_what_the_agent_itself_shows(url: &str) {
    let stage = Stage::new(url).await;
    let registrant = account(&stage, "registrant", Role::Publisher).await;
    let stranger = account(&stage, "stranger", Role::Publisher).await;
    let curator = account(&stage, "curator", Role::Curator).await;
    let what = Registration {
        domain: Some("waiting.dev".into()),
        ..Registration::default()
    };
    register(&stage.app, &registrant, &what).await.unwrap();
    let arrives = OriginAnswer::Card(card("Waiting", "one"));
    stage.crawl("waiting.dev", arrives).await;
    let waiting = stage.agent("waiting.dev").await;
    let held = stage
        .publish_approved("held.dev", &card("Held", "two"))
        .await;
    agent_suspend(&stage.app, &stage.admin, &held.id.to_string(), &act())
        .await
        .unwrap();
    stage.index_equals_database().await;
    for (who, caller, expected) in [
        ("the admin", &stage.admin, (true, true)),
        ("a curator", &curator, (true, true)),
        ("who registered it", &registrant, (true, false)),
        ("another publisher", &stranger, (false, false)),
        ("anybody", &Caller::default(), (false, false)),
    ] {
        let seen = (
            sees(&stage, caller, &waiting, "Waiting").await,
            sees(&stage, caller, &held, "Held").await,
        );
        assert_eq!(seen, expected, "{who}");
    }
}

async fn what_is_listed_comes_first(url: &str) {
    let stage = Stage::new(url).await;
    let shared = card("Shared", "one");
    let older = stage.publish_approved("older.dev", &shared).await;
    let newer = stage.publish_approved("newer.dev", &shared).await;
    let waiting = stage.publish("waiting.dev", &shared).await;
    agent_suspend(&stage.app, &stage.admin, &older.id.to_string(), &act())
        .await
        .unwrap();
    stage.settle().await;
    let query = LookupQuery {
        digest: Some(stage.versions(older.id).await.pop().unwrap().digest),
        ..LookupQuery::default()
    };
    let mut found = agents_behind(&stage, &stage.admin, &query).await;
    assert_eq!(found.first(), Some(&newer.id));
    found.sort_unstable();
    let mut all = [older.id, newer.id, waiting.id];
    all.sort_unstable();
    assert_eq!(found, all);
    let anybody = agents_behind(&stage, &Caller::default(), &query).await;
    assert_eq!(anybody, vec![newer.id]);
    // What is retired is in no index any more.
    agent_retire(&stage.app, &stage.admin, &older.id.to_string(), &act())
        .await
        .unwrap();
    stage.settle().await;
    let found = agents_behind(&stage, &stage.admin, &query).await;
    assert!(!found.contains(&older.id) && found.len() == 2, "{found:?}");
}

/// Anybody may write the base URL of another agent into a card: the agent whose card lies under it is found all the same.
async fn a_claimed_base_url_does_not_hide_the_agent_there(url: &str) {
    let stage = Stage::new(url).await;
    let base = "https://bases.dev/agents/one";
    stage
        .register_url(&format!("{base}/.well-known/agent-card.json"))
        .await;
    let own = card("One", "Is there");
    assert_eq!(stage.visit(|_| OriginAnswer::Card(own.clone())).await, 1);
    let own = stage.agent("bases.dev").await.id;
    stage.approve(own).await;
    let claim = String::from_utf8(card("Other", "Only says so")).unwrap();
    let claim = claim.replace("https://endpoint.example.net/a2a/v1", base);
    let claim = stage.publish_approved("claims.dev", claim.as_bytes()).await;
    stage.settle().await;
    let query = LookupQuery {
        url: Some(base.to_owned()),
        ..LookupQuery::default()
    };
    let found = agents_behind(&stage, &Caller::default(), &query).await;
    assert_eq!(found, vec![claim.id, own]);
}
