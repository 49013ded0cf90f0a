//! The job that ends approvals and owner vouches when their term is over. Every process runs it, and each sees the
//! changes of the others.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::AppContext;
use crate::error::Result;
use crate::ownership::owner_vouches::end_owner_vouches;
use crate::reviews::break_glass_expiry::expire_break_glasses;
use crate::reviews::recertification::advance_approval_terms;

const RUN_INTERVAL: Duration = Duration::from_secs(60);

pub fn start_approval_terms_job(
    context: &Arc<AppContext>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        while !cancel.is_cancelled() {
            let passed = tokio::select! {
                () = cancel.cancelled() => return,
                passed = run_approval_terms_once(&context) => passed,
            };
            if let Err(error) = passed {
                let error = error.internal.unwrap_or(error.public);
                tracing::error!(error, "expired approvals and vouches could not be ended");
            }
            tokio::select! {
                () = cancel.cancelled() => {}
                () = tokio::time::sleep(RUN_INTERVAL) => {}
            }
        }
    })
}

async fn run_approval_terms_once(context: &AppContext) -> Result<()> {
    let ended = expire_break_glasses(context).await;
    let passed = advance_approval_terms(context).await;
    let vouched = end_owner_vouches(context).await;
    ended.and(passed).and(vouched)
}
