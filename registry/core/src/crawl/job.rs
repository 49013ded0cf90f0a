//! The crawler job: leases visits from the database, and ingests their outcomes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_crawler::schedule::needs_full_fetch;
use a2a_crawler::trace_spans::{TRACE_TARGET, count_attribute};
use a2a_crawler::worker::{self, WorkerConfig};
use a2a_crawler::{
    AttemptOutcome, BackendError, CrawlFrontier, DeliveryError, FetchTarget, MAX_SOURCES_PER_VISIT,
    OutcomeSink, SourceTask, Validators, Visit, VisitOutcome,
};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::{domain, source, source_credential};
use a2a_registry_store::source_credentials::source_credentials_by_domain;
use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use url::Url;

use crate::context::AppContext;
use crate::crawl::ingest::ingest_outcomes;
use crate::ownership::opt_out_lookup::{LeasedVisit, is_first_visit, permitted_visits};
use crate::secrets::source_credentials::{
    find_source_credential, is_credential_in_force, open_credential,
};
use crate::sources::source_card_url;
use crate::visibility::is_catalog_authority;
use crate::visits::leases::{lease_due_visits, next_visit_due, release_visits};
use crate::visits::networks::DomainNetworkRecorder;
use crate::visits::outage::open_breaker_for_shortage;

/// The polling interval for due visits when no signal arrives: another process may have scheduled one.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How much longer a lease is than the longest visit: outcomes wait for the transaction that stores their batch.
const LEASE_MARGIN: Duration = Duration::from_secs(60);

/// Maximum number of crawler permits reserved for individually requested visits, so that the slow hosts of one
/// requester do not occupy all permits. At most an eighth of all permits is reserved.
const MAX_RESERVED_PERMITS: usize = 8;

fn reserved_visit_permits(context: &AppContext) -> usize {
    MAX_RESERVED_PERMITS.min(context.config().crawler.concurrency / MAX_RESERVED_PERMITS)
}

pub fn start_crawler_job(
    context: &Arc<AppContext>,
    on_outcome: AttemptOutcomeCallback,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let fetcher = Arc::clone(&context.network.fetcher);
    let frontier = database_frontier(context, fetcher.max_visit_duration() + LEASE_MARGIN);
    let sink = database_sink(context, on_outcome);
    let config = WorkerConfig {
        concurrency: context.config().crawler.concurrency,
        reserved_permits: reserved_visit_permits(context),
        ..WorkerConfig::default()
    };
    tokio::spawn(worker::run_worker(frontier, sink, fetcher, config, cancel))
}

/// The [`CrawlFrontier`] that leases due visits from the database, each for the duration `lease`.
pub fn database_frontier(context: &Arc<AppContext>, lease: Duration) -> Arc<dyn CrawlFrontier> {
    Arc::new(DatabaseFrontier {
        context: Arc::clone(context),
        reserved_permits: reserved_visit_permits(context),
        unchecked_visits: Mutex::default(),
        networks: DomainNetworkRecorder::default(),
        lease_us: i64::try_from(lease.as_micros()).unwrap_or(i64::MAX / 2),
    })
}

/// The [`OutcomeSink`] that ingests outcomes into the database.
pub fn database_sink(
    context: &Arc<AppContext>,
    on_outcome: AttemptOutcomeCallback,
) -> Arc<dyn OutcomeSink> {
    Arc::new(DatabaseSink {
        context: Arc::clone(context),
        on_outcome,
    })
}

/// Leases due visits for `lease_us` microseconds, each with its due sources. A domain without sources is no longer
/// visited; a domain that has never been visited is visited only if it has not opted out.
pub async fn lease_visits(
    context: &AppContext,
    limit: usize,
    lease_us: i64,
) -> Result<Vec<(domain::Model, Vec<source::Model>)>, StoreError> {
    let leased = lease_due_visits(context, limit, 0, lease_us).await?;
    permitted_visits(context, leased).await
}

struct DatabaseFrontier {
    context: Arc<AppContext>,
    /// Permits reserved for individually requested visits.
    reserved_permits: usize,
    /// Leased visits, by domain key, whose domains must be checked before the visits start.
    unchecked_visits: Mutex<HashMap<i64, LeasedVisit>>,
    networks: DomainNetworkRecorder,
    lease_us: i64,
}

impl DatabaseFrontier {
    fn lock_unchecked_visits(&self) -> MutexGuard<'_, HashMap<i64, LeasedVisit>> {
        self.unchecked_visits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CrawlFrontier for DatabaseFrontier {
    async fn lease_visits(&self, limit: usize) -> Result<Vec<Visit>, BackendError> {
        let leased = lease_due_visits(&self.context, limit, self.reserved_permits, self.lease_us)
            .await
            .map_err(|error| BackendError(error.to_string()))?;
        let unknown = leased
            .iter()
            .filter(|(row, due)| row.network.is_none() || is_first_visit(due));
        let unknown = unknown.map(|one| (one.0.id, one.clone()));
        self.lock_unchecked_visits().extend(unknown);
        let ids: Vec<i64> = leased.iter().map(|(domain, _)| domain.id).collect();
        let credentials = source_credentials_by_domain(&self.context.store, &ids).await;
        let credentials = credentials.map_err(|error| BackendError(error.to_string()))?;
        Ok(leased
            .into_iter()
            .map(|(domain, sources)| to_visit(&self.context, &domain, sources, &credentials))
            .collect())
    }

    async fn can_start_visit(&self, visit: &Visit) -> Result<bool, BackendError> {
        let unknown = self.lock_unchecked_visits().remove(&visit.domain_key);
        let Some(leased) = unknown else {
            return Ok(true);
        };
        let to_owner_error = |error: StoreError| BackendError(error.to_string());
        let permitted = permitted_visits(&self.context, vec![leased]).await;
        let permitted = permitted.map_err(to_owner_error)?;
        let Some((row, _)) = permitted.first() else {
            return Ok(false);
        };
        let recorded = self.networks.record(&self.context, row).await;
        recorded.map_err(to_owner_error)
    }

    /// Reads the time of the next due visit instead of trying to lease one: a lease is a write, and blocks other
    /// writes.
    async fn wait_for_due(&self) {
        loop {
            let next = next_visit_due(&self.context).await;
            let failed = next.is_err();
            let until_due = match next {
                Ok(Some(due)) => due.0.saturating_sub(self.context.now().0),
                Ok(None) | Err(_) => i64::MAX,
            };
            let until_due = Duration::from_micros(u64::try_from(until_due).unwrap_or(0));
            if until_due.is_zero() {
                return;
            }
            tokio::select! {
                () = self.context.signals.visits.notified() => return,
                () = self.context.signals.foreign_visits.notified() => {}
                () = tokio::time::sleep(until_due.min(POLL_INTERVAL)) => {}
            }
            if failed {
                return;
            }
        }
    }

    async fn release_visits(
        &self,
        visits: Vec<Visit>,
        pause: Duration,
    ) -> Result<(), BackendError> {
        let leases: Vec<(i64, i64)> = visits
            .iter()
            .map(|visit| (visit.domain_key, visit.lease_token))
            .collect();
        self.lock_unchecked_visits()
            .retain(|id, _| visits.iter().all(|visit| visit.domain_key != *id));
        release_visits(&self.context, &leases, pause)
            .await
            .map_err(|error| BackendError(error.to_string()))
    }

    fn record_descriptor_shortage(&self) {
        open_breaker_for_shortage(&self.context);
    }
}

/// The visit of a domain; `credentials` may include those of other domains.
fn to_visit(
    context: &AppContext,
    domain: &domain::Model,
    sources: Vec<source::Model>,
    credentials: &[source_credential::Model],
) -> Visit {
    let reads_registries = is_catalog_authority(domain);
    let now = context.now();
    let credentials = credentials.iter();
    let credentials = credentials.filter(|row| is_credential_in_force(row, domain, now));
    Visit {
        domain_key: domain.id,
        domain: domain.name.clone(),
        dns_proved: domain.dns_proved,
        lease_token: domain.lease.unwrap_or_default(),
        sources: sources
            .into_iter()
            .take(MAX_SOURCES_PER_VISIT)
            .filter_map(|source| {
                let (id, catalog) = (source.id, source.catalog_id);
                let task = to_source_task(source, reads_registries, now)?;
                let credential = find_source_credential(credentials.clone(), id, catalog);
                let credential =
                    credential.and_then(|row| open_credential(context, row, id, task.target.url()));
                Some(SourceTask { credential, ..task })
            })
            .collect(),
    }
}

/// The fetch task of a source, without its credential; `reads_registries` says whether to read the registries that
/// catalogs list.
fn to_source_task(
    row: source::Model,
    reads_registries: bool,
    now: Timestamp,
) -> Option<SourceTask> {
    let url = Url::parse(source_card_url(&row)).ok()?;
    // This build cannot fetch a source of a kind that only a later build knows.
    let slot = match row.kind.known_value()? {
        SourceKind::WellKnown => FetchTarget::WellKnown { origin: url },
        SourceKind::Ard | SourceKind::AiCatalog => FetchTarget::Catalog {
            url,
            read_registries: reads_registries,
        },
        // A card inside a catalog has the catalog's URL with a fragment; no other card has one.
        SourceKind::Entry if url.fragment().is_some() => FetchTarget::InlineCard {
            url,
            identifier: row.identifier.clone()?,
        },
        // After the first successful response the kind of the URL is known, so no other URL is tried after a failure.
        SourceKind::Url => FetchTarget::RegisteredUrl {
            url,
            may_be_base: row.last_success_at.is_none(),
        },
        SourceKind::Entry => FetchTarget::CardUrl { url },
    };
    let last_full = row.last_full_at.map(|at| Timestamp(at).into());
    let wait = row.last_success_at.map_or(0, |at| now.0.saturating_sub(at));
    let wait = time::Duration::microseconds(wait);
    let full = row.full_wanted || needs_full_fetch(last_full, now.into(), wait);
    // Without validators, `validator_url` only says where the card is.
    let conditional = !full && (row.etag.is_some() || row.last_modified.is_some());
    let validators = row
        .validator_url
        .filter(|_| conditional)
        .map(|url| Validators {
            url,
            etag: row.etag,
            last_modified: row.last_modified,
        });
    Some(SourceTask {
        source_key: row.id,
        target: slot,
        validators,
        credential: None,
    })
}

/// The [`OutcomeSink`] that ingests outcomes into the database.
struct DatabaseSink {
    context: Arc<AppContext>,
    on_outcome: AttemptOutcomeCallback,
}

#[async_trait]
impl OutcomeSink for DatabaseSink {
    async fn deliver(&self, group: Vec<VisitOutcome>) -> Result<(), DeliveryError> {
        let span = tracing::trace_span!(
            target: TRACE_TARGET,
            "ingest",
            visits = count_attribute(group.len()),
        );
        match ingest_outcomes(&self.context, &group)
            .instrument(span)
            .await
        {
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
                Err(DeliveryError {
                    batch: group,
                    error: BackendError(text),
                })
            }
        }
    }
}

/// A callback that receives the outcome of every request of the crawler.
pub type AttemptOutcomeCallback = Arc<dyn Fn(AttemptOutcome) + Send + Sync>;
