//! The job that decides by changed admission rules, and ends when everything is decided by those of its process.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admission::rules_pass::{PassEnd, decide_by_rules};
use crate::context::Context;

/// How often it checks whether the deciding process still runs, and whether the rules that replaced these are still in
/// force.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The pause after a failure of the database.
const PAUSE: Duration = Duration::from_secs(5);
/// The pause before failed decisions are tried again, long enough for the cause to be fixed.
const FAILED: Duration = Duration::from_secs(900);

pub fn start(context: &Arc<Context>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        let mut is_superseded = false;
        loop {
            let pause = match decide_by_rules(&context, &cancel).await {
                Ok(PassEnd::Decided | PassEnd::Cancelled) => return,
                Ok(PassEnd::Superseded) => {
                    if !std::mem::replace(&mut is_superseded, true) {
                        tracing::warn!(
                            "another process was started with other rules, and decides by those; give all processes the same rules"
                        );
                    }
                    // A later process may have these rules again, and end before everything is decided.
                    LOOK_AGAIN
                }
                Ok(PassEnd::Elsewhere) => LOOK_AGAIN,
                Ok(PassEnd::Failed) => FAILED,
                Err(error) => {
                    let error = error.for_log();
                    tracing::error!(error, "the changed rules decide later");
                    PAUSE
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    })
}
