//! Names that resolve to no address, to too many, or to a forbidden one.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::AttemptOutcome::{DnsFailure, NoSuchHost, Refused};
use a2a_crawler::dns::{DnsError, Resolver};
use a2a_crawler::fetch::{FetchLimits, Fetcher, GetOptions};
use async_trait::async_trait;

use crate::support::{
    Canary, FORBIDDEN, HOST, OPEN, ScriptedReply, Server, StaticResolver, config, fetcher_with,
    short_limits,
};

fn fetcher(resolver: Arc<dyn Resolver>) -> Fetcher {
    fetcher_with(config(FetchLimits::default()), resolver)
}

/// Inputs 85 to 87, 92, 94: one refused address refuses the whole response, at any position in it.
#[tokio::test]
async fn one_forbidden_address_refuses_them_all() {
    let server = Server::always(ScriptedReply::json("{}")).await;
    let canary = Canary::new();
    let open = IpAddr::V4(OPEN);
    let forbidden = IpAddr::V4(FORBIDDEN);
    let many: Vec<IpAddr> = std::iter::repeat_n(open, 50).chain([forbidden]).collect();
    for addresses in [
        vec![forbidden],
        vec![open, forbidden],
        vec![forbidden, open],
        vec![open, "::1".parse().unwrap()],
        vec!["::1".parse().unwrap()],
        vec!["::ffff:127.0.0.1".parse().unwrap()],
        vec!["169.254.169.254".parse().unwrap()],
        vec![open, "10.0.0.1".parse().unwrap()],
        many,
    ] {
        let resolver = Arc::new(StaticResolver::new());
        resolver.set(HOST, addresses.clone());
        for port in [server.at.port(), canary.at.port()] {
            let url = format!("http://{HOST}:{port}/").parse().unwrap();
            let error = fetcher(resolver.clone())
                .get(&url, &GetOptions::default())
                .await
                .result
                .unwrap_err();
            assert_eq!(error.outcome, Refused, "{addresses:?}: {error}");
            // The detail is shown to owners; addresses are for curators only.
            assert!(!error.detail.contains("127.0.0.2"), "{error}");
        }
    }
    assert!(server.requests().is_empty());
    canary.assert_untouched();
}

/// Input 88: the checked address is the dialled one, since a name is resolved once for a connection. The next
/// connection is checked anew.
#[tokio::test]
async fn a_name_that_changes_its_address_leads_nowhere() {
    let canary = Canary::new();
    let server = Server::bind(OPEN.into(), None, |_| {
        ScriptedReply::json("{}").then_close()
    })
    .await;
    let resolver = Arc::new(StaticResolver::new());
    resolver.script(
        HOST,
        vec![Ok(vec![OPEN.into()]), Ok(vec![FORBIDDEN.into()])],
    );
    let fetcher = fetcher(resolver.clone());
    let first = fetcher.get(&server.url("/"), &GetOptions::default()).await;
    assert_eq!(first.result.unwrap().status, 200);
    assert_eq!(resolver.asked(HOST), 1);
    let url = format!("http://{HOST}:{}/", canary.at.port())
        .parse()
        .unwrap();
    let second = fetcher.get(&url, &GetOptions::default()).await;
    assert_eq!(second.result.unwrap_err().outcome, Refused);
    canary.assert_untouched();
}

#[tokio::test]
async fn absence_and_failure_are_told_apart() {
    let resolver = Arc::new(StaticResolver::new());
    resolver.script(
        "broken.example.com",
        vec![Err(DnsError::Failure("SERVFAIL \u{1b}[2J".to_owned()))],
    );
    resolver.set("empty.example.com", []);
    let fetcher = fetcher(resolver);
    for (host, outcome) in [
        ("nowhere.example.com", NoSuchHost),
        ("empty.example.com", NoSuchHost),
        ("broken.example.com", DnsFailure),
    ] {
        let url = format!("http://{host}/").parse().unwrap();
        let error = fetcher
            .get(&url, &GetOptions::default())
            .await
            .result
            .unwrap_err();
        assert_eq!(error.outcome, outcome, "{host}");
        assert!(!error.detail.contains('\u{1b}'));
    }
}

/// A resolver that never answers.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl Resolver for Silent {
    async fn resolve(&self, _host: &str) -> Result<Vec<IpAddr>, DnsError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_silent_name_server_is_a_failure_and_no_absence() {
    let fetcher = fetcher_with(config(short_limits()), Arc::new(Silent));
    let url = format!("http://{HOST}/").parse().unwrap();
    let error = fetcher
        .get(&url, &GetOptions::default())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, DnsFailure, "{error}");
}

/// A resolver that answers late.
#[derive(Debug)]
struct Slow(Duration);

#[async_trait]
impl Resolver for Slow {
    async fn resolve(&self, _host: &str) -> Result<Vec<IpAddr>, DnsError> {
        tokio::time::sleep(self.0).await;
        Ok(vec![OPEN.into()])
    }
}

/// Each phase has its own limit: a late DNS response takes nothing from the time for connecting, nor from the time for
/// the first byte.
#[tokio::test]
async fn looking_up_counts_as_neither_connecting_nor_waiting() {
    let server = Server::always(ScriptedReply::json("{}")).await;
    let limits = FetchLimits {
        dns: Duration::from_secs(5),
        connect: Duration::from_millis(400),
        first_byte: Duration::from_millis(400),
        ..FetchLimits::default()
    };
    let fetcher = fetcher_with(config(limits), Arc::new(Slow(limits.connect * 2)));
    let fetched = fetcher.get(&server.url("/"), &GetOptions::default()).await;
    assert_eq!(fetched.result.unwrap().status, 200);
}
