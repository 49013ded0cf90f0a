//! Events for rejected credentials and sign-ins: one for each network and minute, up to a limit.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use serde_json::json;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::Result;
use crate::process_state::refusal_counters::{
    CredentialRefusalCount, CredentialRefusalSummary, SIGN_IN_LOG,
};

/// The subject of the event that counts all networks without an event of their own.
const OTHER_NETWORKS: &str = "other networks";

/// Writes an event for each network whose credentials or sign-ins were rejected since the last call, and a log line if
/// some rejections were not logged individually. If the database fails, the next call writes the counts.
pub async fn write_credential_refusal_events(context: &AppContext) -> Result<()> {
    let Some(summary) = context.refusals.take_summary() else {
        return Ok(());
    };
    if let Err(error) = append_credential_refusals(context, &summary).await {
        context.refusals.restore_summary(summary);
        return Err(error);
    }
    for (network, count) in credential_refusals_by_network(&summary) {
        let more = count.unlogged();
        if more > 0 {
            let reasons = &count.reasons;
            let event = EventKind::SignInRefused.as_str();
            tracing::warn!(target: SIGN_IN_LOG, event, network, more, ?reasons, "more sign-ins or credentials were \
             rejected in this minute");
        }
    }
    Ok(())
}

fn credential_refusals_by_network(
    summary: &CredentialRefusalSummary,
) -> impl Iterator<Item = (String, &CredentialRefusalCount)> {
    let others = Some((OTHER_NETWORKS.to_owned(), &summary.others));
    summary
        .networks
        .iter()
        .map(|(network, count)| (network.to_string(), count))
        .chain(others.filter(|(_, count)| count.total() > 0))
}

async fn append_credential_refusals(
    context: &AppContext,
    summary: &CredentialRefusalSummary,
) -> Result<()> {
    let until: Timestamp = context.now();
    let write = context.store.begin_write().await?;
    let mut change_set = ChangeSet::new(until, context.entropy.as_ref());
    for (network, count) in credential_refusals_by_network(summary) {
        let data = json!({
            "count": count.total(), "reasons": count.reasons, "since": summary.since, "until": until,
        });
        change_set.add_event(EventKind::SignInRefused, &network, SYSTEM_ACTOR, data);
    }
    commit_changes(context, write, change_set).await
}
