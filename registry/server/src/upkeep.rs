//! Background upkeep: derives cards of older builds again, names agents under a new authority, deletes expired rows,
//! reports damaged cards, and writes events of rejected sign-ins.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::accounts::refusal_events::write_credential_refusal_events;
use a2a_registry_core::admission::authority_urns::assign_missing_authority_urns;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::crawl::derivation::rederive_version_page;
use a2a_registry_core::health::damaged_cards::report_damaged_cards;
use a2a_registry_core::health::housekeeping::{delete_expired_rows, evict_expired_caches};
use a2a_registry_store::Executor as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const RETRY_DELAY: Duration = Duration::from_secs(30);

/// Interval at which expired rows are deleted.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(3600);

/// Interval at which expired cache entries are freed and events of rejected sign-ins are written.
const CACHE_EVICTION_INTERVAL: Duration = Duration::from_secs(60);

/// Derives old cards again, page by page, then deletes expired rows. Frees memory and reports damaged cards
/// throughout.
pub(crate) fn start_upkeep(context: &Arc<AppContext>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let derivation = async {
            rederive_cards(&context, &cancel).await;
            run_deletion_and_rederivation(&context, &cancel).await;
        };
        // Damage reports run concurrently, because derivation may take long or keep failing.
        let damage_reports = run_damage_reports(&context, &cancel);
        tokio::join!(
            derivation,
            name_vouched_agents(&context, &cancel),
            run_minutely_tasks(&context, &cancel),
            damage_reports
        );
    })
}

async fn run_damage_reports(context: &AppContext, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        let reported = report_damaged_cards(context).await;
        if let Err(error) = &reported {
            let error = error.internal.as_ref().unwrap_or(&error.public);
            tracing::error!(error, "damaged cards could not be reported");
        }
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(RETRY_DELAY), if reported.is_err() => {}
            () = context.store.damaged_bodies().wait_for_next() => {}
        }
    }
}

/// Gives URNs under the company's authority to agents of hosts for which an admin vouched before it was set.
async fn name_vouched_agents(context: &AppContext, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        // As many hosts as there are, so it may be cut off like by a kill: the next start goes on.
        let named = tokio::select! {
            () = cancel.cancelled() => return,
            named = assign_missing_authority_urns(context) => named,
        };
        let Err(error) = named else {
            return;
        };
        tracing::error!(
            error = error.log_message(),
            "agents could not be named under ard.authority; retrying later"
        );
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(RETRY_DELAY) => {}
        }
    }
}

/// Derives the cards of older builds again, and verifies the cards again whose keys have changed.
async fn rederive_cards(context: &AppContext, cancel: &CancellationToken) {
    let mut done = 0;
    while !cancel.is_cancelled() {
        match rederive_version_page(context).await {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::error!(error, "cards could not be derived again");
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                }
            }
        }
    }
    if done > 0 {
        tracing::info!(versions = done, "cards were derived again");
    }
}

async fn run_minutely_tasks(context: &AppContext, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(CACHE_EVICTION_INTERVAL) => evict_expired_caches(context),
        }
        // Also runs after cancellation, so that a restart loses no events.
        if let Err(error) = write_credential_refusal_events(context).await {
            tracing::warn!(
                error = error.log_message(),
                "events of rejected sign-ins could not be written; retrying later"
            );
        }
    }
}

async fn run_deletion_and_rederivation(context: &AppContext, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        let pause = match delete_expired_rows(context).await {
            Ok(true) => continue,
            Ok(false) => HOUSEKEEPING_INTERVAL,
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::error!(error, "housekeeping failed");
                RETRY_DELAY
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
            () = context.signals.rederive.notified() => {}
        }
        // Finds versions marked by another process too, at the latest in the next round.
        rederive_cards(context, cancel).await;
    }
}
