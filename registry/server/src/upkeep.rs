//! Upkeep in the background: derives the cards of older builds again, deletes expired rows, reports damaged cards, and
//! writes events of refused sign-ins.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::accounts::refusals::write_refusals;
use a2a_registry_core::context::Context;
use a2a_registry_core::crawl::derivation::derive_again;
use a2a_registry_core::health::damaged_cards::report_damaged_cards;
use a2a_registry_core::health::housekeeping::{forget_ended, housekeep};
use a2a_registry_store::Handle as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PAUSE: Duration = Duration::from_secs(30);

/// How often expired rows are deleted.
const HOUSEKEEPING: Duration = Duration::from_secs(3600);

/// How often the memory of expired cache entries is freed, and events of refused sign-ins are written.
const EACH_MINUTE: Duration = Duration::from_secs(60);

/// Derives old cards again, page by page, then deletes expired rows; frees memory and reports damaged cards throughout.
pub(crate) fn start(context: &Arc<Context>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let derived = async {
            derive(&context, &cancel).await;
            keep_house(&context, &cancel).await;
        };
        // Derivation may take long, or keep failing.
        let damaged = report_damage(&context, &cancel);
        tokio::join!(derived, each_minute(&context, &cancel), damaged);
    })
}

async fn report_damage(context: &Context, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        let reported = report_damaged_cards(context).await;
        if let Err(error) = &reported {
            let error = error.internal.as_ref().unwrap_or(&error.public);
            tracing::error!(error, "damaged cards could not be reported");
        }
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(PAUSE), if reported.is_err() => {}
            () = context.store.damaged_bodies().wait_for_next() => {}
        }
    }
}

/// Derives again the cards of older builds, and verifies again the cards whose keys have changed.
async fn derive(context: &Context, cancel: &CancellationToken) {
    let mut done = 0;
    while !cancel.is_cancelled() {
        match derive_again(context).await {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::error!(error, "deriving cards again failed");
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
    if done > 0 {
        tracing::info!(versions = done, "cards were derived again");
    }
}

async fn each_minute(context: &Context, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(EACH_MINUTE) => forget_ended(context),
        }
        // At the end too, so that a restart loses none.
        if let Err(error) = write_refusals(context).await {
            tracing::warn!(
                error = error.for_log(),
                "refused sign-ins are written down later"
            );
        }
    }
}

async fn keep_house(context: &Context, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        let pause = match housekeep(context).await {
            Ok(true) => continue,
            Ok(false) => HOUSEKEEPING,
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::error!(error, "housekeeping failed");
                PAUSE
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
            () = context.wake.derive.notified() => {}
        }
        // Versions marked by another process are found too, at the latest in the next round.
        derive(context, cancel).await;
    }
}
