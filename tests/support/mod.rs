//! Support of the end-to-end tests: databases, processes, fake origins, third-party SDKs, a browser.
//!
//! A registry is described by a [`setup::RegistrySetup`] and started from it: as a process ([`serving_registry`]), on
//! a port of this process if a test has to advance the clock ([`in_process_server`]), or without a network if the test
//! plays the crawler ([`in_process_registry`]).
//!
//! Tests wait for events (a printed line, a request, the end of a process) until [`DEADLINE`], after which the test
//! fails and shows the events that it received; [`polling`] covers changes without an event.

pub mod api;
pub mod browser;
pub mod cached_agent_check;
pub mod cards;
pub mod clock;
pub mod crawler_fleet;
pub mod database;
pub mod database_proxy;
pub mod event_stream;
pub mod exchange;
pub mod identity_provider;
pub mod in_process_registry;
pub mod in_process_server;
pub mod mail_server;
pub mod nginx;
pub mod origin;
pub mod page_snippet;
pub mod policy_previews;
pub mod polling;
pub mod program;
pub mod round_robin;
pub mod sdk;
pub mod seeded_rng;
pub mod serving_registry;
pub mod setup;
pub mod signer;
pub mod simulated_visits;
#[path = "../../crawler/tests/crawl/support/static_resolver.rs"]
#[allow(dead_code, reason = "the crawler's tests use more of it")]
pub mod static_resolver;
pub mod tls;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) use database::both_databases;

/// Timeout of a wait for an event. It is long because it matters only when a test fails; no test measures time with
/// it.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The value of an environment variable that `tests/run` sets.
///
/// # Panics
///
/// When it is missing, with the command that sets it.
pub fn required_variable(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set. Run `tests/run` for all tests, `tests/run NAME` for some, or \
             `tests/run --shell` for a shell in which cargo finds everything."
        )
    })
}

/// The number in an environment variable, or another one where it is not set.
pub fn number_from_env(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// The path of the `a2a-registry` program under test.
///
/// # Panics
///
/// When `A2A_REGISTRY_BIN` is missing or names no file, with the command to run.
pub fn registry_binary() -> PathBuf {
    let path = PathBuf::from(required_variable("A2A_REGISTRY_BIN"));
    assert!(
        path.is_file(),
        "A2A_REGISTRY_BIN names {}, which is no file. Run `tests/run`, which builds it.",
        path.display()
    );
    path
}

/// Makes `ring` the TLS provider of this process. May be called again.
pub fn install_tls() {
    // An error means that another test was first, with the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// An HTTP client that uses no proxy, follows no redirect and times out at [`DEADLINE`].
pub fn http_client() -> reqwest::Client {
    install_tls();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(DEADLINE)
        .build()
        .unwrap()
}

/// A port of the loopback address that was free a moment ago. It is below those that the system gives to outgoing
/// connections, so that it is still free when its process starts again.
pub fn free_port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let offset = (std::process::id() + COUNT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        let port = 10_000 + u16::try_from(offset).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
