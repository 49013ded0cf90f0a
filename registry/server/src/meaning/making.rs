//! Making the vectors of agents, or reading those that are made.

use std::sync::Arc;

use a2a_registry_embed::{EmbedError, Embedder, TextKind};
use a2a_registry_search::Document;
use a2a_registry_search::vectors::{AgentVectors, VectorChange, Vectors};
use a2a_registry_store::entity::agent_vectors;
use a2a_registry_store::vectors as rows;
use uuid::Uuid;

use crate::context::Context;
use crate::error::AppError;
use crate::meaning::embedding::Embedding;
use crate::meaning::texts::{digest, texts};

/// Texts given to the encoder at once: few enough that a step ends soon.
const TEXTS: usize = 32;
/// Characters that are kept of texts which an encoder does not take whole, one after another.
const SHORTER: [usize; 2] = [2_000, 500];
/// What every encoder takes: where it does not, it is the encoder that fails and not a text.
const TRIAL: &str = "An agent that answers questions.";

/// Vectors that were just made.
pub(crate) struct Made {
    agent: Uuid,
    digest: String,
    /// None where no encoder takes its texts, however short.
    vectors: Option<AgentVectors>,
}

impl Made {
    /// The row to keep; without vectors it says that there are none of these texts.
    pub fn row(&self, model: &str) -> agent_vectors::Model {
        let vectors = self.vectors.as_ref().map(AgentVectors::as_bytes);
        agent_vectors::Model {
            model_id: model.to_owned(),
            agent_id: self.agent,
            text_digest: self.digest.clone(),
            vectors: vectors.unwrap_or_default().to_vec(),
        }
    }

    /// The change in memory.
    pub fn change(self) -> VectorChange {
        let stamp = stamp(&self.digest);
        (self.agent, self.vectors.map(|vectors| (stamp, vectors)))
    }
}

/// A kept row as a change; nothing for one that cannot be read, whose agent's vectors are made again.
pub(crate) fn kept(row: agent_vectors::Model, dimensions: usize) -> Option<VectorChange> {
    if row.vectors.is_empty() {
        return Some((row.agent_id, None));
    }
    let vectors = AgentVectors::from_bytes(row.vectors, dimensions).ok()?;
    Some((row.agent_id, Some((stamp(&row.text_digest), vectors))))
}

/// Puts changes in memory and file, where that may block.
pub(crate) async fn put(
    vectors: &Arc<Vectors>,
    changes: Vec<VectorChange>,
) -> Result<(), AppError> {
    if changes.is_empty() {
        return Ok(());
    }
    let vectors = Arc::clone(vectors);
    let put = tokio::task::spawn_blocking(move || vectors.put(&changes)).await;
    put.map_err(|error| AppError::internal(error.to_string()))?
        .map_err(AppError::from)
}

/// An agent whose vectors are not held.
struct Missing {
    agent: Uuid,
    digest: String,
    texts: Vec<String>,
}

/// The vectors of these agents that are not held yet; those that another process has made are read, the others
/// are made.
pub(crate) async fn bring(
    context: &Context,
    embedding: &Embedding,
    documents: &[Document],
) -> Result<Vec<Made>, AppError> {
    let mut missing: Vec<Missing> = Vec::new();
    for document in documents {
        let texts = texts(document);
        let digest = digest(&texts);
        if embedding.vectors.stamp(document.id) != Some(stamp(&digest)) {
            missing.push(Missing {
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
        let same = |missing: &Missing| missing.agent == agent && missing.digest == digest;
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

/// Makes vectors, of all together where the encoder takes all, else of each agent alone.
async fn make(embedder: &dyn Embedder, missing: Vec<Missing>) -> Result<Vec<Made>, AppError> {
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
    for Missing {
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
            tracing::warn!(%agent, "the encoder does not take what this agent says; it is found by words alone");
        }
        made.push(Made {
            agent,
            digest,
            vectors,
        });
    }
    Ok(made)
}

/// The vectors of one agent's texts, cut ever shorter where the encoder does not take them; nothing where it takes
/// none of them. Nobody's texts may keep the others from being encoded.
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

/// The first bits of a digest: enough to see that texts are the same as before.
fn stamp(digest: &str) -> u64 {
    digest
        .get(..16)
        .and_then(|first| u64::from_str_radix(first, 16).ok())
        .unwrap_or(0)
}
