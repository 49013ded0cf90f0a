//! How well searches find what is meant, beside SQLite's FTS5 over the same texts.
//!
//! Real cards are those in `A2A_REGISTRY_SHARED/cards`, with `BENCH_SEEDS` (5) choices of the examples that are
//! held out. `A2A_REGISTRY_RELEVANCE_MISSES` prints every question whose first answer is wrong.
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

use relevance::{compare, held_out, own};
use report::size;

#[tokio::main]
async fn main() {
    println!("Our own questions\n{}", compare(&own()).await);
    let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED") else {
        println!("SKIPPED: A2A_REGISTRY_SHARED names no folder with real cards");
        return;
    };
    let folder = Path::new(&shared).join("cards");
    for seed in 1..=size("BENCH_SEEDS", 5) as u64 {
        let found = compare(&held_out(&folder, seed)).await;
        println!("Held-out examples of real cards, seed {seed}, by half\n{found}");
    }
}
