//! The embedding job: computes vectors for every model of this process, each at its own pace.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_embed::Embedder;
use governor::{Quota, RateLimiter};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::context::Context;
use crate::error::AppError;
use crate::meaning::embedding::{
    Embedding, EmbeddingStep, embedding_open, embedding_serve, embedding_step, models_forget_but,
    vectors_left_over,
};
use crate::meaning::models::{self, Embedders, Models};

/// How often the database is polled for events of other processes.
const POLL: Duration = Duration::from_secs(1);
/// How often the data folder is checked for another model.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(10);
/// How often the vectors of unused models are deleted.
const FORGOTTEN_EVERY: Duration = Duration::from_secs(3600);
/// Agents between two progress lines in the log.
const LOG_EVERY: u64 = 1000;

/// Runs every model until it is cancelled; returns at once without models.
pub fn start(
    context: &Arc<Context>,
    models: Models,
    cancel: &CancellationToken,
) -> Option<JoinHandle<()>> {
    let (context, cancel) = (Arc::clone(context), cancel.clone());
    if let Err(error) = vectors_left_over(&context) {
        tracing::warn!(%error, "the vector files of an earlier process could not be removed from the data folder");
    }
    match models {
        Models::None => None,
        Models::Given(embedders) => Some(tokio::spawn(async move {
            let work = work_on_all(&context, embedders);
            cancel.run_until_cancelled(work).await;
        })),
        Models::Configured => Some(tokio::spawn(async move {
            let work = work_on_what_is_in_use(&context);
            cancel.run_until_cancelled(work).await;
        })),
    }
}

/// Runs the models of configuration and data folder, and changes to others once the data folder names them: a model
/// installed while this process runs takes effect.
async fn work_on_what_is_in_use(context: &Arc<Context>) {
    loop {
        let begun_with = models::in_use(context);
        let work = async {
            if let Some(embedders) = open(context).await {
                work_on_all(context, embedders).await;
            }
            std::future::pending::<()>().await;
        };
        let another = async {
            loop {
                tokio::time::sleep(LOOKED_EVERY).await;
                let now = models::in_use(context);
                if now.is_some() && now != begun_with {
                    return now;
                }
            }
        };
        tokio::select! {
            () = work => {}
            model = another => tracing::info!(?model, "another model was installed; its vectors are computed"),
        }
    }
}

/// Opens the configured models, and retries until it succeeds.
async fn open(context: &Context) -> Option<Embedders> {
    loop {
        match models::configured(context).await {
            Ok(embedders) => {
                if embedders.is_none() {
                    tracing::info!(
                        "no sentence encoder is installed, so searches are full text only; `a2a-registry model install FOLDER` adds semantic search"
                    );
                }
                return embedders;
            }
            Err(error) => {
                tracing::warn!(
                    error,
                    "the sentence encoder cannot be opened, so searches are full text only; it is tried again"
                );
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Runs the configured model, and the previous one until the configured one serves.
async fn work_on_all(context: &Arc<Context>, embedders: Embedders) {
    let Embedders { wanted, former } = embedders;
    take_over(context, &wanted, former).await;
}

/// Runs the configured model until it is cancelled, and the previous one until every agent has vectors of the
/// configured one.
async fn take_over(
    context: &Arc<Context>,
    wanted: &Arc<dyn Embedder>,
    former: Option<Arc<dyn Embedder>>,
) {
    let mut embedding = open_embedding(context, wanted).await;
    if let Some(former) = former.filter(|_| !embedding.is_complete()) {
        let work = tokio::spawn({
            let context = Arc::clone(context);
            async move {
                let mut embedding = open_embedding(&context, &former).await;
                embed(&context, &mut embedding, |_| false).await;
            }
        });
        // The previous model's task is cancelled when this future is dropped.
        let work = AbortOnDropHandle::new(work);
        embed(context, &mut embedding, Embedding::is_complete).await;
        work.abort();
        // Only when its task has ended can it no longer set its model as the serving one.
        let _ = work.await;
        embedding_serve(context, &embedding);
    }
    embed(context, &mut embedding, Embedding::is_complete).await;
    tracing::info!(model = embedding.name(), "semantic search is available");
    let kept = [embedding.model().to_owned()];
    loop {
        match models_forget_but(context, &kept).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => failed(error).await,
        }
        let again = context.uptime() + FORGOTTEN_EVERY;
        embed(context, &mut embedding, |_| context.uptime() >= again).await;
    }
}

/// Opens a model, and retries until it succeeds.
async fn open_embedding(context: &Context, embedder: &Arc<dyn Embedder>) -> Embedding {
    loop {
        match embedding_open(context, Arc::clone(embedder)).await {
            Ok(embedding) => return embedding,
            Err(error) => failed(error).await,
        }
    }
}

/// Runs the steps of a model until `enough`.
async fn embed(context: &Context, embedding: &mut Embedding, enough: impl Fn(&Embedding) -> bool) {
    let mut signal = context.event_signal();
    let pace = NonZeroU32::new(context.config().search.embed_rate)
        .map(|rate| RateLimiter::direct(Quota::per_second(rate)));
    let (mut made, mut logged) = (0, 0);
    while !enough(embedding) {
        match embedding_step(context, embedding).await {
            Ok(EmbeddingStep::More(count)) => {
                made += u64::from(count);
                if made >= logged + LOG_EVERY {
                    logged = made;
                    tracing::info!(
                        model = embedding.name(),
                        made,
                        "computing vectors of agents"
                    );
                }
                if let Some(pace) = &pace {
                    for _ in 0..count {
                        pace.until_ready().await;
                    }
                }
            }
            Ok(EmbeddingStep::Done) => {
                tokio::select! {
                    _ = signal.changed() => {}
                    () = tokio::time::sleep(POLL) => {}
                }
            }
            Err(error) => failed(error).await,
        }
    }
}

async fn failed(error: AppError) {
    let error = error.internal.unwrap_or(error.public);
    tracing::warn!(error, "vectors cannot be computed; it is tried again");
    tokio::time::sleep(PAUSE).await;
}
