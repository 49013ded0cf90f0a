//! A registry that serves on a real port from within this process, so that its clock can be moved.

use std::net::TcpListener;
use std::sync::Arc;

use a2a_crawler::dns::HickoryResolver;
use a2a_crawler::fetch::FetchLimits;
use a2a_registry_core::context::Context;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_server::jobs::{self, JobOptions, Jobs};
use a2a_registry_server::start::close;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::api::Api;
use super::clock::ManualClock;
use super::exchange::Tap;
use super::setup::{Setup, build};

/// A registry within this process. Dropping it ends its server.
pub struct Inside {
    /// Its client.
    pub api: Api,
    app: Arc<Context>,
    jobs: Jobs,
    serving: AbortOnDropHandle<std::io::Result<()>>,
    shutdown: CancellationToken,
    _setup: Setup,
}

impl Inside {
    /// Starts the registry with that clock.
    pub async fn start(setup: &Setup, clock: &Arc<ManualClock>) -> Self {
        let mut config = setup.config();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        config.server.listen = listener.local_addr().unwrap();
        let url = format!("http://{}", config.server.listen);
        let resolver = HickoryResolver::from_system(FetchLimits::default().dns).unwrap();
        let resolver = Arc::new(resolver);
        let started = build(&config, Arc::<ManualClock>::clone(clock), resolver).await;
        let jobs = jobs::start(&started.context, JobOptions::default());
        let shutdown = CancellationToken::new();
        let serving = a2a_registry_server::serve::run(
            Arc::clone(&started.context),
            listener,
            shutdown.clone(),
            Arc::new(Metrics::new()),
        );
        Self {
            api: Api::at(&url).through(Tap::new().await),
            app: started.context,
            jobs,
            serving: AbortOnDropHandle::new(tokio::spawn(serving)),
            shutdown,
            _setup: setup.clone(),
        }
    }

    /// Ends the registry properly.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
        self.jobs.stop().await;
        close(&self.app.store).await;
    }
}
