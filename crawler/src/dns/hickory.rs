//! Resolver that queries the system's name servers, through hickory.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ProtocolConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as WireError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf::read_system_conf;

use super::{
    DnsError, MAX_ADDRESSES, MAX_NAME_SERVERS, Resolver, TxtLookup, TxtRecords, extended_errors,
};
use crate::descriptors;

/// Capacity of the answer cache. Most hosts are fetched hours apart, so a larger cache would not be hit more often.
const CACHE_ENTRIES: u64 = 4096;
/// Maximum time for which an absence is cached, so that a new record is found soon.
const NEGATIVE_TTL: Duration = Duration::from_secs(60);

/// Resolver that uses the name servers and the hosts file of the system.
#[derive(Clone)]
pub struct HickoryResolver {
    cached: TokioResolver,
    /// Resolver without a cache, so that an owner who requests a check gets a fresh answer.
    uncached: TokioResolver,
    servers: Vec<SocketAddr>,
    timeout: Duration,
}

impl std::fmt::Debug for HickoryResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HickoryResolver").finish_non_exhaustive()
    }
}

impl HickoryResolver {
    /// Reads the system's configuration. If there is none, it uses a name server on this machine, like the C library.
    /// `timeout` limits a whole look-up; a lost packet is sent again half-way.
    pub fn from_system(timeout: Duration) -> Result<Self, DnsError> {
        let (config, options) = read_system_conf().unwrap_or_else(|error| {
            tracing::warn!(%error, "no DNS configuration found; using the name server at 127.0.0.1");
            let server = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
            (
                ResolverConfig::from_name_servers(vec![server]),
                ResolverOpts::default(),
            )
        });
        Self::build(&config, &options, timeout)
    }

    /// Uses only the given name servers.
    pub fn from_name_servers(
        servers: Vec<NameServerConfig>,
        timeout: Duration,
    ) -> Result<Self, DnsError> {
        let config = ResolverConfig::from_name_servers(servers);
        Self::build(&config, &ResolverOpts::default(), timeout)
    }

    fn build(
        config: &ResolverConfig,
        options: &ResolverOpts,
        timeout: Duration,
    ) -> Result<Self, DnsError> {
        let build_resolver = |cache_size| {
            let provider = TokioRuntimeProvider::default();
            let mut builder = TokioResolver::builder_with_config(config.clone(), provider);
            let resolver_options = builder.options_mut();
            *resolver_options = options.clone();
            resolver_options.timeout = timeout / 2;
            resolver_options.attempts = 1;
            resolver_options.cache_size = cache_size;
            resolver_options.negative_max_ttl = Some(NEGATIVE_TTL);
            // Intermediate records are kept, so that an alias in the answer can be recognised.
            resolver_options.preserve_intermediates = true;
            builder
                .build()
                .map_err(|error| DnsError::Failure(error.to_string()))
        };
        let udp_address = |server: &NameServerConfig| {
            let connection = server
                .connections
                .iter()
                .find(|connection| matches!(connection.protocol, ProtocolConfig::Udp))?;
            Some(SocketAddr::new(server.ip, connection.port))
        };
        Ok(Self {
            cached: build_resolver(CACHE_ENTRIES)?,
            uncached: build_resolver(0)?,
            servers: config.name_servers.iter().filter_map(udp_address).collect(),
            timeout,
        })
    }
}

/// Parses a rooted name, which is not tried with the system's search domains.
fn parse_rooted_name(name: &str) -> Result<Name, String> {
    let mut name = Name::from_ascii(name).map_err(|error| error.to_string())?;
    name.set_fqdn(true);
    Ok(name)
}

#[async_trait]
impl Resolver for HickoryResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError> {
        let name = parse_rooted_name(host).map_err(DnsError::Failure)?;
        let (v4, v6) = tokio::join!(
            self.cached.lookup(name.clone(), RecordType::A),
            self.cached.lookup(name, RecordType::AAAA),
        );
        merge_address_lookups(v4, v6)
    }

    async fn lookup_txt(&self, name: &str) -> TxtLookup {
        let name = match parse_rooted_name(name) {
            Ok(name) => name,
            Err(error) => return TxtLookup::Failed(error),
        };
        match self.uncached.lookup(name.clone(), RecordType::TXT).await {
            Ok(lookup) => extract_txt_records(&lookup),
            Err(error) if error.is_no_records_found() => TxtLookup::Absent,
            Err(NetError::Dns(WireError::DnssecBogus)) => {
                TxtLookup::Bogus("the answer does not pass DNSSEC validation".to_owned())
            }
            Err(NetError::Dns(WireError::ResponseCode(ResponseCode::ServFail))) => {
                let dnssec_reason = extended_errors::find_dnssec_failure(
                    &self.servers,
                    &name,
                    RecordType::TXT,
                    self.timeout / 2,
                );
                match dnssec_reason.await {
                    Some(reason) => TxtLookup::Bogus(reason),
                    None => TxtLookup::Failed("the name servers failed (SERVFAIL)".to_owned()),
                }
            }
            Err(error) => TxtLookup::Failed(error.to_string()),
        }
    }

    async fn lookup_name_servers(&self, zone: &str) -> Result<Vec<String>, DnsError> {
        let name = parse_rooted_name(zone).map_err(DnsError::Failure)?;
        match self.uncached.lookup(name, RecordType::NS).await {
            Ok(lookup) => extract_name_servers(&lookup),
            Err(error) if error.is_no_records_found() || error.is_nx_domain() => {
                Err(DnsError::NoSuchHost)
            }
            Err(error) => Err(to_dns_error(&error)),
        }
    }
}

/// The failure of a look-up without a definite answer. The library does not say why a query could not be sent.
fn to_dns_error(error: &NetError) -> DnsError {
    match error {
        NetError::Io(_) | NetError::NoConnections if is_out_of_sockets() => {
            DnsError::OutOfDescriptors
        }
        error => DnsError::Failure(error.to_string()),
    }
}

fn is_out_of_sockets() -> bool {
    let opened = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    opened.is_err_and(|error| descriptors::is_out_of_descriptors(&error))
}

/// Extracts the name servers from an answer. Those behind an alias count too: they show who controls the name.
fn extract_name_servers(lookup: &Lookup) -> Result<Vec<String>, DnsError> {
    let mut servers: Vec<String> = lookup
        .answers()
        .iter()
        .filter_map(|record| match &record.data {
            RData::NS(server) => Some(server.0.to_lowercase().to_ascii()),
            _ => None,
        })
        .map(|server| server.trim_end_matches('.').to_owned())
        .collect();
    servers.sort_unstable();
    servers.dedup();
    match servers.len() {
        0 => Err(DnsError::Failure(
            "the look-up ended without an answer".to_owned(),
        )),
        1..=MAX_NAME_SERVERS => Ok(servers),
        count => Err(DnsError::Failure(format!(
            "the zone has {count} name servers; at most {MAX_NAME_SERVERS} are read"
        ))),
    }
}

/// Extracts the TXT records from an answer. An answer without any is incomplete, for example in a loop of aliases, and
/// does not mean absence.
fn extract_txt_records(lookup: &Lookup) -> TxtLookup {
    let mut txt = TxtRecords::default();
    for record in lookup.answers() {
        match &record.data {
            RData::TXT(text) => txt.push(text.txt_data.iter()),
            RData::CNAME(_) => txt.aliased = true,
            _ => {}
        }
    }
    if txt.records.is_empty() && txt.skipped_count == 0 {
        return TxtLookup::Failed("the aliases of the name lead to no answer".to_owned());
    }
    TxtLookup::Records(txt)
}

/// Merges the IPv4 and IPv6 look-ups; absent only if both report absence.
fn merge_address_lookups(
    v4: Result<Lookup, NetError>,
    v6: Result<Lookup, NetError>,
) -> Result<Vec<IpAddr>, DnsError> {
    let mut addresses = Vec::new();
    let mut last_error = None;
    for lookup in [v4, v6] {
        match lookup {
            Ok(lookup) => addresses.extend(
                lookup
                    .answers()
                    .iter()
                    .filter_map(|record| record.data.ip_addr()),
            ),
            Err(error) if error.is_no_records_found() || error.is_nx_domain() => {}
            Err(error) => last_error = Some(to_dns_error(&error)),
        }
    }
    if addresses.len() > MAX_ADDRESSES {
        return Err(DnsError::Failure(format!(
            "the host has {} addresses; at most {MAX_ADDRESSES} are allowed",
            addresses.len()
        )));
    }
    match (addresses.is_empty(), last_error) {
        (false, _) => Ok(addresses),
        (true, Some(error)) => Err(error),
        (true, None) => Err(DnsError::NoSuchHost),
    }
}
