//! Events of refused credentials and sign-ins: one for each network and minute, up to a limit.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use serde_json::json;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::Result;
use crate::memory::refusals::{RefusalCount, RefusalSummary, SIGN_IN_LOG};

/// The subject of the event for all networks that have none of their own.
const OTHERS: &str = "other networks";

/// Writes an event for each network whose credentials or sign-ins were refused since the last call, and a log line if
/// not each refusal had one. If the database fails, the next call writes the counts.
pub async fn write_refusals(context: &Context) -> Result<()> {
    let Some(summary) = context.refusals.take() else {
        return Ok(());
    };
    if let Err(error) = write(context, &summary).await {
        context.refusals.take_back(summary);
        return Err(error);
    }
    for (network, count) in entries(&summary) {
        let more = count.unlogged();
        if more > 0 {
            let reasons = &count.reasons;
            tracing::warn!(target: SIGN_IN_LOG, network, more, ?reasons, "and more were refused in this minute");
        }
    }
    Ok(())
}

fn entries(summary: &RefusalSummary) -> impl Iterator<Item = (String, &RefusalCount)> {
    let others = Some((OTHERS.to_owned(), &summary.others));
    summary
        .networks
        .iter()
        .map(|(network, count)| (network.to_string(), count))
        .chain(others.filter(|(_, count)| count.total() > 0))
}

async fn write(context: &Context, summary: &RefusalSummary) -> Result<()> {
    let until: Timestamp = context.now();
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(until, context.entropy.as_ref());
    for (network, count) in entries(summary) {
        let data = json!({
            "count": count.total(), "reasons": count.reasons, "since": summary.since, "until": until,
        });
        ledger.event(EventKind::SignInRefused, &network, SYSTEM, data);
    }
    commit_ledger(context, write, ledger).await
}
