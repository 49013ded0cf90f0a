//! Computes the vectors of agents, or reads stored ones.

use std::sync::Arc;

use a2a_registry_embed::{EmbedError, Embedder, TextKind};
use a2a_registry_search::Document;
use a2a_registry_search::vectors::{AgentVectors, VectorChange, Vectors};
use a2a_registry_store::entity::agent_vectors;
use a2a_registry_store::vectors as rows;
use uuid::Uuid;

use crate::context::Context;
use crate::error::{AppError, Result};
use crate::meaning::embedding::Embedding;
use crate::meaning::texts::{digest, stamp, texts};

/// Texts per call of the encoder: few enough that a step is short.
const TEXTS: usize = 32;
/// The lengths to which a text is cut, one after another, if the encoder refuses it.
const SHORTER: [usize; 2] = [2_000, 500];
/// A text that every encoder accepts: if it fails, the encoder is at fault and not an agent's text.
const TRIAL: &str = "An agent that answers questions.";

pub struct EncodedAgent {
    agent: Uuid,
    digest: String,
    /// `None` if the encoder refuses its texts, however short.
    vectors: Option<AgentVectors>,
}

impl EncodedAgent {
    /// The row to store; a row without vectors marks texts that cannot be encoded.
    pub fn row(&self, model: &str) -> agent_vectors::Model {
        let vectors = self.vectors.as_ref().map(AgentVectors::as_bytes);
        agent_vectors::Model {
            model_id: model.to_owned(),
            agent_id: self.agent,
            text_digest: self.digest.clone(),
            vectors: vectors.unwrap_or_default().to_vec(),
        }
    }

    pub fn change(self) -> VectorChange {
        let stamp = stamp(&self.digest).unwrap_or_default();
        (self.agent, self.vectors.map(|vectors| (stamp, vectors)))
    }
}

/// Whether a stored row is of a former layout of texts, so that its vectors must be computed again.
pub fn is_outdated(row: &agent_vectors::Model) -> bool {
    stamp(&row.text_digest).is_none()
}

/// A stored row as a change; `None` for an unreadable one, whose vectors are computed again.
pub fn kept(row: agent_vectors::Model, dimensions: usize) -> Option<VectorChange> {
    if row.vectors.is_empty() {
        return Some((row.agent_id, None));
    }
    let vectors = AgentVectors::from_bytes(row.vectors, dimensions).ok()?;
    let stamp = stamp(&row.text_digest).unwrap_or_default();
    Some((row.agent_id, Some((stamp, vectors))))
}

/// Writes changes to memory and file, on a thread that may block.
pub async fn put(vectors: &Arc<Vectors>, changes: Vec<VectorChange>) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let vectors = Arc::clone(vectors);
    let put = tokio::task::spawn_blocking(move || vectors.put(&changes)).await;
    put.map_err(|error| AppError::internal(error.to_string()))?
        .map_err(AppError::from)
}

/// An agent without vectors in this process.
struct UnencodedAgent {
    agent: Uuid,
    digest: String,
    texts: Vec<String>,
}

/// Loads the missing vectors of these agents: those of another process are read, the others are computed.
pub async fn bring(
    context: &Context,
    embedding: &Embedding,
    documents: &[Document],
) -> Result<Vec<EncodedAgent>> {
    let mut missing: Vec<UnencodedAgent> = Vec::new();
    for document in documents {
        let texts = texts(document);
        let digest = digest(&texts);
        if embedding.vectors.stamp(document.id) != stamp(&digest) {
            missing.push(UnencodedAgent {
                agent: document.id,
                digest,
                texts,
            });
        }
    }
    let ids: Vec<Uuid> = missing.iter().map(|missing| missing.agent).collect();
    let known = rows::vectors_of(&context.store, &embedding.row.id, &ids).await?;
    let mut changes = Vec::new();
    for row in known {
        let (agent, digest) = (row.agent_id, row.text_digest.clone());
        let same = |missing: &UnencodedAgent| missing.agent == agent && missing.digest == digest;
        if let Some(place) = missing.iter().position(same)
            && let Some(change) = kept(row, embedding.vectors.dimensions())
        {
            missing.swap_remove(place);
            changes.push(change);
        }
    }
    put(&embedding.vectors, changes).await?;
    make(embedding.embedder.as_ref(), missing).await
}

/// Computes vectors in one call for all agents, or for each agent alone if the encoder refuses that call.
async fn make(embedder: &dyn Embedder, missing: Vec<UnencodedAgent>) -> Result<Vec<EncodedAgent>> {
    let all: Vec<String> = missing
        .iter()
        .flat_map(|missing| &missing.texts)
        .cloned()
        .collect();
    let mut together = match encode(embedder, &all).await {
        Ok(vectors) => Some(vectors.into_iter()),
        Err(EmbedError::Failed(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mut made = Vec::with_capacity(missing.len());
    for UnencodedAgent {
        agent,
        digest,
        texts,
    } in missing
    {
        let own = match &mut together {
            Some(vectors) => Some(vectors.take(texts.len()).collect()),
            None => alone(embedder, texts).await?,
        };
        let vectors = own
            .map(|own: Vec<Vec<f32>>| AgentVectors::new(&own))
            .transpose();
        let vectors = vectors.map_err(|error| AppError::internal(error.to_string()))?;
        if vectors.is_none() {
            tracing::warn!(%agent, "the encoder refuses the texts of this agent; only full text searches find it");
        }
        made.push(EncodedAgent {
            agent,
            digest,
            vectors,
        });
    }
    Ok(made)
}

/// The vectors of one agent's texts, cut shorter while the encoder refuses them; `None` if it refuses all. The texts of
/// one agent must not keep others from being encoded.
async fn alone(
    embedder: &dyn Embedder,
    mut texts: Vec<String>,
) -> Result<Option<Vec<Vec<f32>>>, EmbedError> {
    for longest in [usize::MAX].into_iter().chain(SHORTER) {
        for text in &mut texts {
            if let Some((end, _)) = text.char_indices().nth(longest) {
                text.truncate(end);
            }
        }
        match encode(embedder, &texts).await {
            Ok(vectors) => return Ok(Some(vectors)),
            Err(EmbedError::Failed(_)) => {}
            Err(error) => return Err(error),
        }
    }
    encode(embedder, &[TRIAL.to_owned()]).await.map(|_| None)
}

async fn encode(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let mut vectors = Vec::with_capacity(texts.len());
    for some in texts.chunks(TEXTS) {
        vectors.extend(embedder.embed(some.to_vec(), TextKind::Card).await?);
    }
    Ok(vectors)
}
