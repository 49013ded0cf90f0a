//! A registry as a child process, with its crawler, its index and its server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_registry_core::config::Config;
use a2a_registry_core::context::Context;
use a2a_registry_core::search::indexing::index_anew;
use a2a_registry_core::visits::leasing::wake_crawler;
use a2a_registry_server::jobs::{self, JobOptions};
use sea_orm::DatabaseConnection;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::child::{limit_open_files, next_request, reply};
use crate::here::Here;
use crate::stock::{NewSources, Stock, add_sources};

/// How often the index is looked at for what it has applied; events of this process wake earlier.
const TICK: Duration = Duration::from_millis(5);
/// Limits of an account, which no bench reaches.
const NO_LIMIT: u64 = 1 << 32;

/// The number of requests of the crawler by outcome, counted once their results are stored.
#[derive(Debug, Default)]
struct Outcomes(Mutex<BTreeMap<&'static str, u64>>);

impl Outcomes {
    fn total(&self) -> u64 {
        self.0.lock().unwrap().values().sum()
    }
}

/// Runs the registry until the parent ends it.
pub async fn run(settings: &Value) {
    limit_open_files(settings["open_files"].as_u64());
    let folder = Path::new(settings["folder"].as_str().unwrap());
    let configure = |config: &mut Config| configure(config, settings);
    let (stock, rebuild) = Stock::at(folder, Arc::new(Here), configure).await;
    if settings["rebuild"] == true {
        index_anew(&stock.app, || false).await.unwrap();
    }
    let outcomes = Arc::new(Outcomes::default());
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
    let jobs = jobs::start(&stock.app, options);
    let (address, shutdown) = stock.serve().unwrap();
    reply(&json!({"address": address.to_string()}));
    let database = stock.database().await;
    while let Some(request) = next_request() {
        reply(&answer(&stock, &database, &outcomes, &request).await);
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
    stock: &Stock,
    database: &DatabaseConnection,
    outcomes: &Outcomes,
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
        other => panic!("no registry does {other:?}"),
    }
    json!({})
}

/// Waits for this number of outcomes, and until searches reflect every event.
async fn settle(app: &Context, outcomes: &Outcomes, wanted: u64) {
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
