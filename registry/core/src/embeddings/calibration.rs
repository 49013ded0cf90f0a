//! The similarity cutoff of semantic search: calibrated once for each model, from the agents themselves.
//!
//! The example requests of agents serve as queries. Their similarity to other agents is similarity by chance, and the
//! cutoff is the value that one in twenty of these similarities exceeds. An agent below the cutoff is found by meaning
//! only if it is among the nearest few, and its similarity is then no evidence that it fits.

use std::sync::Arc;

use a2a_registry_embed::{EmbedError, Embedder, TextKind};
use a2a_registry_search::AgentDocument;
use a2a_registry_search::vectors::{SlotBitSet, VectorStore, VectorsError};
use uuid::Uuid;

/// Maximum number of agents used for the calibration. Only public agents are used.
pub const MAX_SAMPLE: usize = 256;
/// Minimum number of agents for a calibration.
pub const MIN_SAMPLE: usize = 20;
/// The cutoff of a model that is not calibrated.
pub const DEFAULT_CUTOFF: f32 = 0.25;
/// The percentage of unrelated agents that the cutoff leaves out.
const CUTOFF_PERCENTILE: usize = 95;

#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Vectors(#[from] VectorsError),
    #[error("the comparison of vectors was aborted: {0}")]
    Aborted(String),
}

/// The calibrated cutoff; `None` if there are too few agents.
pub async fn calibrate_cutoff(
    embedder: &Arc<dyn Embedder>,
    vectors: &Arc<VectorStore>,
    sample: &[AgentDocument],
) -> Result<Option<f32>, CalibrationError> {
    if sample.len() < MIN_SAMPLE {
        return Ok(None);
    }
    let mut queries = Vec::with_capacity(sample.len());
    for document in sample {
        let query_vectors = embedder
            .embed(vec![example_query(document)], TextKind::Query)
            .await?;
        queries.push((
            document.id,
            query_vectors.into_iter().next().unwrap_or_default(),
        ));
    }
    let vectors = Arc::clone(vectors);
    let compared =
        tokio::task::spawn_blocking(move || unrelated_similarities(&vectors, &queries)).await;
    let mut chance = compared.map_err(|error| CalibrationError::Aborted(error.to_string()))??;
    let rank = chance.len() * CUTOFF_PERCENTILE / 100;
    if rank >= chance.len() {
        return Ok(None);
    }
    let (_, cutoff, _) = chance.select_nth_unstable_by(rank, f32::total_cmp);
    Ok(Some(*cutoff))
}

/// Computes the similarity of each query to all agents but its own.
fn unrelated_similarities(
    vectors: &VectorStore,
    queries: &[(Uuid, Vec<f32>)],
) -> Result<Vec<f32>, VectorsError> {
    let slots = vectors.assign_slots(queries.iter().map(|(agent, _)| *agent));
    let snapshot = vectors.snapshot();
    let mut similarities = Vec::new();
    for ((_, query), own) in queries.iter().zip(&slots) {
        let mut other_slots = SlotBitSet::with_capacity(snapshot.slot_count());
        let other = |slot: &&u32| *slot != own;
        slots
            .iter()
            .filter(other)
            .for_each(|slot| other_slots.insert(*slot));
        let near = snapshot.find_nearest(query, &other_slots)?;
        similarities.extend(near.iter().map(|near| near.similarity.combined_cosine()));
    }
    Ok(similarities)
}

/// Returns an example request of an agent, used as a query.
fn example_query(document: &AgentDocument) -> String {
    let examples = document.skills.iter().flat_map(|skill| &skill.examples);
    let names = document.skills.iter().map(|skill| &skill.name);
    let texts = examples.chain(names).chain([&document.name]);
    let mut said = texts.filter(|text| !text.trim().is_empty());
    said.next().cloned().unwrap_or_default()
}
