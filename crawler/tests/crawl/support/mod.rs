//! A small server that lies as scripted, a canary that must never be touched, and ready-made fetchers.

mod names;
mod server;
mod trust;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_crawler::dns::{Resolver, StaticResolver};
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{AllowPorts, Guard, GuardConfig};
use url::Url;

pub use names::{NameServer, Zone, address, alias, name_server, resolver_at, text};
pub use server::{Reply, Request, Server};
pub use trust::{Authority, Identity};

/// The address that the guard of these tests opens; every other loopback address stays forbidden.
pub const OPEN: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// A loopback address that the guard does not open.
pub const FORBIDDEN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A host that resolves to [`OPEN`].
pub const HOST: &str = "agents.example.com";

/// Limits of a production kind, short enough for a hanging server to be no wait.
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

/// Opens 127.0.0.1 alone, http, and every port.
pub fn open_guard() -> Guard {
    Guard::new(GuardConfig {
        allow_networks: vec![IpAddr::V4(OPEN).into()],
        allow_http: true,
        allow_ports: AllowPorts::Any,
        ..GuardConfig::default()
    })
}

pub fn config(limits: FetchLimits) -> FetcherConfig {
    FetcherConfig {
        guard: open_guard(),
        limits,
        contact: Some("https://registry.example.com/crawler".parse().unwrap()),
        extra_ca: Vec::new(),
        key_hosts: Vec::new(),
    }
}

pub fn fetcher_with(config: FetcherConfig, resolver: Arc<dyn Resolver>) -> Fetcher {
    Fetcher::new(config, resolver, Arc::new(SystemClock)).unwrap()
}

/// A fetcher with default limits for which [`HOST`] is [`OPEN`].
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

/// Listens on a forbidden address. Connections complete in its backlog, so that looking at the end is
/// enough.
pub struct Canary {
    listener: TcpListener,
    pub at: SocketAddr,
}

impl Canary {
    pub fn new() -> Self {
        Self::on(FORBIDDEN.into())
    }

    pub fn on(address: IpAddr) -> Self {
        Self::at(address, 0)
    }

    pub fn at(address: IpAddr, port: u16) -> Self {
        let listener = TcpListener::bind((address, port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        Self { listener, at }
    }

    pub fn url(&self) -> Url {
        format!("http://{}/", self.at).parse().unwrap()
    }

    pub fn was_touched(&self) -> bool {
        self.listener.accept().is_ok()
    }

    #[track_caller]
    pub fn assert_untouched(&self) {
        let error = self
            .listener
            .accept()
            .expect_err("a forbidden address was connected to");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
