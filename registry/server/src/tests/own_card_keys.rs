//! Tests of the key of the registry's own card, which its processes share.

use a2a_registry_http::a2a_agent::card_signing::*;
use futures::future::join_all;

use super::Registry;

/// All processes get the same signed card, although every ECDSA signature has different bytes.
#[actix_web::test]
async fn of_cards_signed_together_all_get_one() {
    let registry = Registry::new().await;
    let context = &registry.state.context;
    let first = context.self_agent.card.get().unwrap().bytes.clone();
    let keys = load_signing_keys(&context.store, &context.config().a2a)
        .await
        .unwrap();
    let write = context.store.begin_write().await.unwrap();
    write.set_setting(CARD_SETTING, "{}").await.unwrap();
    write.commit().await.unwrap();
    let signed = join_all((0..8).map(|_| load_or_sign_card(context, &keys[0]))).await;
    let cards: Vec<String> = signed.into_iter().map(|one| one.unwrap().card).collect();
    assert!(cards.iter().all(|card| *card == cards[0]));
    assert_ne!(cards[0].as_bytes(), first);
    let again = load_or_sign_card(context, &keys[0]).await.unwrap();
    assert_eq!(again.card, cards[0]);
}
