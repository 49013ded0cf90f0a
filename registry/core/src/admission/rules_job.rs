//! The job that decides by changed admission rules, and ends when everything is decided by those of its process.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admission::rules_run::{RulesRunEnd, redecide_by_changed_rules};
use crate::context::AppContext;

/// How often it checks whether the deciding process still runs, and whether the rules that replaced these are still in
/// force.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after a failure of the database.
const DATABASE_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The pause before failed decisions are tried again, long enough for the cause to be fixed.
const FAILED_RETRY_DELAY: Duration = Duration::from_secs(900);

pub fn start(context: &Arc<AppContext>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let mut is_superseded = false;
        loop {
            let pause = match redecide_by_changed_rules(&context, &cancel).await {
                Ok(RulesRunEnd::Decided | RulesRunEnd::Cancelled) => return,
                Ok(RulesRunEnd::Superseded) => {
                    if !std::mem::replace(&mut is_superseded, true) {
                        tracing::warn!(
                            "another process was started with other rules, and decides by those; give all processes the same rules"
                        );
                    }
                    // A later process may have these rules again, and end before everything is decided.
                    RECHECK_INTERVAL
                }
                Ok(RulesRunEnd::OtherProcess) => RECHECK_INTERVAL,
                Ok(RulesRunEnd::Failed) => FAILED_RETRY_DELAY,
                Err(error) => {
                    let error = error.log_message();
                    tracing::error!(error, "the changed rules decide later");
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
