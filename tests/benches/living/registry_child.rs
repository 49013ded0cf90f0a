//! A registry as a child process, with its crawler, its index and its server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_core::visits::leases::wake_crawler;
use a2a_registry_server::jobs::{self, JobOptions};
use sea_orm::DatabaseConnection;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::child_process::{limit_open_files, next_request, send_reply};
use crate::bench_registry::{BenchRegistry, NewSources, add_sources};
use crate::loopback_resolver::LoopbackResolver;

/// How often the index is looked at for what it has applied; events of this process wake earlier.
const TICK: Duration = Duration::from_millis(5);
/// Limits of an account, which no bench reaches.
const NO_LIMIT: u64 = 1 << 32;

/// The number of requests of the crawler by outcome, counted once their results are stored.
#[derive(Debug, Default)]
struct OutcomeCounts(Mutex<BTreeMap<&'static str, u64>>);

impl OutcomeCounts {
    fn total(&self) -> u64 {
        self.0.lock().unwrap().values().sum()
    }
}

/// Runs the registry until the parent ends it.
pub async fn run_registry(settings: &Value) {
    limit_open_files(settings["open_files"].as_u64());
    let folder = Path::new(settings["folder"].as_str().unwrap());
    let configure = |config: &mut Config| configure(config, settings);
    let (stock, rebuild) = BenchRegistry::open(folder, Arc::new(LoopbackResolver), configure).await;
    if settings["rebuild"] == true {
        rebuild_index(&stock.app, || false).await.unwrap();
    }
    let outcomes = Arc::new(OutcomeCounts::default());
    let counted = Arc::clone(&outcomes);
    let options = JobOptions {
        rebuild,
        on_outcome: Arc::new(move |outcome| {
            *counted
                .0
                .lock()
                .unwrap()
                .entry(outcome.as_str())
                .or_default() += 1;
        }),
        ..JobOptions::default()
    };
    let jobs = jobs::start_jobs(&stock.app, options);
    let (address, shutdown) = stock.serve().unwrap();
    send_reply(&json!({"address": address.to_string()}));
    let database = stock.database().await;
    while let Some(request) = next_request() {
        send_reply(&answer(&stock, &database, &outcomes, &request).await);
    }
    database.close().await.unwrap();
    shutdown.cancel();
    jobs.stop().await;
    stock.close().await;
}

fn configure(config: &mut Config, settings: &Value) {
    config.governance.approve_all = settings["approve_all"] != false;
    let denied = settings["deny"].clone();
    config.governance.deny_domains = serde_json::from_value(denied).unwrap_or_default();
    config.limits.sources_per_account = NO_LIMIT;
    config.limits.domains_per_account = NO_LIMIT;
}

/// Does what the parent asks for.
async fn answer(
    stock: &BenchRegistry,
    database: &DatabaseConnection,
    outcomes: &OutcomeCounts,
    request: &Value,
) -> Value {
    let number = |name: &str| {
        let number = request[name].as_u64().unwrap();
        usize::try_from(number).unwrap()
    };
    match request["do"].as_str().unwrap() {
        "add" => {
            let sources = NewSources {
                first: number("first"),
                domains: number("domains"),
                urls: number("urls"),
                port: u16::try_from(number("port")).unwrap(),
                account: request["account"].as_str().unwrap(),
            };
            add_sources(database, &sources).await;
            wake_crawler(&stock.app);
        }
        "recrawl" => {
            stock.make_planned_due().await;
            wake_crawler(&stock.app);
        }
        "visit" => {
            let domain = request["domain"].as_str().unwrap();
            stock.make_card_due(database, domain, number("card")).await;
            wake_crawler(&stock.app);
        }
        "settle" => {
            let limit = Duration::from_secs(number("seconds") as u64);
            let settled = settle(&stock.app, outcomes, number("outcomes") as u64);
            return json!({"settled": timeout(limit, settled).await.is_ok()});
        }
        "outcomes" => return json!(*outcomes.0.lock().unwrap()),
        "state" => {
            let (event, index) = (*stock.app.event_signal().borrow(), stock.app.index());
            let (applied, waiting) = (index.applied_seq(), index.overlay_len());
            let made = outcomes.total();
            return json!({"made": made, "event": event, "applied": applied, "waiting": waiting});
        }
        other => panic!("no registry does {other:?}"),
    }
    json!({})
}

/// Waits for this number of outcomes, and until searches reflect every event.
async fn settle(app: &AppContext, outcomes: &OutcomeCounts, wanted: u64) {
    let mut events = app.event_signal();
    loop {
        // An outcome is counted after its event, so an event that is read before might be an earlier one.
        if outcomes.total() >= wanted {
            let last = *events.borrow_and_update();
            let index = app.index();
            if index.applied_seq() >= last && index.overlay_len() == 0 {
                return;
            }
        }
        let _ = timeout(TICK, events.changed()).await;
    }
}
