//! Random sequences of all kinds of events, and invariants checked after each step.

use std::collections::{BTreeMap, BTreeSet};

use a2a_crawler::AttemptOutcome;
use a2a_registry_api::Act;
use a2a_registry_core::agents::acts::agent_suspend;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::reviews::resuming::agent_resume;
use a2a_registry_core::search::indexing::index_anew;
use a2a_registry_core::search::query::{SearchQuery, SuggestQuery};
use a2a_registry_core::search::suggest;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::ReviewState;
use time::Duration;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::dice::Dice;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Stage, card, reordered};

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
struct Memory {
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
    mut stage: Stage,
    dice: &mut Dice,
    memory: &mut Memory,
    log: &mut Vec<String>,
) -> Stage {
    let domain = format!("d{}.agents-test.com", dice.roll(DOMAINS));
    let living: Vec<_> = stage
        .agents()
        .await
        .into_iter()
        .filter(|row| row.retired_at.is_none())
        .collect();
    let chosen = (!living.is_empty()).then(|| living[dice.roll(living.len())].clone());
    let what = dice.roll(13);
    log.push(format!(
        "{what} {domain} {:?}",
        chosen.as_ref().map(|row| row.id)
    ));
    match (what, chosen) {
        (0..=4, _) => {
            stage.register(&domain).await;
            let bytes = card("Diced", &format!("{domain} {}", dice.roll(CONTENTS)));
            let answer = match dice.roll(6) {
                0 => OriginAnswer::Fails(AttemptOutcome::Timeout),
                1 => OriginAnswer::Card(reordered(&bytes)),
                _ => OriginAnswer::Card(bytes),
            };
            stage.crawl(&domain, answer).await;
        }
        (5, Some(agent)) if stage.open_review(agent.id).await.is_some() => {
            let review = stage.approve(agent.id).await;
            assert_eq!(review.state, ReviewState::Approved);
            memory
                .approved
                .entry(agent.id)
                .or_default()
                .insert(review.digest);
        }
        (6, Some(agent)) if stage.open_review(agent.id).await.is_some() => {
            stage.reject(agent.id).await;
        }
        (7, Some(agent)) => {
            agent_suspend(&stage.app, &stage.admin, &agent.id.to_string(), &act())
                .await
                .unwrap();
            memory.hidden.insert(agent.id);
        }
        (8, Some(agent)) => {
            let outcome =
                agent_resume(&stage.app, &stage.admin, &agent.id.to_string(), &act()).await;
            let stood = memory.hidden.remove(&agent.id);
            match outcome {
                Ok(_) => assert!(stood),
                Err(error) => assert!(!stood && error.kind == ErrorKind::Conflict, "{error:?}"),
            }
        }
        (9, _) => {
            stage = stage.restart(|_| ()).await;
        }
        (10, _) => stage.settle().await,
        (12, _) => {
            // Half of the rebuilds are cancelled before it is done.
            let cancelled = dice.roll(2) == 0;
            let built = index_anew(&stage.app, || cancelled).await.unwrap();
            assert_eq!(built.is_none(), cancelled);
        }
        (11, _) if dice.roll(3) == 0 => {
            let outcome = domain_delete(&stage.app, &stage.admin, &domain).await;
            let ended = living
                .iter()
                .filter(|row| row.domain == domain)
                .map(|row| row.id);
            match outcome {
                Ok(()) => memory.ended.extend(ended),
                Err(error) => assert_eq!(error.kind, ErrorKind::NotFound),
            }
        }
        _ => stage.advance(Duration::minutes(1)),
    }
    stage
}

/// Invariants that hold even while the index is behind.
async fn check(stage: &Stage, memory: &Memory) {
    let found = stage.found_by_anyone().await;
    for row in stage.agents().await {
        let served = stage.served(row.id).await;
        for caller in [&Caller::default(), &stage.admin] {
            // Compares the answer that is kept with the rows.
            let _ = agent_show(&stage.app, caller, &row.id.to_string()).await;
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
            let digest = a2a_card::digest(&bytes);
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
async fn answers(stage: &Stage) -> Vec<String> {
    let mut answers = Vec::new();
    for caller in [&Caller::default(), &stage.admin] {
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
            let list = stage.found(caller, &query).await;
            let ids: BTreeSet<Uuid> = list.agents.iter().map(|hit| hit.summary.id).collect();
            let (facets, hints) = (list.facets, list.hints);
            answers.push(format!("{words:?}: {ids:?} {facets:?} {hints:?}"));
        }
        let prefix = SuggestQuery { q: "d".into() };
        let completed = suggest(&stage.app, caller, &prefix).await.unwrap();
        answers.push(format!("{completed:?}"));
    }
    answers
}

/// Compares the index that has followed every event with the rows, and with an index rebuilt from them.
async fn index_is_right(stage: &Stage) {
    stage.index_equals_database().await;
    let followed = answers(stage).await;
    index_anew(&stage.app, || false).await.unwrap();
    assert_eq!(followed, answers(stage).await);
    stage.index_equals_database().await;
}

async fn play(url: &str, seed: u64) {
    let mut dice = Dice(seed);
    let mut memory = Memory::default();
    let mut log = Vec::new();
    let mut stage = Stage::new(url).await;
    for number in 0..STEPS {
        stage = step(stage, &mut dice, &mut memory, &mut log).await;
        eprintln!("seed {seed}, step {number}: {}", log[log.len() - 1]);
        check(&stage, &memory).await;
        if number % 10 == 9 {
            index_is_right(&stage).await;
            check(&stage, &memory).await;
        }
    }
    assert!(
        !memory.approved.is_empty(),
        "no agent was approved in the whole sequence"
    );
    index_is_right(&stage).await;
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
