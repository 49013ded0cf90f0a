//! The background jobs of a process: crawl, checks of proofs, indexing, upkeep and embedding.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::dns::{HickoryResolver, Resolver};
use a2a_crawler::fetch::FetchLimits;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::crawl::job as crawl;
use crate::crawl::job::OnOutcome;
use crate::error::StartError;
use crate::events::listen;
use crate::health::upkeep;
use crate::meaning::job as embed;
use crate::ownership::job as prove;
use crate::ownership::verify::reach_out;
use crate::search::follow;
use crate::visits::outage::resume_outage;

pub use crawl::{frontier, sink};
pub use embed::{Embedders, Models};

/// The options of the jobs.
pub struct JobOptions {
    /// Whether this process crawls.
    pub crawl: bool,
    /// The reason to rebuild the index first, if there is one.
    pub rebuild: Option<String>,
    /// A callback that gets the outcome of every request of the crawler.
    pub on_outcome: OnOutcome,
    /// The DNS resolver; `None` for the system's configuration.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// The models of semantic search.
    pub models: Models,
}

impl std::fmt::Debug for JobOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobOptions")
            .field("crawl", &self.crawl)
            .field("rebuild", &self.rebuild)
            .finish_non_exhaustive()
    }
}

impl Default for JobOptions {
    fn default() -> Self {
        Self {
            crawl: true,
            rebuild: None,
            on_outcome: Arc::new(|_| ()),
            resolver: None,
            models: Models::None,
        }
    }
}

/// The jobs of one process.
#[derive(Debug)]
pub struct Jobs {
    crawling: CancellationToken,
    following: CancellationToken,
    crawl: Option<JoinHandle<()>>,
    prove: Option<JoinHandle<()>>,
    follow: JoinHandle<()>,
    upkeep: JoinHandle<()>,
    listen: JoinHandle<()>,
    embed: Option<JoinHandle<()>>,
}

/// Timeout of the crawler to give back its leases, and of the index to commit.
const PATIENCE: Duration = Duration::from_secs(4);

/// Starts every job.
///
/// # Errors
/// Where the crawler cannot be built: a certificate that cannot be read, no resolver configuration.
pub fn start(context: &Arc<Context>, options: JobOptions) -> Result<Jobs, StartError> {
    let crawling = CancellationToken::new();
    let following = CancellationToken::new();
    let resolver: Arc<dyn Resolver> = match options.resolver {
        Some(resolver) => resolver,
        None => Arc::new(
            HickoryResolver::from_system(FetchLimits::default().dns)
                .map_err(|error| StartError(format!("names cannot be resolved: {error}")))?,
        ),
    };
    let embedding_resolver = Arc::clone(&resolver);
    let fetcher = Arc::new(crawl::fetcher(context, Arc::clone(&resolver))?);
    reach_out(context, Arc::clone(&fetcher));
    let (crawl, prove) = if options.crawl {
        resume_outage(context);
        let prove = prove::start(context, &resolver, &crawling);
        let crawl = crawl::start(
            context,
            fetcher,
            resolver,
            options.on_outcome,
            crawling.clone(),
        );
        (Some(crawl), Some(prove))
    } else {
        (None, None)
    };
    Ok(Jobs {
        crawl,
        prove,
        follow: follow::start(context, options.rebuild, following.clone()),
        upkeep: upkeep::start(context, following.clone()),
        listen: listen::start(context, following.clone()),
        embed: embed::start(context, options.models, &embedding_resolver, &following),
        crawling,
        following,
    })
}

impl Jobs {
    /// Stops leasing at once; visits under way continue until [`Jobs::stop`].
    pub fn stop_crawling(&self) {
        self.crawling.cancel();
    }

    /// Ends every job in order: fetches are cancelled and their leases given back, then the index commits the applied
    /// events.
    pub async fn stop(self) {
        self.crawling.cancel();
        if let Some(crawl) = self.crawl {
            finish("crawler", crawl).await;
        }
        if let Some(prove) = self.prove {
            finish("prover", prove).await;
        }
        self.following.cancel();
        finish("index", self.follow).await;
        finish("upkeep", self.upkeep).await;
        finish("listener", self.listen).await;
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
