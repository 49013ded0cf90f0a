//! Sends what is due to one hook: each notice is judged again, signed and sent, and the outcomes are recorded.
//!
//! A hook is leased, so that one process sends to it, and an agent's notices are sent in order. A process that is
//! killed after sending and before recording sends again: each notice arrives at least once.

use std::collections::HashMap;
use std::time::Duration;

use a2a_registry_api::HookFilter;
use a2a_registry_domain::hook::{HookFormat, HookState, NoticeKind};
use a2a_registry_domain::identifiers::{Entropy, new_uuid, random_u64};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{HOUR, SECOND, Timestamp};
use a2a_registry_store::WriteTransaction;
use a2a_registry_store::entity::{hook, hook_agent, hook_delivery};
use a2a_registry_store::hook_deliveries::{DeliveryOutcome, due_hook_deliveries};
use a2a_registry_store::hooks::{HookLeaseRequest, known_hook_agents};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::accounts::subject_callers::load_account_caller_by_id;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::hooks::event_notices::is_notice_for;
use crate::hooks::messages::{Addressee, Notice};
use crate::hooks::notices::{is_policy_set_current, parse_hook_filter};
use crate::hooks::retries::{failed_outcome, retry_pause};
use crate::hooks::sending::{SentMessage, send_paced};
use crate::hooks::sight::{
    AgentFacts, compare_sight, load_agent_facts, named_agents, select_agents,
};
use crate::hooks::target::HookTarget;

/// Deliveries that are sent to a hook at the same time, each about another agent.
const CHUNK: u64 = 8;
/// Notices in a mail at most. Further ones are in the next.
const MAX_DIGEST: u64 = 200;
/// The pause between two mails to an account. Its hooks that send mails take turns.
const MAIL_PAUSE: i64 = HOUR;
/// The duration of a lease, renewed with each chunk. A chunk waits for the view and for the pace of its host as below,
/// and a slow receiver takes ten seconds.
const LEASE_DURATION: i64 = 30 * SECOND;
/// How long deliveries wait at most for the pace of their host. What would wait longer is postponed by as much.
const MAX_PACE_WAIT: Duration = Duration::from_secs(8);
/// How often, and in which pauses, this process looks whether it has seen what it is about to tell.
const VIEW_CHECKS: usize = 50;
const VIEW_CHECK_PAUSE: Duration = Duration::from_millis(100);
/// The status by which a receiver ends a hook.
const GONE: u16 = 410;

/// Leases a hook to which something is due.
pub async fn lease_due_hook(context: &AppContext) -> Result<Option<hook::Model>> {
    let now = context.now();
    let request = HookLeaseRequest {
        now: now.0,
        leased_until: now.plus_micros(LEASE_DURATION).0,
        lease: random_u64(context.entropy.as_ref()).cast_signed(),
        next_mail_at: now.plus_micros(MAIL_PAUSE).0,
    };
    Ok(context.store.lease_hook(&request).await?)
}

fn is_mail(row: &hook::Model) -> bool {
    row.format == HookFormat::Mail
}

/// Sends what is due to a leased hook, until nothing is due, or nothing arrives.
pub async fn deliver_to_hook(
    context: &AppContext,
    leased: &hook::Model,
    cancel: &CancellationToken,
) -> Result<()> {
    while !cancel.is_cancelled() {
        // A digest has all that waits, with what failed before: it is the mail that is sent again, not the notice.
        let (due, limit) = match is_mail(leased) {
            true => (None, MAX_DIGEST),
            false => (Some(context.now().0), CHUNK),
        };
        let rows = due_hook_deliveries(&context.store, leased.id, due, limit).await?;
        if rows.is_empty() {
            break;
        }
        wait_for_view(context, &rows).await?;
        let judged = judge_deliveries(context, leased, rows).await?;
        let attempts = send_deliveries(context, leased, judged).await?;
        if !record_attempts(context, leased, attempts).await? || is_mail(leased) {
            break;
        }
    }
    Ok(())
}

/// Waits until this process sees agents as the one did that has queued these deliveries. One that is behind would find
/// nothing to tell, and drop them.
async fn wait_for_view(context: &AppContext, rows: &[hook_delivery::Model]) -> Result<()> {
    let queued = rows.iter().map(|row| row.seq).max().unwrap_or(0);
    for _ in 0..VIEW_CHECKS {
        if context.index.applied_seq() >= queued && is_policy_set_current(context).await? {
            return Ok(());
        }
        tokio::time::sleep(VIEW_CHECK_PAUSE).await;
    }
    Err(AppError::internal(
        "the index or the policies of this process are behind; /readyz says why",
    ))
}

/// Gives a lease back.
pub async fn end_hook_lease(context: &AppContext, leased: &hook::Model) -> Result<()> {
    let write = context.store.begin_write().await?;
    let Some(mut row) = lock_leased_hook(&write, leased).await? else {
        return Ok(());
    };
    row.lease = None;
    row.leased_until = None;
    row.due_at = write.first_hook_delivery_due_at(row.id).await?;
    if is_mail(&row) {
        // A hook for which more waits than one mail has lets the other ones of the account go first.
        row.due_at = row.due_at.map(|due| due.max(row.not_before));
    }
    write.update_hook(row).await?;
    write.commit().await?;
    Ok(())
}

/// Locks a hook if this process still has its lease.
async fn lock_leased_hook(
    write: &WriteTransaction,
    leased: &hook::Model,
) -> Result<Option<hook::Model>> {
    let row = write.lock_hook(leased.id).await?;
    Ok(row.filter(|row| row.lease == leased.lease))
}

type JudgedDelivery = (hook_delivery::Model, Judgment);

/// What to do with a delivery.
#[derive(Debug)]
enum Judgment {
    Send {
        notice: Notice,
        /// What the receiver knows afterwards; `None` if the notice does not change that.
        change: Option<KnownChange>,
    },
    /// There is nothing to tell.
    Drop(Option<KnownChange>),
    GiveUp(String),
}

#[derive(Debug)]
enum KnownChange {
    Learn(hook_agent::Model),
    Forget(Uuid),
}

/// Judges deliveries by what the account may see now.
async fn judge_deliveries(
    context: &AppContext,
    leased: &hook::Model,
    rows: Vec<hook_delivery::Model>,
) -> Result<Vec<JudgedDelivery>> {
    let give_up = |rows: Vec<hook_delivery::Model>, reason: &str| {
        let judged = rows
            .into_iter()
            .map(|row| (row, Judgment::GiveUp(reason.to_owned())));
        Ok(judged.collect())
    };
    let caller = match load_account_caller_by_id(context, leased.account_id).await? {
        Ok(caller) if caller.has_permission(Permission::Read) => caller,
        Ok(_) => return give_up(rows, "The account lacks the permission to read."),
        Err(reason) => return give_up(rows, &reason),
    };
    let Some(filter) = parse_hook_filter(leased) else {
        return give_up(rows, "This version of the registry cannot read the filter.");
    };
    let agents: Vec<Uuid> = rows.iter().filter_map(|row| row.agent_id).collect();
    let facts = load_agent_facts(context, &agents).await?;
    let known = known_hook_agents(&context.store, &agents).await?;
    let known = known.into_iter().filter(|row| row.hook_id == leased.id);
    let known: HashMap<Uuid, hook_agent::Model> = known.map(|row| (row.agent_id, row)).collect();
    let named = named_agents(context, &caller, &filter).await?;
    let limit = agents.len();
    let selected = select_agents(context, &caller, &filter, Some(&agents), limit).await?;
    let judged = rows.into_iter().map(|mut row| {
        let agent = row.agent_id.unwrap_or_default();
        let kind = row.kind.known_value();
        let judgment = match (kind, facts.get(&agent)) {
            (None, _) => Judgment::GiveUp("A later version has queued it.".to_owned()),
            (Some(kind), seen) if kind.is_about_sight() => {
                let seen = seen.filter(|_| selected.contains(&agent));
                judge_sight(leased.id, &filter, &mut row, (known.get(&agent), seen))
            }
            (Some(kind), Some(facts)) => {
                match is_notice_for(&caller, &filter, kind, named.as_ref(), (agent, facts)) {
                    // A replayed one says the same again.
                    true => Judgment::Send {
                        notice: new_notice(&row, kind, Some(facts)),
                        change: None,
                    },
                    false => Judgment::Drop(None),
                }
            }
            (Some(_), None) => Judgment::Drop(None),
        };
        (row, judgment)
    });
    Ok(judged.collect())
}

/// Judges a notice about sight anew: it says how the agent differs now from what the receiver knows.
fn judge_sight(
    hook: Uuid,
    filter: &HookFilter,
    row: &mut hook_delivery::Model,
    (known, seen): (Option<&hook_agent::Model>, Option<&AgentFacts>),
) -> Judgment {
    let agent = row.agent_id.unwrap_or_default();
    let Some(kind) = compare_sight(known, seen).or_else(|| replayed_kind(row, seen)) else {
        return Judgment::Drop(None);
    };
    let change = Some(match seen {
        Some(seen) => KnownChange::Learn(seen.to_known(hook, agent)),
        None => KnownChange::Forget(agent),
    });
    if !filter.includes_kind(kind) {
        return Judgment::Drop(change);
    }
    row.kind = kind.into();
    Judgment::Send {
        notice: new_notice(row, kind, seen),
        change,
    }
}

/// What a replayed notice about sight says if the receiver knows all: what is true now. One that was not replayed has
/// a slot, and nothing to tell.
fn replayed_kind(row: &hook_delivery::Model, seen: Option<&AgentFacts>) -> Option<NoticeKind> {
    if row.slot.is_some() {
        return None;
    }
    Some(match seen {
        None => NoticeKind::AgentDisappeared,
        Some(_) if row.kind == NoticeKind::AgentAppeared => NoticeKind::AgentAppeared,
        Some(_) => NoticeKind::AgentChanged,
    })
}

fn new_notice(row: &hook_delivery::Model, kind: NoticeKind, facts: Option<&AgentFacts>) -> Notice {
    let digest = facts.filter(|_| kind.is_about_sight());
    Notice {
        kind,
        subject: row.subject.clone(),
        agent: row.agent_id,
        at: Timestamp(row.at),
        agent_name: facts.map(|facts| facts.name.clone()),
        card_digest: digest.map(|facts| facts.card_digest.clone()),
    }
}

/// A delivery with what became of it.
struct Attempt {
    row: hook_delivery::Model,
    outcome: AttemptOutcome,
    change: Option<KnownChange>,
}

/// What became of an attempt.
#[derive(Debug, Clone)]
enum AttemptOutcome {
    /// There was nothing to send.
    Unsent,
    /// Too many messages to the host wait already.
    Postponed,
    GivenUp(String),
    Sent(SentMessage),
}

/// Sends each notice by itself, or all in one mail.
async fn send_deliveries(
    context: &AppContext,
    leased: &hook::Model,
    judged: Vec<JudgedDelivery>,
) -> Result<Vec<Attempt>> {
    let target = HookTarget::open(context, leased);
    let config = context.config();
    let public_url = config.public_url();
    let now = context.now();
    let addressee = target.as_ref();
    let addressee = addressee.map(|target| Addressee::new(leased, target, &public_url, now));
    if is_mail(leased) {
        return send_together(context, addressee, judged).await;
    }
    let attempts = judged
        .into_iter()
        .map(|one| send_together(context, addressee, vec![one]));
    let attempts: Result<Vec<Vec<Attempt>>> = join_all(attempts).await.into_iter().collect();
    Ok(attempts?.into_iter().flatten().collect())
}

/// Sends what is to be sent of these deliveries as one message.
async fn send_together(
    context: &AppContext,
    addressee: Option<Addressee<'_>>,
    judged: Vec<JudgedDelivery>,
) -> Result<Vec<Attempt>> {
    let to_send = judged.iter().filter_map(|(row, judgment)| match judgment {
        Judgment::Send { notice, .. } => Some((row.message_id, notice)),
        _ => None,
    });
    let (ids, notices): (Vec<Uuid>, Vec<&Notice>) = to_send.unzip();
    let outcome = match (ids.first(), addressee) {
        (None, _) => AttemptOutcome::Unsent,
        (Some(_), None) => {
            let error = "the registry has lost the key of this hook; create it again";
            AttemptOutcome::Sent(SentMessage::unsent(error))
        }
        (Some(id), Some(addressee)) => {
            // What waits for a digest may be more at the next attempt. Servers drop a mail whose id they know.
            let id = match addressee.format {
                HookFormat::Mail => new_uuid(context.now(), context.entropy.as_ref()),
                _ => *id,
            };
            let message = addressee.notices_message(id, &notices)?;
            match send_paced(context, &addressee.target.url, message, MAX_PACE_WAIT).await {
                Some(sent) => AttemptOutcome::Sent(sent),
                None => AttemptOutcome::Postponed,
            }
        }
    };
    let attempts = judged.into_iter().map(|(row, judgment)| {
        let (outcome, change) = match judgment {
            Judgment::Drop(change) => (AttemptOutcome::Unsent, change),
            Judgment::GiveUp(reason) => (AttemptOutcome::GivenUp(reason), None),
            Judgment::Send { change, .. } => (outcome.clone(), change),
        };
        Attempt {
            row,
            outcome,
            change,
        }
    });
    Ok(attempts.collect())
}

/// Records attempts, and renews the lease; returns whether to go on.
async fn record_attempts(
    context: &AppContext,
    leased: &hook::Model,
    attempts: Vec<Attempt>,
) -> Result<bool> {
    let (now, entropy) = (context.now(), context.entropy.as_ref());
    let write = context.store.begin_write().await?;
    // Another process has the lease, or the hook was deleted. What was sent is sent again.
    let Some(mut row) = lock_leased_hook(&write, leased).await? else {
        return Ok(false);
    };
    let mut summary = AttemptSummary::default();
    for attempt in attempts {
        let outcome = match attempt.outcome {
            AttemptOutcome::Unsent => DeliveryOutcome::Moot,
            AttemptOutcome::Postponed => {
                summary.is_postponed = true;
                continue;
            }
            AttemptOutcome::GivenUp(error) => DeliveryOutcome::Failed {
                status: None,
                error,
                due_at: None,
            },
            AttemptOutcome::Sent(sent) => {
                summary.add(&sent);
                match &sent.error {
                    None => DeliveryOutcome::Delivered {
                        status: sent.status.map(i32::from),
                    },
                    Some(_) => failed_outcome(&attempt.row, &sent, now, entropy),
                }
            }
        };
        context.delivery_counts.record(&outcome);
        if !matches!(outcome, DeliveryOutcome::Failed { .. }) {
            match attempt.change {
                Some(KnownChange::Learn(known)) => write.upsert_hook_agents([known]).await?,
                Some(KnownChange::Forget(agent)) => {
                    write.delete_hook_agent(row.id, agent).await?;
                }
                None => {}
            }
        }
        let next = (now.0, new_uuid(now, entropy));
        write
            .record_hook_delivery(&attempt.row, &outcome, next)
            .await?;
    }
    let goes_on = summary.apply(&mut row, now, entropy);
    if row.state == HookState::Ended {
        let error = "the receiver has ended the hook by an answer with 410";
        write.give_up_hook_deliveries(row.id, error, now.0).await?;
    }
    row.leased_until = Some(now.plus_micros(LEASE_DURATION).0);
    write.update_hook(row).await?;
    write.commit().await?;
    Ok(goes_on)
}

/// What the messages of a chunk showed about the receiver.
#[derive(Debug, Default)]
struct AttemptSummary {
    has_success: bool,
    is_gone: bool,
    is_postponed: bool,
    last_error: Option<String>,
    retry_after: i64,
}

impl AttemptSummary {
    fn add(&mut self, sent: &SentMessage) {
        self.has_success |= sent.error.is_none();
        self.is_gone |= sent.status == Some(GONE);
        self.retry_after = self.retry_after.max(sent.retry_after);
        if sent.error.is_some() {
            self.last_error.clone_from(&sent.error);
        }
    }

    /// Updates a hook; returns whether its receiver takes messages. One that takes none is left alone for a while,
    /// with all that waits; a single message that it refuses delays no other.
    fn apply(self, row: &mut hook::Model, now: Timestamp, entropy: &dyn Entropy) -> bool {
        if self.has_success {
            row.failures = 0;
            row.failing_since = None;
            row.last_success_at = Some(now.0);
        }
        if self.is_postponed {
            row.not_before = now.plus_micros(MAX_PACE_WAIT.as_micros() as i64).0;
        }
        let Some(error) = self.last_error else {
            return !self.is_postponed;
        };
        row.last_error = Some(error);
        if self.is_gone {
            tracing::warn!(hook = %row.id, "a hook has ended: its receiver answered with 410");
            row.state = HookState::Ended.into();
            row.due_at = None;
            return false;
        }
        if self.has_success {
            return !self.is_postponed;
        }
        if row.failing_since.is_none() {
            tracing::warn!(hook = %row.id, "a hook fails; `hook show` and `hook deliveries` say why");
        }
        row.failures = row.failures.saturating_add(1);
        row.failing_since = row.failing_since.or(Some(now.0));
        let pause = retry_pause(row.failures, entropy).max(self.retry_after);
        row.not_before = now.plus_micros(pause).0;
        false
    }
}
