//! Vectors that several processes on one database share.

use super::{
    QUESTION, ScriptedEncoder, TextKind, finish, good, open, patient, search_with_mode, three,
};
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
