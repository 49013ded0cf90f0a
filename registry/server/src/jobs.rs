//! Background jobs of a process: crawling, proof checks, endpoint checks, hooks, decisions by changed rules, indexing,
//! upkeep, embedding and approval terms.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::admission::rules_job as rules;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::crawl::job as crawl;
use a2a_registry_core::crawl::job::AttemptOutcomeCallback;
use a2a_registry_core::decision_log::job as decisions;
use a2a_registry_core::embeddings::indexing_job as embed;
use a2a_registry_core::endpoints::job as endpoints;
use a2a_registry_core::events::listener;
use a2a_registry_core::hooks::job as hooks;
use a2a_registry_core::ownership::job as prove;
use a2a_registry_core::policies::policy_job as policies;
use a2a_registry_core::policies::preview_jobs;
use a2a_registry_core::reviews::approval_terms_job as terms;
use a2a_registry_core::search::{index_job, policy_replicas};
use a2a_registry_core::visits::outage::resume_outage;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::upkeep;

pub use a2a_registry_core::admission::rules_run::RulesRunEnd;
pub use a2a_registry_core::admission::rules_run::redecide_by_changed_rules;
pub use a2a_registry_core::embeddings::models::ConfiguredEmbedders;
pub use a2a_registry_core::embeddings::models::ModelSource;
pub use crawl::{database_frontier, database_sink};

pub struct JobOptions {
    pub crawl: bool,
    /// Reason to rebuild the index first, if any.
    pub rebuild: Option<String>,
    /// Callback for the outcome of every crawler request.
    pub on_outcome: AttemptOutcomeCallback,
    pub models: ModelSource,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self {
            crawl: true,
            rebuild: None,
            on_outcome: Arc::new(|_| ()),
            models: ModelSource::None,
        }
    }
}

#[derive(Debug)]
pub struct Jobs {
    crawl_cancel: CancellationToken,
    follow_cancel: CancellationToken,
    crawl: Option<JoinHandle<()>>,
    prove: Option<JoinHandle<()>>,
    endpoints: Option<JoinHandle<()>>,
    hooks: Option<JoinHandle<()>>,
    rules: JoinHandle<()>,
    follow: JoinHandle<()>,
    upkeep: JoinHandle<()>,
    policies: JoinHandle<()>,
    decisions: JoinHandle<()>,
    listen: JoinHandle<()>,
    embed: Option<JoinHandle<()>>,
    terms: JoinHandle<()>,
    replicas: JoinHandle<()>,
    previews: JoinHandle<()>,
}

/// Timeout for the crawler to return its leases and for the index to commit.
const JOB_STOP_TIMEOUT: Duration = Duration::from_secs(4);

pub fn start_jobs(context: &Arc<AppContext>, options: JobOptions) -> Jobs {
    let crawl_cancel = CancellationToken::new();
    let follow_cancel = CancellationToken::new();
    let (crawl, prove, endpoints, hooks) = if options.crawl {
        resume_outage(context);
        let prove = prove::start_domain_checks(context, &crawl_cancel);
        let crawl = crawl::start_crawler_job(context, options.on_outcome, crawl_cancel.clone());
        let endpoints = endpoints::start_endpoint_checks(context, &crawl_cancel);
        let hooks = hooks::start_hooks(context, &crawl_cancel);
        (Some(crawl), Some(prove), Some(endpoints), Some(hooks))
    } else {
        (None, None, None, None)
    };
    Jobs {
        crawl,
        prove,
        endpoints,
        hooks,
        rules: rules::start_rules_job(context, crawl_cancel.clone()),
        follow: index_job::start_index_job(context, options.rebuild, follow_cancel.clone()),
        upkeep: upkeep::start_upkeep(context, follow_cancel.clone()),
        policies: policies::start_policy_job(context, follow_cancel.clone()),
        decisions: decisions::start_decision_log_job(context, follow_cancel.clone()),
        listen: listener::start_event_listener(context, follow_cancel.clone()),
        embed: embed::start_embedding_job(context, options.models, &follow_cancel),
        terms: terms::start_approval_terms_job(context, follow_cancel.clone()),
        replicas: policy_replicas::start_replica_reports(context, follow_cancel.clone()),
        previews: preview_jobs::start_preview_job(context, follow_cancel.clone()),
        crawl_cancel,
        follow_cancel,
    }
}

impl Jobs {
    /// Immediately stops leasing visits and deciding by changed rules. Visits in progress continue until
    /// [`Jobs::stop`].
    pub fn stop_crawling(&self) {
        self.crawl_cancel.cancel();
    }

    /// Stops every job in order: cancels fetches and returns their leases, then commits the applied events to the
    /// index.
    pub async fn stop(self) {
        self.crawl_cancel.cancel();
        if let Some(crawl) = self.crawl {
            await_or_abort_job("crawler", crawl).await;
        }
        if let Some(prove) = self.prove {
            await_or_abort_job("prover", prove).await;
        }
        if let Some(endpoints) = self.endpoints {
            await_or_abort_job("endpoints", endpoints).await;
        }
        if let Some(hooks) = self.hooks {
            await_or_abort_job("hooks", hooks).await;
        }
        await_or_abort_job("rules", self.rules).await;
        self.follow_cancel.cancel();
        await_or_abort_job("index", self.follow).await;
        await_or_abort_job("upkeep", self.upkeep).await;
        await_or_abort_job("policies", self.policies).await;
        await_or_abort_job("decisions", self.decisions).await;
        await_or_abort_job("listener", self.listen).await;
        await_or_abort_job("terms", self.terms).await;
        await_or_abort_job("replicas", self.replicas).await;
        await_or_abort_job("previews", self.previews).await;
        if let Some(embed) = self.embed {
            await_or_abort_job("encoder", embed).await;
        }
    }
}

async fn await_or_abort_job(name: &str, task: JoinHandle<()>) {
    let abort = task.abort_handle();
    match tokio::time::timeout(JOB_STOP_TIMEOUT, task).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, name, "a job failed while stopping"),
        Err(_) => {
            abort.abort();
            tracing::warn!(name, "a job did not stop in time and was aborted");
        }
    }
}
