//! Registry startup: opens data folder, database and index, and builds the context.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_registry_core::accounts::bootstrap;
use a2a_registry_core::accounts::reserved_names::{RESERVED_NAME_NOTICE, reserved_names_in_use};
use a2a_registry_core::admission::rule_changes::hide_forbidden_agents_with_retries;
use a2a_registry_core::config::{ActiveConfig, Config, DatabaseUrl, SqliteSynchronousMode};
use a2a_registry_core::context::{AppContext, JobSignals};
use a2a_registry_core::data_dir::DataDir;
use a2a_registry_core::error::StartError;
use a2a_registry_core::health::received_request::DATABASE_ID_SETTING;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::paging::PageTokenSigner;
use a2a_registry_core::policy_sets::age_progress::AgeProgress;
use a2a_registry_core::policy_sets::{CompiledSetCache, load_newest_policy_set};
use a2a_registry_core::process_state::active_policy_sets::ActivePolicySets;
use a2a_registry_core::process_state::agent_cache::{AgentCache, MAX_ENTRY_AGE};
use a2a_registry_core::process_state::card_cache::CardCache;
use a2a_registry_core::process_state::change_counters::AgentChangeCounters;
use a2a_registry_core::process_state::crawl_state::CrawlState;
use a2a_registry_core::process_state::decision_callers::DecisionCallers;
use a2a_registry_core::process_state::delivery_counts::DeliveryCounts;
use a2a_registry_core::process_state::dry_runs::DryRunCounters;
use a2a_registry_core::process_state::federation::FederationState;
use a2a_registry_core::process_state::health_state::{
    LastDatabaseContact, LastDiskCheck, LastWriteCheck,
};
use a2a_registry_core::process_state::lint_pool::LintPool;
use a2a_registry_core::process_state::outage::CrawlOutage;
use a2a_registry_core::process_state::pending_decisions::PendingDecisions;
use a2a_registry_core::process_state::refusal_counters::CredentialRefusalCounters;
use a2a_registry_core::process_state::rules_progress::RulesRunProgress;
use a2a_registry_core::process_state::search_cache::SearchCache;
use a2a_registry_core::process_state::self_agent::SelfAgentState;
use a2a_registry_core::process_state::semantic_search::SemanticSearchState;
use a2a_registry_core::process_state::token_uses::TokenUseTracker;
use a2a_registry_core::process_state::webhook_pace::WebhookPace;
use a2a_registry_core::providers::IdentityProviders;
use a2a_registry_core::sealing::{KEY_BYTES, Sealer};
use a2a_registry_core::search::indexing::{catch_up_caches, remove_undecided_agents};
use a2a_registry_core::search::policy_rollout::forget_outdated_policy_labels;
use a2a_registry_domain::admission_rules::AdmissionRules;
use a2a_registry_domain::identifiers::{Entropy, new_uuid};
use a2a_registry_http::a2a_agent::card_signing::sign_own_card;
use a2a_registry_search::{Index, IndexConfig, IndexOpenResult};
use a2a_registry_store::{
    SchemaState, SqliteSynchronous, Store, StoreError, StoreOptions, agents, events,
};
use data_encoding::BASE64;

use crate::group_selection::check_no_deselected_groups;
use crate::secrets_key::load_secrets_key;
use crate::urn_authority::check_urn_authority;

/// Environment variable with an admin token that the operator chose.
pub const BOOTSTRAP_TOKEN_VAR: &str = "A2A_REGISTRY_BOOTSTRAP_TOKEN";
/// Environment variable with the name of a file that has that token instead.
pub const BOOTSTRAP_TOKEN_FILE_VAR: &str = "A2A_REGISTRY_BOOTSTRAP_TOKEN_FILE";
/// Setting with the key of page tokens.
pub(crate) const PAGE_TOKEN_KEY_SETTING: &str = "page_token_key";
/// Setting with the key of sign-in attempts.
pub(crate) const ATTEMPT_KEY_SETTING: &str = "sign_in_attempt_key";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartPurpose {
    /// Creates a missing folder and database, and rejects an index that is ahead of the database.
    Serve,
    /// Rebuilds the index from an existing database, regardless of the current index.
    Reindex,
}

#[derive(Debug)]
pub struct StartupResult {
    pub context: Arc<AppContext>,
    /// Admin token, if this start has created one. It is shown once.
    pub admin_token: Option<String>,
    pub rebuild_reason: Option<String>,
}

/// Locks the data folder, opens database and index, and builds the context. Starts no jobs. `bootstrap_token` is the
/// admin token that the operator chose, of at least 32 characters.
pub async fn start_registry(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    network: NetworkAccess,
    bootstrap_token: Option<&str>,
) -> Result<StartupResult, StartError> {
    let purpose = StartPurpose::Serve;
    let (context, rebuild) = assemble_context(config, clock, entropy, network, purpose).await?;
    check_no_deselected_groups(&context).await?;
    check_urn_authority(&context).await?;
    if !context.store.is_postgres() {
        // No other process uses this database, so any lease belongs to a process that was killed. If a lease were
        // kept, its domain would wait minutes until the lease expires. This is the first write: if the file is not
        // writable, the error names the file.
        context.store.end_all_leases().await.map_err(|error| {
            let database = redacted_database_url(&context.config());
            StartError(format!("the database {database} cannot be used: {error}"))
        })?;
    }
    let admin_token = bootstrap::ensure_bootstrap_token(
        &context.store,
        bootstrap_token,
        context.now(),
        context.entropy.as_ref(),
    )
    .await?;
    let reserved = reserved_names_in_use(&context.store).await;
    for holder in reserved.map_err(|error| database_error(&error))? {
        tracing::warn!(holder, "{RESERVED_NAME_NOTICE}");
    }
    hide_agents_before_serving(&context).await?;
    sign_own_card(&context).await?;
    let finished = store_options(&context.config()).mark_first_start_finished();
    finished.map_err(|error| database_error(&error))?;
    Ok(StartupResult {
        context: Arc::new(context),
        admin_token,
        rebuild_reason: rebuild,
    })
}

/// Locks the data folder, and opens database and index without changing their content. Returns the reason to
/// rebuild the index, if any.
pub(crate) async fn assemble_context(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    network: NetworkAccess,
    purpose: StartPurpose,
) -> Result<(AppContext, Option<String>), StartError> {
    let (data_dir, store) = open_store(&config, purpose).await?;
    let signing_key = load_shared_key(&store, PAGE_TOKEN_KEY_SETTING, entropy.as_ref()).await?;
    let sealer = load_sign_in_sealer(&store, entropy.as_ref()).await?;
    let secrets = match purpose {
        StartPurpose::Serve => load_secrets_key(&config, &store, entropy.as_ref()).await?,
        // The index has no secrets.
        StartPurpose::Reindex => None,
    };
    let (index, rebuild) = open_index(&config, &store, entropy.as_ref(), purpose).await?;
    let last_event = last_event_at_start(&store, &index).await?;
    let outage = CrawlOutage::load(&store, clock.now().into())
        .await
        .map_err(|error| database_error(&error))?;
    let context = AppContext {
        providers: IdentityProviders::new(&config, network.identity_fetcher.as_ref(), &clock)?,
        network,
        card_cache: CardCache::new(config.limits.card_cache_megabytes),
        agent_cache: AgentCache::new(
            config.limits.card_cache_megabytes / 2,
            store.is_postgres().then_some(MAX_ENTRY_AGE),
        ),
        search_cache: SearchCache::new(config.search.cache_megabytes),
        lint_pool: LintPool::default(),
        token_uses: TokenUseTracker::default(),
        refusals: CredentialRefusalCounters::default(),
        dry_runs: DryRunCounters::default(),
        pending_decisions: PendingDecisions::default(),
        decision_callers: DecisionCallers::default(),
        federation: FederationState::default(),
        semantic_search: SemanticSearchState::new(Duration::from_millis(
            config.search.embed_timeout,
        )),
        database_contact: LastDatabaseContact::new(clock.monotonic()),
        caches_applied_seq: AtomicI64::new(last_event),
        disk: LastDiskCheck::default(),
        write_check: LastWriteCheck::default(),
        cached_catalog: tokio::sync::Mutex::default(),
        index_checked_at: tokio::sync::Mutex::default(),
        crawl_state: CrawlState::new(&config.crawler, clock.now(), outage),
        change_counters: AgentChangeCounters::default(),
        signals: JobSignals::default(),
        rules_progress: RulesRunProgress::new(new_uuid(clock.now().into(), entropy.as_ref())),
        policy_sets: load_policy_sets(&store, &config.admission_rules()).await?,
        self_agent: SelfAgentState::default(),
        webhook_pace: WebhookPace::default(),
        delivery_counts: DeliveryCounts::default(),
        requested_mail_pace: WebhookPace::default(),
        page_token_signer: PageTokenSigner::new(&signing_key),
        sealer,
        secrets,
        store,
        index,
        clock,
        entropy,
        active_config: ActiveConfig::new(config),
        _data_dir: data_dir,
    };
    Ok((context, rebuild))
}

/// Before the first request, hides content that the rules of this process may forbid, and content hidden since the
/// last event in the index: a process that was killed has decided more than its index shows.
async fn hide_agents_before_serving(context: &AppContext) -> Result<(), StartError> {
    forget_outdated_policy_labels(context)
        .await
        .map_err(|error| {
            StartError(format!(
                "the events since the policies were evaluated cannot be read: {error}"
            ))
        })?;
    let undecided = hide_forbidden_agents_with_retries(context).await;
    let undecided = undecided.map_err(|error| {
        let reason = error.internal.unwrap_or(error.public);
        StartError(format!("the rules could not be applied: {reason}"))
    })?;
    let removed = remove_undecided_agents(context, undecided).await;
    removed.map_err(|error| {
        StartError(format!(
            "the index {} cannot hide content that the rules may forbid: {error}; remove that folder, and the next \
             start rebuilds it",
            context.config().index_dir().display()
        ))
    })?;
    catch_up_caches(context).await.map_err(|error| {
        StartError(format!(
            "the events that are not in the index yet cannot be read: {error}"
        ))
    })
}

/// Closes the database.
pub async fn close_store(store: &Store) {
    if let Err(error) = store.close().await {
        tracing::warn!(%error, "the database did not close cleanly");
    }
}

/// Locks the data folder and opens the database.
async fn open_store(
    config: &Config,
    purpose: StartPurpose,
) -> Result<(DataDir, Store), StartError> {
    let options = store_options(config);
    let (folder, file) = (&config.store.data_dir, options.sqlite_file());
    let data_dir = match purpose {
        StartPurpose::Serve => DataDir::open(folder, file.as_deref()),
        StartPurpose::Reindex => DataDir::open_existing(folder, file.as_deref()),
    };
    let mut data_dir = data_dir.map_err(|error| StartError(error.to_string()))?;
    let store = match purpose {
        StartPurpose::Serve => Store::open(&options).await,
        StartPurpose::Reindex => Store::open_existing(&options).await,
    };
    let store = store.map_err(|error| {
        let database = redacted_database_url(config);
        StartError(format!("the database {database} cannot be used: {error}"))
    })?;
    // A file that this start created could not be locked earlier.
    let locked = file.map_or(Ok(()), |file| data_dir.lock_database(&file));
    locked.map_err(|error| StartError(error.to_string()))?;
    let state = store.schema_state().await;
    if let SchemaState::Newer { migrations } = state.map_err(|error| database_error(&error))? {
        let migrations = migrations.join(", ");
        tracing::warn!(
            migrations,
            "a newer version has migrated the database, and this version can run beside it; it has migrated nothing"
        );
    }
    Ok((data_dir, store))
}

/// Loads the newest policy set. The index follower checks whether all agents have been evaluated under it.
async fn load_policy_sets(
    store: &Store,
    rules: &AdmissionRules,
) -> Result<ActivePolicySets, StartError> {
    let set_cache = CompiledSetCache::default();
    let newest = load_newest_policy_set(&set_cache, store, rules)
        .await
        .map_err(|error| {
            let reason = error.internal.unwrap_or(error.public);
            StartError(format!("the policies cannot be used: {reason}"))
        })?;
    let ages = AgeProgress::load(store).await;
    let as_of = ages.map_err(|error| database_error(&error))?.as_of;
    Ok(ActivePolicySets::new(newest, as_of, set_cache, true))
}

/// Number of the last event at this start. Caches are empty, so earlier events matter only to the index.
async fn last_event_at_start(store: &Store, index: &Index) -> Result<i64, StartError> {
    if !index.is_missing() {
        return Ok(index.applied_seq());
    }
    events::highest_event_seq(store)
        .await
        .map_err(|error| database_error(&error))
}

fn database_error(error: &StoreError) -> StartError {
    StartError(format!("the database failed: {error}"))
}

pub(crate) fn store_options(config: &Config) -> StoreOptions {
    StoreOptions {
        url: config.database_url(),
        cache_megabytes: config.store.sqlite_cache_megabytes,
        synchronous: match config.store.synchronous {
            SqliteSynchronousMode::Normal => SqliteSynchronous::Normal,
            SqliteSynchronousMode::Full => SqliteSynchronous::Full,
        },
    }
}

/// Database URL without the password.
pub(crate) fn redacted_database_url(config: &Config) -> DatabaseUrl {
    config.database_url().into()
}

/// Loads the key in this setting, which all replicas share. The first replica to start generates it.
async fn load_shared_key(
    store: &Store,
    setting: &str,
    entropy: &dyn Entropy,
) -> Result<Vec<u8>, StartError> {
    let mut new_key = [0; KEY_BYTES];
    entropy.fill(&mut new_key);
    let key = store
        .get_or_insert_setting(setting, &BASE64.encode(&new_key))
        .await
        .map_err(|error| database_error(&error))?;
    BASE64
        .decode(key.as_bytes())
        .map_err(|_| invalid_setting_error(setting))
}

async fn load_sign_in_sealer(store: &Store, entropy: &dyn Entropy) -> Result<Sealer, StartError> {
    let key = load_shared_key(store, ATTEMPT_KEY_SETTING, entropy).await?;
    Sealer::new(&key).ok_or_else(|| invalid_setting_error(ATTEMPT_KEY_SETTING))
}

fn invalid_setting_error(setting: &str) -> StartError {
    StartError(format!("the setting {setting} in the database is invalid"))
}

/// Opens the index. Also returns the reason to rebuild it, if it is missing, corrupt or has another schema. An index
/// of another database is removed, because it must never be served. If the index has events that this database lacks,
/// the database is probably older or the wrong one, so the start fails until an operator accepts the database.
async fn open_index(
    config: &Config,
    store: &Store,
    entropy: &dyn Entropy,
    purpose: StartPurpose,
) -> Result<(Index, Option<String>), StartError> {
    let to_start_error = |error: StoreError| database_error(&error);
    let mut new_id_bytes = [0; 16];
    entropy.fill(&mut new_id_bytes);
    let database_id = store
        .get_or_insert_setting(DATABASE_ID_SETTING, &BASE64.encode(&new_id_bytes))
        .await
        .map_err(to_start_error)?;
    let highest_seq = events::highest_event_seq(store)
        .await
        .map_err(to_start_error)?;
    let owner_file = config.store.data_dir.join("index-of");
    let is_foreign = std::fs::read_to_string(&owner_file).ok().as_deref() != Some(&database_id);
    let (mut index, mut opened) = try_open_index(config)?;
    let ahead = match opened {
        IndexOpenResult::Ready { applied_seq } if applied_seq > highest_seq => Some(applied_seq),
        _ => None,
    };
    if let Some(applied) = ahead
        && purpose == StartPurpose::Serve
    {
        // The operator may now replace the database file. No write-ahead log may be left, because SQLite would apply
        // it to the new file.
        close_store(store).await;
        return Err(StartError(index_ahead_message(
            config,
            applied,
            highest_seq,
        )));
    }
    if is_foreign || ahead.is_some() {
        drop(index);
        remove_index(config)?;
        std::fs::write(&owner_file, &database_id).map_err(|error| {
            StartError(format!(
                "{} cannot be written: {error}",
                owner_file.display()
            ))
        })?;
        (index, opened) = try_open_index(config)?;
    }
    let IndexOpenResult::NeedsRebuild { reason } = opened else {
        let has_erased_cards = config.erased_cards_marker().exists();
        let reason = || "its files may contain erased cards".to_owned();
        return Ok((index, has_erased_cards.then(reason)));
    };
    if !agents::agents_page_by_id(store, None, 1)
        .await
        .map_err(to_start_error)?
        .is_empty()
    {
        return Ok((index, Some(reason)));
    }
    // The database is empty, so the empty index is already complete.
    index
        .begin_rebuild()
        .and_then(|rebuild| rebuild.finish(highest_seq))
        .map_err(|error| StartError(format!("the index cannot be created: {error}")))?;
    Ok((index, None))
}

fn index_ahead_message(config: &Config, applied: i64, highest: i64) -> String {
    format!(
        "the index {} contains events up to {applied}, but the database {} has events only up to {highest}: the \
         database is empty, an older copy or another registry's, or lost its last writes in a power failure; restore \
         the right database, or accept this one by running `a2a-registry reindex`",
        config.index_dir().display(),
        redacted_database_url(config)
    )
}

fn try_open_index(config: &Config) -> Result<(Index, IndexOpenResult), StartError> {
    let index_config = IndexConfig {
        writer_memory: config.search.writer_megabytes * 1024 * 1024,
        ..IndexConfig::default()
    };
    Index::open(&config.index_dir(), index_config)
        .map_err(|error| StartError(format!("the index cannot be opened: {error}")))
}

pub(crate) fn remove_index(config: &Config) -> Result<(), StartError> {
    match std::fs::remove_dir_all(config.index_dir()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StartError(format!(
            "the old index {} cannot be removed: {error}",
            config.index_dir().display()
        ))),
        _ => Ok(()),
    }
}
