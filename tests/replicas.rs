//! Two replicas on one database give the same responses: after different histories of commits, merges and deletions,
//! and with pages from either of them.

use a2a_registry_server::caller::Caller;
use a2a_registry_server::domains::withdrawal::domain_delete;
use a2a_registry_server::search;
use a2a_registry_server::search::query::{SearchQuery, SuggestQuery};
use a2a_registry_server::search::{listed_agents, suggest};
use serde_json::Value;

use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::dice::Dice;
use crate::support::stage::{OriginAnswer, Stage, card};

const AGENTS: usize = 90;
const QUERIES: usize = 200;
const WORDS: [&str; 12] = [
    "flights",
    "hotels",
    "trains",
    "cheap",
    "booking",
    "weather",
    "forecast",
    "translate",
    "bank",
    "music",
    "maps",
    "tokyo",
];

fn words(dice: &mut Dice, most: usize) -> String {
    let count = 1 + dice.roll(most);
    let words = (0..count).map(|_| WORDS[dice.roll(WORDS.len())]);
    words.collect::<Vec<_>>().join(" ")
}

async fn search(stage: &Stage, caller: &Caller, query: &SearchQuery) -> Value {
    let answer = search::search(&stage.app, caller, query).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

async fn suggestions(stage: &Stage, prefix: &str) -> String {
    let query = SuggestQuery { q: prefix.into() };
    let found = suggest(&stage.app, &Caller::default(), &query)
        .await
        .unwrap();
    serde_json::to_string(&found).unwrap()
}

async fn change_cards(stage: &Stage, dice: &mut Dice, which: impl Fn(usize) -> bool) {
    for number in (0..AGENTS).filter(|number| which(*number)) {
        let text = words(dice, 14);
        let domain = format!("d{number}.agents-test.com");
        let changed = card(&format!("Agent {number} {}", words(dice, 2)), &text);
        stage.crawl(&domain, OriginAnswer::Card(changed)).await;
        stage.settle().await;
    }
}

#[tokio::test]
async fn two_replicas_give_the_same_responses() {
    let database = Database::postgres().await;
    let url = database.url();
    let mut dice = Dice(0x5e_ed01);
    let first = Stage::with(url, |config| config.governance.approve_all = true).await;
    for number in 0..AGENTS {
        first.register(&format!("d{number}.agents-test.com")).await;
    }
    let mut texts = Vec::new();
    for number in 0..AGENTS {
        texts.push(card(&format!("Agent {number}"), &words(&mut dice, 14)));
    }
    first
        .visit(|source| {
            let host = source.url.trim_start_matches("https://d");
            let number: usize = host.split('.').next().unwrap().parse().unwrap();
            OriginAnswer::Card(texts[number].clone())
        })
        .await;
    first.settle().await;
    // One commit per change here; the other replica starts in the middle and applies the rest in a few commits.
    change_cards(&first, &mut dice, |number| number % 3 == 0).await;
    // Fetches without a change send no event, so neither replica applies any, whenever it started.
    for number in [1, 2, 4] {
        let domain = format!("d{number}.agents-test.com");
        first
            .crawl(&domain, OriginAnswer::Card(texts[number].clone()))
            .await;
    }
    let second = first.beside().await;
    change_cards(&first, &mut dice, |number| number % 5 == 0).await;
    for number in (0..AGENTS).step_by(11) {
        let domain = format!("d{number}.agents-test.com");
        domain_delete(&first.app, &first.admin, &domain)
            .await
            .unwrap();
    }
    first.settle().await;
    second.settle().await;
    assert_eq!(
        first.app.index().applied_seq(),
        second.app.index().applied_seq()
    );

    let replicas = [&first, &second];
    let callers = [Caller::default(), first.admin.clone()];
    let (mut pages, mut resumed) = (0, 0);
    for number in 0..QUERIES {
        let text = match number % 4 {
            0 => format!(
                "{} AND {} AND {}",
                WORDS[number % 12],
                WORDS[number % 7],
                WORDS[number % 5]
            ),
            1 => format!("{}*", &WORDS[number % 12][..2]),
            _ => words(&mut dice, 5),
        };
        let mut query = SearchQuery {
            q: Some(text),
            page_size: Some(7),
            explain: Some(true),
            facets: vec!["tag,skill,lifecycle,domain".into()],
            ..SearchQuery::default()
        };
        let caller = &callers[number % 2];
        let mut total = 0;
        for page in 0.. {
            let answers = [
                search(replicas[(number + page) % 2], caller, &query).await,
                search(replicas[(number + page + 1) % 2], caller, &query).await,
            ];
            assert_eq!(answers[0], answers[1], "{query:?}");
            pages += 1;
            total += answers[0]["agents"].as_array().unwrap().len();
            resumed += usize::from(answers[0]["order"] == "resumed");
            match answers[0]["next_page_token"].as_str() {
                Some(token) => query.page_token = Some(token.to_owned()),
                None => {
                    assert_eq!(
                        answers[0]["total"], total,
                        "an agent is missing or shown twice: {query:?}"
                    );
                    break;
                }
            }
        }
    }
    assert!(pages > QUERIES && resumed == 0, "{pages} {resumed}");
    for prefix in ["a", "b", "t", "ag", "agent 1", "fl"] {
        assert_eq!(
            suggestions(&first, prefix).await,
            suggestions(&second, prefix).await
        );
    }
}

both_databases!(hidden_agents_change_no_score);

/// Agents that wait for a decision, or are on hold, change no score and no explanation by a single byte, and no metric.
async fn hidden_agents_change_no_score(url: &str) {
    let stage = Stage::new(url).await;
    for number in 0..6 {
        let text = format!("flights and hotels {}", "cheap ".repeat(number));
        let name = format!("Agent {number}");
        let domain = format!("d{number}.agents-test.com");
        stage.publish_approved(&domain, &card(&name, &text)).await;
    }
    stage.settle().await;
    let query = SearchQuery {
        q: Some("cheap flights AND hotels".into()),
        explain: Some(true),
        facets: vec!["tag,domain".into()],
        ..SearchQuery::default()
    };
    let anybody = Caller::default();
    let before = search::search(&stage.app, &anybody, &query).await.unwrap();
    assert_eq!(listed_agents(&stage.app).await, 6);
    for number in 10..16 {
        let domain = format!("d{number}.agents-test.com");
        let text = "cheap flights flights hotels ".repeat(number);
        stage
            .publish(&domain, &card(&format!("Hidden {number}"), &text))
            .await;
        stage.settle().await;
        assert_eq!(
            search::search(&stage.app, &anybody, &query).await.unwrap(),
            before
        );
    }
    assert_eq!(listed_agents(&stage.app).await, 6);
    // A deletion of such an agent changes nothing either.
    domain_delete(&stage.app, &stage.admin, "d12.agents-test.com")
        .await
        .unwrap();
    stage.settle().await;
    assert_eq!(
        search::search(&stage.app, &anybody, &query).await.unwrap(),
        before
    );
}
