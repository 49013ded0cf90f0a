//! What an act needs: store, clock, entropy, rules, search and the signals between jobs. Fields only, no behaviour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_registry_domain::admission_rules::Rules;
use a2a_registry_domain::ids::Entropy;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::Index;
use a2a_registry_store::{Handle as _, Store};
use tokio::sync::{Notify, watch};

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::memory::agents::AgentCache;
use crate::memory::cards::CardCache;
use crate::memory::changes::Changes;
use crate::memory::database::{DatabaseContact, DiskState};
use crate::memory::dry_runs::DryRuns;
use crate::memory::federation::FederationMemory;
use crate::memory::lints::LintPlaces;
use crate::memory::meanings::Meanings;
use crate::memory::own_agent::OwnAgent;
use crate::memory::policies::Policies;
use crate::memory::published::PublishedCatalog;
use crate::memory::refusals::Refusals;
use crate::memory::rules_progress::RulesProgress;
use crate::memory::searches::SearchCache;
use crate::memory::stream::VisitStream;
use crate::memory::token_uses::TokenUses;
use crate::network::Network;
use crate::paging::Signer;
use crate::providers::Providers;
use crate::sealing::Sealer;

/// The parts of the registry: handlers and jobs hold one of these and nothing else.
#[derive(Debug)]
pub struct Context {
    pub config: Config,
    pub store: Store,
    pub index: Index,
    pub network: Network,
    pub providers: Providers,
    pub rules: Rules,
    pub rules_progress: RulesProgress,
    pub policies: Policies,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub changes: Changes,
    pub cards: CardCache,
    pub agents: AgentCache,
    pub searches: SearchCache,
    pub lints: LintPlaces,
    pub token_uses: TokenUses,
    pub refusals: Refusals,
    pub dry_runs: DryRuns,
    pub federation: FederationMemory,
    pub meanings: Meanings,
    pub own_agent: OwnAgent,
    pub signer: Signer,
    pub sealer: Sealer,
    pub heard: DatabaseContact,
    /// The last event that all in-memory caches have applied.
    pub noted: AtomicI64,
    pub disk: DiskState,
    /// The catalog that is published; whoever makes it anew holds the lock.
    pub published: tokio::sync::Mutex<Option<PublishedCatalog>>,
    /// When the index was last checked for readability.
    pub index_asked: tokio::sync::Mutex<Option<Timestamp>>,
    pub stream: VisitStream,
    pub wake: Wake,
    pub _data_dir: DataDir,
}

/// Signals between the jobs of one process. Each is a hint: the receiver checks for itself whether there is work.
#[derive(Debug, Default)]
pub struct Wake {
    /// A visit may have become due.
    pub visits: Notify,
    /// Another process may have made a visit due; every event that it appends is a sign of that.
    pub foreign_visits: Notify,
    /// A check of a domain's proofs may have become due.
    pub checks: Notify,
    /// Another process may have appended an event.
    pub foreign: Notify,
    /// The highest event appended by this process.
    pub events: watch::Sender<i64>,
    /// The last event that the index of this process has applied.
    pub applied: watch::Sender<i64>,
    /// A caller waits until the index of this process has applied an event.
    pub awaited: Notify,
    /// Whether the index of this process follows the events.
    pub following: AtomicBool,
    /// An admin wants the index rebuilt. This signal is the only sign of it, so the receiver need not check.
    pub reindex: Notify,
    /// The index may be damaged.
    pub damage: Notify,
    /// Versions are to be derived again from their stored bytes.
    pub derive: Notify,
}

impl Context {
    pub fn now(&self) -> Timestamp {
        self.clock.now().into()
    }

    /// Monotonic time since some point in the past, whatever the wall clock is set to.
    pub fn uptime(&self) -> Duration {
        self.clock.monotonic()
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Changes whenever this process has appended or seen an event; holds the number of the last one.
    pub fn event_signal(&self) -> watch::Receiver<i64> {
        self.wake.events.subscribe()
    }

    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The number of stored cards that were found damaged since this process started.
    pub fn damaged_cards(&self) -> usize {
        self.store.damaged_bodies().count()
    }

    pub const fn index(&self) -> &Index {
        &self.index
    }
}
