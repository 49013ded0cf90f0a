//! Cards of the largest size: every list shows such an agent in part, and the agent's own page and response show it in
//! full, on both engines.

use a2a_registry_api::search_query::{LookupQuery, SearchQuery};
use a2a_registry_api::{AgentList, Hit};
use a2a_registry_core::agents::similar::{SimilarAgentsQuery, agent_similar};
use a2a_registry_core::search::{lookup_agents, search_agents};
use a2a_registry_core::visibility::caller::Caller;
use serde_json::{Value, json};

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::cards::card_json;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse};

both_databases!(a_large_card_makes_no_large_list);

/// Agents.
const AGENTS: usize = 4;
/// Skills of each.
const SKILLS: usize = 300;
/// Bytes of what a list shows of an agent, at most.
const HIT_BYTES: usize = 80 * 1024;

/// A card of nearly a megabyte, whose skills each have a word of their own.
fn large_card(number: usize) -> Vec<u8> {
    let mut card: Value =
        serde_json::from_str(&card_json(&format!("Zebra {number}"), "riding")).unwrap();
    let words = "several words about it ".repeat(110);
    card["description"] = json!(words.repeat(20));
    let skills = (0..SKILLS).map(|skill| {
        json!({
            "id": format!("s{skill}"), "name": format!("Skill w{skill}"), "description": words,
            "tags": ["riding"], "examples": ["please"],
        })
    });
    card["skills"] = skills.collect();
    card.to_string().into_bytes()
}

fn check(hits: &[Hit], first: &str) {
    assert!(!hits.is_empty());
    for hit in hits {
        let bytes = serde_json::to_vec(hit).unwrap().len();
        assert!(bytes < HIT_BYTES, "{bytes} bytes");
        let summary = &hit.summary;
        assert_eq!(summary.skills.len(), 10);
        assert_eq!(summary.skills[0].id, first);
        assert_eq!(
            (summary.skills_total, summary.shortened),
            (SKILLS as u64, true)
        );
        assert!(summary.description.as_ref().unwrap().ends_with('…'));
    }
}

async fn a_large_card_makes_no_large_list(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    for number in 0..AGENTS {
        registry
            .register_domain(&format!("d{number}.agents-test.com"))
            .await;
    }
    let made = registry
        .run_due_visits(|source| {
            let host = source.url.trim_start_matches("https://d");
            let number = host.split('.').next().unwrap().parse().unwrap();
            OriginResponse::Card(large_card(number))
        })
        .await;
    assert_eq!(made, AGENTS);
    registry.catch_up().await;
    let anyone = Caller::default();
    for (words, first) in [(None, "s0"), (Some("zebra"), "s0"), (Some("w217"), "s217")] {
        let query = SearchQuery {
            q: words.map(str::to_owned),
            explain: words.map(|_| true),
            ..SearchQuery::default()
        };
        let answer = search_agents(&registry.app, &anyone, &query).await.unwrap();
        assert!(answer.len() < AGENTS * HIT_BYTES, "{} bytes", answer.len());
        let list: AgentList = serde_json::from_slice(&answer).unwrap();
        assert_eq!((list.total, list.agents.len()), (AGENTS as u64, AGENTS));
        check(&list.agents, first);
    }
    let query = LookupQuery {
        url: Some("d1.agents-test.com".into()),
        ..LookupQuery::default()
    };
    let found = lookup_agents(&registry.app, &anyone, &query).await.unwrap();
    check(&found.agents, "s0");
    let id = found.agents[0].summary.id.to_string();
    let similar = agent_similar(&registry.app, &anyone, &id, &SimilarAgentsQuery::default()).await;
    check(&similar.unwrap().agents, "s0");
    let agent = agent_show_checked(&registry.app, &anyone, &id)
        .await
        .unwrap();
    let summary = &agent.hit.summary;
    assert_eq!(
        (summary.skills.len(), summary.skills_total),
        (SKILLS, SKILLS as u64)
    );
    assert!(!summary.shortened);
    // As long as texts of a card are read.
    assert!(summary.description.as_ref().unwrap().len() > 16_000);
}
