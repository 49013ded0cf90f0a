//! A crawl of many domains over many days in a few minutes: fetches are simulated, everything else is real.
//!
//! Schedule, pace, leases, politeness and verdicts are the registry's own, on a real database, under a clock that the
//! crawl advances. The crawl replaces the worker: at every step it delivers the outcomes of ended visits and leases
//! due ones.

pub mod figures;
pub mod origins;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use a2a_crawler::{Clock, CrawlFrontier, FetchTarget, OutcomeSink, Visit, VisitOutcome};
use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::search::indexing::apply_next_events;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_server::jobs;
use a2a_registry_server::startup::{StartupResult, close_store, start_registry};
use figures::{CrawlFigures, CrawlLedger};
use futures::future::join_all;
use origins::{SimulatedOrigins, number_of};
use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use time::{Duration, OffsetDateTime};

/// Number of outcomes delivered together, as by the worker.
const GROUP: usize = 200;
/// Duration of leases: longer than a simulated visit and the step it ends in.
const LEASE: std::time::Duration = std::time::Duration::from_secs(600);

/// Interval of index updates in seconds: a commit per event would be most of the work.
const INDEXED: i64 = 6 * 3600;

/// Interval of intermediate figures in hours.
const FIGURES: i64 = 5 * 24;

/// Parameters of a crawl.
#[derive(Debug, Clone)]
pub struct CrawlScenario {
    /// The database; SQLite in the folder where `None`.
    pub database: Option<String>,
    pub domains: u64,
    pub days: i64,
    /// Length of a step: a divisor of five minutes.
    pub step: Duration,
    /// Maximum number of concurrent visits.
    pub concurrency: usize,
    pub seed: u64,
    /// Number of origins of a thousand with an hour's `max-age`, at most 120.
    pub hourly: u64,
}

/// A clock that the crawl moves.
#[derive(Debug)]
struct VirtualClock(Mutex<OffsetDateTime>);

impl Clock for VirtualClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

/// A visit whose outcome is not delivered yet.
struct OngoingVisit {
    ends: OffsetDateTime,
    outcome: VisitOutcome,
}

/// Runs the crawl and returns its results.
pub async fn crawl(scenario: &CrawlScenario) -> CrawlFigures {
    let began = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    if let Some(url) = &scenario.database {
        config.store.database = url.as_str().into();
    }
    config.store.stale_limit = 1 << 40;
    config.search.writer_megabytes = 16;
    // Permission to begin visits must outlast a step.
    let step = scenario.step.whole_seconds().unsigned_abs();
    config.crawler.burst_seconds = config.crawler.burst_seconds.max(step);
    let start = OffsetDateTime::from_unix_timestamp(1_795_046_400).unwrap();
    let clock = Arc::new(VirtualClock(Mutex::new(start)));
    let entropy = Arc::new(SystemEntropy::default());
    let origins = SimulatedOrigins {
        seed: scenario.seed,
        hourly: scenario.hourly,
        start,
    };
    let network = NetworkAccess::with_resolver(&config, clock.clone(), Arc::new(origins)).unwrap();
    let StartupResult { context: app, .. } =
        start_registry(config, clock.clone(), entropy, network, None)
            .await
            .unwrap();
    register(&app, scenario, start).await;
    let frontier = jobs::database_frontier(&app, LEASE);
    let sink = jobs::database_sink(&app, Arc::new(|_| ()));
    let mut ledger = CrawlLedger::new(origins, scenario.domains);
    let end = start + Duration::days(scenario.days);
    let mut under_way: Vec<OngoingVisit> = Vec::new();
    let mut now = start;
    while now < end {
        *clock.0.lock().unwrap() = now;
        deliver(sink.as_ref(), &mut under_way, now).await;
        lease(
            frontier.as_ref(),
            scenario,
            &mut ledger,
            &mut under_way,
            now,
        )
        .await;
        if (now - start).whole_seconds() % INDEXED == 0 {
            while apply_next_events(&app).await.unwrap() {}
            ledger.sample_memory();
            let hours = (now - start).whole_hours();
            let elapsed = began.elapsed();
            eprintln!(
                "{hours:>5} h: {} fetches in {} s",
                ledger.fetches(),
                elapsed.as_secs()
            );
            if hours > 0 && hours % FIGURES == 0 {
                eprintln!("{}", ledger.clone().figures(now, elapsed));
            }
        }
        now += scenario.step;
    }
    let figures = ledger.figures(end, began.elapsed());
    close_store(&app.store).await;
    figures
}

/// Delivers every outcome whose visit has ended.
async fn deliver(sink: &dyn OutcomeSink, under_way: &mut Vec<OngoingVisit>, now: OffsetDateTime) {
    let mut ended = Vec::new();
    let mut left = Vec::with_capacity(under_way.len());
    for visit in under_way.drain(..) {
        if visit.ends <= now {
            ended.push(visit.outcome);
        } else {
            left.push(visit);
        }
    }
    *under_way = left;
    while !ended.is_empty() {
        let rest = ended.split_off(ended.len().min(GROUP));
        sink.deliver(ended).await.unwrap();
        ended = rest;
    }
}

/// Leases due visits up to the concurrency limit, and simulates their fetches.
async fn lease(
    frontier: &dyn CrawlFrontier,
    scenario: &CrawlScenario,
    ledger: &mut CrawlLedger,
    under_way: &mut Vec<OngoingVisit>,
    now: OffsetDateTime,
) {
    loop {
        let room = scenario.concurrency - under_way.len();
        if room == 0 {
            return;
        }
        let visits = frontier.lease_visits(room).await.unwrap();
        let none = visits.is_empty();
        let all = visits.len() < room;
        let permissions = visits.iter().map(|visit| frontier.can_start_visit(visit));
        let permissions = join_all(permissions).await;
        for (visit, may_begin) in visits.iter().zip(permissions) {
            if may_begin.unwrap() {
                under_way.push(ask(ledger, visit, now));
            }
        }
        if none || all {
            return;
        }
    }
}

fn ask(ledger: &mut CrawlLedger, visit: &Visit, now: OffsetDateTime) -> OngoingVisit {
    let number = number_of(&visit.domain);
    let mut at = now;
    let mut sources = Vec::with_capacity(visit.sources.len());
    for task in &visit.sources {
        let url = match &task.target {
            FetchTarget::WellKnown { origin } => format!("{origin}.well-known/agent-card.json"),
            FetchTarget::CardUrl { url }
            | FetchTarget::RegisteredUrl { url, .. }
            | FetchTarget::Catalog { url, .. }
            | FetchTarget::InlineCard { url, .. } => url.to_string(),
        };
        let said = ledger.origins.respond(number, &url, task, at);
        at += said.took;
        ledger.note(number, task, &said, now, at);
        sources.push(said.result);
    }
    OngoingVisit {
        ends: at,
        outcome: VisitOutcome {
            domain_key: visit.domain_key,
            lease_token: visit.lease_token,
            sources,
        },
    }
}

/// Puts the domains into the frontier, all due at once, as an import does.
async fn register(app: &AppContext, scenario: &CrawlScenario, start: OffsetDateTime) {
    let database = Database::connect(app.config().database_url())
        .await
        .unwrap();
    let backend = database.get_database_backend();
    let now = start.unix_timestamp() * 1_000_000;
    let no = if backend == DbBackend::Postgres {
        "FALSE"
    } else {
        "0"
    };
    let numbers = format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {})",
        scenario.domains
    );
    for statement in [
        format!(
            "INSERT INTO domains (name, scheme, state, generation, created_at, visit_due_at, not_before) \
             {numbers} SELECT 'd' || i || '.agents-test.com', 'https', 'unverified', 1, {now}, {now}, {now} FROM n"
        ),
        format!(
            "INSERT INTO sources (domain_id, kind, url, next_due_at, interval_us, full_wanted, failures, \
             cause_looks, liveness, created_at) \
             SELECT id, 'well_known', 'https://' || name || '/', {now}, 0, {no}, 0, 0, 'new', {now} FROM domains"
        ),
    ] {
        database
            .execute_raw(Statement::from_string(backend, statement))
            .await
            .unwrap();
    }
    database.close().await.unwrap();
}
