//! Vectors that several processes on one database share.

use std::sync::Arc;

use a2a_registry_core::embeddings::embedding_progress;
use a2a_registry_core::embeddings::model_indexer::{
    previous_model_ids, purge_unused_models, run_embedding_step,
};
use a2a_registry_store::vectors;
use time::Duration;

use super::{
    EncoderBehaviour, QUESTION, ScriptedEncoder, TextKind, finish, good, open, patient,
    search_with_mode, three,
};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::card_bytes;

/// Two processes share their vectors.
#[tokio::test]
async fn two_processes_share_their_vectors() {
    let database = Database::postgres().await;
    let registry = patient(database.url()).await;
    let [bank, ..] = three(&registry).await;
    let (one, two) = (
        ScriptedEncoder::new("shared", 0),
        ScriptedEncoder::new("shared", 0),
    );
    finish(&registry, &mut open(&registry, &one).await).await;
    let beside = registry.second_process().await;
    let mut embedding = open(&beside, &two).await;
    finish(&beside, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&beside, QUESTION, None).await),
        [bank]
    );
    // Later changes are embedded by the first process to see them.
    let late = registry
        .register_approved_card(
            "late.agents-test.com",
            &card_bytes("Mint", "Money for travellers"),
        )
        .await;
    for registry in [&registry, &beside] {
        registry.catch_up().await;
    }
    let mut first = open(&registry, &one).await;
    finish(&registry, &mut first).await;
    finish(&beside, &mut embedding).await;
    assert!(good(&search_with_mode(&beside, QUESTION, None).await).contains(&late.id));
    assert_eq!(two.take_texts(TextKind::Card), [""; 0]);
}

both_databases!(the_model_before_is_the_one_used_last);

/// Processes of other versions have models that this one does not have, so all models before count.
async fn the_model_before_is_the_one_used_last(url: &str) {
    let registry = patient(url).await;
    three(&registry).await;
    let older = ScriptedEncoder::new("older", 0);
    finish(&registry, &mut open(&registry, &older).await).await;
    registry.advance(Duration::seconds(1));
    let newer = ScriptedEncoder::new("newer", 1);
    finish(&registry, &mut open(&registry, &newer).await).await;
    open(&registry, &ScriptedEncoder::new("incomplete", 2)).await;
    let ids = previous_model_ids(&registry.app, "configured").await;
    assert_eq!(ids.unwrap(), ["newer", "older"]);
    registry.advance(Duration::seconds(1));
    open(&registry, &older).await;
    let ids = previous_model_ids(&registry.app, "configured").await;
    assert_eq!(ids.unwrap(), ["older", "newer"]);
    let ids = previous_model_ids(&registry.app, "older").await;
    assert_eq!(ids.unwrap(), ["newer"]);
}

both_databases!(a_model_has_the_name_that_the_process_knows);

/// The same files may have another name in another data folder, or since they were installed again.
async fn a_model_has_the_name_that_the_process_knows(url: &str) {
    let registry = patient(url).await;
    three(&registry).await;
    let before = ScriptedEncoder::new("shared", 0);
    finish(&registry, &mut open(&registry, &before).await).await;
    let mut renamed = ScriptedEncoder::new("shared", 0);
    Arc::get_mut(&mut renamed).unwrap().model.name = "acme/renamed".to_owned();
    open(&registry, &renamed).await;
    let progress = embedding_progress(&registry.app);
    let names: Vec<&str> = progress.iter().map(|model| &*model.name).collect();
    assert_eq!(names, ["acme/renamed"]);
}

both_databases!(an_encoder_that_is_away_keeps_its_vectors);

/// An endpoint does not respond for hours, and meanwhile a process with another encoder deletes what is not used.
async fn an_encoder_that_is_away_keeps_its_vectors(url: &str) {
    let registry = patient(url).await;
    let [bank, travel, poet] = three(&registry).await;
    let encoder = ScriptedEncoder::new("endpoint", 0);
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    let card = card_bytes("Mint", "Money for travellers");
    let late = registry
        .register_approved_card("late.agents-test.com", &card)
        .await;
    registry.catch_up().await;
    encoder.take_texts(TextKind::Card);
    encoder.behave(EncoderBehaviour::Away);
    for _ in 0..3 {
        registry.advance(Duration::minutes(40));
        run_embedding_step(&registry.app, &mut embedding)
            .await
            .unwrap_err();
        let another = ["another".to_owned()];
        let deleted = purge_unused_models(&registry.app, &another).await;
        assert!(!deleted.unwrap());
    }
    encoder.behave(EncoderBehaviour::Working);
    finish(&registry, &mut embedding).await;
    let texts = encoder.take_texts(TextKind::Card);
    assert!(texts.iter().any(|text| text.contains("Mint")), "{texts:?}");
    assert!(
        !texts.iter().any(|text| text.contains("Bureau")),
        "{texts:?}"
    );
    let agents = [bank, travel, poet, late.id];
    let stored = vectors::vectors_by_agent(&registry.store, "endpoint", &agents).await;
    assert_eq!(stored.unwrap().len(), agents.len());
}
