//! What the registry does: one function for each thing a caller may ask, whoever carries the question.

pub mod acts;
pub mod agents;
pub mod attribution;
pub mod caller;
pub mod cards;
pub mod changes;
pub mod coverage;
pub mod covering;
pub mod crawling;
pub mod data_dir;
pub mod derivation;
pub mod diff;
pub mod documents;
pub mod domain_part;
pub mod domain_view;
pub mod domains;
pub mod error;
pub mod events;
pub mod health;
pub mod housekeeping;
pub mod indexing;
pub mod ingest;
pub mod ledger;
pub mod meaning;
pub mod offline;
pub mod openness;
pub mod outage;
pub mod ownership;
pub mod page;
pub mod pins;
pub mod places;
pub mod query;
pub mod register;
pub mod render;
pub mod review_detail;
pub mod reviews;
pub mod rules;
pub mod search;
pub mod signatures;
pub mod sources;
pub mod standing;
pub mod start;
pub mod tokens;
pub mod touched;
pub mod urn;
pub mod withdrawal;

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
