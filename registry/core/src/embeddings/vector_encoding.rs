//! Computes the vectors of agents, or reads stored ones.

use std::sync::Arc;

use a2a_registry_embed::{EmbedError, Embedder, TextKind};
use a2a_registry_search::AgentDocument;
use a2a_registry_search::vectors::{AgentVectors, VectorChange, VectorStore};
use a2a_registry_store::entity::agent_vectors;
use a2a_registry_store::vectors as rows;
use uuid::Uuid;

use crate::context::AppContext;
use crate::embeddings::embedded_texts::{digest_prefix, embedding_texts, text_digest};
use crate::embeddings::model_indexer::ModelIndexer;
use crate::error::{AppError, Result};

/// Texts per call of the encoder: few enough that a step is short.
const TEXTS_PER_CALL: usize = 32;
/// The lengths to which a refused text is cut, in this order.
const FALLBACK_LENGTHS: [usize; 2] = [2_000, 500];
/// A text that every encoder accepts: if it fails, the fault is the encoder's and not an agent's.
const PROBE_TEXT: &str = "An agent that answers questions.";

pub struct AgentEmbedding {
    agent: Uuid,
    digest: String,
    /// The vectors; `None` if the encoder refuses the agent's texts even when cut.
    vectors: Option<AgentVectors>,
}

impl AgentEmbedding {
    /// Builds the row to store; a row without vectors marks texts that cannot be encoded.
    pub fn to_row(&self, model: &str) -> agent_vectors::Model {
        let vectors = self.vectors.as_ref().map(AgentVectors::as_bytes);
        agent_vectors::Model {
            model_id: model.to_owned(),
            agent_id: self.agent,
            text_digest: self.digest.clone(),
            vectors: vectors.unwrap_or_default().to_vec(),
        }
    }

    pub fn into_vector_change(self) -> VectorChange {
        let stamp = digest_prefix(&self.digest).unwrap_or_default();
        (self.agent, self.vectors.map(|vectors| (stamp, vectors)))
    }
}

/// Whether a stored row has an older text layout, so that its vectors must be computed again.
pub fn has_outdated_text_layout(row: &agent_vectors::Model) -> bool {
    digest_prefix(&row.text_digest).is_none()
}

/// Converts a stored row to a change; `None` for an unreadable row, whose vectors are computed again.
pub fn to_vector_change(row: agent_vectors::Model, dimensions: usize) -> Option<VectorChange> {
    if row.vectors.is_empty() {
        return Some((row.agent_id, None));
    }
    let vectors = AgentVectors::from_bytes(row.vectors, dimensions).ok()?;
    let stamp = digest_prefix(&row.text_digest).unwrap_or_default();
    Some((row.agent_id, Some((stamp, vectors))))
}

/// Writes changes to memory and file, on a thread that may block.
pub async fn write_vectors(vectors: &Arc<VectorStore>, changes: Vec<VectorChange>) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let vectors = Arc::clone(vectors);
    let put = tokio::task::spawn_blocking(move || vectors.replace_agent_vectors(&changes)).await;
    put.map_err(|error| AppError::internal(error.to_string()))?
        .map_err(AppError::from)
}

/// An agent without vectors in this process.
struct AgentToEmbed {
    agent: Uuid,
    digest: String,
    texts: Vec<String>,
}

/// Loads the missing vectors of these agents: reads those that another process stored, and computes the others.
pub async fn load_or_compute_vectors(
    context: &AppContext,
    indexer: &ModelIndexer,
    documents: &[AgentDocument],
) -> Result<Vec<AgentEmbedding>> {
    let mut missing: Vec<AgentToEmbed> = Vec::new();
    for document in documents {
        let texts = embedding_texts(document);
        let digest = text_digest(&texts);
        if indexer.vectors.text_stamp(document.id) != digest_prefix(&digest) {
            missing.push(AgentToEmbed {
                agent: document.id,
                digest,
                texts,
            });
        }
    }
    let ids: Vec<Uuid> = missing.iter().map(|missing| missing.agent).collect();
    let known = rows::vectors_by_agent(&context.store, &indexer.model_row.id, &ids).await?;
    let mut changes = Vec::new();
    for row in known {
        let (agent, digest) = (row.agent_id, row.text_digest.clone());
        let same = |missing: &AgentToEmbed| missing.agent == agent && missing.digest == digest;
        if let Some(index) = missing.iter().position(same)
            && let Some(change) = to_vector_change(row, indexer.vectors.dimensions())
        {
            missing.swap_remove(index);
            changes.push(change);
        }
    }
    write_vectors(&indexer.vectors, changes).await?;
    embed_agents(indexer.embedder.as_ref(), missing).await
}

/// Computes vectors in one call for all agents, or for each agent alone if the encoder refuses that call.
async fn embed_agents(
    embedder: &dyn Embedder,
    missing: Vec<AgentToEmbed>,
) -> Result<Vec<AgentEmbedding>> {
    let all_texts: Vec<String> = missing
        .iter()
        .flat_map(|missing| &missing.texts)
        .cloned()
        .collect();
    let mut shared_vectors = match embed_texts(embedder, &all_texts).await {
        Ok(vectors) => Some(vectors.into_iter()),
        Err(EmbedError::Failed(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mut encoded = Vec::with_capacity(missing.len());
    for AgentToEmbed {
        agent,
        digest,
        texts,
    } in missing
    {
        let text_vectors = match &mut shared_vectors {
            Some(vectors) => Some(vectors.take(texts.len()).collect()),
            None => embed_single_agent(embedder, texts).await?,
        };
        let vectors = text_vectors
            .map(|own: Vec<Vec<f32>>| AgentVectors::new(&own))
            .transpose();
        let vectors = vectors.map_err(|error| AppError::internal(error.to_string()))?;
        if vectors.is_none() {
            tracing::warn!(%agent, "the encoder rejects the texts of this agent; only full text searches find it");
        }
        encoded.push(AgentEmbedding {
            agent,
            digest,
            vectors,
        });
    }
    Ok(encoded)
}

/// Encodes one agent's texts, cut shorter while the encoder refuses them; `None` if it refuses all. The texts of one
/// agent must not prevent the encoding of others.
async fn embed_single_agent(
    embedder: &dyn Embedder,
    mut texts: Vec<String>,
) -> Result<Option<Vec<Vec<f32>>>, EmbedError> {
    for longest in [usize::MAX].into_iter().chain(FALLBACK_LENGTHS) {
        for text in &mut texts {
            if let Some((end, _)) = text.char_indices().nth(longest) {
                text.truncate(end);
            }
        }
        match embed_texts(embedder, &texts).await {
            Ok(vectors) => return Ok(Some(vectors)),
            Err(EmbedError::Failed(_)) => {}
            Err(error) => return Err(error),
        }
    }
    embed_texts(embedder, &[PROBE_TEXT.to_owned()])
        .await
        .map(|_| None)
}

async fn embed_texts(
    embedder: &dyn Embedder,
    texts: &[String],
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let mut vectors = Vec::with_capacity(texts.len());
    for some in texts.chunks(TEXTS_PER_CALL) {
        vectors.extend(embedder.embed(some.to_vec(), TextKind::Card).await?);
    }
    Ok(vectors)
}
