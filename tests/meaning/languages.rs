//! Queries in languages that the configuration of a model names or does not name.

use super::{ScriptedEncoder, TextKind, finish, good, hit_ids, open, search_with_mode, three};
use crate::support::both_databases;
use crate::support::in_process_registry::InProcessRegistry;

const FOREIGN_QUESTION: &str = "ich suche jemand mit currency exchange";

both_databases!(a_query_in_a_language_that_is_not_configured_is_full_text);

async fn a_query_in_a_language_that_is_not_configured_is_full_text(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.search.embed_timeout = 600_000;
        config.search.model_languages = vec!["en".into()];
    })
    .await;
    let [bank, ..] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    finish(&registry, &mut open(&registry, &encoder).await).await;
    for mode in [None, Some("hybrid"), Some("semantic")] {
        let found = search_with_mode(&registry, FOREIGN_QUESTION, mode).await;
        assert_eq!(
            (found.mode.as_str(), hit_ids(&found)[0]),
            ("lexical", bank),
            "{mode:?}"
        );
        assert_eq!(found.hints[0].kind, "unknown_language");
    }
    assert!(encoder.take_texts(TextKind::Query).is_empty());
    // Who asks for full text gets it without a remark.
    let found = search_with_mode(&registry, FOREIGN_QUESTION, Some("lexical")).await;
    assert!(
        found
            .hints
            .iter()
            .all(|hint| hint.kind != "unknown_language")
    );
    let found = search_with_mode(&registry, "who brings cash to my house", None).await;
    assert_eq!((found.mode.as_str(), good(&found)), ("hybrid", vec![bank]));

    // An encoder that says nothing about its languages knows all.
    let registry = registry
        .restart(|config| config.search.model_languages = Vec::new())
        .await;
    registry.catch_up().await;
    finish(&registry, &mut open(&registry, &encoder).await).await;
    let found = search_with_mode(&registry, FOREIGN_QUESTION, None).await;
    assert_eq!((found.mode.as_str(), good(&found)), ("hybrid", vec![bank]));
    assert!(
        found
            .hints
            .iter()
            .all(|hint| hint.kind != "unknown_language")
    );
}
