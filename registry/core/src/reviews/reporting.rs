//! Reports of agents: anyone may report that something is wrong, and curators decide on the consequences.

use a2a_registry_api::limits::{MAX_CONTACT, MAX_REPORTS, MAX_REPORTS_A_DAY};
use a2a_registry_api::{NewReport, ReportAccepted};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::agent_report;
use a2a_registry_store::{Write, review_notes};
use serde_json::json;
use uuid::Uuid;

use crate::admission::decision::submitter_name;
use crate::agents::views::agent_visible;
use crate::commit::approver::check_reason;
use crate::commit::further_reviews::FurtherReview;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_written;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::visibility::caller::Caller;

/// The actor of a report without an account.
const ANONYMOUS: &str = "anonymous";

/// Reports an agent that the caller may see: a review of the kind `report` opens, or the open one collects it. This
/// hides nothing.
pub async fn agent_report(
    context: &Context,
    caller: &Caller,
    agent: &str,
    new: &NewReport,
) -> Result<ReportAccepted> {
    let seen = agent_visible(context, caller, agent).await?;
    check_reason(&new.reason)?;
    check_contact(&new.contact)?;
    let account = caller.account.as_ref();
    let network = caller.network.map(|network| network.to_string());
    let write = context.store.write().await?;
    let mut state = state_of(&write, seen.id).await?;
    let shown = state.agent.approved_version.or(state.agent.newest_version);
    let Some(version) = shown.filter(|_| state.agent.retired_at.is_none()) else {
        return Err(AppError::conflict("The agent has been retired for good."));
    };
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let now = ledger.now();
    let by = account.map(|account| account.id);
    check_rate(&write, by, network.as_deref(), now).await?;
    let actor = account.map_or(ANONYMOUS, |account| &account.name);
    let accepted = ReportAccepted {
        agent: seen.id,
        at: now,
    };
    let mut open = state.further_reviews.iter();
    let open = open.find(|one| one.kind == ReviewKind::Report);
    let review = match open.map(|one| one.id) {
        Some(review) if review_notes::report_count(&write, review).await? >= MAX_REPORTS => {
            return Ok(accepted);
        }
        Some(review) => review,
        None => {
            let submitter = submitter_name(&write, &state).await?;
            let new = FurtherReview::new(ReviewKind::Report, version, submitter);
            ledger.open_further(&mut state, new, actor, None)
        }
    };
    let row = agent_report::Model {
        id: ledger.new_id(),
        review_id: review,
        account_id: by,
        network: network.filter(|_| by.is_none()),
        reason: new.reason.clone(),
        contact: Some(new.contact.clone()).filter(|contact| !contact.is_empty()),
        at: now.0,
    };
    let data = json!({"review": review});
    ledger.event(EventKind::AgentReported, seen.id, actor, data);
    // The review's row must exist before a row that refers to it.
    let touched = ledger.write(&write).await?;
    write.report_insert(row).await?;
    commit_written(context, write, [&touched]).await?;
    Ok(accepted)
}

fn check_contact(contact: &str) -> Result<()> {
    if contact.chars().count() <= MAX_CONTACT && !contact.contains('\0') {
        return Ok(());
    }
    Err(AppError::invalid(
        "/contact",
        format!("A contact has at most {MAX_CONTACT} characters, without U+0000."),
    ))
}

/// Refuses an account, or a network without one, that has reported too often in a day.
async fn check_rate(
    write: &Write,
    by: Option<Uuid>,
    network: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    let made = review_notes::reports_since(write, by, network, now.0 - DAY).await?;
    if made < MAX_REPORTS_A_DAY {
        return Ok(());
    }
    Err(AppError {
        retry_after: Some(3600),
        ..AppError::new(
            ErrorKind::TooManyRequests,
            format!("There were {MAX_REPORTS_A_DAY} reports from here in a day; wait."),
        )
    })
}
