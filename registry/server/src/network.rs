//! The one way out of this process: how names are resolved, and the guarded fetcher.

use std::sync::Arc;

use a2a_crawler::Clock;
use a2a_crawler::dns::{HickoryResolver, Resolver, StaticResolver};
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::Guard;
use url::Url;

use crate::config::{Config, read_roots};
use crate::error::StartError;

/// What a registry reaches the network by. It is complete before anything else starts, so that no check is skipped for
/// want of it.
#[derive(Debug, Clone)]
pub struct Network {
    /// How names are resolved.
    pub resolver: Arc<dyn Resolver>,
    /// Fetches cards and looks for proofs, by the same resolver and within the guard of the crawler's purpose.
    pub fetcher: Arc<Fetcher>,
}

impl Network {
    /// Names are resolved as the system is configured.
    ///
    /// # Errors
    /// No resolver configuration, and those of [`Network::through`].
    pub fn of_system(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let resolver = HickoryResolver::from_system(FetchLimits::default().dns)
            .map_err(|error| StartError(format!("names cannot be resolved: {error}")))?;
        Self::through(config, clock, Arc::new(resolver))
    }

    /// For a process that asks nobody anything: no name resolves.
    ///
    /// # Errors
    /// Those of [`Network::through`].
    pub fn none(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        Self::through(config, clock, Arc::new(StaticResolver::new()))
    }

    /// Names are resolved by this resolver.
    ///
    /// # Errors
    /// `crawler.contact` is no URL, or a file of `crawler.extra_ca` cannot be read or holds no certificate.
    pub fn through(
        config: &Config,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, StartError> {
        let crawler = &config.crawler;
        let contact = match crawler.contact.as_str() {
            "" => Url::parse(&format!("{}/crawler", config.public_url())).ok(),
            contact => Some(Url::parse(contact).map_err(|_| {
                StartError("crawler.contact must be a URL, such as https://example.com/crawler or mailto:ops@example.com".into())
            })?),
        };
        let fetcher_config = FetcherConfig {
            guard: Guard::new(crawler.guard()),
            limits: FetchLimits::default(),
            contact,
            extra_ca: read_roots(&crawler.extra_ca).map_err(StartError)?,
            key_hosts: crawler.key_hosts.clone(),
        };
        let fetcher = Fetcher::new(fetcher_config, Arc::clone(&resolver), clock)
            .map_err(|error| StartError(error.to_string()))?;
        Ok(Self {
            resolver,
            fetcher: Arc::new(fetcher),
        })
    }
}
