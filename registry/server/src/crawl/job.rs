//! The crawler job: leases visits from the database, and ingests their outcomes into it.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::dns::Resolver;
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::Guard;
use a2a_crawler::schedule::needs_full_fetch;
use a2a_crawler::worker::{self, WorkerConfig};
use a2a_crawler::{
    AttemptOutcome, Frontier, MAX_SOURCES_PER_VISIT, Outcome, OwnerError, Sink, Slot, SourceTask,
    Undelivered, Validators, Visit,
};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::{domain, source};
use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::read_roots;
use crate::context::Context;
use crate::crawl::ingest::ingest;
use crate::crawl::leasing::visits_lease;
use crate::error::StartError;
use crate::visits::leasing::{visits_give_back, visits_next_due};
use crate::visits::networks;

/// How often to poll for due visits without a wake-up: other processes may have registered something.
const POLL: Duration = Duration::from_secs(1);

/// How much longer than the longest visit a lease lasts: outcomes wait for their group's transaction.
const LEASE_MARGIN: Duration = Duration::from_secs(60);

/// Starts the crawler.
pub(crate) fn start(
    context: &Arc<Context>,
    fetcher: Arc<Fetcher>,
    resolver: Arc<dyn Resolver>,
    on_outcome: OnOutcome,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let frontier = frontier(context, resolver, fetcher.longest_visit() + LEASE_MARGIN);
    let sink = sink(context, on_outcome);
    let config = WorkerConfig {
        concurrency: context.config().crawler.concurrency,
        ..WorkerConfig::default()
    };
    tokio::spawn(worker::run(frontier, sink, fetcher, config, cancel))
}

/// The [`Frontier`] that leases due visits from the database for `lease`. The resolver finds the address blocks of
/// hosts that are visited for the first time.
pub fn frontier(
    context: &Arc<Context>,
    resolver: Arc<dyn Resolver>,
    lease: Duration,
) -> Arc<dyn Frontier> {
    Arc::new(DatabaseFrontier {
        context: Arc::clone(context),
        resolver,
        lease_us: i64::try_from(lease.as_micros()).unwrap_or(i64::MAX / 2),
    })
}

/// The [`Sink`] that ingests outcomes into the database.
pub fn sink(context: &Arc<Context>, on_outcome: OnOutcome) -> Arc<dyn Sink> {
    Arc::new(DatabaseSink {
        context: Arc::clone(context),
        on_outcome,
    })
}

/// The client of all outbound requests of this process.
pub(crate) fn fetcher(
    context: &Context,
    resolver: Arc<dyn Resolver>,
) -> Result<Fetcher, StartError> {
    let crawler = &context.config().crawler;
    let contact = match crawler.contact.as_str() {
        "" => Url::parse(&format!("{}/crawler", context.config().public_url())).ok(),
        contact => Some(Url::parse(contact).map_err(|_| {
            StartError("crawler.contact must be a URL, such as https://example.com/crawler or mailto:ops@example.com".into())
        })?),
    };
    let config = FetcherConfig {
        guard: Guard::new(crawler.guard()),
        limits: FetchLimits::default(),
        contact,
        extra_ca: read_roots(&crawler.extra_ca).map_err(StartError)?,
        key_hosts: crawler.key_hosts.clone(),
    };
    Fetcher::new(config, resolver, context.clock()).map_err(|error| StartError(error.to_string()))
}

/// Leases the visits that are due in the database.
struct DatabaseFrontier {
    context: Arc<Context>,
    resolver: Arc<dyn Resolver>,
    lease_us: i64,
}

#[async_trait]
impl Frontier for DatabaseFrontier {
    async fn lease(&self, limit: usize) -> Result<Vec<Visit>, OwnerError> {
        let failed = |error: StoreError| OwnerError(error.to_string());
        let mut leased = visits_lease(&self.context, limit, self.lease_us)
            .await
            .map_err(failed)?;
        let rows = leased.iter().map(|(row, _)| row);
        let too_many = networks::record_networks(&self.context, self.resolver.as_ref(), rows)
            .await
            .map_err(failed)?;
        leased.retain(|(row, _)| !too_many.contains(&row.id));
        let now = self.context.now();
        Ok(leased
            .into_iter()
            .map(|(domain, sources)| visit(&domain, sources, now))
            .collect())
    }

    async fn wait(&self) {
        let until = visits_next_due(&self.context).await;
        let pause = match until {
            Ok(Some(due)) => {
                let left = u64::try_from(due.0 - self.context.now().0).unwrap_or(0);
                Duration::from_micros(left).min(POLL)
            }
            _ => POLL,
        };
        tokio::select! {
            () = self.context.wake.visits.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    async fn give_back(&self, visits: Vec<Visit>, pause: Duration) -> Result<(), OwnerError> {
        let held: Vec<(i64, i64)> = visits
            .iter()
            .map(|visit| (visit.domain_key, visit.lease))
            .collect();
        visits_give_back(&self.context, &held, pause)
            .await
            .map_err(|error| OwnerError(error.to_string()))
    }
}

fn visit(domain: &domain::Model, sources: Vec<source::Model>, now: Timestamp) -> Visit {
    Visit {
        domain_key: domain.id,
        domain: domain.name.clone(),
        dns_proved: domain.dns_proved,
        lease: domain.lease.unwrap_or_default(),
        sources: sources
            .into_iter()
            .take(MAX_SOURCES_PER_VISIT)
            .filter_map(|source| task(source, now))
            .collect(),
    }
}

fn task(row: source::Model, now: Timestamp) -> Option<SourceTask> {
    let url = Url::parse(&row.url).ok()?;
    // This build cannot fetch a source of a kind that only a later build knows.
    let slot = match row.kind.known()? {
        SourceKind::WellKnown => Slot::WellKnown { origin: url },
        SourceKind::Ard | SourceKind::AiCatalog => Slot::Catalog { url },
        SourceKind::Url | SourceKind::Entry => Slot::Url { url },
    };
    let last_full = row.last_full_at.map(|at| Timestamp(at).into());
    let wait = row.last_success_at.map_or(0, |at| now.0.saturating_sub(at));
    let wait = time::Duration::microseconds(wait);
    let full = row.full_wanted || needs_full_fetch(last_full, now.into(), wait);
    let validators = row.validator_url.filter(|_| !full).map(|url| Validators {
        url,
        etag: row.etag,
        last_modified: row.last_modified,
    });
    Some(SourceTask {
        source_key: row.id,
        slot,
        validators,
    })
}

/// The [`Sink`] that ingests outcomes into the database.
struct DatabaseSink {
    context: Arc<Context>,
    on_outcome: OnOutcome,
}

#[async_trait]
impl Sink for DatabaseSink {
    async fn deliver(&self, group: Vec<Outcome>) -> Result<(), Undelivered> {
        match ingest(&self.context, &group).await {
            Ok(()) => {
                for attempt in group
                    .iter()
                    .flat_map(|outcome| &outcome.sources)
                    .flat_map(|one| &one.attempts)
                {
                    (self.on_outcome)(attempt.outcome);
                }
                Ok(())
            }
            Err(error) => {
                let text = error.internal.unwrap_or(error.public);
                Err(Undelivered {
                    group,
                    error: OwnerError(text),
                })
            }
        }
    }
}

/// A callback that gets the outcome of every request of the crawler.
pub type OnOutcome = Arc<dyn Fn(AttemptOutcome) + Send + Sync>;
