//! The crawler job: leases visits from the database, and ingests their outcomes into it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_crawler::schedule::needs_full_fetch;
use a2a_crawler::worker::{self, WorkerConfig};
use a2a_crawler::{
    AttemptOutcome, Frontier, MAX_SOURCES_PER_VISIT, OwnerError, Sink, Slot, SourceTask,
    Undelivered, Validators, Visit, VisitOutcome,
};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::{domain, source};
use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::context::Context;
use crate::crawl::ingest::ingest;
use crate::ownership::first_check::{Leased, is_first_visit, visits_permitted};
use crate::sources::card_url;
use crate::visibility::stands_behind_catalogs;
use crate::visits::leasing::{visits_due, visits_give_back, visits_next_due};
use crate::visits::networks::NetworkRecorder;
use crate::visits::outage::open_breaker_for_shortage;

/// How often to poll for due visits without a wake-up: other processes may have registered something.
const POLL: Duration = Duration::from_secs(1);

/// How much longer than the longest visit a lease lasts: outcomes wait for their group's transaction.
const LEASE_MARGIN: Duration = Duration::from_secs(60);

/// Places of a crawler that are kept for visits that were requested one by one, in case the hosts of one requester are slow; an
/// eighth of all at most.
const SINGLE_PLACES: usize = 8;

fn reserved_places(context: &Context) -> usize {
    SINGLE_PLACES.min(context.config().crawler.concurrency / SINGLE_PLACES)
}

pub fn start(
    context: &Arc<Context>,
    on_outcome: OnOutcome,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let fetcher = Arc::clone(&context.network.fetcher);
    let frontier = frontier(context, fetcher.longest_visit() + LEASE_MARGIN);
    let sink = sink(context, on_outcome);
    let config = WorkerConfig {
        concurrency: context.config().crawler.concurrency,
        reserved: reserved_places(context),
        ..WorkerConfig::default()
    };
    tokio::spawn(worker::run(frontier, sink, fetcher, config, cancel))
}

/// The [`Frontier`] that leases due visits from the database for `lease`.
pub fn frontier(context: &Arc<Context>, lease: Duration) -> Arc<dyn Frontier> {
    Arc::new(DatabaseFrontier {
        context: Arc::clone(context),
        reserved: reserved_places(context),
        unknown: Mutex::default(),
        networks: NetworkRecorder::default(),
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

/// Leases due visits for `lease_us` microseconds, each with its due sources. A domain without sources is visited no
/// more; one that was never visited is visited only if it has not opted out.
pub async fn visits_lease(
    context: &Context,
    limit: usize,
    lease_us: i64,
) -> Result<Vec<(domain::Model, Vec<source::Model>)>, StoreError> {
    let leased = visits_due(context, limit, 0, lease_us).await?;
    visits_permitted(context, leased).await
}

struct DatabaseFrontier {
    context: Arc<Context>,
    /// Places that are kept for visits that were requested one by one.
    reserved: usize,
    /// Leased visits whose domains are looked up before they begin, by the keys of the domains.
    unknown: Mutex<HashMap<i64, Leased>>,
    networks: NetworkRecorder,
    lease_us: i64,
}

impl DatabaseFrontier {
    fn unknown(&self) -> MutexGuard<'_, HashMap<i64, Leased>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Frontier for DatabaseFrontier {
    async fn lease(&self, limit: usize) -> Result<Vec<Visit>, OwnerError> {
        let leased = visits_due(&self.context, limit, self.reserved, self.lease_us)
            .await
            .map_err(|error| OwnerError(error.to_string()))?;
        let unknown = leased
            .iter()
            .filter(|(row, due)| row.network.is_none() || is_first_visit(due));
        let unknown = unknown.map(|one| (one.0.id, one.clone()));
        self.unknown().extend(unknown);
        let now = self.context.now();
        Ok(leased
            .into_iter()
            .map(|(domain, sources)| visit(&domain, sources, now))
            .collect())
    }

    async fn may_begin(&self, visit: &Visit) -> Result<bool, OwnerError> {
        let unknown = self.unknown().remove(&visit.domain_key);
        let Some(leased) = unknown else {
            return Ok(true);
        };
        let failed = |error: StoreError| OwnerError(error.to_string());
        let permitted = visits_permitted(&self.context, vec![leased]).await;
        let permitted = permitted.map_err(failed)?;
        let Some((row, _)) = permitted.first() else {
            return Ok(false);
        };
        let kept = self.networks.record(&self.context, row).await;
        kept.map_err(failed)
    }

    /// Reads when the next visit is due, rather than trying to lease one: a lease is a write, for which others wait.
    async fn wait(&self) {
        loop {
            let next = visits_next_due(&self.context).await;
            let failed = next.is_err();
            let left = match next {
                Ok(Some(due)) => due.0.saturating_sub(self.context.now().0),
                Ok(None) | Err(_) => i64::MAX,
            };
            let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = self.context.wake.visits.notified() => return,
                () = self.context.wake.foreign_visits.notified() => {}
                () = tokio::time::sleep(left.min(POLL)) => {}
            }
            if failed {
                return;
            }
        }
    }

    async fn give_back(&self, visits: Vec<Visit>, pause: Duration) -> Result<(), OwnerError> {
        let held: Vec<(i64, i64)> = visits
            .iter()
            .map(|visit| (visit.domain_key, visit.lease))
            .collect();
        self.unknown()
            .retain(|id, _| visits.iter().all(|visit| visit.domain_key != *id));
        visits_give_back(&self.context, &held, pause)
            .await
            .map_err(|error| OwnerError(error.to_string()))
    }

    fn note_descriptor_shortage(&self) {
        open_breaker_for_shortage(&self.context);
    }
}

fn visit(domain: &domain::Model, sources: Vec<source::Model>, now: Timestamp) -> Visit {
    let registries = stands_behind_catalogs(domain);
    Visit {
        domain_key: domain.id,
        domain: domain.name.clone(),
        dns_proved: domain.dns_proved,
        lease: domain.lease.unwrap_or_default(),
        sources: sources
            .into_iter()
            .take(MAX_SOURCES_PER_VISIT)
            .filter_map(|source| task(source, registries, now))
            .collect(),
    }
}

/// The requests for a source; `registries` says whether the registries that catalogs name are read.
fn task(row: source::Model, registries: bool, now: Timestamp) -> Option<SourceTask> {
    let url = Url::parse(card_url(&row)).ok()?;
    // This build cannot fetch a source of a kind that only a later build knows.
    let slot = match row.kind.known()? {
        SourceKind::WellKnown => Slot::WellKnown { origin: url },
        SourceKind::Ard | SourceKind::AiCatalog => Slot::Catalog { url, registries },
        // A card inside a catalog has the catalog's URL with a fragment; no other card has one.
        SourceKind::Entry if url.fragment().is_some() => Slot::Inline {
            url,
            identifier: row.identifier.clone()?,
        },
        // Once it has brought anything it is known what the URL is, and a failure is no reason to look elsewhere.
        SourceKind::Url => Slot::Registered {
            url,
            may_be_base: row.last_success_at.is_none(),
        },
        SourceKind::Entry => Slot::Url { url },
    };
    let last_full = row.last_full_at.map(|at| Timestamp(at).into());
    let wait = row.last_success_at.map_or(0, |at| now.0.saturating_sub(at));
    let wait = time::Duration::microseconds(wait);
    let full = row.full_wanted || needs_full_fetch(last_full, now.into(), wait);
    // A URL without validators only tells where the card is.
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
    async fn deliver(&self, group: Vec<VisitOutcome>) -> Result<(), Undelivered> {
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
