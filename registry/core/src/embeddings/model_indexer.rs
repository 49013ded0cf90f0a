//! Computes the vectors of all agents with a model: first in a pass over all agents, then by following their events.
//!
//! Vectors are stored in the database, so that a new process continues where the last one stopped; each process holds a
//! copy for its own searches. Several processes may work on one model: the second one reads the vectors of the first.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::{HOUR, MINUTE};
use a2a_registry_embed::{EmbedError, Embedder, ModelLanguages};
use a2a_registry_search::vectors::{
    VectorChange, VectorStore, VectorsError, remove_leftover_vector_files,
};
use a2a_registry_search::{SearchRequest, SortOrder};
use a2a_registry_store::entity::embedding_model;
use a2a_registry_store::{events, vectors as rows};
use uuid::Uuid;

use crate::agents::documents::{load_agent_documents, load_agent_documents_after};
use crate::context::AppContext;
use crate::embeddings::calibration;
use crate::embeddings::embedded_texts::LAYOUT_PREFIX;
use crate::embeddings::vector_encoding::{
    AgentEmbedding, has_outdated_text_layout, load_or_compute_vectors, to_vector_change,
    write_vectors,
};
use crate::error::{AppError, Result};
use crate::process_state::embedding_pace::EmbeddingPace;
use crate::process_state::semantic_search::{ModelProgress, ServingModel};
use crate::visibility::caller::Caller;

/// Agents per step of the first pass.
const AGENTS_PER_STEP: u64 = 16;
/// Events per step after the first pass.
const EVENTS_PER_STEP: u64 = 200;
/// Maximum number of agents from those events per step.
const MAX_BATCH_AGENTS: usize = 16;
/// How often a process records that it uses a model.
const USE_RECORD_INTERVAL: i64 = 10 * MINUTE;
/// A model that no process has used for this long is deleted.
const UNUSED_MODEL_TTL: i64 = HOUR;
/// The pause after a calibration that failed or had too few agents.
const CALIBRATION_RETRY_DELAY: Duration = Duration::from_secs(600);

/// A model, and the progress of its vectors in this process.
#[derive(Debug)]
pub struct ModelIndexer {
    pub embedder: Arc<dyn Embedder>,
    pub vectors: Arc<VectorStore>,
    pub model_row: embedding_model::Model,
    /// The last event whose agents have vectors in this process.
    applied_seq: i64,
    /// Agents of later events, up to the event `pending_up_to_seq`, whose vectors are not computed yet.
    pending_agents: Vec<Uuid>,
    pending_up_to_seq: i64,
    /// Whether a domain was erased by these events: the vectors of its agents are still in this process's file.
    has_erased_vectors: bool,
    /// The earliest time of the next calibration, since this process started.
    calibrate_from: Duration,
    /// Whether there are vectors of another text layout, which the first pass replaces.
    has_outdated_vectors: bool,
    /// Number of these that are not replaced yet.
    outdated_left: u64,
    /// Number of agents whose vectors this process has computed in the first pass, which it joined at that time since
    /// its start.
    computed: u64,
    first_pass_from: Duration,
    /// Whether every agent had such vectors, so that they serve until the pass ends.
    serves_outdated_vectors: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingStepResult {
    /// Vectors of this number of agents were computed, and there may be more to do.
    Progress(u32),
    /// Nothing to do until the next event.
    Idle,
}

impl ModelIndexer {
    pub fn model_id(&self) -> &str {
        &self.model_row.id
    }

    /// The model's name in this process: the stored one is that under which it was first used.
    pub fn name(&self) -> &str {
        &self.embedder.model_identity().name
    }

    /// Whether every agent has its vectors.
    pub fn is_complete(&self) -> bool {
        self.model_row.completed_at.is_some()
    }

    fn cutoff(&self) -> Option<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "a cosine")]
        self.model_row.cutoff.map(|cutoff| cutoff as f32)
    }
}

/// Opens a model with its vectors and progress in the database.
pub async fn open_model_indexer(
    context: &AppContext,
    embedder: Arc<dyn Embedder>,
) -> Result<ModelIndexer> {
    let info = embedder.model_identity();
    let new_row = embedding_model::Model {
        id: info.id.clone(),
        name: info.name.clone(),
        dimensions: i32::try_from(info.dimensions).unwrap_or(i32::MAX),
        created_at: context.now().0,
        applied_seq: events::highest_event_seq(&context.store).await?,
        walked_to: None,
        completed_at: None,
        cutoff: None,
        used_at: context.now().0,
    };
    let dimensions = info.dimensions;
    let mut row = context.store.get_or_insert_model(new_row).await?;
    context
        .store
        .record_model_use(&row.id, context.now().0)
        .await?;
    let vectors = Arc::new(VectorStore::create(&vectors_dir(context), dimensions)?);
    let (mut after, mut outdated_count) = (None, 0_u64);
    loop {
        let rows_chunk = rows::vectors_page(&context.store, &row.id, after).await?;
        let Some(last) = rows_chunk.last() else { break };
        after = Some(last.agent_id);
        for row in &rows_chunk {
            outdated_count += u64::from(has_outdated_text_layout(row));
        }
        write_vectors(
            &vectors,
            rows_chunk
                .into_iter()
                .filter_map(|row| to_vector_change(row, dimensions))
                .collect(),
        )
        .await?;
    }
    let outdated = outdated_count > 0;
    // The previous vectors are searched until all are renewed.
    let serves_outdated = outdated && row.completed_at.is_some();
    if outdated {
        row = context.store.restart_model_walk(row).await?;
    }
    let indexer = ModelIndexer {
        applied_seq: row.applied_seq,
        pending_agents: Vec::new(),
        pending_up_to_seq: row.applied_seq,
        has_erased_vectors: false,
        calibrate_from: Duration::ZERO,
        has_outdated_vectors: outdated,
        outdated_left: outdated_count,
        computed: 0,
        first_pass_from: context.monotonic_time(),
        serves_outdated_vectors: serves_outdated,
        embedder,
        vectors,
        model_row: row,
    };
    publish_model(context, &indexer);
    Ok(indexer)
}

/// Runs the next step of a model. After a failure the next call repeats the step.
pub async fn run_embedding_step(
    context: &AppContext,
    indexer: &mut ModelIndexer,
) -> Result<EmbeddingStepResult> {
    // First, because a step fails while the encoder is away, and the model is in use nevertheless.
    record_model_use(context, indexer).await?;
    if !indexer.is_complete() {
        return embed_next_agents(context, indexer).await;
    }
    let enough = indexer.vectors.agent_count() >= calibration::MIN_SAMPLE;
    if enough
        && indexer.model_row.cutoff.is_none()
        && indexer.calibrate_from <= context.monotonic_time()
    {
        indexer.calibrate_from = context.monotonic_time() + CALIBRATION_RETRY_DELAY;
        if store_calibrated_cutoff(context, indexer).await? {
            publish_model(context, indexer);
        }
    }
    if indexer.vectors.needs_rebuild() {
        *indexer = open_model_indexer(context, Arc::clone(&indexer.embedder)).await?;
    }
    embed_changed_agents(context, indexer).await
}

/// Removes the vector files of earlier processes, before the first model is opened.
pub fn remove_stale_vector_files(context: &AppContext) -> std::io::Result<()> {
    remove_leftover_vector_files(&vectors_dir(context))
}

fn vectors_dir(context: &AppContext) -> PathBuf {
    context.config().store.data_dir.join("vectors")
}

/// Returns the ids of the other models with complete vectors, the most recently used one first. Other processes may
/// have models that this one does not have.
pub async fn previous_model_ids(context: &AppContext, configured_id: &str) -> Result<Vec<String>> {
    let mut all = rows::embedding_models(&context.store).await?;
    all.retain(|row| row.id != configured_id && row.completed_at.is_some());
    all.sort_by_key(|row| std::cmp::Reverse(row.used_at));
    Ok(all.into_iter().map(|row| row.id).collect())
}

/// Deletes some vectors of a model that no process has used for an hour; returns whether there may be more to delete.
pub async fn purge_unused_models(context: &AppContext, retained_ids: &[String]) -> Result<bool> {
    context.semantic_search.retain_model_progress(retained_ids);
    let models = rows::embedding_models(&context.store).await?;
    let unused_since = context.now().plus_micros(-UNUSED_MODEL_TTL).0;
    let is_unused = |row: &embedding_model::Model| {
        !retained_ids.contains(&row.id) && row.used_at < unused_since
    };
    let Some(old) = models.into_iter().find(is_unused) else {
        return Ok(false);
    };
    let write = context.store.begin_write().await?;
    if write.delete_model_batch(&old.id).await? {
        tracing::info!(
            model = old.name,
            "the vectors of an unused model were deleted"
        );
    }
    write.commit().await?;
    Ok(true)
}

async fn embed_next_agents(
    context: &AppContext,
    indexer: &mut ModelIndexer,
) -> Result<EmbeddingStepResult> {
    let (documents, last) =
        load_agent_documents_after(context, indexer.model_row.walked_to, AGENTS_PER_STEP).await?;
    let encoded = load_or_compute_vectors(context, indexer, &documents).await?;
    let id = indexer.model_row.id.clone();
    let write = context.store.begin_write().await?;
    let Some(locked_row) = write.lock_model(&id).await? else {
        return reopen_model_indexer(context, indexer).await;
    };
    // Another process may have finished the first pass and continued, so that its vectors are newer.
    if locked_row.completed_at.is_none() {
        let rows = encoded.iter().map(|made| made.to_row(&id)).collect();
        write.upsert_vectors(rows).await?;
        match last {
            Some(last) => write.set_model_walked_to(&id, last).await?,
            None => {
                if indexer.has_outdated_vectors {
                    // The remaining outdated vectors are of agents that the pass did not reach.
                    write.delete_outdated_vectors(&id, LAYOUT_PREFIX).await?;
                }
                write.set_model_completed(&id, context.now().0).await?;
            }
        }
    }
    write.set_model_used_at(&id, context.now().0).await?;
    write.commit().await?;
    let count = u32::try_from(encoded.len()).unwrap_or(u32::MAX);
    write_vectors(
        &indexer.vectors,
        encoded
            .into_iter()
            .map(AgentEmbedding::into_vector_change)
            .collect(),
    )
    .await?;
    indexer.computed += u64::from(count);
    indexer.outdated_left = indexer.outdated_left.saturating_sub(count.into());
    match last {
        Some(last) => indexer.model_row.walked_to = Some(last),
        None => {
            indexer.outdated_left = 0;
            indexer.model_row.completed_at = Some(context.now().0);
            publish_model(context, indexer);
        }
    }
    report_model_progress(context, indexer);
    Ok(EmbeddingStepResult::Progress(count))
}

/// Follows the events, a few agents at a time: their vectors are stored before the next agents are read.
async fn embed_changed_agents(
    context: &AppContext,
    indexer: &mut ModelIndexer,
) -> Result<EmbeddingStepResult> {
    if indexer.pending_agents.is_empty() {
        let events =
            events::events_after(&context.store, indexer.applied_seq, EVENTS_PER_STEP).await?;
        let Some(last) = events.last().map(|event| event.seq) else {
            return Ok(EmbeddingStepResult::Idle);
        };
        indexer.pending_agents = events.iter().filter_map(|event| event.agent_id).collect();
        indexer.pending_agents.sort_unstable();
        indexer.pending_agents.dedup();
        indexer.pending_up_to_seq = last;
        indexer.has_erased_vectors = events
            .iter()
            .any(|event| event.kind == EventKind::DomainErased);
    }
    let remaining = indexer
        .pending_agents
        .len()
        .saturating_sub(MAX_BATCH_AGENTS);
    let group = indexer
        .pending_agents
        .get(remaining..)
        .unwrap_or_default()
        .to_vec();
    let (documents, deleted_agents) = load_agent_documents(context, &group).await?;
    let encoded = load_or_compute_vectors(context, indexer, &documents).await?;
    let id = indexer.model_row.id.clone();
    let write = context.store.begin_write().await?;
    let Some(locked_row) = write.lock_model(&id).await? else {
        return reopen_model_indexer(context, indexer).await;
    };
    // Another process is ahead and has stored newer vectors.
    if locked_row.applied_seq < indexer.pending_up_to_seq {
        let rows = encoded.iter().map(|made| made.to_row(&id)).collect();
        write.upsert_vectors(rows).await?;
        write.delete_vectors(&id, &deleted_agents).await?;
        if remaining == 0 {
            write
                .set_model_applied_seq(&id, indexer.pending_up_to_seq)
                .await?;
        }
    }
    write.set_model_used_at(&id, context.now().0).await?;
    write.commit().await?;
    let count = u32::try_from(encoded.len()).unwrap_or(u32::MAX);
    let mut changes: Vec<VectorChange> = encoded
        .into_iter()
        .map(AgentEmbedding::into_vector_change)
        .collect();
    changes.extend(deleted_agents.into_iter().map(|agent| (agent, None)));
    write_vectors(&indexer.vectors, changes).await?;
    indexer.pending_agents.truncate(remaining);
    if remaining == 0 {
        indexer.applied_seq = indexer.pending_up_to_seq;
        if indexer.has_erased_vectors {
            return reopen_model_indexer(context, indexer).await;
        }
    }
    report_model_progress(context, indexer);
    Ok(EmbeddingStepResult::Progress(count))
}

/// Records from time to time that the model is still in use.
async fn record_model_use(context: &AppContext, indexer: &mut ModelIndexer) -> Result<()> {
    let now = context.now();
    if now.0.saturating_sub(indexer.model_row.used_at) > USE_RECORD_INTERVAL {
        context
            .store
            .record_model_use(&indexer.model_row.id, now.0)
            .await?;
        indexer.model_row.used_at = now.0;
    }
    Ok(())
}

/// Reads a model again: one that another process has deleted, or whose file contains erased vectors.
async fn reopen_model_indexer(
    context: &AppContext,
    indexer: &mut ModelIndexer,
) -> Result<EmbeddingStepResult> {
    *indexer = open_model_indexer(context, Arc::clone(&indexer.embedder)).await?;
    Ok(EmbeddingStepResult::Progress(0))
}

/// Calibrates the cutoff if there are enough agents; returns whether the model has one now.
async fn store_calibrated_cutoff(context: &AppContext, indexer: &mut ModelIndexer) -> Result<bool> {
    let id = &indexer.model_row.id;
    // Only public agents count: the cutoff must not reveal anything about other agents.
    let search_request = SearchRequest {
        visible_to: Caller::default().labels(&context.policy_sets.enforced_set()),
        sort: SortOrder::Newest,
        limit: calibration::MAX_SAMPLE,
        ..SearchRequest::default()
    };
    let index = context.index.clone();
    let sample = tokio::task::spawn_blocking(move || index.search(&search_request)).await;
    let sample = sample.map_err(|error| AppError::internal(error.to_string()))??;
    let sample: Vec<Uuid> = sample.hits.into_iter().map(|hit| hit.id).collect();
    let (documents, _) = load_agent_documents(context, &sample).await?;
    let found =
        calibration::calibrate_cutoff(&indexer.embedder, &indexer.vectors, &documents).await;
    let cutoff = match found {
        Ok(Some(cutoff)) => cutoff,
        Ok(None) => return Ok(false),
        Err(error) => {
            tracing::warn!(%error, "cannot calibrate the similarity cutoff yet; retrying later");
            return Ok(false);
        }
    };
    let write = context.store.begin_write().await?;
    // The cutoff that the first process stores applies to all.
    write.set_model_cutoff(id, f64::from(cutoff)).await?;
    let kept = write.lock_model(id).await?;
    write.commit().await?;
    indexer.model_row.cutoff = kept.and_then(|row| row.cutoff);
    Ok(indexer.model_row.cutoff.is_some())
}

/// Lets searches use a model once every agent has its vectors.
pub fn publish_model(context: &AppContext, indexer: &ModelIndexer) {
    if indexer.is_complete() || indexer.serves_outdated_vectors {
        context
            .semantic_search
            .serving_model
            .store(Some(Arc::new(ServingModel {
                model_id: indexer.model_id().into(),
                embedder: Arc::clone(&indexer.embedder),
                vectors: Arc::clone(&indexer.vectors),
                cutoff: indexer.cutoff().unwrap_or(calibration::DEFAULT_CUTOFF),
                languages: query_languages(context, indexer),
            })));
    }
    report_model_progress(context, indexer);
}

/// The languages of the queries that a model encodes: those of the configuration, or what the model shows itself.
fn query_languages(context: &AppContext, indexer: &ModelIndexer) -> ModelLanguages {
    match context.config().search.model_languages.as_slice() {
        [] => indexer.embedder.model_languages(),
        codes => ModelLanguages::from_codes(codes),
    }
}

fn report_model_progress(context: &AppContext, indexer: &ModelIndexer) {
    let agents = u64::try_from(indexer.vectors.agent_count()).unwrap_or(u64::MAX);
    let agents = agents.saturating_sub(indexer.outdated_left);
    // The index may be a little behind.
    let total = context.index.num_agents().max(agents);
    let elapsed = context
        .monotonic_time()
        .saturating_sub(indexer.first_pass_from);
    let pace = match indexer.is_complete() {
        true => None,
        false => EmbeddingPace::estimate(indexer.computed, elapsed, total - agents),
    };
    context.semantic_search.set_progress(ModelProgress {
        model: indexer.model_row.id.clone(),
        name: indexer.name().to_owned(),
        agents,
        total,
        complete: indexer.is_complete(),
        pace,
        memory: indexer.vectors.byte_size(),
        cutoff: indexer.cutoff(),
        serving: indexer.is_complete() || indexer.serves_outdated_vectors,
    });
}

impl From<EmbedError> for AppError {
    fn from(error: EmbedError) -> Self {
        Self {
            internal: Some(error.to_string()),
            ..Self::unavailable("The encoder does not respond; try again later.", 60)
        }
    }
}

impl From<VectorsError> for AppError {
    fn from(error: VectorsError) -> Self {
        Self::internal(error.to_string())
    }
}
