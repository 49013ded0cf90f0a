//! Decisions that a gateway asks for, as `GET /v1/decide` makes them from its token and the question, one after the
//! other.
//!
//! `BENCH_AGENTS` (2000) agents are generated; every one is asked about once, and then `BENCH_QUESTIONS` (20000) times
//! in turns.

use std::time::Instant;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::policies::subject_decisions::{
    GatewayQuery, authenticate_gateway, decide_for_gateway,
};
use a2a_registry_core::search::indexing::{apply_next_events, rebuild_index};
use a2a_registry_store::agents::agents_page_by_id;

use super::bench_registry::{ADMIN, BenchRegistry};
use super::generator::CardGenerator;
use super::report::{median, print_figure, size_from_env};

/// Asks so many questions, and prints the median and the slowest percent, in microseconds.
async fn time_questions(app: &AppContext, what: &str, count: usize, questions: &[GatewayQuery]) {
    let mut took = Vec::with_capacity(count);
    for (number, question) in questions.iter().cycle().take(count).enumerate() {
        if number % 1_000 == 0 {
            // A process that hears nothing from its database denies.
            apply_next_events(app).await.unwrap();
        }
        let began = Instant::now();
        let gateway = authenticate_gateway(app, ADMIN).await.unwrap();
        let decision = decide_for_gateway(app, &gateway, question, None).await;
        took.push(began.elapsed().as_secs_f64() * 1e6);
        assert_eq!(decision.unwrap().allowed, question.url.is_none(), "{what}");
    }
    took.sort_by(f64::total_cmp);
    let slow = took[took.len() * 99 / 100];
    print_figure(&format!("{what}, p99, us"), format!("{slow:.0}"));
    print_figure(
        &format!("{what}, median, us"),
        format!("{:.0}", median(took)),
    );
}

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 2_000);
    let count = size_from_env("BENCH_QUESTIONS", 20_000);
    let stock = BenchRegistry::new().await;
    let generator = CardGenerator::new(1);
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|number| generator.card(number)).await;
    stock.name_agents().await;
    let app = &stock.app;
    rebuild_index(app, || false).await.unwrap();
    while apply_next_events(app).await.unwrap() {}
    let rows = agents_page_by_id(&app.store, None, agents as u64).await;
    let about = |agent: Option<String>, url: Option<String>| GatewayQuery {
        agent,
        url,
        ..GatewayQuery::default()
    };
    let (mut by_id, mut by_urn, mut by_url) = (Vec::new(), Vec::new(), Vec::new());
    for (number, row) in rows.unwrap().into_iter().enumerate() {
        by_id.push(about(Some(row.id.to_string()), None));
        by_urn.push(about(row.urn, None));
        let unproved = format!("https://a{number}.agents.test/a2a");
        by_url.push(about(None, Some(unproved)));
    }
    time_questions(app, "an agent for the first time", by_id.len(), &by_id).await;
    time_questions(app, "by its id", count, &by_id).await;
    time_questions(app, "by its URN", count, &by_urn).await;
    time_questions(app, "by a URL of no proved host", count, &by_url).await;
    stock.close().await;
}
