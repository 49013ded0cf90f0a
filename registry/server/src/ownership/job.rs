//! Looks at the proofs of domains, each once a day.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::AppError;
use crate::ownership::verify::{check_give_back, check_lease, check_make};
use crate::visits::networks;

/// Domains looked at at once. Each look takes some DNS questions, and as many requests as a visit.
const AT_ONCE: usize = 4;
/// How long to wait before looking for due domains again where nothing has called.
const POLL: Duration = Duration::from_secs(5);

/// Looks at what is due until it is cancelled; a look under way is broken off and is due again minutes later.
pub(crate) fn start(context: &Arc<Context>, cancel: &CancellationToken) -> JoinHandle<()> {
    let mut lookers = JoinSet::new();
    for _ in 0..AT_ONCE {
        lookers.spawn(look(Arc::clone(context), cancel.clone()));
    }
    tokio::spawn(async move {
        lookers.join_all().await;
    })
}

async fn look(context: Arc<Context>, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        match check_next(&context, &cancel).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::warn!(error, "looking for proofs failed; it is tried again later");
            }
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = context.wake.checks.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Looks for the proofs of one domain that is due; says whether there was one. A lease that was taken is given back
/// whatever happens.
async fn check_next(context: &Context, cancel: &CancellationToken) -> Result<bool, AppError> {
    let Some(check) = check_lease(context).await? else {
        return Ok(false);
    };
    if check.may_ask_host {
        match networks::learn(context, std::iter::once(&check.domain)).await {
            Ok(too_many) if too_many.is_empty() => {}
            // Too many of its address block are under way; it was given back with that.
            Ok(_) => return Ok(true),
            Err(error) => {
                check_give_back(context, &check).await?;
                return Err(error.into());
            }
        }
    }
    let made = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        made = check_make(context, &check) => Some(made),
    };
    if let Some(Ok(())) = made {
        return Ok(true);
    }
    check_give_back(context, &check).await?;
    made.unwrap_or(Ok(())).map(|()| true)
}
