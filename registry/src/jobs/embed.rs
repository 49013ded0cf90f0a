//! Brings models to every agent, each at its own pace.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::dns::Resolver;
use governor::{Quota, RateLimiter};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::models;
use crate::app::{App, AppError, Embedding, Step};
use crate::embed::Embedder;

/// How often the database is asked for events of other processes where nothing has called.
const POLL: Duration = Duration::from_secs(1);
/// How long to wait after a failure.
const PAUSE: Duration = Duration::from_secs(10);
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
pub(super) fn start(
    app: &Arc<App>,
    models: Models,
    resolver: &Arc<dyn Resolver>,
    cancel: &CancellationToken,
) -> Option<JoinHandle<()>> {
    let (app, resolver, cancel) = (Arc::clone(app), Arc::clone(resolver), cancel.clone());
    match models {
        Models::None => None,
        Models::Given(embedders) => Some(tokio::spawn(work_on_all(app, embedders, cancel))),
        Models::Configured => Some(tokio::spawn(async move {
            let opened = tokio::select! {
                () = cancel.cancelled() => return,
                opened = open(&app, &resolver) => opened,
            };
            if let Some(embedders) = opened {
                work_on_all(app, embedders, cancel).await;
            }
        })),
    }
}

/// Opens the configured models, as often as it takes.
async fn open(app: &App, resolver: &Arc<dyn Resolver>) -> Option<Embedders> {
    loop {
        match models::configured(app, resolver).await {
            Ok(embedders) => return embedders,
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
async fn work_on_all(app: Arc<App>, embedders: Embedders, cancel: CancellationToken) {
    let former = CancellationToken::new();
    let mut works = JoinSet::new();
    if let Some(embedder) = embedders.former {
        let (app, cancel, former) = (Arc::clone(&app), cancel.clone(), former.clone());
        works.spawn(async move {
            tokio::select! {
                () = former.cancelled() => {}
                () = work(&app, &embedder, &cancel, || {}) => {}
            }
        });
    }
    works.spawn(async move {
        work(&app, &embedders.wanted, &cancel, || former.cancel()).await;
    });
    works.join_all().await;
}

/// Works on one model; calls `complete` when it has come to every agent.
async fn work(
    app: &App,
    embedder: &Arc<dyn Embedder>,
    cancel: &CancellationToken,
    complete: impl Fn(),
) {
    while !cancel.is_cancelled() {
        let worked = tokio::select! {
            () = cancel.cancelled() => return,
            worked = work_on(app, embedder, &complete) => worked,
        };
        if let Err(error) = worked {
            let error = error.internal.unwrap_or(error.public);
            tracing::warn!(error, "vectors are not made; it is tried again");
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn work_on(
    app: &App,
    embedder: &Arc<dyn Embedder>,
    complete: &impl Fn(),
) -> Result<(), AppError> {
    let mut embedding = app.embedding_open(Arc::clone(embedder)).await?;
    let mut signal = app.event_signal();
    let pace = NonZeroU32::new(app.config().search.embed_rate)
        .map(|rate| RateLimiter::direct(Quota::per_second(rate)));
    let (mut made, mut told) = (0, 0);
    let mut was_complete = false;
    loop {
        if embedding.is_complete() && !was_complete {
            was_complete = true;
            complete();
            tracing::info!(
                model = embedder.model().name,
                made,
                "searches go by meaning"
            );
            forget_others(app, &embedding).await?;
        }
        match app.embedding_step(&mut embedding).await? {
            Step::More(count) => {
                made += u64::from(count);
                if made >= told + TOLD_EVERY {
                    told = made;
                    tracing::info!(
                        model = embedder.model().name,
                        made,
                        "making vectors of agents"
                    );
                }
                if let Some(pace) = &pace {
                    for _ in 0..count {
                        pace.until_ready().await;
                    }
                }
            }
            Step::Done => {
                tokio::select! {
                    _ = signal.changed() => {}
                    () = tokio::time::sleep(POLL) => {}
                }
            }
        }
    }
}

async fn forget_others(app: &App, embedding: &Embedding) -> Result<(), AppError> {
    let kept = [embedding.model().to_owned()];
    while app.models_forget_but(&kept).await? {}
    Ok(())
}
