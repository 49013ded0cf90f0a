//! Creates, confirms, tests, replays and deletes hooks.

use std::time::Duration;

use a2a_registry_api::limits::{MAX_CONDITION_VALUES, MAX_HOOKS_PER_ACCOUNT, MAX_NAME};
use a2a_registry_api::{CreatedHook, Hook, HookConfirmation, HookFilter, HookTest, NewHook};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::hook::{HookFormat, HookState};
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::Executor;
use a2a_registry_store::entity::hook;
use a2a_registry_store::hooks::{hook_count, hook_page};
use a2a_registry_store::saved_searches::saved_searches_by_account;
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::accounts::subject_callers::load_account_caller_by_id;
use crate::agents::views::require_visible_agent;
use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::hooks::messages::{Addressee, answer_returns_challenge};
use crate::hooks::notices::{
    MAX_KNOWN_AGENTS, parse_hook_filter, skip_past_events, tells_of_sight,
};
use crate::hooks::sending::{OutgoingMessage, SentMessage, reserve_requested_mail, send_paced};
use crate::hooks::sight::{load_agent_facts, select_agents};
use crate::hooks::target::{HookTarget, check_target, require_hook_key};
use crate::hooks::views::{find_hook, load_hook_view};
use crate::name_rules::check_name;
use crate::search::collection_scope::CollectionScope;
use crate::visibility::caller::{Caller, CallerAccount};

/// Hooks of all accounts together: each of them is compared with every event.
const MAX_HOOKS: u64 = 10_000;
/// How long no further challenge is sent for a hook: the receiver may not want any.
const CHALLENGE_PAUSE: i64 = 10 * SECOND;
/// Challenges of an account, and to one host, that a process sends at once. Whoever has not confirmed a hook has not
/// agreed to any message, and a hook that is deleted is soon created again.
const CHALLENGES_OF_ACCOUNT: u32 = 30;
const CHALLENGES_TO_HOST: u32 = 60;
/// After so many at once, one further challenge is sent in such a time.
const CHALLENGE_INTERVAL: Duration = Duration::from_secs(120);
/// How long a message that somebody waits for waits for the pace of its host at most.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Creates a hook, and sends the challenge that its receiver must return.
pub async fn hook_create(
    context: &AppContext,
    caller: &Caller,
    new: &NewHook,
) -> Result<CreatedHook> {
    let account = caller.require_permission(Permission::Read)?;
    require_scopes_of_hooks(account)?;
    let sealer = require_hook_key(context)?;
    check_name("/name", &new.name)?;
    let (url, format) = check_target(context, new.url.reveal(), new.format)?;
    check_hook_filter(context, caller, &new.filter).await?;
    select_known_agents(context, caller, &new.filter).await?;
    reserve_challenge(context, account.id, &url)?;
    let (now, entropy) = (context.now(), context.entropy.as_ref());
    let id = new_uuid(now, entropy);
    let target = HookTarget::new(url, entropy);
    let row = hook::Model {
        id,
        account_id: account.id,
        name: new.name.clone(),
        format: format.into(),
        state: HookState::Unconfirmed.into(),
        filter: filter_text(&new.filter)?,
        sealed: target.seal(sealer, id, entropy)?,
        compare_requested_at: None,
        created_at: now.0,
        due_at: None,
        not_before: now.plus_micros(CHALLENGE_PAUSE).0,
        failures: 0,
        failing_since: None,
        last_error: None,
        last_success_at: None,
        lease: None,
        leased_until: None,
    };
    insert_hook(context, account, row.clone()).await?;
    send_challenge(context, &row, &target).await?;
    created_hook(context, caller, id, &target).await
}

/// Refuses a token that sees less than its account: a hook is told what the account may see.
fn require_scopes_of_hooks(account: &CallerAccount) -> Result<()> {
    for permission in [Permission::SeeAll, Permission::Curate] {
        let of_account = account
            .roles
            .has_permission(&account.roles.scopes(), permission);
        if of_account && !account.has_permission(permission) {
            return Err(AppError::forbidden(format!(
                "A hook sends everything that its account may see, but this token lacks the permission {permission}. \
                 Use a token with all scopes of the account."
            )));
        }
    }
    Ok(())
}

fn filter_text(filter: &HookFilter) -> Result<String> {
    serde_json::to_string(filter).map_err(|error| AppError::internal(error.to_string()))
}

async fn created_hook(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    target: &HookTarget,
) -> Result<CreatedHook> {
    let row = find_hook(context, caller, id).await?;
    let (secret, public_key) = target.shown_keys().unzip();
    Ok(CreatedHook {
        hook: load_hook_view(context, row).await?,
        secret,
        public_key,
    })
}

async fn insert_hook(
    context: &AppContext,
    account: &CallerAccount,
    row: hook::Model,
) -> Result<()> {
    let write = context.store.begin_write().await?;
    // The lock serializes concurrent creations for the counts.
    write.lock_accounts().await?;
    let own = hook_page(&write, Some(account.id), None, MAX_HOOKS).await?;
    if own.iter().any(|own| own.name == row.name) {
        return Err(AppError::conflict(format!(
            "You already have a hook {}. Delete it first, or choose another name.",
            row.name
        )));
    }
    if own.len() >= MAX_HOOKS_PER_ACCOUNT {
        return Err(AppError::limit_reached(format!(
            "You have {MAX_HOOKS_PER_ACCOUNT} hooks, which is the maximum. Delete one first."
        )));
    }
    if hook_count(&write).await? >= MAX_HOOKS {
        return Err(AppError::limit_reached(format!(
            "The registry has {MAX_HOOKS} hooks, which is the maximum."
        )));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"account": account.name, "name": row.name, "format": row.format});
    change_set.add_event(EventKind::HookCreated, row.id, &account.name, data);
    write.insert_hook(row).await?;
    commit_changes(context, write, change_set).await
}

/// Refuses a filter that could never select anything, or names what the caller may not see.
async fn check_hook_filter(
    context: &AppContext,
    caller: &Caller,
    filter: &HookFilter,
) -> Result<()> {
    let unknown = filter
        .kinds
        .iter()
        .find(|kind| kind.known_value().is_none());
    if let Some(unknown) = unknown {
        let kind: String = unknown.as_str().chars().take(100).collect();
        let detail = format!("{kind} is not a kind of notices");
        return Err(AppError::invalid("/filter/kinds", detail));
    }
    if filter.has_too_many_values() {
        let detail = format!("at most {MAX_CONDITION_VALUES} values of each condition");
        return Err(AppError::invalid("/filter", detail));
    }
    let mut names = filter.domains.iter().chain(&filter.collections);
    if names.any(|name| !(1..=MAX_NAME).contains(&name.chars().count())) {
        let detail = format!("a name has 1 to {MAX_NAME} characters");
        return Err(AppError::invalid("/filter", detail));
    }
    for agent in &filter.agents {
        let visible = require_visible_agent(context, caller, &agent.to_string()).await;
        visible.map_err(|error| AppError::invalid("/filter/agents", error.public))?;
    }
    if let Some(search) = filter.search {
        if !filter.domains.is_empty() || !filter.collections.is_empty() {
            let detail =
                "a saved search has filters of its own; give domains and collections there";
            return Err(AppError::invalid("/filter/search", detail));
        }
        let account = caller.require_account()?;
        let saved = saved_searches_by_account(&context.store, account.id).await?;
        if saved.iter().all(|row| row.id != search) {
            let detail = AppError::no_saved_search(search).public;
            return Err(AppError::invalid("/filter/search", detail));
        }
    }
    let collections = CollectionScope::load(context, caller, &filter.collections).await;
    collections.map_err(|error| match error.members.is_empty() {
        true => error,
        false => AppError::invalid("/filter/collections", error.public),
    })?;
    Ok(())
}

/// The agents that a receiver is taken to know when the hook begins; refused if they are too many.
async fn select_known_agents(
    context: &AppContext,
    caller: &Caller,
    filter: &HookFilter,
) -> Result<Vec<Uuid>> {
    if !tells_of_sight(filter) {
        return Ok(Vec::new());
    }
    let most = usize::try_from(MAX_KNOWN_AGENTS).unwrap_or(usize::MAX);
    let selected = select_agents(context, caller, filter, None, most + 1).await?;
    if selected.len() > most {
        let detail =
            format!("it selects more than {most} agents; narrow it, or choose other kinds");
        return Err(AppError::invalid("/filter", detail));
    }
    Ok(selected.into_iter().collect())
}

/// Sends the challenge, and activates the hook if the answer returns it. A mail has no answer: its reader confirms.
async fn send_challenge(
    context: &AppContext,
    row: &hook::Model,
    target: &HookTarget,
) -> Result<SentMessage> {
    let public_url = context.config().public_url();
    let addressee = Addressee::new(row, target, &public_url, context.now());
    let id = new_uuid(context.now(), context.entropy.as_ref());
    let message = addressee.challenge_message(id)?;
    let mut sent = send_soon(context, row, target, message).await;
    let is_mail = target.mail_address().is_some();
    let is_returned = answer_returns_challenge(&sent.answer, &target.challenge);
    if sent.error.is_none() && !is_returned && !is_mail {
        sent.error = Some(
            "the receiver has not returned the challenge; make it return the challenge, or confirm the hook with the \
             challenge that it received"
                .to_owned(),
        );
    }
    if sent.error.is_none() && !is_mail {
        activate_hook(context, row).await?;
        return Ok(sent);
    }
    let write = context.store.begin_write().await?;
    let unconfirmed = write.lock_hook(row.id).await?;
    let unconfirmed = unconfirmed.filter(|row| row.state == HookState::Unconfirmed);
    if let Some(mut row) = unconfirmed {
        row.last_error.clone_from(&sent.error);
        write.update_hook(row).await?;
        write.commit().await?;
    }
    Ok(sent)
}

/// Sends a message that somebody waits for. Deliveries wait longer for their host, so that such messages, of which an
/// account may ask for many, do not displace them.
async fn send_soon(
    context: &AppContext,
    row: &hook::Model,
    target: &HookTarget,
    message: OutgoingMessage,
) -> SentMessage {
    let address = target.mail_address();
    if address.is_some_and(|address| !reserve_requested_mail(context, row.account_id, address)) {
        return SentMessage::unsent(
            "too many mails were requested by this account or for this address; try again in a few hours",
        );
    }
    let sent = send_paced(context, &target.url, message, MAX_WAIT).await;
    sent.unwrap_or_else(|| {
        SentMessage::unsent("too many messages to this host wait; try again in a moment")
    })
}

/// Begins to tell the receiver of what changes from now on: it is taken to know what matches now.
pub async fn activate_hook(context: &AppContext, row: &hook::Model) -> Result<()> {
    let id = row.id;
    // Reading all agents again would serve nobody.
    if row.state != HookState::Unconfirmed {
        return Ok(());
    }
    let filter = parse_hook_filter(row).unwrap_or_default();
    // Whoever confirms the hook, it is told what its own account may see.
    let owner = load_account_caller_by_id(context, row.account_id).await?;
    let owner = owner.map_err(AppError::conflict)?;
    let agents = select_known_agents(context, &owner, &filter).await?;
    let facts = load_agent_facts(context, &agents).await?;
    let write = context.store.begin_write().await?;
    // The position is locked before hooks, as where notices are queued.
    skip_past_events(&write).await?;
    let unconfirmed = write.lock_hook(id).await?;
    let unconfirmed = unconfirmed.filter(|row| row.state == HookState::Unconfirmed);
    let Some(mut row) = unconfirmed else {
        return Ok(());
    };
    row.state = HookState::Active.into();
    row.not_before = context.now().0;
    row.last_error = None;
    // What has changed since the agents were selected is noticed by a comparison.
    row.compare_requested_at = Some(context.now().0);
    write.update_hook(row).await?;
    let known = facts
        .iter()
        .map(|(agent, facts)| facts.to_known(id, *agent));
    write.upsert_hook_agents(known.collect::<Vec<_>>()).await?;
    write.commit().await?;
    Ok(())
}

/// Confirms a hook by the challenge that its receiver got.
pub async fn hook_confirm(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    confirmation: &HookConfirmation,
) -> Result<Hook> {
    let row = find_hook(context, caller, id).await?;
    let target = open_target(context, &row)?;
    if confirmation.challenge.trim() != target.challenge {
        return Err(AppError::invalid(
            "/challenge",
            "this is not the challenge that was sent to the receiver",
        ));
    }
    activate_hook(context, &row).await?;
    load_hook_view(context, find_hook(context, caller, id).await?).await
}

fn open_target(context: &AppContext, row: &hook::Model) -> Result<HookTarget> {
    require_hook_key(context)?;
    HookTarget::open(context, row).ok_or_else(|| {
        AppError::conflict(
            "The registry has lost the key of this hook. Delete the hook and create it again.",
        )
    })
}

/// Sends a test delivery, or the challenge again while the hook is unconfirmed.
pub async fn hook_test(context: &AppContext, caller: &Caller, id: Uuid) -> Result<HookTest> {
    let row = find_hook(context, caller, id).await?;
    let target = open_target(context, &row)?;
    let sent = match row.state.known_value() {
        Some(HookState::Active) => {
            let public_url = context.config().public_url();
            let addressee = Addressee::new(&row, &target, &public_url, context.now());
            let message_id = new_uuid(context.now(), context.entropy.as_ref());
            let message = addressee.test_message(message_id)?;
            send_soon(context, &row, &target, message).await
        }
        Some(HookState::Unconfirmed) => {
            pause_challenges(context, id).await?;
            reserve_challenge(context, caller.require_account()?.id, &target.url)?;
            send_challenge(context, &row, &target).await?
        }
        _ => {
            return Err(AppError::conflict(
                "The receiver has ended this hook. Delete it and create another one.",
            ));
        }
    };
    let row = find_hook(context, caller, id).await?;
    Ok(HookTest {
        delivered: sent
            .status
            .is_some_and(|status| (200..300).contains(&status)),
        status: sent.status,
        error: sent.error,
        state: row.state.0,
    })
}

/// Refuses a challenge if this account has sent many, or this host has got many.
fn reserve_challenge(context: &AppContext, account: Uuid, url: &Url) -> Result<()> {
    // A mail address has no host.
    let host = url.host_str().unwrap_or_else(|| url.path());
    let now = context.monotonic_time();
    for (key, most) in [
        (format!("account {account}"), CHALLENGES_OF_ACCOUNT),
        (format!("challenges to {host}"), CHALLENGES_TO_HOST),
    ] {
        let max_wait = CHALLENGE_INTERVAL * (most - 1);
        let pace = &context.webhook_pace;
        let place = pace.reserve(&key, CHALLENGE_INTERVAL, now, max_wait);
        if place.is_none() {
            return Err(AppError::limit_reached(format!(
                "Too many challenges were sent to {host}, or for your account. Wait two minutes."
            )));
        }
    }
    Ok(())
}

/// Refuses challenges of a hook in quick succession.
async fn pause_challenges(context: &AppContext, id: Uuid) -> Result<()> {
    let now = context.now();
    let write = context.store.begin_write().await?;
    let row = write.lock_hook(id).await?;
    let mut row = row.ok_or_else(|| AppError::no_hook(id))?;
    if row.not_before > now.0 && row.not_before <= now.plus_micros(CHALLENGE_PAUSE).0 {
        return Err(AppError::limit_reached(
            "The challenge was sent a moment ago. Wait ten seconds.",
        ));
    }
    row.not_before = now.plus_micros(CHALLENGE_PAUSE).0;
    write.update_hook(row).await?;
    write.commit().await?;
    Ok(())
}

/// Gives a hook new keys. Those before sign for another day too.
pub async fn hook_rotate(context: &AppContext, caller: &Caller, id: Uuid) -> Result<CreatedHook> {
    find_hook(context, caller, id).await?;
    let sealer = require_hook_key(context)?;
    let write = context.store.begin_write().await?;
    let row = write.lock_hook(id).await?;
    let mut row = row.ok_or_else(|| AppError::no_hook(id))?;
    let mut target = open_target(context, &row)?;
    if target.mail_address().is_some() {
        return Err(AppError::conflict("A hook that sends mails has no keys."));
    }
    target.rotate_keys(context.now(), context.entropy.as_ref());
    row.sealed = target.seal(sealer, id, context.entropy.as_ref())?;
    write.update_hook(row).await?;
    write.commit().await?;
    created_hook(context, caller, id, &target).await
}

/// Sends ended deliveries again: one, or all that were given up. Returns their number.
pub async fn hook_replay(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    delivery: Option<Uuid>,
) -> Result<u64> {
    find_hook(context, caller, id).await?;
    let now = context.now().0;
    let write = context.store.begin_write().await?;
    // Hooks are locked before their deliveries, as by the processes that send.
    let row = write.lock_hook(id).await?;
    let mut row = row.ok_or_else(|| AppError::no_hook(id))?;
    if row.state != HookState::Active {
        return Err(AppError::conflict(
            "The hook is not active. Confirm it first or, if it has ended, create another one.",
        ));
    }
    let replayed = write.replay_hook_deliveries(id, delivery, now).await?;
    if let Some(delivery) = delivery.filter(|_| replayed == 0) {
        return Err(AppError::not_found(format!(
            "The hook has no delivery {delivery} that was delivered or given up."
        )));
    }
    row.due_at = Some(now);
    // The next mail is sent in its turn.
    if row.format != HookFormat::Mail {
        row.not_before = now;
    }
    write.update_hook(row).await?;
    write.commit().await?;
    context.signals.hooks.notify_one();
    Ok(replayed)
}

pub async fn hook_delete(context: &AppContext, caller: &Caller, id: Uuid) -> Result<()> {
    let actor = caller.require_permission(Permission::Read)?;
    find_hook(context, caller, id).await?;
    let write = context.store.begin_write().await?;
    // Waits for a process that is recording deliveries.
    let row = write.lock_hook(id).await?;
    let row = row.ok_or_else(|| AppError::no_hook(id))?;
    write.delete_hook(id).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"name": row.name});
    change_set.add_event(EventKind::HookDeleted, id, &actor.name, data);
    commit_changes(context, write, change_set).await
}

/// Refuses to delete a saved search while a hook of the account is told by it.
pub async fn require_unused_search(db: &impl Executor, account: Uuid, search: Uuid) -> Result<()> {
    let rows = hook_page(db, Some(account), None, MAX_HOOKS).await?;
    let mut rows = rows.iter();
    let using = rows.find(|row| {
        let filter = parse_hook_filter(row);
        filter.is_some_and(|filter| filter.search == Some(search))
    });
    match using {
        None => Ok(()),
        Some(row) => Err(AppError::conflict(format!(
            "The hook {} uses this search. Delete the hook first.",
            row.name
        ))),
    }
}
