//! Bringing a model to every agent: a walk over all of them first, then whatever happens to them.
//!
//! What is made is kept in the database, so a process that starts goes on where the last one was; each process holds
//! a copy for its own searches. Several processes may work on one model: whoever comes second finds what is made.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_domain::timestamp::{HOUR, MINUTE};
use a2a_registry_embed::{EmbedError, Embedder};
use a2a_registry_search::vectors::{VectorChange, Vectors, VectorsError, remove_left_over};
use a2a_registry_search::{SearchRequest, Sort};
use a2a_registry_store::entity::model;
use a2a_registry_store::{events, vectors as rows};
use uuid::Uuid;

use crate::agents::documents::{documents, documents_walk};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::meaning::calibration;
use crate::meaning::making::{Made, bring, kept, put};
use crate::memory::meanings::{Progress, Serving};

/// Agents of one step of the walk.
const WALK: u64 = 16;
/// Events of one step behind the walk.
const EVENTS: u64 = 200;
/// Agents of which are looked at in one step behind the walk.
const GROUP: usize = 16;
/// How often a model that is used says so.
const USED_EVERY: i64 = 10 * MINUTE;
/// For so long a model that another process uses is not dropped.
const DROPPED_AFTER: i64 = HOUR;
/// How long to wait after a calibration that came to nothing.
const CALIBRATED_AGAIN: Duration = Duration::from_secs(600);

/// A model on its way to every agent.
#[derive(Debug)]
pub struct Embedding {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) vectors: Arc<Vectors>,
    pub(crate) row: model::Model,
    /// The event up to which this process has seen what happened.
    applied: i64,
    /// Agents to which something has happened up to another event, and that event.
    waiting: Vec<Uuid>,
    up_to: i64,
    /// From when on it may be calibrated (again), as a time since this process started.
    calibrate_from: Duration,
}

/// What a step has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There may be more to do; for so many agents vectors were made.
    More(u32),
    /// Everything is done until something happens.
    Done,
}

impl Embedding {
    /// The id of the model.
    pub fn model(&self) -> &str {
        &self.row.id
    }

    /// What people call the model.
    pub fn name(&self) -> &str {
        &self.row.name
    }

    /// Whether it has come to every agent.
    pub fn is_complete(&self) -> bool {
        self.row.completed_at.is_some()
    }

    fn cutoff(&self) -> Option<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "a cosine")]
        self.row.cutoff.map(|cutoff| cutoff as f32)
    }
}

/// Takes up a model where it was left, with what the database holds of it.
///
/// # Errors
/// Where the database or the file of vectors fails.
pub async fn embedding_open(
    context: &Context,
    embedder: Arc<dyn Embedder>,
) -> Result<Embedding, AppError> {
    let info = embedder.model();
    let fresh = model::Model {
        id: info.id.clone(),
        name: info.name.clone(),
        dimensions: i32::try_from(info.dimensions).unwrap_or(i32::MAX),
        created_at: context.now().0,
        applied_seq: events::highest_seq(&context.store).await?,
        walked_to: None,
        completed_at: None,
        cutoff: None,
        used_at: context.now().0,
    };
    let dimensions = info.dimensions;
    let row = context.store.model_get_or_put(fresh).await?;
    context.store.model_use(&row.id, context.now().0).await?;
    let vectors = Arc::new(Vectors::create(&vectors_folder(context), dimensions)?);
    let mut after = None;
    loop {
        let some = rows::vectors_walk(&context.store, &row.id, after).await?;
        let Some(last) = some.last() else { break };
        after = Some(last.agent_id);
        put(
            &vectors,
            some.into_iter()
                .filter_map(|row| kept(row, dimensions))
                .collect(),
        )
        .await?;
    }
    let embedding = Embedding {
        applied: row.applied_seq,
        waiting: Vec::new(),
        up_to: row.applied_seq,
        calibrate_from: Duration::ZERO,
        embedder,
        vectors,
        row,
    };
    embedding_serve(context, &embedding);
    Ok(embedding)
}

/// Does the next part of what a model has to do.
///
/// # Errors
/// Where the database, the encoder or the file of vectors fails; the same part is tried again then.
pub async fn embedding_step(
    context: &Context,
    embedding: &mut Embedding,
) -> Result<Step, AppError> {
    if !embedding.is_complete() {
        return walk(context, embedding).await;
    }
    let enough = embedding.vectors.agents() >= calibration::FEWEST;
    if enough && embedding.row.cutoff.is_none() && embedding.calibrate_from <= context.uptime() {
        embedding.calibrate_from = context.uptime() + CALIBRATED_AGAIN;
        if calibrate(context, embedding).await? {
            embedding_serve(context, embedding);
        }
    }
    if embedding.vectors.is_wasteful() {
        *embedding = embedding_open(context, Arc::clone(&embedding.embedder)).await?;
    }
    follow(context, embedding).await
}

/// Removes what an earlier process has left where vectors are kept, before the first model is taken up.
///
/// # Errors
/// Where the folder cannot be read, or a file in it not be removed.
pub fn vectors_left_over(context: &Context) -> std::io::Result<()> {
    remove_left_over(&vectors_folder(context))
}

fn vectors_folder(context: &Context) -> PathBuf {
    context.config.store.data_dir.join("vectors")
}

/// The id of another model than this one that has come to every agent, the last one used.
pub async fn model_before(context: &Context, wanted: &str) -> Result<Option<String>, AppError> {
    let mut all = rows::models(&context.store).await?;
    all.retain(|row| row.id != wanted && row.completed_at.is_some());
    Ok(all.pop().map(|row| row.id))
}

/// Forgets another model than those named that nobody has used for an hour, a part of it; says whether there may be more to forget.
pub async fn models_forget_but(context: &Context, kept: &[String]) -> Result<bool, AppError> {
    context.meanings.forget_but(kept);
    let all = rows::models(&context.store).await?;
    let unused = context.now().plus(-DROPPED_AFTER).0;
    let old = |row: &model::Model| !kept.contains(&row.id) && row.used_at < unused;
    let Some(old) = all.into_iter().find(old) else {
        return Ok(false);
    };
    let write = context.store.write().await?;
    if write.model_forget(&old.id).await? {
        tracing::info!(
            model = old.name,
            "the vectors of another model were dropped"
        );
    }
    write.commit().await?;
    Ok(true)
}

async fn walk(context: &Context, embedding: &mut Embedding) -> Result<Step, AppError> {
    let (documents, last) = documents_walk(context, embedding.row.walked_to, WALK).await?;
    let made = bring(context, embedding, &documents).await?;
    let id = embedding.row.id.clone();
    let write = context.store.write().await?;
    let Some(kept) = write.model_locked(&id).await? else {
        return begin_anew(context, embedding).await;
    };
    // Another process may have ended its walk and gone on: what it has made since is newer.
    if kept.completed_at.is_none() {
        let rows = made.iter().map(|made| made.row(&id)).collect();
        write.vectors_put(rows).await?;
        match last {
            Some(last) => write.model_walked(&id, last).await?,
            None => write.model_completed(&id, context.now().0).await?,
        }
    }
    write.model_used(&id, context.now().0).await?;
    write.commit().await?;
    let count = u32::try_from(made.len()).unwrap_or(u32::MAX);
    put(
        &embedding.vectors,
        made.into_iter().map(Made::change).collect(),
    )
    .await?;
    match last {
        Some(last) => embedding.row.walked_to = Some(last),
        None => {
            embedding.row.completed_at = Some(context.now().0);
            embedding_serve(context, embedding);
        }
    }
    tell(context, embedding);
    Ok(Step::More(count))
}

/// Follows the events, some agents at a time: what is made is kept before the next are looked at.
async fn follow(context: &Context, embedding: &mut Embedding) -> Result<Step, AppError> {
    if embedding.waiting.is_empty() {
        let events = events::events_after(&context.store, embedding.applied, EVENTS).await?;
        let Some(last) = events.last().map(|event| event.seq) else {
            return rest(context, embedding).await;
        };
        embedding.waiting = events.iter().filter_map(|event| event.agent_id).collect();
        embedding.waiting.sort_unstable();
        embedding.waiting.dedup();
        embedding.up_to = last;
    }
    let left = embedding.waiting.len().saturating_sub(GROUP);
    let group = embedding.waiting.get(left..).unwrap_or_default().to_vec();
    let (documents, gone) = documents(context, &group).await?;
    let made = bring(context, embedding, &documents).await?;
    let id = embedding.row.id.clone();
    let write = context.store.write().await?;
    let Some(kept) = write.model_locked(&id).await? else {
        return begin_anew(context, embedding).await;
    };
    // Another process that has come further has kept what is newer.
    if kept.applied_seq < embedding.up_to {
        let rows = made.iter().map(|made| made.row(&id)).collect();
        write.vectors_put(rows).await?;
        write.vectors_forget(&id, &gone).await?;
        if left == 0 {
            write.model_applied(&id, embedding.up_to).await?;
        }
    }
    write.model_used(&id, context.now().0).await?;
    write.commit().await?;
    let count = u32::try_from(made.len()).unwrap_or(u32::MAX);
    let mut changes: Vec<VectorChange> = made.into_iter().map(Made::change).collect();
    changes.extend(gone.into_iter().map(|agent| (agent, None)));
    put(&embedding.vectors, changes).await?;
    embedding.waiting.truncate(left);
    if left == 0 {
        embedding.applied = embedding.up_to;
    }
    tell(context, embedding);
    Ok(Step::More(count))
}

/// Nothing to do: tells others now and then that the model is still used.
async fn rest(context: &Context, embedding: &mut Embedding) -> Result<Step, AppError> {
    let now = context.now();
    if now.0.saturating_sub(embedding.row.used_at) > USED_EVERY {
        let write = context.store.write().await?;
        write.model_used(&embedding.row.id, now.0).await?;
        write.commit().await?;
        embedding.row.used_at = now.0;
    }
    Ok(Step::Done)
}

/// The model is no longer known: another process, which has another one, has forgotten it.
async fn begin_anew(context: &Context, embedding: &mut Embedding) -> Result<Step, AppError> {
    *embedding = embedding_open(context, Arc::clone(&embedding.embedder)).await?;
    Ok(Step::More(0))
}

/// Works out how near agents have to be, where there are enough of them; says whether that is known now.
async fn calibrate(context: &Context, embedding: &mut Embedding) -> Result<bool, AppError> {
    let id = &embedding.row.id;
    // Only agents that anybody finds: the cutoff must tell of no others.
    let listed = SearchRequest {
        visible_to: Caller::default().labels(),
        sort: Sort::Newest,
        limit: calibration::SAMPLE,
        ..SearchRequest::default()
    };
    let index = context.index.clone();
    let sample = tokio::task::spawn_blocking(move || index.search(&listed)).await;
    let sample = sample.map_err(|error| AppError::internal(error.to_string()))??;
    let sample: Vec<Uuid> = sample.hits.into_iter().map(|hit| hit.id).collect();
    let (documents, _) = documents(context, &sample).await?;
    let found = calibration::cutoff(&embedding.embedder, &embedding.vectors, &documents).await;
    let cutoff = match found {
        Ok(Some(cutoff)) => cutoff,
        Ok(None) => return Ok(false),
        Err(error) => {
            tracing::warn!(%error, "how near is near is worked out later");
            return Ok(false);
        }
    };
    let write = context.store.write().await?;
    // The first process decides for all.
    write.model_cutoff(id, f64::from(cutoff)).await?;
    let kept = write.model_locked(id).await?;
    write.commit().await?;
    embedding.row.cutoff = kept.and_then(|row| row.cutoff);
    Ok(embedding.row.cutoff.is_some())
}

/// Lets searches go by a model, where it has come to every agent.
pub fn embedding_serve(context: &Context, embedding: &Embedding) {
    if embedding.is_complete() {
        context.meanings.serving.store(Some(Arc::new(Serving {
            embedder: Arc::clone(&embedding.embedder),
            vectors: Arc::clone(&embedding.vectors),
            cutoff: embedding.cutoff().unwrap_or(calibration::UNKNOWN),
        })));
    }
    tell(context, embedding);
}

fn tell(context: &Context, embedding: &Embedding) {
    context.meanings.tell(Progress {
        model: embedding.row.id.clone(),
        name: embedding.row.name.clone(),
        agents: embedding.vectors.agents(),
        memory: embedding.vectors.size(),
        cutoff: embedding.cutoff(),
        serving: embedding.is_complete(),
    });
}

impl From<EmbedError> for AppError {
    fn from(error: EmbedError) -> Self {
        Self {
            internal: Some(error.to_string()),
            ..Self::unavailable("The encoder does not answer; try again later.", 60)
        }
    }
}

impl From<VectorsError> for AppError {
    fn from(error: VectorsError) -> Self {
        Self::internal(error.to_string())
    }
}
