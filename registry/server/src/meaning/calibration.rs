//! How near an agent has to be to a query to match: worked out once for each model, from the agents themselves.
//!
//! What agents give as examples of requests stands for queries. How near such a query is to the other agents is what
//! chance alone brings about; nearer than four of five of them is near. It is no more than that because the order tells
//! better who fits, and whoever is cut off is not found at all.

use std::sync::Arc;

use a2a_registry_embed::{EmbedError, Embedder, TextKind};
use a2a_registry_search::Document;
use a2a_registry_search::vectors::{SlotBits, Vectors, VectorsError};
use uuid::Uuid;

/// Agents that are looked at for it: those that anybody finds.
pub(crate) const SAMPLE: usize = 256;
/// With fewer agents nothing can be said.
pub(crate) const FEWEST: usize = 20;
/// What counts as near until something can be said.
pub(crate) const UNKNOWN: f32 = 0.25;
/// Of a hundred agents that a query is not about so many are further away than the cutoff.
const FURTHER: usize = 80;

/// Why a cutoff was not worked out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalibrationError {
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Vectors(#[from] VectorsError),
    #[error("comparing broke off: {0}")]
    BrokenOff(String),
}

/// The cutoff, where there are enough agents to say.
///
/// # Errors
/// Where the encoder or the vectors fail.
pub(crate) async fn cutoff(
    embedder: &Arc<dyn Embedder>,
    vectors: &Arc<Vectors>,
    sample: &[Document],
) -> Result<Option<f32>, CalibrationError> {
    if sample.len() < FEWEST {
        return Ok(None);
    }
    let mut queries = Vec::with_capacity(sample.len());
    for document in sample {
        let asked = embedder
            .embed(vec![request(document)], TextKind::Query)
            .await?;
        queries.push((document.id, asked.into_iter().next().unwrap_or_default()));
    }
    let vectors = Arc::clone(vectors);
    let compared = tokio::task::spawn_blocking(move || compare(&vectors, &queries)).await;
    let mut chance = compared.map_err(|error| CalibrationError::BrokenOff(error.to_string()))??;
    let rank = chance.len() * FURTHER / 100;
    if rank >= chance.len() {
        return Ok(None);
    }
    let (_, cutoff, _) = chance.select_nth_unstable_by(rank, f32::total_cmp);
    Ok(Some(*cutoff))
}

/// How near each query is to the other agents than its own.
fn compare(vectors: &Vectors, queries: &[(Uuid, Vec<f32>)]) -> Result<Vec<f32>, VectorsError> {
    let slots = vectors.slots_of(queries.iter().map(|(agent, _)| *agent));
    let snapshot = vectors.snapshot();
    let mut chance = Vec::new();
    for ((_, query), own) in queries.iter().zip(&slots) {
        let mut others = SlotBits::none(snapshot.slots());
        let other = |slot: &&u32| *slot != own;
        slots
            .iter()
            .filter(other)
            .for_each(|slot| others.insert(*slot));
        let near = snapshot.nearest(query, &others)?;
        chance.extend(near.iter().map(|near| near.similarity.mean()));
    }
    Ok(chance)
}

/// What somebody who looks for this agent might ask.
fn request(document: &Document) -> String {
    let examples = document.skills.iter().flat_map(|skill| &skill.examples);
    let names = document.skills.iter().map(|skill| &skill.name);
    let texts = examples.chain(names).chain([&document.name]);
    let mut said = texts.filter(|text| !text.trim().is_empty());
    said.next().cloned().unwrap_or_default()
}
