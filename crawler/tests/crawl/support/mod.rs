//! A scripted server, a canary that must never be connected to, and ready-made fetchers.

mod canary;
mod names;
mod server;
#[allow(dead_code, reason = "the tests of successions use more of it")]
mod static_resolver;
mod trust;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_crawler::dns::Resolver;
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{AllowedPorts, GuardConfig, SsrfGuard};

pub use canary::Canary;
pub use names::{NameServer, Zone, address, alias, name_server, resolver_at, text};
pub use server::{Request, ScriptedReply, Server};
pub use static_resolver::StaticResolver;
pub use trust::{Authority, Identity};

/// The only loopback address that the guard of these tests allows.
pub const OPEN: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// A loopback address that the guard rejects.
pub const FORBIDDEN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A host that resolves to [`OPEN`].
pub const HOST: &str = "agents.example.com";

/// Limits like those of production, but short, so that a hanging server costs little time.
pub fn short_limits() -> FetchLimits {
    FetchLimits {
        dns: Duration::from_millis(200),
        connect: Duration::from_millis(400),
        first_byte: Duration::from_millis(300),
        total: Duration::from_millis(1500),
        rate_grace: Duration::from_millis(200),
        ..FetchLimits::default()
    }
}

/// Allows 127.0.0.1 alone, http, and every port.
pub fn open_guard() -> SsrfGuard {
    SsrfGuard::new(GuardConfig {
        allow_networks: vec![IpAddr::V4(OPEN).into()],
        allow_http: true,
        allow_ports: AllowedPorts::Any,
        ..GuardConfig::default()
    })
}

pub fn config(limits: FetchLimits) -> FetcherConfig {
    FetcherConfig {
        guard: open_guard(),
        limits,
        contact_url: Some("https://registry.example.com/crawler".parse().unwrap()),
        extra_ca: Vec::new(),
        key_hosts: Vec::new(),
    }
}

pub fn fetcher_with(config: FetcherConfig, resolver: Arc<dyn Resolver>) -> Fetcher {
    Fetcher::new(config, resolver, Arc::new(SystemClock)).unwrap()
}

/// A fetcher with default limits whose resolver maps [`HOST`] to [`OPEN`].
pub fn fetcher() -> Fetcher {
    fetcher_with(config(FetchLimits::default()), resolver())
}

/// A fetcher with [`short_limits`].
pub fn hasty_fetcher() -> Fetcher {
    fetcher_with(config(short_limits()), resolver())
}

pub fn resolver() -> Arc<StaticResolver> {
    let resolver = StaticResolver::new();
    resolver.set(HOST, [IpAddr::V4(OPEN)]);
    Arc::new(resolver)
}
