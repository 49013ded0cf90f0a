//! What the registry does: one function for each thing a caller may ask, whoever carries the question.

mod acts;
mod agents;
mod attribution;
mod caller;
mod cards;
mod changes;
mod coverage;
mod covering;
mod crawling;
mod data_dir;
mod derivation;
mod diff;
mod documents;
mod domain_part;
mod domain_view;
mod domains;
mod error;
mod events;
mod health;
mod housekeeping;
mod indexing;
mod ingest;
mod ledger;
mod meaning;
mod offline;
mod openness;
mod outage;
mod ownership;
mod page;
mod pins;
mod places;
mod query;
mod register;
mod render;
mod review_detail;
mod reviews;
mod rules;
mod search;
mod signatures;
mod sources;
mod standing;
mod start;
mod tokens;
mod touched;
mod urn;
mod withdrawal;

use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_crawler::fetch::Fetcher;
use a2a_crawler::guard::Guard;
use tokio::sync::{Notify, watch};

pub use agents::FindingsQuery;
pub use caller::{Account, Caller};
pub use cards::ServedCard;
pub use data_dir::{DataDir, DataDirError};
pub use diff::DiffQuery;
pub use error::{AppError, ErrorKind};
pub use health::{Check, Readiness};
pub use housekeeping::BODY_RETENTION;
pub use indexing::IndexingError;
pub use meaning::{Embedding, Mode, Progress, Step};
pub use offline::{
    Embedded, EmbeddedModel, embedded, migrate, ping_database, reindex, reset_admin_token,
};
pub use page::{PageRequest, not_empty};
pub use query::{LookupQuery, SearchQuery, SuggestQuery};
pub use start::{BOOTSTRAP_TOKEN, StartError, Started};
pub use tokens::TOKEN_PREFIX;

use crate::config::Config;
use a2a_registry_domain::admission::Rules;
use a2a_registry_domain::ids::Entropy;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::Index;
use a2a_registry_store::Store;

/// The registry, whole: handlers and jobs hold one of these and nothing else.
#[derive(Debug)]
pub struct App {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) index: Index,
    pub(crate) guard: Arc<Guard>,
    /// The way out, once there is one.
    fetcher: OnceLock<Arc<Fetcher>>,
    rules: Rules,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    changes: changes::Changes,
    cards: cards::CardCache,
    searches: search::SearchCache,
    meanings: meaning::Meanings,
    signer: page::Signer,
    heard: health::Heard,
    /// The last event that everything kept in memory was told of.
    noted: AtomicI64,
    disk: health::Disk,
    /// When the index was last asked whether it can be read.
    index_asked: tokio::sync::Mutex<Option<Timestamp>>,
    stream: crawling::Stream,
    pub(crate) wake: Wake,
    _data_dir: DataDir,
}

/// Signals between the parts of one process. Each is a hint: whoever waits looks for itself.
#[derive(Debug)]
pub struct Wake {
    /// A visit may have become due.
    pub visits: Notify,
    /// Proofs of a domain may have become due to be looked for.
    pub checks: Notify,
    /// Another process may have appended an event.
    pub foreign: Notify,
    /// The highest event appended by this process.
    pub events: watch::Sender<i64>,
    /// The last event that the index of this process has applied.
    pub applied: watch::Sender<i64>,
    /// Whether the index of this process follows the events.
    pub following: AtomicBool,
    /// An admin wants the index to be built anew. Nothing else tells of that, so whoever waits need not look.
    pub reindex: Notify,
    /// The index may be damaged.
    pub damage: Notify,
    /// Versions are to be derived again.
    pub derive: Notify,
}

impl App {
    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now().into()
    }

    /// The time since some moment in the past, which goes on evenly however the clock is set.
    pub fn uptime(&self) -> Duration {
        self.clock.monotonic()
    }

    /// The clock everything here goes by.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The configuration in force.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The search index.
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// The guard of the crawler's purpose.
    pub fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.guard)
    }
}
