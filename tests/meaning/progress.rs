//! The progress of a model: how many agents are done, how fast it goes, and who sees what of that.

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::embeddings::embedding_progress;
use a2a_registry_core::embeddings::model_indexer::{EmbeddingStepResult, run_embedding_step};
use a2a_registry_core::process_state::embedding_pace::EmbeddingPace;
use a2a_registry_core::search::is_semantic_search;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_server::maintenance;
use time::Duration;

use super::{ScriptedEncoder, finish, open, patient};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};

/// More agents than a step takes.
const AGENTS: usize = 20;

both_databases!(progress_has_a_total_and_a_pace);

/// The same numbers in the process and in the database, from which `model status` reads them.
async fn progress_has_a_total_and_a_pace(url: &str) {
    let registry = patient(url).await;
    for number in 0..AGENTS {
        let domain = format!("bank{number}.agents-test.com");
        let card = card_bytes(&format!("Bureau {number}"), "Currency exchange");
        registry.register_approved_card(&domain, &card).await;
    }
    registry.catch_up().await;
    let question = SearchQuery {
        q: Some("cash abroad".into()),
        ..SearchQuery::default()
    };
    assert!(!is_semantic_search(&registry.app, &question));
    let mut embedding = open(&registry, &ScriptedEncoder::new("first", 0)).await;
    registry.advance(Duration::seconds(10));
    let step = run_embedding_step(&registry.app, &mut embedding).await;
    assert_eq!(step.unwrap(), EmbeddingStepResult::Progress(16));
    // Sixteen in ten seconds, and two and a half for the other four.
    let pace = EmbeddingPace {
        agents_per_minute: 96,
        seconds_left: 3,
    };
    let known = embedding_progress(&registry.app).remove(0);
    assert_eq!(
        (known.agents, known.total, known.complete, known.pace),
        (16, 20, false, Some(pace))
    );
    let (agents, stored) = stored_progress(&registry).await;
    assert_eq!(
        (stored.embedded, agents, stored.complete, stored.pace),
        (16, 20, false, Some(pace))
    );
    // The answer says that it is full text, and the page why.
    let list = registry.search_all(&Caller::default(), &question).await;
    assert_eq!(list.mode, "lexical");
    assert!(is_semantic_search(&registry.app, &question));
    // A process that has not got on for a minute may have ended.
    registry.advance(Duration::seconds(61));
    assert_eq!(stored_progress(&registry).await.1.pace, None);

    finish(&registry, &mut embedding).await;
    let known = embedding_progress(&registry.app).remove(0);
    assert_eq!(
        (known.agents, known.total, known.complete, known.pace),
        (20, 20, true, None)
    );
    let (agents, stored) = stored_progress(&registry).await;
    assert_eq!(
        (stored.embedded, agents, stored.complete, stored.pace),
        (20, 20, true, None)
    );
}

/// The number of agents in the database, and the progress of the only model.
async fn stored_progress(
    registry: &InProcessRegistry,
) -> (u64, maintenance::ModelEmbeddingProgress) {
    let clock = registry.app.clock();
    let progress = maintenance::embedding_progress(&registry.app.config(), clock.as_ref()).await;
    let mut progress = progress.unwrap();
    assert_eq!(progress.models.len(), 1);
    (progress.agents, progress.models.remove(0))
}
