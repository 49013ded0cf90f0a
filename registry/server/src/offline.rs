//! What is done to a data folder and database that no server holds.

use std::sync::Arc;

use a2a_crawler::Clock;
use a2a_registry_domain::ids::Entropy;
use a2a_registry_store::{Store, StoreError, StoreOptions, agents, vectors};
use serde::Serialize;

use crate::accounts::tokens;
use crate::config::Config;
use crate::context::Context;
use crate::data_dir::DataDir;
use crate::error::StartError;
use crate::network::Network;
use crate::search::indexing::index_anew;
use crate::start::{shown_url, store_options};

/// Replaces a lost bootstrap admin token; answers the new one.
///
/// # Errors
/// Where the folder is taken or the database fails.
pub async fn reset_admin_token(
    config: &Config,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<String, StartError> {
    let _data_dir = take(config)?;
    let failed = |error| failed(config, &error);
    let store = Store::open(&store_options(config)).await.map_err(failed)?;
    let token = tokens::reset(&store, clock.now().into(), entropy)
        .await
        .map_err(failed)?;
    store.close().await.map_err(failed)?;
    Ok(token)
}

/// Brings the schema of the configured database up to date; answers the steps that were missing.
///
/// # Errors
/// Where the folder is taken, the database away, or a step fails.
pub async fn migrate(config: &Config) -> Result<Vec<String>, StartError> {
    let options = store_options(config);
    // PostgreSQL is migrated under a lock of its own, beside servers that run.
    let _data_dir = if options.url.starts_with("sqlite:") {
        Some(take(config)?)
    } else {
        None
    };
    let failed = |error| failed(config, &error);
    let store = Store::connect(&options).await.map_err(failed)?;
    let missing = store.migrations_pending().await.map_err(failed)?;
    store.migrate().await.map_err(failed)?;
    store.close().await.map_err(failed)?;
    Ok(missing)
}

/// Builds the index anew; answers how many agents it holds.
///
/// # Errors
/// Where the folder is taken, or database or index fail.
pub async fn reindex(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<usize, StartError> {
    let network = Network::none(&config, Arc::clone(&clock))?;
    let (context, _) = Context::assemble(config, clock, entropy, network).await?;
    let built = index_anew(&context, || false).await;
    context.close().await;
    match built {
        Ok(agents) => Ok(agents.unwrap_or(0)),
        Err(error) => Err(StartError(format!("the index could not be built: {error}"))),
    }
}

/// Asks the database for a sign of life without changing anything; answers what it is.
///
/// # Errors
/// Where it does not answer, or there is none yet.
pub async fn ping_database(config: &Config) -> Result<String, StartError> {
    let failed = |error| failed(config, &error);
    let store = Store::connect(&unchanged(config)).await.map_err(failed)?;
    store.ping().await.map_err(failed)?;
    let missing = store.migrations_pending().await.map_err(failed)?;
    let engine = if store.is_postgres() {
        "PostgreSQL"
    } else {
        "SQLite"
    };
    store.close().await.map_err(failed)?;
    Ok(match missing.len() {
        0 => format!("{engine} answers, with the schema of this program"),
        count => format!("{engine} answers; {count} migrations run at the next start"),
    })
}

/// How far sentence encoders have come, by what the database knows.
#[derive(Debug, Clone, Default)]
pub struct EmbeddingProgress {
    /// Agents that there are.
    pub agents: u64,
    /// The models that have begun.
    pub models: Vec<EmbeddedModel>,
}

/// How far one of them has come.
#[derive(Debug, Clone, Serialize)]
pub struct EmbeddedModel {
    /// Its id.
    #[serde(skip)]
    pub id: String,
    /// Agents that have vectors.
    pub embedded: u64,
    /// Whether it has seen every agent, so that searches can go by it.
    pub complete: bool,
    /// How near an agent has to be to match, once that is worked out.
    pub cutoff: Option<f64>,
}

/// Asks the database how far sentence encoders have come, without changing anything.
///
/// # Errors
/// Where it does not answer, or there is none yet.
pub async fn embedded(config: &Config) -> Result<EmbeddingProgress, StartError> {
    let failed = |error| failed(config, &error);
    let store = Store::connect(&unchanged(config)).await.map_err(failed)?;
    let known = known_of_models(&store).await;
    store.close().await.map_err(failed)?;
    known.map_err(failed)
}

async fn known_of_models(store: &Store) -> Result<EmbeddingProgress, StoreError> {
    let mut known = EmbeddingProgress {
        agents: agents::agents_count(store).await?,
        models: Vec::new(),
    };
    for row in vectors::models(store).await? {
        known.models.push(EmbeddedModel {
            embedded: vectors::vectors_count(store, &row.id).await?,
            complete: row.completed_at.is_some(),
            cutoff: row.cutoff,
            id: row.id,
        });
    }
    Ok(known)
}

/// How to open the database without making one that does not exist yet.
fn unchanged(config: &Config) -> StoreOptions {
    let mut options = store_options(config);
    options.url = options.url.replace("?mode=rwc", "?mode=ro");
    options
}

fn take(config: &Config) -> Result<DataDir, StartError> {
    let database = store_options(config).sqlite_file();
    DataDir::open(&config.store.data_dir, database.as_deref())
        .map_err(|error| StartError(error.to_string()))
}

fn failed(config: &Config, error: &StoreError) -> StartError {
    StartError(format!(
        "the database {} cannot be used: {error}",
        shown_url(config)
    ))
}
