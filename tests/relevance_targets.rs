//! Relevance targets of search, on real cards and on our own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::relevance::everyday_questions::{
    answerable_question_sets, embarrassing_queries, everyday_question_cards, unanswerable_questions,
};
use crate::relevance::{
    QueryHalf, RelevanceTrial, compare_collection, held_out, languages, own_collection,
    real_card_questions,
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

/// The sets of everyday questions have their sizes, both halves have as many of each kind, no question occurs twice, and
/// what a question expects has a card.
#[test]
fn everyday_questions_are_halved_and_expect_agents_that_exist() {
    let mut texts = BTreeSet::new();
    let sizes = [("filters", 60), ("short", 40), ("messy", 40)];
    let answerable = answerable_question_sets();
    let names = answerable.iter().map(|set| (set.name, set.queries.len()));
    assert_eq!(names.collect::<Vec<_>>(), sizes);
    let unanswerable = unanswerable_questions();
    assert_eq!(
        (unanswerable.name, unanswerable.queries.len()),
        ("unanswerable", 60)
    );
    for set in answerable.iter().chain([&unanswerable]) {
        let kinds = |half| {
            let queries = set.queries_in_half(half).into_iter();
            let mut kinds: Vec<String> = queries.map(|judged| judged.kind).collect();
            kinds.sort();
            kinds
        };
        let (tuned, aside) = (kinds(QueryHalf::Tune), kinds(QueryHalf::Aside));
        assert_eq!(tuned, aside, "{}", set.title);
        for judged in &set.queries {
            let answers = judged.expect.len();
            assert_eq!(answers == 0, set.name == "unanswerable", "{judged:?}");
            assert!(texts.insert(judged.query.to_lowercase()), "{judged:?}");
        }
    }
    let embarrassing = embarrassing_queries();
    assert_eq!(embarrassing.len(), 30);
    for one in &embarrassing {
        assert!(one.may_find_nothing || !one.expect.is_empty(), "{one:?}");
        assert!(texts.insert(one.query.to_lowercase()), "{one:?}");
    }
    if let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED").map(PathBuf::from) {
        assert!(everyday_question_cards(&shared.join("cards")).len() > 200);
    }
}
