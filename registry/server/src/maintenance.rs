//! Maintenance of a data folder and database that no server is using.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_registry_core::accounts::bootstrap;
use a2a_registry_core::accounts::reserved_names::{RESERVED_NAME_NOTICE, reserved_names_in_use};
use a2a_registry_core::config::Config;
use a2a_registry_core::config::secret_file::SECRETS_KEY_SETTING;
use a2a_registry_core::data_dir::DataDir;
use a2a_registry_core::embeddings::embedded_texts::LAYOUT_PREFIX;
use a2a_registry_core::error::StartError;
use a2a_registry_core::health::received_request::DATABASE_ID_SETTING;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::process_state::embedding_pace::EmbeddingPace;
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_core::secrets::key_file::read_key_file;
use a2a_registry_domain::identifiers::Entropy;
use a2a_registry_domain::timestamp::{MINUTE, SECOND, Timestamp};
use a2a_registry_store::settings::setting_value;
use a2a_registry_store::{
    SchemaState, Store, StoreError, StoreErrorKind, StoreOptions, agents, vectors, versions,
};
use serde::Serialize;
use uuid::Uuid;

use crate::secrets_key::{SecretsCheck, compare_with_key};
use crate::startup::{
    StartPurpose, assemble_context, close_store, redacted_database_url, store_options,
};

/// Replaces a lost bootstrap admin token, and returns the new one.
pub async fn reset_admin_token(
    config: &Config,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<String, StartError> {
    let _data_dir = lock_data_dir(config)?;
    let to_start_error = |error| database_unusable_error(config, &error);
    let opened = Store::open_existing(&store_options(config)).await;
    let store = opened.map_err(to_start_error)?;
    let token = bootstrap::reset_bootstrap_token(&store, clock.now().into(), entropy)
        .await
        .map_err(to_start_error)?;
    store.close().await.map_err(to_start_error)?;
    Ok(token)
}

/// Migrates the configured database, and returns the names of the applied migrations.
pub async fn migrate_database(config: &Config) -> Result<Vec<String>, StartError> {
    let options = store_options(config);
    // PostgreSQL has its own migration lock, so servers may keep running.
    let _data_dir = match options.url.starts_with("sqlite:") {
        true => lock_data_dir(config)?,
        false => None,
    };
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&options).await.map_err(to_start_error)?;
    let missing = store.pending_migrations().await.map_err(to_start_error)?;
    store.migrate().await.map_err(to_start_error)?;
    store.close().await.map_err(to_start_error)?;
    Ok(missing)
}

/// Rebuilds the index, and returns the number of agents in it.
pub async fn rebuild_index_offline(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<usize, StartError> {
    let network = NetworkAccess::offline(&config, Arc::clone(&clock))?;
    let purpose = StartPurpose::Reindex;
    let (context, _) = assemble_context(config, clock, entropy, network, purpose).await?;
    let result = rebuild_index(&context, || false).await;
    close_store(&context.store).await;
    match result {
        Ok(agents) => Ok(agents.unwrap_or(0)),
        Err(error) => Err(StartError(format!("the index could not be built: {error}"))),
    }
}

/// Checks that the database responds, without changing anything, and returns a status sentence.
pub async fn ping_database(config: &Config) -> Result<String, StartError> {
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&read_only_options(config))
        .await
        .map_err(to_start_error)?;
    store.ping().await.map_err(to_start_error)?;
    let state = store.schema_state().await.map_err(to_start_error)?;
    let engine = if store.is_postgres() {
        "PostgreSQL"
    } else {
        "SQLite"
    };
    store.close().await.map_err(to_start_error)?;
    match state {
        SchemaState::Known { pending } => Ok(match pending.len() {
            0 => format!("{engine} responds, and its schema is current"),
            count => format!("{engine} responds; {count} migrations will run at the next start"),
        }),
        SchemaState::Newer { migrations } => Ok(format!(
            "{engine} responds; a newer version has migrated it ({}), and this version can run beside it",
            migrations.join(", ")
        )),
        SchemaState::Incompatible { reason } => Err(to_start_error(StoreError::other(reason))),
    }
}

/// What distinguishes a database, and its clock.
#[derive(Debug, Clone, Default)]
pub struct DatabaseFacts {
    /// Identifier of the registry; `None` before its first start.
    pub registry_id: Option<String>,
    /// Seconds by which the clock of a database server is ahead of this one.
    pub clock_lead: Option<i64>,
}

/// Reads the facts of a database, without changing anything.
pub async fn read_database_facts(
    config: &Config,
    clock: &dyn Clock,
) -> Result<DatabaseFacts, StartError> {
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&read_only_options(config))
        .await
        .map_err(to_start_error)?;
    let server_clock = store.server_clock().await.map_err(to_start_error)?;
    let now = Timestamp::from(clock.now());
    // A database without a schema has no settings.
    let registry_id = setting_value(&store, DATABASE_ID_SETTING).await;
    store.close().await.map_err(to_start_error)?;
    Ok(DatabaseFacts {
        registry_id: registry_id.ok().flatten(),
        clock_lead: server_clock.map(|at| at.saturating_sub(now.0) / SECOND),
    })
}

/// Compares the key of stored secrets with what is sealed with it, without changing anything; a server may run at the
/// same time. That a database does not respond is the subject of another check.
pub async fn check_secrets(config: &Config) -> Result<SecretsCheck, StartError> {
    let path = config.secret_files().into_iter();
    let path = path.filter(|(setting, _)| setting == SECRETS_KEY_SETTING);
    let sealer = path.map(|(_, path)| read_key_file(&path)).next();
    let sealer = sealer.transpose()?;
    let no_secrets = SecretsCheck {
        has_key: sealer.is_some(),
        ..SecretsCheck::default()
    };
    let Ok(store) = Store::connect(&read_only_options(config)).await else {
        return Ok(no_secrets);
    };
    let checked = compare_with_key(&store, sealer.as_ref()).await;
    let closed = store.close().await;
    closed.map_err(|error| database_unusable_error(config, &error))?;
    // A database that is not migrated yet has no secrets.
    Ok(checked.unwrap_or(no_secrets))
}

/// Number of cards read at once for verification.
const VERIFY_BATCH_SIZE: u64 = 500;

/// Maximum number of versions named for a damaged card.
const MAX_VERSIONS_NAMED: u64 = 10;

#[derive(Debug, Clone, Default)]
pub struct CardVerification {
    pub checked: u64,
    pub damaged: u64,
    /// First damaged cards, by digest.
    pub named_damaged: Vec<DamagedCard>,
}

#[derive(Debug, Clone)]
pub struct DamagedCard {
    /// Digest under which the bytes are stored.
    pub digest: String,
    /// First versions with this digest, each with its agent.
    pub versions: Vec<(Uuid, Uuid)>,
}

/// Hashes every stored card without changing anything; a server may run at the same time. Names up to `max_named`
/// damaged cards, and calls `progress` with the number of checked cards and the total.
pub async fn verify_cards(
    config: &Config,
    max_named: usize,
    progress: impl FnMut(u64, u64),
) -> Result<CardVerification, StartError> {
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&read_only_options(config))
        .await
        .map_err(to_start_error)?;
    let verified = verify_card_bodies(&store, max_named, progress).await;
    store.close().await.map_err(to_start_error)?;
    verified.map_err(to_start_error)
}

async fn verify_card_bodies(
    store: &Store,
    max_named: usize,
    mut progress: impl FnMut(u64, u64),
) -> Result<CardVerification, StoreError> {
    let total = versions::body_count(store).await?;
    let mut verified = CardVerification::default();
    let mut after = String::new();
    loop {
        let page = versions::body_digests_after(store, &after, VERIFY_BATCH_SIZE).await?;
        let Some(last) = page.last() else {
            return Ok(verified);
        };
        after.clone_from(last);
        for digest in page {
            verified.checked += 1;
            match versions::body_by_digest(store, &digest).await {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), StoreErrorKind::DigestMismatch(_)) => {
                    verified.damaged += 1;
                    if verified.named_damaged.len() < max_named {
                        let versions = versions::versions_with_body(
                            store,
                            &digest,
                            Uuid::nil(),
                            MAX_VERSIONS_NAMED,
                        );
                        let versions = versions.await?;
                        verified
                            .named_damaged
                            .push(DamagedCard { digest, versions });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        progress(verified.checked, total.max(verified.checked));
    }
}

/// Finds accounts and groups with reserved names, each as a sentence; none in a database with an earlier schema.
pub async fn find_reserved_names(config: &Config) -> Result<Vec<String>, StartError> {
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&read_only_options(config))
        .await
        .map_err(to_start_error)?;
    let missing = store.pending_migrations().await.map_err(to_start_error)?;
    let names = match missing.is_empty() {
        true => reserved_names_in_use(&store)
            .await
            .map_err(to_start_error)?,
        false => Vec::new(),
    };
    store.close().await.map_err(to_start_error)?;
    let sentence = |holder: String| format!("{holder}: {RESERVED_NAME_NOTICE}");
    Ok(names.into_iter().map(sentence).collect())
}

/// A model whose first pass recorded no work for this long is not being worked on.
const STALLED_AFTER: i64 = MINUTE;

#[derive(Debug, Clone, Default)]
pub struct EmbeddingProgress {
    /// Number of agents that are to have vectors.
    pub agents: u64,
    pub models: Vec<ModelEmbeddingProgress>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ModelEmbeddingProgress {
    #[serde(skip)]
    pub id: String,
    /// Number of agents whose vectors are current.
    pub embedded: u64,
    /// Whether every agent has its vectors, so that searches can use the encoder.
    pub complete: bool,
    /// How fast a server computes them; `None` if they are complete, or none does.
    pub pace: Option<EmbeddingPace>,
    /// Similarity cutoff, once calibrated.
    pub cutoff: Option<f64>,
}

/// Reads the progress of sentence encoders from the database, without changing anything.
pub async fn embedding_progress(
    config: &Config,
    clock: &dyn Clock,
) -> Result<EmbeddingProgress, StartError> {
    let to_start_error = |error| database_unusable_error(config, &error);
    let store = Store::connect(&read_only_options(config))
        .await
        .map_err(to_start_error)?;
    let progress = load_embedding_progress(&store, clock.now().into()).await;
    store.close().await.map_err(to_start_error)?;
    progress.map_err(to_start_error)
}

async fn load_embedding_progress(
    store: &Store,
    now: Timestamp,
) -> Result<EmbeddingProgress, StoreError> {
    let mut progress = EmbeddingProgress {
        agents: agents::indexed_agent_count(store).await?,
        models: Vec::new(),
    };
    for row in vectors::embedding_models(store).await? {
        let embedded = vectors::current_vector_count(store, &row.id, LAYOUT_PREFIX).await?;
        let is_renewed = embedded < vectors::vectorized_agent_count(store, &row.id).await?;
        let complete = row.completed_at.is_some();
        let is_stalled = now.0.saturating_sub(row.used_at) > STALLED_AFTER;
        // When the renewal of older vectors began is not recorded.
        let pace = match complete || is_stalled || is_renewed {
            true => None,
            false => EmbeddingPace::estimate(
                embedded,
                micros_between(row.created_at, row.used_at),
                progress.agents.saturating_sub(embedded),
            ),
        };
        progress.models.push(ModelEmbeddingProgress {
            embedded,
            complete,
            pace,
            cutoff: row.cutoff,
            id: row.id,
        });
    }
    Ok(progress)
}

/// The time between two timestamps in microseconds; zero if the second one is the earlier.
fn micros_between(from: i64, to: i64) -> Duration {
    Duration::from_micros(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// Options that open the database without creating a missing one.
pub(crate) fn read_only_options(config: &Config) -> StoreOptions {
    let mut options = store_options(config);
    options.url = options.url.replace("mode=rwc", "mode=ro");
    options
}

/// Locks an existing data folder and its database. With PostgreSQL the folder may be missing: then nothing in it can
/// be in use.
fn lock_data_dir(config: &Config) -> Result<Option<DataDir>, StartError> {
    let database = store_options(config).sqlite_file();
    let folder = &config.store.data_dir;
    if database.is_none() && !folder.exists() {
        return Ok(None);
    }
    let taken = DataDir::open_existing(folder, database.as_deref());
    taken
        .map(Some)
        .map_err(|error| StartError(error.to_string()))
}

pub(crate) fn database_unusable_error(config: &Config, error: &StoreError) -> StartError {
    StartError(format!(
        "the database {} cannot be used: {error}",
        redacted_database_url(config)
    ))
}
