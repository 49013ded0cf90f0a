//! Hooks: what saved searches cost for each agent that changes, and how fast changed cards are stored beside hooks
//! that are told of all of them, against without any.
//!
//! `BENCH_AGENTS` (1000) agents change. `BENCH_SEARCHES` (1000) saved searches have a hook each, twenty of an account,
//! and their notices are queued. Beside `BENCH_HOOKS` (20) other hooks the notices are sent as well, at the default
//! rate, to a receiver on a thread of this process; `BENCH_PAIRS` (5) pairs of runs are taken in turns. Both sides
//! have an index that follows the changes.

use std::sync::Arc;
use std::time::Instant;

use a2a_crawler::dns::EmptyResolver;
use a2a_registry_api::{HookFilter, NewToken};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::AllowPorts;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::hooks::job::start_hooks;
use a2a_registry_core::hooks::notices::{queue_next_notices, skip_past_events};
use a2a_registry_core::hooks::target::{HookTarget, require_hook_key};
use a2a_registry_core::search::index_job::start_index_job;
use a2a_registry_core::search::indexing::apply_next_events;
use a2a_registry_domain::hook::{HookFormat, HookState};
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::Role;
use a2a_registry_store::entity::{hook, saved_search};
use a2a_registry_store::operating_counts::count_hooks;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::bench_registry::{ADMIN, BenchRegistry};
use super::endpoints::start_agents;
use super::generator::CardGenerator;
use super::report::{
    cpu_of_process, median, print_comparison, print_figure, print_header, size_from_env,
};

/// Hooks of one account.
const HOOKS_PER_ACCOUNT: usize = 20;

/// The card of a number as it is after so many changes.
fn changed_card(generator: &CardGenerator, number: u64, round: usize) -> Vec<u8> {
    let mut card: Value = serde_json::from_slice(&generator.card(number)).unwrap();
    let description = card["description"].as_str().unwrap().to_owned();
    card["description"] = json!(format!("{description} Edition {round}."));
    card.to_string().into_bytes()
}

async fn change_all(stock: &BenchRegistry, generator: &CardGenerator, round: usize) -> f64 {
    stock.make_due().await;
    let filled = stock.fill(|number| changed_card(generator, number, round));
    filled.await.ingest.as_secs_f64()
}

async fn create_reader(app: &AppContext, name: String) -> Uuid {
    let admin = authenticate_token(app, ADMIN).await.unwrap();
    let new = NewToken {
        account: name,
        role: Some(Role::Reader),
        name: "a bench".into(),
        ..NewToken::default()
    };
    let made = token_create(app, &admin, &new).await.unwrap();
    let reader = authenticate_token(app, &made.secret).await.unwrap();
    reader.account.unwrap().id
}

async fn insert_hook(app: &AppContext, owner: Uuid, filter: &HookFilter, port: u16) -> hook::Model {
    let (now, entropy) = (app.now(), app.entropy.as_ref());
    let id = new_uuid(now, entropy);
    let url = format!("http://127.0.0.1:{port}/hook");
    let target = HookTarget::new(url.parse().unwrap(), entropy);
    let sealer = require_hook_key(app).unwrap();
    let row = hook::Model {
        id,
        account_id: owner,
        name: id.to_string(),
        format: HookFormat::CloudEvents.into(),
        state: HookState::Ended.into(),
        filter: serde_json::to_string(filter).unwrap(),
        sealed: target.seal(sealer, id, entropy).unwrap(),
        compare_requested_at: None,
        created_at: now.0,
        due_at: None,
        not_before: now.0,
        failures: 0,
        failing_since: None,
        last_error: None,
        last_success_at: None,
        lease: None,
        leased_until: None,
    };
    let write = app.store.begin_write().await.unwrap();
    write.insert_hook(row.clone()).await.unwrap();
    write.commit().await.unwrap();
    row
}

/// Inserts hooks for saved searches of three words.
async fn insert_searches(
    app: &AppContext,
    generator: &CardGenerator,
    count: usize,
    port: u16,
) -> Vec<hook::Model> {
    let (mut owner, mut rows) = (Uuid::nil(), Vec::new());
    for number in 0..count {
        if number % HOOKS_PER_ACCOUNT == 0 {
            owner = create_reader(app, format!("reader{number}")).await;
        }
        let query = generator.query(number as u64, 3).replace(' ', "+");
        let search = saved_search::Model {
            id: new_uuid(app.now(), app.entropy.as_ref()),
            account_id: owner,
            name: format!("search {number}"),
            query: format!("q={query}"),
            created_at: app.now().0,
        };
        let filter = HookFilter {
            search: Some(search.id),
            ..HookFilter::default()
        };
        let write = app.store.begin_write().await.unwrap();
        write.upsert_saved_search(search).await.unwrap();
        write.commit().await.unwrap();
        rows.push(insert_hook(app, owner, &filter, port).await);
    }
    rows
}

/// Ends hooks, or activates them while no other is active; then they are told of what happens from now on.
async fn set_state(app: &AppContext, rows: &[hook::Model], state: HookState) {
    let write = app.store.begin_write().await.unwrap();
    skip_past_events(&write).await.unwrap();
    for row in rows {
        let row = hook::Model {
            state: state.into(),
            ..row.clone()
        };
        write.update_hook(row).await.unwrap();
    }
    write.commit().await.unwrap();
}

/// Queues the notices of saved searches about agents that have all changed, and prints what each agent costs.
async fn time_searches(stock: &BenchRegistry, generator: &CardGenerator, port: u16, agents: usize) {
    let searches = size_from_env("BENCH_SEARCHES", 1_000);
    let app = &stock.app;
    let hooks = insert_searches(app, generator, searches, port).await;
    set_state(app, &hooks, HookState::Active).await;
    change_all(stock, generator, 1).await;
    while apply_next_events(app).await.unwrap() {}
    let (began, cpu) = (Instant::now(), cpu_of_process().unwrap());
    while queue_next_notices(app).await.unwrap() {}
    let (took, cpu) = (began.elapsed(), cpu_of_process().unwrap() - cpu);
    let queued = count_hooks(&app.store, 10_000_000).await.unwrap().waiting;
    println!("\n{searches} saved searches, {agents} changed agents, {queued} notices");
    let each = |seconds: f64| format!("{:.2}", seconds * 1e3 / agents as f64);
    print_figure("time of each agent, ms", each(took.as_secs_f64()));
    print_figure("processor time of each agent, ms", each(cpu.as_secs_f64()));
    print_figure(
        "processor time of each search and agent, us",
        format!(
            "{:.2}",
            cpu.as_secs_f64() * 1e6 / (agents * searches) as f64
        ),
    );
    set_state(app, &hooks, HookState::Ended).await;
}

/// Changed cards that are stored in a second while the index follows them, and hooks are told if there are any.
async fn change_rate(
    stock: &BenchRegistry,
    generator: &CardGenerator,
    (round, agents): (usize, usize),
) -> f64 {
    let cancel = CancellationToken::new();
    let index = start_index_job(&stock.app, None, cancel.clone());
    let hooks = start_hooks(&stock.app, &cancel);
    let seconds = change_all(stock, generator, round).await;
    cancel.cancel();
    index.await.unwrap();
    hooks.await.unwrap();
    agents as f64 / seconds
}

async fn compare_rates(stock: &BenchRegistry, generator: &CardGenerator, port: u16, agents: usize) {
    let app = &stock.app;
    let count = size_from_env("BENCH_HOOKS", 20);
    let owner = create_reader(app, "everything".into()).await;
    let mut hooks = Vec::new();
    for _ in 0..count {
        hooks.push(insert_hook(app, owner, &HookFilter::default(), port).await);
    }
    let (mut with, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..size_from_env("BENCH_PAIRS", 5) {
        without.push(change_rate(stock, generator, (2 * pair + 2, agents)).await);
        while apply_next_events(app).await.unwrap() {}
        set_state(app, &hooks, HookState::Active).await;
        with.push(change_rate(stock, generator, (2 * pair + 3, agents)).await);
        set_state(app, &hooks, HookState::Ended).await;
        ratios.push(with[pair] / without[pair]);
    }
    print_header("changed cards; bare: without hooks", "a second");
    let what = format!("beside {count} hooks that are told of all");
    print_comparison(
        &what,
        median(with),
        median(without),
        median(ratios),
        Some(0.9),
    );
}

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 1_000);
    let generator = CardGenerator::new(1);
    let port = start_agents();
    let folder = tempfile::tempdir().unwrap();
    let (stock, _) = BenchRegistry::open(folder.path(), Arc::new(EmptyResolver), |config| {
        config.webhooks.allow_networks = config.crawler.allow_networks.clone();
        config.webhooks.allow_http = true;
        config.webhooks.allow_ports = AllowPorts::Word("any".into());
    })
    .await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|number| generator.card(number)).await;
    while apply_next_events(&stock.app).await.unwrap() {}
    time_searches(&stock, &generator, port, agents).await;
    compare_rates(&stock, &generator, port, agents).await;
    stock.close().await;
}
