//! Pages of a search by relevance, in another process and after changes.

use std::collections::BTreeSet;

use a2a_registry_api::Act;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use serde_json::Value;

use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const AGENTS: usize = 30;
const PAGE: u32 = 7;

async fn search_page(registry: &InProcessRegistry, token: Option<String>) -> Value {
    search_text_page(registry, "flights", token).await
}

async fn search_text_page(
    registry: &InProcessRegistry,
    text: &str,
    token: Option<String>,
) -> Value {
    let query = SearchQuery {
        q: Some(text.into()),
        page_size: Some(PAGE),
        page_token: token,
        ..SearchQuery::default()
    };
    let caller = Caller::default();
    let answer = search_agents(&registry.app, &caller, &query).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn agent_names(page: &Value) -> Vec<String> {
    let agents = page["agents"].as_array().unwrap().iter();
    agents
        .map(|agent| agent["name"].as_str().unwrap().to_owned())
        .collect()
}

fn next_token(page: &Value) -> Option<String> {
    page["next_page_token"].as_str().map(str::to_owned)
}

async fn crowd(url: &str) -> InProcessRegistry {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    for number in 0..AGENTS {
        registry
            .register_domain(&format!("d{number}.agents-test.com"))
            .await;
    }
    // Each contains the word once more than the one before, so that no two scores are equal.
    let made = registry
        .run_due_visits(|source| {
            let host = source.url.trim_start_matches("https://d");
            let number: usize = host.split('.').next().unwrap().parse().unwrap();
            let about = format!("{}.", "flights ".repeat(1 + number % 10));
            OriginResponse::Card(card_bytes(&format!("Agent {number}"), &about))
        })
        .await;
    assert_eq!(made, AGENTS);
    registry.assert_index_matches_database().await;
    registry
}

both_databases!(
    a_page_token_is_good_in_a_later_process,
    a_list_ends_although_an_agent_comes_between_its_pages,
    pages_after_relaxed_quotations_follow_the_first,
    a_pending_act_changes_no_page_of_an_earlier_list
);

/// A page token holds all that the next page needs: after a restart, and after events that change no result, the pages
/// show every agent once, in the same order.
async fn a_page_token_is_good_in_a_later_process(url: &str) {
    let registry = crowd(url).await;
    let first = search_page(&registry, None).await;
    assert_eq!(first["total"], AGENTS);
    let second = search_page(&registry, next_token(&first)).await;
    let registry = registry.restart(|_| ()).await;
    let again = search_page(&registry, next_token(&first)).await;
    assert_eq!(agent_names(&again), agent_names(&second));
    assert_eq!(next_token(&again), next_token(&second));
    registry.register_domain("further.agents-test.com").await;
    registry.catch_up().await;
    let again = search_page(&registry, next_token(&first)).await;
    assert_eq!(agent_names(&again), agent_names(&second));
    let whole = SearchQuery {
        q: Some("flights".into()),
        page_size: Some(100),
        ..SearchQuery::default()
    };
    let whole = search_agents(&registry.app, &Caller::default(), &whole).await;
    let whole: Value = serde_json::from_slice(&whole.unwrap()).unwrap();
    let mut shown = agent_names(&first);
    let mut token = next_token(&first);
    let mut pages = 1;
    while let Some(at) = token {
        let page = search_page(&registry, Some(at)).await;
        assert_eq!(
            (&page["order"], &page["total"]),
            (&"relevance".into(), &AGENTS.into())
        );
        shown.extend(agent_names(&page));
        token = next_token(&page);
        pages += 1;
    }
    assert_eq!(pages, AGENTS.div_ceil(PAGE as usize));
    assert_eq!(shown, agent_names(&whole));
    assert_eq!(shown.into_iter().collect::<BTreeSet<_>>().len(), AGENTS);
}

/// An agent that comes between two pages changes the scores of all, so that a hit may repeat or be missing; the pages still
/// go on and end, and their total is that of now.
async fn a_list_ends_although_an_agent_comes_between_its_pages(url: &str) {
    let registry = crowd(url).await;
    let mut page_now = search_page(&registry, None).await;
    registry.register_domain("better.agents-test.com").await;
    let answer = OriginResponse::Card(card_bytes("Flights", "flights flights flights"));
    assert_eq!(registry.run_due_visits(|_| answer.clone()).await, 1);
    registry.assert_index_matches_database().await;
    let mut pages = 1;
    while let Some(at) = next_token(&page_now) {
        page_now = search_page(&registry, Some(at)).await;
        assert_eq!(page_now["order"], "relevance");
        assert_eq!(page_now["total"], AGENTS + 1);
        pages += 1;
        assert!(pages <= AGENTS, "the pages do not end");
    }
    assert!(pages >= AGENTS / PAGE as usize, "{pages}");
}

/// No agent has the quotation, so its words are searched. The next pages go on with that, even if an agent that has the
/// quotation comes between.
async fn pages_after_relaxed_quotations_follow_the_first(url: &str) {
    let registry = crowd(url).await;
    let text = "\"cheap flights\"";
    let kinds = |page: &Value| -> Vec<String> {
        let hints = page["hints"].as_array().unwrap().iter();
        hints
            .map(|hint| hint["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = search_text_page(&registry, text, None).await;
    assert_eq!(first["total"], AGENTS, "{first}");
    assert!(kinds(&first).contains(&"quotation".to_owned()), "{first}");
    registry.register_domain("cheap.agents-test.com").await;
    let answer = OriginResponse::Card(card_bytes("Saver", "Books cheap flights"));
    assert_eq!(registry.run_due_visits(|_| answer.clone()).await, 1);
    registry.assert_index_matches_database().await;
    let mut token = next_token(&first);
    let mut pages = 1;
    while let Some(at) = token {
        let page = search_text_page(&registry, text, Some(at)).await;
        assert_eq!(page["total"], AGENTS + 1, "{page}");
        token = next_token(&page);
        pages += 1;
        assert!(pages <= AGENTS, "the pages do not end");
    }
    assert!(pages >= AGENTS / PAGE as usize, "{pages}");
    // A new search finds what is quoted.
    let again = search_text_page(&registry, text, None).await;
    assert_eq!(agent_names(&again), ["Saver"]);
    assert!(!kinds(&again).contains(&"quotation".to_owned()), "{again}");
}

/// While an act waits to be applied, paging in a list from before it misses no agent and repeats none.
async fn a_pending_act_changes_no_page_of_an_earlier_list(url: &str) {
    let registry = crowd(url).await;
    let first = search_page(&registry, None).await;
    let before = agent_names(&search_page(&registry, next_token(&first)).await);
    suspend(&registry, &first, 4).await;
    let shorter = search_page(&registry, None).await;
    assert_eq!(shorter["total"], AGENTS - 1);
    let second = search_page(&registry, next_token(&first)).await;
    assert_eq!(agent_names(&second), before);
    assert_eq!(all_pages(&[&registry], shorter).await, AGENTS - 1);
    registry.catch_up().await;
    let applied = search_page(&registry, None).await;
    assert_eq!(all_pages(&[&registry], applied).await, AGENTS - 1);
}

/// A replica that lags behind an act repeats no agent on the next page, and neither does one that is ahead.
#[tokio::test]
async fn a_replica_ahead_or_behind_repeats_no_agent() {
    let database = Database::postgres().await;
    let here = crowd(database.url()).await;
    let there = here.second_process().await;
    let before = search_page(&there, None).await;
    suspend(&here, &before, 4).await;
    let first = search_page(&here, None).await;
    assert_eq!(first["total"], AGENTS - 1);
    assert_eq!(all_pages(&[&there], first).await, AGENTS - 1);
    // The first page from before the act has the suspended agent.
    assert_eq!(all_pages(&[&here], before).await, AGENTS);
}

/// Suspends the agent at this position of a page; no index applies it yet.
async fn suspend(registry: &InProcessRegistry, page: &Value, place: usize) {
    let act = Act {
        reason: "for a while".into(),
        hold: None,
    };
    let id = page["agents"][place]["id"].as_str().unwrap();
    let suspended = agent_suspend(&registry.app, &registry.admin, id, &act).await;
    suspended.unwrap();
}

/// Number of agents on the pages from this one on, each counted once; the next page comes from the next process.
async fn all_pages(stages: &[&InProcessRegistry], first: Value) -> usize {
    let mut shown = agent_names(&first);
    let mut token = next_token(&first);
    for registry in stages.iter().cycle() {
        let Some(at) = token else { break };
        let page = search_page(registry, Some(at)).await;
        shown.extend(agent_names(&page));
        token = next_token(&page);
    }
    let once: BTreeSet<_> = shown.iter().collect();
    assert_eq!(
        once.len(),
        shown.len(),
        "an agent is shown twice: {shown:?}"
    );
    shown.len()
}
