//! Common setup of all inputs: the fetcher of production, its guard, and the real resolver, which sends DNS over UDP to
//! a name server of the test's own.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use a2a_crawler::fetch::{FetchLimits, FetchRecord, Fetcher, FetcherConfig, GetOptions};
use a2a_crawler::guard::SsrfGuard;
use a2a_crawler::{AttemptOutcome, FetchAttempt, SourceResult};
use hickory_resolver::proto::rr::RecordType;
use url::Url;

use super::{HOME, config, in_time};
use crate::support::{HOST, NameServer, Zone, fetcher_with};

pub struct FetchSetup {
    pub fetcher: Fetcher,
    names: NameServer,
}

/// Resolves every name to the canary's address, except [`HOST`], with a TTL of 0.
pub fn trap(name: &str, kind: RecordType) -> Option<Zone> {
    let address = if name == HOST {
        HOME
    } else {
        Ipv4Addr::LOCALHOST
    };
    Some(Zone::now(kind, &[IpAddr::V4(address)]))
}

impl FetchSetup {
    /// A setup in which all names are a [`trap`].
    pub async fn trap() -> Self {
        Self::trap_for(config(FetchLimits::default())).await
    }

    pub async fn trap_for(config: FetcherConfig) -> Self {
        Self::new(NameServer::start(trap).await, config)
    }

    pub fn new(names: NameServer, config: FetcherConfig) -> Self {
        let resolver = Arc::new(names.resolver());
        Self {
            fetcher: fetcher_with(config, resolver),
            names,
        }
    }

    pub fn guard(&self) -> &SsrfGuard {
        self.fetcher.guard()
    }

    /// Number of queries that the name server has received.
    pub fn look_ups(&self) -> usize {
        self.names.asked()
    }

    /// Fetches a card over a new connection, for which the name server must be queried.
    pub async fn ask(&self, url: &Url, what: &str) -> (FetchAttempt, SourceResult) {
        let before = self.look_ups();
        let answer = self.ask_again(url, what).await;
        assert!(self.look_ups() > before, "{what}: no name was looked up");
        answer
    }

    /// Fetches a card, over an open connection if there is one.
    pub async fn ask_again(&self, url: &Url, what: &str) -> (FetchAttempt, SourceResult) {
        attempt(&self.fetcher, url, what).await
    }

    pub async fn get(&self, url: &Url, what: &str) -> FetchRecord {
        in_time(what, self.fetcher.get(url, &GetOptions::default())).await
    }
}

/// Fetches a card, and checks the attempt against the promises of every attempt.
pub async fn attempt(fetcher: &Fetcher, url: &Url, what: &str) -> (FetchAttempt, SourceResult) {
    let (attempt, verdict) = in_time(what, fetcher.fetch_card(url, None)).await;
    assert!(attempt.detail.chars().count() <= 300, "{what}: {attempt:?}");
    assert!(
        !attempt.detail.chars().any(char::is_control),
        "{what}: {attempt:?}"
    );
    let went_well = attempt.outcome == AttemptOutcome::Card;
    assert_eq!(
        matches!(verdict, SourceResult::Fetched(_)),
        went_well,
        "{what}"
    );
    (attempt, verdict)
}
