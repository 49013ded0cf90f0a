//! Inputs 1 to 84 as targets: of a registration, of a redirect, and of a DNS answer.

use std::net::IpAddr;

use a2a_crawler::AttemptOutcome;
use a2a_crawler::fetch::FetchLimits;
use a2a_crawler::guard::{GuardConfig, SsrfGuard};
use url::{Host, Url};

use super::mutation::Seed;
use super::setup::FetchSetup;
use super::urls::{UrlCase, cases};
use super::{FEW, HOME, MANY, canary, config, serve};
use crate::support::{HOST, NameServer, ScriptedReply, Zone};

/// Fetches a URL text in both ways in which foreign texts are used: as the target of a registration, and as a URL that
/// was parsed before.
async fn try_text(text: &str, world: &FetchSetup) {
    let read = [world.guard().check_url(text).ok(), Url::parse(text).ok()];
    // A mutation may happen to name the one address that is open.
    let open = |url: &Url| url.host() == Some(Host::Ipv4(HOME)) || url.domain() == Some(HOST);
    for url in read.into_iter().flatten().filter(|url| !open(url)) {
        let fetched = world.get(&url, text).await;
        let error = fetched.result.expect_err(text);
        assert_eq!(error.outcome, AttemptOutcome::Refused, "{text:?}: {error}");
    }
}

/// No packet is sent, although http and every port are open and every name leads to the canary.
#[tokio::test]
async fn nothing_is_sent_to_any_of_them() {
    let canary = canary();
    let world = FetchSetup::trap().await;
    for case in cases() {
        try_text(&case.at(canary.at.port()), &world).await;
    }
    // Some inputs are ordinary names, which only their addresses give away.
    assert!(world.look_ups() > 0);
    canary.assert_untouched();
}

#[tokio::test]
async fn nothing_is_sent_where_a_server_points() {
    let canary = canary();
    let world = FetchSetup::trap().await;
    for case in cases() {
        let text = case.at(canary.at.port());
        let location = text.clone();
        let server = serve(move |_| ScriptedReply::redirect(&location)).await;
        let (attempt, _) = world.ask(&server.url_of(HOST, "/"), &text).await;
        assert!(
            matches!(
                attempt.outcome,
                AttemptOutcome::Refused | AttemptOutcome::BadRedirect | AttemptOutcome::BadBody
            ),
            "input {}: {text:?}: {attempt:?}",
            case.number
        );
    }
    canary.assert_untouched();
}

/// The addresses of inputs 1 to 43. A record has no room for the zone of input 35.
fn addresses() -> Vec<(u8, IpAddr)> {
    let address = |case: &UrlCase| match case.number {
        35 => "fe80::1".parse().ok(),
        _ => case.address(),
    };
    cases()
        .iter()
        .filter(|case| case.number <= 43)
        .map(|case| (case.number, address(case).unwrap()))
        .collect()
}

/// A URL check does not see the address in a DNS record: the address check must refuse it.
#[tokio::test]
async fn no_name_leads_to_any_of_the_addresses() {
    let canary = canary();
    let told = addresses();
    let names = NameServer::start(move |name, kind| {
        let index: usize = name.strip_suffix(".example.com")?.get(1..)?.parse().ok()?;
        Some(Zone::now(kind, &[told.get(index)?.1]))
    })
    .await;
    let world = FetchSetup::new(names, config(FetchLimits::default()));
    for (index, (number, address)) in addresses().into_iter().enumerate() {
        let what = format!("input {number}, {address}");
        let url = format!("http://n{index}.example.com:{}/", canary.at.port());
        let (attempt, _) = world.ask(&url.parse().unwrap(), &what).await;
        assert_eq!(
            attempt.outcome,
            AttemptOutcome::Refused,
            "{what}: {attempt:?}"
        );
    }
    canary.assert_untouched();
}

async fn mutated(rounds: usize) {
    let canary = canary();
    let world = FetchSetup::trap().await;
    let port = canary.at.port();
    let guard = SsrfGuard::new(GuardConfig::default());
    for case in cases() {
        for round in 0..rounds {
            let text = Seed::new(case.number, round).mutate_text(&case.at(port));
            try_text(&text, &world).await;
            if let Ok(url) = guard.check_url(&text) {
                assert_eq!((url.scheme(), url.port()), ("https", None), "{text:?}");
                assert!(url.domain().is_some(), "{text:?}");
            }
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn mutations_send_nothing_either() {
    mutated(FEW).await;
}

#[tokio::test]
#[ignore = "the longer run, see the module"]
async fn many_mutations_send_nothing_either() {
    mutated(MANY).await;
}
