//! Changed admission rules: the time until a start is ready, beside a start with the same rules; the time until all
//! agents are decided and indexed; and that no search meanwhile finds an agent that the rules forbid.
//!
//! `BENCH_AGENTS` (100000) agents are generated and ingested first.

use std::time::Instant;

use a2a_registry_api::AgentList;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::search::indexing::{apply_next_events, rebuild_index};
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_server::jobs::{RulesRunEnd, redecide_by_changed_rules};
use tokio_util::sync::CancellationToken;

use super::bench_registry::{BenchRegistry, SUFFIX};
use super::generator::CardGenerator;
use super::report::{print_comparison, print_figure, print_header, size_from_env};

/// A change of the rules.
struct RuleChange {
    what: &'static str,
    rules: fn(&mut Config),
    /// Whether all agents are found when everything is decided, or none. Before, none is.
    shows: bool,
}

const CHANGES: [RuleChange; 4] = [
    RuleChange {
        what: "--approve-all removed",
        rules: |config| config.governance.approve_all = false,
        shows: false,
    },
    RuleChange {
        what: "--approve-all added",
        rules: |config| config.governance.approve_all = true,
        shows: true,
    },
    RuleChange {
        what: "every domain denied",
        rules: |config| {
            config.governance.deny_domains = vec![DomainPattern(format!("*.{SUFFIX}:*"))];
        },
        shows: false,
    },
    RuleChange {
        what: "no domain denied",
        rules: |config| config.governance.deny_domains.clear(),
        shows: true,
    },
];

/// The number of agents that anybody finds.
async fn found(app: &AppContext) -> u64 {
    let bytes = search_agents(app, &Caller::default(), &SearchQuery::default()).await;
    let list: AgentList = serde_json::from_slice(&bytes.unwrap()).unwrap();
    list.total
}

/// Decides on everything, then applies it to the index; returns the seconds of both.
async fn decided(app: &AppContext) -> (f64, f64) {
    let began = Instant::now();
    let end = redecide_by_changed_rules(app, &CancellationToken::new()).await;
    assert_eq!(end.unwrap(), RulesRunEnd::Decided);
    let decided = began.elapsed().as_secs_f64();
    let began = Instant::now();
    while apply_next_events(app).await.unwrap() {}
    (decided, began.elapsed().as_secs_f64())
}

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 100_000);
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let stock = BenchRegistry::new().await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|index| generator.card(index)).await;
    rebuild_index(&stock.app, || false).await.unwrap();
    decided(&stock.app).await;
    let all = found(&stock.app).await;
    let (mut stock, same) = stock.restart().await;
    decided(&stock.app).await;
    let same = same.as_secs_f64() * 1e3;
    print_header(
        "start until it is ready; bare: with the same rules",
        "ms, lower is better",
    );
    let mut decisions = Vec::new();
    for change in &CHANGES {
        let (next, ready) = stock.restart_with(change.rules).await;
        stock = next;
        assert_eq!(found(&stock.app).await, 0, "{}", change.what);
        decisions.push((change.what, decided(&stock.app).await));
        let shown = if change.shows { all } else { 0 };
        assert_eq!(found(&stock.app).await, shown, "{}", change.what);
        let ready = ready.as_secs_f64() * 1e3;
        print_comparison(change.what, ready, same, ready / same, None);
    }
    println!("\nthen in the background, s");
    for (what, (decided, indexed)) in decisions {
        print_figure(&format!("{what}: decided"), format!("{decided:.1}"));
        print_figure(&format!("{what}: indexed"), format!("{indexed:.1}"));
    }
    stock.close().await;
}
