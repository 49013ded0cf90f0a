//! Applies events from the database to the index, in order and in groups, and rebuilds the index.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_crawler::trace_spans::{TRACE_TARGET, count_attribute};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_policy::Action;
use a2a_registry_search::{AgentDocument, ChangedAgent, IndexError, IndexRebuild};
use a2a_registry_store::entity::event;
use a2a_registry_store::{Executor, events};
use tracing::Instrument as _;
use uuid::Uuid;

use crate::agents::documents::{REBUILD_BATCH, build_agent_documents, load_agent_documents_after};
use crate::agents::policy_attributes::{is_visibility_policy_free, visibility_labels_by_agent};
use crate::commit::agent_rows::AgentRows;
use crate::context::AppContext;
use crate::database_health::record_database_contact;
use crate::error::AppError;
use crate::policy_sets::age_progress::AgeProgress;

/// Maximum number of events per commit.
pub const MAX_EVENTS_PER_COMMIT: u64 = 2000;
/// How often the database is polled for events during a rebuild.
const REBUILD_POLL_INTERVAL: Duration = Duration::from_millis(500);

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
/// invalidated, so that changes by other processes show in this process too.
///
/// # Errors If the database or the index fails. The next call applies the same events.
pub async fn apply_next_events(context: &AppContext) -> Result<bool, IndexingError> {
    if context.index.is_missing() {
        catch_up_caches(context).await?;
        return Err(IndexingError::Broken("there is none".into()));
    }
    let changes = read_next_index_changes(context).await?;
    // Recorded only here: a database that cannot return the agents counts as not responding.
    record_database_contact(context);
    let Some(IndexChanges {
        documents,
        removed_ids,
        seq,
    }) = changes
    else {
        return Ok(false);
    };
    let index = context.index.clone();
    let span = tracing::trace_span!(
        target: TRACE_TARGET,
        "index",
        documents = count_attribute(documents.len()),
        removed = count_attribute(removed_ids.len()),
        seq,
    );
    let apply = run_blocking_index_work(move || index.apply_changes(documents, &removed_ids, seq));
    let applied = apply.instrument(span).await;
    if applied.is_err() {
        // If the index refuses the events, the overlay must still hide their agents from callers who may not see them.
        catch_up_caches(context).await?;
    }
    applied?;
    context
        .signals
        .applied_event
        .send_replace(context.index.applied_seq());
    Ok(true)
}

struct IndexChanges {
    documents: Vec<AgentDocument>,
    removed_ids: Vec<Uuid>,
    /// The sequence number of the last of these events.
    seq: i64,
}

/// Reads the next events that the index has not applied, and the resulting changes of the index.
async fn read_next_index_changes(
    context: &AppContext,
) -> Result<Option<IndexChanges>, IndexingError> {
    let read_tx = context.store.begin_read().await?;
    let Some((subjects, seq)) =
        apply_events_to_caches(context, &read_tx, context.index.applied_seq()).await?
    else {
        return Ok(None);
    };
    let ChangedAgentRows { agents, rows } = subjects;
    let documents = build_agent_documents(context, &read_tx, rows).await?;
    let documented_ids: HashSet<Uuid> = documents.iter().map(|one| one.id).collect();
    let agent_ids = agents.into_iter();
    Ok(Some(IndexChanges {
        removed_ids: agent_ids
            .filter(|id| !documented_ids.contains(id))
            .collect(),
        documents,
        seq,
    }))
}

/// Whether an event may change the accounts and groups for which agents are admitted.
fn affects_registrants(row: &event::Model) -> bool {
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

/// Marks what this process keeps of these agents as stale, and of callers if these events may change any.
fn mark_changes(context: &AppContext, rows: &[event::Model], agents: &[Uuid]) {
    context.change_counters.increment(agents);
    if rows.iter().any(changes_callers) {
        context.decision_callers.invalidate();
    }
}

/// Whether an event may change what callers may do; one that only a later build knows may.
fn changes_callers(row: &event::Model) -> bool {
    row.kind
        .known_value()
        .is_none_or(EventKind::changes_callers)
}

struct ChangedAgentRows {
    agents: Vec<Uuid>,
    rows: AgentRows,
}

/// Reads the next events after `after`: the cache entries of their agents are invalidated, and searches hide these
/// agents at once from callers who may no longer see them. Returns the agents and the last event.
async fn apply_events_to_caches(
    context: &AppContext,
    db: &impl Executor,
    after: i64,
) -> Result<Option<(ChangedAgentRows, i64)>, IndexingError> {
    let rows = events::events_after(db, after, MAX_EVENTS_PER_COMMIT).await?;
    let Some(last) = rows.last() else {
        return Ok(None);
    };
    let seq = last.seq;
    let mut agents: Vec<Uuid> = rows.iter().filter_map(|row| row.agent_id).collect();
    agents.sort_unstable();
    agents.dedup();
    follow_age_progress(context, db, &rows).await?;
    mark_changes(context, &rows, &agents);
    if context
        .policy_sets
        .newest_set()
        .has_active_custom_policy(Action::Admit)
    {
        context.policy_sets.queue_changed_agents(&agents);
    }
    if rows.iter().any(affects_registrants)
        && context
            .policy_sets
            .newest_set()
            .depends_on_principal(Action::Admit)
    {
        context.policy_sets.queue_all_agents();
    }
    if rows.iter().any(|row| row.kind == EventKind::PolicySet) {
        context.policy_sets.flag_newer_set();
    }
    if rows.iter().any(|row| row.kind == EventKind::DomainErased) {
        free_erased_content(context);
    }
    let changed_and_rows = async {
        let rows = AgentRows::load_by_ids(db, &agents).await?;
        let changed = load_visibility_labels(context, db, &agents, &rows).await?;
        Ok::<_, AppError>((changed, rows))
    };
    let rows = match changed_and_rows.await {
        Ok((changed, rows)) => {
            context.index.record_pending_changes(&changed, seq);
            rows
        }
        Err(error) => {
            // It is not known who may still see these agents, so they are hidden from everyone until it is.
            context.index.record_hidden_agents(&agents, seq);
            return Err(error.into());
        }
    };
    context.caches_applied_seq.fetch_max(seq, Ordering::AcqRel);
    context.signals.events.send_if_modified(|known| {
        let newer = seq > *known;
        *known = seq.max(*known);
        newer
    });
    Ok(Some((ChangedAgentRows { agents, rows }, seq)))
}

/// Makes the ages of agents count to the stored moment, before these events are applied.
async fn follow_age_progress(
    context: &AppContext,
    db: &impl Executor,
    rows: &[event::Model],
) -> Result<(), IndexingError> {
    let compares_ages = !context.policy_sets.newest_set().age_thresholds().is_empty();
    if compares_ages || rows.iter().any(|row| row.kind == EventKind::PolicySet) {
        let ages = AgeProgress::load(db).await?;
        context.policy_sets.advance_ages(ages.as_of);
    }
    Ok(())
}

/// Frees what the caches of this process hold of cards, and requests a rebuild of the index: its files contain the text
/// of deleted documents until they are merged, which may never happen.
fn free_erased_content(context: &AppContext) {
    // For the next start, if this process ends before the index is rebuilt.
    if let Err(error) = std::fs::write(context.config().erased_cards_marker(), "") {
        tracing::error!(
            %error,
            "if this process ends before the index is rebuilt, run `a2a-registry reindex` to erase cards from it"
        );
    }
    context.card_cache.clear();
    context.agent_cache.clear();
    context.search_cache.clear();
    // A catalog that is being built is replaced at the next request, because of the event.
    if let Ok(mut catalog) = context.cached_catalog.try_lock() {
        *catalog = None;
    }
    context.signals.reindex.notify_one();
}

/// Loads the current labels of these agents, including those of policies.
async fn load_visibility_labels(
    context: &AppContext,
    db: &impl Executor,
    agents: &[Uuid],
    rows: &AgentRows,
) -> Result<Vec<ChangedAgent>, AppError> {
    let mut changed = rows.to_changed_agents(agents);
    if is_visibility_policy_free(context) {
        return Ok(changed);
    }
    let mut labels_by_agent = visibility_labels_by_agent(context, db, rows.agents.clone()).await?;
    for agent in &mut changed {
        // An agent that no one may see stays hidden, regardless of its record.
        if let Some(labels) = labels_by_agent
            .remove(&agent.id)
            .filter(|_| !agent.visible_to.is_empty())
        {
            agent.visible_to = labels;
        }
    }
    Ok(changed)
}

/// Removes the documents of agents that wait for a decision under changed rules, so that no search finds them. The
/// event of the decision adds them again in their new state. A missing index is built without them.
pub async fn remove_undecided_agents(
    context: &AppContext,
    undecided: Vec<Uuid>,
) -> Result<(), IndexingError> {
    if undecided.is_empty() || context.index.is_missing() {
        return Ok(());
    }
    let (index, seq) = (context.index.clone(), context.index.applied_seq());
    run_blocking_index_work(move || index.apply_changes(Vec::new(), &undecided, seq)).await
}

/// Reads all events that this process has not read yet.
///
/// # Errors If the database fails. The agents of the events are then hidden from everyone.
pub async fn catch_up_caches(context: &AppContext) -> Result<(), IndexingError> {
    loop {
        let read_tx = context.store.begin_read().await?;
        let noted = context.caches_applied_seq.load(Ordering::Acquire);
        if apply_events_to_caches(context, &read_tx, noted)
            .await?
            .is_none()
        {
            break;
        }
    }
    record_database_contact(context);
    Ok(())
}

/// Reads events repeatedly while the index itself does not apply them.
async fn catch_up_caches_repeatedly(context: &AppContext) -> Infallible {
    loop {
        if let Err(error) = catch_up_caches(context).await {
            tracing::error!(%error, "cannot read events of other processes");
        }
        tokio::select! {
            () = context.signals.foreign_events.notified() => {}
            () = tokio::time::sleep(REBUILD_POLL_INTERVAL) => {}
        }
    }
}

/// Checks whether the index can be read, at most once a second, because anyone may request a check. Requests a rebuild
/// of a broken index.
///
/// # Errors The problem, as a phrase that anyone may read.
pub async fn check_index_readable(context: &AppContext) -> Result<(), String> {
    let mut last_check = context.index_checked_at.lock().await;
    let now = context.now();
    let fresh = last_check.is_some_and(|last| (now.0 - last.0).abs() < SECOND);
    if !fresh {
        let index = context.index.clone();
        let rebuilt = index.rebuild_count();
        // The caller may disconnect meanwhile; the index remembers the result.
        let check_result = tokio::task::spawn_blocking(move || index.check_integrity()).await;
        *last_check = Some(now);
        match check_result {
            Ok(Err(IndexError::NeedsRebuild { .. })) => *last_check = None,
            Ok(_) => {}
            Err(error) => context.index.record_damage(error.to_string(), rebuilt),
        }
    }
    drop(last_check);
    if context.index.damage().is_some() {
        context.signals.index_damage.notify_one();
        return Err("is damaged and is being rebuilt".to_owned());
    }
    if context.index.is_missing() {
        return Err("is being built".to_owned());
    }
    Ok(())
}

/// Compares every file of the index with its checksum, until cancelled. Requests a rebuild of a damaged index.
pub async fn verify_index_files(
    context: &AppContext,
    cancelled: impl Fn() -> bool + Send + 'static,
) {
    let index = context.index.clone();
    let verified = tokio::task::spawn_blocking(move || index.find_damaged_files(cancelled)).await;
    if let Ok(Err(error)) = verified {
        tracing::warn!(%error, "cannot compare the files of the search index with their checksums");
    }
    if context.index.damage().is_some() {
        context.signals.index_damage.notify_one();
    }
}

/// Checks whether the index can be read, like the readiness check.
pub async fn trigger_index_check(context: &AppContext) {
    if let Err(reason) = check_index_readable(context).await {
        tracing::debug!(reason, "the search index cannot be read");
    }
}

/// Rebuilds the index from the database while the old one serves; returns the number of agents in it, or `None` if it
/// was cancelled.
///
/// # Errors If the database or the index fails. The old index stays.
pub async fn rebuild_index(
    context: &AppContext,
    cancelled: impl Fn() -> bool,
) -> Result<Option<usize>, IndexingError> {
    // Events from this point on are applied again afterwards, which is harmless.
    let start_seq = events::highest_event_seq(&context.store).await?;
    let rebuild = context.index.begin_rebuild()?;
    tokio::select! {
        built = build_index(context, rebuild, start_seq, cancelled) => built,
        never = catch_up_caches_repeatedly(context) => match never {},
    }
}

async fn build_index(
    context: &AppContext,
    mut rebuild: IndexRebuild,
    start_seq: i64,
    cancelled: impl Fn() -> bool,
) -> Result<Option<usize>, IndexingError> {
    let mut count = 0;
    let mut batch = load_agent_documents_after(context, None, REBUILD_BATCH).await?;
    while let (documents, Some(last)) = batch {
        if cancelled() {
            return Ok(None);
        }
        count += documents.len();
        // The next agents are loaded while these are indexed.
        let adding =
            run_blocking_index_work(move || rebuild.add_agents(documents).map(|()| rebuild));
        let (added, next) = tokio::join!(
            adding,
            load_agent_documents_after(context, Some(last), REBUILD_BATCH)
        );
        rebuild = added?;
        batch = next?;
    }
    if cancelled() {
        return Ok(None);
    }
    run_blocking_index_work(move || rebuild.finish(start_seq)).await?;
    // An erasure since `start_seq` is applied again, and remembers itself again.
    match std::fs::remove_file(context.config().erased_cards_marker()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%error, "the mark of erased cards cannot be removed, so the next start rebuilds the index \
                again");
        }
        _ => {}
    }
    context
        .signals
        .applied_event
        .send_replace(context.index.applied_seq());
    Ok(Some(count))
}

/// Runs index work on a thread that may block.
pub(super) async fn run_blocking_index_work<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IndexError> + Send + 'static,
) -> Result<T, IndexingError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(error) => Err(IndexingError::Failed(error.to_string())),
    }
}
