//! What every input is tried in: the fetcher of production, its guard, and the real resolver, which asks a name
//! server of the test's own in DNS over UDP.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use a2a_crawler::fetch::{FetchLimits, Fetched, Fetcher, FetcherConfig, GetOptions};
use a2a_crawler::guard::Guard;
use a2a_crawler::{Attempt, AttemptOutcome, SourceVerdict};
use hickory_resolver::proto::rr::RecordType;
use url::Url;

use super::{HOME, config, in_time};
use crate::support::{HOST, NameServer, Zone, fetcher_with};

pub struct FetchSetup {
    pub fetcher: Fetcher,
    names: NameServer,
}

/// Says that every name is where the canary sits, except [`HOST`], and is to be asked again each time.
pub fn trap(name: &str, kind: RecordType) -> Option<Zone> {
    let address = if name == HOST {
        HOME
    } else {
        Ipv4Addr::LOCALHOST
    };
    Some(Zone::now(kind, &[IpAddr::V4(address)]))
}

impl FetchSetup {
    /// Where all names are a [`trap`].
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

    pub fn guard(&self) -> &Guard {
        self.fetcher.guard()
    }

    /// How many questions the name server has got.
    pub fn look_ups(&self) -> usize {
        self.names.asked()
    }

    /// Fetches a card over a new connection, for which the name is resolved by the name server.
    pub async fn ask(&self, url: &Url, what: &str) -> (Attempt, SourceVerdict) {
        let before = self.look_ups();
        let answer = self.ask_again(url, what).await;
        assert!(self.look_ups() > before, "{what}: no name was looked up");
        answer
    }

    /// Asks for a card, over whatever connection is open.
    pub async fn ask_again(&self, url: &Url, what: &str) -> (Attempt, SourceVerdict) {
        attempt(&self.fetcher, url, what).await
    }

    pub async fn get(&self, url: &Url, what: &str) -> Fetched {
        in_time(what, self.fetcher.get(url, &GetOptions::default())).await
    }
}

/// Fetches a card, and checks the attempt against the promises of every attempt.
pub async fn attempt(fetcher: &Fetcher, url: &Url, what: &str) -> (Attempt, SourceVerdict) {
    let (attempt, verdict) = in_time(what, fetcher.fetch_card(url, None)).await;
    assert!(attempt.detail.chars().count() <= 300, "{what}: {attempt:?}");
    assert!(
        !attempt.detail.chars().any(char::is_control),
        "{what}: {attempt:?}"
    );
    let went_well = attempt.outcome == AttemptOutcome::Card;
    assert_eq!(
        matches!(verdict, SourceVerdict::Fetched(_)),
        went_well,
        "{what}"
    );
    (attempt, verdict)
}
