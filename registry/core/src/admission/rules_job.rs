//! The job that decides by changed admission rules: those of the start, and those of each reload.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admission::rules_run::{RulesRunEnd, redecide_by_changed_rules};
use crate::context::AppContext;

/// The interval at which it checks whether the deciding process still runs, and whether the rules that replaced these
/// are still in force.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The delay after a database failure.
const DATABASE_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The delay before failed decisions are retried, long enough for the cause to be fixed.
const FAILED_RETRY_DELAY: Duration = Duration::from_secs(900);

pub fn start_rules_job(context: &Arc<AppContext>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let mut is_superseded = false;
        loop {
            let rules = context.rules();
            let pause = match redecide_by_changed_rules(&context, &cancel).await {
                Ok(RulesRunEnd::Cancelled) => return,
                // A reload has replaced the rules meanwhile.
                Ok(_) if !Arc::ptr_eq(&rules, &context.rules()) => continue,
                Ok(RulesRunEnd::Decided) => None,
                Ok(RulesRunEnd::Superseded) => {
                    if !std::mem::replace(&mut is_superseded, true) {
                        tracing::warn!(
                            "another process was started or reloaded with different rules, and applies those. \
                             Configure the same rules for all processes"
                        );
                    }
                    // A later process may have these rules again, and exit before everything is decided.
                    Some(RECHECK_INTERVAL)
                }
                Ok(RulesRunEnd::OtherProcess) => Some(RECHECK_INTERVAL),
                Ok(RulesRunEnd::Failed) => Some(FAILED_RETRY_DELAY),
                Err(error) => {
                    let error = error.log_message();
                    tracing::error!(
                        error,
                        "applying the changed rules failed, and is retried later"
                    );
                    Some(DATABASE_RETRY_DELAY)
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = context.signals.rules.notified() => is_superseded = false,
                () = sleep_if_some(pause) => {}
            }
        }
    })
}

/// Sleeps for this time; for ever if there is none.
async fn sleep_if_some(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}
