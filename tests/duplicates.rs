//! Duplicates in the whole registry: grouped for each caller, page by page, by no property that a copy can choose.

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Act, AgentList};
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::agents::similar::{SimilarAgentsQuery, agent_similar};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::reviews::list::review_show;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::in_process_registry::InProcessRegistry;

both_databases!(
    duplicates_are_one_hit_for_each_caller,
    pages_show_every_group_once,
    similar_agents_are_those_that_the_caller_may_see
);

/// A card with an endpoint of that host.
fn card(name: &str, description: &str, host: &str) -> Vec<u8> {
    let card = serde_json::json!({
        "name": name, "description": description, "url": format!("https://{host}/a2a"), "version": "1.0",
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    });
    serde_json::to_vec(&card).unwrap()
}

async fn publish_agent(registry: &InProcessRegistry, domain: &str, card: &[u8]) -> Uuid {
    registry.register_approved_card(domain, card).await.id
}

async fn grouped(registry: &InProcessRegistry, query: SearchQuery) -> AgentList {
    let query = SearchQuery {
        group: Some("content".into()),
        ..query
    };
    let bytes = search_agents(&registry.app, &Caller::default(), &query)
        .await
        .unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn words(q: &str) -> SearchQuery {
    SearchQuery {
        q: Some(q.into()),
        ..SearchQuery::default()
    }
}

/// Each hit with its duplicates.
fn duplicate_groups(list: &AgentList) -> Vec<(Uuid, Vec<Uuid>)> {
    let hits = list.agents.iter().map(|hit| {
        let mut duplicates = hit.matched.duplicates.clone().unwrap_or_default();
        assert_eq!(duplicates.count, duplicates.agents.len() as u64);
        duplicates.agents.sort_unstable();
        (hit.summary.id, duplicates.agents)
    });
    hits.collect()
}

fn sorted<const N: usize>(mut ids: [Uuid; N]) -> Vec<Uuid> {
    ids.sort_unstable();
    ids.to_vec()
}

/// The agent at home stands for its copies, also for one on a domain that has the searched word in its name.
async fn duplicates_are_one_hit_for_each_caller(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let text = card("Trip", "Books flights", "trip.agents-test.com");
    let copy = publish_agent(&registry, "flights.agents-test.com", &text).await;
    let own = publish_agent(&registry, "trip.agents-test.com", &text).await;
    // Another version, and a stranger who names the endpoint under another name.
    let newer = card("Trip", "Books all flights", "trip.agents-test.com");
    let newer = publish_agent(&registry, "newer.agents-test.com", &newer).await;
    let stranger = card("Better", "Books flights flights", "trip.agents-test.com");
    let stranger = publish_agent(&registry, "stranger.agents-test.com", &stranger).await;
    registry.catch_up().await;

    let list = grouped(&registry, words("flights")).await;
    assert_eq!((list.total, list.groups), (4, Some(2)));
    let mut found = duplicate_groups(&list);
    found.sort_by_key(|(head, _)| *head != own);
    assert_eq!(found, [(own, sorted([copy, newer])), (stranger, vec![])]);

    let why = Act {
        reason: "a test".into(),
        hold: None,
    };
    agent_suspend(&registry.app, &registry.admin, &own.to_string(), &why)
        .await
        .unwrap();
    for settled in [false, true] {
        if settled {
            registry.catch_up().await;
        }
        let list = grouped(&registry, words("flights")).await;
        assert_eq!((list.total, list.groups), (3, Some(2)), "{settled}");
        let mut found = duplicate_groups(&list);
        found.sort_by_key(|(head, _)| *head == stranger);
        // The stopped clock gives both the same time of first sight, so that their ids decide.
        let [first, second] = [copy.min(newer), copy.max(newer)];
        assert_eq!(found, [(first, vec![second]), (stranger, vec![])]);
    }
    // Without grouping nothing is folded.
    let query = words("flights");
    let bytes = search_agents(&registry.app, &Caller::default(), &query).await;
    let list: AgentList = serde_json::from_slice(&bytes.unwrap()).unwrap();
    assert_eq!((list.agents.len(), list.groups), (3, None));
    assert!(
        duplicate_groups(&list)
            .iter()
            .all(|(_, others)| others.is_empty())
    );
}

/// A token of one grouping is none of another.
async fn pages_show_every_group_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for number in 0..5 {
        let text = card(
            &format!("Trip {number}"),
            "Books flights",
            "a.agents-test.com",
        );
        for place in ["a", "b"] {
            publish_agent(
                &registry,
                &format!("{place}{number}.agents-test.com"),
                &text,
            )
            .await;
        }
    }
    registry.catch_up().await;
    for q in [None, Some("flights".to_owned())] {
        let mut query = SearchQuery {
            q,
            page_size: Some(2),
            ..SearchQuery::default()
        };
        let mut seen = Vec::new();
        loop {
            let list = grouped(&registry, query.clone()).await;
            assert_eq!((list.total, list.groups), (10, Some(5)));
            for (head, others) in duplicate_groups(&list) {
                assert_eq!(others.len(), 1);
                seen.push(head);
                seen.extend(others);
            }
            let Some(token) = list.next_page_token else {
                break;
            };
            query.page_token = Some(token);
            let foreign = search_agents(&registry.app, &Caller::default(), &query).await;
            assert!(foreign.is_err(), "a token belongs to its grouping");
        }
        let shown = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((shown, seen.len()), (10, 10));
    }
}

/// An agent on hold is neither similar nor has similar agents, except for who may see it.
async fn similar_agents_are_those_that_the_caller_may_see(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let text = card("Trip", "Books flights", "trip.agents-test.com");
    let own = publish_agent(&registry, "trip.agents-test.com", &text).await;
    let copy = publish_agent(&registry, "copy.agents-test.com", &text).await;
    let text = card("Wings", "Books cheap flights", "wings.agents-test.com");
    let other = publish_agent(&registry, "wings.agents-test.com", &text).await;
    let text = card("Fly", "Books flights to islands", "fly.agents-test.com");
    let waiting = registry
        .register_with_card("fly.agents-test.com", &text)
        .await
        .id;
    registry.catch_up().await;
    let anyone = Caller::default();
    let similar = async |caller: &Caller, agent: Uuid| {
        let query = SimilarAgentsQuery::default();
        let found = agent_similar(&registry.app, caller, &agent.to_string(), &query).await;
        found.map(|found| {
            assert_eq!(found.mode, "lexical");
            let duplicates = found.duplicates.map(|duplicates| duplicates.agents);
            let agents = found.agents.into_iter();
            let agents: Vec<Uuid> = agents.map(|hit| hit.summary.id).collect();
            (agents, duplicates.unwrap_or_default())
        })
    };
    assert_eq!(
        similar(&anyone, own).await.unwrap(),
        (vec![other], vec![copy])
    );
    assert_eq!(similar(&anyone, other).await.unwrap(), (vec![own], vec![]));
    // A card that waits for its review is similar to nothing yet, and curators see what it is similar to.
    let missing = similar(&anyone, waiting).await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    let (agents, _) = similar(&registry.admin, waiting).await.unwrap();
    assert_eq!(agents.len(), 2);
    let review = registry.find_open_review(waiting).await.unwrap();
    let review = review_show(&registry.app, &registry.admin, review.id)
        .await
        .unwrap();
    let shown: Vec<Uuid> = review.similar.iter().map(|hit| hit.summary.id).collect();
    assert_eq!((shown, review.duplicates), (agents, None));

    let why = Act {
        reason: "a test".into(),
        hold: None,
    };
    for held in [copy, other] {
        agent_suspend(&registry.app, &registry.admin, &held.to_string(), &why)
            .await
            .unwrap();
    }
    assert_eq!(similar(&anyone, own).await.unwrap(), (vec![], vec![]));
    let missing = similar(&anyone, other).await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    for size in [0, 21] {
        let query = SimilarAgentsQuery {
            page_size: Some(size),
        };
        let refused = agent_similar(&registry.app, &anyone, &own.to_string(), &query).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Invalid);
    }
}
