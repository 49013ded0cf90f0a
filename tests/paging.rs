//! Pages of a search by relevance, in another process and after changes.

use std::collections::BTreeSet;

use a2a_registry_api::Act;
use a2a_registry_core::agents::acts::agent_suspend;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::search::search;
use a2a_registry_core::visibility::caller::Caller;
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
    a_page_token_is_good_in_a_later_process,
    a_list_ends_although_an_agent_comes_between_its_pages,
    a_pending_act_changes_no_page_of_an_earlier_list
);

/// A page token holds all that the next page needs: after a restart, and after events that change no result, the pages
/// show every agent once, in the same order.
async fn a_page_token_is_good_in_a_later_process(url: &str) {
    let stage = crowd(url).await;
    let first = page(&stage, None).await;
    assert_eq!(first["total"], AGENTS);
    let second = page(&stage, next(&first)).await;
    let stage = stage.restart(|_| ()).await;
    let again = page(&stage, next(&first)).await;
    assert_eq!(names(&again), names(&second));
    assert_eq!(next(&again), next(&second));
    stage.register("further.agents-test.com").await;
    stage.settle().await;
    let again = page(&stage, next(&first)).await;
    assert_eq!(names(&again), names(&second));
    let whole = SearchQuery {
        q: Some("flights".into()),
        page_size: Some(100),
        ..SearchQuery::default()
    };
    let whole = search(&stage.app, &Caller::default(), &whole).await;
    let whole: Value = serde_json::from_slice(&whole.unwrap()).unwrap();
    let mut shown = names(&first);
    let mut token = next(&first);
    let mut pages = 1;
    while let Some(at) = token {
        let page = page(&stage, Some(at)).await;
        assert_eq!(
            (&page["order"], &page["total"]),
            (&"relevance".into(), &AGENTS.into())
        );
        shown.extend(names(&page));
        token = next(&page);
        pages += 1;
    }
    assert_eq!(pages, AGENTS.div_ceil(PAGE as usize));
    assert_eq!(shown, names(&whole));
    assert_eq!(shown.into_iter().collect::<BTreeSet<_>>().len(), AGENTS);
}

/// An agent that comes between two pages changes the scores of all, so that a hit may repeat or be missing; the pages still
/// go on and end, and their total is that of now.
async fn a_list_ends_although_an_agent_comes_between_its_pages(url: &str) {
    let stage = crowd(url).await;
    let mut page_now = page(&stage, None).await;
    stage.register("better.agents-test.com").await;
    let answer = OriginAnswer::Card(card("Flights", "flights flights flights"));
    assert_eq!(stage.visit(|_| answer.clone()).await, 1);
    stage.index_equals_database().await;
    let mut pages = 1;
    while let Some(at) = next(&page_now) {
        page_now = page(&stage, Some(at)).await;
        assert_eq!(page_now["order"], "relevance");
        assert_eq!(page_now["total"], AGENTS + 1);
        pages += 1;
        assert!(pages <= AGENTS, "the pages do not end");
    }
    assert!(pages >= AGENTS / PAGE as usize, "{pages}");
}

/// While an act waits to be applied, paging in a list from before it misses no agent and repeats none.
async fn a_pending_act_changes_no_page_of_an_earlier_list(url: &str) {
    let stage = crowd(url).await;
    let first = page(&stage, None).await;
    let before = names(&page(&stage, next(&first)).await);
    suspend(&stage, &first, 4).await;
    let shorter = page(&stage, None).await;
    assert_eq!(shorter["total"], AGENTS - 1);
    let second = page(&stage, next(&first)).await;
    assert_eq!(names(&second), before);
    assert_eq!(all_pages(&[&stage], shorter).await, AGENTS - 1);
    stage.settle().await;
    let applied = page(&stage, None).await;
    assert_eq!(all_pages(&[&stage], applied).await, AGENTS - 1);
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
    // The first page from before the act has the suspended agent.
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
