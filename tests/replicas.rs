//! Two replicas on one database, which give the same responses: after different histories of commits, merges and
//! deletions, and with pages from either of them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::search_query::{SearchQuery, SuggestQuery};
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::search::{self, count_public_agents, suggest_completions};
use a2a_registry_core::visibility::caller::Caller;
use serde_json::Value;

use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::seeded_rng::SeededRng;

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

fn random_words(dice: &mut SeededRng, most: usize) -> String {
    let count = 1 + dice.next_below(most);
    let words = (0..count).map(|_| WORDS[dice.next_below(WORDS.len())]);
    words.collect::<Vec<_>>().join(" ")
}

async fn search(registry: &InProcessRegistry, caller: &Caller, query: &SearchQuery) -> Value {
    let answer = search::search_agents(&registry.app, caller, query)
        .await
        .unwrap();
    serde_json::from_slice(&answer).unwrap()
}

async fn suggestions(registry: &InProcessRegistry, prefix: &str) -> String {
    let query = SuggestQuery { q: prefix.into() };
    let found = suggest_completions(&registry.app, &Caller::default(), &query)
        .await
        .unwrap();
    serde_json::to_string(&found).unwrap()
}

async fn change_cards(
    registry: &InProcessRegistry,
    dice: &mut SeededRng,
    which: impl Fn(usize) -> bool,
) {
    for number in (0..AGENTS).filter(|number| which(*number)) {
        let text = random_words(dice, 14);
        let domain = format!("d{number}.agents-test.com");
        let changed = card_bytes(&format!("Agent {number} {}", random_words(dice, 2)), &text);
        registry
            .crawl_domain(&domain, OriginResponse::Card(changed))
            .await;
        registry.catch_up().await;
    }
}

#[tokio::test]
async fn two_replicas_give_the_same_responses() {
    let database = Database::postgres().await;
    let url = database.url();
    let mut rng = SeededRng(0x5e_ed01);
    let first =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    for number in 0..AGENTS {
        first
            .register_domain(&format!("d{number}.agents-test.com"))
            .await;
    }
    let mut texts = Vec::new();
    for number in 0..AGENTS {
        texts.push(card_bytes(
            &format!("Agent {number}"),
            &random_words(&mut rng, 14),
        ));
    }
    first
        .run_due_visits(|source| {
            let host = source.url.trim_start_matches("https://d");
            let number: usize = host.split('.').next().unwrap().parse().unwrap();
            OriginResponse::Card(texts[number].clone())
        })
        .await;
    first.catch_up().await;
    // One commit per change here; the other replica starts in the middle and applies the rest in a few commits.
    change_cards(&first, &mut rng, |number| number % 3 == 0).await;
    // Fetches without a change send no event, so neither replica applies any, whenever it started.
    for number in [1, 2, 4] {
        let domain = format!("d{number}.agents-test.com");
        first
            .crawl_domain(&domain, OriginResponse::Card(texts[number].clone()))
            .await;
    }
    let second = first.second_process().await;
    change_cards(&first, &mut rng, |number| number % 5 == 0).await;
    for number in (0..AGENTS).step_by(11) {
        let domain = format!("d{number}.agents-test.com");
        domain_delete(&first.app, &first.admin, &domain)
            .await
            .unwrap();
    }
    first.catch_up().await;
    second.catch_up().await;
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
            _ => random_words(&mut rng, 5),
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

both_databases!(
    hidden_agents_change_no_score,
    changed_agents_are_counted_and_paged_as_by_a_scan
);

/// Agents that wait for a decision, or are on hold, change no score and no explanation by a single byte, and no metric.
async fn hidden_agents_change_no_score(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for number in 0..6 {
        let text = format!("flights and hotels {}", "cheap ".repeat(number));
        let name = format!("Agent {number}");
        let domain = format!("d{number}.agents-test.com");
        registry
            .register_approved_card(&domain, &card_bytes(&name, &text))
            .await;
    }
    registry.catch_up().await;
    let query = SearchQuery {
        q: Some("cheap flights AND hotels".into()),
        explain: Some(true),
        facets: vec!["tag,domain".into()],
        ..SearchQuery::default()
    };
    let anybody = Caller::default();
    let before = search::search_agents(&registry.app, &anybody, &query)
        .await
        .unwrap();
    assert_eq!(count_public_agents(&registry.app).await, 6);
    for number in 10..16 {
        let domain = format!("d{number}.agents-test.com");
        let text = "cheap flights flights hotels ".repeat(number);
        registry
            .register_with_card(&domain, &card_bytes(&format!("Hidden {number}"), &text))
            .await;
        registry.catch_up().await;
        assert_eq!(
            search::search_agents(&registry.app, &anybody, &query)
                .await
                .unwrap(),
            before
        );
    }
    assert_eq!(count_public_agents(&registry.app).await, 6);
    // A deletion of such an agent changes nothing either.
    domain_delete(&registry.app, &registry.admin, "d12.agents-test.com")
        .await
        .unwrap();
    registry.catch_up().await;
    assert_eq!(
        search::search_agents(&registry.app, &anybody, &query)
            .await
            .unwrap(),
        before
    );
}

const TAGS: [&str; 6] = ["finance", "travel", "music", "maps", "weather", "sport"];

/// The tags of agents by number.
type TagsByAgent = BTreeMap<usize, BTreeSet<&'static str>>;

fn some_tags(dice: &mut SeededRng) -> BTreeSet<&'static str> {
    TAGS.into_iter()
        .filter(|_| dice.next_below(2) == 0)
        .collect()
}

fn domain(number: usize) -> String {
    format!("d{number}.agents-test.com")
}

fn tagged(number: usize, tags: &BTreeSet<&str>) -> OriginResponse {
    let card = serde_json::json!({
        "name": format!("Agent {number}"), "description": "common", "url": "https://a.example.com/a2a",
        "version": "1.0", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "common", "tags": tags}],
    });
    OriginResponse::Card(serde_json::to_vec(&card).unwrap())
}

/// The counts of a facet whose values are all listed.
fn counts(facet: &Value) -> BTreeMap<String, u64> {
    assert_eq!(facet["other_count"], 0);
    let values = facet["values"].as_array().unwrap().iter();
    let count = |one: &Value| Some((one["value"].as_str()?.to_owned(), one["count"].as_u64()?));
    values.map(|one| count(one).unwrap()).collect()
}

/// Compares a search for the agents with one of these tags, or for all, with a scan over the agents.
async fn equals_scan(registry: &InProcessRegistry, agents: &TagsByAgent, asked: &[&str]) {
    let is_asked = |tags: &BTreeSet<&str>| {
        let mut any = asked.iter();
        asked.is_empty() || any.any(|tag| tags.contains(tag))
    };
    let expected: TagsByAgent = agents
        .iter()
        .filter(|(_, tags)| is_asked(tags))
        .map(|(number, tags)| (*number, tags.clone()))
        .collect();
    let mut by_tag: BTreeMap<String, u64> = BTreeMap::new();
    for tag in expected.values().flatten() {
        *by_tag.entry((*tag).to_owned()).or_default() += 1;
    }
    let by_domain: BTreeMap<String, u64> =
        expected.keys().map(|number| (domain(*number), 1)).collect();
    let mut query = SearchQuery {
        q: Some("common".into()),
        tag: asked.iter().map(|tag| (*tag).to_owned()).collect(),
        facets: vec!["tag,domain".into()],
        page_size: Some(7),
        ..SearchQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let answer = search(registry, &Caller::default(), &query).await;
        assert_eq!(answer["total"], expected.len(), "{query:?}");
        assert_eq!(counts(&answer["facets"]["tag"]), by_tag, "{query:?}");
        assert_eq!(counts(&answer["facets"]["domain"]), by_domain, "{query:?}");
        let page = answer["agents"].as_array().unwrap().iter();
        found.extend(page.map(|agent| agent["name"].as_str().unwrap().to_owned()));
        match answer["next_page_token"].as_str() {
            Some(token) => query.page_token = Some(token.to_owned()),
            None => break,
        }
    }
    found.sort_unstable();
    let mut names: Vec<String> = expected
        .keys()
        .map(|number| format!("Agent {number}"))
        .collect();
    names.sort_unstable();
    assert_eq!(found, names, "{query:?}");
}

/// Agents change and leave, one commit for each, also on a second replica where the database serves one.
async fn changed_agents_are_counted_and_paged_as_by_a_scan(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    let mut rng = SeededRng(0x77_1e3d);
    let mut agents: TagsByAgent = (0..30)
        .map(|number| (number, some_tags(&mut rng)))
        .collect();
    for number in agents.keys() {
        registry.register_domain(&domain(*number)).await;
    }
    registry
        .run_due_visits(|source| {
            let host = source.url.trim_start_matches("https://d");
            let number: usize = host.split('.').next().unwrap().parse().unwrap();
            tagged(number, &agents[&number])
        })
        .await;
    registry.catch_up().await;
    let mut replicas = vec![registry];
    if url.starts_with("postgres") {
        let second = replicas[0].second_process().await;
        replicas.push(second);
    }
    for change in 1..=60 {
        let number = rng.next_below(30);
        if let Entry::Occupied(mut agent) = agents.entry(number) {
            let first = &replicas[0];
            if rng.next_below(6) == 0 {
                domain_delete(&first.app, &first.admin, &domain(number))
                    .await
                    .unwrap();
                agent.remove();
            } else {
                let tags = some_tags(&mut rng);
                first
                    .crawl_domain(&domain(number), tagged(number, &tags))
                    .await;
                agent.insert(tags);
            }
        }
        for registry in &replicas {
            registry.catch_up().await;
        }
        if change % 12 == 0 {
            for registry in &replicas {
                equals_scan(registry, &agents, &[]).await;
                equals_scan(registry, &agents, &["travel", "maps"]).await;
            }
        }
    }
    assert!(agents.len() > 10, "{agents:?}");
}
