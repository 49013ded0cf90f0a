//! Queues deliveries: by the events that the index of this process has applied, and by comparing all agents with what
//! a receiver knows, where more may have changed than events say.
//!
//! Of several processes one queues at a time: the position in the events is a setting, and what was found is written
//! only if the position is still the same.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use a2a_registry_api::HookFilter;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::hook::{DeliveryState, NoticeKind};
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::entity::{event, hook, hook_agent, hook_delivery};
use a2a_registry_store::events::event_agent;
use a2a_registry_store::hook_deliveries::{MAX_WAITING_DELIVERIES, hook_delivery_count};
use a2a_registry_store::hooks::{
    active_hooks, agents_known_to_hook, known_agent_count, known_hook_agents,
};
use a2a_registry_store::policies::newest_policy_set_number;
use a2a_registry_store::{WriteTransaction, events, settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::accounts::subject_callers::load_account_caller_by_id;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::hooks::event_notices::{ComparedHooks, compared_hooks, event_notice, is_notice_for};
use crate::hooks::sight::{
    AgentFacts, compare_sight, load_agent_facts, named_agents, select_agents,
};
use crate::visibility::caller::Caller;

/// The setting with the position in the events.
const POSITION_SETTING: &str = "hooks_position";
/// Events per transaction.
const EVENT_BATCH: u64 = 200;
/// How long the process that has queued last is the only one that does.
const LEASE: i64 = 10 * SECOND;
/// Agents of which the receiver of a hook knows at most. Further ones that match are not reported.
pub const MAX_KNOWN_AGENTS: u64 = 10_000;

/// The last event that was looked at, and the process that does it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    seq: i64,
    holder: Option<Uuid>,
    until: i64,
}

impl Position {
    fn parse(text: Option<String>) -> Option<Self> {
        serde_json::from_str(&text?).ok()
    }

    async fn store(&self, write: &WriteTransaction) -> Result<()> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| AppError::internal(error.to_string()))?;
        Ok(write.set_setting(POSITION_SETTING, &text).await?)
    }
}

/// Begins at the present if no hook has been told of events yet: nobody wants to know of older ones.
pub async fn skip_past_events(write: &WriteTransaction) -> Result<()> {
    let stored = settings::lock_setting(write, POSITION_SETTING).await?;
    if Position::parse(stored).is_some() && !active_hooks(write).await?.is_empty() {
        return Ok(());
    }
    let position = Position {
        seq: events::highest_event_seq(write).await?,
        ..Position::default()
    };
    position.store(write).await
}

/// Queues what the next events tell, and compares all agents for one hook that needs it; returns whether there may be
/// more to do.
pub async fn queue_next_notices(context: &AppContext) -> Result<bool> {
    let store = &context.store;
    let hooks = active_hooks(store).await?;
    let stored = settings::setting_value(store, POSITION_SETTING).await?;
    let Some(position) = Position::parse(stored).filter(|_| !hooks.is_empty()) else {
        return Ok(false);
    };
    let is_held = position.until > context.now().0
        && position.until <= context.now().plus_micros(LEASE).0
        && position.holder != Some(own_id(context));
    if is_held {
        return Ok(false);
    }
    let mut batch = NoticeBatch::new(context, &hooks);
    let mut rows = events::events_after(store, position.seq, EVENT_BATCH).await?;
    // What an agent looks like after an event is read from the index.
    let indexed = context.index.applied_seq();
    rows.retain(|row| row.seq <= indexed);
    let compared = match is_policy_set_current(context).await? {
        true => find_hook_to_compare(context, &hooks).await?,
        false => None,
    };
    if rows.is_empty() && compared.is_none() {
        return Ok(false);
    }
    batch.add_events(&rows).await?;
    if let Some(row) = compared {
        batch.compare_all_agents(row, indexed).await?;
    }
    let seq = rows.last().map_or(position.seq, |last| last.seq);
    let has_more =
        rows.len() as u64 == EVENT_BATCH || compared.is_some() || !batch.to_compare.is_empty();
    let is_written = batch.write(&position, seq).await?;
    context.signals.hooks.notify_one();
    Ok(has_more || !is_written)
}

/// A hook whose agents must be compared, and which has room for what that finds.
async fn find_hook_to_compare<'a>(
    context: &AppContext,
    hooks: &'a [hook::Model],
) -> Result<Option<&'a hook::Model>> {
    for row in hooks
        .iter()
        .filter(|row| row.compare_requested_at.is_some())
    {
        let waiting = hook_delivery_count(&context.store, row.id, DeliveryState::Waiting).await?;
        // At most all that its receiver knows has disappeared, and as many others have appeared.
        if waiting + 2 * MAX_KNOWN_AGENTS <= MAX_WAITING_DELIVERIES {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

fn own_id(context: &AppContext) -> Uuid {
    context.rules_progress.lease_owner
}

/// Whether this process shows agents by the newest policies. It may not know of these yet, so the database is asked.
pub async fn is_policy_set_current(context: &AppContext) -> Result<bool> {
    let newest = newest_policy_set_number(&context.store).await?;
    Ok(u64::try_from(newest).unwrap_or(0) == context.policy_sets.enforced_set().number())
}

/// The filter of a hook; `None`, which is logged, if this build cannot read it.
pub fn parse_hook_filter(row: &hook::Model) -> Option<HookFilter> {
    let filter = serde_json::from_str(&row.filter);
    filter
        .inspect_err(|error| {
            tracing::error!(hook = %row.id, %error, "the filter of a hook cannot be read");
        })
        .ok()
}

/// Whether a hook is told what its account sees of agents.
pub fn tells_of_sight(filter: &HookFilter) -> bool {
    let kinds = NoticeKind::ALL.iter();
    let mut of_sight = kinds.filter(|kind| kind.is_about_sight());
    of_sight.any(|kind| filter.includes_kind(*kind))
}

/// The last event of each agent.
type LastEvents<'e> = HashMap<Uuid, &'e event::Model>;
/// Events that tell something by themselves, each with what it tells and the agent.
type SingleEvents<'e> = Vec<(&'e event::Model, NoticeKind, Uuid)>;

/// What is found before it is written in one transaction.
struct NoticeBatch<'a> {
    context: &'a AppContext,
    hooks: &'a [hook::Model],
    callers: HashMap<Uuid, Option<Caller>>,
    deliveries: Vec<hook_delivery::Model>,
    /// What receivers know without having been told, because they did not ask for such notices.
    known: Vec<hook_agent::Model>,
    forgotten: Vec<(Uuid, Uuid)>,
    to_compare: BTreeSet<ComparedHooks>,
    /// The hook whose agents were compared, and since when that was asked for.
    compared: Option<(Uuid, Option<i64>)>,
    /// Hooks and agents that were compared already: each is written once.
    seen: HashSet<(Uuid, Uuid)>,
}

impl<'a> NoticeBatch<'a> {
    fn new(context: &'a AppContext, hooks: &'a [hook::Model]) -> Self {
        Self {
            context,
            hooks,
            callers: HashMap::new(),
            deliveries: Vec::new(),
            known: Vec::new(),
            forgotten: Vec::new(),
            to_compare: BTreeSet::new(),
            compared: None,
            seen: HashSet::new(),
        }
    }

    /// The caller of a hook's account; `None` if the account may not act now.
    async fn load_caller(&mut self, account: Uuid) -> Result<Option<Caller>> {
        if let Some(caller) = self.callers.get(&account) {
            return Ok(caller.clone());
        }
        let caller = load_account_caller_by_id(self.context, account).await?;
        let caller = caller
            .ok()
            .filter(|caller| caller.has_permission(Permission::Read));
        self.callers.insert(account, caller.clone());
        Ok(caller)
    }

    /// The last event of each agent, and what single events tell; notes the hooks for which events name no agents.
    fn read_events<'e>(&mut self, rows: &'e [event::Model]) -> (LastEvents<'e>, SingleEvents<'e>) {
        let mut last_events = HashMap::new();
        let mut single_events = Vec::new();
        for row in rows {
            let data: Value = serde_json::from_str(&row.data).unwrap_or_default();
            let agent = event_agent(row.agent_id, &data);
            if let Some(agent) = agent {
                last_events.insert(agent, row);
            }
            if let Some((kind, agent)) = event_notice(row, &data).zip(agent) {
                single_events.push((row, kind, agent));
            }
            let kind = row.kind.known_value();
            let compared = kind.and_then(|kind| compared_hooks(kind, &row.subject));
            self.to_compare.extend(compared);
        }
        (last_events, single_events)
    }

    /// Adds what these events tell each hook.
    async fn add_events(&mut self, rows: &[event::Model]) -> Result<()> {
        let (last_events, single_events) = self.read_events(rows);
        let agents: Vec<Uuid> = last_events.keys().copied().collect();
        if agents.is_empty() {
            return Ok(());
        }
        let facts = load_agent_facts(self.context, &agents).await?;
        let known = known_hook_agents(&self.context.store, &agents).await?;
        let known: HashMap<(Uuid, Uuid), hook_agent::Model> = known
            .into_iter()
            .map(|row| ((row.hook_id, row.agent_id), row))
            .collect();
        let mut selections: HashMap<(Uuid, String), HashSet<Uuid>> = HashMap::new();
        for row in self.hooks {
            let Some(filter) = parse_hook_filter(row) else {
                continue;
            };
            let Some(caller) = self.load_caller(row.account_id).await? else {
                continue;
            };
            let named = match single_events.is_empty() {
                true => None,
                false => named_agents(self.context, &caller, &filter).await?,
            };
            for (event, kind, agent) in &single_events {
                let is_new = event.at >= row.created_at && filter.includes_kind(*kind);
                let is_told = facts.get(agent).is_some_and(|facts| {
                    is_notice_for(&caller, &filter, *kind, named.as_ref(), (*agent, facts))
                });
                if is_new && is_told {
                    let subject = event.subject.clone();
                    self.add_delivery(row, *kind, (*agent, subject), event, None);
                }
            }
            if !tells_of_sight(&filter) {
                continue;
            }
            let selected = match selections.entry((row.account_id, sight_key(&filter))) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let among = Some(agents.as_slice());
                    let limit = agents.len();
                    place.insert(select_agents(self.context, &caller, &filter, among, limit).await?)
                }
            };
            for (agent, event) in &last_events {
                let known = known.get(&(row.id, *agent));
                let seen = facts.get(agent).filter(|_| selected.contains(agent));
                self.add_sight(row, &filter, *agent, (known, seen), event);
            }
        }
        Ok(())
    }

    /// Compares all agents that match with what the receiver of a hook knows.
    async fn compare_all_agents(&mut self, row: &hook::Model, seq: i64) -> Result<()> {
        self.compared = Some((row.id, row.compare_requested_at));
        let Some(filter) = parse_hook_filter(row).filter(tells_of_sight) else {
            return Ok(());
        };
        let Some(caller) = self.load_caller(row.account_id).await? else {
            return Ok(());
        };
        let limit = usize::try_from(MAX_KNOWN_AGENTS).unwrap_or(usize::MAX);
        let selected = select_agents(self.context, &caller, &filter, None, limit).await?;
        let known = agents_known_to_hook(&self.context.store, row.id).await?;
        let known: HashMap<Uuid, hook_agent::Model> =
            known.into_iter().map(|row| (row.agent_id, row)).collect();
        // At most so many match that the others may still do.
        let is_complete = selected.len() < limit;
        let selected_ids: Vec<Uuid> = selected.iter().copied().collect();
        let facts = load_agent_facts(self.context, &selected_ids).await?;
        let at = self.context.now().0;
        let queued = |agent: Uuid| event::Model {
            seq,
            at,
            kind: EventKind::AgentUpdated.into(),
            subject: agent.to_string(),
            agent_id: Some(agent),
            actor: String::new(),
            data: String::new(),
        };
        for agent in &selected {
            let both = (known.get(agent), facts.get(agent));
            self.add_sight(row, &filter, *agent, both, &queued(*agent));
        }
        for (agent, known) in known.iter().filter(|_| is_complete) {
            if !selected.contains(agent) {
                self.add_sight(row, &filter, *agent, (Some(known), None), &queued(*agent));
            }
        }
        Ok(())
    }

    fn add_sight(
        &mut self,
        row: &hook::Model,
        filter: &HookFilter,
        agent: Uuid,
        (known, seen): (Option<&hook_agent::Model>, Option<&AgentFacts>),
        event: &event::Model,
    ) {
        let Some(kind) = compare_sight(known, seen) else {
            return;
        };
        if !self.seen.insert((row.id, agent)) {
            return;
        }
        if filter.includes_kind(kind) {
            let slot = Some(format!("{}:{agent}", row.id));
            self.add_delivery(row, kind, (agent, agent.to_string()), event, slot);
        } else if let Some(seen) = seen {
            self.known.push(seen.to_known(row.id, agent));
        } else {
            self.forgotten.push((row.id, agent));
        }
    }

    fn add_delivery(
        &mut self,
        row: &hook::Model,
        kind: NoticeKind,
        (agent, subject): (Uuid, String),
        event: &event::Model,
        slot: Option<String>,
    ) {
        let now = self.context.now();
        self.deliveries.push(hook_delivery::Model {
            id: 0,
            hook_id: row.id,
            message_id: new_uuid(now, self.context.entropy.as_ref()),
            kind: kind.into(),
            agent_id: Some(agent),
            subject,
            at: event.at,
            state: DeliveryState::Waiting.into(),
            slot,
            seq: event.seq,
            attempts: 0,
            first_attempt_at: None,
            due_at: Some(now.0),
            status: None,
            error: None,
            finished_at: None,
        });
    }

    /// Writes what was found, and moves the position; returns false if another process has done so meanwhile.
    async fn write(mut self, before: &Position, seq: i64) -> Result<bool> {
        let context = self.context;
        let full = self.drop_beyond_bounds().await?;
        let write = context.store.begin_write().await?;
        let stored = settings::lock_setting(&write, POSITION_SETTING).await?;
        if Position::parse(stored).is_none_or(|stored| stored.seq != before.seq) {
            return Ok(false);
        }
        let hooks = self.lock_hooks(&write, &full).await?;
        let now = context.now().0;
        for mut row in hooks {
            if full.contains(&row.id) {
                row.compare_requested_at = Some(now);
            } else if self.compared == Some((row.id, row.compare_requested_at)) {
                // Nothing has asked for another comparison since.
                row.compare_requested_at = None;
            } else {
                continue;
            }
            write.update_hook(row).await?;
        }
        for compared in &self.to_compare {
            let account = match compared {
                ComparedHooks::All => None,
                ComparedHooks::OfAccount(account) => Some(*account),
            };
            write.request_hook_comparison(account, now).await?;
        }
        write.queue_hook_deliveries(self.deliveries, now).await?;
        write.upsert_hook_agents(self.known).await?;
        for (hook, agent) in self.forgotten {
            write.delete_hook_agent(hook, agent).await?;
        }
        let position = Position {
            seq,
            holder: Some(own_id(context)),
            until: context.now().plus_micros(LEASE).0,
        };
        position.store(&write).await?;
        write.commit().await?;
        Ok(true)
    }

    /// Locks all hooks that are written, before anything of them is. Drops what is for hooks that were deleted or
    /// ended meanwhile: it would have all of this refused, or never end.
    async fn lock_hooks(
        &mut self,
        write: &WriteTransaction,
        full: &BTreeSet<Uuid>,
    ) -> Result<Vec<hook::Model>> {
        let hooks = match self.to_compare.is_empty() {
            false => write.lock_active_hooks(None).await?,
            true => {
                let mut written = self.written_hooks();
                written.extend(full);
                written.extend(self.forgotten.iter().map(|(hook, _)| *hook));
                written.extend(self.compared.map(|(hook, _)| hook));
                write.lock_active_hooks_by_id(written).await?
            }
        };
        let active: HashSet<Uuid> = hooks.iter().map(|row| row.id).collect();
        self.deliveries.retain(|row| active.contains(&row.hook_id));
        self.known.retain(|row| active.contains(&row.hook_id));
        Ok(hooks)
    }

    fn written_hooks(&self) -> BTreeSet<Uuid> {
        let told = self.deliveries.iter().map(|row| row.hook_id);
        told.chain(self.known.iter().map(|row| row.hook_id))
            .collect()
    }

    /// Drops deliveries to hooks with too many that wait, and agents beyond those that a receiver may know. Returns
    /// the hooks whose agents must be compared later, because deliveries were dropped.
    async fn drop_beyond_bounds(&mut self) -> Result<BTreeSet<Uuid>> {
        let store = &self.context.store;
        let mut full = BTreeSet::new();
        let mut room = HashMap::new();
        for hook in self.written_hooks() {
            let waiting = hook_delivery_count(store, hook, DeliveryState::Waiting).await?;
            let new = self.deliveries.iter().filter(|row| row.hook_id == hook);
            if waiting + new.count() as u64 > MAX_WAITING_DELIVERIES {
                full.insert(hook);
            }
            let known = known_agent_count(store, hook).await?;
            room.insert(hook, MAX_KNOWN_AGENTS.saturating_sub(known + waiting));
        }
        let mut take_place = |hook: Uuid| {
            room.get_mut(&hook).is_some_and(|left: &mut u64| {
                let has_room = *left > 0;
                *left = left.saturating_sub(1);
                has_room
            })
        };
        self.deliveries.retain(|row| {
            let has_room = row.kind != NoticeKind::AgentAppeared || take_place(row.hook_id);
            has_room && !full.contains(&row.hook_id)
        });
        // Those that are known already take a place too, which keeps nobody from being told.
        self.known.retain(|row| take_place(row.hook_id));
        Ok(full)
    }
}

/// What the selection of a filter depends on.
fn sight_key(filter: &HookFilter) -> String {
    let selecting = HookFilter {
        kinds: Vec::new(),
        ..filter.clone()
    };
    serde_json::to_string(&selecting).unwrap_or_default()
}
