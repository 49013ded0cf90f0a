//! Brings models to every agent, each at its own pace.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_embed::Embedder;
use governor::{Quota, RateLimiter};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::commit::publish::event_signal;
use crate::context::Context;
use crate::error::AppError;
use crate::meaning::embedding::{
    Embedding, Step, embedding_open, embedding_serve, embedding_step, models_forget_but,
    vectors_left_over,
};
use crate::meaning::models;

/// How often the database is asked for events of other processes where nothing has called.
const POLL: Duration = Duration::from_secs(1);
/// How often the data folder is looked at for another model.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// How long to wait after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// How often vectors of models that nobody uses any more are looked for.
const FORGOTTEN_EVERY: Duration = Duration::from_secs(3600);
/// Agents between two lines in the log while a model comes to all of them.
const TOLD_EVERY: u64 = 1000;

/// The models of a process.
#[derive(Debug, Clone)]
pub struct Embedders {
    /// The one that is wanted.
    pub wanted: Arc<dyn Embedder>,
    /// The one before, which serves until the wanted one has come to every agent.
    pub former: Option<Arc<dyn Embedder>>,
}

/// Which models a process works with.
#[derive(Debug, Clone, Default)]
pub enum Models {
    /// None: searches go by words.
    #[default]
    None,
    /// Those that configuration and data folder name, if they name any.
    Configured,
    /// These.
    Given(Embedders),
}

/// Works on every model until it is cancelled; nothing where there are none.
pub(crate) fn start(
    context: &Arc<Context>,
    models: Models,
    cancel: &CancellationToken,
) -> Option<JoinHandle<()>> {
    let (context, cancel) = (Arc::clone(context), cancel.clone());
    if let Err(error) = vectors_left_over(&context) {
        tracing::warn!(%error, "vectors of an earlier process stay in the data folder");
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

/// Works on the models that configuration and data folder name, and on others once the data folder names others: a model
/// that is installed beside this process takes effect here.
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
            model = another => tracing::info!(?model, "another model was installed and is taken up"),
        }
    }
}

/// Opens the configured models, as often as it takes.
async fn open(context: &Context) -> Option<Embedders> {
    loop {
        match models::configured(context).await {
            Ok(embedders) => {
                if embedders.is_none() {
                    tracing::info!(
                        "searches go by words; `a2a-registry model install FOLDER` has them go by meaning too"
                    );
                }
                return embedders;
            }
            Err(error) => {
                tracing::warn!(
                    error,
                    "searches go by words alone; the model is tried again"
                );
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Works on the wanted model, and on the one before until the wanted one takes over.
async fn work_on_all(context: &Arc<Context>, embedders: Embedders) {
    let Embedders { wanted, former } = embedders;
    take_over(context, &wanted, former).await;
}

/// Works on the wanted model for as long as it is let; on the one before too, until the wanted one has come to every
/// agent.
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
        // Dropped with this future, it ends too.
        let work = AbortOnDropHandle::new(work);
        embed(context, &mut embedding, Embedding::is_complete).await;
        work.abort();
        // Only when it has ended can it no longer say that searches go by its model.
        let _ = work.await;
        embedding_serve(context, &embedding);
    }
    embed(context, &mut embedding, Embedding::is_complete).await;
    tracing::info!(model = embedding.name(), "searches go by meaning");
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

/// Takes up a model, as often as it takes.
async fn open_embedding(context: &Context, embedder: &Arc<dyn Embedder>) -> Embedding {
    loop {
        match embedding_open(context, Arc::clone(embedder)).await {
            Ok(embedding) => return embedding,
            Err(error) => failed(error).await,
        }
    }
}

/// Does what a model has to do until `enough`.
async fn embed(context: &Context, embedding: &mut Embedding, enough: impl Fn(&Embedding) -> bool) {
    let mut signal = event_signal(context);
    let pace = NonZeroU32::new(context.config().search.embed_rate)
        .map(|rate| RateLimiter::direct(Quota::per_second(rate)));
    let (mut made, mut told) = (0, 0);
    while !enough(embedding) {
        match embedding_step(context, embedding).await {
            Ok(Step::More(count)) => {
                made += u64::from(count);
                if made >= told + TOLD_EVERY {
                    told = made;
                    tracing::info!(model = embedding.name(), made, "making vectors of agents");
                }
                if let Some(pace) = &pace {
                    for _ in 0..count {
                        pace.until_ready().await;
                    }
                }
            }
            Ok(Step::Done) => {
                tokio::select! {
                    _ = signal.changed() => {}
                    () = tokio::time::sleep(POLL) => {}
                }
            }
            Err(error) => failed(error).await,
        }
    }
}

/// Says what went wrong, and waits before it is tried again.
async fn failed(error: AppError) {
    let error = error.internal.unwrap_or(error.public);
    tracing::warn!(error, "vectors are not made; it is tried again");
    tokio::time::sleep(PAUSE).await;
}
