//! Bringing a model to every agent: a walk over all of them first, then whatever happens to them.
//!
//! What is made is kept in the database, so a process that starts goes on where the last one was; each process holds
//! a copy for its own searches. Several processes may work on one model: whoever comes second finds what is made.

use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use super::texts::{digest, texts};
use super::{Progress, Serving, calibration};
use crate::app::{App, AppError};
use crate::embed::{EmbedError, Embedder, TextKind};
use crate::index::Document;
use crate::store::entity::{agent_vectors, model};
use crate::store::{events, vectors as rows};
use crate::vectors::{AgentVectors, Change, Vectors, VectorsError, remove_left_over};

/// Agents of one step of the walk.
const WALK: u64 = 16;
/// Events of one step behind the walk.
const EVENTS: u64 = 200;
/// Texts given to the encoder at once: few enough that a step ends soon.
const TEXTS: usize = 32;

/// A model on its way to every agent.
#[derive(Debug)]
pub struct Embedding {
    embedder: Arc<dyn Embedder>,
    vectors: Arc<Vectors>,
    row: model::Model,
    /// The event up to which this process has seen what happened.
    applied: i64,
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

    /// Whether it has come to every agent.
    pub fn is_complete(&self) -> bool {
        self.row.completed_at.is_some()
    }

    fn cutoff(&self) -> Option<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "a cosine")]
        self.row.cutoff.map(|cutoff| cutoff as f32)
    }
}

impl App {
    /// Takes up a model where it was left, with what the database holds of it.
    ///
    /// # Errors
    /// Where the database or the file of vectors fails.
    pub async fn embedding_open(&self, embedder: Arc<dyn Embedder>) -> Result<Embedding, AppError> {
        let info = embedder.model();
        let fresh = model::Model {
            id: info.id.clone(),
            name: info.name.clone(),
            dimensions: i32::try_from(info.dimensions).unwrap_or(i32::MAX),
            created_at: self.now().0,
            applied_seq: events::highest_seq(&self.store).await?,
            walked_to: None,
            completed_at: None,
            cutoff: None,
        };
        let dimensions = info.dimensions;
        let row = self.store.model_get_or_put(fresh).await?;
        let vectors = Arc::new(Vectors::create(&self.vectors_folder(), dimensions)?);
        let mut after = None;
        loop {
            let some = rows::vectors_walk(&self.store, &row.id, after).await?;
            let Some(last) = some.last() else { break };
            after = Some(last.agent_id);
            put(
                &vectors,
                some.into_iter().map(|row| kept(row, dimensions)).collect(),
            )
            .await?;
        }
        let embedding = Embedding {
            applied: row.applied_seq,
            embedder,
            vectors,
            row,
        };
        self.embedding_serve(&embedding);
        Ok(embedding)
    }

    /// Does the next part of what a model has to do.
    ///
    /// # Errors
    /// Where the database, the encoder or the file of vectors fails; the same part is tried again then.
    pub async fn embedding_step(&self, embedding: &mut Embedding) -> Result<Step, AppError> {
        if !embedding.is_complete() {
            return self.walk(embedding).await;
        }
        let enough = embedding.vectors.agents() >= calibration::FEWEST;
        if enough && embedding.row.cutoff.is_none() && self.calibrate(embedding).await? {
            self.embedding_serve(embedding);
        }
        if embedding.vectors.is_wasteful() {
            *embedding = self.embedding_open(Arc::clone(&embedding.embedder)).await?;
        }
        self.follow(embedding).await
    }

    /// Removes what an earlier process has left where vectors are kept, before the first model is taken up.
    ///
    /// # Errors
    /// Where the folder cannot be read, or a file in it not be removed.
    pub fn vectors_left_over(&self) -> std::io::Result<()> {
        remove_left_over(&self.vectors_folder())
    }

    fn vectors_folder(&self) -> PathBuf {
        self.config.store.data_dir.join("vectors")
    }

    /// The id of another model than this one that has come to every agent, the last one used.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn model_before(&self, wanted: &str) -> Result<Option<String>, AppError> {
        let mut all = rows::models(&self.store).await?;
        all.retain(|row| row.id != wanted && row.completed_at.is_some());
        Ok(all.pop().map(|row| row.id))
    }

    /// Forgets another model than those named, a part of it; says whether there may be more to forget.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn models_forget_but(&self, kept: &[String]) -> Result<bool, AppError> {
        let all = rows::models(&self.store).await?;
        let Some(old) = all.into_iter().find(|row| !kept.contains(&row.id)) else {
            return Ok(false);
        };
        let write = self.store.write().await?;
        if write.model_forget(&old.id).await? {
            tracing::info!(
                model = old.name,
                "the vectors of another model were dropped"
            );
        }
        write.commit().await?;
        Ok(true)
    }

    async fn walk(&self, embedding: &mut Embedding) -> Result<Step, AppError> {
        let (documents, last) = self.documents_walk(embedding.row.walked_to, WALK).await?;
        let made = self.bring(embedding, &documents).await?;
        let id = &embedding.row.id;
        let write = self.store.write().await?;
        write
            .vectors_put(made.iter().map(|made| made.row(id)).collect())
            .await?;
        match last {
            Some(last) => write.model_walked(id, last).await?,
            None => write.model_completed(id, self.now().0).await?,
        }
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
                embedding.row.completed_at = Some(self.now().0);
                self.embedding_serve(embedding);
            }
        }
        self.tell(embedding);
        Ok(Step::More(count))
    }

    async fn follow(&self, embedding: &mut Embedding) -> Result<Step, AppError> {
        let events = events::events_after(&self.store, embedding.applied, EVENTS).await?;
        let Some(last) = events.last().map(|event| event.seq) else {
            return Ok(Step::Done);
        };
        let mut agents: Vec<Uuid> = events.iter().filter_map(|event| event.agent_id).collect();
        agents.sort_unstable();
        agents.dedup();
        let (documents, gone) = self.documents(&agents).await?;
        let made = self.bring(embedding, &documents).await?;
        let id = &embedding.row.id;
        let write = self.store.write().await?;
        write
            .vectors_put(made.iter().map(|made| made.row(id)).collect())
            .await?;
        write.vectors_forget(id, &gone).await?;
        write.model_applied(id, last).await?;
        write.commit().await?;
        let count = u32::try_from(made.len()).unwrap_or(u32::MAX);
        let mut changes: Vec<Change> = made.into_iter().map(Made::change).collect();
        changes.extend(gone.into_iter().map(|agent| (agent, None)));
        put(&embedding.vectors, changes).await?;
        embedding.applied = last;
        self.tell(embedding);
        Ok(Step::More(count))
    }

    /// The vectors of these agents that are not held yet; those that another process has made are read, the others
    /// are made.
    async fn bring(
        &self,
        embedding: &Embedding,
        documents: &[Document],
    ) -> Result<Vec<Made>, AppError> {
        let mut missing: Vec<(Uuid, String, Vec<String>)> = Vec::new();
        for document in documents {
            let texts = texts(document);
            let digest = digest(&texts);
            if embedding.vectors.stamp(document.id) != Some(stamp(&digest)) {
                missing.push((document.id, digest, texts));
            }
        }
        let ids: Vec<Uuid> = missing.iter().map(|(id, ..)| *id).collect();
        let known = rows::vectors_of(&self.store, &embedding.row.id, &ids).await?;
        let (mut found, mut changes) = (Vec::new(), Vec::new());
        for row in known {
            let same = |(id, digest, _): &(Uuid, String, _)| {
                *id == row.agent_id && *digest == row.text_digest
            };
            if let Some(place) = missing.iter().position(same) {
                missing.swap_remove(place);
                changes.push(kept(row, embedding.vectors.dimensions()));
            }
        }
        put(&embedding.vectors, changes).await?;
        let all: Vec<String> = missing
            .iter()
            .flat_map(|(.., texts)| texts)
            .cloned()
            .collect();
        let mut vectors = Vec::with_capacity(all.len());
        for some in all.chunks(TEXTS) {
            vectors.extend(
                embedding
                    .embedder
                    .embed(some.to_vec(), TextKind::Card)
                    .await?,
            );
        }
        let mut vectors = vectors.into_iter();
        for (agent, digest, texts) in missing {
            let own: Vec<Vec<f32>> = vectors.by_ref().take(texts.len()).collect();
            let vectors =
                AgentVectors::new(&own).map_err(|error| AppError::internal(error.to_string()))?;
            found.push(Made {
                agent,
                digest,
                vectors,
            });
        }
        Ok(found)
    }

    /// Works out how near agents have to be, where there are enough of them; says whether that is known now.
    async fn calibrate(&self, embedding: &mut Embedding) -> Result<bool, AppError> {
        let (sample, _) = self.documents_walk(None, calibration::SAMPLE).await?;
        let cutoff = calibration::cutoff(embedding.embedder.as_ref(), &embedding.vectors, &sample)
            .await
            .map_err(|error| AppError::internal(error.to_string()))?;
        let Some(cutoff) = cutoff else {
            return Ok(false);
        };
        let write = self.store.write().await?;
        write
            .model_cutoff(&embedding.row.id, f64::from(cutoff))
            .await?;
        write.commit().await?;
        embedding.row.cutoff = Some(f64::from(cutoff));
        Ok(true)
    }

    /// Lets searches go by a model, where it has come to every agent.
    pub fn embedding_serve(&self, embedding: &Embedding) {
        if embedding.is_complete() {
            self.meanings.serving.store(Some(Arc::new(Serving {
                embedder: Arc::clone(&embedding.embedder),
                vectors: Arc::clone(&embedding.vectors),
                cutoff: embedding.cutoff().unwrap_or(calibration::UNKNOWN),
            })));
        }
        self.tell(embedding);
    }

    fn tell(&self, embedding: &Embedding) {
        self.meanings.tell(Progress {
            model: embedding.row.id.clone(),
            name: embedding.row.name.clone(),
            agents: embedding.vectors.agents(),
            memory: embedding.vectors.size(),
            cutoff: embedding.cutoff(),
            serving: embedding.is_complete(),
        });
    }
}

/// Vectors that were just made.
struct Made {
    agent: Uuid,
    digest: String,
    vectors: AgentVectors,
}

impl Made {
    fn row(&self, model: &str) -> agent_vectors::Model {
        agent_vectors::Model {
            model_id: model.to_owned(),
            agent_id: self.agent,
            text_digest: self.digest.clone(),
            vectors: self.vectors.as_bytes().to_vec(),
        }
    }

    fn change(self) -> Change {
        (self.agent, Some((stamp(&self.digest), self.vectors)))
    }
}

/// A kept row as a change; one that cannot be read is made again when its agent is next looked at.
fn kept(row: agent_vectors::Model, dimensions: usize) -> Change {
    let vectors = AgentVectors::from_bytes(row.vectors, dimensions).ok();
    (
        row.agent_id,
        vectors.map(|vectors| (stamp(&row.text_digest), vectors)),
    )
}

/// The first bits of a digest: enough to see that texts are the same as before.
fn stamp(digest: &str) -> u64 {
    digest
        .get(..16)
        .and_then(|first| u64::from_str_radix(first, 16).ok())
        .unwrap_or(0)
}

/// Puts changes in memory and file, where that may block.
async fn put(vectors: &Arc<Vectors>, changes: Vec<Change>) -> Result<(), AppError> {
    if changes.is_empty() {
        return Ok(());
    }
    let vectors = Arc::clone(vectors);
    let put = tokio::task::spawn_blocking(move || vectors.put(&changes)).await;
    put.map_err(|error| AppError::internal(error.to_string()))?
        .map_err(AppError::from)
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
