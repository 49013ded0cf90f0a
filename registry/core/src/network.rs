//! The only network access of this process: the resolver, the guarded fetchers, and the mailer.

use std::sync::Arc;

use a2a_crawler::Clock;
use a2a_crawler::dns::{EmptyResolver, HickoryResolver, Resolver};
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::SsrfGuard;
use url::Url;

use crate::config::{Config, read_root_certificates};
use crate::error::StartError;
use crate::mailer::Mailer;

/// The network access of a registry. All parts exist before anything else starts, so that no check is skipped because
/// one is missing.
#[derive(Debug, Clone)]
pub struct NetworkAccess {
    pub resolver: Arc<dyn Resolver>,
    /// Fetches cards and checks proofs, with the same resolver and within the guard of the crawler.
    pub fetcher: Arc<Fetcher>,
    /// Queries identity providers, with the same resolver and within the guard of `[identity]`; `None` without
    /// providers.
    pub identity_fetcher: Option<Arc<Fetcher>>,
    /// Queries other registries, with the same resolver and within the guard of `[federation]`; `None` without peers.
    pub federation_fetcher: Option<Arc<Fetcher>>,
    /// Sends to hooks, with the same resolver and within the guard of `[webhooks]`.
    pub webhook_fetcher: Arc<Fetcher>,
    /// Sends mails through the server of `[mail]`; `None` without one.
    pub mailer: Option<Arc<Mailer>>,
}

impl NetworkAccess {
    pub fn with_system_resolver(
        config: &Config,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let resolver = HickoryResolver::from_system(FetchLimits::default().dns)
            .map_err(|error| StartError(format!("the DNS resolver cannot be set up: {error}")))?;
        Self::with_resolver(config, clock, Arc::new(resolver))
    }

    /// Network access for a process that sends no requests. No name resolves, and the certificates of
    /// `crawler.extra_ca` are not read, so that commands that only read the database run without them.
    pub fn offline(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let [fetching, _, _, webhooks] = fetcher_configs(config);
        let required = [fetching, webhooks];
        Self::with_configs(required, [None, None], clock, Arc::new(EmptyResolver))
    }

    pub fn with_resolver(
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
        let [fetching, identity, federation, webhooks] = fetcher_configs(config);
        let fetching = FetcherConfig {
            contact_url: contact,
            extra_ca: read_root_certificates(&crawler.extra_ca).map_err(StartError)?,
            ..fetching
        };
        let extra_ca = read_root_certificates(&config.identity.extra_ca);
        let identity = FetcherConfig {
            extra_ca: extra_ca.map_err(|error| StartError(format!("identity.{error}")))?,
            ..identity
        };
        let extra_ca = read_root_certificates(&config.federation.extra_ca);
        let federation = FetcherConfig {
            extra_ca: extra_ca.map_err(|error| StartError(format!("federation.{error}")))?,
            ..federation
        };
        let extra_ca = read_root_certificates(&config.webhooks.extra_ca);
        let webhooks = FetcherConfig {
            contact_url: fetching.contact_url.clone(),
            extra_ca: extra_ca.map_err(|error| StartError(format!("webhooks.{error}")))?,
            ..webhooks
        };
        let others = [
            (!config.identity.providers.is_empty()).then_some(identity),
            (!config.federation.peers.is_empty()).then_some(federation),
        ];
        let fetchers = Self::with_configs([fetching, webhooks], others, clock, resolver)?;
        Ok(Self {
            mailer: Mailer::from_config(config)?.map(Arc::new),
            ..fetchers
        })
    }

    /// Replaces the network lists of every fetcher by those of this configuration. Each check from here on is by them.
    pub fn replace_lists(&self, config: &Config) {
        self.fetcher
            .guard()
            .replace_config(config.crawler.guard_config());
        self.webhook_fetcher
            .guard()
            .replace_config(config.webhooks.guard_config());
        if let Some(fetcher) = &self.identity_fetcher {
            fetcher
                .guard()
                .replace_config(config.identity.guard_config());
        }
        if let Some(fetcher) = &self.federation_fetcher {
            fetcher
                .guard()
                .replace_config(config.federation.guard_config());
        }
    }

    fn with_configs(
        [fetching, webhooks]: [FetcherConfig; 2],
        [identity, federation]: [Option<FetcherConfig>; 2],
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, StartError> {
        let new_fetcher = |config| {
            Fetcher::new(config, Arc::clone(&resolver), Arc::clone(&clock))
                .map(Arc::new)
                .map_err(|error| StartError(error.to_string()))
        };
        Ok(Self {
            fetcher: new_fetcher(fetching)?,
            identity_fetcher: identity.map(&new_fetcher).transpose()?,
            federation_fetcher: federation.map(&new_fetcher).transpose()?,
            webhook_fetcher: new_fetcher(webhooks)?,
            mailer: None,
            resolver,
        })
    }
}

/// The fetcher configurations of the crawler, for identity providers, for other registries and for hooks, without the
/// contact and the certificates from files.
fn fetcher_configs(config: &Config) -> [FetcherConfig; 4] {
    let fetcher_config = |guard, key_hosts| FetcherConfig {
        guard: SsrfGuard::new(guard),
        limits: FetchLimits::default(),
        contact_url: None,
        extra_ca: Vec::new(),
        key_hosts,
    };
    [
        fetcher_config(
            config.crawler.guard_config(),
            config.crawler.key_hosts.clone(),
        ),
        fetcher_config(config.identity.guard_config(), Vec::new()),
        fetcher_config(config.federation.guard_config(), Vec::new()),
        fetcher_config(config.webhooks.guard_config(), Vec::new()),
    ]
}
