//! Computes the vectors of all agents with a model: first in a walk over all agents, then following their events.
//!
//! Vectors are stored in the database, so that a new process continues where the last one stopped; each process holds a
//! copy for its own searches. Several processes may work on one model: the second one reads the vectors of the first.

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
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::meaning::calibration;
use crate::meaning::making::{EncodedAgent, bring, is_outdated, kept, put};
use crate::meaning::texts::LAYOUT;
use crate::memory::meanings::{ModelProgress, ServingModel};
use crate::visibility::caller::Caller;

/// Agents per step of the walk.
const WALK: u64 = 16;
/// Events per step after the walk.
const EVENTS: u64 = 200;
/// Maximum number of agents of those events per step.
const GROUP: usize = 16;
/// How often a process stores that it uses a model.
const USED_EVERY: i64 = 10 * MINUTE;
/// A model that no process has used for this long is deleted.
const DROPPED_AFTER: i64 = HOUR;
/// The pause after a calibration that failed or had too few agents.
const CALIBRATED_AGAIN: Duration = Duration::from_secs(600);

/// A model, and the progress of its vectors in this process.
#[derive(Debug)]
pub struct Embedding {
    pub embedder: Arc<dyn Embedder>,
    pub vectors: Arc<Vectors>,
    pub row: model::Model,
    /// The last event whose agents have vectors in this process.
    applied: i64,
    /// Agents of later events that wait for their vectors, up to the event `up_to`.
    waiting: Vec<Uuid>,
    up_to: i64,
    /// The earliest time of the next calibration, since this process started.
    calibrate_from: Duration,
    /// Whether there are vectors of another layout of the texts, which the walk replaces.
    outdated: bool,
    /// Whether every agent had such vectors: they serve until the walk ends.
    renewed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingStep {
    /// There may be more to do; the number of agents whose vectors were computed.
    More(u32),
    /// Nothing to do until the next event.
    Done,
}

impl Embedding {
    pub fn model(&self) -> &str {
        &self.row.id
    }

    pub fn name(&self) -> &str {
        &self.row.name
    }

    /// Whether every agent has its vectors.
    pub fn is_complete(&self) -> bool {
        self.row.completed_at.is_some()
    }

    fn cutoff(&self) -> Option<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "a cosine")]
        self.row.cutoff.map(|cutoff| cutoff as f32)
    }
}

/// Opens a model with the vectors and progress that the database holds.
pub async fn embedding_open(context: &Context, embedder: Arc<dyn Embedder>) -> Result<Embedding> {
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
    let mut row = context.store.model_get_or_put(fresh).await?;
    context.store.model_use(&row.id, context.now().0).await?;
    let vectors = Arc::new(Vectors::create(&vectors_folder(context), dimensions)?);
    let (mut after, mut outdated) = (None, false);
    loop {
        let some = rows::vectors_walk(&context.store, &row.id, after).await?;
        let Some(last) = some.last() else { break };
        after = Some(last.agent_id);
        outdated |= some.iter().any(is_outdated);
        put(
            &vectors,
            some.into_iter()
                .filter_map(|row| kept(row, dimensions))
                .collect(),
        )
        .await?;
    }
    // The previous vectors are searched until all are renewed.
    let renewed = outdated && row.completed_at.is_some();
    if outdated {
        row = context.store.model_walk_again(row).await?;
    }
    let embedding = Embedding {
        applied: row.applied_seq,
        waiting: Vec::new(),
        up_to: row.applied_seq,
        calibrate_from: Duration::ZERO,
        outdated,
        renewed,
        embedder,
        vectors,
        row,
    };
    embedding_serve(context, &embedding);
    Ok(embedding)
}

/// Runs the next step of a model. If it fails, the next call runs the same step.
pub async fn embedding_step(context: &Context, embedding: &mut Embedding) -> Result<EmbeddingStep> {
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

/// Removes the vector files of earlier processes, before the first model is opened.
pub fn vectors_left_over(context: &Context) -> std::io::Result<()> {
    remove_left_over(&vectors_folder(context))
}

fn vectors_folder(context: &Context) -> PathBuf {
    context.config.store.data_dir.join("vectors")
}

/// The id of the last used other model whose vectors are complete.
pub async fn model_before(context: &Context, wanted: &str) -> Result<Option<String>> {
    let mut all = rows::models(&context.store).await?;
    all.retain(|row| row.id != wanted && row.completed_at.is_some());
    Ok(all.pop().map(|row| row.id))
}

/// Deletes a part of another model that no process has used for an hour; returns whether there may be more to delete.
pub async fn models_forget_but(context: &Context, kept: &[String]) -> Result<bool> {
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
            "the vectors of an unused model were deleted"
        );
    }
    write.commit().await?;
    Ok(true)
}

async fn walk(context: &Context, embedding: &mut Embedding) -> Result<EmbeddingStep> {
    let (documents, last) = documents_walk(context, embedding.row.walked_to, WALK).await?;
    let made = bring(context, embedding, &documents).await?;
    let id = embedding.row.id.clone();
    let write = context.store.write().await?;
    let Some(kept) = write.model_locked(&id).await? else {
        return begin_anew(context, embedding).await;
    };
    // Another process may have finished its walk and continued: its vectors are newer.
    if kept.completed_at.is_none() {
        let rows = made.iter().map(|made| made.row(&id)).collect();
        write.vectors_put(rows).await?;
        match last {
            Some(last) => write.model_walked(&id, last).await?,
            None => {
                if embedding.outdated {
                    // These are of agents that the walk did not reach.
                    write.vectors_forget_unlike(&id, LAYOUT).await?;
                }
                write.model_completed(&id, context.now().0).await?;
            }
        }
    }
    write.model_used(&id, context.now().0).await?;
    write.commit().await?;
    let count = u32::try_from(made.len()).unwrap_or(u32::MAX);
    put(
        &embedding.vectors,
        made.into_iter().map(EncodedAgent::change).collect(),
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
    Ok(EmbeddingStep::More(count))
}

/// Follows the events, some agents at a time: their vectors are stored before the next agents are read.
async fn follow(context: &Context, embedding: &mut Embedding) -> Result<EmbeddingStep> {
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
    // Another process that is further ahead has stored newer vectors.
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
    let mut changes: Vec<VectorChange> = made.into_iter().map(EncodedAgent::change).collect();
    changes.extend(gone.into_iter().map(|agent| (agent, None)));
    put(&embedding.vectors, changes).await?;
    embedding.waiting.truncate(left);
    if left == 0 {
        embedding.applied = embedding.up_to;
    }
    tell(context, embedding);
    Ok(EmbeddingStep::More(count))
}

/// Stores from time to time that the model is still used, while there is nothing else to do.
async fn rest(context: &Context, embedding: &mut Embedding) -> Result<EmbeddingStep> {
    let now = context.now();
    if now.0.saturating_sub(embedding.row.used_at) > USED_EVERY {
        context.store.model_use(&embedding.row.id, now.0).await?;
        embedding.row.used_at = now.0;
    }
    Ok(EmbeddingStep::Done)
}

/// The error for a model that was deleted by another process, which uses another one.
async fn begin_anew(context: &Context, embedding: &mut Embedding) -> Result<EmbeddingStep> {
    *embedding = embedding_open(context, Arc::clone(&embedding.embedder)).await?;
    Ok(EmbeddingStep::More(0))
}

/// Calibrates the cutoff if there are enough agents; returns whether the model has one now.
async fn calibrate(context: &Context, embedding: &mut Embedding) -> Result<bool> {
    let id = &embedding.row.id;
    // Only public agents: the cutoff must reveal nothing of others.
    let listed = SearchRequest {
        visible_to: Caller::default().labels(&context.policies.in_force()),
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
            tracing::warn!(%error, "the similarity cutoff cannot be calibrated yet; it is tried again later");
            return Ok(false);
        }
    };
    let write = context.store.write().await?;
    // The cutoff of the first process applies to all.
    write.model_cutoff(id, f64::from(cutoff)).await?;
    let kept = write.model_locked(id).await?;
    write.commit().await?;
    embedding.row.cutoff = kept.and_then(|row| row.cutoff);
    Ok(embedding.row.cutoff.is_some())
}

/// Lets searches use a model once every agent has its vectors.
pub fn embedding_serve(context: &Context, embedding: &Embedding) {
    if embedding.is_complete() || embedding.renewed {
        context.meanings.serving.store(Some(Arc::new(ServingModel {
            embedder: Arc::clone(&embedding.embedder),
            vectors: Arc::clone(&embedding.vectors),
            cutoff: embedding.cutoff().unwrap_or(calibration::UNKNOWN),
        })));
    }
    tell(context, embedding);
}

fn tell(context: &Context, embedding: &Embedding) {
    context.meanings.set_progress(ModelProgress {
        model: embedding.row.id.clone(),
        name: embedding.row.name.clone(),
        agents: embedding.vectors.agents(),
        memory: embedding.vectors.size(),
        cutoff: embedding.cutoff(),
        serving: embedding.is_complete() || embedding.renewed,
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
