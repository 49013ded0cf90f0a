//! The job that decides by changed admission rules. It ends when everything is decided by the rules of its process.

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
            let pause = match redecide_by_changed_rules(&context, &cancel).await {
                Ok(RulesRunEnd::Decided | RulesRunEnd::Cancelled) => return,
                Ok(RulesRunEnd::Superseded) => {
                    if !std::mem::replace(&mut is_superseded, true) {
                        tracing::warn!(
                            "another process was started with different rules, and decides by those. Configure the \
                             same rules for all processes"
                        );
                    }
                    // A later process may have these rules again, and exit before everything is decided.
                    RECHECK_INTERVAL
                }
                Ok(RulesRunEnd::OtherProcess) => RECHECK_INTERVAL,
                Ok(RulesRunEnd::Failed) => FAILED_RETRY_DELAY,
                Err(error) => {
                    let error = error.log_message();
                    tracing::error!(
                        error,
                        "deciding by the changed rules failed and is retried later"
                    );
                    DATABASE_RETRY_DELAY
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    })
}
