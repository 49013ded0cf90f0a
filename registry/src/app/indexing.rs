//! The index follows the events: from the database, in order, in groups, and anew where it must.

use uuid::Uuid;

use super::{App, AppError};
use crate::index::IndexError;
use crate::store::events;

/// Events applied in one commit.
const EVENTS: u64 = 2000;
/// Agents read at a time while the index is built anew.
const WALK: u64 = 1000;

/// Why the index does not follow.
#[derive(Debug, thiserror::Error)]
pub enum IndexingError {
    /// It cannot go on as it is and must be built anew.
    #[error("{0}")]
    Broken(String),
    /// Something that may pass.
    #[error("{0}")]
    Failed(String),
}

impl From<IndexError> for IndexingError {
    fn from(error: IndexError) -> Self {
        if error.needs_rebuild() {
            Self::Broken(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl From<AppError> for IndexingError {
    fn from(error: AppError) -> Self {
        Self::Failed(error.internal.unwrap_or(error.public))
    }
}

impl From<crate::store::StoreError> for IndexingError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Failed(error.0)
    }
}

impl App {
    /// Applies the next events to the index; says whether there were any. Everything kept in memory about
    /// their agents is forgotten on the way, so that what another process has changed is no longer shown
    /// here either.
    ///
    /// # Errors
    /// Where the database or the index fails; the same events are tried again next time.
    pub async fn index_next(&self) -> Result<bool, IndexingError> {
        let rows = events::events_after(&self.store, self.index.applied_seq(), EVENTS).await?;
        self.heard_database();
        let Some(last) = rows.last() else {
            return Ok(false);
        };
        let seq = last.seq;
        let mut agents: Vec<Uuid> = rows.iter().filter_map(|row| row.agent_id).collect();
        agents.sort_unstable();
        agents.dedup();
        self.changes.note(&agents);
        self.index.note_changed(&agents, seq);
        self.wake.events.send_if_modified(|known| {
            let newer = seq > *known;
            *known = seq.max(*known);
            newer
        });
        let (documents, gone) = self.documents(&agents).await?;
        let index = self.index.clone();
        blocking(move || index.apply(documents, &gone, seq)).await?;
        Ok(true)
    }

    /// Builds the index from the database while the old one serves; answers how many agents it holds, or
    /// `None` where `cancelled` said to stop.
    ///
    /// # Errors
    /// Where the database or the index fails; the old index stays.
    pub async fn index_anew(
        &self,
        cancelled: impl Fn() -> bool,
    ) -> Result<Option<usize>, IndexingError> {
        // What happens from here on is applied once more afterwards, which is harmless.
        let from = events::highest_seq(&self.store).await?;
        let mut rebuild = self.index.begin_rebuild()?;
        let mut count = 0;
        let mut walked = self.documents_walk(None, WALK).await?;
        while let (documents, Some(last)) = walked {
            self.heard_database();
            if cancelled() {
                return Ok(None);
            }
            count += documents.len();
            // The next agents are read while these are taken in.
            let adding = blocking(move || rebuild.add(documents).map(|()| rebuild));
            let (added, next) = tokio::join!(adding, self.documents_walk(Some(last), WALK));
            rebuild = added?;
            walked = next?;
        }
        if cancelled() {
            return Ok(None);
        }
        blocking(move || rebuild.finish(from)).await?;
        Ok(Some(count))
    }
}

/// Runs index work where it may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IndexError> + Send + 'static,
) -> Result<T, IndexingError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(error) => Err(IndexingError::Failed(error.to_string())),
    }
}
