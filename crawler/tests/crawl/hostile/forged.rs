//! Inputs 85 to 94 with mutated bytes: an address from a broken response passes the guard, or no connection is made.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use a2a_crawler::AttemptOutcome::{DnsFailure, NoSuchHost, Refused};
use a2a_crawler::dns::{DnsError, HickoryResolver, MAX_ADDRESSES, Resolver};
use a2a_crawler::fetch::{FetchLimits, GetOptions};
use a2a_crawler::guard::SsrfGuard;
use async_trait::async_trait;

use super::answers::cases;
use super::mutation::Seed;
use super::{MANY, canary, config, in_time, short};
use crate::support::{NameServer, fetcher_with};

/// The real resolver, which passes on only responses that the guard rejects. Mutated bytes can be public addresses as
/// well, and a test must not connect to other people's hosts.
#[derive(Debug)]
struct HeldBack {
    real: HickoryResolver,
    guard: SsrfGuard,
    /// The addresses passed on, which the fetcher must refuse.
    let_on: Mutex<Vec<IpAddr>>,
}

#[async_trait]
impl Resolver for HeldBack {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError> {
        let addresses = self.real.resolve(host).await?;
        let refused = |at: &IpAddr| self.guard.check_address(*at).is_err();
        if !addresses.iter().any(refused) {
            return Err(DnsError::Failure("held back".to_owned()));
        }
        self.let_on.lock().unwrap().clone_from(&addresses);
        Ok(addresses)
    }
}

async fn mutated(rounds: usize) {
    let canary = canary();
    let limits = FetchLimits {
        dns: short().dns,
        ..FetchLimits::default()
    };
    for case in cases() {
        let script = case.script;
        let names = NameServer::lying(
            move |name, kind| script(name, kind, 1),
            move |bytes, round| Seed::new(case.number, round).mutate(bytes, 2),
        )
        .await;
        let resolver = Arc::new(HeldBack {
            real: names.hasty_resolver(limits.dns),
            guard: config(limits).guard,
            let_on: Mutex::default(),
        });
        let fetcher = fetcher_with(config(limits), Arc::clone(&resolver) as Arc<dyn Resolver>);
        for round in 0..rounds {
            names.lie(round);
            // A new name in each round, since responses are cached.
            let url = format!("http://names.x{round}.example.com:{}/", canary.at.port());
            let url = url.parse().unwrap();
            let what = format!("input {}, {}, round {round}", case.number, case.name);
            let fetched = in_time(&what, fetcher.get(&url, &GetOptions::default())).await;
            let error = fetched.result.expect_err(&what);
            let let_on = std::mem::take(&mut *resolver.let_on.lock().unwrap());
            if let_on.is_empty() {
                assert!(
                    matches!(error.outcome, DnsFailure | NoSuchHost),
                    "{what}: {error}"
                );
            } else {
                assert!(let_on.len() <= MAX_ADDRESSES, "{what}");
                assert_eq!(error.outcome, Refused, "{what}: {error}");
            }
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn mutated_answers_lead_nowhere() {
    mutated(4).await;
}

#[tokio::test]
#[ignore = "the longer run, see the module"]
async fn many_mutated_answers_lead_nowhere() {
    mutated(MANY).await;
}
