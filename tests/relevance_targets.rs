//! Relevance targets of search, on real cards and on our own.

use std::path::PathBuf;

use crate::relevance::{compare, held_out, own};

/// Held-out examples of real cards find their cards, better than a plain full-text search does on either half of the
/// cards. All weightings of words that were tried gained no more than a few hundredths.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_out_examples_find_their_cards() {
    let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED").map(PathBuf::from) else {
        eprintln!("SKIPPED: A2A_REGISTRY_SHARED names no folder with real cards");
        return;
    };
    let found = compare(&held_out(&shared.join("cards"), 1)).await;
    println!("{found}");
    let (ours, _) = found.all();
    assert!(ours.queries > 100, "{found}");
    assert!(ours.recall() >= 0.88, "{found}");
    for (half, (ours, theirs)) in &found.kinds {
        assert!(ours.mrr() >= theirs.mrr(), "{half}: {found}");
    }
}

/// Queries in the words of users find the intended agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_of_users_find_the_intended_agents() {
    let found = compare(&own()).await;
    println!("{found}");
    for (kind, least) in [("keyword", 0.95), ("typo", 0.95), ("task", 0.75)] {
        let (ours, _) = found.kinds[kind];
        assert!(ours.recall() >= least, "{kind}: {found}");
    }
}
