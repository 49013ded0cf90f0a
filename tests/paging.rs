//! Pages of a search, when what the first page was of is no more.

use std::collections::BTreeSet;

use a2a_registry::app::{Caller, SearchQuery};
use serde_json::Value;

use crate::support::both_databases;
use crate::support::stage::{Answer, Stage, card};

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
    let answer = stage.app.search(&caller, &query).await.unwrap();
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
    // Each says it more often than the one before, so that no two are equally good.
    let made = stage
        .visit(|source| {
            let host = source.url.trim_start_matches("https://d");
            let number: usize = host.split('.').next().unwrap().parse().unwrap();
            let about = format!("{}.", "flights ".repeat(1 + number % 10));
            Answer::Card(card(&format!("Agent {number}"), &about))
        })
        .await;
    assert_eq!(made, AGENTS);
    stage.index_equals_database().await;
    stage
}

both_databases! {
    /// The order that a first page froze ends with the process, and is found again as long as nothing has happened
    /// since. Afterwards whoever pages on is told that the order is another one now, and still sees every agent once.
    async fn a_page_token_outlives_the_order_it_was_of(url: &str) {
        let stage = crowd(url).await;
        let first = page(&stage, None).await;
        assert_eq!((&first["order"], &first["total"]), (&"relevance".into(), &AGENTS.into()));
        let second = page(&stage, next(&first)).await;
        assert_eq!(second["order"], "relevance", "the order is kept");
        let stage = stage.restart(|_| ()).await;
        let again = page(&stage, next(&first)).await;
        assert_eq!((names(&again), &again["order"]), (names(&second), &"relevance".into()));
        assert_eq!(next(&again), next(&second));
        // Something happens that moves nobody.
        let stage = stage.restart(|_| ()).await;
        stage.register("further.agents-test.com").await;
        stage.settle().await;
        let mut seen = names(&first);
        let mut token = next(&first);
        let mut pages = 1;
        while let Some(at) = token {
            let page = page(&stage, Some(at)).await;
            assert_eq!((&page["order"], &page["total"]), (&"resumed".into(), &AGENTS.into()));
            if pages == 1 {
                assert_eq!(names(&page), names(&second), "nothing of them has changed meanwhile");
            }
            seen.extend(names(&page));
            token = next(&page);
            pages += 1;
        }
        assert_eq!(pages, AGENTS.div_ceil(PAGE as usize));
        assert_eq!(seen.len(), AGENTS, "none twice");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), AGENTS, "none missing");
    }

    /// While the order is kept a new agent moves nothing on the pages to come.
    async fn what_comes_later_moves_no_page(url: &str) {
        let stage = crowd(url).await;
        let first = page(&stage, None).await;
        let before = names(&page(&stage, next(&first)).await);
        stage.register("better.agents-test.com").await;
        let answer = Answer::Card(card("Flights", "flights flights flights"));
        assert_eq!(stage.visit(|_| answer.clone()).await, 1);
        stage.index_equals_database().await;
        let second = page(&stage, next(&first)).await;
        assert_eq!((names(&second), &second["order"]), (before, &"relevance".into()));
        assert_eq!(page(&stage, None).await["total"], AGENTS + 1, "who begins anew finds it");
    }
}
