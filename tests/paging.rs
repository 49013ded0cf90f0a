//! Pages of a search after its frozen order is lost.

use std::collections::BTreeSet;

use a2a_registry_api::Act;
use a2a_registry_server::agents::acts::agent_suspend;
use a2a_registry_server::caller::Caller;
use a2a_registry_server::search::query::SearchQuery;
use a2a_registry_server::search::search;
use serde_json::Value;

use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::stage::{OriginAnswer, Stage, card};

const AGENTS: usize = 30;
const PAGE: u32 = 7;

async fn page(stage: &Stage, token: Option<String>) -> Value {
    let query = SearchQuery {
        q: Some("flights".into()),
        page_size: Some(PAGE),
        page_token: token,
        ..SearchQuery::default()
    };
    let caller = Caller::default();
    let answer = search(&stage.app, &caller, &query).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn names(page: &Value) -> Vec<String> {
    let agents = page["agents"].as_array().unwrap().iter();
    agents
        .map(|agent| agent["name"].as_str().unwrap().to_owned())
        .collect()
}

fn next(page: &Value) -> Option<String> {
    page["next_page_token"].as_str().map(str::to_owned)
}

async fn crowd(url: &str) -> Stage {
    let stage = Stage::with(url, |config| config.governance.approve_all = true).await;
    for number in 0..AGENTS {
        stage.register(&format!("d{number}.agents-test.com")).await;
    }
    // Each contains the word once more than the one before, so that no two scores are equal.
    let made = stage
        .visit(|source| {
            let host = source.url.trim_start_matches("https://d");
            let number: usize = host.split('.').next().unwrap().parse().unwrap();
            let about = format!("{}.", "flights ".repeat(1 + number % 10));
            OriginAnswer::Card(card(&format!("Agent {number}"), &about))
        })
        .await;
    assert_eq!(made, AGENTS);
    stage.index_equals_database().await;
    stage
}

both_databases!(
    a_page_token_outlives_its_frozen_order,
    a_new_agent_changes_no_later_page,
    a_pending_act_changes_no_page_of_an_earlier_order
);

/// A first page's frozen order is lost with the process, and restored as long as no event has come since. After
/// that, the next page reports that the order is a new one, and still shows every agent once.
async fn a_page_token_outlives_its_frozen_order(url: &str) {
    let stage = crowd(url).await;
    let first = page(&stage, None).await;
    assert_eq!(
        (&first["order"], &first["total"]),
        (&"relevance".into(), &AGENTS.into())
    );
    let second = page(&stage, next(&first)).await;
    assert_eq!(second["order"], "relevance", "the frozen order is kept");
    let stage = stage.restart(|_| ()).await;
    let again = page(&stage, next(&first)).await;
    assert_eq!(
        (names(&again), &again["order"]),
        (names(&second), &"relevance".into())
    );
    assert_eq!(next(&again), next(&second));
    // An event that changes no result.
    let stage = stage.restart(|_| ()).await;
    stage.register("further.agents-test.com").await;
    stage.settle().await;
    let mut shown = names(&first);
    let mut token = next(&first);
    let mut pages = 1;
    while let Some(at) = token {
        let page = page(&stage, Some(at)).await;
        assert_eq!(
            (&page["order"], &page["total"]),
            (&"resumed".into(), &AGENTS.into())
        );
        if pages == 1 {
            assert_eq!(
                names(&page),
                names(&second),
                "no event has changed these agents"
            );
        }
        shown.extend(names(&page));
        token = next(&page);
        pages += 1;
    }
    assert_eq!(pages, AGENTS.div_ceil(PAGE as usize));
    assert_eq!(shown.len(), AGENTS, "an agent is shown twice");
    assert_eq!(
        shown.iter().collect::<BTreeSet<_>>().len(),
        AGENTS,
        "an agent is missing"
    );
}

/// While the order is kept, a new agent changes no later page.
async fn a_new_agent_changes_no_later_page(url: &str) {
    let stage = crowd(url).await;
    let first = page(&stage, None).await;
    let before = names(&page(&stage, next(&first)).await);
    stage.register("better.agents-test.com").await;
    let answer = OriginAnswer::Card(card("Flights", "flights flights flights"));
    assert_eq!(stage.visit(|_| answer.clone()).await, 1);
    stage.index_equals_database().await;
    let second = page(&stage, next(&first)).await;
    assert_eq!(
        (names(&second), &second["order"]),
        (before, &"relevance".into())
    );
    assert_eq!(
        page(&stage, None).await["total"],
        AGENTS + 1,
        "a new first page shows it"
    );
}

/// A pending act makes an order of its own: paging in the order before it misses no agent.
async fn a_pending_act_changes_no_page_of_an_earlier_order(url: &str) {
    let stage = crowd(url).await;
    let first = page(&stage, None).await;
    let before = names(&page(&stage, next(&first)).await);
    suspend(&stage, &first, 4).await;
    let shorter = page(&stage, None).await;
    assert_eq!(shorter["total"], AGENTS - 1);
    let second = page(&stage, next(&first)).await;
    assert_eq!(
        (names(&second), &second["order"]),
        (before, &"relevance".into())
    );
    // The pages of the new order follow each other too, before and after the act is applied.
    assert_eq!(all_pages(&[&stage], shorter.clone()).await, AGENTS - 1);
    stage.settle().await;
    assert_eq!(all_pages(&[&stage], shorter).await, AGENTS - 1);
}

/// A replica that lags behind an act repeats no agent on the next page, and neither does one that is ahead.
#[tokio::test]
async fn a_replica_ahead_or_behind_repeats_no_agent() {
    let database = Database::postgres().await;
    let here = crowd(database.url()).await;
    let there = here.beside().await;
    let before = page(&there, None).await;
    suspend(&here, &before, 4).await;
    let first = page(&here, None).await;
    assert_eq!(first["total"], AGENTS - 1);
    assert_eq!(all_pages(&[&there], first).await, AGENTS - 1);
    // The order from before the act still shows the suspended agent.
    assert_eq!(all_pages(&[&here], before).await, AGENTS);
}

/// Suspends the agent at this position of a page; no index applies it yet.
async fn suspend(stage: &Stage, page: &Value, place: usize) {
    let act = Act {
        reason: "for a while".into(),
        hold: None,
    };
    let id = page["agents"][place]["id"].as_str().unwrap();
    let suspended = agent_suspend(&stage.app, &stage.admin, id, &act).await;
    suspended.unwrap();
}

/// Number of agents on the pages from this one on, each counted once; the next page comes from the next process.
async fn all_pages(stages: &[&Stage], first: Value) -> usize {
    let mut shown = names(&first);
    let mut token = next(&first);
    for stage in stages.iter().cycle() {
        let Some(at) = token else { break };
        let page = page(stage, Some(at)).await;
        shown.extend(names(&page));
        token = next(&page);
    }
    let once: BTreeSet<_> = shown.iter().collect();
    assert_eq!(
        once.len(),
        shown.len(),
        "an agent is shown twice: {shown:?}"
    );
    shown.len()
}
