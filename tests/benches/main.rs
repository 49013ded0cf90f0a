//! Every bench in one program, since each would take minutes to link alone: `cargo bench --workspace --bench registry
//! -- NAME…`.
//!
//! The names are those of the modules, which state their sizes and the variables that change them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench fails by panicking, and its figures are rough"
)]
#![allow(
    dead_code,
    reason = "the benches use a part of what the tests share with them"
)]

mod bare_server;
mod bench_encoder;
mod bench_registry;
mod cards;
mod crawl;
mod decide;
mod dialects;
mod endpoints;
mod engines;
mod figures;
mod full_text;
mod generator;
mod hidden;
mod hooks;
mod living;
mod load;
mod loopback_resolver;
mod meaning;
mod policies;
mod registration;
mod relevance;
mod report;
mod rules;
mod search;
mod talk;
mod virtual_crawl;

const NAMES: &str = "cards, crawl, decide, dialects, endpoints, engines, figures, hidden, hooks, living, meaning, \
                     policies, registration, relevance, rules, search, talk, virtual_crawl";

fn main() {
    // Cargo adds `--bench`.
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if names.is_empty() {
        println!("Name the benches to run after `--`: {NAMES}");
    }
    for name in &names {
        run(name);
    }
}

fn run(name: &str) {
    // These two have runtimes and processes of their own.
    match name {
        "figures" => return figures::run(),
        "talk" => return talk::run(),
        _ => {}
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        match name {
            "cards" => cards::run().await,
            "crawl" => crawl::run().await,
            "decide" => decide::run().await,
            "dialects" => dialects::run().await,
            "endpoints" => endpoints::run().await,
            "engines" => engines::run().await,
            "hidden" => hidden::run().await,
            "hooks" => hooks::run().await,
            "living" => living::run().await,
            "meaning" => meaning::run().await,
            "policies" => policies::run().await,
            "registration" => registration::run().await,
            "relevance" => relevance::run().await,
            "rules" => rules::run().await,
            "search" => search::run().await,
            "virtual_crawl" => virtual_crawl::run().await,
            unknown => panic!("{unknown:?} is no bench; there are {NAMES}"),
        }
    });
}
