//! The index follows the events: from the database, in order, in groups, and anew where it must.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_search::{IndexError, Rebuild};
use a2a_registry_store::events;
use uuid::Uuid;

use crate::agents::documents::{WALK, documents, documents_walk};
use crate::commit::touched::changed_agents;
use crate::context::Context;
use crate::database::heard_database;
use crate::error::AppError;

/// Events applied in one commit.
const EVENTS: u64 = 2000;
/// How often the database is asked what others have done while the index is built anew.
const HEARD_EVERY: Duration = Duration::from_millis(500);

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

impl From<a2a_registry_store::StoreError> for IndexingError {
    fn from(error: a2a_registry_store::StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Applies the next events to the index; says whether there were any. Everything kept in memory about
/// their agents is forgotten on the way, so that what another process has changed is no longer shown
/// here either.
///
/// # Errors
/// Where the database or the index fails; the same events are tried again next time.
pub async fn index_next(context: &Context) -> Result<bool, IndexingError> {
    if context.index.is_missing() {
        hear_all(context).await?;
        return Err(IndexingError::Broken("there is none".into()));
    }
    let Some((agents, seq)) = hear(context, context.index.applied_seq()).await? else {
        heard_database(context);
        return Ok(false);
    };
    let (documents, _) = documents(context, &agents).await?;
    // Only now: a database that cannot say what has become of the agents is as good as silent.
    heard_database(context);
    let found: HashSet<Uuid> = documents.iter().map(|one| one.id).collect();
    let leaving: Vec<Uuid> = agents
        .into_iter()
        .filter(|id| !found.contains(id))
        .collect();
    let index = context.index.clone();
    let applied = blocking(move || index.apply(documents, &leaving, seq)).await;
    if applied.is_err() {
        // What it does not take in it must not go on showing to whom that is forbidden.
        hear_all(context).await?;
    }
    applied?;
    context
        .wake
        .applied
        .send_replace(context.index.applied_seq());
    Ok(true)
}

/// Hears of the next events after `after`: whatever is kept in memory about their agents is forgotten, and from
/// now on searches show none of them to anybody who may not see it any more. Answers the agents and the last event.
async fn hear(context: &Context, after: i64) -> Result<Option<(Vec<Uuid>, i64)>, IndexingError> {
    let rows = events::events_after(&context.store, after, EVENTS).await?;
    let Some(last) = rows.last() else {
        return Ok(None);
    };
    let seq = last.seq;
    let mut agents: Vec<Uuid> = rows.iter().filter_map(|row| row.agent_id).collect();
    agents.sort_unstable();
    agents.dedup();
    context.changes.note(&agents);
    match changed_agents(&context.store, &agents).await {
        Ok(changed) => context.index.note(&changed, seq),
        Err(error) => {
            // Who may see them still is not known, so nobody does until it is.
            context.index.note_forbidden(&agents, seq);
            return Err(error.into());
        }
    }
    context.noted.fetch_max(seq, Ordering::AcqRel);
    context.wake.events.send_if_modified(|known| {
        let newer = seq > *known;
        *known = seq.max(*known);
        newer
    });
    Ok(Some((agents, seq)))
}

/// Hears of every event that it has not heard of yet.
async fn hear_all(context: &Context) -> Result<(), IndexingError> {
    while hear(context, context.noted.load(Ordering::Acquire))
        .await?
        .is_some()
    {}
    heard_database(context);
    Ok(())
}

/// Hears of events again and again, for as long as the index itself does not follow them.
async fn hear_meanwhile(context: &Context) -> Infallible {
    loop {
        if let Err(error) = hear_all(context).await {
            tracing::error!(%error, "what others do is not heard of");
        }
        tokio::select! {
            () = context.wake.foreign.notified() => {}
            () = tokio::time::sleep(HEARD_EVERY) => {}
        }
    }
}

/// Whether the index can be read, by a question that is asked at most once a second: anybody may ask for it.
/// What is wrong with it is mended by a rebuild, which this asks for.
///
/// # Errors
/// What is wrong, in words for anybody.
pub(crate) async fn index_readable(context: &Context) -> Result<(), String> {
    let mut last = context.index_asked.lock().await;
    let now = context.now();
    let fresh = last.is_some_and(|last| (now.0 - last.0).abs() < SECOND);
    if !fresh {
        let index = context.index.clone();
        let rebuilt = index.rebuilt();
        // Whoever asked may go away meanwhile; what was found is remembered by the index.
        let asked = tokio::task::spawn_blocking(move || index.check()).await;
        *last = Some(now);
        match asked {
            Ok(Err(IndexError::NeedsRebuild { .. })) => *last = None,
            Ok(_) => {}
            Err(error) => context.index.report_damage(error.to_string(), rebuilt),
        }
    }
    drop(last);
    if context.index.damage().is_some() {
        context.wake.damage.notify_one();
        return Err("is damaged and is being rebuilt".to_owned());
    }
    if context.index.is_missing() {
        return Err("is being built".to_owned());
    }
    Ok(())
}

/// Compares every file of the index with its checksum, until that is cancelled; what is wrong is mended by a
/// rebuild, which this asks for.
pub async fn index_verified(context: &Context, cancelled: impl Fn() -> bool + Send + 'static) {
    let index = context.index.clone();
    let verified = tokio::task::spawn_blocking(move || index.damaged_files(cancelled)).await;
    if let Ok(Err(error)) = verified {
        tracing::warn!(%error, "the files of the search index could not be compared with their checksums");
    }
    if context.index.damage().is_some() {
        context.wake.damage.notify_one();
    }
}

/// Asks whether the index can be read, as readiness does.
pub async fn index_examined(context: &Context) {
    if let Err(reason) = index_readable(context).await {
        tracing::debug!(reason, "the search index is not as it should be");
    }
}

/// Builds the index from the database while the old one serves; answers how many agents it holds, or
/// `None` where `cancelled` said to stop.
///
/// # Errors
/// Where the database or the index fails; the old index stays.
pub async fn index_anew(
    context: &Context,
    cancelled: impl Fn() -> bool,
) -> Result<Option<usize>, IndexingError> {
    // What happens from here on is applied once more afterwards, which is harmless.
    let from = events::highest_seq(&context.store).await?;
    let rebuild = context.index.begin_rebuild()?;
    tokio::select! {
        built = build_from(context, rebuild, from, cancelled) => built,
        never = hear_meanwhile(context) => match never {},
    }
}

async fn build_from(
    context: &Context,
    mut rebuild: Rebuild,
    from: i64,
    cancelled: impl Fn() -> bool,
) -> Result<Option<usize>, IndexingError> {
    let mut count = 0;
    let mut walked = documents_walk(context, None, WALK).await?;
    while let (documents, Some(last)) = walked {
        if cancelled() {
            return Ok(None);
        }
        count += documents.len();
        // The next agents are read while these are taken in.
        let adding = blocking(move || rebuild.add(documents).map(|()| rebuild));
        let (added, next) = tokio::join!(adding, documents_walk(context, Some(last), WALK));
        rebuild = added?;
        walked = next?;
    }
    if cancelled() {
        return Ok(None);
    }
    blocking(move || rebuild.finish(from)).await?;
    context
        .wake
        .applied
        .send_replace(context.index.applied_seq());
    Ok(Some(count))
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
