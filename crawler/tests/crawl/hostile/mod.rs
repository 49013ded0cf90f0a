//! The 131 hostile inputs, each by its number, against the real resolver, guard and client.
//!
//! The list is numbered by kind: 1 to 84 are texts of URLs ([`urls`], and [`asking`] for them), 85 to 94 responses of
//! name servers ([`answers`], and [`forged`] with mutated bytes), 95 to 107 redirects ([`redirects`]), 108 to 122
//! behaviour of a server on the wire ([`transport`]), 123 to 130 its bodies ([`payload`]), and 131 URLs inside of these
//! ([`carried`]). Every input ends in a typed outcome, sends nothing to an address that is not open ([`canary`]), ends
//! in time ([`in_time`]), and takes a bounded number of bytes and of memory ([`memory`]). Names are resolved over the
//! wire, at a name server of the test's own ([`setup`]).
//!
//! The longer run, a thousand seeded mutations of each of the inputs 1 to 107 and 123 to 131:
//! `cargo test -p a2a-crawler --profile ci --test crawl -- --ignored hostile`

mod answers;
mod asking;
mod bombs;
mod carried;
mod forged;
#[cfg(target_os = "linux")]
mod memory;
mod mutation;
mod payload;
mod redirects;
mod setup;
mod transport;
mod urls;
mod wire;

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::time::Duration;

use a2a_crawler::AttemptOutcome;
use a2a_crawler::fetch::{FetchLimits, FetcherConfig};
use a2a_crawler::guard::{AllowedPorts, GuardConfig, SsrfGuard};

use crate::support::{Canary, Request, ScriptedReply, Server};
use setup::FetchSetup;

/// The only address that the guard allows here; 127.0.0.1 is forbidden like any other.
const HOME: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// Mutations of each input in every run, and in the longer one.
const FEW: usize = 20;
const MANY: usize = 1000;
/// Time that [`in_time`] grants beyond the limits, for a machine that compiles at the same time. On an idle machine the
/// slowest input takes a twentieth of it.
const SLACK: Duration = Duration::from_secs(5);
/// Maximum number of bytes that any server can get rid of, buffers of the system on the way included.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Production's timeouts, 50 times shorter.
fn short() -> FetchLimits {
    let usual = FetchLimits::default();
    FetchLimits {
        dns: usual.dns / 50,
        connect: usual.connect / 50,
        first_byte: usual.first_byte / 50,
        total: usual.total / 50,
        min_rate: usual.min_rate * 50,
        rate_grace: usual.rate_grace / 50,
        ..usual
    }
}

/// Allows http and every port, and of all networks [`HOME`] alone: only names and addresses can stop a request here.
fn config(limits: FetchLimits) -> FetcherConfig {
    FetcherConfig {
        guard: SsrfGuard::new(GuardConfig {
            allow_networks: vec![IpAddr::V4(HOME).into()],
            allow_http: true,
            allow_ports: AllowedPorts::Any,
            ..GuardConfig::default()
        }),
        limits,
        contact_url: None,
        extra_ca: Vec::new(),
        key_hosts: Vec::new(),
    }
}

/// A listener on every address of this machine, of both families, at one port.
fn canary() -> Canary {
    if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok() {
        Canary::on(Ipv6Addr::UNSPECIFIED.into())
    } else {
        Canary::on(Ipv4Addr::UNSPECIFIED.into())
    }
}

async fn serve(handler: impl Fn(&Request) -> ScriptedReply + Send + Sync + 'static) -> Server {
    Server::bind(HOME.into(), None, handler).await
}

/// A server, and a canary at the same port of a forbidden address: connections to any address but the open one are
/// noticed. If another program has that port there, another server is started.
async fn serve_beside_canary(
    handler: impl Fn(&Request) -> ScriptedReply + Clone + Send + Sync + 'static,
) -> (Server, Canary) {
    for _ in 0..20 {
        let server = serve(handler.clone()).await;
        if let Ok(canary) = Canary::at(Ipv4Addr::LOCALHOST.into(), server.at.port()) {
            return (server, canary);
        }
    }
    panic!("no port is free on both addresses");
}

/// Fails if an input takes longer than the total limit of [`short`]. Inputs that wait for a limit use these limits; the
/// others use limits that even a busy machine does not reach by mistake, and end before any of them.
async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(short().total + SLACK, work)
        .await
        .unwrap_or_else(|_| panic!("{what} did not end"))
}

/// Control test of the canary: the same request, with the canary's address allowed, reaches it.
#[tokio::test]
async fn a_packet_to_a_forbidden_address_would_be_seen() {
    let canary = canary();
    let world = FetchSetup::trap_for(FetcherConfig {
        guard: SsrfGuard::new(GuardConfig {
            allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
            allow_http: true,
            allow_ports: AllowedPorts::Any,
            ..GuardConfig::default()
        }),
        ..config(FetchLimits {
            // The canary never answers, the name server does; so its limit is the usual one.
            dns: FetchLimits::default().dns,
            ..short()
        })
    })
    .await;
    let url = format!("http://names.example.com:{}/", canary.at.port());
    let (attempt, _) = world.ask(&url.parse().unwrap(), "the canary").await;
    assert_eq!(attempt.outcome, AttemptOutcome::Timeout);
    assert!(canary.was_touched());
}

#[test]
fn every_number_of_the_list_is_tried() {
    let tried: BTreeSet<u8> = urls::cases()
        .iter()
        .map(|case| case.number)
        .chain(answers::cases().iter().map(|case| case.number))
        .chain(redirects::cases().iter().map(|case| case.number))
        .chain(transport::cases().iter().map(|case| case.number))
        .chain(payload::cases().iter().map(|case| case.number))
        .chain([carried::NUMBER])
        .collect();
    let listed: BTreeSet<u8> = (1..=131).collect();
    assert_eq!(tried, listed);
}
