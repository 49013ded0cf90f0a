//! Relevance of search results, compared with SQLite's FTS5 over the same texts.
//!
//! Real cards are read from `A2A_REGISTRY_SHARED/cards`; `BENCH_SEEDS` (5) is the number of different choices of
//! held-out examples. `A2A_REGISTRY_TEST_MODEL` names the folder of a sentence encoder; with it every query is also
//! run in hybrid and in semantic mode. `A2A_REGISTRY_RELEVANCE_MISSES` prints every query whose first hit is wrong.
//! `BENCH_SETS` names the collections to run, separated by commas: `own`, `languages`, `tuned-on` and `set-aside` (the
//! halves of the questions to real cards) and `held-out`. Whoever tunes the ranking looks at `tuned-on` alone.

#[path = "../relevance/mod.rs"]
pub mod relevance_collections;

use std::path::Path;
use std::sync::Arc;

use a2a_registry_embed::{Embedder, EncoderOptions, LocalEncoder};
use relevance_collections::{
    JudgedQuery, RelevanceTrial, held_out, languages, own_collection, real_card_questions,
};

use super::report::size_from_env;

/// The modes without a model and with one.
const MODES: [&str; 3] = ["lexical", "hybrid", "semantic"];

pub async fn run() {
    let model = model();
    if is_wanted("own") {
        let own = own_collection();
        print_scores(&own.cards, &[("Our own queries", &own.queries)], &model).await;
    }
    if is_wanted("languages") {
        let some = languages();
        let title = "Cards and questions in nine languages";
        print_scores(&some.cards, &[(title, &some.queries)], &model).await;
    }
    let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED") else {
        println!("SKIPPED: A2A_REGISTRY_SHARED names no folder with real cards");
        return;
    };
    let folder = Path::new(&shared).join("cards");
    print_real(&folder, &model).await;
    for seed in 1..=size_from_env("BENCH_SEEDS", 5) as u64 {
        if is_wanted("held-out") {
            let title = format!("Held-out examples of real cards, seed {seed}, by half");
            let held_out = held_out(&folder, seed);
            print_scores(&held_out.cards, &[(&title, &held_out.queries)], &model).await;
        }
    }
}

/// Prints the scores of the questions to real cards, by half.
async fn print_real(folder: &Path, model: &Option<Arc<dyn Embedder>>) {
    let real = real_card_questions(folder);
    let halves = [
        (
            "tuned-on",
            "Questions to real cards, tuned on",
            &real.tuned_on,
        ),
        (
            "set-aside",
            "Questions to real cards, set aside",
            &real.set_aside,
        ),
    ];
    let wanted = halves.into_iter().filter(|(set, ..)| is_wanted(set));
    let wanted: Vec<(&str, &Vec<JudgedQuery>)> =
        wanted.map(|(_, title, queries)| (title, queries)).collect();
    if !wanted.is_empty() {
        print_scores(&real.cards, &wanted, model).await;
    }
}

/// Whether `BENCH_SETS` names this collection, or is not set.
fn is_wanted(set: &str) -> bool {
    std::env::var("BENCH_SETS").map_or(true, |wanted| wanted.split(',').any(|one| one == set))
}

/// The sentence encoder for hybrid and semantic queries, if one is named.
fn model() -> Option<Arc<dyn Embedder>> {
    let Some(folder) = std::env::var_os("A2A_REGISTRY_TEST_MODEL") else {
        println!(
            "SKIPPED: A2A_REGISTRY_TEST_MODEL names no model, so queries run in full-text mode only"
        );
        return None;
    };
    let encoder = LocalEncoder::open(Path::new(&folder), EncoderOptions::default()).unwrap();
    println!(
        "model {}, SHA-256 {}",
        encoder.model_identity().name,
        encoder.model_identity().id
    );
    Some(Arc::new(encoder))
}

/// Prints the scores of several lists of queries to the same cards, in every mode that is available.
async fn print_scores(
    cards: &[Vec<u8>],
    lists: &[(&str, &Vec<JudgedQuery>)],
    model: &Option<Arc<dyn Embedder>>,
) {
    let trial = RelevanceTrial::new(cards, model.clone()).await;
    for (title, queries) in lists {
        for mode in MODES {
            if mode == "lexical" || model.is_some() {
                let found = trial.run_queries(queries, mode).await;
                println!("{title}, {mode}\n{found}");
            }
        }
    }
    trial.close().await;
}
