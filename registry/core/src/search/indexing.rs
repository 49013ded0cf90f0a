//! Applies events to the index: from the database, in order, in groups; and rebuilds it.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_policy::Action;
use a2a_registry_search::{ChangedAgent, Document, IndexError, Rebuild};
use a2a_registry_store::entity::event;
use a2a_registry_store::{Handle, events};
use uuid::Uuid;

use crate::agents::documents::{WALK, documents_of, documents_walk};
use crate::agents::policy_facts::{labels_of_all, rows_decide};
use crate::commit::agent_rows::AgentRows;
use crate::context::Context;
use crate::database::heard_database;
use crate::error::AppError;

/// Events per commit.
pub const EVENTS: u64 = 2000;
/// How often the database is polled for events during a rebuild.
const HEARD_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum IndexingError {
    /// The index is broken and must be rebuilt.
    #[error("{0}")]
    Broken(String),
    /// A failure that may be temporary.
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

/// Applies the next events to the index; returns whether there were any. The cache entries of their agents are
/// invalidated, so that changes by another process show here too.
///
/// # Errors
/// Where the database or the index fails; the next call applies the same events.
pub async fn index_next(context: &Context) -> Result<bool, IndexingError> {
    if context.index.is_missing() {
        hear_all(context).await?;
        return Err(IndexingError::Broken("there is none".into()));
    }
    let changes = read_next(context).await?;
    // Only here: a database that cannot return the agents counts as not responding.
    heard_database(context);
    let Some(NextChanges {
        documents,
        leaving,
        seq,
    }) = changes
    else {
        return Ok(false);
    };
    let index = context.index.clone();
    let applied = blocking(move || index.apply(documents, &leaving, seq)).await;
    if applied.is_err() {
        // If the index refuses them, the overlay must still hide them from callers who may not see them.
        hear_all(context).await?;
    }
    applied?;
    context
        .wake
        .applied
        .send_replace(context.index.applied_seq());
    Ok(true)
}

struct NextChanges {
    documents: Vec<Document>,
    leaving: Vec<Uuid>,
    /// The last of these events.
    seq: i64,
}

/// Reads the next events that the index has not applied, and what it shows after them.
async fn read_next(context: &Context) -> Result<Option<NextChanges>, IndexingError> {
    let read = context.store.read().await?;
    let Some((heard, seq)) = hear(context, &read, context.index.applied_seq()).await? else {
        return Ok(None);
    };
    let Heard { agents, rows } = heard;
    let documents = documents_of(context, &read, rows).await?;
    let found: HashSet<Uuid> = documents.iter().map(|one| one.id).collect();
    let about = agents.into_iter();
    Ok(Some(NextChanges {
        leaving: about.filter(|id| !found.contains(id)).collect(),
        documents,
        seq,
    }))
}

/// Whether an event may change for which accounts and groups agents are admitted.
fn changes_who_registered(row: &event::Model) -> bool {
    use EventKind::{
        AccountAccessEnded, AccountChanged, AccountDisabled, AccountEnabled, GroupChanged,
        GroupDeleted,
    };
    let kinds = [
        AccountAccessEnded,
        AccountChanged,
        AccountDisabled,
        AccountEnabled,
        GroupChanged,
        GroupDeleted,
    ];
    kinds.into_iter().any(|kind| row.kind == kind)
}

struct Heard {
    agents: Vec<Uuid>,
    rows: AgentRows,
}

/// Reads the next events after `after`: the cache entries of their agents are invalidated, and searches hide them at
/// once from callers who may not see them any more. Returns what they are about, and the last event.
async fn hear(
    context: &Context,
    on: &impl Handle,
    after: i64,
) -> Result<Option<(Heard, i64)>, IndexingError> {
    let rows = events::events_after(on, after, EVENTS).await?;
    let Some(last) = rows.last() else {
        return Ok(None);
    };
    let seq = last.seq;
    let mut agents: Vec<Uuid> = rows.iter().filter_map(|row| row.agent_id).collect();
    agents.sort_unstable();
    agents.dedup();
    context.changes.note(&agents);
    if context.policies.admitting().has_written(Action::Admit) {
        context.policies.note_changed(&agents);
    }
    if rows.iter().any(changes_who_registered)
        && context.policies.admitting().asks_who(Action::Admit)
    {
        context.policies.note_all_changed();
    }
    if rows.iter().any(|row| row.kind == EventKind::PolicySet) {
        context.policies.note_newer();
    }
    let changed = async {
        let rows = AgentRows::by_ids(on, &agents).await?;
        let changed = changed_under_policies(context, on, &agents, &rows).await?;
        Ok::<_, AppError>((changed, rows))
    };
    let rows = match changed.await {
        Ok((changed, rows)) => {
            context.index.note(&changed, seq);
            rows
        }
        Err(error) => {
            // It is not known who may still see them, so nobody does until it is.
            context.index.note_forbidden(&agents, seq);
            return Err(error.into());
        }
    };
    context.noted.fetch_max(seq, Ordering::AcqRel);
    context.wake.events.send_if_modified(|known| {
        let newer = seq > *known;
        *known = seq.max(*known);
        newer
    });
    Ok(Some((Heard { agents, rows }, seq)))
}

/// The labels that these agents carry now, those of policies included.
async fn changed_under_policies(
    context: &Context,
    on: &impl Handle,
    agents: &[Uuid],
    rows: &AgentRows,
) -> Result<Vec<ChangedAgent>, AppError> {
    let mut changed = rows.changed(agents);
    if rows_decide(context) {
        return Ok(changed);
    }
    let mut carried = labels_of_all(context, on, rows.agents.clone()).await?;
    for agent in &mut changed {
        // An agent that nobody may see stays so, whatever its record says.
        if let Some(labels) = carried
            .remove(&agent.id)
            .filter(|_| !agent.visible_to.is_empty())
        {
            agent.visible_to = labels;
        }
    }
    Ok(changed)
}

/// Removes the documents of agents that wait for a decision by changed rules, so that no search finds them: the event of the
/// decision brings them back, as what they are then. An index that is missing is built without them.
pub async fn remove_undecided(
    context: &Context,
    undecided: Vec<Uuid>,
) -> Result<(), IndexingError> {
    if undecided.is_empty() || context.index.is_missing() {
        return Ok(());
    }
    let (index, seq) = (context.index.clone(), context.index.applied_seq());
    blocking(move || index.apply(Vec::new(), &undecided, seq)).await
}

/// Reads all events that this process has not read yet.
///
/// # Errors
/// Where the database fails; what the events are about is shown to nobody then.
pub async fn hear_all(context: &Context) -> Result<(), IndexingError> {
    loop {
        let read = context.store.read().await?;
        let noted = context.noted.load(Ordering::Acquire);
        if hear(context, &read, noted).await?.is_none() {
            break;
        }
    }
    heard_database(context);
    Ok(())
}

/// Reads events repeatedly while the index itself does not apply them.
async fn hear_meanwhile(context: &Context) -> Infallible {
    loop {
        if let Err(error) = hear_all(context).await {
            tracing::error!(%error, "events of other processes cannot be read");
        }
        tokio::select! {
            () = context.wake.foreign.notified() => {}
            () = tokio::time::sleep(HEARD_EVERY) => {}
        }
    }
}

/// Checks whether the index can be read, at most once a second, because anybody may request it. A broken index is
/// rebuilt, which this requests.
///
/// # Errors
/// What is wrong, as a phrase for anybody.
pub async fn index_readable(context: &Context) -> Result<(), String> {
    let mut last = context.index_asked.lock().await;
    let now = context.now();
    let fresh = last.is_some_and(|last| (now.0 - last.0).abs() < SECOND);
    if !fresh {
        let index = context.index.clone();
        let rebuilt = index.rebuilt();
        // The caller may disconnect meanwhile; the index remembers the result.
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

/// Compares every file of the index with its checksum, until cancelled; a damaged index is rebuilt, which this
/// requests.
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

/// Checks whether the index can be read, as readiness does.
pub async fn index_examined(context: &Context) {
    if let Err(reason) = index_readable(context).await {
        tracing::debug!(reason, "the search index cannot be read");
    }
}

/// Rebuilds the index from the database while the old one serves; returns the number of agents in it, or `None` if it
/// was cancelled.
///
/// # Errors
/// Where the database or the index fails; the old index stays.
pub async fn index_anew(
    context: &Context,
    cancelled: impl Fn() -> bool,
) -> Result<Option<usize>, IndexingError> {
    // Events from here on are applied again afterwards, which is harmless.
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
        // The next agents are read while these are indexed.
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

/// Runs index work on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IndexError> + Send + 'static,
) -> Result<T, IndexingError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(error) => Err(IndexingError::Failed(error.to_string())),
    }
}
