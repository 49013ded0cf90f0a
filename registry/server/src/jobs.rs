//! The background jobs of a process: crawl, checks of proofs, decisions by changed rules, indexing, upkeep, embedding
//! and the terms of approvals.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::admission::rules_job as rules;
use a2a_registry_core::context::Context;
use a2a_registry_core::crawl::job as crawl;
use a2a_registry_core::crawl::job::OnOutcome;
use a2a_registry_core::events::listen;
use a2a_registry_core::meaning::job as embed;
use a2a_registry_core::ownership::job as prove;
use a2a_registry_core::policies::job as policies;
use a2a_registry_core::reviews::terms_job as terms;
use a2a_registry_core::search::follow;
use a2a_registry_core::visits::outage::resume_outage;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::upkeep;

pub use a2a_registry_core::admission::rules_pass::PassEnd;
pub use a2a_registry_core::admission::rules_pass::decide_by_rules;
pub use a2a_registry_core::meaning::models::Embedders;
pub use a2a_registry_core::meaning::models::Models;
pub use crawl::{frontier, sink};

pub struct JobOptions {
    pub crawl: bool,
    /// The reason to rebuild the index first, if any.
    pub rebuild: Option<String>,
    /// A callback that gets the outcome of every request of the crawler.
    pub on_outcome: OnOutcome,
    pub models: Models,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self {
            crawl: true,
            rebuild: None,
            on_outcome: Arc::new(|_| ()),
            models: Models::None,
        }
    }
}

#[derive(Debug)]
pub struct Jobs {
    crawling: CancellationToken,
    following: CancellationToken,
    crawl: Option<JoinHandle<()>>,
    prove: Option<JoinHandle<()>>,
    rules: JoinHandle<()>,
    follow: JoinHandle<()>,
    upkeep: JoinHandle<()>,
    policies: JoinHandle<()>,
    listen: JoinHandle<()>,
    embed: Option<JoinHandle<()>>,
    terms: JoinHandle<()>,
}

/// Timeout for the crawler to return its leases, and for the index to commit.
const PATIENCE: Duration = Duration::from_secs(4);

pub fn start(context: &Arc<Context>, options: JobOptions) -> Jobs {
    let crawling = CancellationToken::new();
    let following = CancellationToken::new();
    let (crawl, prove) = if options.crawl {
        resume_outage(context);
        let prove = prove::start(context, &crawling);
        let crawl = crawl::start(context, options.on_outcome, crawling.clone());
        (Some(crawl), Some(prove))
    } else {
        (None, None)
    };
    Jobs {
        crawl,
        prove,
        rules: rules::start(context, crawling.clone()),
        follow: follow::start(context, options.rebuild, following.clone()),
        upkeep: upkeep::start(context, following.clone()),
        policies: policies::start(context, following.clone()),
        listen: listen::start(context, following.clone()),
        embed: embed::start(context, options.models, &following),
        terms: terms::start(context, following.clone()),
        crawling,
        following,
    }
}

impl Jobs {
    /// Stops leasing visits, and deciding by changed rules, at once; visits in progress continue until [`Jobs::stop`].
    pub fn stop_crawling(&self) {
        self.crawling.cancel();
    }

    /// Ends every job in order: fetches are cancelled and their leases returned, then the index commits the applied
    /// events.
    pub async fn stop(self) {
        self.crawling.cancel();
        if let Some(crawl) = self.crawl {
            finish("crawler", crawl).await;
        }
        if let Some(prove) = self.prove {
            finish("prover", prove).await;
        }
        finish("rules", self.rules).await;
        self.following.cancel();
        finish("index", self.follow).await;
        finish("upkeep", self.upkeep).await;
        finish("policies", self.policies).await;
        finish("listener", self.listen).await;
        finish("terms", self.terms).await;
        if let Some(embed) = self.embed {
            finish("encoder", embed).await;
        }
    }
}

async fn finish(name: &str, task: JoinHandle<()>) {
    let abort = task.abort_handle();
    match tokio::time::timeout(PATIENCE, task).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, name, "a job failed at its end"),
        Err(_) => {
            abort.abort();
            tracing::warn!(name, "a job did not end in time and was cancelled");
        }
    }
}
