//! Relevance of search results, beside SQLite's FTS5 over the same texts.
//!
//! Real cards are read from `A2A_REGISTRY_SHARED/cards`; `BENCH_SEEDS` (5) is the number of different choices of held-out
//! examples. `A2A_REGISTRY_TEST_MODEL` names the folder of a sentence encoder; with it every query is also run in hybrid
//! and in semantic mode. `A2A_REGISTRY_RELEVANCE_MISSES` prints every query whose first hit is wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a bench fails by panicking"
)]
#![allow(dead_code, reason = "each bench uses a part of what they share")]

#[path = "../relevance/mod.rs"]
mod relevance;
mod report;
mod stock;

use std::path::Path;
use std::sync::Arc;

use a2a_registry_embed::{Embedder, Encoder, EncoderOptions};
use relevance::{Collection, compare, compare_by, held_out, own};
use report::size;

#[tokio::main]
async fn main() {
    let model = model();
    print_scores("Our own queries", &own(), model.as_ref()).await;
    let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED") else {
        println!("SKIPPED: A2A_REGISTRY_SHARED names no folder with real cards");
        return;
    };
    let folder = Path::new(&shared).join("cards");
    for seed in 1..=size("BENCH_SEEDS", 5) as u64 {
        let title = format!("Held-out examples of real cards, seed {seed}, by half");
        print_scores(&title, &held_out(&folder, seed), model.as_ref()).await;
    }
}

/// The sentence encoder for hybrid and semantic queries, if one is named.
fn model() -> Option<Arc<dyn Embedder>> {
    let Some(folder) = std::env::var_os("A2A_REGISTRY_TEST_MODEL") else {
        println!(
            "SKIPPED: A2A_REGISTRY_TEST_MODEL names no model, so queries run in full-text mode only"
        );
        return None;
    };
    let encoder = Encoder::open(Path::new(&folder), EncoderOptions::default()).unwrap();
    println!(
        "model {}, SHA-256 {}",
        encoder.model().name,
        encoder.model().id
    );
    Some(Arc::new(encoder))
}

/// Prints the scores of a collection, in every mode that is available.
async fn print_scores(title: &str, queries: &Collection, model: Option<&Arc<dyn Embedder>>) {
    println!("{title}, lexical\n{}", compare(queries).await);
    for mode in ["hybrid", "semantic"] {
        if let Some(model) = model {
            let found = compare_by(queries, mode, Some(Arc::clone(model))).await;
            println!("{title}, {mode}\n{found}");
        }
    }
}
