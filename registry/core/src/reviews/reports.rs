//! Reports on agents: anyone may report a problem, and curators decide on the consequences.

use a2a_registry_api::limits::{MAX_CONTACT_CHARS, MAX_DAILY_REPORTS, MAX_REPORTS_PER_REVIEW};
use a2a_registry_api::{NewReport, ReportAccepted};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::agent_report;
use a2a_registry_store::{WriteTransaction, review_notes};
use serde_json::json;
use uuid::Uuid;

use crate::admission::decision::submitter_name;
use crate::agents::views::require_visible_agent;
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::publish::commit_and_publish;
use crate::commit::secondary_reviews::NewSecondaryReview;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::visibility::caller::Caller;

/// The actor of a report without an account.
const ANONYMOUS: &str = "anonymous";

/// Reports an agent that the caller may see: opens a review of the kind `report`, or adds to the open one. A report
/// does not hide the agent.
pub async fn report_agent(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    report: &NewReport,
) -> Result<ReportAccepted> {
    let visible_agent = require_visible_agent(context, caller, agent).await?;
    check_reason(&report.reason)?;
    check_report_contact(&report.contact)?;
    let account = caller.account.as_ref();
    let network = caller.network.map(|network| network.to_string());
    let write = context.store.begin_write().await?;
    let mut state = load_agent_state(&write, visible_agent.id).await?;
    let current_version = state.agent.approved_version.or(state.agent.newest_version);
    let Some(version) = current_version.filter(|_| state.agent.retired_at.is_none()) else {
        return Err(AppError::conflict("The agent has been retired for good."));
    };
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let now = change_set.now();
    let reporter = account.map(|account| account.id);
    check_report_rate(&write, reporter, network.as_deref(), now).await?;
    let actor = account.map_or(ANONYMOUS, |account| &account.name);
    let accepted = ReportAccepted {
        agent: visible_agent.id,
        at: now,
    };
    let mut open = state.secondary_reviews.iter();
    let open = open.find(|one| one.kind == ReviewKind::Report);
    let review = match open.map(|one| one.id) {
        Some(review)
            if review_notes::report_count_by_review(&write, review).await?
                >= MAX_REPORTS_PER_REVIEW =>
        {
            return Ok(accepted);
        }
        Some(review) => review,
        None => {
            let submitter = submitter_name(&write, &state).await?;
            let further_review = NewSecondaryReview::new(ReviewKind::Report, version, submitter);
            change_set.open_secondary_review(&mut state, further_review, actor, None)
        }
    };
    let row = agent_report::Model {
        id: change_set.new_id(),
        review_id: review,
        account_id: reporter,
        network: network.filter(|_| reporter.is_none()),
        reason: report.reason.clone(),
        contact: Some(report.contact.clone()).filter(|contact| !contact.is_empty()),
        at: now.0,
    };
    let data = json!({"agent": visible_agent.id, "review": review});
    change_set.add_event(EventKind::AgentReported, visible_agent.id, actor, data);
    // The review's row must exist before a row that refers to it.
    let committed = change_set.write(&write).await?;
    write.insert_agent_report(row).await?;
    commit_and_publish(context, write, [&committed]).await?;
    Ok(accepted)
}

fn check_report_contact(contact: &str) -> Result<()> {
    if contact.chars().count() <= MAX_CONTACT_CHARS && !contact.contains('\0') {
        return Ok(());
    }
    Err(AppError::invalid(
        "/contact",
        format!("A contact must have at most {MAX_CONTACT_CHARS} characters, without U+0000."),
    ))
}

/// Refuses an account, or a network without one, that has reported too often in a day.
async fn check_report_rate(
    write: &WriteTransaction,
    reporter: Option<Uuid>,
    network: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    let report_count_by_review =
        review_notes::report_count_by_reporter(write, reporter, network, now.0 - DAY).await?;
    if report_count_by_review < MAX_DAILY_REPORTS {
        return Ok(());
    }
    Err(AppError {
        retry_after: Some(3600),
        ..AppError::new(
            ErrorKind::TooManyRequests,
            format!("The limit of {MAX_DAILY_REPORTS} reports a day is reached. Try again later."),
        )
    })
}
