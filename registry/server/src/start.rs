//! Starts the registry: opens data folder, database and index, and builds the context.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_registry_core::accounts::bootstrap;
use a2a_registry_core::accounts::reserved_names::{RESERVED_NAME, reserved_name_holders};
use a2a_registry_core::admission::rules_changed::hide_forbidden;
use a2a_registry_core::config::{Config, DatabaseUrl, SynchronousConfig};
use a2a_registry_core::context::{Context, Wake};
use a2a_registry_core::data_dir::DataDir;
use a2a_registry_core::error::{ErrorKind, StartError};
use a2a_registry_core::memory::agents::{AgentCache, READ_AGAIN_AFTER};
use a2a_registry_core::memory::cards::CardCache;
use a2a_registry_core::memory::changes::Changes;
use a2a_registry_core::memory::database::{DatabaseContact, DiskState};
use a2a_registry_core::memory::dry_runs::DryRuns;
use a2a_registry_core::memory::federation::FederationMemory;
use a2a_registry_core::memory::lints::LintPlaces;
use a2a_registry_core::memory::meanings::Meanings;
use a2a_registry_core::memory::outage::Outage;
use a2a_registry_core::memory::own_agent::OwnAgent;
use a2a_registry_core::memory::policies::Policies;
use a2a_registry_core::memory::refusals::Refusals;
use a2a_registry_core::memory::rules_progress::RulesProgress;
use a2a_registry_core::memory::searches::SearchCache;
use a2a_registry_core::memory::stream::VisitStream;
use a2a_registry_core::memory::token_uses::TokenUses;
use a2a_registry_core::network::Network;
use a2a_registry_core::paging::Signer;
use a2a_registry_core::policy_sets::{CompiledSets, newest_set};
use a2a_registry_core::providers::Providers;
use a2a_registry_core::sealing::{KEY_BYTES, Sealer};
use a2a_registry_core::search::indexing::{hear_all, remove_undecided};
use a2a_registry_domain::admission_rules::Rules;
use a2a_registry_domain::ids::{Entropy, new_id};
use a2a_registry_http::a2a_agent::keys::sign_own_card;
use a2a_registry_search::{Index, IndexConfig, Opened};
use a2a_registry_store::{Store, StoreError, StoreOptions, Synchronous, agents, events};
use data_encoding::BASE64;

use crate::group_selection::check_selected_groups;

/// The environment variable with an admin token that the operator chose.
pub const BOOTSTRAP_TOKEN: &str = "A2A_REGISTRY_BOOTSTRAP_TOKEN";
/// The environment variable with the name of a file that holds that token instead.
pub const BOOTSTRAP_TOKEN_FILE: &str = "A2A_REGISTRY_BOOTSTRAP_TOKEN_FILE";
/// The setting that holds the key of page tokens.
const PAGE_KEY: &str = "page_token_key";
/// The setting that holds the key of attempts to sign in.
const ATTEMPT_KEY: &str = "sign_in_attempt_key";
/// The setting that identifies a database.
const IDENTITY: &str = "identity";
/// How often a start tries again to hide what the rules may forbid, after a deadlock with a write of another process.
const HIDE_AGAIN: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartPurpose {
    /// Creates a missing folder and database, and refuses an index that is ahead of the database.
    Serve,
    /// Rebuilds the index from an existing database, whatever the present index contains.
    Reindex,
}

#[derive(Debug)]
pub struct Started {
    pub context: Arc<Context>,
    /// The admin token, if this start has made one. It is shown once.
    pub admin_token: Option<String>,
    pub rebuild: Option<String>,
}

/// Locks the data folder, opens database and index, and builds the context. No job runs yet. `bootstrap_token` is
/// the admin token that the operator chose, of at least 32 characters.
pub async fn start_registry(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    network: Network,
    bootstrap_token: Option<&str>,
) -> Result<Started, StartError> {
    let purpose = StartPurpose::Serve;
    let (context, rebuild) = assemble_context(config, clock, entropy, network, purpose).await?;
    check_selected_groups(&context).await?;
    if !context.store.is_postgres() {
        // No other process uses this database, so any lease belongs to a process that was killed. If it were kept,
        // its domain would wait until the lease expires, minutes from now. This is the first write of all: if the
        // file is not writable, the error names the file.
        context.store.visits_end_leases().await.map_err(|error| {
            let database = shown_url(&context.config);
            StartError(format!("the database {database} cannot be used: {error}"))
        })?;
    }
    let admin_token = bootstrap::bootstrap(
        &context.store,
        bootstrap_token,
        context.now(),
        context.entropy.as_ref(),
    )
    .await?;
    let reserved = reserved_name_holders(&context.store).await;
    for holder in reserved.map_err(|error| database_failed(&error))? {
        tracing::warn!(holder, "{RESERVED_NAME}");
    }
    hide_before_serving(&context).await?;
    sign_own_card(&context).await?;
    let finished = store_options(&context.config).finish_first_start();
    finished.map_err(|error| database_failed(&error))?;
    Ok(Started {
        context: Arc::new(context),
        admin_token,
        rebuild,
    })
}

/// Locks the data folder, and opens database and index without changing their content. Returns the reason to
/// rebuild the index, if any.
pub(crate) async fn assemble_context(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    network: Network,
    purpose: StartPurpose,
) -> Result<(Context, Option<String>), StartError> {
    let (data_dir, store) = open_store(&config, purpose).await?;
    let signer = Signer::new(&shared_key(&store, PAGE_KEY, entropy.as_ref()).await?);
    let sealer = attempt_sealer(&store, entropy.as_ref()).await?;
    let (index, rebuild) = open_index(&config, &store, entropy.as_ref(), purpose).await?;
    let noted = noted_before(&store, &index).await?;
    let rules = rules_of(&config);
    let policies = policies_of(&store, &rules).await?;
    let outage = Outage::kept(&store, clock.now().into())
        .await
        .map_err(|error| database_failed(&error))?;
    let context = Context {
        providers: Providers::new(&config, network.identity_fetcher.as_ref(), &clock)?,
        network,
        cards: CardCache::new(config.limits.card_cache_megabytes),
        agents: AgentCache::new(
            config.limits.card_cache_megabytes / 2,
            store.is_postgres().then_some(READ_AGAIN_AFTER),
        ),
        searches: SearchCache::new(config.search.cache_megabytes),
        lints: LintPlaces::default(),
        token_uses: TokenUses::default(),
        refusals: Refusals::default(),
        dry_runs: DryRuns::default(),
        federation: FederationMemory::default(),
        meanings: Meanings::new(Duration::from_millis(config.search.embed_timeout)),
        heard: DatabaseContact::new(clock.monotonic()),
        noted: AtomicI64::new(noted),
        disk: DiskState::default(),
        published: tokio::sync::Mutex::default(),
        index_asked: tokio::sync::Mutex::default(),
        stream: VisitStream::new(&config.crawler, clock.now(), outage),
        changes: Changes::default(),
        wake: Wake::default(),
        rules,
        rules_progress: RulesProgress::new(new_id(clock.now().into(), entropy.as_ref())),
        policies,
        own_agent: OwnAgent::default(),
        signer,
        sealer,
        store,
        index,
        clock,
        entropy,
        config,
        _data_dir: data_dir,
    };
    Ok((context, rebuild))
}

/// Hides, before any request is answered, what the rules of this process may forbid, and what was hidden since the last
/// event that the index has applied: a process that was killed has decided more than its index shows.
async fn hide_before_serving(context: &Context) -> Result<(), StartError> {
    let mut left = HIDE_AGAIN;
    let undecided = loop {
        match hide_forbidden(context).await {
            // Another process is writing many of the same rows, and PostgreSQL has ended one of the two writes.
            Err(error) if error.kind == ErrorKind::Conflict && left > 0 => left -= 1,
            hidden => break hidden,
        }
    };
    let undecided = undecided.map_err(|error| {
        let reason = error.internal.unwrap_or(error.public);
        StartError(format!("the rules could not be applied: {reason}"))
    })?;
    let removed = remove_undecided(context, undecided).await;
    removed.map_err(|error| {
        StartError(format!(
            "the index {} cannot hide what the rules may forbid: {error}; remove that folder, and the next start builds it anew",
            context.config.index_dir().display()
        ))
    })?;
    hear_all(context).await.map_err(|error| {
        StartError(format!(
            "the events that the index lacks cannot be read: {error}"
        ))
    })
}

/// Closes the database.
pub async fn close(store: &Store) {
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
        let database = shown_url(config);
        StartError(format!("the database {database} cannot be used: {error}"))
    })?;
    // A file that this start has created could not be locked before.
    let locked = file.map_or(Ok(()), |file| data_dir.lock_database(&file));
    locked.map_err(|error| StartError(error.to_string()))?;
    Ok((data_dir, store))
}

fn rules_of(config: &Config) -> Rules {
    let governance = &config.governance;
    Rules {
        deny_domains: governance.deny_domains.clone(),
        allow_domains: governance.allow_domains.clone(),
        approve_all: governance.approve_all,
    }
}

/// The newest policy set. Whether the index has evaluated all agents under it is checked when it is followed.
async fn policies_of(store: &Store, rules: &Rules) -> Result<Policies, StartError> {
    let compiled = CompiledSets::default();
    let newest = newest_set(&compiled, store, rules).await.map_err(|error| {
        let reason = error.internal.unwrap_or(error.public);
        StartError(format!("the policies cannot be used: {reason}"))
    })?;
    Ok(Policies::new(newest, compiled, true))
}

/// The number of the last event at this start. Caches are empty, so earlier events matter only to the index.
async fn noted_before(store: &Store, index: &Index) -> Result<i64, StartError> {
    if !index.is_missing() {
        return Ok(index.applied_seq());
    }
    events::highest_seq(store)
        .await
        .map_err(|error| database_failed(&error))
}

fn database_failed(error: &StoreError) -> StartError {
    StartError(format!("the database failed: {error}"))
}

pub(crate) fn store_options(config: &Config) -> StoreOptions {
    StoreOptions {
        url: config.database_url(),
        cache_megabytes: config.store.sqlite_cache_megabytes,
        synchronous: match config.store.synchronous {
            SynchronousConfig::Normal => Synchronous::Normal,
            SynchronousConfig::Full => Synchronous::Full,
        },
    }
}

/// The database's URL without its password.
pub(crate) fn shown_url(config: &Config) -> DatabaseUrl {
    config.database_url().into()
}

/// The key that this setting holds for all replicas; the first one to start generates it.
async fn shared_key(
    store: &Store,
    setting: &str,
    entropy: &dyn Entropy,
) -> Result<Vec<u8>, StartError> {
    let mut fresh = [0; KEY_BYTES];
    entropy.fill(&mut fresh);
    let key = store
        .setting_get_or_put(setting, &BASE64.encode(&fresh))
        .await
        .map_err(|error| database_failed(&error))?;
    BASE64
        .decode(key.as_bytes())
        .map_err(|_| setting_invalid(setting))
}

async fn attempt_sealer(store: &Store, entropy: &dyn Entropy) -> Result<Sealer, StartError> {
    let key = shared_key(store, ATTEMPT_KEY, entropy).await?;
    Sealer::new(&key).ok_or_else(|| setting_invalid(ATTEMPT_KEY))
}

fn setting_invalid(setting: &str) -> StartError {
    StartError(format!("the setting {setting} in the database is invalid"))
}

/// Opens the index; returns the reason to rebuild it, if it is missing, corrupt or has another schema. An index of
/// another database is removed: it must never be served. One with events that this database does not have is a sign
/// that the database is an older or the wrong one, so the start is refused until an operator accepts the database.
async fn open_index(
    config: &Config,
    store: &Store,
    entropy: &dyn Entropy,
    purpose: StartPurpose,
) -> Result<(Index, Option<String>), StartError> {
    let failed = |error: StoreError| database_failed(&error);
    let mut fresh = [0; 16];
    entropy.fill(&mut fresh);
    let identity = store
        .setting_get_or_put(IDENTITY, &BASE64.encode(&fresh))
        .await
        .map_err(failed)?;
    let highest = events::highest_seq(store).await.map_err(failed)?;
    let owner = config.store.data_dir.join("index-of");
    let is_foreign = std::fs::read_to_string(&owner).ok().as_deref() != Some(&identity);
    let (mut index, mut opened) = index_at(config)?;
    let ahead = match opened {
        Opened::Ready { applied_seq } if applied_seq > highest => Some(applied_seq),
        _ => None,
    };
    if let Some(applied) = ahead
        && purpose == StartPurpose::Serve
    {
        // An operator may now put another file in the database's place. No log may stay beside it, because SQLite would
        // apply it to that file.
        close(store).await;
        return Err(StartError(ahead_of_database(config, applied, highest)));
    }
    if is_foreign || ahead.is_some() {
        drop(index);
        remove_index(config)?;
        std::fs::write(&owner, &identity).map_err(|error| {
            StartError(format!("{} cannot be written: {error}", owner.display()))
        })?;
        (index, opened) = index_at(config)?;
    }
    let Opened::Rebuild { reason } = opened else {
        return Ok((index, None));
    };
    if !agents::agents_walk(store, None, 1)
        .await
        .map_err(failed)?
        .is_empty()
    {
        return Ok((index, Some(reason)));
    }
    // The database is empty, so the empty index is complete at once.
    index
        .begin_rebuild()
        .and_then(|rebuild| rebuild.finish(highest))
        .map_err(|error| StartError(format!("the index cannot be made: {error}")))?;
    Ok((index, None))
}

fn ahead_of_database(config: &Config, applied: i64, highest: i64) -> String {
    format!(
        "the index {} contains events up to {applied}, but the database {} only has events up to {highest}: it is empty, an older copy or another registry's, or it lost its last writes in a power failure; put the right database back, or accept this one by running `a2a-registry reindex`",
        config.index_dir().display(),
        shown_url(config)
    )
}

fn index_at(config: &Config) -> Result<(Index, Opened), StartError> {
    let index_config = IndexConfig {
        writer_memory: config.search.writer_megabytes * 1024 * 1024,
        ..IndexConfig::default()
    };
    Index::open(&config.index_dir(), index_config)
        .map_err(|error| StartError(format!("the index cannot be opened: {error}")))
}

fn remove_index(config: &Config) -> Result<(), StartError> {
    match std::fs::remove_dir_all(config.index_dir()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StartError(format!(
            "the old index {} cannot be removed: {error}",
            config.index_dir().display()
        ))),
        _ => Ok(()),
    }
}
