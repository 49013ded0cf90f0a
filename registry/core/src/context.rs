//! The application context: store, clock, entropy, rules, search and the signals between jobs. Only fields, no
//! behavior.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_registry_domain::admission_rules::AdmissionRules;
use a2a_registry_domain::identifiers::Entropy;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::Index;
use a2a_registry_store::{Executor as _, Store};
use tokio::sync::{Notify, watch};

use crate::config::{ActiveConfig, Config};
use crate::data_dir::DataDir;
use crate::network::NetworkAccess;
use crate::paging::PageTokenSigner;
use crate::process_state::active_policy_sets::ActivePolicySets;
use crate::process_state::agent_cache::AgentCache;
use crate::process_state::cached_catalog::CachedCatalog;
use crate::process_state::card_cache::CardCache;
use crate::process_state::change_counters::AgentChangeCounters;
use crate::process_state::crawl_state::CrawlState;
use crate::process_state::decision_callers::DecisionCallers;
use crate::process_state::delivery_counts::DeliveryCounts;
use crate::process_state::dry_runs::DryRunCounters;
use crate::process_state::federation::FederationState;
use crate::process_state::health_state::{LastDatabaseContact, LastDiskCheck, LastWriteCheck};
use crate::process_state::lint_pool::LintPool;
use crate::process_state::pending_decisions::PendingDecisions;
use crate::process_state::refusal_counters::CredentialRefusalCounters;
use crate::process_state::rules_progress::RulesRunProgress;
use crate::process_state::search_cache::SearchCache;
use crate::process_state::self_agent::SelfAgentState;
use crate::process_state::semantic_search::SemanticSearchState;
use crate::process_state::token_uses::TokenUseTracker;
use crate::process_state::webhook_pace::WebhookPace;
use crate::providers::IdentityProviders;
use crate::sealing::Sealer;

/// The parts of the registry, shared by all handlers and jobs.
#[derive(Debug)]
pub struct AppContext {
    /// The configuration in use. Read it with [`AppContext::config`] and [`AppContext::rules`].
    pub active_config: ActiveConfig,
    pub store: Store,
    pub index: Index,
    pub network: NetworkAccess,
    pub providers: IdentityProviders,
    pub rules_progress: RulesRunProgress,
    pub policy_sets: ActivePolicySets,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub change_counters: AgentChangeCounters,
    pub card_cache: CardCache,
    pub agent_cache: AgentCache,
    pub search_cache: SearchCache,
    pub lint_pool: LintPool,
    pub token_uses: TokenUseTracker,
    pub refusals: CredentialRefusalCounters,
    pub dry_runs: DryRunCounters,
    pub pending_decisions: PendingDecisions,
    pub decision_callers: DecisionCallers,
    pub federation: FederationState,
    pub semantic_search: SemanticSearchState,
    pub self_agent: SelfAgentState,
    pub webhook_pace: WebhookPace,
    pub delivery_counts: DeliveryCounts,
    /// The pace of mails that accounts ask for, by account and by address.
    pub requested_mail_pace: WebhookPace,
    pub page_token_signer: PageTokenSigner,
    pub sealer: Sealer,
    /// Seals secrets in the database with the key of `[secrets] key_file`; `None` without one.
    pub secrets: Option<Sealer>,
    pub database_contact: LastDatabaseContact,
    /// The number of the last event that all in-memory caches have applied.
    pub caches_applied_seq: AtomicI64,
    pub disk: LastDiskCheck,
    pub write_check: LastWriteCheck,
    /// The published catalog; its lock is held while it is rebuilt.
    pub cached_catalog: tokio::sync::Mutex<Option<CachedCatalog>>,
    /// When the index was last checked for readability.
    pub index_checked_at: tokio::sync::Mutex<Option<Timestamp>>,
    pub crawl_state: CrawlState,
    pub signals: JobSignals,
    pub _data_dir: DataDir,
}

/// Signals between the jobs of one process. Each is a hint: the receiver checks for itself whether there is work.
#[derive(Debug, Default)]
pub struct JobSignals {
    /// A visit may have become due.
    pub visits: Notify,
    /// Another process may have made a visit due; every event that it appends indicates that.
    pub foreign_visits: Notify,
    /// A check of a domain's proofs may have become due.
    pub checks: Notify,
    /// A check of an endpoint may have become due.
    pub endpoints: Notify,
    /// A delivery of a hook may have become due.
    pub hooks: Notify,
    /// Another process may have appended an event.
    pub foreign_events: Notify,
    /// The number of the last event appended by this process.
    pub events: watch::Sender<i64>,
    /// The number of the last event that the index of this process has applied.
    pub applied_event: watch::Sender<i64>,
    /// A caller waits until the index of this process has applied an event.
    pub index_awaited: Notify,
    /// Whether the index of this process follows the events.
    pub is_index_following: AtomicBool,
    /// An admin has requested a rebuild of the index, or a domain was erased. Unlike the others this signal is not a hint, so the receiver
    /// does not check.
    pub reindex: Notify,
    /// The index may be damaged.
    pub index_damage: Notify,
    /// Stored versions should be derived again from their bytes.
    pub rederive: Notify,
    /// A reload has replaced the admission rules.
    pub rules: Notify,
}

impl AppContext {
    pub fn now(&self) -> Timestamp {
        self.clock.now().into()
    }

    /// Monotonic time since a fixed point in the past, independent of the wall clock.
    pub fn monotonic_time(&self) -> Duration {
        self.clock.monotonic()
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// A signal that changes whenever this process has appended or seen an event; its value is the number of the last
    /// one.
    pub fn event_signal(&self) -> watch::Receiver<i64> {
        self.signals.events.subscribe()
    }

    /// The configuration in use, which a reload may replace at any time: what must be consistent reads it once.
    pub fn config(&self) -> Arc<Config> {
        self.active_config.config()
    }

    /// The admission rules in use, which a reload may replace at any time.
    pub fn rules(&self) -> Arc<AdmissionRules> {
        self.active_config.rules()
    }

    /// The number of stored cards that were found damaged since this process started.
    pub fn damaged_card_count(&self) -> usize {
        self.store.damaged_bodies().count()
    }

    pub const fn index(&self) -> &Index {
        &self.index
    }
}
