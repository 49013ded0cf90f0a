//! Relevance targets of search, on real cards and on our own.

use std::path::PathBuf;

use crate::relevance::{
    RelevanceTrial, compare_collection, held_out, languages, own_collection, real_card_questions,
};

/// Held-out examples of real cards find their cards, better than a plain full-text search does on either half of the
/// cards. All weightings of words that were tried gained no more than a few hundredths.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_out_examples_find_their_cards() {
    let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED").map(PathBuf::from) else {
        eprintln!("SKIPPED: A2A_REGISTRY_SHARED names no folder with real cards");
        return;
    };
    let found = compare_collection(&held_out(&shared.join("cards"), 1)).await;
    println!("{found}");
    let (ours, _) = found.totals();
    assert!(ours.queries > 100, "{found}");
    assert!(ours.recall() >= 0.88, "{found}");
    for (half, (ours, theirs)) in &found.kinds {
        assert!(ours.mrr() >= theirs.mrr(), "{half}: {found}");
    }
}

/// Queries in the words of users find the intended agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_of_users_find_the_intended_agents() {
    let found = compare_collection(&own_collection()).await;
    println!("{found}");
    for (kind, least) in [("keyword", 0.95), ("typo", 0.95), ("task", 0.75)] {
        let (ours, _) = found.kinds[kind];
        assert!(ours.recall() >= least, "{kind}: {found}");
    }
}

/// Questions to real cards find the intended agents by their words alone, in both halves: the one that ranking was tuned
/// on, and the one that was set aside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_to_real_cards_find_the_intended_agents() {
    let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED").map(PathBuf::from) else {
        eprintln!("SKIPPED: A2A_REGISTRY_SHARED names no folder with real cards");
        return;
    };
    let real = real_card_questions(&shared.join("cards"));
    let trial = RelevanceTrial::new(&real.cards, None).await;
    for half in [&real.tuned_on, &real.set_aside] {
        let found = trial.run_queries(half, "lexical").await;
        println!("{found}");
        for (kind, least) in [("keyword", 0.75), ("typo", 0.85)] {
            let (ours, _) = found.kinds[kind];
            assert!(ours.recall() >= least, "{kind}: {found}");
        }
        let (ours, theirs) = found.totals();
        assert!(ours.recall() > theirs.recall(), "{found}");
    }
    trial.close().await;
}

/// Questions in nine languages find the agents whose cards are in those languages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_in_nine_languages_find_the_intended_agents() {
    let found = compare_collection(&languages()).await;
    println!("{found}");
    assert_eq!(found.kinds.len(), 9);
    let (ours, theirs) = found.totals();
    assert!(ours.recall() >= 0.9, "{found}");
    assert!(ours.mrr() > theirs.mrr(), "{found}");
    for (language, (ours, _)) in &found.kinds {
        assert!(ours.recall() >= 0.75, "{language}: {found}");
    }
}
