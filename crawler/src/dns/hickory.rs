//! The system's name servers, asked through hickory.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RecordType};

use super::{DnsError, MAX_ADDRESSES, Resolver};

/// Answers kept in memory. Most hosts are asked once in hours, so more would not be hit.
const CACHE_ENTRIES: u64 = 4096;
/// An absence is believed for this long at most, so that a record placed just now is soon found.
const NEGATIVE_TTL: Duration = Duration::from_secs(60);

/// Resolves through the name servers and the hosts file that the system is configured with.
#[derive(Clone)]
pub struct HickoryResolver {
    inner: TokioResolver,
}

impl std::fmt::Debug for HickoryResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HickoryResolver").finish_non_exhaustive()
    }
}

impl HickoryResolver {
    /// Reads the system's configuration. Where there is none, a name server on this machine is asked,
    /// as the C library does. `timeout` bounds a whole look-up; a lost packet is sent again half-way.
    pub fn from_system(timeout: Duration) -> Result<Self, DnsError> {
        let provider = TokioRuntimeProvider::default;
        let builder = TokioResolver::builder(provider()).unwrap_or_else(|error| {
            tracing::warn!(%error, "no DNS configuration found, asking 127.0.0.1");
            let server = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
            TokioResolver::builder_with_config(
                ResolverConfig::from_name_servers(vec![server]),
                provider(),
            )
        });
        Self::build(builder, timeout)
    }

    /// Asks the given name servers only.
    pub fn from_servers(
        servers: Vec<NameServerConfig>,
        timeout: Duration,
    ) -> Result<Self, DnsError> {
        let builder = TokioResolver::builder_with_config(
            ResolverConfig::from_name_servers(servers),
            TokioRuntimeProvider::default(),
        );
        Self::build(builder, timeout)
    }

    fn build(
        mut builder: hickory_resolver::ResolverBuilder<TokioRuntimeProvider>,
        timeout: Duration,
    ) -> Result<Self, DnsError> {
        set_options(builder.options_mut(), timeout);
        let inner = builder
            .build()
            .map_err(|error| DnsError::Failure(error.to_string()))?;
        Ok(Self { inner })
    }
}

fn set_options(options: &mut ResolverOpts, timeout: Duration) {
    options.timeout = timeout / 2;
    options.attempts = 1;
    options.cache_size = CACHE_ENTRIES;
    options.negative_max_ttl = Some(NEGATIVE_TTL);
}

#[async_trait]
impl Resolver for HickoryResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError> {
        let failure = |error: String| DnsError::Failure(error);
        let mut name = Name::from_ascii(host).map_err(|error| failure(error.to_string()))?;
        // A rooted name is not tried below the system's search domains.
        name.set_fqdn(true);
        let (v4, v6) = tokio::join!(
            self.inner.lookup(name.clone(), RecordType::A),
            self.inner.lookup(name, RecordType::AAAA),
        );
        merge(v4, v6)
    }
}

/// One answer of the two look-ups: absence only where both say so.
fn merge(
    v4: Result<Lookup, NetError>,
    v6: Result<Lookup, NetError>,
) -> Result<Vec<IpAddr>, DnsError> {
    let mut addresses = Vec::new();
    let mut failure = None;
    for answer in [v4, v6] {
        match answer {
            Ok(lookup) => addresses.extend(
                lookup
                    .answers()
                    .iter()
                    .filter_map(|record| record.data.ip_addr()),
            ),
            Err(error) if error.is_no_records_found() || error.is_nx_domain() => {}
            Err(error) => failure = Some(error.to_string()),
        }
    }
    if addresses.len() > MAX_ADDRESSES {
        return Err(DnsError::Failure(format!(
            "{} addresses are too many, at most {MAX_ADDRESSES} are looked at",
            addresses.len()
        )));
    }
    match (addresses.is_empty(), failure) {
        (false, _) => Ok(addresses),
        (true, Some(error)) => Err(DnsError::Failure(error)),
        (true, None) => Err(DnsError::NoSuchHost),
    }
}
