//! A registry in this process that serves on a real port, so that a test can advance its clock.

use std::net::TcpListener;
use std::sync::Arc;

use a2a_crawler::dns::HickoryResolver;
use a2a_crawler::fetch::FetchLimits;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_server::jobs::{self, JobOptions, Jobs};
use a2a_registry_server::startup::close_store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::api::RegistryClient;
use super::clock::ManualClock;
use super::exchange::ValidatingProxy;
use super::setup::{RegistrySetup, build_registry};

/// A registry in this process. Dropping it ends its server.
pub struct InProcessServer {
    /// Its client.
    pub api: RegistryClient,
    app: Arc<AppContext>,
    jobs: Jobs,
    server_task: AbortOnDropHandle<std::io::Result<()>>,
    shutdown: CancellationToken,
    _setup: RegistrySetup,
}

impl InProcessServer {
    /// Starts the registry with that clock.
    pub async fn start(setup: &RegistrySetup, clock: &Arc<ManualClock>) -> Self {
        let mut config = setup.config();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        config.server.listen = listener.local_addr().unwrap();
        let url = format!("http://{}", config.server.listen);
        let resolver = HickoryResolver::from_system(FetchLimits::default().dns).unwrap();
        let resolver = Arc::new(resolver);
        let started = build_registry(&config, Arc::<ManualClock>::clone(clock), resolver).await;
        let jobs = jobs::start_jobs(&started.context, JobOptions::default());
        let shutdown = CancellationToken::new();
        let serving = a2a_registry_server::serve::run_server(
            Arc::clone(&started.context),
            listener,
            shutdown.clone(),
            Arc::new(Metrics::new()),
        );
        Self {
            api: RegistryClient::new(&url).with_proxy(ValidatingProxy::new().await),
            app: started.context,
            jobs,
            server_task: AbortOnDropHandle::new(tokio::spawn(serving)),
            shutdown,
            _setup: setup.clone(),
        }
    }

    /// Ends the registry properly.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.server_task.await.unwrap().unwrap();
        self.jobs.stop().await;
        close_store(&self.app.store).await;
    }
}
