//! The embedding job: computes vectors for every model of this process, each at its own pace.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_embed::Embedder;
use governor::{Quota, RateLimiter};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::context::AppContext;
use crate::embeddings::model_indexer::{
    EmbeddingStepResult, ModelIndexer, open_model_indexer, publish_model, purge_unused_models,
    remove_stale_vector_files, run_embedding_step,
};
use crate::embeddings::models::{self, ConfiguredEmbedders, ModelSource};
use crate::error::AppError;

/// How often the database is polled for events of other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often the data folder is checked for a newly installed model.
const MODEL_CHECK_INTERVAL: Duration = Duration::from_secs(1);
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// How often the vectors of unused models are deleted.
const PURGE_INTERVAL: Duration = Duration::from_secs(3600);
/// Number of agents between two progress lines in the log.
const LOG_INTERVAL_AGENTS: u64 = 1000;

/// Computes vectors for every model until cancelled; returns at once if there are no models.
pub fn start_embedding_job(
    context: &Arc<AppContext>,
    models: ModelSource,
    cancel: &CancellationToken,
) -> Option<JoinHandle<()>> {
    let (context, cancel) = (Arc::clone(context), cancel.clone());
    if let Err(error) = remove_stale_vector_files(&context) {
        tracing::warn!(%error, "cannot remove the vector files of an earlier process from the data folder");
    }
    match models {
        ModelSource::None => None,
        ModelSource::Given(embedders) => Some(tokio::spawn(async move {
            let work = run_embedders(&context, embedders);
            cancel.run_until_cancelled(work).await;
        })),
        ModelSource::Configured => Some(tokio::spawn(async move {
            let work = run_installed_models(&context);
            cancel.run_until_cancelled(work).await;
        })),
    }
}

/// Runs the models that configuration and data folder select, and switches when the data folder names another one: a
/// model installed while this process runs takes effect.
async fn run_installed_models(context: &Arc<AppContext>) {
    loop {
        let initial_model = models::installed_model_dir(context);
        let indexing = async {
            if let Some(embedders) = open_embedders_with_retry(context).await {
                run_embedders(context, embedders).await;
            }
            std::future::pending::<()>().await;
        };
        let model_change = async {
            loop {
                tokio::time::sleep(MODEL_CHECK_INTERVAL).await;
                let now = models::installed_model_dir(context);
                if now.is_some() && now != initial_model {
                    return now;
                }
            }
        };
        tokio::select! {
            () = indexing => {}
            model = model_change => tracing::info!(?model, "another model was installed; computing its vectors"),
        }
    }
}

/// Opens the configured models, and retries until it succeeds.
async fn open_embedders_with_retry(context: &AppContext) -> Option<ConfiguredEmbedders> {
    loop {
        match models::open_configured_models(context).await {
            Ok(embedders) => {
                if embedders.is_none() {
                    tracing::info!("search.model is \"off\", so searches are full text only");
                }
                return embedders;
            }
            Err(error) => {
                tracing::warn!(
                    error,
                    "cannot open the sentence encoder, so searches are full text only; retrying"
                );
            }
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Runs the configured model, and the previous one until the configured one serves.
async fn run_embedders(context: &Arc<AppContext>, embedders: ConfiguredEmbedders) {
    let ConfiguredEmbedders {
        configured: wanted,
        previous: former,
    } = embedders;
    run_and_switch_models(context, &wanted, former).await;
}

/// Runs the configured model until cancelled, and the previous one until every agent has vectors of the configured
/// model.
async fn run_and_switch_models(
    context: &Arc<AppContext>,
    configured: &Arc<dyn Embedder>,
    previous: Option<Arc<dyn Embedder>>,
) {
    let mut indexer = open_model_with_retry(context, configured).await;
    if let Some(former) = previous.filter(|_| !indexer.is_complete()) {
        let previous_task = tokio::spawn({
            let context = Arc::clone(context);
            async move {
                let mut embedding = open_model_with_retry(&context, &former).await;
                run_embedding_until(&context, &mut embedding, |_| false).await;
            }
        });
        // The previous model's task is cancelled when this future is dropped.
        let work = AbortOnDropHandle::new(previous_task);
        run_embedding_until(context, &mut indexer, ModelIndexer::is_complete).await;
        work.abort();
        // Wait for the task to end: until then it could still set its model as the serving one.
        let _ = work.await;
        publish_model(context, &indexer);
    }
    run_embedding_until(context, &mut indexer, ModelIndexer::is_complete).await;
    tracing::info!(model = indexer.name(), "semantic search is available");
    let kept = [indexer.model_id().to_owned()];
    loop {
        match purge_unused_models(context, &kept).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => log_and_pause(error).await,
        }
        let again = context.monotonic_time() + PURGE_INTERVAL;
        run_embedding_until(context, &mut indexer, |_| context.monotonic_time() >= again).await;
    }
}

/// Opens a model, and retries until it succeeds.
async fn open_model_with_retry(context: &AppContext, embedder: &Arc<dyn Embedder>) -> ModelIndexer {
    loop {
        match open_model_indexer(context, Arc::clone(embedder)).await {
            Ok(embedding) => return embedding,
            Err(error) => log_and_pause(error).await,
        }
    }
}

/// Runs the steps of a model until `is_done`.
async fn run_embedding_until(
    context: &AppContext,
    indexer: &mut ModelIndexer,
    is_done: impl Fn(&ModelIndexer) -> bool,
) {
    let mut signal = context.event_signal();
    let rate_limiter = NonZeroU32::new(context.config().search.embed_rate)
        .map(|rate| RateLimiter::direct(Quota::per_second(rate)));
    let (mut encoded, mut logged) = (0, 0);
    while !is_done(indexer) {
        match run_embedding_step(context, indexer).await {
            Ok(EmbeddingStepResult::Progress(count)) => {
                encoded += u64::from(count);
                if encoded >= logged + LOG_INTERVAL_AGENTS {
                    logged = encoded;
                    tracing::info!(
                        model = indexer.name(),
                        encoded,
                        "computing vectors of agents"
                    );
                }
                if let Some(pace) = &rate_limiter {
                    for _ in 0..count {
                        pace.until_ready().await;
                    }
                }
            }
            Ok(EmbeddingStepResult::Idle) => {
                tokio::select! {
                    _ = signal.changed() => {}
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                }
            }
            Err(error) => log_and_pause(error).await,
        }
    }
}

async fn log_and_pause(error: AppError) {
    let error = error.internal.unwrap_or(error.public);
    tracing::warn!(error, "cannot compute vectors; retrying");
    tokio::time::sleep(RETRY_DELAY).await;
}
