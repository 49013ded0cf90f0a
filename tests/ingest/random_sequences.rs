//! Random sequences of all kinds of events, and invariants checked after each step.

use std::collections::{BTreeMap, BTreeSet};

use a2a_crawler::AttemptOutcome;
use a2a_registry_api::Act;
use a2a_registry_api::search_query::{SearchQuery, SuggestQuery};
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_core::search::suggest_completions;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::ReviewState;
use time::Duration;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, card_bytes, reorder_members,
};
use crate::support::seeded_rng::SeededRng;

/// Steps per sequence.
const STEPS: usize = 60;
/// Domains per sequence.
const DOMAINS: usize = 4;
/// The facets that are compared.
const FACETS: [&str; 12] = [
    "tag",
    "skill",
    "capability",
    "binding",
    "protocol_version",
    "provider",
    "domain",
    "auth",
    "input_mode",
    "output_mode",
    "trust",
    "liveness",
];
/// Number of different contents of the cards.
const CONTENTS: usize = 4;

/// The test's own record, independent of the registry's rows.
#[derive(Default)]
struct ExpectedState {
    /// The content that persons approved, by agent, as digests of the exact bytes.
    approved: BTreeMap<Uuid, BTreeSet<String>>,
    /// Agents that must not be found.
    hidden: BTreeSet<Uuid>,
    /// Agents that have ended.
    ended: BTreeSet<Uuid>,
}

fn act() -> Act {
    Act {
        reason: "by the dice".into(),
        hold: None,
    }
}

async fn step(
    mut registry: InProcessRegistry,
    dice: &mut SeededRng,
    memory: &mut ExpectedState,
    log: &mut Vec<String>,
) -> InProcessRegistry {
    let domain = format!("d{}.agents-test.com", dice.next_below(DOMAINS));
    let living: Vec<_> = registry
        .agents()
        .await
        .into_iter()
        .filter(|row| row.retired_at.is_none())
        .collect();
    let chosen = (!living.is_empty()).then(|| living[dice.next_below(living.len())].clone());
    let what = dice.next_below(13);
    log.push(format!(
        "{what} {domain} {:?}",
        chosen.as_ref().map(|row| row.id)
    ));
    match (what, chosen) {
        (0..=4, _) => {
            registry.register_domain(&domain).await;
            let bytes = card_bytes("Diced", &format!("{domain} {}", dice.next_below(CONTENTS)));
            let answer = match dice.next_below(6) {
                0 => OriginResponse::Failure(AttemptOutcome::Timeout),
                1 => OriginResponse::Card(reorder_members(&bytes)),
                _ => OriginResponse::Card(bytes),
            };
            registry.crawl_domain(&domain, answer).await;
        }
        (5, Some(agent)) if registry.find_open_review(agent.id).await.is_some() => {
            let review = registry.approve_open_review(agent.id).await;
            assert_eq!(review.state, ReviewState::Approved);
            memory
                .approved
                .entry(agent.id)
                .or_default()
                .insert(review.digest);
        }
        (6, Some(agent)) if registry.find_open_review(agent.id).await.is_some() => {
            registry.reject_open_review(agent.id).await;
        }
        (7, Some(agent)) => {
            agent_suspend(
                &registry.app,
                &registry.admin,
                &agent.id.to_string(),
                &act(),
            )
            .await
            .unwrap();
            memory.hidden.insert(agent.id);
        }
        (8, Some(agent)) => {
            let outcome = agent_resume(
                &registry.app,
                &registry.admin,
                &agent.id.to_string(),
                &act(),
            )
            .await;
            let stood = memory.hidden.remove(&agent.id);
            match outcome {
                Ok(_) => assert!(stood),
                Err(error) => assert!(!stood && error.kind == ErrorKind::Conflict, "{error:?}"),
            }
        }
        (9, _) => {
            registry = registry.restart(|_| ()).await;
        }
        (10, _) => registry.catch_up().await,
        (12, _) => {
            // Half of the rebuilds are cancelled before it is done.
            let cancelled = dice.next_below(2) == 0;
            let built = rebuild_index(&registry.app, || cancelled).await.unwrap();
            assert_eq!(built.is_none(), cancelled);
        }
        (11, _) if dice.next_below(3) == 0 => {
            let outcome = domain_delete(&registry.app, &registry.admin, &domain).await;
            let ended = living
                .iter()
                .filter(|row| row.domain == domain)
                .map(|row| row.id);
            match outcome {
                Ok(()) => memory.ended.extend(ended),
                Err(error) => assert_eq!(error.kind, ErrorKind::NotFound),
            }
        }
        _ => registry.advance(Duration::minutes(1)),
    }
    registry
}

/// Invariants that hold even while the index is behind.
async fn check(registry: &InProcessRegistry, memory: &ExpectedState) {
    let found = registry.publicly_found_ids().await;
    for row in registry.agents().await {
        let served = registry.public_card_bytes(row.id).await;
        for caller in [&Caller::default(), &registry.admin] {
            // Compares the answer that is kept with the rows.
            let _ = agent_show_checked(&registry.app, caller, &row.id.to_string()).await;
        }
        if memory.hidden.contains(&row.id) || memory.ended.contains(&row.id) {
            assert_eq!(served, None, "a hidden agent is served: {row:?}");
            assert!(!found.contains(&row.id), "a hidden agent is found: {row:?}");
        }
        if found.contains(&row.id) {
            assert!(
                served.is_some(),
                "an agent is found but not served: {row:?}"
            );
        }
        if let Some(bytes) = served {
            let digest = a2a_card::bytes_digest(&bytes);
            let approved = memory.approved.get(&row.id);
            assert!(
                approved.is_some_and(|digests| digests.contains(&digest)),
                "{digest} was never approved: {row:?}"
            );
        }
    }
}

/// The search results that do not depend on the history of an index: matches, totals, facet counts, hints and
/// completions, for a caller who may see little and for one who may see everything. Scores do depend on it: an
/// index counts deleted documents in its term statistics until it is rewritten.
async fn search_results(registry: &InProcessRegistry) -> Vec<String> {
    let mut answers = Vec::new();
    for caller in [&Caller::default(), &registry.admin] {
        for words in [
            "",
            "diced answers",
            "dicde",
            "\"answer questions\" -d1",
            "tes* OR d2",
        ] {
            let query = SearchQuery {
                q: (!words.is_empty()).then(|| words.to_owned()),
                facets: FACETS.map(str::to_owned).to_vec(),
                ..SearchQuery::default()
            };
            let list = registry.search_all(caller, &query).await;
            let ids: BTreeSet<Uuid> = list.agents.iter().map(|hit| hit.summary.id).collect();
            let (facets, hints) = (list.facets, list.hints);
            answers.push(format!("{words:?}: {ids:?} {facets:?} {hints:?}"));
        }
        let prefix = SuggestQuery { q: "d".into() };
        let completed = suggest_completions(&registry.app, caller, &prefix)
            .await
            .unwrap();
        answers.push(format!("{completed:?}"));
    }
    answers
}

/// Compares the index that has followed every event with the rows, and with an index rebuilt from them.
async fn index_is_right(registry: &InProcessRegistry) {
    registry.assert_index_matches_database().await;
    let followed = search_results(registry).await;
    rebuild_index(&registry.app, || false).await.unwrap();
    assert_eq!(followed, search_results(registry).await);
    registry.assert_index_matches_database().await;
}

async fn play(url: &str, seed: u64) {
    let mut dice = SeededRng(seed);
    let mut memory = ExpectedState::default();
    let mut log = Vec::new();
    let mut registry = InProcessRegistry::new(url).await;
    for number in 0..STEPS {
        registry = step(registry, &mut dice, &mut memory, &mut log).await;
        eprintln!("seed {seed}, step {number}: {}", log[log.len() - 1]);
        check(&registry, &memory).await;
        if number % 10 == 9 {
            index_is_right(&registry).await;
            check(&registry, &memory).await;
        }
    }
    assert!(
        !memory.approved.is_empty(),
        "no agent was approved in the whole sequence"
    );
    index_is_right(&registry).await;
}

both_databases!(
    nothing_unapproved_is_served_and_nothing_hidden_found,
    nothing_unapproved_is_served_with_another_seed
);

/// Only approved bytes are ever served, hidden agents are never found, and the index equals the database once it has
/// caught up, across crashes and rebuilds.
async fn nothing_unapproved_is_served_and_nothing_hidden_found(url: &str) {
    play(url, 20_261_120).await;
}

/// The same with another seed.
async fn nothing_unapproved_is_served_with_another_seed(url: &str) {
    play(url, 7).await;
}
